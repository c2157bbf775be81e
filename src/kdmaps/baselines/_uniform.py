"""The paper's baseline without selection: a uniform mixture of all bandwidths."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.data.distances import median_distance
from kdmaps.estimators.kernel_map import KernelDiffusionMap
from kdmaps.forms.tangent import DiffusionLike
from kdmaps.kernels import Gaussian, Mixture
from kdmaps.selection.grid import bandwidth_grid
from kdmaps.utils.types import RandomStateLike


class UniformMixtureMap(KernelDiffusionMap):
    """`KernelDiffusionMap` with the uniform mixture of Gaussians of many bandwidths.

    The paper's Uniform+RFF (`basis="fourier"`) and Uniform+Nyström (`basis="landmarks", n_features=60`).

    Parameters
    ----------
    n_components : int, default=4
    n_kernels : int, default=10
        Number L of Gaussians, each with weight 1/L.
    bandwidth_range : (float, float), default=(0.5, 50)
        Smallest and largest bandwidth in units of the median pairwise distance; the bandwidths are spaced evenly on a
        logarithmic scale.
    basis, n_features, regularization, center, diffusion, random_state, sampling, landmarks, rates, cv :
        As in `KernelDiffusionMap`.

    Examples
    --------
    >>> import kdmaps
    >>> from kdmaps.baselines import UniformMixtureMap
    >>> X = kdmaps.problems.load("dw1d").sample(500, random_state=0)
    >>> len(UniformMixtureMap(2, random_state=0).fit(X).kernel_.kernels)
    10
    """

    def __init__(
        self,
        n_components: int = 4,
        n_kernels: int = 10,
        bandwidth_range: ArrayLike = (0.5, 50.0),
        basis: str = "fourier",
        n_features: int = 300,
        regularization: float = 1e-2,
        center: bool = True,
        diffusion: DiffusionLike = None,
        random_state: RandomStateLike = None,
        *,
        sampling: str = "sobol",
        landmarks: str | ArrayLike = "kmeans",
        rates: str = "ritz",
        cv: Any = 3,
    ):
        super().__init__(
            n_components=n_components,
            basis=basis,
            n_features=n_features,
            regularization=regularization,
            center=center,
            diffusion=diffusion,
            random_state=random_state,
            sampling=sampling,
            landmarks=landmarks,
            rates=rates,
            cv=cv,
        )
        self.n_kernels = n_kernels
        self.bandwidth_range = bandwidth_range

    def check_parameters(self) -> None:
        super().check_parameters()
        if not isinstance(self.n_kernels, Integral) or isinstance(self.n_kernels, bool) or self.n_kernels < 1:
            raise ValueError(f"n_kernels must be a positive integer, got {self.n_kernels!r}.")

    def _make_kernel(self, X: np.ndarray, weight: np.ndarray | None, rng: RandomStateLike) -> Mixture:
        sigmas = bandwidth_grid(self.n_kernels, self.bandwidth_range, median_distance(X, weight, rng))
        return Mixture([Gaussian(sigma) for sigma in sigmas])
