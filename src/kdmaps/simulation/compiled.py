"""Compiled loops of a simulation step: descriptors and their gradients, and waves."""

import numpy as np
from numba import njit

#: Atoms and first columns of torsions, atoms and columns of pairs.
Internal = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@njit(nogil=True, cache=True)
def _cross(a, b):
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


@njit(nogil=True, cache=True)
def _dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@njit(nogil=True, cache=True)
def internal_columns(frames: np.ndarray, internal: Internal, out: np.ndarray) -> None:
    """Write cos and sin of torsions, and distances, of all frames to their columns of `out`.

    A torsion is positive if the far bond is turned clockwise (IUPAC).
    """
    torsions, torsion_columns, pairs, pair_columns = internal
    for i in range(frames.shape[0]):
        x = frames[i]
        for k in range(torsions.shape[0]):
            t = torsions[k]
            f, g, h = x[t[1]] - x[t[0]], x[t[2]] - x[t[1]], x[t[3]] - x[t[2]]
            m, n = _cross(f, g), _cross(g, h)
            angle = np.arctan2(_dot(f, n) * np.sqrt(_dot(g, g)), _dot(m, n))
            out[i, torsion_columns[k]] = np.cos(angle)
            out[i, torsion_columns[k] + 1] = np.sin(angle)
        for k in range(pairs.shape[0]):
            bond = x[pairs[k, 1]] - x[pairs[k, 0]]
            out[i, pair_columns[k]] = np.sqrt(_dot(bond, bond))


@njit(nogil=True, cache=True)
def internal_pull(x: np.ndarray, row: np.ndarray, slopes: np.ndarray, internal: Internal, out: np.ndarray) -> None:
    """Add Σ_j slope_j ∇column_j, with respect to the positions x, to `out`; `row` holds the columns at x.

    With bonds f, g, h of a torsion θ, m = f×g and n = g×h (A. Blondel and M. Karplus, J. Comput. Chem. 17, 1132
    (1996)): ∇_1 θ = -|g| m/|m|², ∇_4 θ = |g| n/|n|², and the inner two follow from translation and rotation.
    """
    torsions, torsion_columns, pairs, pair_columns = internal
    for k in range(torsions.shape[0]):
        t, j = torsions[k], torsion_columns[k]
        slope = slopes[j + 1] * row[j] - slopes[j] * row[j + 1]  # of cos θ and sin θ with respect to θ
        f, g, h = x[t[1]] - x[t[0]], x[t[2]] - x[t[1]], x[t[3]] - x[t[2]]
        m, n = _cross(f, g), _cross(g, h)
        length = np.sqrt(_dot(g, g))
        first = -slope * length / _dot(m, m) * m
        last = slope * length / _dot(n, n) * n
        u, v = _dot(f, g) / length**2, _dot(h, g) / length**2
        out[t[0]] += first
        out[t[3]] += last
        out[t[1]] += -(1 + u) * first + v * last
        out[t[2]] += u * first - (1 + v) * last
    for k in range(pairs.shape[0]):
        i, j = pairs[k, 0], pairs[k, 1]
        force = slopes[pair_columns[k]] / row[pair_columns[k]] * (x[j] - x[i])
        out[i] -= force
        out[j] += force


@njit(nogil=True, cache=True)
def superpose(x: np.ndarray, atoms: np.ndarray, reference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return atoms of x, centred and rotated onto a centred reference by least squares (Kabsch), and the rotation."""
    centred = x[atoms]
    centred -= centred.sum(axis=0) / len(atoms)
    left, _, right = np.linalg.svd(centred.T @ reference)
    if np.linalg.det(left) * np.linalg.det(right) < 0:  # no reflections
        left[:, 2] *= -1
    rotation = left @ right
    return centred @ rotation, rotation


@njit(nogil=True, cache=True)
def superposed_columns(frames: np.ndarray, atoms: np.ndarray, reference: np.ndarray, out: np.ndarray) -> None:
    """Write the superposed coordinates of all frames to `out`, shape (n, 3·atoms)."""
    for i in range(frames.shape[0]):
        out[i] = superpose(frames[i], atoms, reference)[0].ravel()


@njit(nogil=True, cache=True)
def superposed_pull(
    x: np.ndarray, slopes: np.ndarray, atoms: np.ndarray, reference: np.ndarray, out: np.ndarray
) -> None:
    """Add Σ_j slope_j ∇y_j of superposed coordinates y to `out`.

    At the optimum Σ y×r = 0 with the reference r. A change u of the coordinates in the rotated frame therefore
    rotates the fit by ω = K⁻¹ Σ u×r with K = tr(M) I - M, M = Σ y rᵀ, and δy = u + ω×y. Hence ∂f/∂u = g + r×q with
    q = K⁻¹ Σ y×g for the slopes g; the mean is removed because the centre follows.
    """
    y, rotation = superpose(x, atoms, reference)
    g = slopes.copy().reshape(y.shape)
    M = y.T @ reference
    torque = np.cross(y, g).sum(axis=0)
    q = np.linalg.solve((M[0, 0] + M[1, 1] + M[2, 2]) * np.eye(3) - (M + M.T) / 2, torque)
    g = (g + np.cross(reference, np.broadcast_to(q, y.shape))) @ rotation.T
    g -= g.sum(axis=0) / len(atoms)
    for k in range(y.shape[0]):
        out[atoms[k]] += g[k]


@njit(nogil=True, cache=True)
def waves(x: np.ndarray, frequencies: np.ndarray, cosines: np.ndarray, sines: np.ndarray, slope: np.ndarray) -> float:
    """Return Σ_m c_m cos(w_mᵀx) + s_m sin(w_mᵀx), and write its gradient to `slope`."""
    value = 0.0
    slope[:] = 0
    for m in range(frequencies.shape[0]):
        angle = 0.0
        for j in range(x.shape[0]):
            angle += frequencies[m, j] * x[j]
        cosine, sine = np.cos(angle), np.sin(angle)
        value += cosines[m] * cosine + sines[m] * sine
        change = sines[m] * cosine - cosines[m] * sine
        for j in range(x.shape[0]):
            slope[j] += change * frequencies[m, j]
    return value
