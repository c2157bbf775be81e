"""Weights that reweight samples of a biased simulation to the unbiased system."""

from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from kdmaps.checks import Check, rules, warn
from kdmaps.data.findings import effective_sample_size as effective_sample_size
from kdmaps.data.findings import least_effective
from kdmaps.utils.threads import one_blas_thread
from kdmaps.utils.validation import check_positive_number

#: Largest standard error of a free-energy difference between windows, in kT: a factor of e in the weights.
#: Largest energy in kT; sums of more would overflow or lose all digits.
MAX_REDUCED = 1e12
#: Largest error of the number of frames of a window, as a part of all frames, and most steps of the iteration.
WINDOW_TOLERANCE, MAX_STEPS = 1e-10, 100


@one_blas_thread()
def boltzmann_weights(bias_energy: ArrayLike, kT: float) -> np.ndarray:
    """Return the weights e^{U/kT}, scaled to mean 1, of samples simulated with a bias U added to the energy V.

    Samples of e^{-(V+U)/kT} with these weights represent e^{-V/kT}; pass them to `fit` as `sample_weight`. A different
    temperature is also a bias: samples of e^{-V/kT'} represent e^{-V/kT} with U = V (kT/kT' - 1).

    Parameters
    ----------
    bias_energy : array-like of shape (n_samples,)
        U at the samples, in the units of `kT`; an additive constant has no effect.
    kT : float
        Temperature times Boltzmann's constant.

    Warns
    -----
    DataWarning
        If a few samples carry nearly all of the weight.

    Examples
    --------
    >>> import numpy as np
    >>> from kdmaps.simulation import boltzmann_weights
    >>> boltzmann_weights([0.0, np.log(3.0)], kT=1.0)
    array([0.5, 1.5])
    """
    return _scaled(_checked_energies("bias_energy", bias_energy, 1), check_positive_number("kT", kT))


@one_blas_thread()
def metadynamics_weights(
    bias_energy: ArrayLike, bias_on_grid: ArrayLike, kT: float, bias_factor: float, snapshot: ArrayLike | None = None
) -> np.ndarray:
    """Return the weights e^{(U(s,t) - c(t))/kT}, scaled to mean 1, of frames of (well-tempered) metadynamics.

    While the bias U(s, t) grows, frames at different times are made comparable by c(t), the work done by the bias
    (P. Tiwary and M. Parrinello, J. Phys. Chem. B 119, 736 (2015)), with the bias factor γ:

        c(t) = kT log ∫ e^{γ/(γ-1) U(s,t)/kT} ds / ∫ e^{1/(γ-1) U(s,t)/kT} ds.

    Parameters
    ----------
    bias_energy : array-like of shape (n_frames,)
        U at each frame, at its own time.
    bias_on_grid : array-like of shape (n_snapshots, ...)
        U at several times, on a regular grid of the collective variables that covers the visited region.
    kT : float
        Temperature times Boltzmann's constant, in the units of the energies.
    bias_factor : float
        γ > 1; infinity for metadynamics without tempering.
    snapshot : array-like of shape (n_frames,) of int, optional
        The snapshot of `bias_on_grid` for each frame; by default there is one snapshot for each frame.

    Warns
    -----
    DataWarning
        If a few frames carry nearly all of the weight.

    Examples
    --------
    The second frame was simulated when the bias was higher by 1 everywhere, which does not matter:

    >>> import numpy as np
    >>> from kdmaps.simulation import metadynamics_weights
    >>> hill = np.array([0.0, 1.0, 0.0])
    >>> metadynamics_weights([1.0, 2.0], [hill, hill + 1], kT=1.0, bias_factor=10.0)
    array([1., 1.])
    """
    energy, grid = _in_kT("bias_energy", bias_energy, kT, 1), _in_kT("bias_on_grid", bias_on_grid, kT)
    if not isinstance(bias_factor, Real) or not float(bias_factor) > 1:
        raise ValueError(f"bias_factor must be a number greater than 1 (or infinity), got {bias_factor!r}.")
    rows = np.arange(len(energy)) if snapshot is None else np.asarray(snapshot)
    if rows.shape != energy.shape or rows.dtype.kind not in "iu":
        raise ValueError(f"snapshot must be one integer for each of {len(energy)} frames.")
    if rows.min() < 0 or rows.max() >= len(grid) or (snapshot is None and len(grid) != len(energy)):
        raise ValueError(
            f"bias_on_grid has {len(grid)} snapshots for {len(energy)} frames: give one for each frame, or give the "
            "number of the snapshot for each frame with snapshot."
        )
    tempering = 1 / (float(bias_factor) - 1)
    flat = grid.reshape(len(grid), -1)
    offset = logsumexp((1 + tempering) * flat, axis=1) - logsumexp(tempering * flat, axis=1)
    return _scaled(energy - offset[rows])


@one_blas_thread()
def umbrella_weights(bias_energies: ArrayLike, window: ArrayLike, kT: float) -> np.ndarray:
    """Return the weights, scaled to mean 1, of frames of several simulations with different static biases.

    All frames are reweighted to the unbiased system by MBAR (M. R. Shirts and J. D. Chodera, J. Chem. Phys. 129, 124105
    (2008)): w_n ∝ 1/Σ_k N_k e^{f_k - U_k(x_n)/kT} with N_k frames in window k. The free energies f of the windows
    minimise the convex function Σ_n log Σ_k N_k e^{f_k - U_k(x_n)/kT} - Σ_k N_k f_k. An unbiased simulation is a window
    with U = 0.

    Parameters
    ----------
    bias_energies : array-like of shape (n_frames, n_windows)
        U_k(x_n): the bias of every window at every frame, including frames of other windows.
    window : array-like of shape (n_frames,) of int
        The window that each frame was simulated in, from 0.
    kT : float
        Temperature times Boltzmann's constant, in the units of the energies.

    Warns
    -----
    DataWarning
        If a few frames carry nearly all of the weight, or if windows hardly overlap.

    Examples
    --------
    >>> import numpy as np
    >>> from kdmaps.simulation import umbrella_weights
    >>> umbrella_weights([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]], window=[0, 0, 1], kT=1.0)  # a constant bias
    array([1., 1., 1.])
    """
    energies = _in_kT("bias_energies", bias_energies, kT, 2)
    rows = np.asarray(window)
    if rows.shape != energies.shape[:1] or rows.dtype.kind not in "iu":
        raise ValueError(f"window must be one integer for each of {len(energies)} frames.")
    if rows.min() < 0 or rows.max() >= energies.shape[1]:
        raise ValueError(f"window must be from 0 to {energies.shape[1] - 1}, the columns of bias_energies.")
    used, counts = np.unique(rows, return_counts=True)
    energies = energies[:, used]
    if len(used) == 1:
        return _scaled(energies[:, 0])

    # Within a few kT of the solution: frames of window k have U_k of about minus the logarithm of its share.
    start = np.array([energies[rows == k, j].mean() for j, k in enumerate(used)])
    total, shares = _solve_windows(energies, counts.astype(np.float64), start - start[0])
    _check_overlap(shares, used)
    return _scaled(-total)


def _solve_windows(energies: np.ndarray, counts: np.ndarray, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return log Σ_k N_k e^{f_k - U_k} and the shares of the windows in every frame, at the solution of MBAR.

    Newton's method with step halving: the function is convex, and its second derivatives are sums over the shares.
    """
    n, scale = len(energies), max(float(np.abs(energies).max()), 1.0)

    def at(f: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        terms = np.log(counts) + f - energies
        total = logsumexp(terms, axis=1)
        return float(total.sum() - counts @ f) / n, total, np.exp(terms - total[:, None])

    value, total, shares = at(f)
    for _ in range(MAX_STEPS):
        taken = shares.sum(axis=0)
        gradient = (taken - counts)[1:]
        if np.abs(gradient).max() <= WINDOW_TOLERANCE * n:
            return total, shares
        second = np.diag(taken) - shares.T @ shares
        # A tiny ridge: without overlap, a difference of two windows has no second derivative.
        step = np.linalg.solve(second[1:, 1:] + 1e-12 * n * np.eye(len(gradient)), gradient)
        for halvings in range(MAX_STEPS):
            new = f - np.append(0.0, step) / 2**halvings
            found = at(new)
            if found[0] <= value + 1e-14 * scale:  # rounding
                break
        f, (value, total, shares) = new, found
    warn(Check(rules.WINDOWS_CONVERGE, 1.0, words={"steps": MAX_STEPS}))
    return total, shares


def _check_overlap(shares: np.ndarray, windows: np.ndarray) -> None:
    """Warn if the free-energy difference of two windows is uncertain.

    Its variance is v·H⁺v - 1/N_i - 1/N_j with v = e_i - e_j and the second derivatives H = diag(Σ_n p_n) - Σ_n p_n p_nᵀ
    of the objective (C. J. Geyer 1994), where p_n are the shares of the windows in frame n.
    """
    counts = shares.sum(axis=0)
    values, vectors = np.linalg.eigh(np.diag(counts) - shares.T @ shares)
    # The first eigenvector is constant, with eigenvalue 0; rounding errors are 1e-16 of the number of frames.
    scaled = vectors[:, 1:] / np.sqrt(np.maximum(values[1:], 1e-12 * len(shares)))
    variance = ((scaled[:, None] - scaled) ** 2).sum(axis=2) - (1 / counts[:, None] + 1 / counts)
    i, j = np.unravel_index(variance.argmax(), variance.shape)
    error = float(np.sqrt(max(variance[i, j], 0.0)))
    words = {"first": windows[i], "second": windows[j], "error": min(error, 100)}
    warn(Check(rules.OVERLAP, error, words=words))


def _in_kT(name: str, energies: ArrayLike, kT: float, ndim: int | None = None) -> np.ndarray:
    """Return energies over kT; raise if they overflow."""
    with np.errstate(over="ignore"):
        reduced = _checked_energies(name, energies, ndim) / check_positive_number("kT", kT)
    if not np.abs(reduced).max() < MAX_REDUCED:
        raise ValueError(f"{name} reaches {np.abs(reduced).max():.1e} kT; check that it has the unit of kT={kT!r}.")
    return reduced


def _checked_energies(name: str, energies: ArrayLike, ndim: int | None = None) -> np.ndarray:
    """Return finite energies, one row per frame."""
    array = np.asarray(energies, dtype=np.float64)
    if (array.ndim != ndim if ndim else array.ndim < 2) or array.size == 0 or not np.isfinite(array).all():
        what = "one finite energy per sample" if ndim == 1 else "a row of finite energies per frame"
        raise ValueError(f"{name} must be {what}, got an array of shape {array.shape}.")
    return array


def _scaled(energies: np.ndarray, kT: float = 1.0) -> np.ndarray:
    """Return the weights e^{energy/kT}, scaled to mean 1, and warn if a few dominate."""
    with np.errstate(over="ignore"):  # differences that overflow are weights of 0
        weights = np.exp((energies - energies.max()) / kT)
    weights /= weights.mean()
    n, effective = len(weights), effective_sample_size(weights)
    warn(Check(rules.EFFECTIVE_SAMPLES, effective, least_effective(n), words={"rows": n}))
    return weights
