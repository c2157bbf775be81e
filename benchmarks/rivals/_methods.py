"""Rivals: one function per library, which imports it.

A function takes `Data` and returns the modes at the samples, and the rates if the library estimates them. A library
that needs a Gaussian bandwidth but offers no rule gets the starting value of kdmaps: the median pairwise distance σ
in exp(-|x - z|²/(2σ²)).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from kdmaps.data.distances import median_distance

N_FEATURES = 300


class Data(NamedTuple):
    """Input of a rival: samples, number of modes, and the position of each sample after a time `lag`."""

    X: np.ndarray
    n_modes: int
    seed: int
    later: np.ndarray | None = None
    lag: float | None = None


class Found(NamedTuple):
    """Modes at the samples, shape (n, n_modes), and their rates."""

    modes: np.ndarray
    rates: np.ndarray | None = None


@dataclass(frozen=True)
class Rival:
    """A method with its settings.

    Attributes
    ----------
    function : str
        "module:function" of the adapter.
    packages : tuple of str
        Distributions whose versions are reported; modules of these names are imported before timing starts.
    settings, source : str
        Settings, and where they are recommended.
    options : dict
        Keyword arguments of the adapter.
    lagged : bool
        True if it needs pairs of samples a time lag apart.
    timed : bool
        False if only its accuracy is measured.
    """

    function: str
    packages: tuple[str, ...]
    settings: str
    source: str
    options: dict[str, Any] = field(default_factory=dict)
    lagged: bool = False
    timed: bool = True


def kdmaps_fit(data: Data, n_features: int = N_FEATURES) -> Found:
    from kdmaps import KernelDiffusionMap

    model = KernelDiffusionMap(data.n_modes, n_features=n_features, random_state=data.seed).fit(data.X)
    return Found(model.transform(data.X), model.rates_)


def kdmaps_search(data: Data) -> Found:
    from kdmaps import KernelSearchCV

    model = KernelSearchCV(data.n_modes, random_state=data.seed).fit(data.X)
    return Found(model.transform(data.X), model.rates_)


def kdmaps_adaptive(data: Data, diffusion: str | None = None) -> Found:
    from kdmaps import AdaptiveDiffusionMap

    model = AdaptiveDiffusionMap(data.n_modes, diffusion=diffusion, random_state=data.seed).fit(data.X)
    return Found(model.transform(data.X), model.rates_)


def textbook(data: Data, n_features: int = N_FEATURES) -> Found:
    """Evaluate the formulas of the paper directly, with the frequencies of `kdmaps_fit`."""
    from benchmarks.textbook import modes
    from kdmaps.bases import make_basis
    from kdmaps.kernels import make_kernel

    kernel = make_kernel("gaussian", _sigma(data))
    basis = make_basis("fourier", kernel, data.X, n_features, random_state=data.seed)
    X, amplitude = data.X - basis.origin, np.tile(np.sqrt(basis.weights), 2)
    coefficients, _ = modes(X, basis.frequencies, amplitude, data.n_modes, regularization=1e-2)
    angles = X @ basis.frequencies.T
    return Found(np.hstack([np.cos(angles), np.sin(angles)]) * amplitude @ coefficients)


def paper_cv(data: Data) -> Found:
    """Return the paper's selection: eigenvalue sums, not centred; the first of r + 1 modes is the constant."""
    from experiments.paper._protocol import METHODS

    model = METHODS["CV+RFF"](data.X, data.n_modes + 1, data.seed, regularization=1e-2, n_features=N_FEATURES)
    return Found(model.transform(data.X)[:, 1:], model.rates_[1:])


def klap(data: Data, n_features: int = N_FEATURES, regularization: float = 0.0) -> Found:
    from klap import GaussianKernel

    model = GaussianKernel(sigma=np.sqrt(2) * _sigma(data))  # its kernel is exp(-|x - z|²/sigma²)
    model.fit(data.X, p=min(n_features, len(data.X)), k=data.n_modes + 1, L_reg=regularization, R_reg=0, inverse_L=True)
    # Time scales in ascending order; the largest belongs to the constant.
    return Found(model.features_map(data.X)[:, -2::-1], 1 / model.eigenvalues[-2::-1])


def kooplearn(data: Data) -> Found:
    from kooplearn.kernel import GeneratorDirichlet

    # dX = a dt + b dW with b = √2; r modes and the constant.
    model = GeneratorDirichlet(np.sqrt(2), data.n_modes + 1, gamma=1 / (2 * _sigma(data) ** 2)).fit(data.X)
    values, functions = model.eig(eval_right_on=data.X)
    return Found(real_modes(values, functions)[:, 1:], -np.real(values[1:]))


def pydiffmap(data: Data, **options) -> Found:
    from pydiffmap.diffusion_map import DiffusionMap

    model = DiffusionMap.from_sklearn(n_evecs=data.n_modes, alpha=0.5, epsilon="bgh", **options)
    return Found(model.fit_transform(data.X), -model.evals)


def deeptime(data: Data) -> Found:
    from deeptime.decomposition import KernelEDMD
    from deeptime.kernels import GaussianKernel

    estimator = KernelEDMD(GaussianKernel(_sigma(data)), epsilon=0.1, n_eigs=data.n_modes + 1)
    model = estimator.fit((data.X, data.later)).fetch_model()
    modes = real_modes(model.eigenvalues, model.transform(data.X))
    return Found(modes[:, 1:], -np.log(np.abs(model.eigenvalues[1:])) / data.lag)


def spectral_embedding(data: Data, **options) -> Found:
    from sklearn.manifold import SpectralEmbedding

    return Found(SpectralEmbedding(data.n_modes, random_state=data.seed, **options).fit_transform(data.X))


def kernel_pca(data: Data) -> Found:
    from sklearn.decomposition import KernelPCA

    return Found(KernelPCA(data.n_modes, kernel="rbf", random_state=data.seed).fit_transform(data.X))


def real_modes(values: np.ndarray, functions: np.ndarray) -> np.ndarray:
    """Real functions with the same span: a pair of conjugates becomes real and imaginary part."""
    return np.where(np.imag(values) < 0, np.imag(functions), np.real(functions))


def _sigma(data: Data) -> float:
    return median_distance(data.X, random_state=data.seed)


def _here(name: str) -> str:
    return f"{__name__}:{name}"


#: Everything that is compared. The first four are kdmaps.
RIVALS: dict[str, Rival] = {
    "kdmaps, one fit": Rival(
        _here("kdmaps_fit"), ("kdmaps",), "Gaussian, median bandwidth, λ=0.01, 300 Fourier features", "defaults"
    ),
    "kdmaps, search": Rival(_here("kdmaps_search"), ("kdmaps",), "KernelSearchCV", "defaults"),
    "kdmaps, adaptive": Rival(_here("kdmaps_adaptive"), ("kdmaps",), "AdaptiveDiffusionMap", "defaults"),
    "kdmaps, tangent": Rival(
        _here("kdmaps_adaptive"),
        ("kdmaps",),
        "AdaptiveDiffusionMap, diffusion='tangent'",
        "docs: Manifolds (circle and spheres; the others fill their space)",
        {"diffusion": "tangent"},
        timed=False,
    ),
    "textbook": Rival(
        _here("textbook"), ("scipy",), "the same fit with explicit (N·d)×p derivatives", "benchmarks/textbook.py"
    ),
    "paper, CV+RFF": Rival(
        _here("paper_cv"),
        ("kdmaps",),
        "six families × ten bandwidths, eigenvalue sum, not centred, r + 1 modes without the first",
        "the paper's protocol (make reproduce), on kdmaps' engine",
        timed=False,
    ),
    "klap": Rival(
        _here("klap"),
        ("klap",),
        "GaussianKernel, median bandwidth, 300 representers, inverse_L=True, L_reg=R_reg=0",
        "examples/eigenvalues.py of its repository",
    ),
    "klap, λ=0.01": Rival(
        _here("klap"),
        ("klap",),
        "the same with L_reg=0.01",
        "the regularization of kdmaps' one fit",
        {"regularization": 1e-2},
        timed=False,
    ),
    "kooplearn": Rival(
        _here("kooplearn"),
        ("kooplearn",),
        "GeneratorDirichlet, diffusion=√2, median bandwidth, alpha=1e-6, shift=1; right eigenfunctions",
        "defaults but for the bandwidth",
    ),
    "pyDiffMap": Rival(
        _here("pydiffmap"),
        ("pydiffmap",),
        "alpha=0.5, epsilon='bgh', k=64",
        "its page Usage; alpha=0.5 has the generator of these problems as its limit (page Theory)",
        {"k": 64},
    ),
    "pyDiffMap, variable": Rival(
        _here("pydiffmap"),
        ("pydiffmap",),
        "the same with k=200 and bandwidth_type='-1/(d+2)'",
        "k of its tutorial Swiss roll, bandwidth of its API page",
        {"k": 200, "bandwidth_type": "-1/(d+2)"},
        timed=False,
    ),
    "deeptime": Rival(
        _here("deeptime"),
        ("deeptime",),
        "KernelEDMD, median bandwidth, epsilon=0.1; each sample with its position a lag 0.5/rate_r later",
        "epsilon of the Ornstein–Uhlenbeck example of d3s, by the authors of the method",
        lagged=True,
    ),
    "SpectralEmbedding": Rival(
        _here("spectral_embedding"), ("scikit-learn",), "affinity='nearest_neighbors', N/10 neighbours", "defaults"
    ),
    "SpectralEmbedding, 12": Rival(
        _here("spectral_embedding"),
        ("scikit-learn",),
        "12 neighbours",
        "gallery: Comparison of Manifold Learning methods",
        {"n_neighbors": 12},
    ),
    "SpectralEmbedding, rbf": Rival(
        _here("spectral_embedding"),
        ("scikit-learn",),
        "affinity='rbf', gamma=1/d",
        "defaults of that affinity",
        {"affinity": "rbf"},
    ),
    "KernelPCA": Rival(_here("kernel_pca"), ("scikit-learn",), "kernel='rbf', gamma=1/d", "defaults of that kernel"),
}
OURS = tuple(name for name in RIVALS if name.startswith("kdmaps"))
