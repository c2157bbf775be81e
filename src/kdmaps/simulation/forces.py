"""OpenMM forces: modes, walls around the samples of a fit, and static biases along a mode or a committor."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline
from scipy.ndimage import gaussian_filter1d, minimum_filter
from sklearn.utils.validation import check_is_fitted

from kdmaps.bases import FourierBasis
from kdmaps.estimators.committor import AdaptiveCommittor
from kdmaps.exceptions import NotApplicable
from kdmaps.simulation.export import LOGIT, Exported, checked_logit, checked_mode, cosine_waves, plumed_kolmogorov
from kdmaps.simulation.fields import Field, KolmogorovField, ModeField, WallField, checked_support
from kdmaps.simulation.inputs import AlignedPositions, Columns, Distance, Input, Torsion
from kdmaps.utils.optional import optional
from kdmaps.utils.validation import check_choice, check_nonnegative_number, check_positive_number, checked_weight

METHODS = ("auto", "table", "python", "expression")
#: Numbers of points of a table along each torsion; the first that is accurate enough is used.
TABLE_SIZES = (120, 240, 360)
#: Largest error of splines of a table near samples. (Modes have variance 1.) The error of slopes is about ten times as
#: large, divided by the spacing; 1e-6 in forces would need 1,500 points per side and 500 MB, and a rough kernel even
#: more. Hence a table is not the default.
TABLE_TOLERANCE = 1e-6
#: Distance, in points of a table, from the edge of the samples, where the continuation or the wall is less smooth. The
#: error of a spline decreases by a factor of 200 over this distance; the tolerance applies beyond it.
EDGE = 4
#: Number of bins of the free energy along a mode, and minimum number of frames in a reliable bin.
BINS, LEAST_FRAMES = 60, 5


def openmm_cv(
    model: Exported,
    mode: int,
    inputs: Sequence[Input],
    *,
    system: Any = None,
    method: str = "auto",
    outside: str = "flat",
    logit: bool = False,
) -> Any:
    """Return an OpenMM force whose energy is the value of a mode, in kJ/mol.

    Use it as a collective variable in a `CustomCVForce`, for umbrella and steered runs, or in an
    `openmm.app.metadynamics.BiasVariable`. Do not add it to a system directly: it would be a bias of 1 kJ/mol times the
    mode.

    Parameters
    ----------
    model : fitted estimator
        Fitted to `descriptors(inputs, frames)`. The function of an `AdaptiveCommittor` (mode 0) is q before it is
        clipped to [0, 1], with continuous forces.
    mode : int
        Index of the mode; 0 is the slowest.
    inputs : sequence of Torsion, Distance and AlignedPositions
        Definition of the columns of the samples.
    system : openmm.System, optional
        The system that the force is for. An atom that does not exist is then an error; OpenMM does not check this.
    method : {"auto", "table", "python", "expression"}, default="auto"
        "python": a `PythonForce` with the closed-form gradient; values and forces agree with `transform` and `gradient`
        to rounding. "table" (only for one or two torsions): splines of a table in a `CustomCompoundBondForce`, without
        Python during the simulation; values are accurate to 1e-6 except at the edge of the samples, and forces, the
        slopes of the splines, to about 1e-4 of the largest. "expression": a `CustomCVForce` with the sum of Fourier
        features of torsions and distances as an expression; exact and without Python, but slow for many distances.
        "auto" is "python".
    outside : {"flat", "free"}, default="flat"
        Continuation of the mode far from the samples of the fit, where its values are arbitrary. "flat": a smooth
        transition to its value at the nearest samples, so that a bias exerts no force there; equal to the mode wherever
        `model.extrapolates` is False. "free": the mode itself, which is required for "expression".
    logit : bool, default=False
        For a committor, return log(q/(1-q)) with q limited to the range from 0.001 to 0.999, as a `CustomCVForce`.

    Returns
    -------
    force : openmm.Force
        Its name describes the mode, the method and the continuation.

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
    check_choice("method", method, METHODS)
    check_choice("outside", outside, ("flat", "free"))
    if checked_logit(model, logit):
        force = _openmm().CustomCVForce(LOGIT)
        force.addCollectiveVariable("x", openmm_cv(model, mode, inputs, system=system, method=method, outside=outside))
        return force
    columns = _columns_of(model, inputs, system)
    if method == "expression":
        if outside != "free":
            raise ValueError("method='expression' needs outside='free'; add openmm_walls.")
        return _expression(model, mode, columns)
    field = ModeField(model, mode, outside == "flat")
    force, how = _force(field, columns, method)
    beyond = "free" if field.nearness is None else f"flat beyond {field.nearness.radius:.3g} of all samples"
    force.setName(f"mode {mode + 1} ({how}), {beyond}")
    return force


def openmm_walls(
    model: Exported,
    inputs: Sequence[Input],
    strength: float,
    *,
    system: Any = None,
    margin: float = 0.0,
    method: str = "auto",
) -> Any:
    """Return an OpenMM force that keeps a simulation near the samples of a fit.

    The energy is k/2 (d - r - margin)² where the (smooth) distance d to the nearest samples exceeds r + margin, and 0
    elsewhere; `model.extrapolates` is True beyond r. Add the force to the system, and include its energy in the bias
    when you compute weights.

    Parameters
    ----------
    model : fitted estimator
        Fitted to `descriptors(inputs, frames)`.
    inputs : sequence of Torsion, Distance and AlignedPositions
        Definition of the columns of the samples.
    strength : float
        Force constant k, in kJ/mol per square unit of the columns.
    system : openmm.System, optional
        As in `openmm_cv`.
    margin : float, default=0
        Additional distance, in units of the columns.
    method : {"auto", "table", "python"}, default="auto"
        As in `openmm_cv`.

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
    check_choice("method", method, METHODS[:3])
    columns = _columns_of(model, inputs, system)
    field = WallField(model, check_positive_number("strength", strength), check_nonnegative_number("margin", margin))
    force, how = _force(field, columns, method)
    force.setName(f"walls ({how}), beyond {field.start:.3g} of all samples")
    return force


class ModeBias:
    """A static bias U(x) = u(φ(x)) along one mode, constant far from the samples of the fit.

    Parameters
    ----------
    model : fitted estimator
    mode : int
        Index of the mode; 0 is the slowest.
    places, energies : array-like of shape (n,)
        Values of the mode in ascending order, and u there; splines in between, constant beyond.

    Examples
    --------
    >>> import kdmaps
    >>> X = kdmaps.problems.load("dw1d").sample(500, random_state=0)
    >>> model = kdmaps.KernelDiffusionMap(n_components=1, random_state=0).fit(X)
    >>> bias = kdmaps.simulation.ModeBias(model, 0, [-1.0, 0.0, 1.0], [0.0, 2.0, 0.0])
    >>> bias.energy(X).shape, bias.gradient(X).shape
    ((500,), (500, 1))
    """

    model: Exported
    mode: int
    places: np.ndarray
    energies: np.ndarray

    def __init__(self, model: Exported, mode: int, places: ArrayLike, energies: ArrayLike):
        self.model, self.mode = model, mode
        self.places, self.energies = (np.asarray(values, dtype=np.float64) for values in (places, energies))
        self._field = ModeField(model, mode, flat=True)
        self._spline = CubicSpline(self.places, self.energies, bc_type="natural")  # as in tables of OpenMM

    @classmethod
    def filling(
        cls,
        model: Exported,
        mode: int,
        X: np.ndarray,
        sample_weight: ArrayLike | None,
        kT: float,
        bias_factor: float = 8.0,
    ) -> Self:
        """Return the bias u = (1 - 1/γ)(F_max - F), which fills wells as converged metadynamics does.

        F = -kT log of the weighted density of the mode at X; F_max is its largest value in bins with enough frames.

        Parameters
        ----------
        model : fitted estimator
        mode : int
            Index of the mode; 0 is the slowest.
        X : ndarray of shape (n_frames, d)
            Frames in the columns of the model.
        sample_weight : array-like of shape (n_frames,), optional
            Weights that reweight X to the unbiased system.
        kT : float
            Temperature times Boltzmann's constant.
        bias_factor : float, default=8
            γ; the bias reduces the free energy to F/γ.
        """
        weight = checked_weight(sample_weight, X)
        values = ModeField(model, mode, flat=True).values(np.asarray(X, dtype=np.float64))
        edges = np.linspace(values.min(), values.max(), BINS + 1)
        known = np.histogram(values, edges)[0] >= LEAST_FRAMES
        density = gaussian_filter1d(np.histogram(values, edges, weights=weight)[0].astype(float), 1.0)
        energy = -check_positive_number("kT", kT) * np.log(np.maximum(density, np.finfo(float).tiny))
        top = energy[known].max()
        energy = gaussian_filter1d(np.where(known, np.minimum(energy, top), top), 1.0)
        return cls(model, mode, (edges[1:] + edges[:-1]) / 2, (1 - 1 / bias_factor) * (top - energy))

    @property
    def height(self) -> float:
        """Difference between the largest and the smallest bias energy."""
        return float(np.ptp(self.energies))

    def values(self, X: np.ndarray) -> np.ndarray:
        """Return the mode at rows of X, continued flat far from the samples; shape (n,)."""
        return self._field.values(np.asarray(X, dtype=np.float64))

    def energy(self, X: np.ndarray) -> np.ndarray:
        """Return U at rows of X, shape (n,)."""
        return np.asarray(self._spline(np.clip(self.values(X), self.places[0], self.places[-1])))

    def gradient(self, X: np.ndarray) -> np.ndarray:
        """Return ∇U at rows of X, shape (n, d)."""
        values, slopes = zip(*map(self._field, np.asarray(X, dtype=np.float64)), strict=True)
        clipped = np.clip(values, self.places[0], self.places[-1])
        return np.where(clipped == values, self._spline(clipped, 1), 0.0)[:, None] * np.array(slopes)

    def force(self, inputs: Sequence[Input], system: Any = None, method: str = "auto") -> Any:
        """Return the bias as an OpenMM force to add to a system.

        Parameters
        ----------
        inputs : sequence of Torsion, Distance and AlignedPositions
            Definition of the columns of the samples.
        system, method :
            As in `openmm_cv`.
        """
        openmm = _openmm()
        low, high = float(self.places[0]), float(self.places[-1])
        force = openmm.CustomCVForce(f"bias(min(max(mode, {low!r}), {high!r}))")
        force.addCollectiveVariable("mode", openmm_cv(self.model, self.mode, inputs, system=system, method=method))
        places = np.linspace(low, high, len(self.places))  # OpenMM needs an even grid
        table = openmm.Continuous1DFunction(self._spline(places).tolist(), low, high)
        force.addTabulatedFunction("bias", table)
        force.setName(f"bias along mode {self.mode + 1}, {self.height:.3g} kJ/mol high")
        return force


class KolmogorovBias:
    """A static bias that favours the transition region of a committor q: U = -λ kT log(1 + |∇q|²/ε).

    The gradient of q is large only near the transition state, and U is negative there (P. Kang, E. Trizio and M.
    Parrinello, Nat. Comput. Sci. 4, 451 (2024)). Without a bias, |∇q| decreases about as e^V away from the transition
    state: λ = 1/2 makes the free energy flat along the path. Larger values make a well at the transition state, with
    few frames between it and the sets, where q is then poor. U is 0 in A and B and far from the samples of the fit; a
    smaller ε draws more frames out of the wells. `boltzmann_weights(bias.energy(X), kT)` or `umbrella_weights` give the
    weights of biased frames.

    Parameters
    ----------
    model : AdaptiveCommittor
    kT : float
        Temperature times Boltzmann's constant; kJ/mol for OpenMM.
    strength : float, default=0.5
        λ.
    floor : float, default=1e-10
        ε in units of 1/R², with R² the total variance of the columns over samples of the fit.

    Examples
    --------
    >>> import kdmaps
    >>> X = kdmaps.problems.load("dw1d").sample(1000, random_state=0)
    >>> c = kdmaps.AdaptiveCommittor(random_state=0).fit(X, (X[:, 0] < -1, X[:, 0] > 1))
    >>> bias = kdmaps.simulation.KolmogorovBias(c, kT=1.0)
    >>> wells, between = bias.energy([[-1.2], [0.0]])
    >>> bool(wells == 0), bool(between < -5)
    (True, True)
    """

    def __init__(self, model: AdaptiveCommittor, kT: float, strength: float = 0.5, floor: float = 1e-10):
        if not isinstance(model, AdaptiveCommittor):
            raise TypeError(f"model must be a fitted AdaptiveCommittor, got {type(model).__name__}.")
        check_is_fitted(model)
        self.model, self.strength = model, check_positive_number("strength", strength)
        size = checked_support(model, "fit it again").samples.var(axis=0).sum()
        self._field = KolmogorovField(
            model, self.strength * check_positive_number("kT", kT), check_positive_number("floor", floor) / size
        )

    def energy(self, X: ArrayLike) -> np.ndarray:
        """Return U at rows of X, shape (n,)."""
        return np.array([self._field(x)[0] for x in np.asarray(X, dtype=np.float64)])

    def gradient(self, X: ArrayLike) -> np.ndarray:
        """Return ∇U at rows of X, shape (n, d)."""
        return np.array([self._field(x)[1] for x in np.asarray(X, dtype=np.float64)])

    def force(self, inputs: Sequence[Input], system: Any = None) -> Any:
        """Return the bias as an OpenMM force to add to a system.

        Parameters
        ----------
        inputs : sequence of Torsion, Distance and AlignedPositions
            Definition of the columns of the samples.
        system :
            As in `openmm_cv`.
        """
        force, _ = _force(self._field, _columns_of(self.model, inputs, system), "python")
        force.setName(f"Kolmogorov bias of a committor, strength {self.strength:g}")
        return force

    def plumed(self, arguments: Sequence[str] | Sequence[Input], label: str = "kolmogorov") -> str:
        """Return the bias as PLUMED input that ends with a BIASVALUE; the committor needs Fourier features.

        Unlike `force`, it does not end far from the samples of the fit: add walls.

        Parameters
        ----------
        arguments, label :
            As in `plumed_input`; U is the value of the action `label`.
        """
        return plumed_kolmogorov(self.model, arguments, label, self._field.energy, self._field.floor)


@dataclass(frozen=True)
class PointForce:
    """Energy and forces of a `PythonForce`: a field of the columns, and the chain rule to positions."""

    columns: Columns
    field: Field

    def __call__(self, state: Any) -> tuple[float, np.ndarray]:
        """Return the energy in kJ/mol and the forces in kJ/mol/nm."""
        positions = state.getPositions(asNumpy=True)._value  # nm; converting units would take most of the time
        row = self.columns.values(positions[None])[0]
        value, slope = self.field(row)
        return value, -self.columns.pull(positions, row, slope)


def _force(field: Field, columns: Columns, method: str) -> tuple[Any, str]:
    """Return a force with the energy of a field, and a description of its method."""
    openmm = _openmm()
    if method == "table":
        torsions = [one for one in columns.inputs if isinstance(one, Torsion)]
        if not len(torsions) == len(columns.inputs) <= 2:
            raise NotApplicable("method='table' needs one or two torsions as inputs; use 'python'.")
        table = _table(field, len(torsions))
        return _table_force(openmm, torsions, table), f"table of {len(table)} points"
    particles = sorted({atom for one in columns.inputs for atom in one.atoms})
    number = {atom: place for place, atom in enumerate(particles)}
    local: list[Input] = []
    for one in columns.inputs:
        atoms = tuple(number[atom] for atom in one.atoms)
        local.append(Distance(*atoms) if isinstance(one, Distance) else replace(one, atoms=atoms))
    return openmm.PythonForce(PointForce(Columns(local), field), {}, particles), "python"


def _table(field: Field, n_torsions: int) -> np.ndarray:
    """Return values on the smallest grid of torsions that is accurate: (n, n) for two torsions, (n, 1) for one.

    The error is estimated with splines through every other point, which is 16 times as large as with all points.
    """
    for size in TABLE_SIZES:
        angles = 2 * np.pi * np.arange(size) / size
        circle = np.column_stack([np.cos(angles), np.sin(angles)])
        grid = np.hstack([np.repeat(circle, size, axis=0), np.tile(circle, (size, 1))]) if n_torsions == 2 else circle
        table = np.array([field(x)[0] for x in grid]).reshape(size, -1)
        near = np.array([field.nearness is None or field.nearness.near(x) for x in grid]).reshape(size, -1)
        known = minimum_filter(near, (2 * EDGE + 1, 2 * EDGE + 1 if n_torsions == 2 else 1), mode="wrap")
        error = max(_spline_error(table, known), _spline_error(table.T, known.T) if n_torsions == 2 else 0.0)
        if error <= TABLE_TOLERANCE:
            return table
    raise NotApplicable(
        "method='table': a table of {points} points is not accurate enough for such a rough function; use "
        "method='python'.",
        points=TABLE_SIZES[-1],
    )


def _spline_error(table: np.ndarray, known: np.ndarray) -> float:
    """Estimate the error of periodic splines along the first axis near samples."""
    places = np.arange(0, len(table) + 1, 2)
    spline = CubicSpline(places, table[places % len(table)], bc_type="periodic")
    error = np.abs(spline(np.arange(1, len(table), 2)) - table[1::2])
    return float(error[known[1::2]].max(initial=0.0)) / 16


def _table_force(openmm: Any, torsions: list[Torsion], table: np.ndarray) -> Any:
    """Return a force with the splines of a table of one or two torsions."""
    atoms = sorted({atom for one in torsions for atom in one.atoms})
    angles = [f"dihedral({','.join(f'p{atoms.index(atom) + 1}' for atom in one.atoms)})" for one in torsions]
    # A CMAPTorsionForce would copy its table in every step, which takes 10 ms for a table of this size.
    force = openmm.CustomCompoundBondForce(len(atoms), f"table({','.join(angles)})")
    force.addBond(atoms, [])
    # Angles are between -π and π, and the last value of a periodic function repeats the first.
    size = len(table)
    places = (np.arange(size + 1) - size // 2) % size
    if len(torsions) == 1:
        force.addTabulatedFunction("table", openmm.Continuous1DFunction(table[places, 0].tolist(), -np.pi, np.pi, True))
    else:
        values = table[np.ix_(places, places)].T.ravel().tolist()  # the first angle varies fastest
        sides = (-np.pi, np.pi, -np.pi, np.pi)
        force.addTabulatedFunction("table", openmm.Continuous2DFunction(size + 1, size + 1, values, *sides, True))
    return force


def _expression(model: Exported, mode: int, columns: Columns) -> Any:
    """Return a `CustomCVForce` of torsions and distances with a sum of waves as its expression."""
    openmm = _openmm()
    basis, a, offset = checked_mode(model, mode)
    if not isinstance(basis, FourierBasis):
        raise ValueError(f"method='expression' needs Fourier features, not a {type(basis).__name__}; use 'python'.")
    names: list[str] = []
    definitions, forces = [], {}
    for number, one in enumerate(columns.inputs, start=1):
        if isinstance(one, AlignedPositions):
            raise ValueError("method='expression' needs torsions and distances as inputs; use 'python'.")
        if isinstance(one, Torsion):
            forces[f"t{number}"] = inner = openmm.CustomTorsionForce("theta")
            inner.addTorsion(*one.atoms)
            names += [f"c{number}", f"s{number}"]
            definitions += [f"c{number}=cos(t{number})", f"s{number}=sin(t{number})"]
        else:
            forces[f"d{number}"] = inner = openmm.CustomBondForce("r")
            inner.addBond(*one.atoms)
            names.append(f"d{number}")
    waves, (frequencies, radii, phases) = [], cosine_waves(basis, a)
    for radius, phase, w in zip(radii, phases - frequencies @ basis.origin, frequencies, strict=True):
        angle = "".join(f"{wj:+.17g}*{name}" for wj, name in zip(w, names, strict=True))
        waves.append(f"{radius:+.17g}*cos({phase:.17g}{angle})")
    force = openmm.CustomCVForce("; ".join([f"{-offset:.17g}" + "".join(waves), *definitions]))
    for name, inner in forces.items():
        force.addCollectiveVariable(name, inner)
    force.setName(f"mode {mode + 1} (expression), free")
    return force


def _columns_of(model: Exported, inputs: Sequence[Input], system: Any) -> Columns:
    columns = Columns(inputs)
    if system is not None:
        columns.check(system.getNumParticles())
    if columns.n_columns != model.basis_.dim:
        raise ValueError(
            f"inputs define {columns.n_columns} columns, but the model was fitted to {model.basis_.dim}; give the "
            "inputs of the fit, in the same order. (A torsion has two columns, aligned positions three for each atom.)"
        )
    return columns


def _openmm() -> Any:
    return optional("openmm", "openmm", "Modes as forces of a simulation")
