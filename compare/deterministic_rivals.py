"""Rates and forecasts of `experiments.deterministic` by PyDMD, kooplearn and extended DMD with polynomials.

Every method is told the exact number of eigenvalues, and has the settings of its documentation otherwise: PyDMD's exact
DMD and BOPDMD (`svd_rank`); kooplearn's KernelRidge with a Gaussian kernel (γ = 1/d, α = 1e-6); extended DMD by
least squares on all monomials up to degree 3 of the first principal coordinates, at most five. BOPDMD forecasts by its
modes and exponents from the state that its modes make of a frame. Of extended DMD, the eigenvalues whose modes are
largest are taken.

Appends to results/deterministic/rivals.jsonl and skips the rows that it contains; `python -m experiments.deterministic`
publishes them. Needs PyDMD and kooplearn (`pip install --group deterministic`).

    python compare/deterministic_rivals.py [NUMBER OF SEEDS]
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import PolynomialFeatures

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from experiments import deterministic_systems as systems  # noqa: E402

Predict = Callable[[np.ndarray, int], np.ndarray]
FAILURES = (ValueError, TypeError, np.linalg.LinAlgError, RuntimeError, ArithmeticError)
#: Principal coordinates of extended DMD, and the degree of its monomials.
COORDINATES, DEGREE = 5, 3


def pairs(system: systems.System) -> tuple[np.ndarray, np.ndarray]:
    """Return first and second frames."""
    return np.vstack([X[:-1] for X in system.train]), np.vstack([X[1:] for X in system.train])


def linear(modes: np.ndarray, values: np.ndarray) -> Predict:
    """Return forecasts x → Φ Λ^h Φ⁺x."""
    inverse = np.linalg.pinv(modes)

    def predict(X: np.ndarray, steps: int) -> np.ndarray:
        return np.asarray(((X @ inverse.T) * values**steps) @ modes.T).real

    return predict


def exact_dmd(system: systems.System) -> tuple[np.ndarray, Predict]:
    """Return PyDMD's exact DMD."""
    from pydmd import DMD

    first, second = pairs(system)
    model = DMD(svd_rank=system.rank, exact=True).fit(first.T, second.T)
    values = np.asarray(model.eigs)
    return np.log(values.astype(complex)) / system.time_step, linear(np.asarray(model.modes), values)


def bopdmd(system: systems.System) -> tuple[np.ndarray, Predict]:
    """Return PyDMD's optimised DMD, which fits one trajectory."""
    from pydmd import BOPDMD

    (X,) = system.train
    model = BOPDMD(svd_rank=system.rank, num_trials=0).fit(X.T, system.time_step * np.arange(len(X)))
    rates = np.asarray(model.eigs)
    return rates, linear(np.asarray(model.modes), np.exp(rates * system.time_step))


def extended_dmd(system: systems.System) -> tuple[np.ndarray, Predict]:
    """Return least squares on monomials of principal coordinates."""
    first, second = pairs(system)
    origin = first.mean(axis=0)
    _, deviations, rows = np.linalg.svd(first - origin, full_matrices=False)
    k = min(COORDINATES, int(np.count_nonzero(deviations > 1e-8 * deviations[0])))
    scale = deviations[0] / np.sqrt(len(first))
    monomials = PolynomialFeatures(DEGREE)

    def features(X: np.ndarray) -> np.ndarray:
        return np.asarray(monomials.fit_transform((X - origin) @ rows[:k].T / scale))

    K = np.linalg.lstsq(features(first), features(second), rcond=1e-12)[0]
    values, functions = np.linalg.eig(K)
    modes = np.linalg.pinv(functions)[:, 1 : 1 + k]
    sizes = np.linalg.norm(modes, axis=1) * np.abs(features(first) @ functions).std(axis=0)
    sizes[np.abs(values - 1) < 1e-9] = 0  # the constant
    leading = np.argsort(-sizes)[: system.rank]

    def predict(X: np.ndarray, steps: int) -> np.ndarray:
        later = features(X) @ np.linalg.matrix_power(K, steps)[:, 1 : 1 + k]
        return np.asarray(origin + scale * later @ rows[:k])

    return np.log(values[leading].astype(complex)) / system.time_step, predict


def kooplearn(system: systems.System) -> tuple[np.ndarray, Predict]:
    """Return kooplearn's kernel ridge regression of reduced rank."""
    from kooplearn.kernel import KernelRidge

    (X,) = system.train
    options = {"reduced_rank": True, "kernel": "rbf", "alpha": 1e-6, "eigen_solver": "arpack"}
    model = KernelRidge(system.rank + 1, **options).fit(X, X)
    values = np.asarray(model.eig(), dtype=complex)

    def predict(frames: np.ndarray, steps: int) -> np.ndarray:
        # In kooplearn 2.0.3, n_steps=1 returns the present state.
        return np.real(model.predict(frames, n_steps=steps + 1, observable=True))

    return np.log(values[np.abs(values - 1) > 1e-9]) / system.time_step, predict


METHODS: dict[str, Callable[[systems.System], tuple[np.ndarray, Predict]]] = {
    "PyDMD, exact DMD": exact_dmd,
    "PyDMD, BOPDMD": bopdmd,
    "extended DMD": extended_dmd,
    "kooplearn KernelRidge": kooplearn,
}
#: Methods that fit one trajectory only.
OF_ONE = ("PyDMD, BOPDMD", "kooplearn KernelRidge")


def row_of(case: str, noise: float, seed: int, method: str) -> dict[str, Any]:
    """Return the errors of one method."""
    system = systems.load(case, noise, seed)
    start = time.process_time()
    row: dict[str, Any] = {"case": case, "noise": noise, "seed": seed, "method": method}
    try:
        rates, predict = METHODS[method](system)
        seconds = time.process_time() - start
        errors = [systems.forecast_error(predict, system, steps) for steps in (1, 50)]
        return row | {"error": systems.rate_error(rates, system), "forecasts": errors, "seconds": seconds}
    except FAILURES as error:
        print(case, noise, method, repr(error)[:120])
        return row | {"error": float("inf"), "forecasts": [float("inf")] * 2, "seconds": time.process_time() - start}


def main() -> None:
    """Append the missing rows."""
    n_seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    path = ROOT / "results" / "deterministic" / "rivals.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {(line["case"], line["noise"], line["seed"], line["method"]) for line in lines}
    warnings.simplefilter("ignore")
    for seed in range(n_seeds):
        for case in systems.SYSTEMS:
            for noise in systems.NOISES:
                for method in METHODS:
                    single = case in systems.SERIES or method not in OF_ONE
                    if single and (case, noise, seed, method) not in done:
                        with path.open("a") as file:
                            file.write(json.dumps(row_of(case, noise, seed, method)) + "\n")


if __name__ == "__main__":
    main()
