"""Look for φ > 0 in alanine dipeptide at 300 K: simulate, weigh, fit, bias along the mode, again.

    python examples/bias_alanine/run.py --quick          # 0.2 ns a round; writes into ./rounds
    python examples/bias_alanine/run.py --out somewhere  # 2 ns a round

It needs OpenMM (`pip install 'kdmaps[openmm]'`). Run it again after an interruption, and it goes on where it was. The
first round is a plain simulation, which does not cross in 19 ns. Six rounds of `--quick` did not cross either: the bias
along the slowest mode that they saw stopped growing at 5 kT. Longer rounds have not been tried.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from molecule import KT, Molecule

import kdmaps
from kdmaps.simulation import Loop, descriptors

FRAMES = 1000


def simulator(molecule, inputs, nanoseconds):
    """Return `simulate(bias, starts, seed)`, which keeps 1,000 frames of a simulation of that length."""

    def simulate(bias, starts, seed):
        forces = () if bias is None else (bias.force(inputs, system=molecule.system()),)
        simulation = molecule.simulation(*forces, seed=seed % 2**31)
        every = round(nanoseconds * 1000 / 0.002 / FRAMES)
        frames = []
        for number in range(FRAMES):
            # One start for every tenth of the frames, so that a round does not depend on one of them.
            if starts is not None and number % (FRAMES // 10) == 0:
                simulation.context.setPositions(starts[number // (FRAMES // 10)])
            simulation.step(every)
            positions = simulation.context.getState(positions=True).getPositions(asNumpy=True)
            frames.append(np.asarray(positions._value))
        return np.array(frames)

    return simulate


def fit(X, weight):
    """Fit the default estimator to a third of the frames."""
    model = kdmaps.AdaptiveDiffusionMap(2, random_state=0)
    return model.fit(X[::3], sample_weight=weight[::3])


def guide(X, weight):
    """Fit a mode that shows the way."""
    model = kdmaps.KernelDiffusionMap(1, basis="landmarks", n_features=150, bandwidth=0.5, random_state=0)
    return model.fit(X, sample_weight=weight)


def main():
    """Run the loop, and say how often φ changed its sign and what φ > 0 costs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("rounds"))
    parser.add_argument("--quick", action="store_true", help="0.2 ns a round instead of 2")
    parser.add_argument("--rounds", type=int, default=10, help="at most so many")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    molecule = Molecule()
    inputs = molecule.torsions()
    simulate = simulator(molecule, inputs, 0.2 if arguments.quick else 2.0)
    loop = Loop(
        arguments.out, simulate, fit, guide=guide, kT=KT, n_starts=10, seed=arguments.seed,
        describe=lambda frames: descriptors(inputs, frames),
    )  # fmt: skip
    start = time.perf_counter()
    for number in range(len(loop.rounds), arguments.rounds):
        if loop.settled:
            break
        loop.run(max_rounds=number + 1)
        _, X, weight = loop.weighted()
        new = descriptors(inputs, loop.frames(number))
        right = (X[:, 1] > 0) & (X[:, 0] > np.cos(np.radians(130)))  # φ in (0°, 130°); beyond it the β region goes on
        share = weight[right].sum() / weight.sum()
        energy = f"{-np.log(share / (1 - share)):.2f} kT" if share > 0 else "unknown"
        visited = np.mean((new[:, 1] > 0) & (new[:, 0] > np.cos(np.radians(130))))
        print(
            f"round {number}: {visited:.1%} of its frames at φ > 0, free energy of φ > 0 {energy}, bias "
            f"{loop.rounds[-1]['height'] / KT:.1f} kT high, {time.perf_counter() - start:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
