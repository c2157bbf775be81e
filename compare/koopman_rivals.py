"""Spectra and forecasts of `experiments.koopman` by kooplearn and deeptime, with documented settings and the best ones.

"documented" are the defaults of kooplearn's KernelRidge with a Gaussian kernel (γ = 1/d, α = 1e-6), and of deeptime's
examples for KernelEDMD (bandwidth 1, ε = 1e-3). "best" has, for each trajectory, the smallest error of the first rate
(spectra) or after the second number of steps (forecasts) among four bandwidths and two regularizations, which only
the exact answer can pick; KernelEDMD is too slow for a grid. Writes results/koopman/rivals.jsonl; needs kooplearn and
deeptime, not kdmaps.

    python compare/koopman_rivals.py
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from experiments import driven  # noqa: E402

FRAMES, SEEDS = 2_000, int(sys.argv[1]) if len(sys.argv) > 1 else 5
SPECTRA = {
    "rotating 0.5": (5, 2),
    "rotating 2": (5, 3),
    "rotating 5": (5, 3),
    "limit cycle": (6, 3),
    "jumps": (3, 2),
    "logistic": (8, 1),
}
FORECASTS = {
    "Lorenz-63": (1, 10, 20, 50),
    "van der Pol": (1, 10, 20, 50),
    "El Niño": (1, 3, 6, 12),
    "digits": (1, 2, 5),
}
#: Bandwidths in median distances, and regularizations.
BANDWIDTHS, ALPHAS = (0.1, 0.3, 1.0, 3.0), (1e-8, 1e-5)


def median_distance(X: np.ndarray) -> float:
    """Return the median distance of 500 frames."""
    some = X[:: max(1, len(X) // 500)]
    return float(np.median(np.linalg.norm(some[:, None] - some[None], axis=2)[np.triu_indices(len(some), 1)]))


def kooplearn_model(name: str, rank: int, gamma: float | None, alpha: float) -> object:
    """Return a model of kooplearn."""
    from kooplearn.kernel import KernelRidge, NystroemKernelRidge

    cls = KernelRidge if name == "KernelRidge" else NystroemKernelRidge
    more = {} if name == "KernelRidge" else {"n_centers": 300, "random_state": 0}
    return cls(rank, reduced_rank=True, kernel="rbf", gamma=gamma, alpha=alpha, eigen_solver="arpack", **more)


def rates_of(name: str, X: np.ndarray, rank: int, sigma: float | None, alpha: float, time_step: float) -> np.ndarray:
    """Return the rates that a method finds."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name == "DMD":
            from deeptime.decomposition import DMD

            values = DMD().fit((X[:-1].T, X[1:].T)).fetch_model().eigenvalues
        elif name == "KernelEDMD":
            from deeptime.decomposition import KernelEDMD
            from deeptime.kernels import GaussianKernel

            kernel = GaussianKernel(1.0 if sigma is None else sigma)
            values = KernelEDMD(kernel, n_eigs=rank + 1, epsilon=alpha).fit((X[:-1], X[1:])).fetch_model().eigenvalues
        else:
            model = kooplearn_model(name, rank + 1, None if sigma is None else 1 / (2 * sigma**2), alpha)
            values = np.asarray(model.fit(X).eig())
        values = np.asarray(values, dtype=complex)
        values = values[np.abs(values - 1) > 1e-3]  # the constant
        return np.log(values) / time_step


def settings(X: np.ndarray, documented_alpha: float) -> Iterator[tuple[float | None, float]]:
    """Yield the documented setting, then the grid."""
    yield None, documented_alpha
    median = median_distance(X)
    for factor in BANDWIDTHS:
        for alpha in ALPHAS:
            yield factor * median, alpha


def spectra() -> Iterator[dict]:
    """Yield rows of errors of the leading rates."""
    for seed in range(SEEDS):
        for case, (rank, n_rates) in SPECTRA.items():
            system = driven.case(case, FRAMES, seed)
            base = {"kind": "spectrum", "case": case, "seed": seed}
            rates = rates_of("DMD", system.X, rank, None, 0.0, system.time_step)
            yield {**base, "method": "deeptime DMD", "errors": driven.errors(rates, system, n_rates)}
            for library, name, alpha in (
                ("kooplearn", "NystroemKernelRidge", 1e-6),
                ("kooplearn", "KernelRidge", 1e-6),
                ("deeptime", "KernelEDMD", 1e-3),
            ):
                found = []
                for sigma, strength in settings(system.X, alpha):
                    if name == "KernelEDMD" and sigma is not None:
                        continue  # all eigenvalues of a matrix of the size of the trajectory: minutes for each setting
                    try:
                        rates = rates_of(name, system.X, rank, sigma, strength, system.time_step)
                        found.append(driven.errors(rates, system, n_rates))
                    except (ValueError, np.linalg.LinAlgError, RuntimeError):
                        found.append([np.inf] * n_rates)
                yield {**base, "method": f"{library} {name}, documented", "errors": found[0]}
                if len(found) > 1:
                    yield {**base, "method": f"{library} {name}, best", "errors": min(found)}


def forecasts() -> Iterator[dict]:
    """Yield rows of errors of forecasts by NystroemKernelRidge (rank 25), persistence and the mean.

    In kooplearn 2.0.3 `n_steps=1` returns the present state, hence one step more.
    """
    for case, steps in FORECASTS.items():
        train, test, values = driven.series(case, 0)
        base = {"kind": "forecast", "case": case, "seed": 0}
        now = values(test)
        for method, guess in (("persistence", now), ("mean", np.broadcast_to(values(train).mean(axis=0), now.shape))):
            errors = driven.forecast_errors(case, np.stack([guess] * len(steps)), train, test, steps)
            yield {**base, "method": method, "errors": errors}
        found = []
        for sigma, alpha in settings(train, 1e-6):
            model = kooplearn_model("NystroemKernelRidge", 25, None if sigma is None else 1 / (2 * sigma**2), alpha)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model.fit(train, values(train))
                    guesses = np.stack([np.real(model.predict(test, n_steps=k + 1, observable=True)) for k in steps])
                found.append(driven.forecast_errors(case, guesses, train, test, steps))
            except (ValueError, np.linalg.LinAlgError, RuntimeError) as error:
                print(case, sigma, alpha, error)
        pick = max if case == "digits" else min
        yield {**base, "method": "kooplearn NystroemKernelRidge, documented", "errors": found[0]}
        yield {**base, "method": "kooplearn NystroemKernelRidge, best", "errors": pick(found, key=lambda e: e[1])}


def main() -> None:
    """Write one line per row."""
    out = ROOT / "results" / "koopman" / "rivals.jsonl"
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("w") as file:
        for row in chain(forecasts(), spectra()):
            print(json.dumps(row), file=file, flush=True)


if __name__ == "__main__":
    main()
