"""What basis: the settings that estimators, searches and refinements hand on together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kdmaps.bases._base import Basis
from kdmaps.bases._make import check_basis, make_basis
from kdmaps.kernels import Kernel
from kdmaps.utils.validation import check_positive_integer


@dataclass(frozen=True)
class BasisSpec:
    """What basis a kernel is given.

    Attributes
    ----------
    basis : {"fourier", "random-phase", "landmarks", "full"}
    n_features : int
        p.
    sampling : {"sobol", "orthogonal", "iid"}
        How frequencies are drawn.
    landmarks : str or ndarray
        How landmarks are chosen, or the landmarks.
    dtype : str or dtype
        Of the features.
    """

    basis: str = "fourier"
    n_features: int = 300
    sampling: str = "sobol"
    landmarks: Any = "kmeans"
    dtype: Any = "float64"

    def check(self, n_components: int) -> None:
        """Raise a ValueError for settings that no data could make sense of."""
        check_basis(self.basis)
        check_positive_integer("n_features", self.n_features)
        if self.basis != "full" and n_components > self.n_features:
            raise ValueError(
                f"n_components={n_components} exceeds n_features={self.n_features}. A mode needs hundreds of samples: "
                "ask for fewer modes, or, if you have so many samples, increase n_features."
            )
        if self.dtype not in ("float64", "float32", np.float64, np.float32):
            raise ValueError(f"dtype must be 'float64' or 'float32', got {self.dtype!r}.")

    @property
    def needs_typical_samples(self) -> bool:
        """Whether the samples decide more than the origin of the basis."""
        return self.basis not in ("fourier", "random-phase")

    def at_most(self, n_features: int) -> BasisSpec:
        """Return the same with at most that many features; of given landmarks, the first ones."""
        chosen = self.landmarks if isinstance(self.landmarks, str) else self.landmarks[:n_features]
        return replace(self, n_features=min(self.n_features, n_features), landmarks=chosen)

    def make(self, kernel: Kernel, X: np.ndarray, sample_weight: np.ndarray | None, random_state: Any) -> Basis:
        """Make the basis of a kernel for samples like X."""
        return make_basis(
            self.basis,
            kernel,
            X,
            self.n_features,
            sampling=self.sampling,
            landmarks=self.landmarks,
            random_state=random_state,
            sample_weight=sample_weight,
        ).astype(self.dtype)
