"""Real clocks: rates in real time from weighted samples of a biased law and short unbiased runs ("bursts").

For each system, 5,000 samples with weights are fitted with a constant diffusion tensor, which comes from 50 runs of
five frames. This fit chooses where to start bursts of 50 frames; then the samples are fitted again with 200 and with
1,000 of these bursts. Errors are |log(rate/exact rate)|; exact rates and fluxes come from finite volumes. A fit is
flagged if a check of its clock or of its modes fails. "Covered" is the share of exact values inside the 95 % intervals
of the clock.

The maps have a search without refinement, and in two columns without rounds of the metric, for speed.

    python -m experiments.clocks --quick
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import kdmaps
from experiments._clock_systems import SYSTEMS, System
from experiments._fits import at_least, at_most
from experiments._runner import Row, grouped, markdown, options_of, publish, run_tasks
from kdmaps.clocks.weights import Starts

N_SAMPLES, N_MODES = 5_000, 2
BURSTS = (200, 1_000)
#: Runs for the first tensor, and their frames.
FIRST_RUNS, FIRST_FRAMES = 50, 5
#: Systems of which the committor is fitted, too.
COMMITTORS = ("one D(x)", "two D(x)")
#: Largest median errors of rates and fluxes, of noisy frames, and smallest coverages of rates and fluxes.
MOST_OFF, MOST_OFF_FLUX, MOST_OFF_NOISY = 0.15, 0.13, 0.3
LEAST_COVERED, LEAST_COVERED_FLUX = 0.9, 0.85
WRONG = 2.0
#: Coverages of fewer fits are too uncertain for a goal.
FEWEST = 10


def run(system: str, seed: int) -> list[Row]:
    """Return one row for each number of bursts."""
    chosen = SYSTEMS[system]
    exact = chosen.exact()
    rng = np.random.default_rng([seed, list(SYSTEMS).index(system)])
    true, weight = chosen.samples(rng, N_SAMPLES)
    X = observed(chosen, rng, true)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = first_fit(chosen, rng, true, X, weight, seed)
        starts = kdmaps.dynamics.where_to_start(first, X, max(BURSTS), sample_weight=weight, random_state=seed)
        bursts = np.swapaxes(observed(chosen, rng, chosen.bursts(rng, true[starts.rows])), 0, 1)
        bursts[:, 0] = X[starts.rows]
        rows = []
        for n in BURSTS:
            some = Starts(starts.rows[:n], starts.weights[:n], starts.probabilities)
            begin = time.process_time()
            model = estimator(chosen, seed, time_step=chosen.time_step)
            model.fit(X, sample_weight=weight, bursts=bursts[:n], burst_start=some)
            row = {"system": system, "seed": seed, "bursts": n, "seconds": time.process_time() - begin}
            row |= of_modes(model, exact.rates)
            if system in COMMITTORS and exact.flux is not None:
                committor = kdmaps.AdaptiveCommittor(time_step=chosen.time_step, random_state=seed)
                labels = chosen.sets(true)  # type: ignore[misc]
                committor.fit(X, labels, sample_weight=weight, bursts=bursts[:n], burst_start=some)
                row |= of_committor(committor, exact.flux)
            rows.append(row)
    return rows


def observed(system: System, rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    """Add errors of measurement."""
    return X + system.noise * rng.standard_normal(X.shape)


def estimator(system: System, seed: int, **settings: Any) -> kdmaps.AdaptiveDiffusionMap:
    """Return the unfitted map."""
    same: dict[str, Any] = {"metric_rounds": system.metric_rounds, "refine": False, "n_jobs": 1, "random_state": seed}
    return kdmaps.AdaptiveDiffusionMap(N_MODES, **same, **settings)


def first_fit(
    system: System, rng: np.random.Generator, true: np.ndarray, X: np.ndarray, weight: np.ndarray, seed: int
) -> kdmaps.AdaptiveDiffusionMap:
    """Fit samples with the mean diffusion tensor of a few very short runs, to choose where to start bursts."""
    rows = rng.choice(N_SAMPLES, FIRST_RUNS, replace=False)
    short = observed(system, rng, system.bursts(rng, true[rows])[:FIRST_FRAMES])
    shifts = (short[-1] - short[0]) / np.sqrt(2 * (FIRST_FRAMES - 1) * system.time_step)
    return estimator(system, seed, diffusion=shifts.T @ shifts / FIRST_RUNS).fit(X, sample_weight=weight)


def of_modes(model: kdmaps.AdaptiveDiffusionMap, exact: np.ndarray) -> Row:
    """Return ratios to exact rates, whether intervals contain these, and what is flagged."""
    clock, trust = model.clock_, model.trust_
    assert clock is not None
    assert trust is not None
    low, high = clock.intervals.T
    return {
        "ratios": (model.rates_ / exact).tolist(),
        "inside": ((low < exact) & (exact < high)).tolist(),
        "widths": (high / low).tolist(),
        "chosen": clock.chosen,
        "factors": clock.factors.tolist(),
        "energies": (clock.energies / exact).tolist(),
        "failed": [check.code for check in clock.checks if not check.passed],
        "trusted": bool(np.all(trust.ok)),
    }


def of_committor(model: kdmaps.AdaptiveCommittor, exact: float) -> Row:
    """Return the ratio to the exact flux, whether the interval contains it, and what is flagged."""
    low, high = model.flux_interval_
    assert model.clock_ is not None
    return {
        "flux_ratio": model.flux_ / exact,
        "flux_inside": bool(low < exact < high),
        "flux_failed": [check.code for check in model.clock_.checks if not check.passed],
        "flux_trusted": model.trust_.ok,
    }


def is_flagged(row: Row) -> bool:
    """Return whether a check of the clock or of the modes failed."""
    return bool(row["failed"]) or not row["trusted"]


def errors_of(rows: list[Row]) -> np.ndarray:
    """Return |log ratio| of all rates, (n_rows, 2); a rate that the bursts do not show is infinitely wrong."""
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.abs(np.log(np.array([row["ratios"] for row in rows], dtype=float)))
    return np.where(np.isnan(errors), np.inf, errors)


def table(rows: list[Row]) -> str:
    """Return a Markdown table with one line per system and number of bursts."""
    lines = []
    for (system, bursts), mine in grouped(rows, "system", "bursts").items():
        errors = errors_of(mine)
        goal = MOST_OFF_NOISY if system == "noisy frames" else MOST_OFF
        wrong = [row for one, row in zip(errors, mine, strict=True) if one.max() > np.log(WRONG)]
        silent = [row for row in wrong if not is_flagged(row)]
        covered = np.mean([row["inside"] for row in mine], axis=0)
        least, least_flux = (LEAST_COVERED, LEAST_COVERED_FLUX) if len(mine) >= FEWEST else (None, None)
        fluxes = [abs(np.log(row["flux_ratio"])) for row in mine if "flux_ratio" in row]
        inside = [row["flux_inside"] for row in mine if "flux_inside" in row]
        lines.append(
            [
                system,
                f"{bursts:,}",
                str(len(mine)),
                *(at_most(float(error), goal, ".2f") for error in np.median(errors, axis=0)),
                f"{errors.max():.2f}",
                *(at_least(float(share), least, ".2f") for share in covered),
                at_most(float(np.median(fluxes)), MOST_OFF_FLUX, ".2f") if fluxes else "–",
                at_least(float(np.mean(inside)), least_flux, ".2f") if inside else "–",
                f"{np.mean([name != 'R1' for row in mine for name in row['chosen']]):.2f}",
                f"{np.mean(list(map(is_flagged, mine))):.2f}",
                at_most(len(silent), 0 if bursts == max(BURSTS) else None, "d"),
                f"{np.median([row['seconds'] for row in mine]):.0f}",
            ]
        )
    header = ["system", "bursts", "fits", "rate 1", "rate 2", "worst", "covered, 1", "covered, 2", "flux",
              "covered, flux", "longer lags", "flagged", "wrong, not flagged", "CPU seconds"]  # fmt: skip
    goals = (
        f"Goals: median errors of rates at most {MOST_OFF:g} ({MOST_OFF_NOISY:g} for noisy frames) and of fluxes at "
        f"most {MOST_OFF_FLUX:g}; coverages of at least {LEAST_COVERED:g} and {LEAST_COVERED_FLUX:g} "
        f"(not judged from fewer than {FEWEST} fits); with 1,000 "
        f"bursts, no rate that is off by more than a factor of {WRONG:g} and not flagged."
    )
    return "\n".join([goals, "", markdown(header, lines), "", *_checks(rows)])


def _checks(rows: list[Row]) -> list[str]:
    """Return how often each check of the clock fails, by system."""
    parts = []
    for (system,), mine in grouped(rows, "system").items():
        codes = [code for row in mine for code in row["failed"]]
        counts = ", ".join(f"{code} {codes.count(code)}" for code in sorted(set(codes))) or "none"
        parts.append(f"{system} ({len(mine)} fits): {counts}")
    return ["Checks of the clock that fail: " + "; ".join(parts) + "."]


def figure(rows: list[Row]) -> Figure:
    """Plot rates over exact rates; flagged fits are hollow."""
    systems = list(dict.fromkeys(row["system"] for row in rows))
    fig = Figure(figsize=(8, 4.2), layout="constrained")
    ax = fig.subplots()
    ax.axhspan(1 / WRONG, WRONG, color="0.93", zorder=0)
    ax.axhline(1, color="0.6", lw=0.8)
    for row in rows:
        right = 0.25 if row["bursts"] == max(BURSTS) else -0.15
        place = systems.index(row["system"]) + right + 0.2 * ((row["seed"] * 0.618) % 1 - 0.5)
        for k, ratio in enumerate(row["ratios"]):
            ax.plot(place, ratio, "os"[k], ms=4, color=f"C{k}", mfc="none" if is_flagged(row) else f"C{k}")
    for k in range(N_MODES):
        ax.plot([], [], "os"[k], color=f"C{k}", label=f"rate {k + 1}")
    ax.plot([], [], "o", color="0.4", mfc="none", label="flagged")
    ax.set(yscale="log", ylabel="rate / exact rate", title="200 bursts (left) and 1,000 (right)")
    ax.set_xticks(range(len(systems)), systems, rotation=20, ha="right")
    ax.legend(frameon=False, fontsize="small")
    return fig


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment from the command line."""
    parser = options_of("clocks", __doc__, n_seeds=3, quick="one seed of the first system", first_seed=9000)
    options = parser.parse_args(arguments)
    systems, n_seeds = (list(SYSTEMS)[:1], 1) if options.quick else (list(SYSTEMS), options.seeds)
    seeds = range(options.first_seed, options.first_seed + n_seeds)
    tasks = [{"system": system, "seed": seed} for seed in seeds for system in systems]
    rows = run_tasks(run, tasks, options.out / "rows.jsonl", options.jobs)
    publish("clocks", rows, table, figure, options.out)


if __name__ == "__main__":
    main()
