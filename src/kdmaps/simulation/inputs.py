"""Definition of the columns of a model: computed from frames and during simulations, exported to PLUMED."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.simulation import compiled


def _checked_atoms(atoms: Sequence[int], least: int, most: int | None = None) -> tuple[int, ...]:
    """Return atom numbers as a tuple of distinct ints."""
    numbers = tuple(np.asarray(atoms, dtype=object).ravel().tolist())
    if not all(isinstance(i, Integral) and int(i) >= 0 for i in numbers) or len(set(numbers)) < len(numbers):
        raise ValueError(f"atoms must be distinct atom numbers, counted from 0, got {atoms!r}.")
    if len(numbers) < least or (most is not None and len(numbers) > most):
        wanted = f"{least}" if most == least else f"at least {least}"
        raise ValueError(f"atoms must be {wanted} atom numbers, got {len(numbers)}.")
    return tuple(int(i) for i in numbers)


@dataclass(frozen=True)
class Torsion:
    """Cosine and sine of the torsion angle of four atoms: two columns.

    Parameters
    ----------
    atoms : sequence of 4 int
        Numbers of the atoms, counted from 0.

    Examples
    --------
    >>> import numpy as np
    >>> from kdmaps.simulation import Torsion, descriptors
    >>> frame = np.array([[1.0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 1, 1]])
    >>> descriptors([Torsion((0, 1, 2, 3))], frame[None]).round(3) + 0.0
    array([[0., 1.]])
    """

    atoms: tuple[int, ...]
    n_columns: ClassVar[int] = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "atoms", _checked_atoms(self.atoms, 4, 4))

    def plumed(self, label: str) -> tuple[list[str], list[str]]:
        """Return the lines of PLUMED input that define the columns, and the labels of the columns."""
        # By default PLUMED uses the nearest periodic image, unlike frames of whole molecules.
        angle = f"{label}: TORSION ATOMS={','.join(str(i + 1) for i in self.atoms)} NOPBC"
        waves = [f"{label}_{f}: CUSTOM ARG={label} FUNC={f}(x) PERIODIC=NO" for f in ("cos", "sin")]
        return [angle, *waves], [f"{label}_cos", f"{label}_sin"]


@dataclass(frozen=True)
class Distance:
    """Distance of two atoms in nm: one column.

    Parameters
    ----------
    i, j : int
        Numbers of the atoms, counted from 0.

    Examples
    --------
    >>> import numpy as np
    >>> from kdmaps.simulation import Distance, descriptors
    >>> descriptors([Distance(0, 1)], np.array([[[0.0, 0, 0], [0.3, 0.4, 0]]]))
    array([[0.5]])
    """

    i: int
    j: int
    n_columns: ClassVar[int] = 1

    def __post_init__(self) -> None:
        _checked_atoms(self.atoms, 2, 2)

    @property
    def atoms(self) -> tuple[int, int]:
        """The two atoms."""
        return self.i, self.j

    def plumed(self, label: str) -> tuple[list[str], list[str]]:
        """Return the lines of PLUMED input that define the columns, and the labels of the columns."""
        return [f"{label}: DISTANCE ATOMS={self.i + 1},{self.j + 1} NOPBC"], [label]


@dataclass(frozen=True, eq=False)
class AlignedPositions:
    """Positions of atoms in nm after superposition on a reference: three columns for each atom.

    The atoms are centred and rotated so that Σ |y_a - r_a|² is smallest (Kabsch), without weights. Gradients include
    the derivative of the superposition: the columns do not change if the molecule is translated or rotated.

    Parameters
    ----------
    atoms : sequence of at least 3 int
        Numbers of the atoms, counted from 0.
    reference : array-like of shape (n_atoms, 3)
        Positions of these atoms in the reference, not all on a line; they are centred.

    Examples
    --------
    >>> import numpy as np
    >>> from kdmaps.simulation import AlignedPositions, descriptors
    >>> reference = np.array([[1.0, 0, 0], [0, 2, 0], [-1, -2, 0]])
    >>> turned = reference @ np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 1]]) + 5
    >>> np.allclose(descriptors([AlignedPositions([0, 1, 2], reference)], turned[None]), reference.ravel())
    True
    """

    atoms: tuple[int, ...]
    reference: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "atoms", _checked_atoms(self.atoms, 3))
        reference = np.array(self.reference, dtype=np.float64)
        if reference.shape != (len(self.atoms), 3) or not np.isfinite(reference).all():
            raise ValueError(
                f"reference must be three finite coordinates for each of {len(self.atoms)} atoms, got an array of "
                f"shape {reference.shape}."
            )
        reference -= reference.mean(axis=0)
        extent = np.linalg.svd(reference, compute_uv=False)
        if extent[1] < 1e-6 * extent[0]:
            raise ValueError("reference: its atoms lie on a line, so the superposition is not unique; add atoms.")
        object.__setattr__(self, "reference", reference)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return 3 * len(self.atoms)

    def plumed(self, label: str) -> tuple[list[str], list[str]]:
        """Raise an error: PLUMED rounds templates to three decimals, which changes the superposition."""
        raise ValueError(
            "inputs: AlignedPositions cannot be written for PLUMED, whose FIT_TO_TEMPLATE reads a rounded PDB file; "
            "use torsions and distances, or openmm_cv."
        )


Input = Torsion | Distance | AlignedPositions


class Columns:
    """The columns of several inputs, and the chain rule to positions."""

    def __init__(self, inputs: Sequence[Input]):
        inputs = [inputs] if isinstance(inputs, Input) else list(inputs)
        unknown = [one for one in inputs if not isinstance(one, Input)]
        if unknown or not inputs:
            got = repr(unknown[0]) if unknown else "none"
            raise ValueError(f"inputs must be a list of Torsion, Distance and AlignedPositions, got {got}.")
        self.inputs = inputs
        starts = np.cumsum([0] + [one.n_columns for one in inputs])
        self.n_columns: int = int(starts[-1])
        self.n_atoms: int = 1 + max(max(one.atoms) for one in inputs)
        placed = list(zip(inputs, starts[:-1].tolist(), strict=True))
        torsions = [(one.atoms, start) for one, start in placed if isinstance(one, Torsion)]
        pairs = [(one.atoms, start) for one, start in placed if isinstance(one, Distance)]
        self._internal = *_arrays(torsions, 4), *_arrays(pairs, 2)
        self._aligned = [
            (slice(start, start + one.n_columns), np.array(one.atoms), one.reference)
            for one, start in placed
            if isinstance(one, AlignedPositions)
        ]

    def check(self, n_atoms: int) -> None:
        """Raise a ValueError if an atom does not exist."""
        if self.n_atoms > n_atoms:
            raise ValueError(
                f"inputs: atom {self.n_atoms - 1} does not exist; the system has {n_atoms} atoms, counted from 0."
            )

    def values(self, frames: np.ndarray) -> np.ndarray:
        """Return the columns of frames of shape (n, n_atoms, 3); shape (n, n_columns)."""
        self.check(frames.shape[1])
        out = np.empty((len(frames), self.n_columns))
        compiled.internal_columns(frames, self._internal, out)
        for part, atoms, reference in self._aligned:
            compiled.superposed_columns(frames, atoms, reference, out[:, part])
        return out

    def pull(self, positions: np.ndarray, row: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """Return Σ_j slope_j ∇column_j with respect to positions of shape (n_atoms, 3), where the columns are `row`."""
        out = np.zeros_like(positions)
        compiled.internal_pull(positions, row, slopes, self._internal, out)
        for part, atoms, reference in self._aligned:
            compiled.superposed_pull(positions, slopes[part], atoms, reference, out)
        return out


def _arrays(placed: Sequence[tuple[tuple[int, ...], int]], width: int) -> tuple[np.ndarray, np.ndarray]:
    atoms = np.array([atoms for atoms, _ in placed], dtype=np.int64).reshape(len(placed), width)
    return atoms, np.array([start for _, start in placed], dtype=np.int64)


def descriptors(inputs: Sequence[Input], frames: ArrayLike) -> np.ndarray:
    """Compute the columns of X from frames.

    Parameters
    ----------
    inputs : sequence of Torsion, Distance and AlignedPositions
        Definition of the columns.
    frames : array-like of shape (n_frames, n_atoms, 3)
        Positions in nm, of whole molecules; periodic images are not resolved.

    Examples
    --------
    >>> import numpy as np
    >>> from kdmaps.simulation import Distance, Torsion, descriptors
    >>> frames = np.random.default_rng(0).normal(size=(7, 4, 3))
    >>> descriptors([Torsion((0, 1, 2, 3)), Distance(0, 3)], frames).shape
    (7, 3)
    """
    return Columns(inputs).values(_checked_frames(frames))


def jacobians(inputs: Sequence[Input], frames: ArrayLike) -> np.ndarray:
    """Compute the derivatives of the columns of X with respect to the positions, for a diffusion tensor.

    With masses m and a common friction γ, `kdmaps.Factor(J * sqrt(kT / (γ m)))` is the diffusion tensor of the columns,
    for J reshaped to (n_frames, n_columns, 3 n_atoms).

    Parameters
    ----------
    inputs : sequence of Torsion, Distance and AlignedPositions
        Definition of the columns.
    frames : array-like of shape (n_frames, n_atoms, 3)
        Positions in nm, of whole molecules.

    Returns
    -------
    jacobians : ndarray of shape (n_frames, n_columns, n_atoms, 3)

    Examples
    --------
    >>> import numpy as np
    >>> from kdmaps.simulation import Distance, jacobians
    >>> jacobians([Distance(0, 1)], np.array([[[0.0, 0, 0], [0.3, 0.4, 0]]]))[0, 0].round(3) + 0.0
    array([[-0.6, -0.8,  0. ],
           [ 0.6,  0.8,  0. ]])
    """
    columns, positions = Columns(inputs), _checked_frames(frames)
    units = np.eye(columns.n_columns)
    rows = columns.values(positions)
    return np.array(
        [[columns.pull(one, row, unit) for unit in units] for one, row in zip(positions, rows, strict=True)]
    ).reshape(len(positions), columns.n_columns, *positions.shape[1:])


def _checked_frames(frames: ArrayLike) -> np.ndarray:
    """Return positions of shape (n_frames, n_atoms, 3) as float64."""
    positions = np.ascontiguousarray(frames, dtype=np.float64)
    if positions.ndim != 3 or positions.shape[2] != 3 or not np.isfinite(positions).all():
        raise ValueError(
            f"frames must be finite positions of shape (n_frames, n_atoms, 3), got an array of shape {positions.shape}."
        )
    return positions
