"""Committor of alanine dipeptide (C7eq to C7ax) from biased frames, tested by shooting.

    python examples/committor_alanine/run.py --quick          # 4 ns, 10 configurations, about ten minutes
    python examples/committor_alanine/run.py --out somewhere  # 20 ns, 50 configurations, about an hour on one core

It needs OpenMM (`pip install 'kdmaps[openmm]'`). Frames at 400 K are biased along φ and ψ. Several sets of columns are
fitted, with the diffusion tensor of the atoms' masses; the set with the lowest held-out energy is the best. Shots with
new velocities start from frames near q = 1/2. The fraction that reaches B tests q, and the shots give a rate that
includes inertia. Finished parts are stored: after an interruption, the same command continues.
"""

import argparse
import json
import platform
import time
from pathlib import Path

import numpy as np
import openmm
from histogram import draw
from sampling import FRICTION, KT, SETS, STEP_PS, Molecule, biased_frames, load, phi_of, shots, side_of, stored

import kdmaps
from kdmaps.simulation import Distance, Torsion, descriptors, effective_sample_size, jacobians

#: Torsions besides φ and ψ: θ, the other peptide bond and the side chain.
OTHERS = (
    ("ACE-O", "ACE-C", "ALA-N", "ALA-CA"),
    ("ALA-CA", "ALA-C", "NME-N", "NME-C"),
    ("ALA-CB", "ALA-CA", "ALA-N", "ACE-C"),
)
#: Half width of the range of q around 1/2 in which shots start.
WINDOW = 0.1
NAMES = {
    "plain": "φ, ψ, identity",
    "backbone": "φ, ψ, masses",
    "torsions": "five torsions, masses",
}
#: Number of torsions of each set.
TORSIONS = {"plain": 2, "backbone": 2, "torsions": 5}


def columns(molecule, name):
    """Return the inputs of a set of columns."""
    more = [Torsion(tuple(molecule.number[atom] for atom in atoms)) for atoms in OTHERS]
    return (molecule.torsions() + more)[: TORSIONS[name]]


def diffusion(molecule, inputs, frames):
    """Return kT/γ J(M⁻¹ - M⁻¹Cᵀ(CM⁻¹Cᵀ)⁻¹CM⁻¹)Jᵀ, in 1/ps, with the derivatives C of the constrained bonds."""
    system = molecule.system()
    mass = np.repeat([system.getParticleMass(i)._value for i in range(system.getNumParticles())], 3)
    bonds = [Distance(*system.getConstraintParameters(k)[:2]) for k in range(system.getNumConstraints())]
    found = []
    for part in np.array_split(frames, max(1, len(frames) // 500)):
        J, C = (jacobians(one, part).reshape(len(part), -1, len(mass)) for one in (inputs, bonds))
        mixed = J / mass @ C.transpose(0, 2, 1)
        inverse = np.linalg.solve(C / mass @ C.transpose(0, 2, 1), mixed.transpose(0, 2, 1))
        found.append(J / mass @ J.transpose(0, 2, 1) - mixed @ inverse)
    return KT / FRICTION._value * np.concatenate(found)


def fitted(out, molecule, name, frames, weight, side):
    """Return the committor for a set of columns, from its file if it exists, and CPU seconds."""
    inputs, path = columns(molecule, name), out / f"{name}.npz"
    if not path.exists():
        start = time.process_time()
        tensor = None if name == "plain" else diffusion(molecule, inputs, frames)
        model = kdmaps.AdaptiveCommittor(diffusion=tensor, random_state=0)
        model.fit(descriptors(inputs, frames), side, sample_weight=weight).save(path)
        (out / f"{name}.seconds").write_text(f"{time.process_time() - start:.1f}")
    return kdmaps.load(path), float((out / f"{name}.seconds").read_text())


def chosen_rows(q, weight, side, count, seed):
    """Draw rows near q = 1/2 with probabilities proportional to their weights, spread over the run."""
    near = np.flatnonzero((abs(q - 0.5) < WINDOW) & (side < 0))
    cumulated = np.cumsum(weight[near]) / weight[near].sum()
    places = (np.arange(count) + np.random.default_rng(seed).random()) / count
    return near[np.searchsorted(cumulated, places)]


def speeds(model, inputs, frame, velocities):
    """Return dq/dt for each velocity, before q is clipped."""
    J = jacobians(inputs, frame[None])[0].reshape(len(descriptors(inputs, frame[None])[0]), -1)
    slope = model.gradient(descriptors(inputs, frame[None]))[0]
    return velocities.reshape(len(velocities), -1) @ (slope @ J)


def long_run():
    """Return the rate from A to B in the 100 ns without bias, in 1/ps, and the number of transitions."""
    data = load()
    side = side_of(np.degrees(data["phi"]))
    known = side[side >= 0]
    crossings = int(np.count_nonzero(np.diff(known) == 1))
    last = side[np.maximum.accumulate(np.where(side >= 0, np.arange(len(side)), 0))]
    step = float(data["time_ps"][1] - data["time_ps"][0])
    return crossings / (step * np.count_nonzero(last == 0)), crossings


def compared(fractions, count, q):
    """Compare the fractions of shots that reach B with q, and their spread with the spread of counts alone."""
    noise = np.mean(fractions * (1 - fractions)) / (count - 1)
    return {
        "mean": float(fractions.mean()),
        "spread": float(fractions.std(ddof=1)),
        "spread of q = 1/2": float(0.5 / np.sqrt(count)),
        "error of q": float(np.sqrt(max(np.mean((fractions - q) ** 2) - noise, 0))),
        "bias of q": float(np.mean(q - fractions)),
        "between .25 and .75": float(np.mean((fractions > 0.25) & (fractions < 0.75))),
    }


def all_fits(out, molecule, frames, weight, side):
    """Return the committors of all sets of columns, and their results as plain data."""
    models, found = {}, {}
    for name in TORSIONS:
        model, seconds = fitted(out, molecule, name, frames, weight, side)
        models[name] = model
        found[name] = {
            "columns": NAMES[name],
            "flux": model.flux_,
            "interval": model.flux_interval_.tolist(),
            "held-out": -model.best_score_,
            "CPU seconds": seconds,
            "kernel": f"{model.kernel_!r}, {type(model.basis_).__name__}",
            "reasons": model.trust_.reasons,
        }
        print(found[name], flush=True)
    return models, found


def all_shots(out, molecule, model, inputs, starts, count, seed):
    """Return for each start the fraction of shots that reach B, the mean of dq/dt of these shots, and mean times in ps.

    Then the numbers of shots with dq/dt > 0 that reach B, of all shots with dq/dt > 0, and of the others that reach B.

    In the stationary state, E[dq/dt δ(q - 1/2); B is reached next] is the flux, with or without inertia: paths from B
    to B cross the surface equally often in both directions.
    """
    found = []
    for i, start in enumerate(starts):
        path = out / f"shots_{i:02}.npz"
        one = stored(path, lambda start=start, i=i: shots(molecule, start, count, 1000 * (i + 1) + seed))
        reached = one["ends"] == 1
        fraction = reached.sum() / np.count_nonzero(one["ends"] >= 0)
        speed = speeds(model, inputs, start, one["velocities"])
        ahead = [reached[speed > 0].sum(), np.count_nonzero(speed > 0), reached[speed <= 0].sum()]
        found.append((fraction, np.mean(speed * reached), one["steps"].mean() * STEP_PS, *ahead))
        print(f"configuration {i + 1} of {len(starts)}: {fraction:.2f} of the shots reach B", flush=True)
    return np.array(found).T


def main():
    """Simulate, fit, shoot and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("alanine_committor"))
    parser.add_argument("--quick", action="store_true", help="4 ns and 10 configurations")
    parser.add_argument("--shots", type=int, default=24, help="shots from each configuration")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    nanoseconds, count = (4.0, 10) if options.quick else (20.0, 50)
    molecule = Molecule()
    frames, weight = biased_frames(options.out, molecule, nanoseconds, options.seed)
    frames, side = frames.astype(float), side_of(phi_of(molecule, frames))
    models, found = all_fits(options.out, molecule, frames, weight, side)
    best = min([name for name in found if name != "plain"], key=lambda name: found[name]["held-out"])
    inputs, model = columns(molecule, best), models[best]
    q = model.predict(descriptors(inputs, frames))
    rows = chosen_rows(q, weight, side, count, options.seed)
    fractions, flow, lengths, *ahead = all_shots(
        options.out, molecule, model, inputs, frames[rows], options.shots, options.seed
    )
    density = weight[(abs(q - 0.5) < WINDOW) & (side < 0)].sum() / weight.sum() / (2 * WINDOW)
    brute, transitions = long_run()
    results = {
        "frames": len(frames),
        "effective": effective_sample_size(weight),
        "between": int(np.count_nonzero((q > 0.05) & (q < 0.95))),
        "sets (degrees of phi)": SETS,
        "fits": found,
        "best": best,
        "shots": options.shots,
        "distinct configurations": len(set(rows.tolist())),
        "mean time of a shot (ps)": float(lengths.mean()),
        "fraction for dq/dt > 0": ahead[0].sum() / ahead[1].sum(),
        "fraction for dq/dt < 0": ahead[2].sum() / (count * options.shots - ahead[1].sum()),
        "comparison": {
            name: compared(fractions, options.shots, one.predict(descriptors(columns(molecule, name), frames[rows])))
            for name, one in models.items()
        },
        "rate from shots (1/ns)": 1000 * density * flow.mean() / (1 - weight @ q / weight.sum()),
        "its relative error": float(flow.std(ddof=1) / np.sqrt(count) / flow.mean()),
        "rate of the diffusion (1/ns)": 1000 * model.rate_,
        "rate of the long run (1/ns)": 1000 * brute,
        "transitions of the long run": transitions,
        "fractions": fractions.tolist(),
        "q": q[rows].tolist(),
        "versions": {"kdmaps": kdmaps.__version__, "openmm": openmm.__version__, "python": platform.python_version()},
    }
    (options.out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    draw(options.out / "committor.png", molecule, frames, q, rows, results)


if __name__ == "__main__":
    main()
