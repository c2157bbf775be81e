"""Checks of equilibrium: false alarms on reversible, stationary systems, and power on driven and drifting ones.

A map with a fixed kernel is fitted to trajectories with a lag. `trust_` should flag systems whose correlations of
modes differ between forward and backward time (asymmetry), or whose modes drift along the runs (drift): runs that start
in one well, and wells whose tilt changes during a run. Numbers are standard errors, corrected for the number of
comparisons; "flagged" counts fits beyond the limit. The time scale is the slowest one, over the exact value where it is
known: first of a plain fit, then with `equilibrium_weights`.

    python -m experiments.checks --quick
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from experiments._paths import changing_well, on_circle, ring, wells
from experiments._runner import Row, grouped, markdown, options_of, publish, run_tasks
from experiments.coverage import double_well
from experiments.driven import rotating_ou, stuart_landau
from kdmaps import KernelDiffusionMap, problems
from kdmaps.checks import rules
from kdmaps.dynamics import equilibrium_weights

#: Largest share of false alarms.
GOAL = 0.05
N_MODES = 3


class System(NamedTuple):
    """Trajectories, and the lag of the fit."""

    kind: str  # "reversible", "driven", "drifting" (starting points) or "changing" (conditions)
    make: Callable[[int], Any]
    lag: int
    exact: float | None = None  # slowest time scale, in frames


def _problem(name: str, n: int, time_step: float, lag: int) -> System:
    return System("reversible", lambda seed: problems.load(name).trajectory(n, time_step, random_state=seed), lag)


def _runs(n_runs: int, length: float, stationary: bool, tilt: float = 0.0) -> System:
    """Return runs of a double well of 3 kT, of a length in time scales, from equilibrium or from the left well."""
    barrier = 3.0
    problem = double_well(barrier)
    if tilt:
        problem = type(problem)(
            lambda x: barrier * (x**2 - 1) ** 2 + tilt * x, lambda x: 4 * barrier * x * (x**2 - 1) + tilt, (-3.0, 3.0)
        )
    time = 1 / problem.rates(1)[0] / 0.1

    def make(seed: int) -> list[np.ndarray]:
        rng = np.random.default_rng(seed)
        start = None if stationary else [-1.0]
        return [wells(int(length * time), [barrier], rng, tilts=[tilt], start=start) for _ in range(n_runs)]

    return System("reversible" if stationary else "drifting", make, 3, time)


SYSTEMS: dict[str, System] = {
    "OU, two rates": _problem("ou2d-4", 10_000, 0.1, 1),
    "OU, short": _problem("ou2d-4", 1_000, 0.1, 1),
    "OU, three rates": _problem("ou3d", 5_000, 0.05, 4),
    "double well, 1/4 kT": _problem("dw1d", 5_000, 0.1, 2),
    "double well, tilted": _problem("dw1d-asym", 5_000, 0.1, 2),
    "triple well, line": _problem("triplewell1d", 5_000, 0.05, 5),
    "triple well, plane": _problem("triplewell2d", 5_000, 0.05, 5),
    "triple well, plane, short": _problem("triplewell2d", 1_500, 0.05, 5),
    "four wells": _problem("prinz", 5_000, 0.01, 5),
    "six dimensions": _problem("mdlike-6", 5_000, 0.05, 5),
    "double well, 3 kT": System("reversible", lambda s: wells(10_000, [3.0], s), 3),
    "double well, 3 kT, long lag": System("reversible", lambda s: wells(10_000, [3.0], s), 20),
    "rare well": System("reversible", lambda s: wells(20_000, [3.0], s, tilts=[1.5]), 3),
    "product of two wells": System("reversible", lambda s: wells(10_000, [3.0, 3.5], s), 5),
    "product of three wells": System("reversible", lambda s: wells(10_000, [3.0, 3.3, 3.6], s), 5),
    "ring of three": System("reversible", lambda s: on_circle(ring(10_000, 3, s, height=1.0)), 5),
    "ring of five": System("reversible", lambda s: on_circle(ring(10_000, 5, s)), 10),
    "50 runs in equilibrium": _runs(50, 1.0, True),
    "200 short runs in equilibrium": _runs(200, 0.25, True),
    "12 runs in equilibrium": _runs(12, 5.0, True),
    "rotation, ω = 0.5": System("driven", lambda s: rotating_ou(10_000, s, 0.5).X, 1),
    "rotation, ω = 2": System("driven", lambda s: rotating_ou(10_000, s).X, 1),
    "rotation, ω = 2, short": System("driven", lambda s: rotating_ou(1_000, s).X, 1),
    "limit cycle": System("driven", lambda s: stuart_landau(10_000, s, shear=0.0).X, 1),
    "ring of three, force": System("driven", lambda s: on_circle(ring(10_000, 3, s, height=1.0, force=3.0)), 5),
    "ring of five, weak force": System("driven", lambda s: on_circle(ring(10_000, 5, s, height=1.0, force=1.0)), 5),
    "50 runs from one well": _runs(50, 1.0, False),
    "50 runs from one well, tilted": _runs(50, 1.0, False, tilt=0.3),
    "20 runs from one well": _runs(20, 1.0, False),
    "50 longer runs from one well": _runs(50, 3.0, False),
    "200 short runs from one well": _runs(200, 0.25, False),
    "one run, tilt -1 to 1": System("changing", lambda s: changing_well(10_000, 3.0, (-1.0, 1.0), s), 3),
    "one run, tilt -0.5 to 0.5": System("changing", lambda s: changing_well(10_000, 3.0, (-0.5, 0.5), s), 3),
    "three runs, tilt -0.8 to 0.8": System(
        "changing", lambda s: [changing_well(4_000, 3.0, (-0.8, 0.8), 3 * s + k) for k in range(3)], 3
    ),
}


def run(system: str, seed: int) -> list[Row]:
    """Return the row of one fit."""
    kind, make, lag, exact = SYSTEMS[system]
    X = make(seed)
    model = KernelDiffusionMap(N_MODES, lag=lag, regularization=1e-3, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
        assert model.trust_ is not None
        tests = model.trust_.equilibrium
        times = [float(model.timescales_[0])]
        if isinstance(X, list):
            weights = equilibrium_weights(model, X)
            times.append(float(model.fit(X, sample_weight=weights).timescales_[0]))
    assert tests is not None
    drift = float(np.fmax.reduce(tests.drift))
    return [
        {
            "system": system,
            "kind": kind,
            "seed": seed,
            "asymmetry": float(np.max(tests.asymmetry)),
            "drift": None if np.isnan(drift) else drift,
            "times": None if exact is None else [t / exact for t in times],
        }
    ]


def _drifts(row: Row) -> bool:
    return row["drift"] is not None and row["drift"] > rules.DRIFT.limit


def _flagged(row: Row) -> bool:
    return row["asymmetry"] > rules.ASYMMETRY.limit or _drifts(row)


def table(rows: list[Row]) -> str:
    """Return a Markdown table with one line per system."""
    lines = []
    for (system, kind), mine in grouped(rows, "system", "kind").items():
        drifts = [row["drift"] for row in mine if row["drift"] is not None]
        times = "–"
        if mine[0]["times"] is not None:
            means = np.array([row["times"] for row in mine])
            times = ", ".join(f"{m:.2f} ± {s:.2f}" for m, s in zip(means.mean(axis=0), means.std(axis=0), strict=True))
        lines.append(
            [
                system,
                kind,
                f"{np.median([row['asymmetry'] for row in mine]):.1f}",
                f"{np.median(drifts):.1f}" if drifts else "–",
                f"{sum(map(_flagged, mine))} of {len(mine)}",
                times,
            ]
        )
    header = ["system", "kind", "asymmetry, median", "drift, median", "flagged", "time scale / exact: plain, weighted"]
    return "\n".join([*_totals(rows), "", markdown(header, lines)])


def _totals(rows: list[Row]) -> list[str]:
    """Return sentences on false alarms and power."""
    sound = [row for row in rows if row["kind"] == "reversible"]
    found = [f"Goal: false alarms of at most {GOAL:.0%} of the reversible, stationary fits."]
    if sound:
        alarms = sum(map(_flagged, sound))
        found.append(
            f"False alarms: {alarms} of {len(sound)} ({alarms / len(sound):.1%}); asymmetry "
            f"{sum(row['asymmetry'] > rules.ASYMMETRY.limit for row in sound)}, drift {sum(map(_drifts, sound))}."
        )
    for kind in ("driven", "drifting", "changing"):
        mine = [row for row in rows if row["kind"] == kind]
        if mine:
            found.append(f"Power, {kind}: {sum(map(_flagged, mine))} of {len(mine)}.")
    return found


def figure(rows: list[Row]) -> Figure:
    """Plot the asymmetry and the drift of every fit."""
    fig = Figure(figsize=(7, 4), layout="constrained")
    ax = fig.subplots()
    for k, ((kind,), mine) in enumerate(grouped(rows, "kind").items()):
        ax.plot([r["asymmetry"] for r in mine], [r["drift"] or 0 for r in mine], "o", ms=4, color=f"C{k}", label=kind)
    ax.axvline(rules.ASYMMETRY.limit, color="0.5", lw=0.8)
    ax.axhline(rules.DRIFT.limit, color="0.5", lw=0.8)
    ax.set(xlabel="asymmetry (standard errors)", ylabel="drift (standard errors; 0: not tested)")
    ax.legend(frameon=False, fontsize="small")
    return fig


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment from the command line."""
    parser = options_of("checks", __doc__, n_seeds=10, quick="one fit of every kind", first_seed=700)
    options = parser.parse_args(arguments)
    quick = ["OU, short", "rotation, ω = 2, short", "20 runs from one well"]
    systems, n_seeds = (quick, 1) if options.quick else (list(SYSTEMS), options.seeds)
    seeds = range(options.first_seed, options.first_seed + n_seeds)
    tasks = [{"system": system, "seed": seed} for system in systems for seed in seeds]
    publish("checks", run_tasks(run, tasks, options.out / "rows.jsonl", options.jobs), table, figure, options.out)


if __name__ == "__main__":
    main()
