"""Trajectories: files (read by mdtraj), and objects of mdtraj and MDAnalysis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kdmaps.data.formats.base import block_rows, reading, row_blocks
from kdmaps.data.table import Blocks, Table
from kdmaps.utils.optional import optional

#: Formats that store the time of every frame, in ps; for others mdtraj counts frames.
TIMED = (".xtc", ".trr", ".tng", ".h5", ".hdf5", ".nc", ".netcdf", ".ncdf")
#: Names of the columns of a descriptor, and the function that computes them.
Descriptor = tuple[list[str], Callable[[Any], np.ndarray]]


def open_trajectory(path: Path, topology: Path, descriptor: str, reference: Path) -> Table:
    """Inspect a trajectory file and return the columns of a descriptor; `reference` has the frame of reference."""
    mdtraj = optional("mdtraj", "trajectories", "Trajectories")
    what = f"a trajectory with the topology {topology}"
    with reading(path, what):
        atoms = mdtraj.load_topology(str(topology))
        first = next(mdtraj.iterload(str(reference), top=atoms, chunk=1))
    names, describe = _DESCRIPTORS[descriptor](first)
    if not names:
        raise ValueError(f"{topology} lacks {descriptor}; choose another descriptor ({', '.join(DESCRIPTORS)}).")

    seen: list[np.ndarray] = []  # the times of the last pass over the frames

    def frames() -> Iterator[Any]:
        with reading(path, what):
            yield from mdtraj.iterload(str(path), top=atoms, chunk=block_rows(3 * atoms.n_atoms))

    def blocks() -> Blocks:
        found = []
        for part in frames():
            found.append(part.time)
            yield describe(part)
        seen[:] = found

    def times() -> np.ndarray:
        if not seen:
            for _ in blocks():
                pass
        return np.concatenate(seen)

    known: dict[str, Any] = {"times": times} if path.suffix.lower() in TIMED else {}
    return Table.from_blocks(
        len(names), blocks, names=names, ordered=True, extras=_backbone(mdtraj, first, frames), **known
    )


def _backbone(mdtraj: Any, first: Any, frames: Callable[[], Iterator[Any]]) -> dict[str, Callable[[], Blocks]]:
    """Return the backbone dihedrals in radians as extras: "phi ALA2", or also "phi" if there is only one."""
    found: dict[str, Callable[[], Blocks]] = {}
    for kind, compute, own in _dihedral_kinds(mdtraj):
        quartets = compute(first)[0]

        def blocks(quartet: np.ndarray) -> Blocks:
            return (mdtraj.compute_dihedrals(part, quartet[None]).astype(np.float64) for part in frames())

        for quartet in quartets:
            found[f"{kind} {first.topology.atom(quartet[own]).residue}"] = partial(blocks, quartet)
        if len(quartets) == 1:
            found[kind] = partial(blocks, quartets[0])
    return found


def _dihedral_kinds(mdtraj: Any) -> tuple[tuple[str, Any, int], ...]:
    """Return names and functions of the backbone dihedrals, and the place of an atom of the named residue."""
    return ("phi", mdtraj.compute_phi, 1), ("psi", mdtraj.compute_psi, 0)  # of C N CA C and N CA C N


def _heavy_atoms(first: Any) -> Descriptor:
    """Return the coordinates of all atoms except hydrogen, superposed on the first frame."""
    atoms = first.topology
    heavy = [atom.index for atom in atoms.atoms if atom.element is None or atom.element.symbol != "H"]
    names = [f"{axis} {atoms.atom(i)}" for i in heavy for axis in "xyz"]
    return names, lambda frames: coordinates(frames.superpose(first, 0, atom_indices=heavy), heavy)


def _dihedrals(first: Any) -> Descriptor:
    """Return cosine and sine of the backbone dihedrals φ and ψ."""
    import mdtraj

    names = []
    for kind, compute, own in _dihedral_kinds(mdtraj):
        residues = [first.topology.atom(quartet[own]).residue for quartet in compute(first)[0]]
        names += [f"{part} {kind} {residue}" for residue in residues for part in ("cos", "sin")]

    def describe(frames: Any) -> np.ndarray:
        angles = np.hstack([compute(frames)[1] for _, compute, _ in _dihedral_kinds(mdtraj)])
        return np.stack([np.cos(angles), np.sin(angles)], axis=2).reshape(len(frames), -1)

    return names, describe


_DESCRIPTORS = {"heavy-atoms": _heavy_atoms, "dihedrals": _dihedrals}
#: Names of the descriptors of a trajectory file.
DESCRIPTORS = tuple(_DESCRIPTORS)


def coordinates(frames: Any, atoms: Any = slice(None)) -> np.ndarray:
    """Return the coordinates of an mdtraj trajectory, one row per frame."""
    return frames.xyz[:, atoms].reshape(len(frames), -1)


def from_mdtraj(trajectory: Any) -> Table:
    """Return the coordinates of an mdtraj trajectory as columns."""
    rows = coordinates(trajectory)
    return Table.from_blocks(
        rows.shape[1], lambda: row_blocks(rows), n_samples=len(rows), times=lambda: trajectory.time
    )


def from_mdanalysis(group: Any) -> Table:
    """Return the coordinates of an MDAnalysis universe or group of atoms as columns."""
    atoms = group.atoms
    frames, width = atoms.universe.trajectory, 3 * atoms.n_atoms

    def blocks() -> Blocks:
        rows = block_rows(width)
        for begin in range(0, len(frames), rows):
            yield np.array([atoms.positions.ravel() for _ in frames[begin : begin + rows]])

    def times() -> np.ndarray:
        return np.array([frame.time for frame in frames])

    return Table.from_blocks(width, blocks, n_samples=len(frames), times=times)
