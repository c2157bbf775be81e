"""Find the committor and the rate of the Müller–Brown potential, starting from frames in its two wells only.

    python examples/committor_loop/from_basins.py --out somewhere  # one or two minutes on an idle core

Walkers that start in A and in B without a bias do not leave their wells. A first committor q interpolates between the
sets. Each round then adds the Kolmogorov bias V_K = -λ log(1 + |∇q|²/ε) in kT (P. Kang, E. Trizio and M. Parrinello,
Nat. Comput. Sci. 4, 451 (2024)), which is attractive where q changes, simulates, weights the frames of the last rounds
by MBAR and fits q again, until flux and q do not change any more. After an interruption, run it again to continue.
"""

import argparse
import json
import platform
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numba import njit
from scipy.interpolate import RegularGridInterpolator

import kdmaps
from kdmaps.simulation import KolmogorovBias, umbrella_weights

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bias_muller_brown"))
from run import AXES, CELLS, FRAMES, GRID, HIGH, LOW, PROBLEM, WALKERS

#: Number of rounds whose frames are used.
MEMORY = 3
#: Steps of a round, their standard deviation, and cells of the potential on each axis.
STEPS, STEP, FINE = 100_000, 0.06, 1600
#: Centres and radius of A and B.
CENTRES, RADIUS = ((-0.558, 1.442), (0.623, 0.028)), 0.15
#: Energy in kT that keeps the unbiased frames of a set in this set.
OUTSIDE = 200.0
#: The loop ends after two rounds in a row that change log ν, and q (root mean square over the frames of the last round
#: with q between .02 and .98), by less.
SETTLED = {"flux": 0.1, "q": 0.02}


def side_of(X):
    """Return 0 in A, 1 in B and -1 elsewhere."""
    inside = [np.hypot(X[:, 0] - x, X[:, 1] - y) < RADIUS for x, y in CENTRES]
    return np.where(inside[0], 0, np.where(inside[1], 1, -1))


def kolmogorov(model):
    """Return the bias in kT as a table."""
    return KolmogorovBias(model, kT=1.0).energy(GRID).reshape(CELLS, CELLS)


@njit
def interpolated(table, x, y):
    """Return the linear interpolation of a table on the box; infinite outside."""
    a = (x - LOW[0]) / (HIGH[0] - LOW[0]) * (table.shape[0] - 1)
    b = (y - LOW[1]) / (HIGH[1] - LOW[1]) * (table.shape[1] - 1)
    if not (0 <= a < table.shape[0] - 1 and 0 <= b < table.shape[1] - 1):
        return np.inf
    j, k = int(a), int(b)
    a, b = a - j, b - k
    left, right = (1 - b) * table[j, k] + b * table[j, k + 1], (1 - b) * table[j + 1, k] + b * table[j + 1, k + 1]
    return (1 - a) * left + a * right


@njit
def walk(potential, bias, x, steps, every, rng):
    """Move walkers x by Metropolis steps; keep some steps after the first fifth."""
    kept, energy = [], np.full(len(x), np.inf)
    for step in range(steps):
        for i in range(len(x)):
            a, b = x[i, 0] + STEP * rng.standard_normal(), x[i, 1] + STEP * rng.standard_normal()
            new = interpolated(potential, a, b) + interpolated(bias, a, b)
            if new < energy[i] or rng.random() < np.exp(energy[i] - new):
                x[i, 0], x[i, 1], energy[i] = a, b, new
        if step >= steps // 5 and step % every == 0:
            kept.append(x.copy())
    return kept


def simulate(potential, bias, starts, seed, steps):
    """Run walkers under a potential plus a bias, both tables; return FRAMES frames.

    Metropolis steps have the stationary law of these tables, from which the weights are computed.
    """
    every, rng = max(1, steps * 4 // 5 * WALKERS // FRAMES), np.random.default_rng(seed)
    return np.concatenate(walk(potential, bias, starts.copy(), steps, every, rng))[:FRAMES]


def weighted(basins, rounds, biases):
    """Return the frames of the sets and of the last rounds, and their weights.

    Frames of walkers without a bias, inside of A or B, are samples of the stationary law restricted to the set.
    """
    if not rounds:
        return basins, np.ones(len(basins))
    recent = range(max(0, len(rounds) - MEMORY), len(rounds))
    sides = side_of(basins)
    parts = [basins[sides == 0], basins[sides == 1], *(rounds[k] for k in recent)]
    X = np.concatenate(parts)
    side, window = side_of(X), np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    energies = [np.where(side == k, 0.0, OUTSIDE) for k in (0, 1)]
    energies += [RegularGridInterpolator(AXES, biases[k])(X) for k in recent]
    return X, umbrella_weights(np.column_stack(energies), window, 1.0)


def fit(X, weight):
    """Fit the committor; warnings of the first rounds are expected, and `trust_` is in the results."""
    model = kdmaps.AdaptiveCommittor(
        diffusion=PROBLEM.diffusion, cv=5, n_features=200, max_search_samples=8000, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, side_of(X), sample_weight=weight)


def difference(q, other, counted=True):
    """Return the root mean square difference of two committors at points where the second is between .02 and .98."""
    between = (other > 0.02) & (other < 0.98) & counted
    return float(np.sqrt(np.mean((q - other)[between] ** 2))) if between.any() else np.inf


def draw(path, basins, rounds, models, found):
    """Draw the frames of every round over the potential, and level sets of the committor fitted to them."""
    frames = [basins, *rounds]
    columns = min(len(frames), 4)
    lines = -(-len(frames) // columns)
    figure = Figure(figsize=(3 * columns, 2.9 * lines), layout="constrained")
    potential = np.minimum(PROBLEM.potential(GRID), 10).reshape(CELLS, CELLS).T
    for k, ax in enumerate(figure.subplots(lines, columns, squeeze=False).flat):
        ax.set_axis_off()
        if k < len(frames):
            ax.contour(*AXES, potential, levels=np.arange(-22, 10, 4), colors="0.8", linewidths=0.7)
            ax.scatter(*frames[k].T, s=1, c=models[k].predict(frames[k]), cmap="coolwarm", vmin=0, vmax=1)
            q = models[k].predict(GRID).reshape(CELLS, CELLS).T
            ax.contour(*AXES, q, levels=(0.1, 0.5, 0.9), colors="k", linewidths=(0.5, 1, 0.5))
            name = "start" if k == 0 else f"round {k}"
            ax.set_title(f"{name}: flux/exact {found[k]['flux']:.3g}", fontsize=8)
            ax.set(xlim=(-1.6, 1.3), ylim=(-0.6, 2.1))
    figure.savefig(path, dpi=100)


def main():
    """Run the loop and compare with the exact values."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("basins"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=STEPS, help="steps of a round for each walker")
    parser.add_argument("--rounds", type=int, default=12, help="maximum number of rounds")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    exact = PROBLEM.committor(*(lambda X, k=k: side_of(X) == k for k in (0, 1)))
    truth, low = exact.function(GRID), PROBLEM.potential(GRID) < 0  # at most 6 kT above the saddle
    seconds = time.process_time()
    starts = np.repeat(np.array(CENTRES), WALKERS // 2, axis=0)
    axes = [np.linspace(low, high, FINE) for low, high in zip(LOW, HIGH, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    potential = PROBLEM.potential(points).reshape(FINE, FINE)
    basins = simulate(potential, np.zeros((2, 2)), starts, options.seed, STEPS // 50)
    rounds, biases, models, found, same = [], [], [], [], 0
    while True:
        path = options.out / f"round_{len(rounds):02}.npz"
        X, weight = weighted(basins, rounds, biases)
        if not path.exists():
            fit(X, weight).save(path)
        models.append(kdmaps.load(path))
        row = {
            "flux": float(models[-1].flux_ / exact.flux),
            "interval": [float(end) if np.isfinite(end) else None for end in models[-1].flux_interval_ / exact.flux],
            "error": difference(models[-1].predict(GRID), truth, low),
            "between": models[-1].trust_.between,
            "ok": models[-1].trust_.ok,
            "CPU seconds": round(time.process_time() - seconds, 1),
        }
        if found:
            before, now = (model.predict(rounds[-1]) for model in models[-2:])
            fluxes = row["flux"], found[-1]["flux"]  # 0 if no frame lies between the sets
            change = abs(np.log(fluxes[0] / fluxes[1])) if min(fluxes) > 0 else np.inf
            changes = {"flux": float(change), "q": difference(before, now)}
            row["changes"] = changes
            same = same + 1 if all(changes[name] <= limit for name, limit in SETTLED.items()) else 0
        found.append(row)
        print(f"round {len(rounds)}: {row}", flush=True)
        if same == 2 or len(rounds) == options.rounds:
            break
        # Walkers start from frames of A, of B, and of the transition state.
        rng = np.random.default_rng([options.seed, len(rounds)])
        starts = X[rng.choice(len(X), WALKERS)] if rounds else starts
        biases.append(kolmogorov(models[-1]))
        rounds.append(simulate(potential, biases[-1], starts, [options.seed, 1 + len(rounds)], options.steps))
    results = {
        "seed": options.seed,
        "settled": same == 2,
        "rounds": found,
        "versions": {"kdmaps": kdmaps.__version__, "python": platform.python_version()},
    }
    np.savez(options.out / "frames.npz", X=X, weight=weight)
    (options.out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    draw(options.out / "rounds.png", basins, rounds, models, found)


if __name__ == "__main__":
    main()
