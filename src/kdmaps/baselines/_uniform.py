"""The paper's baseline without selection: a uniform mixture of all bandwidths."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.data.distances import median_distance
from kdmaps.estimators.kernel_map import KernelDiffusionMap
from kdmaps.forms.tangent import DiffusionLike
from kdmaps.kernels import Gaussian, Mixture
from kdmaps.selection.grid import bandwidth_grid
from kdmaps.utils.types import RandomStateLike
from kdmaps.utils.validation import check_positive_integer


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
    regularization, basis, n_features, sampling, landmarks, center, diffusion, rates, cv, random_state :
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
        *,
        n_kernels: int = 10,
        bandwidth_range: ArrayLike = (0.5, 50.0),
        regularization: float = 1e-2,
        basis: str = "fourier",
        n_features: int = 300,
        sampling: str = "sobol",
        landmarks: str | ArrayLike = "kmeans",
        center: bool = True,
        diffusion: DiffusionLike = None,
        rates: str = "ritz",
        cv: Any = 3,
        random_state: RandomStateLike = None,
    ):
        super().__init__(
            n_components=n_components,
            regularization=regularization,
            basis=basis,
            n_features=n_features,
            sampling=sampling,
            landmarks=landmarks,
            center=center,
            diffusion=diffusion,
            rates=rates,
            cv=cv,
            random_state=random_state,
        )
        self.n_kernels = n_kernels
        self.bandwidth_range = bandwidth_range

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive_integer("n_kernels", self.n_kernels)

    def _make_kernel(self, X: np.ndarray, weight: np.ndarray | None, seed: int) -> Mixture:
        sigmas = bandwidth_grid(self.n_kernels, self.bandwidth_range, median_distance(X, weight, seed))
        return Mixture([Gaussian(sigma) for sigma in sigmas])
