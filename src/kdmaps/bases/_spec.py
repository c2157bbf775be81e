"""Settings of a basis, and the basis made from them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from kdmaps.bases._base import Basis
from kdmaps.bases._fourier import FourierBasis, RandomPhaseBasis
from kdmaps.bases._landmarks import LandmarkBasis, select_landmarks
from kdmaps.exceptions import ArgumentError
from kdmaps.kernels import Kernel
from kdmaps.utils.types import RandomStateLike
from kdmaps.utils.validation import check_positive_integer

BASES = ("fourier", "random-phase", "landmarks", "full")
#: Samples whose mean is the origin of a basis.
ORIGIN_SAMPLES = 2**16


def check_basis(basis: Any, known: Sequence[str] = BASES) -> None:
    """Raise a ValueError unless `basis` is one of the known names."""
    if not isinstance(basis, str) or basis not in known:
        raise ValueError(f"Unknown basis {basis!r}; choose one of {', '.join(known)}.")


def make_basis(
    basis: str,
    kernel: Kernel,
    X: np.ndarray,
    n_features: int,
    *,
    sampling: str = "sobol",
    landmarks: str | ArrayLike = "kmeans",
    random_state: RandomStateLike = None,
    sample_weight: np.ndarray | None = None,
) -> Basis:
    """Build a basis for the samples X.

    Parameters
    ----------
    basis : {"fourier", "random-phase", "landmarks", "full"}
        "full" places a landmark at every sample.
    kernel : Kernel
    X : ndarray of shape (n_samples, d)
        Samples that determine the dimension, the origin and the landmarks.
    n_features : int
        p; rounded up to an even number for the pairs of "fourier".
    sampling : {"sobol", "orthogonal", "iid"}
        Sampling method of the frequencies.
    landmarks : str or array
        As in `select_landmarks`.
    random_state : int, RandomState instance or None
    sample_weight : ndarray of shape (n_samples,), optional
    """
    return BasisSpec(basis, n_features, sampling, landmarks).make(kernel, X, sample_weight, random_state)


@dataclass(frozen=True)
class BasisSpec:
    """Settings of a basis, without the kernel."""

    basis: str = "fourier"  #: One of `BASES`.
    n_features: int = 300  #: p.
    sampling: str = "sobol"  #: Sampling method of the frequencies: "sobol", "orthogonal" or "iid".
    landmarks: Any = "kmeans"  #: Method that selects the landmarks, or the landmarks.
    dtype: Any = "float64"  #: Type of the features.

    def check(self, n_components: int) -> None:
        """Raise a ValueError for settings that are invalid for all data."""
        check_basis(self.basis)
        check_positive_integer("n_features", self.n_features)
        if self.basis != "full" and n_components > self.n_features:
            raise ArgumentError(
                "{n_components:{modes}} exceeds {n_features:{features}}. A mode needs hundreds of samples: ask for "
                "fewer modes, or, if you have so many samples, increase {n_features}.",
                modes=n_components,
                features=self.n_features,
            )
        if self.dtype not in ("float64", "float32", np.float64, np.float32):
            raise ValueError(f"dtype must be 'float64' or 'float32', got {self.dtype!r}.")

    @property
    def needs_typical_samples(self) -> bool:
        """True if the samples determine more than the origin of the basis."""
        return self.basis not in ("fourier", "random-phase")

    def at_most(self, n_features: int) -> Self:
        """Return the same settings with at most `n_features` features, and the first ones of given landmarks."""
        chosen = self.landmarks if isinstance(self.landmarks, str) else self.landmarks[:n_features]
        return replace(self, n_features=min(self.n_features, n_features), landmarks=chosen)

    def make(self, kernel: Kernel, X: np.ndarray, sample_weight: np.ndarray | None, random_state: Any) -> Basis:
        """Make the basis of a kernel for samples like X."""
        check_basis(self.basis)
        rng = check_random_state(random_state)
        # With a weighted mean, an integer weight is equivalent to a repeated sample, including the sign of a mode.
        rows = slice(ORIGIN_SAMPLES) if sample_weight is None else np.flatnonzero(sample_weight)[:ORIGIN_SAMPLES]
        weight = None if sample_weight is None else sample_weight[rows]
        origin = np.average(X[rows].astype(np.float64), axis=0, weights=weight)
        if self.needs_typical_samples:
            method = "all" if self.basis == "full" else self.landmarks
            landmarks = select_landmarks(X, self.n_features, method, rng)
            return LandmarkBasis(kernel, landmarks, origin).astype(self.dtype)
        p, paired = self.n_features, self.basis == "fourier"
        frequencies = kernel.sample_frequencies(-(-p // 2) if paired else p, X.shape[1], self.sampling, rng)
        if paired:
            return FourierBasis(kernel, *frequencies, origin).astype(self.dtype)
        return RandomPhaseBasis(kernel, *frequencies, origin, rng.uniform(0, 2 * np.pi, p)).astype(self.dtype)
