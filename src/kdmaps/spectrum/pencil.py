"""The generalized eigenproblem Σa = μ(L+λR)a and the modes that solve it. p×p only: X is never seen here."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from kdmaps.exceptions import UnreliableModesWarning, UnresolvedModesWarning
from kdmaps.forms.moments import Moments
from kdmaps.utils.threads import blas_threads

#: Beyond this condition number of L+λR the modes lose more than about four digits to rounding.
MAX_CONDITION = 1e12
#: A mode whose relative sampling error (see `Modes.sampling_error`) exceeds this is not resolved by the samples.
MAX_SAMPLING_ERROR = 0.5
#: Beyond this ratio of regularization to energy (see `Modes.ridge_share`) a mode is what λ makes of it.
MAX_RIDGE_SHARE = 3.0
#: Rounding of a number in single precision, and how much of a mode's variance it may bound.
SINGLE_ROUNDING, MAX_SINGLE_NOISE = 6e-8, 0.5
#: Eigenvalues below this fraction of the largest one are rounding errors.
ROUNDING = 1e-15


@dataclass(frozen=True)
class Modes:
    """The leading eigenfunctions φ_k(x) = Σ_m a_mk (φ_m(x) - E φ_m) and how far to trust them.

    Attributes
    ----------
    coefficients : ndarray of shape (p, r)
        a, scaled to unit variance of the modes; the modes are mutually orthogonal (eq:normalize-orth).
    offset : ndarray of shape (r,)
        aᵀ E φ, subtracted from the modes; 0 if the covariance was not centred.
    eigenvalues : ndarray of shape (r,)
        μ: relaxation times shrunk by λ.
    next_eigenvalue : float
        μ_{r+1}; NaN if there is none.
    rates : ndarray of shape (r,)
        aᵀLa/aᵀΣa: the generator's eigenvalues, free of λ.
    condition_number : float
        Of L+λR, in the 1-norm.
    effective_rank : ndarray of shape (r,)
        tr[(L+λR)⁻¹Σ]/μ_k: how many functions compete at the level of mode k.
    effective_count : float
        Effective number of samples.
    """

    coefficients: np.ndarray
    offset: np.ndarray
    eigenvalues: np.ndarray
    next_eigenvalue: float
    rates: np.ndarray
    condition_number: float
    effective_rank: np.ndarray
    effective_count: float

    @property
    def timescales(self) -> np.ndarray:
        """1/rates."""
        with np.errstate(divide="ignore"):
            return 1 / self.rates

    @property
    def gap(self) -> float:
        """μ_r/μ_{r+1}: 1 means that the cut goes through a degenerate cluster."""
        return float(self.eigenvalues.min() / self.next_eigenvalue) if self.next_eigenvalue > 0 else np.inf

    @property
    def sampling_error(self) -> np.ndarray:
        """√(effective rank/n): the order of the relative error of each μ (Koltchinskii and Lounici 2017)."""
        return np.sqrt(self.effective_rank / self.effective_count)

    @property
    def ridge_share(self) -> np.ndarray:
        """λaᵀRa/aᵀLa = 1/(μ·rate) - 1: how much more than the energy the regularization decides about each mode."""
        return 1 / (self.eigenvalues * self.rates) - 1

    @property
    def resolution(self) -> float:
        """Relative distance below which two eigenvalues cannot be told apart with this many samples."""
        return max(4 / np.sqrt(self.effective_count), 1e-6)

    @property
    def clusters(self) -> list[np.ndarray]:
        """Indices of modes grouped by eigenvalues that agree within `resolution`."""
        order = np.argsort(-self.eigenvalues, kind="stable")
        values = self.eigenvalues[order]
        apart = np.diff(-values) > self.resolution * values[:-1]
        return [np.sort(cluster) for cluster in np.split(order, np.flatnonzero(apart) + 1)]

    def by_timescale(self) -> Modes:
        """Return the same modes, longest time scale first: λ may order nearly equal ones otherwise."""
        order = np.argsort(self.rates, kind="stable")
        names = ("offset", "eigenvalues", "rates", "effective_rank")
        ordered = {name: getattr(self, name)[order] for name in names}
        return replace(self, coefficients=self.coefficients[:, order], **ordered)

    def complaints(self) -> list[UnreliableModesWarning]:
        """Reasons not to trust the modes, each with its remedy; empty if there are none."""
        found: list[UnreliableModesWarning] = []
        r = len(self.eigenvalues)
        if self.condition_number > MAX_CONDITION:
            found.append(
                UnreliableModesWarning(
                    f"The condition number of L+λR is {self.condition_number:.1e}: rounding spoils the modes. Increase "
                    "regularization or use fewer features."
                )
            )
        unresolved = np.flatnonzero(self.sampling_error > MAX_SAMPLING_ERROR)
        if unresolved.size:
            first = unresolved[0]
            found.append(
                UnresolvedModesWarning(
                    f"{self.effective_count:.0f} (effective) samples do not resolve mode {first + 1}"
                    f"{' and the modes after it' if first + 1 < r else ''}: {self.effective_rank[first]:.0f} functions "
                    "compete at its level. Use more samples, fewer n_components, more regularization or a wider "
                    "bandwidth."
                )
            )
        heaviest = int(np.argmax(self.ridge_share))
        if self.ridge_share[heaviest] > MAX_RIDGE_SHARE:
            found.append(
                UnresolvedModesWarning(
                    f"The regularization weighs {self.ridge_share[heaviest]:.0f} times as much as the energy of mode "
                    f"{heaviest + 1}: λ, which has the unit of a rate, decides this mode. Decrease regularization, or "
                    "let KernelSearchCV choose it."
                )
            )
        if self.gap < 1 + self.resolution:
            found.append(
                UnreliableModesWarning(
                    f"Modes {r} and {r + 1} have the same time scale within the sampling error (gap {self.gap:.3f}): "
                    f"the space of the first {r} modes is arbitrary in part. Use another n_components."
                )
            )
        return found


def solve(
    covariance: np.ndarray, energy: np.ndarray, ridge: np.ndarray | None, n_modes: int, regularization: float
) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Top eigenpairs of Σa = μ(L+λR)a (eq:gen_eig_mat) by Cholesky reduction.

    Parameters
    ----------
    covariance, energy : ndarray of shape (p, p)
        Σ and L.
    ridge : ndarray of shape (p, p) or None
        R; None is the identity.
    n_modes : int
        How many pairs; at most p.
    regularization : float
        λ.

    Returns
    -------
    eigenvalues : ndarray of shape (n_modes,), descending
    coefficients : ndarray of shape (p, n_modes)
        With aᵀ(L+λR)a = 1.
    condition_number : float
        Estimate for L+λR in the 1-norm.
    trace : float
        tr[(L+λR)⁻¹Σ].
    """
    p = covariance.shape[0]
    penalty = regularization * np.eye(p) if ridge is None else regularization * ridge
    penalty += energy
    norm = np.abs(penalty).sum(axis=0).max()
    factor = _cholesky(penalty)
    reciprocal, _ = lapack.dpocon(factor, norm, uplo="L")
    reduced, _ = lapack.dsygst(covariance, factor, itype=1, lower=1)
    trace = float(np.trace(reduced))
    values, vectors = linalg.eigh(
        reduced, subset_by_index=[p - n_modes, p - 1], driver="evr", overwrite_a=True, check_finite=False
    )
    coefficients = linalg.solve_triangular(factor, vectors[:, ::-1], lower=True, trans=1, check_finite=False)
    return values[::-1], coefficients, 1 / max(reciprocal, np.finfo(float).tiny), trace


def _cholesky(
    matrix: np.ndarray, name: str = "L+λR", remedy: str = "Increase regularization or use fewer features."
) -> np.ndarray:
    """Lower Cholesky factor; a diagonal that is too small is lifted, tenfold at a time, and the lift is reported."""
    scale = np.trace(matrix) / matrix.shape[0]
    for jitter in (0.0, *np.logspace(-15, -6, 10)):
        lifted = matrix + jitter * scale * np.eye(matrix.shape[0]) if jitter else matrix
        factor, info = lapack.dpotrf(lifted, lower=1, clean=0)
        if info == 0:
            if jitter:
                warnings.warn(
                    f"{name} is not positive definite in floating point; {jitter:.0e} of its mean diagonal was added. "
                    f"{remedy}",
                    UnreliableModesWarning,
                    stacklevel=4,
                )
            return factor
    raise np.linalg.LinAlgError(
        f"{name} is not positive definite even with jitter: X, sample_weight or diffusion has values that are too "
        "extreme; rescale or repair them."
    )


def rounding_variance(moments: Moments, coefficients: np.ndarray) -> np.ndarray:
    """How much of aᵀΣa rounding of E φφᵀ may leave where the samples have no variance at all, for each column a."""
    return 2 * ROUNDING * np.trace(moments.gram) / moments.weight * np.einsum("mk,mk->k", coefficients, coefficients)


def single_precision_complaints(moments: Moments, coefficients: np.ndarray) -> list[UnreliableModesWarning]:
    """Whether features in single precision leave enough of the unit variance of modes, with a remedy if not.

    Rounding of size ε in each feature is noise of variance at most ε tr(Σ)|a|² in a mode with coefficients a.
    """
    noise = SINGLE_ROUNDING * np.trace(moments.covariance()) * np.einsum("mk,mk->k", coefficients, coefficients)
    spoiled = np.flatnonzero(noise > MAX_SINGLE_NOISE)
    if not spoiled.size:
        return []
    return [
        UnreliableModesWarning(
            f"Single precision may spoil mode {spoiled[0] + 1}: it lives on differences of nearly equal features. Use "
            "dtype='float64', a narrower bandwidth or fewer n_components."
        )
    ]


def find_modes(
    moments: Moments, ridge: np.ndarray | None, n_components: int, regularization: float, center: bool = True
) -> Modes:
    """The leading modes of the samples behind `moments`.

    Raises
    ------
    ValueError
        If the samples do not determine `n_components` modes.
    """
    covariance, energy = moments.covariance(center), moments.mean_energy()
    p = covariance.shape[0]
    if n_components > p:
        raise ValueError(f"n_components={n_components} exceeds the number of features {p}; increase n_features.")
    # Small problems do not gain from threads, and lose badly where other threads want the cores too.
    with blas_threads(1) if p <= 512 else nullcontext():
        solution = solve(covariance, energy, ridge, min(n_components + 1, p), regularization)
    values, coefficients, condition, trace = solution
    floor = rounding_variance(moments, coefficients)
    determined = int(np.count_nonzero((values > floor)[:n_components]))
    if determined < n_components:
        raise ValueError(
            f"The samples determine only {determined} modes, fewer than n_components={n_components}; use fewer "
            "n_components or more distinct samples."
        )
    mu, a = values[:n_components], coefficients[:, :n_components]
    a = a / np.sqrt(np.einsum("mk,mk->k", a, covariance @ a))
    a = a * np.where(_fixed_direction(p) @ a < 0, -1.0, 1.0)
    return Modes(
        coefficients=a,
        offset=moments.mean @ a if center else np.zeros(n_components),
        eigenvalues=mu,
        next_eigenvalue=float(values[n_components]) if n_components < p else np.nan,
        rates=np.einsum("mk,mk->k", a, energy @ a),
        condition_number=condition,
        effective_rank=trace / mu,
        effective_count=moments.effective_count,
    )


class RegularizationPath:
    """Σa = μ(L+λR)a for many λ from one factorisation.

    R is made the identity by its Cholesky factor; then L = U D Uᵀ is diagonalised once, and for every λ the problem
    is the symmetric one of (D+λ)^{-½} UᵀΣU (D+λ)^{-½}. Directions in which the samples see neither variance nor energy
    (most of them, for a smooth kernel) are left out. Beyond a few hundred features (`_DENSE_BLOCKS`), a block Krylov
    iteration starts from the modes of the λ before.

    Parameters
    ----------
    covariance, energy : ndarray of shape (p, p)
        Σ and L.
    ridge : ndarray of shape (p, p) or None
        R; None is the identity.
    """

    def __init__(self, covariance: np.ndarray, energy: np.ndarray, ridge: np.ndarray | None = None):
        self._root = None
        if ridge is not None:
            self._root = _cholesky(ridge, "R", "Use fewer landmarks, or landmarks further apart.")
            covariance, energy = (lapack.dsygst(m, self._root, itype=1, lower=1)[0] for m in (covariance, energy))
            covariance, energy = (np.tril(m) + np.tril(m, -1).T for m in (covariance, energy))
        energies, U = np.linalg.eigh(energy)
        SU = covariance @ U
        variances = np.einsum("ij,ij->j", U, SU)
        seen = (energies > ROUNDING * energies[-1]) | (variances > ROUNDING * variances.max())
        self._energies, self._U = np.maximum(energies[seen], 0), U[:, seen]
        self._S = self._U.T @ SU[:, seen]
        self._span = energies[-1], 0.0 if not seen.all() else max(energies[0], 0.0)
        self._start: np.ndarray | None = None

    @property
    def frame(self) -> np.ndarray:
        """B of shape (p, q) with BᵀRB = 1: the directions in which the samples see variance or energy."""
        return self._lifted(self._U)

    def _lifted(self, vectors: np.ndarray) -> np.ndarray:
        if self._root is None:
            return vectors
        return linalg.solve_triangular(self._root, vectors, lower=True, trans=1, check_finite=False)

    def solve(self, n_modes: int, regularization: float) -> tuple[np.ndarray, np.ndarray]:
        """At most `n_modes` leading eigenvalues μ, descending, and coefficients with aᵀ(L+λR)a = 1."""
        scale = 1 / np.sqrt(self._energies + regularization)
        matrix = scale[:, None] * self._S * scale
        block = n_modes + _EXTRA
        if len(scale) <= _DENSE_BLOCKS * block:
            values, vectors = _leading(matrix, n_modes)
        else:
            if self._start is None or self._start.shape[1] < block:
                self._start = np.linalg.qr(np.random.default_rng(0).standard_normal((len(scale), block)))[0]
            values, vectors = _block_krylov(matrix, self._start, n_modes)
            self._start = vectors
        return values[:n_modes], self._lifted(self._U @ (scale[:, None] * vectors[:, :n_modes]))

    def condition_number(self, regularization: float) -> float:
        """Of L+λR relative to R, in the 2-norm."""
        largest, smallest = self._span
        return float((largest + regularization) / (smallest + regularization))


# Up to this many times the size of the Krylov block, a dense solve for the leading pairs is faster than an iteration.
_DENSE_BLOCKS = 70
# Vectors that the Krylov block carries beyond the modes asked for: they take the slow convergence at the cut.
_EXTRA = 4


def _block_krylov(
    matrix: np.ndarray, start: np.ndarray, n: int, tolerance: float = 1e-11
) -> tuple[np.ndarray, np.ndarray]:
    """Leading eigenpairs of a symmetric matrix, `start.shape[1]` of them, the first `n` to `tolerance`."""
    V, block = start, start.shape[1]
    for _ in range(6):  # more would cost more than the dense solve
        blocks = [V]
        for _ in range(3):
            step = matrix @ blocks[-1]
            blocks.append(step / np.linalg.norm(step, axis=0))
        K = np.linalg.qr(np.hstack(blocks))[0]
        image = matrix @ K
        values, vectors = np.linalg.eigh(K.T @ image)
        values, vectors = values[::-1][:block], vectors[:, ::-1][:, :block]
        V = K @ vectors
        residual = np.linalg.norm(image @ vectors[:, :n] - V[:, :n] * values[:n], axis=0).max()
        if residual <= tolerance * values[0]:
            return values, V
    return _leading(matrix, block)


def _leading(matrix: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """At most `n` leading eigenpairs of a symmetric matrix, descending."""
    p = matrix.shape[0]
    values, vectors = linalg.eigh(matrix, subset_by_index=[max(p - n, 0), p - 1], check_finite=False)
    return values[::-1], vectors[:, ::-1]


def _fixed_direction(p: int) -> np.ndarray:
    """A generic direction that decides signs: no symmetry of the data makes a mode orthogonal to it."""
    return np.modf(np.arange(1, p + 1) * 0.6180339887498949)[0] - 0.5
