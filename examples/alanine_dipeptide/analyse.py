"""Slow modes of alanine dipeptide with the default estimator; writes results.json, results.md and the figures.

python examples/alanine_dipeptide/analyse.py             # everything, some minutes
python examples/alanine_dipeptide/analyse.py --seeds 1   # without the repetitions
"""

import argparse
import json
import warnings
from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
from alanine import HERE, NAMES, STEP_PS, coordinates, load

import kdmaps
from kdmaps.data.distances import median_distance
from kdmaps.metrics import correlation_table
from kdmaps.plotting import plot_landscape, plot_modes

#: Target correlations of eigenvectors 1 and 2 of the Markov model with the nearest combinations of the learned modes.
GOALS = {"dihedrals": (0.99, None), "heavy atoms": (0.96, 0.98)}
#: Stride of the small run that the tests repeat.
SLICE = 10
#: Numbers of features with which the selected kernel is refitted, and the number of refits.
DRAWS = {300: 6, 1000: 3}


def match(modes, reference) -> tuple[list[int], list[float]]:
    """Return, for each of the first two reference modes, the nearest learned mode and its |correlation|."""
    table = correlation_table(modes, reference[:, :2])
    best = table.argmax(axis=0)
    return best.tolist(), table[best, [0, 1]].round(4).tolist()


def within_space(modes, reference) -> list[float]:
    """Return the correlation of each of the first two reference modes with the nearest combination of learned modes."""
    fitted = modes @ np.linalg.lstsq(modes, reference[:, :2], rcond=None)[0]
    return [round(float(np.corrcoef(fitted[:, k], reference[:, k])[0, 1]), 4) for k in (0, 1)]


def agreement(model, modes, reference) -> dict:
    """Return the agreement of the modes and of their span with the reference."""
    return {
        "correlations": match(modes, reference)[1],
        "within_space": within_space(modes, reference),
        "timescales": model.timescales_[:2].round(4).tolist(),
    }


def describe(model, X) -> dict:
    """Return the selected kernel and the certainty of the selection as plain data."""
    chosen = model.best_estimator_
    certainty = {name: round(float(value), 3) for name, value in model.certainty_.items() if np.isscalar(value)}
    return {
        "kernel": chosen.kernel_.to_dict(),
        "bandwidth_in_medians": np.round(np.asarray(chosen.kernel_.bandwidth) / median_distance(X, random_state=0), 3)
        .astype(float)
        .tolist(),
        "regularization": chosen.regularization,
        "random_state": int(chosen.random_state),
        "refined": bool(model.refinement_ is not None and model.refinement_.preferred),
        "extensions": model.extensions_,
        "certainty": certainty,
        "fold_agreement": round(float(model.search_result_.best.agreement), 4),
    }


def fit(X, seed: int, **settings):
    """Fit the default estimator; return it and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = kdmaps.AdaptiveDiffusionMap(random_state=seed, **settings).fit(X)
    return model, sorted({str(w.message) for w in caught if issubclass(w.category, UserWarning)})


def analyse(name: str, X, data, seeds: int) -> tuple[kdmaps.AdaptiveDiffusionMap, dict]:
    """Fit one set of coordinates with all seeds and collect the results."""
    reference = data["msm_modes"]
    model, messages = fit(X, 0)
    order, correlations = match(model.transform(X), reference)
    runs = []
    for seed in range(seeds):
        run = model if seed == 0 else fit(X, seed)[0]
        modes = run.transform(X)
        runs.append({"kernel": run.kernel_.to_dict()["family"], **agreement(run, modes, reference)})
        print(name, "seed", seed, runs[-1], flush=True)
    # Repeat with blocks of 20 ns, 0.5 ns apart, so that test samples are not neighbours in time of training samples.
    blocked = fit(X, 0, cv=kdmaps.BlockedKFold(5, gap=100))[0]
    error = kdmaps.uncertainty.bootstrap(model, X)
    lagged = kdmaps.dynamics.compare_with_trajectory(model, X, time_step=STEP_PS)
    states = kdmaps.dynamics.coarse_states(model.transform(X)[:, sorted(order)], 3)
    inside = data["phi"] > 0
    return model, {
        "columns": X.shape[1],
        "chosen": describe(model, X),
        "warnings": messages,
        "nearest_mode": [k + 1 for k in order],
        "correlations": correlations,
        "seeds": runs,
        "draws": draws(X, reference, describe(model, X)),
        "with_blocked_folds": {
            "chosen": describe(blocked, X),
            "correlations": match(blocked.transform(X), reference)[1],
        },
        "timescales": error.timescales[order].round(4).tolist(),
        "timescale_intervals": error.timescale_intervals[order].round(4).tolist(),
        "mode_angles_degrees": np.degrees(error.mode_angles[order]).round(2).tolist(),
        "block_length": error.block_length,
        "timescales_ps": lagged.timescales[order].round(2).tolist(),
        "timescale_errors_ps": lagged.timescale_errors[order].round(2).tolist(),
        "diffusion_per_ps": np.round(lagged.diffusion[order], 6).tolist(),
        "diffusion_errors_per_ps": np.round(lagged.diffusion_errors[order], 6).tolist(),
        "amplitudes": lagged.amplitudes[order].round(3).tolist(),
        "state_populations": states.populations.round(4).tolist(),
        "rarest_state_is_phi_positive": round(float(np.mean((states.labels == 2) == inside)), 4),
        "lags": [row for row in lagged.table() if row["mode"] - 1 in order],
    }


def draws(X, reference, chosen: dict) -> list[dict]:
    """Refit the selected kernel with other frequencies, and with more of them."""
    kernel, rows = kdmaps.kernels.kernel_from_dict(chosen["kernel"]), []
    options = {"kernel": kernel, "bandwidth": 1.0, "regularization": chosen["regularization"]}
    for n_features, times in DRAWS.items():
        for seed in range(times):
            model = kdmaps.KernelDiffusionMap(4, n_features=n_features, random_state=seed, **options)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                modes = model.fit(X).transform(X)
            rows.append({"n_features": n_features, **agreement(model, modes, reference)})
    return rows


def small_run(X, reference) -> dict:
    """Search on a subset of the frames, small enough to be repeated by a test."""
    search = kdmaps.KernelSearchCV(4, families=["laplacian", "gaussian"], bandwidths=4, n_features=200, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X[::SLICE])
    return {"best_params": search.best_params_, "correlations": match(search.transform(X), reference)[1]}


# --- figures and table ------------------------------------------------------------------------------------------------
def draw_ramachandran(path: Path, data, fits) -> None:
    """Plot the eigenvectors of the Markov model and the nearest learned modes over (φ, ψ)."""
    from matplotlib import pyplot as plt

    degrees = np.degrees(np.column_stack([data["phi"], data["psi"]]))
    rows = [("Markov state model", data["msm_modes"][:, :2], ["eigenvector 1", "eigenvector 2"])]
    for name, (model, X, result) in fits.items():
        order = np.array(result["nearest_mode"]) - 1
        modes = model.transform(X)[:, order]
        modes = modes * np.sign(np.sum(modes * data["msm_modes"][:, :2], axis=0))
        pairs = zip(order, result["correlations"], strict=True)
        rows.append((NAMES[name], modes, [f"mode {k + 1}, |corr| = {value:.3f}" for k, value in pairs]))
    shape = {"figsize": (8, 3.4 * len(rows)), "sharex": True, "sharey": True, "layout": "constrained"}
    figure, axes = plt.subplots(len(rows), 2, **shape)
    for row, (title, modes, titles) in zip(axes, rows, strict=True):
        plot_modes(modes, degrees, axes=row, titles=titles, point_size=2)
        row[0].set_ylabel(f"{title}\nψ (degrees)")
        row[1].set_ylabel("")
        for ax in row:
            ax.set(xlim=(-180, 180), ylim=(-180, 180), xticks=range(-180, 181, 90), yticks=range(-180, 181, 90))
            ax.set_xlabel("")
    for ax in axes[-1]:
        ax.set_xlabel("φ (degrees)")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_selection(path: Path, fits) -> None:
    """Plot the held-out scores of all candidates."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(fits), figsize=(11, 3.8), layout="constrained")
    for ax, (name, (model, *_)) in zip(axes, fits.items(), strict=True):
        plot_landscape(model, ax=ax)
        ax.set_title(NAMES[name])
    axes[0].get_legend().remove()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_autocorrelation(path: Path, results: dict) -> None:
    """Plot the autocorrelation of the modes along the trajectory, and the fitted decay."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(results), figsize=(10, 3.6), sharey=True, layout="constrained")
    for ax, (name, result) in zip(axes, results.items(), strict=True):
        parts = zip(result["nearest_mode"], result["timescales_ps"], result["amplitudes"], strict=True)
        for number, (k, timescale, amplitude) in enumerate(parts):
            rows = [row for row in result["lags"] if row["mode"] == k]
            time, rho, error = (np.array([row[key] for row in rows]) for key in ("time", "autocorrelation", "error"))
            color = f"C{number}"
            ax.errorbar(time, rho, error, fmt="o", ms=3, lw=0.8, color=color)
            label = f"mode {k} (eigenvector {number + 1}): {timescale:.3g} ps"
            ax.plot(time, amplitude * np.exp(-time / timescale), color=color, label=label)
        ax.set(xscale="log", xlabel="lag (ps)", title=NAMES[name], ylim=(-0.05, 1.05))
        ax.legend(frameon=False, fontsize="small")
    axes[0].set_ylabel("autocorrelation")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def table(results: dict) -> str:
    """Return the text of results.md."""
    fits = results["fits"]
    lines = [
        "# Alanine dipeptide: static frames",
        "",
        "Written by `analyse.py`. |corr| is the absolute correlation of eigenvectors 1 and 2 of the reference Markov",
        "state model with the learned mode nearest to each.",
        "",
        *methods_table(fits),
        "",
        "¹ From the decay of the modes along the trajectory. Results with a lag are in [trajectory.md](trajectory.md).",
        "",
        *selection_table(fits),
        "",
        "Each seed, and the kernel selected with seed 0 with other frequencies:",
        "",
        *runs_table(fits),
        "",
        *goals(fits),
    ]
    return "\n".join(lines) + "\n"


def methods_table(fits: dict) -> list[str]:
    """List the agreement of the modes, and their time scales along the trajectory."""
    lines = [
        "| folds | coordinates | \\|corr\\| 1 | \\|corr\\| 2 | time scales (ps) |",
        "|---|---|---|---|---|",
    ]
    for name, result in fits.items():
        worst, n = np.min([run["correlations"] for run in result["seeds"]], axis=0), len(result["seeds"])
        cells = [f"{value:.3f} ({low:.3f})" for value, low in zip(result["correlations"], worst, strict=True)]
        times = ", ".join(
            f"{t:.3g} ± {e:.2g}" for t, e in zip(result["timescales_ps"], result["timescale_errors_ps"], strict=True)
        )
        lines.append(f"| default (worst of {n} seeds) | {name} | {cells[0]} | {cells[1]} | {times} ¹ |")
        blocked = [f"{value:.3f}" for value in result["with_blocked_folds"]["correlations"]]
        lines.append(f"| blocks | {name} | {blocked[0]} | {blocked[1]} | |")
    return lines


def selection_table(fits: dict) -> list[str]:
    """List the selected kernel and the properties of its modes for each set of coordinates."""

    def joined(key: str, form: str = "") -> Callable[[dict], str]:
        return lambda result: ", ".join(format(value, form) for value in result[key])

    rows: dict[str, Callable[[dict], str]] = {
        "columns": lambda r: str(r["columns"]),
        "selected kernel": lambda r: _kernel(r["chosen"]["kernel"]),
        "bandwidth, in median distances": lambda r: str(r["chosen"]["bandwidth_in_medians"]),
        "λ": lambda r: f"{r['chosen']['regularization']:.1e}",
        "anisotropic refinement kept": lambda r: "yes" if r["chosen"]["refined"] else "no",
        "agreement of the folds": lambda r: str(r["chosen"]["fold_agreement"]),
        "learned modes nearest to eigenvectors 1, 2": joined("nearest_mode"),
        "their time scales, in units of the metric": joined("timescales"),
        "95 % intervals": lambda r: ", ".join(f"{a}–{b}" for a, b in r["timescale_intervals"]),
        "95 % bound on their angles (degrees)": joined("mode_angles_degrees"),
        "diffusion constants (1/ps)": joined("diffusion_per_ps", ".3g"),
        "amplitudes of the decay": joined("amplitudes"),
        "populations of three states": joined("state_populations"),
        "frames where rarest state = (φ>0)": lambda r: str(r["rarest_state_is_phi_positive"]),
        "warnings": lambda r: "; ".join(r["warnings"]) or "none",
    }
    header = ["| | " + " | ".join(fits) + " |", "|---|" + "---|" * len(fits)]
    return header + [f"| {title} | " + " | ".join(map(text, fits.values())) + " |" for title, text in rows.items()]


def runs_table(fits: dict) -> list[str]:
    """List the agreement for each seed and each draw of frequencies."""
    lines = [
        "| coordinates | run | time scales 1, 2 | \\|corr\\| | \\|corr\\| of the space |",
        "|---|---|---|---|---|",
    ]
    for name, result in fits.items():
        runs = [(f"seed {seed}: {run['kernel']}", run) for seed, run in enumerate(result["seeds"])]
        runs += [(f"draw of {run['n_features']} features", run) for run in result["draws"]]
        for title, run in runs:
            texts = [", ".join(f"{v:.3g}" for v in run["timescales"])]
            texts += [", ".join(f"{v:.3f}" for v in run[key]) for key in ("correlations", "within_space")]
            lines.append(f"| {name} | {title} | {' | '.join(texts)} |")
    return lines


def goals(fits: dict) -> list[str]:
    """List which goals are met."""
    lines = []
    for name, result in fits.items():
        for k, goal in enumerate(GOALS[name]):
            if goal is not None:
                found = [run["within_space"][k] for run in result["seeds"]]
                outcome, always = "met" if found[0] >= goal else "missed", min(found) >= goal
                seeds = " by every seed" if always else ", not by every seed"
                lines.append(f"- {name}, eigenvector {k + 1}: goal {goal}, {outcome}{seeds}")
    return lines


def _kernel(data: dict) -> str:
    """Return the family of a kernel, and whether it has a metric."""
    if data["family"] == "Metric":
        return f"{_kernel(data['kernel'])}, in a learned metric"
    return data["family"] + (f", ν={data['nu']}" if "nu" in data else "")


def write(path: Path, text: str) -> None:
    """Write a file atomically."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(text)
    temporary.replace(path)


def main() -> None:
    """Fit, draw, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="fits of each set of coordinates")
    arguments = parser.parse_args()
    matplotlib.use("Agg")
    data = load()
    fits = {}
    for name, X in coordinates(data).items():
        model, result = analyse(name, X, data, max(1, arguments.seeds))
        fits[name] = (model, X, result)
        print(name, result["correlations"], result["chosen"]["kernel"], flush=True)
    results = {
        "kdmaps": kdmaps.__version__,
        "fits": {name: result for name, (_, _, result) in fits.items()},
        "small_run": small_run(coordinates(data)["dihedrals"], data["msm_modes"]),
    }
    draw_ramachandran(HERE / "ramachandran.png", data, fits)
    draw_selection(HERE / "selection.png", fits)
    draw_autocorrelation(HERE / "autocorrelation.png", results["fits"])
    write(HERE / "results.json", json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    write(HERE / "results.md", table(results))


if __name__ == "__main__":
    main()
