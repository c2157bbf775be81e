"""The data set, its geometry, and the two sets of coordinates used in the analysis."""

from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
#: Time between frames.
STEP_PS = 5.0
NAMES = {"dihedrals": "(cos, sin) of φ and ψ", "heavy atoms": "aligned heavy atoms"}
#: Heavy atoms, in the order of the data set, that span the dihedrals.
DIHEDRALS = {"phi": (1, 3, 4, 6), "psi": (3, 4, 6, 8)}


def load() -> dict[str, np.ndarray]:
    """Load the arrays of the data set, which README.md describes."""
    with np.load(HERE / "alanine_dipeptide.npz", allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def coordinates(data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return (cos, sin) of the dihedrals (4 columns), and the aligned heavy atoms in nm (30 columns)."""
    phi, psi = data["phi"].astype(np.float64), data["psi"].astype(np.float64)
    return {
        "dihedrals": np.column_stack([np.cos(phi), np.sin(phi), np.cos(psi), np.sin(psi)]),
        "heavy atoms": data["xyz_aligned"].reshape(len(phi), -1).astype(np.float64),
    }


def place(modes: np.ndarray, reference: np.ndarray) -> dict[str, list[float]]:
    """Compare modes with eigenvectors 1 and 2 of the reference.

    Returns
    -------
    dict
        "in_place": |correlation| of mode k with eigenvector k. "correlations": the largest one of any of the modes.
    """
    table = np.abs(np.corrcoef(modes.T, reference[:, :2].T)[: modes.shape[1], modes.shape[1] :])
    return {
        "in_place": np.diagonal(table).round(4).tolist(),
        "correlations": table.max(axis=0).round(4).tolist(),
    }


def dihedral(xyz: np.ndarray, name: str) -> np.ndarray:
    """Compute the dihedral "phi" or "psi" of coordinates (n_frames, 10, 3), in radians from -π to π."""
    a, b, c, d = (xyz[:, i] for i in DIHEDRALS[name])
    axis = c - b
    left, right = np.cross(b - a, axis), np.cross(axis, d - c)
    sine = np.sum(np.cross(left, right) * axis, axis=1) / np.linalg.norm(axis, axis=1)
    return np.arctan2(sine, np.sum(left * right, axis=1))


def align(xyz: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Centre all frames and rotate them onto the reference with the least squared distance (Kabsch)."""
    centred = xyz - xyz.mean(axis=1, keepdims=True)
    target = reference - reference.mean(axis=0)
    left, _, right = np.linalg.svd(np.einsum("nai,aj->nij", centred, target))
    mirror = np.ones((len(xyz), 3))
    mirror[:, 2] = np.sign(np.linalg.det(left @ right))  # a rotation, not a reflection
    return centred @ (left * mirror[:, None, :] @ right)
