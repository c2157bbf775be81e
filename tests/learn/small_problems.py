"""Small problems on which every derivative can be checked against differences."""

import numpy as np

from kdmaps.bases import make_basis
from kdmaps.forms.tangent import TangentDiffusion, checked_tensor
from kdmaps.generators import Generator
from kdmaps.kernels import Gaussian, Laplacian, Matern, Mixture, RationalQuadratic
from kdmaps.learn.parametrisations import Anisotropy, Bandwidths, Dictionary
from kdmaps.learn.statistics import Samples
from kdmaps.selection.folds import Folds, make_splits
from shared import diffusion_arguments

#: Samples and landmarks of the same law.
COORDINATES, LANDMARKS = (
    np.random.default_rng(seed).standard_normal((n, 2)) * [1.0, 0.6] + [3.0, -1.0] for seed, n in ((0, 90), (1, 8))
)


def slope(function, step):
    """Return the derivative at 0 of a function of one number, by central differences of fourth order."""
    near, far = function(step) - function(-step), function(2 * step) - function(-2 * step)
    return (8 * near - far) / (12 * step)


def gradient(function, theta, step=5e-4):
    return np.array([slope(lambda t, e=e: function(theta + t * e), step) for e in np.eye(len(theta))])


def ornstein_uhlenbeck_action(kernel, X, Z):
    """𝒢k = Δk - x·∇k of the unit Ornstein–Uhlenbeck process."""
    return Generator(np.zeros_like)(kernel, X, Z) - sum(
        x[:, None] * part for x, part in zip(X.T, kernel.partials(X, Z), strict=True)
    )


def make_samples(diffusion=None, weighted=True):
    weight = np.random.default_rng(2).uniform(0.5, 1.5, len(COORDINATES)) if weighted else None
    folds = Folds(make_splits(3, COORDINATES, None, 3, 0), len(COORDINATES))
    return Samples.of(COORDINATES, weight, checked_tensor(diffusion, COORDINATES).at(COORDINATES, slice(None)), folds)


def make_parametrisation(name, samples):
    """A parametrisation and a point θ away from its start."""
    if name == "anisotropy":
        kernel = Mixture([Matern(1.5, 1.5), RationalQuadratic(2.0, [2.0, 1.0])], [0.6, 0.4])
        basis = make_basis("fourier", kernel, samples.X, 12, random_state=0)
        return Anisotropy(samples, basis, bound=2.0), np.array([0.3, -0.4])
    origin = samples.X.mean(axis=0)
    if name == "bandwidths":
        kernels = [Gaussian(0.7), Matern(2.5, 1.5), RationalQuadratic(5.0, 1.0)]
        theta = np.array([0.3, -0.5, 0.1, 0.1, -0.2, 0.2])
        return Bandwidths(samples, kernels, LANDMARKS, origin), theta
    if name == "dictionary":
        kernels = [Gaussian([0.7, 1.4]), Matern(2.5, 1.5), RationalQuadratic(5.0, 1.0)]
        generator = ornstein_uhlenbeck_action
    else:
        kernels, generator = [Gaussian(1.0), Laplacian(1.0), Mixture([Gaussian(0.5), Matern(1.5, 2.0)])], None
    return Dictionary(samples, kernels, LANDMARKS, origin, generator=generator), np.array([0.4, -0.3, 0.2])


DIFFUSIONS = {
    **diffusion_arguments(COORDINATES, "none", "matrix", "callable-scalars", "array-factors"),
    "tangent": TangentDiffusion(dimension=1, floor=0.3),
}
