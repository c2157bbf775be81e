"""Small problems on which every derivative can be checked against differences."""

import numpy as np
import pytest

from kdmaps.bases import make_basis
from kdmaps.forms.diffusion import Factor
from kdmaps.forms.tangent import TangentDiffusion, checked_tensor
from kdmaps.kernels import Gaussian, Laplacian, Matern, Mixture, RationalQuadratic
from kdmaps.learn.anisotropy import Anisotropy
from kdmaps.learn.bandwidths import Bandwidths
from kdmaps.learn.dictionary import Dictionary
from kdmaps.learn.statistics import Samples
from kdmaps.selection.folds import Folds, make_splits


def five_point(function, theta, step=5e-4):
    """Central differences of fourth order."""
    gradient = np.empty_like(theta)
    for j in range(len(theta)):
        e = np.zeros_like(theta)
        e[j] = step
        near, far = function(theta + e) - function(theta - e), function(theta + 2 * e) - function(theta - 2 * e)
        gradient[j] = (8 * near - far) / (12 * step)
    return gradient


def ornstein_uhlenbeck_action(kernel, X, Z):
    """𝒢k = Δk - x·∇k of the unit Ornstein–Uhlenbeck process."""
    return kernel.laplacian(X, Z) - sum(x[:, None] * part for x, part in zip(X.T, kernel.partials(X, Z), strict=True))


@pytest.fixture(scope="session")
def samples():
    return make_samples()


def make_samples(diffusion=None, weighted=True, n=90):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 2)) * [1.0, 0.6] + [3.0, -1.0]
    weight = rng.uniform(0.5, 1.5, n) if weighted else None
    folds = Folds(make_splits(3, X, None, 3, 0), n)
    return Samples.of(X, weight, checked_tensor(diffusion, X, keep=True), folds)


def landmarks():
    return np.random.default_rng(1).standard_normal((8, 2)) * [1.0, 0.6] + [3.0, -1.0]


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
        return Bandwidths(samples, kernels, landmarks(), origin), theta
    if name == "dictionary":
        kernels = [Gaussian([0.7, 1.4]), Matern(2.5, 1.5), RationalQuadratic(5.0, 1.0)]
        generator = ornstein_uhlenbeck_action
    else:
        kernels, generator = [Gaussian(1.0), Laplacian(1.0), Mixture([Gaussian(0.5), Matern(1.5, 2.0)])], None
    return Dictionary(samples, kernels, landmarks(), origin, generator=generator), np.array([0.4, -0.3, 0.2])


DIFFUSIONS = {
    "identity": None,
    "matrix": [[2.0, 0.5], [0.5, 1.0]],
    "scalar": lambda X: 1 + X[:, 0] ** 2 / 10,
    "factor": Factor(np.random.default_rng(2).standard_normal((90, 2, 2))),
    "tangent": TangentDiffusion(dimension=1, floor=0.3),
}
