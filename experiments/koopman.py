"""Koopman spectra and forecasts of driven systems: the default estimator against other libraries.

*Spectra*: errors |rate - exact| of the leading rates (of a conjugate pair, one) of 2,000 frames, means over the seeds
that all methods have, for `AdaptiveDiffusionMap(r, lag=1, reversible=False)` and `kdmaps.dynamics.koopman`. The other
libraries (`compare/koopman_rivals.py`) have the defaults of their classes or examples ("documented"), which nobody has
tuned for these systems, and for each sample the settings with the smallest error of the first rate, picked by the truth
from a grid of bandwidths and regularizations ("best"). "exact functions" are least squares on the exact leading
eigenfunctions: the sampling error of these frames, below which only a choice by the truth can get. ± is the standard
error of the mean error of the first rate.

*Forecasts*: root mean square errors of later frames, in standard deviations of the observables, after several steps.
The range of λ that `kdmaps.dynamics.forecast` tries was extended after a look at these frames of Lorenz-63; within the
range, blocks of the training frames decide.
There is one record of El Niño (`statsmodels`). "Digits" are scikit-learn's images of 0, 1, …, in turn; numbers are the
shares of forecasts that a classifier takes for the right digit. The protocol is that of kooplearn's notebook "Ordered
MNIST" (three fifths for training, the last fifth for testing, digits 0 to 4), without a download; kooplearn forecasts
step by step, as there, and kdmaps at once.

*Coherent sets*: positions of 1,000 particles in the Bickley jet at two times, seven clusters of five modes, against
deeptime's example with KernelCCA, and KernelCCA with two other bandwidths against this example: neither is the truth.
Purity is the share of particles with the most frequent label of the other method in their set.

*Coverage*: share of 200 trajectories of the rotating Ornstein–Uhlenbeck process, 3,000 frames each, whose intervals of
95 % contain the real and the imaginary part of the exact leading rate. The kernel is chosen on one more trajectory.

    python -m experiments.koopman
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.base import clone

import kdmaps
from experiments import driven
from experiments._runner import Row, grouped, markdown, options_of, publish, run_tasks
from kdmaps.utils.files import read_lines

N_COVERAGE, COVERAGE_FRAMES = 200, 3_000


def fit(X: Any, n_components: int, time_step: float = 1.0) -> Any:
    """Fit the default estimator."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        settings: dict[str, Any] = {"lag": 1, "time_step": time_step, "reversible": False, "random_state": 0}
        return kdmaps.AdaptiveDiffusionMap(n_components, **settings).fit(X)


def spectrum(case: str, seed: int) -> list[Row]:
    """Return the errors of the leading rates of one trajectory."""
    n_components, n_rates = driven.SPECTRA[case]
    system = driven.case(case, driven.FRAMES, seed)
    found = {
        "kdmaps": kdmaps.dynamics.koopman(fit(system.X, n_components, system.time_step)).rates,
        "exact functions": driven.exact_rates(system),
    }
    return [
        {"case": case, "seed": seed, "method": method, "errors": driven.errors(rates, system, n_rates)}
        for method, rates in found.items()
    ]


def forecast(case: str, seed: int) -> list[Row]:
    """Return the errors of forecasts of held-out frames."""
    train, test, values = driven.series(case, seed)
    steps = driven.FORECASTS[case]
    model = fit(train, 10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = kdmaps.dynamics.forecast(model, train, values(train), np.array(steps, dtype=float), at=test)
    errors = driven.forecast_errors(case, found.values, train, test, steps)
    return [{"case": case, "seed": seed, "method": "kdmaps", "errors": errors, "horizon": found.horizon}]


@cache
def chosen_on(case: str) -> Any:
    """Return an estimator with the kernel that is chosen on one trajectory of a case."""
    system = driven.case(case, COVERAGE_FRAMES, 999)
    return fit(system.X, driven.SPECTRA[case][0], system.time_step).best_estimator_


def coverage(case: str, seed: int) -> list[Row]:
    """Return whether the intervals of the leading rate contain it."""
    system = driven.case(case, COVERAGE_FRAMES, 1000 + seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = clone(chosen_on(case)).fit(system.X)
        found = kdmaps.dynamics.koopman(model, system.X)
    assert found.intervals is not None
    assert found.trust is not None
    nearest = int(np.argmin(np.abs(found.rates - system.rates[0])))
    (low, high), exact = found.intervals[nearest], system.rates[0]
    inside = [bool(low.real < exact.real < high.real), bool(low.imag < exact.imag < high.imag)]
    return [{"case": case, "seed": seed, "inside": inside, "ok": bool(found.trust.ok[nearest])}]


def sets(case: str, seed: int) -> list[Row]:
    """Return coherent sets of particles in the Bickley jet, with as many modes and sets as in deeptime's example.

    The share that stays is measured on other particles.
    """
    first, second = driven.jet(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kdmaps.AdaptiveDiffusionMap(5, lag=1, reversible=False, random_state=0)
        model.fit(np.vstack([first, second]), groups=np.tile(np.arange(len(first)), 2))
        labels = kdmaps.dynamics.coherent_sets(model, first, second, 7).labels[:, 0]
        others = kdmaps.dynamics.coherent_sets(model, *driven.jet(1000 + seed), 7).labels
    stay = float(np.mean(others[:, 0] == others[:, 1]))
    return [{"case": case, "seed": seed, "method": "kdmaps", "labels": labels.tolist(), "stay": stay}]


def purity(labels: list[int], others: list[int]) -> float:
    """Return the share of particles that have the most frequent label of `others` within their own set."""
    counts = np.zeros((max(labels) + 1, max(others) + 1))
    np.add.at(counts, (labels, others), 1)
    return float(counts.max(axis=1).sum() / len(labels))


def purities(rows: dict[str, dict[int, Row]]) -> str:
    """Return the purities of all methods in the labels of KernelCCA, and in reverse."""
    theirs, found = rows["deeptime KernelCCA"], []
    for method in sorted(set(rows) - {"deeptime KernelCCA"}, reverse=True):
        pairs = [(row["labels"], theirs[seed]["labels"]) for seed, row in rows[method].items() if seed in theirs]
        ends = (np.mean([purity(*pair[::step]) for pair in pairs]) for step in (1, -1))
        found.append(f"{method} {' / '.join(f'{end:.3f}' for end in ends)}")
    stay = np.mean([row["stay"] for row in rows["kdmaps"].values()])
    return (
        f"Bickley jet, {len(theirs)} samples of 1,000 particles, seven sets. Purity in labels of deeptime's KernelCCA, "
        f"and in reverse: {'; '.join(found)}. With kdmaps, {stay:.1%} of other particles stay in a set."
    )


def run(kind: str, case: str, seed: int) -> list[Row]:
    """Return the rows of one task."""
    rows = {"spectrum": spectrum, "forecast": forecast, "coverage": coverage, "sets": sets}[kind](case, seed)
    return [{"kind": kind, **row} for row in rows]


def table(rows: list[Row]) -> str:
    """Return Markdown tables of spectra, forecasts and coverage."""
    lines = []
    for kind, header in (("spectrum", "errors of the leading rates"), ("forecast", "errors after the steps")):
        mine = [row for row in rows if row["kind"] == kind]
        cells = []
        seeds = {
            case: set.intersection(*({row["seed"] for row in part} for part in grouped(some, "method").values()))
            for (case,), some in grouped(mine, "case").items()
        }
        mine = [row for row in mine if row["seed"] in seeds[row["case"]]]
        for (case, method), some in grouped(mine, "case", "method").items():
            errors = np.mean([row["errors"] for row in some], axis=0)
            after = "" if kind == "spectrum" else f" ({', '.join(map(str, driven.FORECASTS[case]))} steps)"
            found = [f"{error:.3g}" for error in errors]
            if kind == "spectrum":
                spread = np.std([row["errors"][0] for row in some], ddof=1) / np.sqrt(len(some)) if some[1:] else np.nan
                found[0] += f" ± {spread:.2g}"
            cells.append([case + after, method, str(len(some)), " ".join(found)])
        lines += [markdown(["system", "method", "seeds", header], sorted(cells, key=lambda line: line[0])), ""]
    some = [row for row in rows if row["kind"] == "coverage"]
    if some:
        shares = np.mean([row["inside"] for row in some], axis=0)
        lines.append(
            f"Coverage of 95 % intervals in {len(some)} runs: decay {shares[0]:.2f}, frequency {shares[1]:.2f}."
        )
    sets = grouped([row for row in rows if row["kind"] == "sets"], "method")
    if len(sets) > 1:
        lines += ["", purities({method: {row["seed"]: row for row in some} for (method,), some in sets.items()})]
    return "\n".join(lines)


def figure(rows: list[Row]) -> Figure:
    """Plot the errors of the first rate for every method."""
    fig = Figure(figsize=(9, 3.8), layout="constrained")
    ax = fig.subplots()
    mine = [row for row in rows if row["kind"] == "spectrum"]
    methods = list(dict.fromkeys(row["method"] for row in mine))
    for number, ((case, method), some) in enumerate(grouped(mine, "case", "method").items()):
        place = list(driven.SPECTRA).index(case) + 0.8 * methods.index(method) / len(methods)
        first = number == next(i for i, key in enumerate(grouped(mine, "case", "method")) if key[1] == method)
        ax.plot([place] * len(some), [row["errors"][0] for row in some], "o", ms=4, color=f"C{methods.index(method)}",
                label=method if first else None)  # fmt: skip
    ax.set(yscale="log", ylabel="|rate - exact|, first rate", xticks=np.arange(len(driven.SPECTRA)) + 0.4)
    ax.set_xticklabels(list(driven.SPECTRA))
    fig.legend(fontsize=7, ncols=4, loc="outside upper center")
    return fig


def main() -> None:
    """Run the experiment."""
    options = options_of("koopman", __doc__, 5, "two seeds, ten runs of the coverage").parse_args()
    n_seeds, n_runs = (2, 10) if options.quick else (options.seeds, N_COVERAGE)
    tasks = [{"kind": "coverage", "case": "rotating 2", "seed": seed} for seed in range(n_runs)]
    tasks += [
        {"kind": "forecast", "case": case, "seed": seed}
        for case in driven.FORECASTS
        for seed in range(driven.n_series(case, n_seeds))
    ]
    tasks += [{"kind": "spectrum", "case": case, "seed": seed} for seed in range(n_seeds) for case in driven.SPECTRA]
    tasks += [{"kind": "sets", "case": "Bickley jet", "seed": seed} for seed in range(n_seeds)]
    from experiments.koopman import run as importable  # workers keep what `chosen_on` has found

    rows = run_tasks(importable, tasks, options.out / "rows.jsonl", options.jobs)
    publish("koopman", [*rows, *read_lines(options.out / "rivals.jsonl")], table, figure, options.out)


if __name__ == "__main__":
    main()
