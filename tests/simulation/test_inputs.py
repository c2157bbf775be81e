"""Columns of frames, and their chain rule compared with finite differences."""

import numpy as np
import pytest
from molecules import CHAIN, INPUTS, frames
from numpy.testing import assert_allclose

from kdmaps.simulation import AlignedPositions, Distance, Torsion, descriptors, jacobians
from kdmaps.simulation.inputs import Columns

mdtraj = pytest.importorskip("mdtraj")


@pytest.fixture(scope="module")
def trajectory():
    topology = mdtraj.Topology()
    residue = topology.add_residue("X", topology.add_chain())
    for _ in CHAIN:
        topology.add_atom("C", mdtraj.element.carbon, residue)
    return mdtraj.Trajectory(frames(50), topology)  # in single precision


def test_torsions_and_distances_agree_with_mdtraj(trajectory):
    X = descriptors([Torsion((0, 1, 2, 3)), Distance(2, 5), Torsion((5, 4, 3, 2))], trajectory.xyz)
    angles = mdtraj.compute_dihedrals(trajectory, [[0, 1, 2, 3], [5, 4, 3, 2]], periodic=False)
    expected = np.column_stack([np.cos(angles[:, 0]), np.sin(angles[:, 0])])
    assert_allclose(X[:, :2], expected, atol=1e-5)  # single precision of mdtraj
    assert_allclose(X[:, 3:], np.column_stack([np.cos(angles[:, 1]), np.sin(angles[:, 1])]), atol=1e-5)
    assert_allclose(X[:, 2], mdtraj.compute_distances(trajectory, [[2, 5]], periodic=False)[:, 0], atol=1e-5)


def test_aligned_positions_agree_with_mdtraj(trajectory):
    atoms = [0, 2, 3, 5, 6]
    reference = mdtraj.Trajectory(CHAIN[None], trajectory.topology)
    aligned = mdtraj.Trajectory(trajectory.xyz, trajectory.topology).superpose(reference, atom_indices=atoms)
    expected = aligned.xyz[:, atoms] - CHAIN[atoms].mean(axis=0)
    X = descriptors([AlignedPositions(atoms, CHAIN[atoms])], trajectory.xyz)
    assert_allclose(X, expected.reshape(len(X), -1), atol=2e-5)  # single precision of mdtraj


def test_mirror_image_is_not_reflected():
    """A mirrored chain is rotated as by scipy."""
    from scipy.spatial.transform import Rotation

    mirrored = CHAIN * [1, 1, -1]
    X = descriptors([AlignedPositions(range(7), CHAIN)], mirrored[None]).reshape(7, 3)
    centred, reference = mirrored - mirrored.mean(axis=0), CHAIN - CHAIN.mean(axis=0)
    best = Rotation.align_vectors(reference, centred)[0].apply(centred)
    assert_allclose(X, best, atol=1e-7)


@pytest.mark.parametrize("inputs", INPUTS.values(), ids=INPUTS)
def test_chain_rule(inputs):
    columns, rng = Columns(inputs), np.random.default_rng(1)
    x, slopes, direction = frames(1, seed=5)[0], rng.standard_normal(columns.n_columns), rng.standard_normal((7, 3))
    pulled = columns.pull(x, columns.values(x[None])[0], slopes)
    step = 1e-5  # third derivatives of order 1e3: an error of 1e-7
    ends = columns.values(np.array([x + step * direction, x - step * direction])) @ slopes
    assert_allclose(np.sum(pulled * direction), (ends[0] - ends[1]) / (2 * step), rtol=1e-6, atol=1e-6)
    # Columns are invariant under translation and rotation.
    assert_allclose(pulled.sum(axis=0), 0, atol=1e-10)
    assert_allclose(np.cross(x, pulled).sum(axis=0), 0, atol=1e-10)


def test_invalid_inputs():
    positions = frames(3)
    with pytest.raises(ValueError, match="atom 9 does not exist"):
        descriptors([Torsion((0, 1, 2, 9))], positions)
    for atoms in ((0, 1, 2), (0, 1, 2, 2), (0, 1, 2, -1), (0, 1, 2, 1.5)):
        with pytest.raises(ValueError, match="atoms must"):
            Torsion(atoms)
    with pytest.raises(ValueError, match="atoms must"):
        Distance(1, 1)
    with pytest.raises(ValueError, match="reference must"):
        AlignedPositions((0, 1, 2), CHAIN)
    with pytest.raises(ValueError, match="lie on a line"):
        AlignedPositions((0, 1, 2), np.outer(np.arange(3), [1, 2, 3]))
    with pytest.raises(ValueError, match="frames must be"):
        descriptors([Distance(0, 1)], positions[0])
    for inputs in ([], [(0, 1, 2, 3)]):
        with pytest.raises(ValueError, match="inputs must be a list"):
            descriptors(inputs, positions)


@pytest.mark.parametrize("inputs", INPUTS.values(), ids=INPUTS)
def test_jacobians_agree_with_finite_differences(inputs):
    positions, h = frames(3), 1e-5
    found = jacobians(inputs, positions)
    for atom in range(positions.shape[1]):
        for axis in range(3):
            moved = np.zeros_like(positions)
            moved[:, atom, axis] = h
            expected = (descriptors(inputs, positions + moved) - descriptors(inputs, positions - moved)) / (2 * h)
            # Third derivatives of order 1e3: an error of 1e-7.
            assert_allclose(found[:, :, atom, axis], expected, rtol=1e-6, atol=1e-6)
