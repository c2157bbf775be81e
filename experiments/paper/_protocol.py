"""The paper's protocol as far as its text determines it, its variants, the default of kdmaps, and how runs are scored.

Settings that the text does not state were inferred from the printed numbers: the constant is one of the r modes (the
covariance is not centred), bandwidths are the median pairwise distance times ten factors from 0.5 to 50, features are
√(2/p) cos(wᵀx + b) with independent draws. Matérn frequencies follow t_ν(0, √ν/σ) as printed. Searches are the plain
sweep of `_sweep`; names of methods with a comma are variants of the protocol.
"""

from __future__ import annotations

import time
import unicodedata
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from experiments._references import paper_reference
from experiments._runner import Row
from experiments.paper._learning import N_LANDMARKS, Learned, start_of_varrff, varrff, vmkl_one_by_one
from experiments.paper._problems import load
from experiments.paper._sweep import (
    AS_STATED,
    BANDWIDTHS,
    Features,
    Selection,
    Settings,
    fit_features,
    printed_r2,
    select,
)
from kdmaps import metrics
from kdmaps.data.distances import median_distance
from kdmaps.estimators.adaptive import AdaptiveDiffusionMap
from kdmaps.estimators.kernel_map import KernelDiffusionMap
from kdmaps.estimators.search import KernelSearchCV
from kdmaps.estimators.transformer import ModeTransformer
from kdmaps.estimators.variational import VariationalKernelMap
from kdmaps.kernels import FAMILIES, Gaussian, Kernel, Metric, Mixture, make_kernel
from kdmaps.utils.files import replacing

#: (X, r, seed, regularization, n_features) → fitted estimator.
Fit = Callable[[np.ndarray, int, int, float, int], ModeTransformer | Selection | Learned]
#: Variants of the plain sweep by the ending of the name of a method.
VARIANTS = {
    "": AS_STATED,
    ", single precision": Settings("shared", "float32", "exact"),
    ", phases by family": Settings("after", "float32", "exact"),
    ", phases first": Settings("before", "float32", "exact"),
}


def _shared(r: int, seed: int, regularization: float) -> dict[str, Any]:
    return {"n_components": r, "center": False, "regularization": regularization, "random_state": seed}


def _cross_validated(scoring: str, settings: Settings = AS_STATED) -> Fit:
    def fit(X: np.ndarray, r: int, seed: int, regularization: float, n_features: int) -> Selection:
        return select(X, r, seed, regularization, n_features, scoring, settings)

    return fit


def uniform_mixture(median: float) -> Mixture:
    """Return the kernel of the paper's baseline without selection: Gaussians of all bandwidths with equal weights."""
    return Mixture([Gaussian(sigma) for sigma in median * BANDWIDTHS])


def _uniform(basis: str) -> Fit:
    def fit(X: np.ndarray, r: int, seed: int, regularization: float, n_features: int) -> ModeTransformer:
        p = N_LANDMARKS if basis == "landmarks" else n_features
        kernel = uniform_mixture(median_distance(X, random_state=seed))
        shared = _shared(r, seed, regularization)
        return KernelDiffusionMap(kernel=kernel, basis=basis, n_features=p, sampling="iid", **shared).fit(X)

    return fit


def _variational(objective: str) -> Fit:
    def fit(X: np.ndarray, r: int, seed: int, regularization: float, n_features: int) -> ModeTransformer:
        return VariationalKernelMap(
            objective=objective, n_features=N_LANDMARKS, **_shared(r, seed, regularization)
        ).fit(X)

    return fit


def _variational_fourier(X: np.ndarray, r: int, seed: int, regularization: float, n_features: int) -> ModeTransformer:
    # The paper starts from its cross-validated bandwidth, the widest of its grid.
    return VariationalKernelMap(
        objective="varrff",
        basis="fourier",
        bandwidth=start_of_varrff(X, seed),
        n_features=n_features,
        **_shared(r, seed, regularization),
    ).fit(X)


def _uniform_single(X: np.ndarray, r: int, seed: int, regularization: float, n_features: int) -> Learned:
    """Fit random-phase features of the uniform mixture in single precision."""
    rng = np.random.RandomState(seed)
    normals = rng.standard_normal((n_features, X.shape[1]))
    median = median_distance(X, random_state=seed)
    bandwidths = median * np.resize(BANDWIDTHS, n_features)
    phases = rng.uniform(0, 2 * np.pi, n_features)
    features = Features((normals / bandwidths[:, None]).astype(np.float32), phases.astype(np.float32))
    operators, coefficients = fit_features(features, X, r, regularization)
    rates = 1 / operators.eigenpairs(r)[0]
    return Learned(uniform_mixture(median), rates, features.values, coefficients)


def _inner_loop(basis: str, center: bool) -> Fit:
    """Fit one Gaussian at the median distance, so that only the basis differs."""

    def fit(X: np.ndarray, r: int, seed: int, regularization: float, n_features: int) -> ModeTransformer:
        p = N_LANDMARKS if basis == "landmarks" else n_features
        shared = {**_shared(r, seed, regularization), "center": center}
        return KernelDiffusionMap(basis=basis, n_features=p, sampling="iid", **shared).fit(X)

    return fit


def without_search(r: int, median: float, seed: int) -> dict[str, KernelDiffusionMap]:
    """Return CV+RFF and Uniform+RFF without their search; CV+RFF always selects the widest bandwidth of its grid."""
    shared = {"basis": "random-phase", "sampling": "iid", **_shared(r, seed, 0.01)}
    return {
        "CV+RFF": KernelDiffusionMap(bandwidth=BANDWIDTHS[-1] * median, **shared),
        "Uniform+RFF": KernelDiffusionMap(kernel=uniform_mixture(median), **shared),
    }


def _adaptive(X: np.ndarray, r: int, seed: int, regularization: float, n_features: int) -> ModeTransformer:
    return AdaptiveDiffusionMap(r, n_features=n_features, random_state=seed, n_jobs=1).fit(X)


def _search_at(X: np.ndarray, r: int, seed: int, regularization: float, n_features: int) -> ModeTransformer:
    return KernelSearchCV(
        r, regularizations=[regularization], n_features=n_features, max_extensions=0, random_state=seed, n_jobs=1
    ).fit(X)


#: The methods of the paper by their names there, and the default of kdmaps.
METHODS: dict[str, Fit] = {
    **{
        name + variant: _cross_validated(scoring, settings)
        for name, scoring in (("CV+RFF", "eigsum"), ("Gap-CV", "gap"), ("Rayleigh-CV", "rayleigh"))
        for variant, settings in VARIANTS.items()
    },
    "Uniform+RFF": _uniform("random-phase"),
    "Uniform+RFF, single precision": _uniform_single,
    "Uniform+Nyström": _uniform("landmarks"),
    "SubOnly": _variational("sub-only"),
    "EigOnly": _variational("eig-only"),
    "VMKL": _variational("combined"),
    "SubOnly, one by one": partial(vmkl_one_by_one, "sub-only"),
    "VMKL, one by one": partial(vmkl_one_by_one, "combined"),
    "VarRFF": _variational_fourier,
    "VarRFF, random phases": varrff,
    **{
        f"{name}{', centred' if center else ''}": _inner_loop(basis, center)
        for basis, name in (("landmarks", "Nyström"), ("full", "full"), ("random-phase", "RFF"))
        for center in (False, True)
    },
    "kdmaps": _adaptive,
    "kdmaps at this λ": _search_at,
}


def measure(
    method: str,
    problem: str,
    seed: int,
    n_samples: int = 500,
    n_features: int = 300,
    regularization: float | None = None,
    runs: Path | None = None,
) -> Row:
    """Fit `method` to one sample of `problem` and score its modes with the paper's reference and the true slow modes.

    Parameters
    ----------
    method, problem : str
        Names from `METHODS` and `kdmaps.problems`.
    seed : int
        Seed of the sample and of the fit.
    n_samples, n_features : int
        Number of samples and of features.
    regularization : float or None
        λ; None means the value of the paper: 0.005 for the circle, 0.01 for all others.
    runs : Path, optional
        Directory for a CSV file with the modes of the run.

    Returns
    -------
    dict
        Plain data: what the paper's appendix lists for a run, except the modes themselves.
    """
    if regularization is None:
        regularization = 0.005 if problem == "circle" else 0.01
    system = load(problem)
    X = system.sample(n_samples, random_state=seed)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about modes that the paper's protocol cannot resolve
        model = METHODS[method](X, system.n_modes, seed, regularization, n_features)
    seconds = time.perf_counter() - start
    modes, printed, truth = model.transform(X), paper_reference(system, X), system.reference(X, system.n_modes)
    median = median_distance(X, random_state=seed)
    row = {
        "method": method,
        "problem": problem,
        "seed": seed,
        "n_samples": n_samples,
        "n_features": n_features,
        "asked_regularization": regularization,
        "regularization": getattr(model, "best_params_", {}).get("regularization", regularization),
        "paper_r2": metrics.subspace_r2(modes, printed),
        "r2": metrics.subspace_r2(modes, truth),
        "each_r2": printed_r2(modes, printed, "one by one"),
        "exact_paper_r2": metrics.subspace_r2(truth[:, : system.n_modes], printed),
        "correlations": metrics.correlation_table(metrics.align_modes(modes, printed, "hungarian"), printed),
        "average_abs_correlation": average_abs_correlation(modes, printed),
        "rates": model.rates_,
        "weights": [beta for beta, _ in model.kernel_.components()],
        "kernels": [kernel.to_dict() for _, kernel in model.kernel_.components()],
        "median_distance": median,
        "seconds": seconds,
    }
    if isinstance(model, Selection):
        row["landscape"] = [{**c, "bandwidth": c["bandwidth"] / median} for c in model.cv_results_]
        row["phase_means"] = phase_means(X.shape[1], n_features, seed, VARIANTS["".join(method.partition(",")[1:])])
    elif hasattr(model, "cv_results_"):
        row["landscape"] = _landscape(model.cv_results_, median)
    if runs is not None:
        row["modes"] = _save_modes(runs, row, X, modes)
    return _plain(row)


def phase_means(dim: int, n_features: int, seed: int, settings: Settings) -> dict[str, float]:
    """Return the mean of cos 2b over the phases b of each family: a wide kernel has μ₀ = (1 + mean cos 2b)/λ."""
    drawn = {family: Features.draw(family, 1.0, n_features, dim, seed, settings) for family in FAMILIES}
    return {family: float(np.mean(np.cos(2 * features.phases))) for family, features in drawn.items()}


def average_abs_correlation(modes: np.ndarray, reference: np.ndarray) -> float:
    """Return the mean absolute correlation of the best assignment of min(r, R) pairs (the paper's AvgAbsCorr)."""
    table = metrics.correlation_table(modes, reference)
    return float(table[linear_sum_assignment(-table)].mean())


def family_of(kernel: Kernel) -> str:
    """Return the name of the family of a kernel, for any bandwidth and frequencies."""
    shape = {name: getattr(kernel, name) for name in ("nu", "alpha") if hasattr(kernel, name)}
    plain = {name: make_kernel(name) for name in FAMILIES}
    return next(
        name
        for name, candidate in plain.items()
        if isinstance(kernel, type(candidate)) and shape.items() <= vars(candidate).items()
    )


def _landscape(results: dict[str, Any], median: float) -> list[Row]:
    """Return the best score over λ of each kernel of a search; bandwidths in a learned metric have another unit."""
    best: dict[tuple[str, float], float] = {}
    for params, score in zip(results["params"], results["selection_score"], strict=True):
        kernel = make_kernel(params["kernel"], params.get("bandwidth", 1.0))
        if isinstance(kernel, Metric):
            continue
        key = (family_of(kernel), float(kernel.bandwidth) / median)  # type: ignore[attr-defined]
        best[key] = max(score, best.get(key, -np.inf))
    return [{"family": family, "bandwidth": sigma, "score": score} for (family, sigma), score in best.items()]


def _save_modes(runs: Path, row: Row, X: np.ndarray, modes: np.ndarray) -> str:
    """Write coordinates (three at most) and modes."""
    numbers = (f"n{row['n_samples']}", f"lambda{row['asked_regularization']:g}", f"s{row['seed']}")
    words = (row["method"], row["problem"], *numbers)
    plain = unicodedata.normalize("NFKD", "-".join(words)).encode("ascii", "ignore").decode()  # ö is o
    path = runs / (plain.replace(" ", "_").replace(",", "") + ".csv")
    shown = X[:, :3]
    header = [f"x{j + 1}" for j in range(shown.shape[1])] + [f"mode{k + 1}" for k in range(modes.shape[1])]
    runs.mkdir(parents=True, exist_ok=True)
    with replacing(path) as (file,):
        np.savetxt(file, np.hstack([shown, modes]), fmt="%.5g", delimiter=",", header=",".join(header), comments="")
    return path.name


def _plain(value: Any) -> Any:
    """Convert NumPy values to plain numbers and lists with six digits."""
    if isinstance(value, dict):
        return {key: _plain(v) for key, v in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(v) for v in value]
    if isinstance(value, float | np.floating):
        return float(f"{value:.6g}")
    return value.item() if isinstance(value, np.generic) else value
