"""Export of a mode as a JAX function, as a program that needs only JAX, or as PLUMED input."""

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kdmaps.bases import FourierBasis, LandmarkBasis, RandomPhaseBasis
from kdmaps.estimators.committor import AdaptiveCommittor
from kdmaps.estimators.transformer import ModeTransformer
from kdmaps.kernels import Kernel, Laplacian, Metric, Mixture
from kdmaps.simulation.inputs import Columns, Input
from kdmaps.utils.optional import optional

#: Estimators whose functions are exported: modes, or a committor before it is clipped to [0, 1].
Exported: TypeAlias = ModeTransformer | AdaptiveCommittor
#: The logit of a committor is limited to the logit of this distance from 0 and 1, where q is flat.
LOGIT_FLOOR = 1e-3
#: log(q/(1-q)) of a committor x, in the syntax of PLUMED and of OpenMM.
LOGIT = f"log(min(max(x,{LOGIT_FLOOR:g}),{1 - LOGIT_FLOOR:g})/(1-min(max(x,{LOGIT_FLOOR:g}),{1 - LOGIT_FLOOR:g})))"


def as_jax(model: Exported, mode: int = 0) -> Callable[[Any], Any]:
    """Return a mode as a pure JAX function of x, for use with `jax.grad`, `jax.jit` and `jax.vmap`.

    Parameters
    ----------
    model : fitted estimator
    mode : int, default=0
        Index of the mode; 0 is the slowest.

    Returns
    -------
    function : callable
        Maps an array of shape (..., d) to one of shape (...) of the same floating type. JAX uses single precision
        unless `jax.enable_x64` is set.

    Examples
    --------
    >>> import jax
    >>> import kdmaps
    >>> X = kdmaps.problems.load("dw1d").sample(500, random_state=0)
    >>> m = kdmaps.KernelDiffusionMap(n_components=2, random_state=0).fit(X)
    >>> slowest = kdmaps.simulation.as_jax(m, 0)
    >>> jax.grad(slowest)(X[0]).shape
    (1,)
    """
    jnp = optional("jax.numpy", "learn", "Modes as JAX functions")
    basis, a, offset = checked_mode(model, mode)
    if not isinstance(basis, FourierBasis | LandmarkBasis):
        raise TypeError(f"Modes in a {type(basis).__name__} cannot be exported to JAX.")

    def function(x: Any) -> Any:
        x = jnp.asarray(x)
        centred = x - basis.origin.astype(x.dtype)
        if isinstance(basis, LandmarkBasis):
            z = basis.landmarks - basis.origin
            return _kernel_values(basis.kernel, centred, z, jnp) @ a.astype(x.dtype) - offset
        frequencies, cosines, sines = (part.astype(x.dtype) for part in mode_waves(basis, a))
        angles = centred @ frequencies.T
        return jnp.cos(angles) @ cosines + jnp.sin(angles) @ sines - offset

    return function


_PROGRAM = '''"""{title} of a kdmaps model as a function of x, for jax.grad, jax.jit and jax.vmap.

The columns of x are: {columns}. Far from the samples of the fit its values are arbitrary.
"""

import jax.numpy as jnp
import numpy as np

ORIGIN = np.array([{origin}])
FREQUENCIES = np.array([
{frequencies}
])
COSINES = np.array([{cosines}])
SINES = np.array([{sines}])
OFFSET = {offset}


def mode(x):
    """Map an array of shape (..., {dim}) to one of shape (...) of the same floating type."""
    x = jnp.asarray(x)
    angles = (x - ORIGIN.astype(x.dtype)) @ FREQUENCIES.T.astype(x.dtype)
    return jnp.cos(angles) @ COSINES.astype(x.dtype) + jnp.sin(angles) @ SINES.astype(x.dtype) - OFFSET
'''


def jax_program(model: Exported, mode: int = 0) -> str:
    """Return a Python module with a function `mode` of x that needs only JAX, not kdmaps or the model.

    Parameters
    ----------
    model : fitted estimator
        Fitted with Fourier features.
    mode : int, default=0
        Index of the mode; 0 is the slowest.

    Examples
    --------
    >>> import kdmaps
    >>> X = kdmaps.problems.load("dw1d").sample(500, random_state=0)
    >>> m = kdmaps.KernelDiffusionMap(n_components=1, random_state=0).fit(X)
    >>> program = {}
    >>> exec(kdmaps.simulation.jax_program(m), program)
    >>> bool(abs(program["mode"](X[0]) - m.transform(X[:1])[0, 0]) < 1e-4)  # JAX uses single precision
    True
    """
    basis, a, offset = _fourier_mode(model, mode, "a JAX program")
    frequencies, cosines, sines = mode_waves(basis, a)
    names = getattr(model, "feature_names_in_", range(basis.dim))
    return _PROGRAM.format(
        title="The committor, not clipped to [0, 1]," if isinstance(model, AdaptiveCommittor) else f"Mode {mode + 1}",
        columns=", ".join(map(str, names)).replace("\\", "/").replace('"', "'"),
        origin=_numbers(basis.origin),
        frequencies="\n".join(f"    [{_numbers(row)}]," for row in frequencies),
        cosines=_numbers(cosines),
        sines=_numbers(sines),
        offset=repr(offset),
        dim=basis.dim,
    )


def plumed_input(
    model: Exported,
    arguments: Sequence[str] | Sequence[Input],
    mode: int = 0,
    label: str = "mode",
    *,
    logit: bool = False,
) -> str:
    """Return PLUMED input that computes a mode and its derivatives as a collective variable.

    With φ(x) = Σ_i r_i cos(w_iᵀ(x - x_0) + b_i) - c, each frequency becomes one COMBINE (the angle) and one CUSTOM (the
    cosine), and a final COMBINE adds them: a few hundred cheap actions, exact to rounding and differentiated by PLUMED.

    Parameters
    ----------
    model : fitted estimator
        Fitted with Fourier features.
    arguments : sequence of d str, or of Torsion and Distance
        Definition of the columns of X, whose PLUMED actions are written too ("mode_input1", …). Or labels of PLUMED
        values that correspond to the columns of X, in the same order and units. They must not be periodic: for the
        cosine of a torsion, for example, use the label of a CUSTOM action with FUNC=cos(x). Cartesian coordinates of an
        aligned molecule need FIT_TO_TEMPLATE before POSITION.
    mode : int, default=0
        Index of the mode; 0 is the slowest.
    label : str, default="mode"
        Label of the collective variable; its intermediate actions are called "mode_angle1", "mode_wave1", ...
    logit : bool, default=False
        For a committor, add the action "<label>_logit", log(q/(1-q)), which varies where q is almost flat; q is limited
        to the range from 0.001 to 0.999.

    Returns
    -------
    str
        Lines of a PLUMED input file, to be placed after the definitions of the labels in `arguments`.

    Notes
    -----
    Outside the region covered by samples, the values of a mode are arbitrary, and a bias can drive a simulation there.
    Restrain it with walls to the sampled region, and refit with the new samples.

    Examples
    --------
    >>> import kdmaps
    >>> X = kdmaps.problems.load("dw1d").sample(500, random_state=0)
    >>> m = kdmaps.KernelDiffusionMap(n_components=1, n_features=2, random_state=0).fit(X)
    >>> print(kdmaps.simulation.plumed_input(m, ["x"], label="slow"))  # doctest: +ELLIPSIS
    slow_angle1: COMBINE ARG=x COEFFICIENTS=... PARAMETERS=... PERIODIC=NO
    slow_wave1: CUSTOM ARG=slow_angle1 FUNC=cos(x+(...)) PERIODIC=NO
    slow_sum: COMBINE ARG=slow_wave1 COEFFICIENTS=... PERIODIC=NO
    slow: COMBINE ARG=slow_sum PARAMETERS=... PERIODIC=NO
    <BLANKLINE>
    """
    basis, a, offset = _fourier_mode(model, mode, "PLUMED")
    names, lines = _columns(list(arguments), label)
    if isinstance(arguments, str) or len(names) != basis.dim or not all(map(_is_label, names)):
        raise ValueError(f"arguments must be {basis.dim} PLUMED labels, one per column of X, got {arguments!r}.")
    if len(set(names)) < len(names):
        raise ValueError(f"arguments must be distinct labels, one per column of X, got {arguments!r}.")
    if not _is_label(label):
        raise ValueError(f"label must be a word without spaces, commas or '=', got {label!r}.")
    frequencies, radius, phase = cosine_waves(basis, a)
    origin = _numbers(basis.origin)
    for i, (w, b) in enumerate(zip(frequencies, phase, strict=True), start=1):
        angle = f"ARG={','.join(names)} COEFFICIENTS={_numbers(w)} PARAMETERS={origin}"
        lines.append(f"{label}_angle{i}: COMBINE {angle} PERIODIC=NO")
        lines.append(f"{label}_wave{i}: CUSTOM ARG={label}_angle{i} FUNC=cos(x+({b:.17g})) PERIODIC=NO")
    waves = ",".join(f"{label}_wave{i}" for i in range(1, len(radius) + 1))
    lines.append(f"{label}_sum: COMBINE ARG={waves} COEFFICIENTS={_numbers(radius)} PERIODIC=NO")
    lines.append(f"{label}: COMBINE ARG={label}_sum PARAMETERS={offset:.17g} PERIODIC=NO")
    if checked_logit(model, logit):
        lines.append(f"{label}_logit: CUSTOM ARG={label} FUNC={LOGIT} PERIODIC=NO")
    return "\n".join(lines) + "\n"


def plumed_kolmogorov(model: Exported, arguments: Sequence[Any], label: str, energy: float, floor: float) -> str:
    """Return PLUMED input of U = -E log(1 + w|∇q|²/ε), as in `KolmogorovField` but not continued, and a BIASVALUE.

    The slopes of q are sums of sines of the same angles, so that PLUMED finds the forces by the chain rule.
    """
    basis, a, _ = _fourier_mode(model, 0, "PLUMED")
    q, (frequencies, radius, phase) = f"{label}_q", cosine_waves(basis, a)
    lines, numbers, columns = [], range(1, len(radius) + 1), range(1, basis.dim + 1)
    for i, b in zip(numbers, phase, strict=True):
        lines.append(f"{label}_sine{i}: CUSTOM ARG={q}_angle{i} FUNC=sin(x+({b:.17g})) PERIODIC=NO")
    sines = ",".join(f"{label}_sine{i}" for i in numbers)
    for j, w in zip(columns, frequencies.T, strict=True):
        lines.append(f"{label}_slope{j}: COMBINE ARG={sines} COEFFICIENTS={_numbers(-radius * w)} PERIODIC=NO")
    slopes, powers = ",".join(f"{label}_slope{j}" for j in columns), ",".join("2" for _ in columns)
    ramp = f"min(1,max(0,min(x,1-x)/{LOGIT_FLOOR:g}))"
    lines += [
        f"{label}_square: COMBINE ARG={slopes} POWERS={powers} PERIODIC=NO",
        f"{label}_ramp: CUSTOM ARG={q} FUNC={ramp} PERIODIC=NO",
        f"{label}: CUSTOM ARG={label}_ramp,{label}_square VAR=t,s "
        f"FUNC={-energy:.17g}*log(1+t^3*(10-15*t+6*t^2)*s/{floor:.17g}) PERIODIC=NO",
        f"{label}_energy: BIASVALUE ARG={label}",
    ]
    return plumed_input(model, arguments, 0, q) + "\n".join(lines) + "\n"


def checked_mode(model: Exported, mode: int) -> tuple[Any, np.ndarray, float]:
    """Return the basis, the coefficients and the offset of one mode."""
    check_is_fitted(model)
    r = model.coefficients_.shape[1]
    if not isinstance(mode, Integral) or not 0 <= mode < r:
        raise ValueError(f"mode must be an integer from 0 to {r - 1}, got {mode!r}.")
    offsets = model.offset_ if isinstance(model, AdaptiveCommittor) else model.modes_.offset
    return model.basis_, model.coefficients_[:, mode], float(offsets[mode])


def checked_logit(model: Exported, logit: bool) -> bool:
    """Return `logit`; raise if it is True for something other than a committor."""
    if logit and not isinstance(model, AdaptiveCommittor):
        raise ValueError(f"logit=True needs a committor, got {type(model).__name__}; fit an AdaptiveCommittor.")
    return logit


def _fourier_mode(model: Exported, mode: int, target: str) -> tuple[Any, np.ndarray, float]:
    """Return the basis, the coefficients and the offset of a mode of Fourier features."""
    found = checked_mode(model, mode)
    if not isinstance(found[0], FourierBasis):
        raise ValueError(
            f"Functions in a {type(found[0]).__name__} cannot be exported to {target}; fit with basis='fourier' "
            "(--basis fourier on the command line) or use `as_jax`."
        )
    return found


def mode_waves(basis: FourierBasis, a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the frequencies and the coefficients of cos(wᵀ(x - x_0)) and sin(wᵀ(x - x_0))."""
    root = np.sqrt(basis.weights)
    if isinstance(basis, RandomPhaseBasis):  # √(2v) cos(wᵀx + b)
        radius = np.sqrt(2) * root * a
        return basis.frequencies, radius * np.cos(basis.phases), -radius * np.sin(basis.phases)
    cosines, sines = np.split(np.tile(root, 2) * a, 2)
    return basis.frequencies, cosines, sines


def cosine_waves(basis: FourierBasis, a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the frequencies w, factors r and phases b of the waves r cos(wᵀ(x - x_0) + b)."""
    frequencies, cosines, sines = mode_waves(basis, a)
    return frequencies, np.hypot(cosines, sines), np.arctan2(-sines, cosines)


def _kernel_values(kernel: Kernel, x: Any, z: np.ndarray, jnp: Any) -> Any:
    """Evaluate k(x, z_m) at points (..., d) of a JAX array; (..., p) in their floating type."""
    if isinstance(kernel, Mixture):
        parts = zip(kernel.weights, kernel.kernels, strict=True)
        return sum(float(beta) * _kernel_values(part, x, z, jnp) for beta, part in parts)
    if isinstance(kernel, Metric):
        return _kernel_values(kernel.kernel, x @ kernel.root.astype(x.dtype), z @ kernel.root, jnp)
    difference = x[..., None, :] - z.astype(x.dtype)
    scaled = difference / np.asarray(kernel.bandwidth, dtype=x.dtype)  # type: ignore[attr-defined]
    if isinstance(kernel, Laplacian):
        return jnp.exp(-jnp.abs(scaled).sum(axis=-1))
    return kernel.profile((scaled**2).sum(axis=-1))


def _columns(arguments: list[Any], label: str) -> tuple[list[str], list[str]]:
    """Return the labels of the columns, and lines that define them if they are given as inputs."""
    if not any(isinstance(one, Input) for one in arguments):
        return arguments, []
    defined = [one.plumed(f"{label}_input{i}") for i, one in enumerate(Columns(arguments).inputs, start=1)]
    return [name for _, names in defined for name in names], [line for lines, _ in defined for line in lines]


def _is_label(name: object) -> bool:
    return isinstance(name, str) and name != "" and not set(name) & set(" ,=\t\n")


def _numbers(values: np.ndarray) -> str:
    return ",".join(f"{value:.17g}" for value in values)
