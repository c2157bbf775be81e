"""Slow modes of alanine dipeptide from pairs of frames with the default estimator; writes trajectory.json and .md.

python examples/alanine_dipeptide/trajectory.py
"""

import json
import time
import warnings

import matplotlib
from alanine import HERE, STEP_PS, coordinates, load, place

import kdmaps
from kdmaps.plotting import plot_chapman_kolmogorov, plot_implied_timescales

#: Target correlations with eigenvectors 1 and 2, in place, and time scales in ps.
GOALS = {"dihedrals": (0.998, 0.995), "heavy atoms": (0.996, 0.992)}
TIMES = ((150, 340), (8.4, 9.2))
#: Markers around the table in README.md.
BEGIN, END = "<!-- table: python examples/alanine_dipeptide/trajectory.py -->\n", "<!-- end of table -->\n"
#: Two modes are slower than a frame.
MODES = 4


def fit(X) -> tuple[kdmaps.AdaptiveDiffusionMap, float]:
    """Fit the default estimator with a lag and a time step only; return it and the seconds of the fit."""
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # modes 3 and 4 are faster than a frame
        model = kdmaps.AdaptiveDiffusionMap(MODES, lag=1, time_step=STEP_PS, random_state=0).fit(X)
    return model, time.perf_counter() - begin


def analyse(X, reference) -> tuple[dict, kdmaps.dynamics.Validation]:
    """Return the row of a set of coordinates, and the tests of its lag."""
    model, seconds = fit(X)
    tests, best = kdmaps.dynamics.validate(model, X), model.best_estimator_
    error = kdmaps.uncertainty.bootstrap(model, X, random_state=0)
    row = {
        "timescales_ps": model.timescales_[:2].round(2).tolist(),
        "timescale_intervals_ps": error.timescale_intervals[:2].round(1).tolist(),
        **place(model.transform(X), reference),
        "seconds": round(seconds, 1),
        "chosen": {
            "kernel": best.kernel_.to_dict(),
            "regularization": best.regularization,
            "random_state": int(best.random_state),
            "basis": best.basis,
        },
        "flat": tests.flat,
        "predicts": tests.predicts,
    }
    return row, tests


def table(results: dict, static: dict, others: dict) -> str:
    """Return the text of trajectory.md."""
    lines = [
        "# Alanine dipeptide: a trajectory",
        "",
        "Written by `trajectory.py`. |corr| is the absolute correlation of learned modes 1 and 2 with eigenvectors 1",
        "and 2 of the reference Markov state model; in parentheses, the correlation of the nearest learned mode, if",
        "this is a different one. Reference: 227 ps (162–337) and 8.7 ps (8.4–8.8). Seconds include the selection of",
        "settings. They were measured on a machine shared with other work, under different loads; do not compare them.",
        "",
        "| method | coordinates | \\|corr\\| 1 | \\|corr\\| 2 | t1 (ps) | t2 (ps) | seconds |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for name, row in results["fits"].items():
        lines.append(_row("**kdmaps, lag 5 ps**", name, row))
    for name, fitted in static["fits"].items():
        # Static fits were compared with the nearest mode.
        cells = [
            f"{value:.3f}" if mode == k + 1 else f"({value:.3f}, mode {mode})"
            for k, (value, mode) in enumerate(zip(fitted["correlations"], fitted["nearest_mode"], strict=True))
        ]
        lines.append(f"| kdmaps, static frames | {name} | {cells[0]} | {cells[1]} | – | – | |")
    lines += [_row(row["method"], row["coordinates"], row) for row in others["methods"]]
    versions = ", ".join(f"{name} {version}" for name, version in others["versions"].items())
    settings = [
        f"- {r['method']}, {r['coordinates']}: {r['settings']}" for r in others["methods"] if "best" in r["settings"]
    ]
    return "\n".join([
        *lines, "",
        f"Other libraries: {versions}, lag {others['lag_ps']:.0f} ps, run by `compare/alanine_trajectory.py`. Settings",
        "that their documentation leaves to the user were selected on held-out frames:", "",
        *settings, "", *goals(results), "",
    ])  # fmt: skip


def in_readme(readme: str, text: str) -> str:
    """Return the text of README.md with the table of trajectory.md."""
    start, end = readme.index(BEGIN) + len(BEGIN), readme.index(END)
    return readme[:start] + "\n".join(line for line in text.splitlines() if line.startswith("|")) + "\n" + readme[end:]


def _row(method: str, name: str, row: dict) -> str:
    cells = [
        f"{here:.4f}" + (f" ({any_:.4f})" if any_ > here + 1e-4 else "")
        for here, any_ in zip(row["in_place"], row["correlations"], strict=True)
    ]
    times = [f"{t:.3g}" if t < 1000 else f"{t:.0f}" for t in row["timescales_ps"]]
    return f"| {method} | {name} | {' | '.join([*cells, *times])} | {row['seconds']:.3g} |".replace(
        "| 0 |", "| < 0.1 |"
    )


def goals(results: dict) -> list[str]:
    """List which goals are met."""
    lines = []
    for name, row in results["fits"].items():
        met = all(value >= goal for value, goal in zip(row["in_place"], GOALS[name], strict=True))
        inside = all(low <= t <= high for t, (low, high) in zip(row["timescales_ps"], TIMES, strict=True))
        lines.append(
            f"- {name}: goal |corr| of {GOALS[name][0]} and {GOALS[name][1]} {'met' if met else 'missed'}, time scales "
            f"in 150–340 and 8.4–9.2 ps {'met' if inside else 'missed'}; implied time scales "
            f"{'flat' if row['flat'] else 'not flat'} from this lag on, Chapman–Kolmogorov test "
            f"{'passed' if row['predicts'] else 'failed'}"
        )
    return lines


def draw(tests: kdmaps.dynamics.Validation) -> None:
    """Draw the tests of the lag."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained", width_ratios=(1.3, 1, 1))
    plot_implied_timescales(tests.implied, ax=axes[0])
    axes[0].set(xlabel="lag (ps)", ylabel="time scale (ps)")
    chapman = tests.chapman
    names = ("predicted", "estimated", "predicted_intervals", "estimated_intervals", "deviations")
    slow = kdmaps.dynamics.ChapmanKolmogorov(**vars(chapman) | {n: getattr(chapman, n)[:, :2] for n in names})
    plot_chapman_kolmogorov(slow, axes[1:])
    for ax in axes[1:]:
        ax.set_xlabel("time (ps)")
    figure.savefig(HERE / "trajectory.png", dpi=110)
    plt.close(figure)


def main() -> None:
    """Fit, test, draw, write."""
    matplotlib.use("Agg")
    data, fits = load(), {}
    for name, X in coordinates(data).items():
        fits[name], tests = analyse(X, data["msm_modes"])
        print(name, {key: value for key, value in fits[name].items() if key != "chosen"}, flush=True)
    draw(tests)  # of the heavy atoms
    results = {"kdmaps": kdmaps.__version__, "fits": fits}
    (HERE / "trajectory.json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    others = [json.loads((HERE / f"{name}.json").read_text()) for name in ("results", "lagged_methods")]
    text = table(results, *others)
    (HERE / "trajectory.md").write_text(text)
    (HERE / "README.md").write_text(in_readme((HERE / "README.md").read_text(), text))


if __name__ == "__main__":
    main()
