"""Modes, and walls around the samples of a fit, as forces of OpenMM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.ndimage import minimum_filter

from kdmaps.bases import FourierBasis
from kdmaps.estimators.transformer import ModeTransformer
from kdmaps.simulation.export import checked_mode, mode_waves
from kdmaps.simulation.fields import Field, ModeField, WallField
from kdmaps.simulation.inputs import AlignedPositions, Columns, Distance, Input, Torsion
from kdmaps.utils.optional import optional

METHODS = ("auto", "table", "python", "expression")
#: Points of a table along each torsion: as few as are accurate enough.
TABLE_SIZES = (120, 240, 360)
#: Error that splines of a table may have among samples. (Modes have variance 1.) Slopes err by some ten times that over
#: the spacing; for 1e-6 in forces too a table would need 1,500 points a side and 500 MB, and would still not follow the
#: fine waves of a rough kernel. Hence it is not the default.
TABLE_TOLERANCE = 1e-6
#: Points of a table in which the error of a spline falls by a factor of 200: so far from the edge of the samples, where
#: a continuation or a wall begins that is less smooth, the tolerance must be kept.
EDGE = 4


def openmm_cv(
    model: ModeTransformer,
    mode: int,
    inputs: Sequence[Input],
    *,
    system: Any = None,
    method: str = "auto",
    outside: str = "flat",
) -> Any:
    """Return an OpenMM force whose energy is the value of a mode, in kJ/mol.

    It is a collective variable for `CustomCVForce`, hence for umbrella and steered runs, and for
    `openmm.app.metadynamics.BiasVariable`. Do not add it to a system by itself: it would be a bias of 1 kJ/mol times
    the mode.

    Parameters
    ----------
    model : fitted estimator
        Fitted to `descriptors(inputs, frames)`.
    mode : int
        Index of the mode; 0 is the slowest.
    inputs : sequence of Torsion, Distance and AlignedPositions
        The columns of the samples.
    system : openmm.System, optional
        The system that the force is for. An atom that it does not have is an error; OpenMM itself would not notice.
    method : {"auto", "table", "python", "expression"}, default="auto"
        "python": a `PythonForce` with the closed-form gradient; values and forces are those of `transform` and
        `gradient` to rounding. "table" (one or two torsions and nothing else): splines of a table, by a
        `CustomCompoundBondForce`, without Python in the simulation; values within 1e-6 except at the edge of the
        samples, forces within about 1e-4 of the largest (they are the slopes of the splines). "expression": a
        `CustomCVForce` with the sum of waves as an expression, of Fourier features of torsions and distances; exact and
        without Python, but slow where there are many distances. "auto" is "python".
    outside : {"flat", "free"}, default="flat"
        What the mode is far from all samples of the fit, where its values are arbitrary. "flat": it goes over into
        the value at the nearest samples, so that a bias does not push there; equal to the mode wherever
        `model.extrapolates` is False. "free": the mode itself, the only choice of "expression".

    Returns
    -------
    force : openmm.Force
        Its name tells what it is.

    Examples
    --------
    >>> import numpy as np
    >>> import kdmaps
    >>> from kdmaps.simulation import Torsion, descriptors, openmm_cv
    >>> inputs = [Torsion((0, 1, 2, 3))]
    >>> frames = np.random.default_rng(0).normal(size=(500, 4, 3))
    >>> model = kdmaps.KernelDiffusionMap(n_components=2, random_state=0).fit(descriptors(inputs, frames))
    >>> openmm_cv(model, 0, inputs).getName()  # doctest: +ELLIPSIS
    'mode 1 (python), flat beyond ... of all samples'
    """
    _check_choice("method", method, METHODS)
    _check_choice("outside", outside, ("flat", "free"))
    columns = _columns_of(model, inputs, system)
    if method == "expression":
        if outside != "free":
            raise ValueError("method='expression' has no flat continuation; use outside='free' and openmm_walls.")
        return _expression(model, mode, columns)
    field = ModeField(model, mode, outside == "flat")
    force, how = _force(field, columns, method)
    force.setName(f"mode {mode + 1} ({how}), {_beyond(field)}")
    return force


def openmm_walls(
    model: ModeTransformer,
    inputs: Sequence[Input],
    strength: float,
    *,
    system: Any = None,
    margin: float = 0.0,
    method: str = "auto",
) -> Any:
    """Return an OpenMM force that holds a simulation near the samples of a fit.

    The energy is k/2 (d - r - margin)² where the (smooth) distance d to the nearest samples exceeds r + margin, with
    the r beyond which `model.extrapolates` is True; 0 elsewhere. Add it to the system, and count it as part of the
    bias when frames are weighted.

    Parameters
    ----------
    model : fitted estimator
    inputs : sequence of Torsion, Distance and AlignedPositions
    strength : float
        k, in kJ/mol per square unit of the columns.
    system : openmm.System, optional
        As in `openmm_cv`.
    margin : float, default=0
        In units of the columns.
    method : {"auto", "table", "python"}, default="auto"
        As in `openmm_cv`.

    Returns
    -------
    force : openmm.Force

    Examples
    --------
    >>> import numpy as np
    >>> import kdmaps
    >>> from kdmaps.simulation import Distance, descriptors, openmm_walls
    >>> inputs = [Distance(0, 1)]
    >>> frames = np.random.default_rng(0).normal(size=(500, 2, 3))
    >>> model = kdmaps.KernelDiffusionMap(n_components=1, random_state=0).fit(descriptors(inputs, frames))
    >>> openmm_walls(model, inputs, strength=1000.0).getName()  # doctest: +ELLIPSIS
    'walls (python), beyond ... of all samples'
    """
    _check_choice("method", method, METHODS[:3])
    for name, value, least in (("strength", strength, 0.0), ("margin", margin, -np.finfo(float).tiny)):
        if not isinstance(value, Real) or not least < float(value) < np.inf:
            raise ValueError(f"{name} must be a {'positive' if least == 0 else 'nonnegative'} number, got {value!r}.")
    columns = _columns_of(model, inputs, system)
    field = WallField(model, float(strength), float(margin))
    force, how = _force(field, columns, method)
    force.setName(f"walls ({how}), beyond {field.start:.3g} of all samples")
    return force


class PointForce:
    """The function of a `PythonForce`: columns of the positions, a field of them, and the chain rule back.

    Parameters
    ----------
    columns : Columns
        Of the atoms that the force is given.
    field : Field
    """

    columns: Columns
    field: Field

    def __init__(self, columns: Columns, field: Field):
        self.columns, self.field = columns, field

    def __call__(self, state: Any) -> tuple[float, np.ndarray]:
        """Return the energy in kJ/mol and the forces in kJ/mol/nm."""
        positions = state.getPositions(asNumpy=True)._value  # nm; converting units would take most of the time
        row = self.columns.values(positions[None])[0]
        value, slope = self.field(row)
        return value, -self.columns.pull(positions, row, slope)


def _force(field: Field, columns: Columns, method: str) -> tuple[Any, str]:
    """Return a force with the energy of a field, and how it is computed."""
    openmm = _openmm()
    if method == "table":
        torsions = [one for one in columns.inputs if isinstance(one, Torsion)]
        if not len(torsions) == len(columns.inputs) <= 2:
            raise ValueError("method='table' needs inputs of one or two torsions and nothing else; use 'python'.")
        table = _table(field, len(torsions))
        return _table_force(openmm, torsions, table), f"table of {len(table)} points"
    particles = sorted({atom for one in columns.inputs for atom in one.atoms})
    number = {atom: place for place, atom in enumerate(particles)}
    local = Columns([_renumbered(one, number) for one in columns.inputs])
    return openmm.PythonForce(PointForce(local, field), {}, particles), "python"


def _renumbered(one: Input, number: dict[int, int]) -> Input:
    if isinstance(one, Distance):
        return Distance(number[one.i], number[one.j])
    return replace(one, atoms=tuple(number[atom] for atom in one.atoms))


def _table(field: Field, n_torsions: int) -> np.ndarray:
    """Return values (n, n) on a grid of two torsions (n, 1 of one), with as few points as are accurate.

    Splines of every other point show the error at the points between them, 16 times that of splines of all points.
    """
    for size in TABLE_SIZES:
        angles = 2 * np.pi * np.arange(size) / size
        circle = np.column_stack([np.cos(angles), np.sin(angles)])
        grid = np.hstack([np.repeat(circle, size, axis=0), np.tile(circle, (size, 1))]) if n_torsions == 2 else circle
        table, near = (part.reshape(size, -1) for part in (field.values(grid), field.near(grid)))
        known = minimum_filter(near, (2 * EDGE + 1, 2 * EDGE + 1 if n_torsions == 2 else 1), mode="wrap")
        error = max(_spline_error(table, known), _spline_error(table.T, known.T) if n_torsions == 2 else 0.0)
        if error <= TABLE_TOLERANCE:
            return table
    raise ValueError(
        f"method='table': a table of {TABLE_SIZES[-1]} points is not accurate enough for so rough a function; use "
        "method='python'."
    )


def _spline_error(table: np.ndarray, known: np.ndarray) -> float:
    """Estimate the error of periodic splines along the first axis, near samples, by those of every other point."""
    places = np.arange(0, len(table) + 1, 2)
    spline = CubicSpline(places, table[places % len(table)], bc_type="periodic")
    error = np.abs(spline(np.arange(1, len(table), 2)) - table[1::2])
    return float(error[known[1::2]].max(initial=0.0)) / 16


def _table_force(openmm: Any, torsions: list[Torsion], table: np.ndarray) -> Any:
    """Return the splines of a table of one or two torsions.

    (`CMAPTorsionForce` is meant for this, but copies its table in every step, which takes 10 ms for one of this size.)
    """
    atoms = sorted({atom for one in torsions for atom in one.atoms})
    angles = [f"dihedral({','.join(f'p{atoms.index(atom) + 1}' for atom in one.atoms)})" for one in torsions]
    force = openmm.CustomCompoundBondForce(len(atoms), f"table({','.join(angles)})")
    force.addBond(atoms, [])
    # The angles are between -π and π. A periodic function holds its first values again as the last.
    size = len(table)
    places = (np.arange(size + 1) - size // 2) % size
    if len(torsions) == 1:
        force.addTabulatedFunction("table", openmm.Continuous1DFunction(table[places, 0].tolist(), -np.pi, np.pi, True))
    else:
        values = table[np.ix_(places, places)].T.ravel().tolist()  # the first angle varies fastest
        sides = (-np.pi, np.pi, -np.pi, np.pi)
        force.addTabulatedFunction("table", openmm.Continuous2DFunction(size + 1, size + 1, values, *sides, True))
    return force


def _expression(model: ModeTransformer, mode: int, columns: Columns) -> Any:
    """Return a `CustomCVForce` of torsions and distances with the sum of waves as its expression."""
    openmm = _openmm()
    basis, a, offset = checked_mode(model, mode)
    if not isinstance(basis, FourierBasis):
        raise ValueError(f"method='expression' needs Fourier features, not a {type(basis).__name__}; use 'python'.")
    names: list[str] = []
    definitions, forces = [], {}
    for number, one in enumerate(columns.inputs, start=1):
        if isinstance(one, AlignedPositions):
            raise ValueError("method='expression' needs inputs of torsions and distances alone; use 'python'.")
        if isinstance(one, Torsion):
            forces[f"t{number}"] = inner = openmm.CustomTorsionForce("theta")
            inner.addTorsion(*one.atoms)
            names += [f"c{number}", f"s{number}"]
            definitions += [f"c{number}=cos(t{number})", f"s{number}=sin(t{number})"]
        else:
            forces[f"d{number}"] = inner = openmm.CustomBondForce("r")
            inner.addBond(*one.atoms)
            names.append(f"d{number}")
    frequencies, cosines, sines = mode_waves(basis, a)
    phases = np.arctan2(-sines, cosines) - frequencies @ basis.origin
    waves = []
    for radius, phase, w in zip(np.hypot(cosines, sines), phases, frequencies, strict=True):
        angle = "".join(f"{wj:+.17g}*{name}" for wj, name in zip(w, names, strict=True))
        waves.append(f"{radius:+.17g}*cos({phase:.17g}{angle})")
    force = openmm.CustomCVForce("; ".join([f"{-offset:.17g}" + "".join(waves), *definitions]))
    for name, inner in forces.items():
        force.addCollectiveVariable(name, inner)
    force.setName(f"mode {mode + 1} (expression), free")
    return force


def _beyond(field: ModeField) -> str:
    return "free" if field.nearness is None else f"flat beyond {field.nearness.radius:.3g} of all samples"


def _columns_of(model: ModeTransformer, inputs: Sequence[Input], system: Any) -> Columns:
    columns = Columns(inputs)
    if system is not None:
        columns.check(system.getNumParticles())
    if columns.n_columns != model.basis_.dim:
        raise ValueError(
            f"inputs make {columns.n_columns} columns, but the model was fitted to {model.basis_.dim}; give the inputs "
            "of the fit, in the same order. (A torsion makes two columns, aligned positions three for each atom.)"
        )
    return columns


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}.")


def _openmm() -> Any:
    return optional("openmm", "openmm", "Modes as forces of a simulation")
