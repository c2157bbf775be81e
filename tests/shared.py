"""What several rooms are tested with: kernels, diffusion tensors, small fits and searches, comparisons."""

import re
import tracemalloc
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, fields

import numpy as np
import pytest
from numpy.testing import assert_allclose

import kdmaps
from kdmaps import Factor
from kdmaps.checks import RULES, Check
from kdmaps.exceptions import CheckWarning
from kdmaps.forms.moments import Moments
from kdmaps.kernels import FAMILIES, Gaussian, Laplacian, Matern, Metric, Mixture, RationalQuadratic

# --- kernels ----------------------------------------------------------------------------------------------------------
#: One bandwidth per coordinate, of three.
ANISOTROPIC = np.array([0.9, 1.6, 2.7])
ISOTROPIC_KERNELS = {
    "gaussian": Gaussian(1.4),
    "laplacian": Laplacian(2.0),
    "matern12": Matern(0.5, 1.5),
    "matern32": Matern(1.5, 1.5),
    "matern52": Matern(2.5, 1.5),
    "matern72": Matern(3.5, 1.5),
    "matern92": Matern(4.5, 0.9),
    "rq2": RationalQuadratic(2.0, 1.3),
    "rq5": RationalQuadratic(5.0, 1.3),
    "rq0.7": RationalQuadratic(0.7, 1.2),
    "mixture": Mixture([Gaussian(1.4), Matern(1.5, 2.0), RationalQuadratic(5.0, 0.8)], [0.5, 0.3, 0.2]),
}
#: Directions that are neither orthogonal nor of equal length.
ROOT = np.array([[0.9, 0.3, -0.2], [-0.5, 0.7, 0.1], [0.2, 0.4, 0.5]])
KERNELS = {
    **ISOTROPIC_KERNELS,
    **{f"{name}-anisotropic": FAMILIES[name](bandwidth=ANISOTROPIC) for name in FAMILIES},
    "mixture-proportional": Mixture([Gaussian(ANISOTROPIC), Matern(2.5, 2 * ANISOTROPIC)], [0.6, 0.4]),
    "mixture-not-proportional": Mixture([Gaussian(ANISOTROPIC), RationalQuadratic(2.0, 1.1)]),
    "mixture-not-radial": Mixture([Gaussian(1.4), Laplacian(ANISOTROPIC)], [0.6, 0.4]),
    "mixture-nested": Mixture([Mixture([Gaussian(1.4), Matern(2.5, 0.9)], [0.25, 0.75]), RationalQuadratic(3.0, 2.0)]),
    "metric-gaussian": Metric(Gaussian(1.1), ROOT),
    "metric-matern12": Metric(Matern(0.5, 1.5), ROOT),
    "metric-matern32": Metric(Matern(1.5, ANISOTROPIC), ROOT),
    "metric-laplacian": Metric(Laplacian(ANISOTROPIC), ROOT),
    "metric-of-metric": Metric(Metric(Gaussian(ANISOTROPIC), ROOT), ROOT.T),
    "metric-of-mixture": Metric(Mixture([Gaussian(1.4), Matern(1.5, 2.0)], [0.6, 0.4]), ROOT),
    "metric-not-radial": Metric(Mixture([Gaussian(1.4), Matern(1.5, ANISOTROPIC)]), ROOT),
    "mixture-of-metrics": Mixture([Metric(Gaussian(1.4), ROOT), Metric(Matern(2.5, 0.9), 2 * ROOT)], [0.3, 0.7]),
    "mixture-of-different-metrics": Mixture([Metric(Gaussian(1.4), ROOT), Matern(1.5, 2.0)], [0.3, 0.7]),
}


def kernels(*names):
    return {name: KERNELS[name] for name in names}


# --- diffusion tensors ------------------------------------------------------------------------------------------------
#: Symmetric and positive definite, and so are its leading minors.
MATRIX = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 0.7]])


def scalar_field(X):
    return 1 + 0.3 * np.sin(X[:, 0]) + 0.1 * np.cos(X[:, -1]) ** 2


def diagonal_field(X):
    return 1 + 0.5 * np.sin(X)


def tensor_field(X):
    """Return symmetric positive definite tensors (n, d, d)."""
    u = np.sin(X + np.arange(X.shape[1]))
    return u[:, :, None] * u[:, None, :] + np.diag(0.5 + np.arange(X.shape[1]) / 2)


def thin_factor(X):
    """Return factors (n, d, 2) of tensors of rank 2: a degenerate noise."""
    return np.stack([np.sin(X), np.ones_like(X)], axis=2)


def square_factor(X):
    """Return factors (n, d, d) that are not symmetric, like a Jacobian."""
    d = X.shape[1]
    return np.eye(d) + np.triu(np.ones((d, d)), 1) * np.cos(X[:, :1, None])


def diffusions(X):
    """Return {name: (argument of estimators, the same tensors of shape (n, d, d))} for samples X of up to 3 columns.

    Thin factors (n, d, 2) are told from tensors by their shape, so they need 3 columns.
    """
    n, d = X.shape
    identity, matrix, diagonal = np.eye(d), MATRIX[:d, :d], np.array([0.5, 2.0, 0.0])[:d]  # 0: no noise along it
    thin, square = (factor(X) @ np.swapaxes(factor(X), 1, 2) for factor in (thin_factor, square_factor))
    return {
        "none": (None, np.tile(identity, (n, 1, 1))),
        "scalar": (2.5, np.tile(2.5 * identity, (n, 1, 1))),
        "diagonal": (diagonal, np.tile(np.diag(diagonal), (n, 1, 1))),
        "matrix": (matrix, np.tile(matrix, (n, 1, 1))),
        "callable-scalars": (scalar_field, scalar_field(X)[:, None, None] * identity),
        "callable-diagonals": (diagonal_field, diagonal_field(X)[:, :, None] * identity),
        "callable-matrices": (tensor_field, tensor_field(X)),
        "callable-thin-factors": (thin_factor, thin),
        "callable-factors": (lambda X: Factor(square_factor(X)), square),
        "array-matrices": (tensor_field(X), tensor_field(X)),
        "array-thin-factors": (thin_factor(X), thin),
        "array-factors": (Factor(square_factor(X)), square),
    }


def diffusion_arguments(X, *names):
    return {name: diffusions(X)[name][0] for name in names}


# --- estimators -------------------------------------------------------------------------------------------------------
#: Twelve candidates.
GRID = {"families": ["gaussian", "rq2"], "bandwidths": 3, "regularizations": [1e-3, 1e-2], "max_extensions": 0}
#: The search of the tests of selection, whose grid may grow.
SMALL_SEARCH = {
    "n_components": 2,
    "families": ["gaussian", "matern52"],
    "bandwidths": 4,
    "n_features": 60,
    "random_state": 0,
}


def generator_by_differences(generator, function, X, step=1e-3):
    """Evaluate 𝒢f by central differences along b and along the columns of σ, with an error of O(step²)."""
    diagonal, factor = generator._spread(X)
    factor = np.sqrt(diagonal)[:, :, None] * np.eye(X.shape[1]) if factor is None else factor
    values = function(X)

    def stencil(direction, order):
        length = np.linalg.norm(direction, axis=1, keepdims=True)
        shift = step * direction / np.where(length > 0, length, 1)
        ahead, behind = function(X + shift), function(X - shift)
        difference = (ahead - behind) / 2 if order == 1 else ahead - 2 * values + behind
        return difference * ((length / step) ** order).reshape(-1, *(1,) * (values.ndim - 1))

    directions = (np.broadcast_to(column, X.shape) for column in np.moveaxis(factor, 2, 0))
    return stencil(generator.drift(X), 1) + sum(stencil(direction, 2) for direction in directions)


def wide_map(n_components=2, **options):
    """Return a map whose wide kernel, with little regularization, represents linear and quadratic modes."""
    settings = {"bandwidth": 6.0, "n_features": 40, "regularization": 1e-4, "random_state": 0, **options}
    return kdmaps.KernelDiffusionMap(n_components, **settings)


def known_warning(text=""):
    """Return a mark for tests in which fits warn of unreliable modes, in words with this text, beside their point."""
    return pytest.mark.filterwarnings(f"ignore:.*{text}:kdmaps.exceptions.UnreliableModesWarning")


def known_finding(text=""):
    """Return a mark for tests whose samples hold what the data check finds, in words with this text, on purpose."""
    return pytest.mark.filterwarnings(f"ignore:.*{text}:kdmaps.exceptions.DataWarning")


# --- checks -----------------------------------------------------------------------------------------------------------
def checks(record: Iterable[warnings.WarningMessage]) -> list[Check]:
    """Return the checks that recorded warnings carry, in their order."""
    return [warning.message.check for warning in record if isinstance(warning.message, CheckWarning)]


def codes(record: Iterable[warnings.WarningMessage]) -> list[str]:
    """Return the codes of the checks that recorded warnings carry, in their order."""
    return [check.code for check in checks(record)]


def _filter(code: str) -> str:
    """Return a pattern of the warnings about a rule: they end with the link to its section."""
    return rf".*#{re.escape(RULES[code].anchor)}\)$"


def known(*codes: str) -> pytest.MarkDecorator:
    """Return a mark for tests whose fits warn of these checks, beside the point of the test."""
    return pytest.mark.filterwarnings(*(f"ignore:{_filter(code)}:kdmaps.exceptions.CheckWarning" for code in codes))


@contextmanager
def ignoring(*codes: str) -> Iterator[None]:
    """Ignore warnings of these checks within this context."""
    with warnings.catch_warnings():
        for code in codes:
            warnings.filterwarnings("ignore", _filter(code), CheckWarning)
        yield


@contextmanager
def expects(*expected: str) -> Iterator[list[warnings.WarningMessage]]:
    """Assert that each of these checks is warned of, and yield these warnings; issue all others again at the end."""
    chosen: list[warnings.WarningMessage] = []
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        yield chosen
    for warning in record:
        if set(codes([warning])) & set(expected):
            chosen.append(warning)
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    assert sorted(set(codes(chosen))) == sorted(expected)


# --- comparisons ------------------------------------------------------------------------------------------------------
#: The fields that sums over samples in any order have.
MOMENTS = tuple(field.name for field in fields(Moments) if field.default is MISSING)


def assert_same_moments(one, two, rtol=1e-10, names=MOMENTS):
    """Compare up to rounding relative to the largest entry of each field, because terms of a Gram matrix cancel."""
    for name in names:
        a, b = np.asarray(getattr(one, name)), np.asarray(getattr(two, name))
        assert_allclose(a, b, rtol=0, atol=rtol * np.abs(b).max(), err_msg=name)


def traced_peak(function):
    """Return the largest number of bytes that Python and NumPy held at a time while a function ran."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def topology(n_residues, atoms):
    """Return an mdtraj topology of residues without bonds, with these atoms, of the element of their first letter."""
    import mdtraj

    made = mdtraj.Topology()
    chain = made.add_chain()
    for number in range(1, n_residues + 1):
        residue = made.add_residue("XXX", chain, resSeq=number)
        for name in atoms:
            made.add_atom(name, mdtraj.element.get_by_symbol(name[0]), residue)
    return made


def adaptive(n_components=4, **settings):
    """AdaptiveDiffusionMap; settings of its search are given like its own."""
    own = kdmaps.AdaptiveDiffusionMap._get_param_names()
    rest = {name: settings.pop(name) for name in set(settings) - set(own)}
    return kdmaps.AdaptiveDiffusionMap(n_components, search=kdmaps.KernelSearchCV(**rest) if rest else None, **settings)
