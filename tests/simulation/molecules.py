"""Frames of a small chain, models of its descriptors, and evaluation of forces by OpenMM."""

import numpy as np

import kdmaps
from kdmaps.simulation import AlignedPositions, Distance, Torsion, descriptors

#: A bent chain of seven atoms that is not its mirror image, in nm.
CHAIN = 0.15 * np.array(
    [[0, 0, 0], [1, 0, 0.1], [1.5, 0.9, 0], [2.4, 1, 0.7], [2.6, 2, 1.1], [3.4, 2.1, 2.0], [3.2, 1.2, 2.9]]
)
INPUTS = {
    "one torsion": [Torsion((0, 1, 2, 3))],
    "two torsions": [Torsion((1, 2, 3, 4)), Torsion((2, 3, 4, 5))],
    "distances": [Distance(0, 3), Distance(5, 2), Distance(1, 4)],
    "aligned": [AlignedPositions((1, 2, 4, 6), CHAIN[[1, 2, 4, 6]])],
    "all": [Distance(0, 6), AlignedPositions((5, 0, 3), CHAIN[[5, 0, 3]]), Torsion((0, 1, 2, 3))],
}


def frames(n=400, spread=0.1, seed=0):
    """Return noisy chains, each translated and rotated."""
    rng = np.random.default_rng(seed)
    noisy = CHAIN + spread * rng.uniform(-1, 1, (n, *CHAIN.shape))
    turns = np.linalg.qr(rng.standard_normal((n, 3, 3)))[0]
    turns *= np.linalg.det(turns)[:, None, None]
    return noisy @ turns + rng.standard_normal((n, 1, 3))


def fit(inputs, basis="fourier", spread=0.1, **options):
    X = descriptors(inputs, frames(spread=spread))
    settings = {"n_features": 30, "regularization": 1e-2, "random_state": 0, **options}
    return kdmaps.KernelDiffusionMap(2, basis=basis, **settings).fit(X)


def evaluate(force, positions):
    """Return the energies and forces of positions (n, atoms, 3), in double precision."""
    import openmm

    system = openmm.System()
    for _ in range(positions.shape[1]):
        system.addParticle(1.0)
    system.addForce(force)
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatform("Reference"))
    energies, forces = [], []
    for frame in positions:
        context.setPositions(frame)
        state = context.getState(energy=True, forces=True)
        energies.append(state.getPotentialEnergy()._value)
        forces.append(state.getForces(asNumpy=True)._value)
    return np.array(energies), np.array(forces)
