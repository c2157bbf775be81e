"""Spectra, forecasts and coherent sets of `experiments.koopman` by kooplearn and deeptime.

"documented" are the defaults of kooplearn's KernelRidge with a Gaussian kernel (γ = 1/d, α = 1e-6), and of deeptime's
examples for KernelEDMD (bandwidth 1, ε = 1e-3). "best" has, for each trajectory, the smallest error of the first rate
(spectra) or after the second number of steps (forecasts) among four bandwidths and two regularizations, which only
the exact answer can pick; KernelEDMD is too slow for a grid. Digits are forecast step by step, each image from the one
before, as in kooplearn's notebook; "linear" is the first model of that notebook.

Appends to results/koopman/rivals.jsonl and skips the rows that it contains; `python -m experiments.koopman` publishes
them. Needs kooplearn, deeptime and statsmodels.

    python compare/koopman_rivals.py [NUMBER OF SEEDS]
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from experiments import driven  # noqa: E402

#: Bandwidths in median distances, and regularizations.
BANDWIDTHS, ALPHAS = (0.1, 0.3, 1.0, 3.0), (1e-8, 1e-5)
FAILURES = (ValueError, np.linalg.LinAlgError, RuntimeError)


def median_distance(X: np.ndarray) -> float:
    """Return the median distance of 500 frames."""
    some = X[:: max(1, len(X) // 500)]
    return float(np.median(np.linalg.norm(some[:, None] - some[None], axis=2)[np.triu_indices(len(some), 1)]))


def kooplearn_model(name: str, rank: int, sigma: float | None, alpha: float) -> Any:
    """Return a model of kooplearn."""
    from kooplearn.kernel import KernelRidge, NystroemKernelRidge

    cls = KernelRidge if name == "KernelRidge" else NystroemKernelRidge
    more = {} if name == "KernelRidge" else {"n_centers": 300, "random_state": 0}
    gamma = None if sigma is None else 1 / (2 * sigma**2)
    return cls(rank, reduced_rank=True, kernel="rbf", gamma=gamma, alpha=alpha, eigen_solver="arpack", **more)


def rates_of(name: str, X: np.ndarray, rank: int, sigma: float | None, alpha: float, time_step: float) -> np.ndarray:
    """Return the rates that a method finds."""
    if name == "DMD":
        from deeptime.decomposition import DMD

        values = DMD().fit((X[:-1].T, X[1:].T)).fetch_model().eigenvalues
    elif name == "KernelEDMD":
        from deeptime.decomposition import KernelEDMD
        from deeptime.kernels import GaussianKernel

        kernel = GaussianKernel(1.0 if sigma is None else sigma)
        values = KernelEDMD(kernel, n_eigs=rank + 1, epsilon=alpha).fit((X[:-1], X[1:])).fetch_model().eigenvalues
    else:
        values = kooplearn_model(name, rank + 1, sigma, alpha).fit(X).eig()
    values = np.asarray(values, dtype=complex)
    return np.log(values[np.abs(values - 1) > 1e-3]) / time_step  # without the constant


def settings(X: np.ndarray, documented_alpha: float) -> list[tuple[float | None, float]]:
    """Return the documented setting, then the grid."""
    median = median_distance(X)
    return [(None, documented_alpha), *((factor * median, alpha) for factor, alpha in product(BANDWIDTHS, ALPHAS))]


def spectra(case: str, seed: int) -> Iterator[tuple[str, list[float]]]:
    """Yield methods and errors of the leading rates."""
    rank, n_rates = driven.SPECTRA[case]
    system = driven.case(case, driven.FRAMES, seed)
    rates = rates_of("DMD", system.X, rank, None, 0.0, system.time_step)
    yield "deeptime DMD", driven.errors(rates, system, n_rates)
    for method, alpha in (
        ("kooplearn NystroemKernelRidge", 1e-6),
        ("kooplearn KernelRidge", 1e-6),
        ("deeptime KernelEDMD", 1e-3),
    ):
        found, name = [], method.split()[1]
        # All eigenvalues of a matrix of the size of the trajectory take minutes for each setting.
        for sigma, strength in settings(system.X, alpha)[: 1 if name == "KernelEDMD" else None]:
            try:
                rates = rates_of(name, system.X, rank, sigma, strength, system.time_step)
                found.append(driven.errors(rates, system, n_rates))
            except FAILURES:
                found.append([np.inf] * n_rates)
        yield f"{method}, documented", found[0]
        if len(found) > 1:
            yield f"{method}, best", min(found)


def forecasts(case: str, seed: int) -> Iterator[tuple[str, list[float]]]:
    """Yield errors of forecasts by NystroemKernelRidge, persistence, the mean and, for digits, a linear model."""
    steps, digits = driven.FORECASTS[case], case.startswith("digits")
    train, test, values = driven.series(case, seed)
    now = values(test)

    def errors(forecast: np.ndarray) -> list[float]:
        return driven.forecast_errors(case, forecast, train, test, steps)

    yield "persistence", errors(np.stack([now] * len(steps)))
    yield "mean", errors(np.stack([np.broadcast_to(values(train).mean(axis=0), now.shape)] * len(steps)))
    if digits:
        yield "kooplearn Ridge, linear", errors(_linear(train, test, steps, driven.digits_of(case)))
    found = []
    for sigma, alpha in settings(train, 1e-6):
        rank = driven.digits_of(case) if digits else 25
        try:
            model = kooplearn_model("NystroemKernelRidge", rank, sigma, alpha).fit(train, values(train))
            found.append(errors(_rollout(model, test, steps) if digits else _at_once(model, test, steps)))
        except FAILURES as error:
            print(case, sigma, alpha, error)
    pick = max if digits else min
    yield "kooplearn NystroemKernelRidge, documented", found[0]
    yield "kooplearn NystroemKernelRidge, best", pick(found, key=lambda e: e[1])


def _at_once(model: Any, test: np.ndarray, steps: tuple[int, ...]) -> np.ndarray:
    """Return forecasts by powers of the operator; in kooplearn 2.0.3 `n_steps=1` returns the present state."""
    return np.stack([np.real(model.predict(test, n_steps=k + 1, observable=True)) for k in steps])


def _rollout(model: Any, test: np.ndarray, steps: tuple[int, ...]) -> np.ndarray:
    """Return forecasts step by step, each image from the one before."""
    images, found = test, []
    for _ in range(max(steps)):
        images = np.real(model.predict(images, n_steps=2, observable=True))
        found.append(images)
    return np.stack([found[k - 1] for k in steps])


def _linear(train: np.ndarray, test: np.ndarray, steps: tuple[int, ...], rank: int) -> np.ndarray:
    """Return forecasts by the linear model of standardized pixels; here one step is `n_steps=1`."""
    from kooplearn.linear_model import Ridge
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(train)
    model = Ridge(n_components=rank, eigen_solver="dense").fit(scaler.transform(train), train)
    images, found = test, []
    for _ in range(max(steps)):
        images = np.real(model.predict(scaler.transform(images), observable=True))
        found.append(images)
    return np.stack([found[k - 1] for k in steps])


def coherent(seed: int, bandwidth: float = 0.7) -> list[int]:
    """Return the sets of deeptime's example: seven clusters of five functions of KernelCCA, bandwidth 0.7."""
    from deeptime.decomposition import KernelCCA
    from deeptime.kernels import GaussianKernel
    from sklearn.cluster import KMeans

    model = KernelCCA(GaussianKernel(bandwidth), n_eigs=5, epsilon=1e-3).fit(driven.jet(seed)).fetch_model()
    return KMeans(7, n_init=10, random_state=0).fit_predict(np.real(model.eigenvectors)).tolist()


def main() -> None:
    """Write one line per row."""
    n_seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    out = ROOT / "results" / "koopman" / "rivals.jsonl"
    out.parent.mkdir(parents=True, exist_ok=True)
    tasks = [("forecast", case, seed) for case in driven.FORECASTS for seed in range(driven.n_series(case, n_seeds))]
    tasks += [("spectrum", case, seed) for seed in range(n_seeds) for case in driven.SPECTRA]
    tasks += [("sets", "Bickley jet", seed) for seed in range(n_seeds)]
    known = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    done = {(row["kind"], row["case"], row["seed"]) for row in known}
    warnings.simplefilter("ignore")
    for kind, case, seed in tasks:
        if (kind, case, seed) in done:
            continue
        base = {"kind": kind, "case": case, "seed": seed}
        with np.errstate(all="ignore"):
            if kind == "sets":
                widths = {"": 0.7, ", bandwidth 0.5": 0.5, ", bandwidth 1": 1.0}
                rows = [
                    {**base, "method": f"deeptime KernelCCA{name}", "labels": coherent(seed, width)}
                    for name, width in widths.items()
                ]
            else:
                found = (forecasts if kind == "forecast" else spectra)(case, seed)
                rows = [{**base, "method": method, "errors": errors} for method, errors in found]
        with out.open("a") as file:  # the rows of a task at once
            file.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
