"""Trajectories: files (read by mdtraj), and objects of mdtraj and MDAnalysis."""

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from kdmaps.data.formats.arrays import from_array
from kdmaps.data.formats.base import block_rows, reading
from kdmaps.data.formats.descriptors import DIHEDRALS, dihedrals, make_descriptor, whole
from kdmaps.data.table import Blocks, Table
from kdmaps.utils.files import write_text
from kdmaps.utils.optional import optional

#: Formats that store the time of every frame, in ps; for others mdtraj counts frames.
TIMED = (".xtc", ".trr", ".tng", ".h5", ".hdf5", ".nc", ".netcdf", ".ncdf")


def open_trajectory(path: Path, topology: Path, descriptor: str, reference: Path) -> Table:
    """Inspect a trajectory file and return the columns of a descriptor; `reference` has the frame of reference."""
    mdtraj = optional("mdtraj", "trajectories", "Trajectories")
    what = f"a trajectory with the topology {topology}"

    def read(file: Path, chunk: int) -> Iterator[Any]:
        with reading(file, what):
            frames = mdtraj.iterload(str(file), top=atoms, chunk=chunk)
            yield from _quietly(frames) if file.suffix.lower() == ".dcd" else frames

    with reading(path, what):
        atoms = mdtraj.load_topology(str(topology))
    first = whole(next(read(reference, 1)), str(reference))
    described = make_descriptor(descriptor, first)
    seen: list[np.ndarray] = []  # the times of the last pass over the frames

    def frames() -> Iterator[Any]:
        begin = 0
        for part in read(path, block_rows(3 * atoms.n_atoms)):
            yield whole(part, str(path), begin)
            begin += len(part)

    def blocks() -> Blocks:
        found = []
        for part in frames():
            found.append(part.time)
            yield described.compute(part)
        seen[:] = found

    def times() -> np.ndarray:
        if not seen:
            for _ in blocks():
                pass
        return np.concatenate(seen)

    known: dict[str, Any] = {"times": times, "time_unit": "ps"} if path.suffix.lower() in TIMED else {}
    return Table.from_blocks(
        len(described.names),
        blocks,
        names=described.names,
        inputs=described.inputs,
        ordered=True,
        extras=_backbone(mdtraj, first, frames),
        **known,
    )


def _quietly(frames: Iterator[Any]) -> Iterator[Any]:
    """Yield from an iterator, without the lines that the compiled reader of DCD files prints on standard output."""
    while True:
        sys.stdout.flush()
        before, silent = os.dup(1), os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        try:
            part = next(frames, None)
        finally:
            os.dup2(before, 1)
            os.close(before)
            os.close(silent)
        if part is None:
            return
        yield part


def _backbone(mdtraj: Any, first: Any, frames: Callable[[], Iterator[Any]]) -> dict[str, Callable[[], Blocks]]:
    """Return the dihedrals in radians as extras: "phi ALA2", or also "phi" if there is only one."""
    found: dict[str, Callable[[], Blocks]] = {}
    known: dict[str, np.ndarray] = {}  # all angles of a kind, from one pass over the frames

    def blocks(kind: str, quartets: np.ndarray, number: int) -> Blocks:
        if kind not in known:
            known[kind] = np.concatenate([mdtraj.compute_dihedrals(part, quartets) for part in frames()])
        yield known[kind][:, [number]].astype(np.float64)

    for kind in DIHEDRALS:
        quartets = dihedrals(first, kind)
        atoms = np.array([*quartets.values()])
        found |= {name: partial(blocks, kind, atoms, number) for number, name in enumerate(quartets)}
        if len(quartets) == 1:
            found[kind] = partial(blocks, kind, atoms, 0)
    return found


def write_frames(path: Path, topology: Path, places: Sequence[tuple[Path, int]]) -> None:
    """Write frames (file and number), superposed on the first, as the models of a PDB file."""
    mdtraj = optional("mdtraj", "trajectories", "Trajectories")
    atoms = mdtraj.load_topology(str(topology))
    frames = mdtraj.join([next(_quietly(mdtraj.iterload(str(f), top=atoms, skip=n, chunk=1))) for f, n in places])
    with TemporaryDirectory() as place:
        file = Path(place) / "frames.pdb"
        whole(frames).superpose(frames).save_pdb(str(file))
        write_text(path, re.sub(r"(?m)^REMARK.*\n", "", file.read_text()))  # without the date


def coordinates(frames: Any) -> np.ndarray:
    """Return the coordinates of an mdtraj trajectory with whole molecules, one row per frame."""
    return whole(frames).xyz.reshape(len(frames), -1)


def from_mdtraj(trajectory: Any) -> Table:
    """Return the coordinates of an mdtraj trajectory as columns."""
    return from_array(coordinates(trajectory), ordered=True, times=lambda: trajectory.time, time_unit="ps")


def from_mdanalysis(group: Any) -> Table:
    """Return the coordinates of an MDAnalysis universe or group of atoms as columns."""
    atoms = group.atoms
    frames, width = atoms.universe.trajectory, 3 * atoms.n_atoms

    def blocks() -> Blocks:
        rows = block_rows(width)
        for begin in range(0, len(frames), rows):
            yield np.array([atoms.positions.ravel() for _ in frames[begin : begin + rows]])

    known: dict[str, Any] = {"times": lambda: np.array([frame.time for frame in frames]), "time_unit": "ps"}
    return Table.from_blocks(width, blocks, n_samples=len(frames), ordered=True, **known)
