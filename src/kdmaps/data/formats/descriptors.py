"""Columns computed from the frames of a trajectory (mdtraj): torsions, distances, contacts, superposed atoms."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

#: Names of the descriptors of a trajectory file.
DESCRIPTORS = ("heavy-atoms", "dihedrals", "distances", "contacts", "atoms")
#: Dihedrals of mdtraj, with the place of an atom of the named residue in a quartet of atoms.
DIHEDRALS = {"phi": 1, "psi": 0, "omega": 0, **{f"chi{k}": 0 for k in range(1, 6)}}
#: More columns need a selection: a fit takes time in proportion to their number.
MOST_COLUMNS = 5_000
#: Elements whose bonds are checked, and the largest length of a bond between them in nm; S–S bonds have 0.21.
CHECKED_ELEMENTS, LONGEST_BOND = frozenset("CNOPS"), 0.25


class Descriptor(NamedTuple):
    """Columns of frames."""

    names: list[str]
    inputs: list[str]  # definition of each column as in `kdmaps export --inputs`; "" if it has none
    compute: Callable[[Any], np.ndarray]


def make_descriptor(text: str, first: Any) -> Descriptor:
    """Return the descriptor of a text such as "dihedrals:phi,psi+distances:name CA" for frames like the first."""
    parts = []
    for one in text.split("+"):
        kind, _, choice = (part.strip() for part in one.partition(":"))
        parts.append(_KINDS[kind](first, choice))
        if not parts[-1].names:
            known = ", ".join(DESCRIPTORS)
            raise ValueError(f"descriptor={one.strip()!r}: the topology has none; choose another of {known}.")
    names = [name for part in parts for name in part.names]
    if len(names) > MOST_COLUMNS:
        raise ValueError(
            f"descriptor={text!r} has {len(names)} columns; select fewer atoms, as in distances:name CA (the selection "
            "language of mdtraj)."
        )
    if len(set(names)) < len(names):
        raise ValueError(f"descriptor={text!r} has a column twice; name every kind once.")
    inputs = [one for part in parts for one in part.inputs]
    return Descriptor(names, inputs, lambda frames: np.hstack([part.compute(frames) for part in parts]))


def check_descriptor(text: str) -> None:
    """Raise a ValueError unless a text names known descriptors."""
    for one in text.split("+"):
        if one.partition(":")[0].strip() not in DESCRIPTORS:
            raise ValueError(
                f"descriptor must be one of {', '.join(DESCRIPTORS)}, several joined by +, with a choice after a colon "
                f"(dihedrals:phi,chi1, distances:name CA), got {text!r}."
            )


def _select(first: Any, selection: str) -> np.ndarray:
    """Return the selected atoms, by default all except hydrogen."""
    atoms = first.topology
    if not selection:
        return np.array([a.index for a in atoms.atoms if a.element is None or a.element.symbol != "H"])
    try:
        return np.asarray(atoms.select(selection))
    except Exception as error:  # whatever the parser raises
        reason = str(error).partition("\n")[0]
        raise ValueError(f"descriptor: mdtraj does not understand the selection {selection!r} ({reason}).") from error


def _aligned(first: Any, choice: str) -> Descriptor:
    """Return coordinates, superposed on the first frame and centred."""
    atoms = _select(first, choice)
    if 0 < len(atoms) < 3:
        raise ValueError(f"descriptor: {choice!r} selects {len(atoms)} atom(s); a superposition needs three.")
    names = [f"{axis} {first.topology.atom(i)}" for i in atoms for axis in "xyz"]

    def compute(frames: Any) -> np.ndarray:
        xyz = frames.superpose(first, 0, atom_indices=atoms).xyz[:, atoms]
        return (xyz - xyz.mean(axis=1, keepdims=True)).reshape(len(frames), -1)

    return Descriptor(names, [""] * len(names), compute)


def dihedrals(first: Any, kind: str) -> dict[str, np.ndarray]:
    """Return the four atoms of each dihedral of a kind, by name: "phi ALA2"."""
    import mdtraj

    quartets = getattr(mdtraj, f"compute_{kind}")(first[0])[0]
    return {f"{kind} {first.topology.atom(quartet[DIHEDRALS[kind]]).residue}": quartet for quartet in quartets}


def _dihedrals(first: Any, choice: str) -> Descriptor:
    """Return cosine and sine of dihedrals, by default φ and ψ."""
    import mdtraj

    kinds = [kind.strip() for kind in (choice or "phi,psi").split(",")]
    kinds = [one for kind in kinds for one in ([f"chi{k}" for k in range(1, 6)] if kind == "chi" else [kind])]
    if unknown := [kind for kind in kinds if kind not in DIHEDRALS]:
        raise ValueError(f"descriptor: dihedrals are {', '.join(DIHEDRALS)} and chi (all of them), not {unknown[0]!r}.")
    found = {name: atoms for kind in kinds for name, atoms in dihedrals(first, kind).items()}
    inputs = [f"torsion:{'-'.join(map(str, atoms))}" for atoms in found.values() for _ in range(2)]
    quartets = np.array([*found.values()]).reshape(-1, 4)

    def compute(frames: Any) -> np.ndarray:
        angles = mdtraj.compute_dihedrals(frames, quartets)
        return np.stack([np.cos(angles), np.sin(angles)], axis=2).reshape(len(frames), -1)

    return Descriptor([f"{part} {name}" for name in found for part in ("cos", "sin")], inputs, compute)


def _distances(first: Any, choice: str) -> Descriptor:
    """Return the distances between all pairs of the selected atoms, in nm."""
    import mdtraj

    atoms = _select(first, choice)
    if len(atoms) * (len(atoms) - 1) > 2 * MOST_COLUMNS:
        raise ValueError(
            f"descriptor: {len(atoms)} atoms have {len(atoms) * (len(atoms) - 1) // 2} distances; select fewer, as in "
            "distances:name CA."
        )
    pairs = np.array([(i, j) for n, i in enumerate(atoms) for j in atoms[n + 1 :]]).reshape(-1, 2)
    names = [f"{first.topology.atom(i)} to {first.topology.atom(j)}" for i, j in pairs]
    inputs = [f"distance:{i}-{j}" for i, j in pairs]
    return Descriptor(names, inputs, lambda frames: mdtraj.compute_distances(frames, pairs))


def _contacts(first: Any, choice: str) -> Descriptor:
    """Return the smallest distances between heavy atoms of residues three or more apart, in nm."""
    import mdtraj

    chosen = {first.topology.atom(i).residue.index for i in _select(first, choice)}
    residues = [r for r in first.topology.residues if r.index in chosen and not r.is_water]
    pairs = [(a, b) for n, a in enumerate(residues) for b in residues[n + 1 :] if b.index - a.index > 2]
    if len(pairs) > MOST_COLUMNS:
        raise ValueError(f"descriptor: {len(pairs)} pairs of residues; select fewer, as in contacts:resid 0 to 50.")
    numbers = [(a.index, b.index) for a, b in pairs]

    def compute(frames: Any) -> np.ndarray:
        return mdtraj.compute_contacts(frames, numbers, scheme="closest-heavy", ignore_nonprotein=False)[0]

    return Descriptor([f"contact {a} {b}" for a, b in pairs], [""] * len(pairs), compute)


_KINDS: dict[str, Callable[[Any, str], Descriptor]] = {
    "heavy-atoms": lambda first, choice: _aligned(first, ""),
    "dihedrals": _dihedrals,
    "distances": _distances,
    "contacts": _contacts,
    "atoms": _aligned,
}


def whole(frames: Any, where: str = "X", begin: int = 0) -> Any:
    """Return frames with whole molecules; raise if a bond stays too long, as for atoms in another order.

    Molecules that are split across a periodic box are made whole. `begin` is the number of frames before these.
    """
    pairs = np.empty((0, 2)) if frames.topology is None else _bonds(frames.topology)
    if not len(pairs) or not (long := _lengths(frames, pairs) > LONGEST_BOND).any():
        return frames
    if frames.unitcell_lengths is not None:
        frames = _without_jumps(frames.make_molecules_whole())
        long = _lengths(frames, pairs) > LONGEST_BOND
    if long.any():
        frame, bond = np.argwhere(long)[0]
        one, other = (frames.topology.atom(i) for i in pairs[bond])
        raise ValueError(
            f"{where}: in frame {begin + frame} the bond {one} to {other} is "
            f"{_lengths(frames[frame], pairs)[0, bond]:.2f} nm long. The topology lists the atoms in another order, or "
            "molecules are split across the periodic box of a trajectory without its size. Give the topology that the "
            "trajectory was written with, and whole molecules (gmx trjconv -pbc whole)."
        )
    return frames


def _without_jumps(frames: Any) -> Any:
    """Move every molecule to the periodic image that is nearest to its position in the first frame, in place."""
    box = frames.unitcell_vectors
    for molecule in frames.topology.find_molecules():
        atoms = [atom.index for atom in molecule]
        centres = frames.xyz[:, atoms].mean(axis=1)
        images = np.rint(np.einsum("ni,nij->nj", centres - centres[0], np.linalg.inv(box)))
        frames.xyz[:, atoms] -= np.einsum("ni,nij->nj", images, box)[:, None]
    return frames


def _bonds(topology: Any) -> np.ndarray:
    """Return the pairs of bonded atoms, other than hydrogen and metals."""
    found = [
        (a, b) for a, b in topology.bonds if {getattr(x.element, "symbol", "") for x in (a, b)} <= CHECKED_ELEMENTS
    ]
    return np.array([(a.index, b.index) for a, b in found]).reshape(-1, 2)


def _lengths(frames: Any, pairs: np.ndarray) -> np.ndarray:
    return np.linalg.norm(frames.xyz[:, pairs[:, 0]] - frames.xyz[:, pairs[:, 1]], axis=2)
