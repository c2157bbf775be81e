"""Coverage: how often 95 % intervals contain the exact rates, and whether wrong rates are flagged.

The default estimator is fitted to many samples of each system, with intervals of the block bootstrap (100 resamples).
A fit is flagged if `trust_` marks one of its modes as unreliable. "covered" is the share of the exact rates inside
their intervals, over the fits that are not flagged; "covered, all" is over all fits, whose intervals are open if the
samples do not bound a rate. A wrong fit has a rate that is off by more than a factor of 2; a false alarm is a flagged
fit whose rates are all right within 30 %. The width is the median of the upper over the lower end, of fits that are not
flagged.

A second table shows the sampling error alone: the quotients energy/variance of the *exact* modes on the samples of each
fit, over the exact rates. Their logarithm has the standard error √(Var(|∇φ|²/rate - φ²)/n).

    python -m experiments.coverage --quick
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from experiments._fits import at_least, at_most, fit_default
from experiments._runner import Row, grouped, markdown, options_of, publish, run_tasks
from kdmaps import problems, uncertainty
from kdmaps.exceptions import UnreliableModesWarning
from kdmaps.problems import OrnsteinUhlenbeck, Problem
from kdmaps.problems.langevin import Langevin1D
from kdmaps.selection.folds import BlockedKFold

N_MODES, RESAMPLES = 2, 100
#: Samples from which the standard error of the exact modes is computed, to 1 %; and step of their differences.
MANY, STEP = 100_000, 1e-4
GOAL, WRONG, RIGHT = 0.90, 2.0, 1.3
#: Shares of fewer fits that are not flagged are too uncertain for a goal.
FEWEST = 5


def double_well(barrier: float) -> Langevin1D:
    """Return the double well V = barrier (x² - 1)², in units of kT."""
    return Langevin1D(lambda x: barrier * (x**2 - 1) ** 2, lambda x: 4 * barrier * x * (x**2 - 1), (-3.0, 3.0))


class Draw(NamedTuple):
    """Samples, and further arguments of a fit."""

    problem: Problem
    X: np.ndarray
    weight: np.ndarray | None = None
    groups: np.ndarray | None = None
    settings: dict[str, Any] = {}  # noqa: RUF012 (never changed)


def _independent(make: Callable[[], Problem], n: int) -> Callable[[int], Draw]:
    def draw(seed: int) -> Draw:
        problem = make()
        return Draw(problem, problem.sample(n, random_state=seed))

    return draw


def _correlated(seed: int) -> Draw:
    """Draw a trajectory of 4,000 frames that are 0.05 apart, from steps of a tenth of that: 40 correlation times."""
    problem = double_well(2.0)
    frames = problem.simulate(40_000, 0.005, random_state=seed)[0]
    return Draw(problem, frames[::10], settings={"cv": BlockedKFold(5)})


def _interleaved(seed: int) -> Draw:
    """Draw 20 walkers of 200 frames that are 0.05 apart, written frame by frame."""
    problem = double_well(2.0)
    frames = problem.simulate(2_000, 0.005, n_trajectories=20, random_state=seed)[:, ::10]
    groups = np.tile(np.arange(len(frames)), frames.shape[1])
    return Draw(problem, frames.swapaxes(0, 1).reshape(-1, 1), groups=groups)


def _biased(seed: int) -> Draw:
    """Draw samples of a barrier of 1 kT with weights for one of 4 kT."""
    X = double_well(1.0).sample(1000, random_state=seed)
    weight = np.exp(-3 * (X[:, 0] ** 2 - 1) ** 2)
    return Draw(double_well(4.0), X, weight / weight.mean())


CASES: dict[str, Callable[[int], Draw]] = {
    "Ornstein–Uhlenbeck": _independent(lambda: OrnsteinUhlenbeck((1.0,)), 500),
    "double well, 2 kT": _independent(lambda: double_well(2.0), 500),
    "double well, 4 kT": _independent(lambda: double_well(4.0), 500),
    "double well, 6 kT": _independent(lambda: double_well(6.0), 500),
    "triple well, plane": _independent(lambda: problems.load("triplewell2d"), 500),
    "one trajectory": _correlated,
    "interleaved walkers": _interleaved,
    "biased, with weights": _biased,
    "50 dimensions": _independent(lambda: problems.load("triplewell2d+48x0.25"), 1000),
    "noise, 30 columns": _independent(lambda: OrnsteinUhlenbeck((1.0,) * 30), 300),
    "noise, 100 columns": _independent(lambda: OrnsteinUhlenbeck((1.0,) * 100), 1000),
    "noise, 300 columns": _independent(lambda: OrnsteinUhlenbeck((1.0,) * 300), 1000),
}
#: Cases in one dimension with independent samples, for which the exact modes are evaluated, too.
EXACT = list(CASES)[:4]


def run(case: str, seed: int, **settings: Any) -> list[Row]:
    """Return the row of one fit; `settings` are further arguments of the estimator."""
    problem, X, weight, groups, own = CASES[case](seed)
    model, row = fit_default(X, N_MODES, seed, weight, groups=groups, **own, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreliableModesWarning)
        found = uncertainty.bootstrap(model, X, sample_weight=weight, groups=groups, n_resamples=RESAMPLES)
    exact, trust = problem.rates(N_MODES), model.trust_
    assert trust is not None
    # JSON cannot store infinity: an open end is None.
    ends = [[float(end) if 0 < end < np.inf else None for end in pair] for pair in found.rate_intervals]
    inside = (found.rate_intervals[:, 0] <= exact) & (exact <= found.rate_intervals[:, 1])
    return [
        {
            "case": case,
            "seed": seed,
            "n": len(X),
            "ratios": (model.rates_ / exact).tolist(),
            "ends": ends,
            "inside": inside.tolist(),
            "ok": trust.ok.tolist(),
            "reasons": [list(names) for names in trust.reasons],
            **row,
        }
    ]


def exact_modes(case: str, seed: int) -> list[Row]:
    """Return the quotients of the exact modes on the samples of one fit, over the rates; seed -1: their errors."""
    problem, X, *_ = CASES[case](max(seed, 0))
    n = len(X)
    if seed < 0:
        X = problem.sample(MANY, random_state=0)
    values, rates = problem.eigenfunctions(X, N_MODES), problem.rates(N_MODES)
    steps = STEP * np.eye(X.shape[1])
    ahead, behind = (np.array([problem.eigenfunctions(X + s * e, N_MODES) for e in steps]) for s in (1, -1))
    energies = np.sum(((ahead - behind) / (2 * STEP)) ** 2, axis=0)
    if seed < 0:
        found = (energies / rates - values**2).std(axis=0) / np.sqrt(n)
    else:
        found = energies.mean(axis=0) / values.var(axis=0) / rates
    return [{"case": case, "seed": seed, "errors" if seed < 0 else "ratios": found.tolist()}]


def exact_table(rows: list[Row], exact: list[Row]) -> str:
    """Return a Markdown table of how far the rates of exact modes and of fits vary from sample to sample."""
    silent = {(row["case"], row["seed"]) for row in rows if all(row["ok"])}
    lines = []
    for case in dict.fromkeys(row["case"] for row in exact):
        errors = next(row["errors"] for row in exact if row["case"] == case and row["seed"] < 0)
        mine = [row for row in exact if row["case"] == case and row["seed"] >= 0]
        own, kept = np.array([r["ratios"] for r in mine]), [r["ratios"][0] for r in mine if (case, r["seed"]) in silent]
        fits = np.array([row["ratios"] for row in rows if row["case"] == case])
        cells = [f"{errors[k]:.3f}, {_spread(own[:, k])}, {_spread(fits[:, k])}" for k in range(N_MODES)]
        wrong = np.abs(np.log(own)).max(axis=1) > np.log(WRONG)
        lines.append([case, *cells, f"{wrong.sum()} of {len(own)}", f"{np.exp(np.mean(np.log(kept))):.2f}"])
    head = (
        "Standard deviation of log rate: expected of the exact modes, of them on these samples, of all fits. Then, how "
        "often an exact mode is wrong on these samples; and the mean of exact mode 1 over its rate (in log), on the "
        "samples whose fits are not flagged."
    )
    columns = ["case", "rate 1", "rate 2", "exact modes wrong", "exact mode 1, not flagged"]
    return "\n".join([head, "", markdown(columns, lines)])


def _spread(ratios: np.ndarray) -> str:
    return f"{np.log(ratios).std():.3f}"


def _error(row: Row) -> float:
    """Return the largest factor by which a rate is off."""
    return float(np.exp(np.abs(np.log(row["ratios"])).max()))


def _width(rows: list[Row]) -> float:
    widths = [high / low for row in rows for low, high in row["ends"] if low is not None and high is not None]
    return float(np.median(widths)) if widths else np.nan


def table(rows: list[Row]) -> str:
    """Return a Markdown table with one line per case."""
    lines = []
    for (case,), mine in grouped(rows, "case").items():
        silent = [row for row in mine if all(row["ok"])]
        wrong, right = ([r for r in mine if _error(r) > WRONG], [r for r in mine if _error(r) <= RIGHT])
        goal = GOAL if len(silent) >= FEWEST else None
        covered = [
            at_least(float(np.mean([row["inside"][k] for row in silent])), goal, ".2f") if silent else "–"
            for k in range(N_MODES)
        ]
        lines.append(
            [
                case,
                f"{mine[0]['n']:,}",
                str(len(mine)),
                f"{len(mine) - len(silent)}",
                *covered,
                f"{np.mean([row['inside'] for row in mine]):.2f}",
                str(len(wrong)),
                at_most(sum(all(row["ok"]) for row in wrong), 0, "d"),
                f"{sum(not all(row['ok']) for row in right)} of {len(right)}",
                f"{_width(silent):.2f}" if silent else "–",
                f"{np.median([row['seconds'] for row in mine]):.1f}",
            ]
        )
    header = ["case", "samples", "fits", "flagged", "covered, rate 1", "covered, rate 2", "covered, all",
              "wrong", "wrong, not flagged", "false alarms", "width", "seconds"]  # fmt: skip
    goals = (
        f"Goals: coverage of at least {GOAL:g} where {FEWEST} fits or more are not flagged; no wrong fit that is not "
        "flagged."
    )
    return "\n".join([goals, "", markdown(header, lines), "", *_totals(rows)])


def _totals(rows: list[Row]) -> list[str]:
    """Return a sentence on all cases, and why fits were flagged."""
    wrong, right = ([r for r in rows if _error(r) > WRONG], [r for r in rows if _error(r) <= RIGHT])
    missed, alarms = sum(all(r["ok"]) for r in wrong), sum(not all(r["ok"]) for r in right)
    names = [name for row in rows for name in {name for mode in row["reasons"] for name in mode}]
    counts = sorted(((names.count(name), name) for name in set(names)), reverse=True)
    return [
        f"All cases: {missed} of {len(wrong)} wrong fits were not flagged, {alarms} of {len(right)} right ones were.",
        "",
        "Fits flagged by each check: " + ", ".join(f"{name} {count}" for count, name in counts) + ".",
    ]


def figure(rows: list[Row]) -> Figure:
    """Plot the rates of all fits over the exact ones; flagged fits are hollow."""
    cases = list(dict.fromkeys(row["case"] for row in rows))
    fig = Figure(figsize=(8, 4.2), layout="constrained")
    ax = fig.subplots()
    ax.axhspan(1 / WRONG, WRONG, color="0.93", zorder=0)
    ax.axhline(1, color="0.6", lw=0.8)
    for row in rows:
        place = cases.index(row["case"]) + 0.5 * ((row["seed"] * 0.618) % 1 - 0.5)
        for k, ratio in enumerate(row["ratios"]):
            ax.plot(place, ratio, "os"[k], ms=4, color=f"C{k}", mfc=f"C{k}" if all(row["ok"]) else "none")
    for k in range(N_MODES):
        ax.plot([], [], "os"[k], color=f"C{k}", label=f"rate {k + 1}")
    ax.plot([], [], "o", color="0.4", mfc="none", label="flagged")
    ax.set(yscale="log", ylabel="rate / exact rate", title="Default fits; grey: within a factor of 2")
    ax.set_xticks(range(len(cases)), cases, rotation=30, ha="right")
    ax.legend(frameon=False, fontsize="small")
    return fig


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment from the command line."""
    parser = options_of("coverage", __doc__, n_seeds=50, quick="one fit of the first two cases", first_seed=5000)
    options = parser.parse_args(arguments)
    cases, n_seeds = (list(CASES)[:2], 1) if options.quick else (list(CASES), options.seeds)
    seeds = range(options.first_seed, options.first_seed + n_seeds)
    tasks = [{"case": case, "seed": seed} for seed in seeds for case in cases]
    rows = run_tasks(run, tasks, options.out / "rows.jsonl", options.jobs)
    tasks = [{"case": case, "seed": seed} for case in cases if case in EXACT for seed in (-1, *seeds)]
    exact = run_tasks(exact_modes, tasks, options.out / "exact.jsonl", options.jobs)
    rows.sort(key=lambda row: list(CASES).index(row["case"]))
    publish("coverage", rows, lambda rows: f"{table(rows)}\n\n{exact_table(rows, exact)}", figure, options.out)


if __name__ == "__main__":
    main()
