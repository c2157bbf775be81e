"""Deterministic systems: rates and forecasts of the default estimator against other libraries.

Fifteen systems without noise in their dynamics, frames without noise and with noise of the measurement of 0.001 and 0.2
standard deviations; the test frames have none. *rate*: largest distance of an exact rate to those found. *flagged*: a
rate that is wrong by more than 5 % of its modulus fails a test of `koopman`. *1 step*, *50 steps* (or the longest run):
root mean square errors of forecasts of test frames, in standard deviations. Seconds are CPU time of fit and spectrum on
a busy machine, and only tell orders of magnitude.

kdmaps has its defaults and n_components = 4 (6 for the wave). Other libraries (`compare/deterministic_rivals.py`) are
told the exact number of eigenvalues; noisy frames follow the same seeds.

    python -m experiments.deterministic
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import kdmaps
from experiments import deterministic_systems as systems
from experiments._runner import Row, grouped, markdown, options_of, publish, run_tasks
from kdmaps.utils.files import read_lines

#: Rates that differ by more, relative to their modulus, are wrong.
WRONG = 0.05


def run(case: str, noise: float, seed: int) -> list[Row]:
    """Return errors of one system."""
    system = systems.load(case, noise, seed)
    start = time.process_time()
    settings: dict[str, Any] = {"lag": 1, "time_step": system.time_step, "reversible": False, "random_state": 0}
    with warnings.catch_warnings(action="ignore"):
        frames = system.train if len(system.train) > 1 else system.train[0]
        model = kdmaps.AdaptiveDiffusionMap(max(4, system.rank), **settings).fit(frames)
        k = kdmaps.dynamics.koopman(model)
    seconds = time.process_time() - start

    def predict(X: np.ndarray, steps: int) -> np.ndarray:
        with warnings.catch_warnings(action="ignore"):
            return np.asarray(model.predict(X, steps))

    forecasts = [systems.forecast_error(predict, system, steps) for steps in (1, 50)]
    row = {"case": case, "noise": noise, "seed": seed, "method": "kdmaps", "law": model.propagator_.law.value}
    row |= {"error": systems.rate_error(k.rates, system), "forecasts": forecasts, "seconds": seconds}
    return [row | {"unflagged": unflagged(k, model, system)}]


def unflagged(k: Any, model: Any, system: systems.System) -> int:
    """Return the number of oscillations among as many as exist that are wrong and pass all tests.

    Products of exact rates are right, too.
    """
    if not system.rates:
        return 0
    exact = list(system.rates) + [rate.conjugate() for rate in map(complex, system.rates)]
    right = exact + [a + b for a in exact for b in exact] + [a + b + c for a in exact for b in exact for c in exact]
    ok = k.trust.ok if k.trust is not None else np.ones(len(k.rates), dtype=bool)
    if k.trust is None:  # without X, stochastic systems have the tests of the search
        agreement = getattr(model.trust_, "eigenfunctions", None)
        ok = ok if agreement is None else np.resize(np.asarray(agreement) >= 0.8, len(k.rates))
    count = 0
    for rate, passed in zip(k.rates[: system.rank], ok[: system.rank], strict=True):
        nearest = min(right, key=lambda one: abs(one - rate))
        count += bool(passed and abs(nearest - rate) > WRONG * max(abs(nearest), 0.05))
    return count


def table(rows: list[Row]) -> str:
    """Return a Markdown table of medians over the seeds."""
    lines = []
    for (case, noise, method), some in grouped(rows, "case", "noise", "method").items():
        cells = [case, f"{noise:g}", method, str(len(some)), some[0].get("law", "")]
        numbers = [[row["error"] for row in some], *np.transpose([row["forecasts"] for row in some])]
        cells += ["" if np.isnan(part).all() else f"{np.nanmedian(part):.1e}" for part in numbers]
        cells += [f"{np.median([row['seconds'] for row in some]):.1f}"]
        cells += [str(sum(row["unflagged"] for row in some)) if "unflagged" in some[0] else ""]
        lines.append(cells)
    header = ["system", "noise", "method", "seeds", "law", "rate", "1 step", "50 steps", "seconds", "unflagged"]
    order = list(systems.SYSTEMS)
    lines.sort(key=lambda cells: (order.index(cells[0]), float(cells[1]), cells[2] != "kdmaps", cells[2]))
    return markdown(header, lines)


def figure(rows: list[Row]) -> Figure:
    """Plot the errors of the rates."""
    fig = Figure(figsize=(9, 4.5), layout="constrained")
    ax = fig.subplots()
    methods = list(dict.fromkeys(row["method"] for row in rows))
    cases = [case for case in systems.SYSTEMS if any(row["case"] == case and row["error"] > 0 for row in rows)]
    for number, method in enumerate(methods):
        mine = [row for row in rows if row["method"] == method and row["case"] in cases and row["error"] < np.inf]
        places = [cases.index(row["case"]) + 0.25 * systems.NOISES.index(row["noise"]) + 0.04 * number for row in mine]
        ax.plot(places, [max(row["error"], 1e-16) for row in mine], "o", ms=3, color=f"C{number}", label=method)
    ax.set(yscale="log", ylabel="error of the rates; noise 0, 0.001, 0.2", xticks=np.arange(len(cases)) + 0.35)
    ax.set_xticklabels(cases, rotation=30, ha="right")
    fig.legend(fontsize=7, ncols=5, loc="outside upper center")
    return fig


def main() -> None:
    """Run the experiment."""
    options = options_of("deterministic", __doc__, 2, "one seed").parse_args()
    n_seeds = 1 if options.quick else options.seeds
    tasks = [
        {"case": case, "noise": noise, "seed": seed}
        for seed in range(n_seeds)
        for case in systems.SYSTEMS
        for noise in systems.NOISES
    ]
    rows = run_tasks(run, tasks, options.out / "rows.jsonl", options.jobs)
    publish("deterministic", [*rows, *read_lines(options.out / "rivals.jsonl")], table, figure, options.out)


if __name__ == "__main__":
    main()
