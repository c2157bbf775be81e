"""Learn the rates of the Müller–Brown potential from one basin: simulate, weight, fit, bias along the mode, repeat.

    python examples/bias_muller_brown/run.py --quick          # a few minutes; writes into ./rounds
    python examples/bias_muller_brown/run.py --out somewhere  # rounds four times as long

After an interruption, run it again to continue. The exact rates are 1.2474e-4 and 0.3560; the first
round only visits the deepest of the three wells, 16 kT below the saddle.
"""

import argparse
import json
import platform
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from loop import Loop, spread
from numba import njit
from page import write_page

import kdmaps
from kdmaps.problems import MullerBrown

PROBLEM = MullerBrown()
LOW, HIGH, CELLS = np.array([-2.2, -0.9]), np.array([1.6, 2.6]), 160
DT, WALKERS, FRAMES, START = 1e-3, 100, 8000, (-0.56, 1.44)
#: Number of landmarks, and candidates for cross-validation.
LANDMARKS, BANDWIDTHS, REGULARIZATIONS = 300, (0.1, 0.15, 0.22, 0.33), (1e-9, 1e-8, 1e-6, 1e-3)
#: The other two wells are below this line.
BELOW = 0.75
AXES = [np.linspace(LOW[i], HIGH[i], CELLS) for i in range(2)]
GRID = np.stack(np.meshgrid(*AXES, indexing="ij"), axis=-1).reshape(-1, 2)


@njit
def walk(gradient, x, low, spacing, steps, every, diffusion, dt, rng):
    """Euler–Maruyama for walkers x in a gradient given on a grid; keep some steps after the first fifth."""
    kept = []
    for step in range(steps):
        for i in range(x.shape[0]):
            a, b = (x[i, 0] - low[0]) / spacing[0], (x[i, 1] - low[1]) / spacing[1]
            j, k = min(max(int(a), 0), gradient.shape[1] - 2), min(max(int(b), 0), gradient.shape[2] - 2)
            a, b = a - j, b - k
            for c in range(2):
                g = gradient[c]
                force = (1 - a) * ((1 - b) * g[j, k] + b * g[j, k + 1]) + a * (
                    (1 - b) * g[j + 1, k] + b * g[j + 1, k + 1]
                )
                x[i, c] += -diffusion * dt * force + np.sqrt(2 * diffusion * dt) * rng.standard_normal()
        if step >= steps // 5 and step % every == 0:
            kept.append(x.copy())
    return kept


def simulator(duration):
    """Return `simulate(bias, starts, seed)` with rounds of this duration for each walker."""

    def simulate(bias, starts, seed):
        # Limit the steep potential outside the visited region, for stable steps.
        energy = np.minimum(PROBLEM.potential(GRID), 30.0) + (0 if bias is None else bias.energy(GRID))
        gradient = np.stack(np.gradient(energy.reshape(CELLS, CELLS), *AXES))
        x = np.tile(START, (WALKERS, 1)) if starts is None else starts.copy()
        steps = round(duration / DT)
        every = max(1, steps * 4 // 5 * WALKERS // FRAMES)
        spacing = (HIGH - LOW) / (CELLS - 1)
        kept = walk(gradient, x, LOW, spacing, steps, every, PROBLEM.diffusion, DT, np.random.default_rng(seed))
        return np.concatenate(kept)[:FRAMES]

    return simulate


def fit(X, weight):
    """Fit all frames with evenly spread landmarks; the search chooses the kernel."""
    model = kdmaps.KernelSearchCV(
        2, families=("gaussian",), bandwidths=BANDWIDTHS, regularizations=REGULARIZATIONS, basis="landmarks",
        landmarks=X[spread(X, LANDMARKS)], n_features=LANDMARKS, diffusion=PROBLEM.diffusion, random_state=0,
    )  # fmt: skip
    return model.fit(X, sample_weight=weight)


def guide(X, weight):
    """Fit the mode for the next bias; its rates do not matter."""
    model = kdmaps.KernelDiffusionMap(
        1, basis="landmarks", n_features=150, bandwidth=0.4, regularization=1e-3, random_state=0
    )
    return model.fit(X, sample_weight=weight)


def basins(X, weight):
    """Return the free energy of the two upper wells relative to the deepest, in kT."""
    share = weight[X[:, 1] < BELOW].sum() / weight.sum()
    return float(np.log((1 - share) / share)) if share > 0 else np.inf


def truth():
    """Return the exact rates and free energy, the latter by quadrature."""
    return PROBLEM.rates(2), basins(GRID, np.exp(-PROBLEM.potential(GRID) - 22))


def picture(loop, path):
    """Draw the frames of every round over the potential, coloured by the mode that guides the next."""
    count = len(loop.rounds)
    columns = min(count, 5)
    figure, axes = plt.subplots(
        -(-count // columns), columns, figsize=(3 * columns, 3 * -(-count // columns)), squeeze=False
    )
    potential = np.minimum(PROBLEM.potential(GRID), 10).reshape(CELLS, CELLS).T
    for k, ax in enumerate(axes.flat):
        ax.set_axis_off()
        if k < count:
            frames, summary = loop.frames(k), loop.rounds[k]
            ax.contour(*AXES, potential, levels=np.arange(-22, 10, 4), colors="0.8", linewidths=0.7)
            ax.scatter(*frames.T, c=loop.bias(k + 1).values(frames), s=2, cmap="coolwarm")
            ax.set_title(f"round {k}: rates {summary['rates'][0]:.2g}, {summary['rates'][1]:.2g}", fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=100)


def main():
    """Run the loop and compare with the exact values."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("rounds"))
    parser.add_argument("--quick", action="store_true", help="rounds of 100 units of time for each walker, not 400")
    parser.add_argument("--time", type=float, help="length of a round in units of time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=20, help="maximum number of rounds")
    arguments = parser.parse_args()
    duration = arguments.time or (100.0 if arguments.quick else 400.0)
    rates, energy = truth()
    print(f"exact: rates {rates[0]:.4g}, {rates[1]:.4f}; free energy {energy:.2f} kT")
    loop = Loop(arguments.out, simulator(duration), fit, guide=guide, kT=1.0, n_starts=WALKERS, seed=arguments.seed)
    start = time.process_time()

    def note(loop):
        found = loop.rounds[-1]
        _, X, weight = loop.weighted()
        print(
            f"round {len(loop.rounds) - 1}: rates/exact {np.round(found['rates'] / rates, 3)}, free energy "
            f"{basins(X, weight):.2f} kT, bias {found['height']:.1f} kT high, {found['outside']:.1%} of the frames "
            f"outside, {found['n_effective']:.0f} effective, {time.process_time() - start:.0f} s",
            flush=True,
        )

    loop.run(arguments.rounds, after=note)
    _, X, weight = loop.weighted()
    final = {
        "seed": arguments.seed,
        "time of a round": duration,
        "rounds": len(loop.rounds),
        "settled": loop.settled,
        "exact rates": rates.tolist(),
        "rates": loop.rounds[-1]["rates"],
        "exact free energy (kT)": energy,
        "free energy (kT)": basins(X, weight),
        "history": [one["rates"] for one in loop.rounds],
        "CPU seconds": time.process_time() - start,
        "versions": {"kdmaps": kdmaps.__version__, "python": platform.python_version()},
    }
    (arguments.out / "results.json").write_text(json.dumps(final, indent=1) + "\n")
    picture(loop, arguments.out / "rounds.png")
    write_page(loop, arguments.out / "rounds.html", names=["x", "y"])


if __name__ == "__main__":
    main()
