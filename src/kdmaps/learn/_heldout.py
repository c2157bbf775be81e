"""The held-out term and its derivative in closed form: what the refinement of a kernel minimises.

Everything is linear algebra of size p×p. Modes solve Σa = μBa with B = L+λR; a bar denotes the derivative of the loss.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from kdmaps.learn.objective import Loss, Objective
from kdmaps.learn.statistics import (
    Operators,
    Statistics,
    guarded_reciprocal,
    make_operators,
    map_arrays,
    operators_adjoint,
    rounding_variance,
)
from kdmaps.selection.rules import PooledScore
from kdmaps.utils.threads import blas_threads, map_ordered


class SplitModes(NamedTuple):
    """All eigenpairs of Σa = μBa, the leading r apart.

    Attributes
    ----------
    values : ndarray of shape (p,)
        μ, descending.
    vectors : ndarray of shape (p, r)
        V, with VᵀΣV = 1.
    outside : ndarray of shape (p, p - r)
        The other eigenvectors O, with OᵀBO = 1.
    """

    values: np.ndarray
    vectors: np.ndarray
    outside: np.ndarray


def solve_modes(covariance: np.ndarray, penalty: np.ndarray, n_modes: int, rounding: float) -> SplitModes | None:
    """Solve Σa = μBa; None where B is not positive definite or the samples do not determine the modes.

    A kernel that is ever smoother ends with fewer modes than are asked for: such a kernel is no answer.

    Parameters
    ----------
    covariance, penalty : ndarray of shape (p, p)
        Σ and B.
    n_modes : int
        r.
    rounding : float
        `rounding_variance` of the statistics.
    """
    factor, info = lapack.dpotrf(penalty, lower=1)
    if info != 0:
        return None
    reduced, _ = lapack.dsygst(covariance, factor, itype=1, lower=1)
    try:
        values, vectors = linalg.eigh(reduced, lower=True, driver="evd", overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    values = values[::-1]
    vectors = linalg.solve_triangular(factor, vectors[:, ::-1], lower=True, trans=1, check_finite=False)
    leading, a = values[:n_modes], vectors[:, :n_modes]
    if not np.all(leading > rounding * np.sum(a**2, axis=0)):
        return None
    return SplitModes(values, a / np.sqrt(leading), vectors[:, n_modes:])


def modes_adjoint(modes: SplitModes, adjoint: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Σ̄ and B̄ from the derivative V̄ of a loss of the space of the modes, which is exact where eigenvalues agree.

    How the modes are turned inside their space does not matter to such a loss, so only pairs across the cut count:

        Σ̄ = sym(OHVᵀ) - ½ V sym(VᵀV̄) Vᵀ,    B̄ = -sym(OHMVᵀ),    H = OᵀV̄/(μ_k - μ_o),  M = diag μ_k.
    """
    V, n = modes.vectors, modes.vectors.shape[1]
    leading, others = modes.values[:n], modes.values[n:]
    reciprocal = guarded_reciprocal(leading - others[:, None], modes.values[0])
    turned = modes.outside @ (modes.outside.T @ adjoint * reciprocal)
    covariance = _sym(turned @ V.T) - V @ _sym(V.T @ adjoint) @ V.T / 2
    return covariance, -_sym((turned * leading) @ V.T)


class Rotation(NamedTuple):
    """The rotation Q = UWᵀ nearest to a square matrix M = U diag(d) Wᵀ."""

    left: np.ndarray
    singular_values: np.ndarray
    right: np.ndarray

    @classmethod
    def nearest(cls, matrix: np.ndarray) -> Rotation:
        """Return the polar factor of a matrix."""
        return cls(*linalg.svd(matrix, check_finite=False))

    @property
    def matrix(self) -> np.ndarray:
        """Q."""
        return self.left @ self.right

    def adjoint(self, adjoint: np.ndarray) -> np.ndarray:
        """M̄ = U(Y - Yᵀ)Wᵀ with Y_ij = (UᵀQ̄W)_ij/(d_i + d_j): sums, not differences, so finite wherever M is regular."""
        U, d, Wt = self
        Y = (U.T @ adjoint @ Wt.T) / (d[:, None] + d)
        return U @ (Y - Y.T) @ Wt


class _Fold(NamedTuple):
    """Modes of the training samples of a fold, turned towards those of all samples, and its test samples."""

    modes: SplitModes
    rotation: Rotation
    turned: np.ndarray  # U = VQ
    weight: float  # n, of the test samples
    covariance: np.ndarray  # Σ of the test samples
    energy: np.ndarray  # L of the test samples

    def forms(self) -> tuple[np.ndarray, np.ndarray]:
        """P = n UᵀΣU and E = n UᵀLU."""
        U = self.turned
        return self.weight * (U.T @ self.covariance @ U), self.weight * (U.T @ self.energy @ U)

    def forms_adjoint(self, by_P: np.ndarray, by_E: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Σ̄ = n UP̄Uᵀ and L̄ = n UĒUᵀ of the test samples, and Ū = 2n(ΣUP̄ + LUĒ)."""
        U, n = self.turned, self.weight
        by_turned = 2 * n * (self.covariance @ U @ by_P + self.energy @ U @ by_E)
        return n * (U @ by_P @ U.T), n * (U @ by_E @ U.T), by_turned


def heldout(statistics: Statistics, log_regularization: float, objective: Objective, roles: np.ndarray) -> Loss:
    """Minus the held-out score (`PooledScore`) of the modes of every fold; NaN where samples do not determine them.

    Modes V of the training samples of each fold, and A of all samples, have VᵀΣV = 1. With T = ΣA and the rotation Q
    nearest to VᵀT, the modes U = VQ are scored on the test samples of their fold. This depends on spaces only and has
    an exact derivative, that of the rotations included.

    Parameters
    ----------
    statistics : Statistics
    log_regularization : float
        log λ.
    objective : Objective
    roles : ndarray of shape (C, F)
        As in `Samples`.
    """
    n, n_folds, lam = objective.n_components, roles.shape[1], float(np.exp(log_regularization))
    # Unions of classes: all samples, the training samples of every fold, the test samples of every fold.
    members = np.vstack([np.ones(len(roles)), roles.T == 1, roles.T == 2])
    with blas_threads(1):  # several problems at once, and the same rounding for any number of threads
        operators = make_operators(statistics, members, objective.center)
        spectra = _solve(statistics, operators, lam, n, 1 + n_folds)
        if spectra is None:
            return _undetermined(statistics, n)
        target = operators.covariance[0] @ spectra[0].vectors
        folds = [_turned(spectra[1 + f], target, operators, 1 + n_folds + f) for f in range(n_folds)]
        P, E = (np.stack(forms) for forms in zip(*(fold.forms() for fold in folds), strict=True))
    coverage = sum(fold.weight for fold in folds) / operators.weight[0]
    score = PooledScore(P, E, coverage, objective.power)

    def adjoint() -> tuple[Statistics, float]:
        with blas_threads(1):
            by_forms = [-part for part in score.lower_bound_adjoint(objective.caution)]
            by_covariance, by_energy, penalty = _operators_adjoint(operators, spectra, target, folds, by_forms)
            totals, grams, energies = operators_adjoint(members, operators, by_covariance, by_energy, objective.center)
        R = np.eye(len(penalty)) if statistics.ridge is None else statistics.ridge
        zeros = Statistics(*map_arrays(np.zeros_like, statistics))
        ridge = None if statistics.ridge is None else lam * penalty
        return zeros._replace(totals=totals, grams=grams, energies=energies, ridge=ridge), lam * np.vdot(penalty, R)

    value, values = -score.lower_bound(objective.caution), spectra[0].values
    below = values[n] if n < len(values) else 0.0
    with np.errstate(divide="ignore"):
        gap = float(values[n - 1] / below)
    return Loss(value, {"heldout": value}, values[:n], gap, adjoint)


def _solve(
    statistics: Statistics, operators: Operators, lam: float, n_modes: int, count: int
) -> list[SplitModes] | None:
    """Return the modes of the first `count` unions of samples; None where one of them does not determine its modes."""
    rounding = rounding_variance(statistics)
    ridge = np.eye(operators.energy.shape[-1]) if statistics.ridge is None else statistics.ridge

    def solve(index: int) -> SplitModes | None:
        return solve_modes(operators.covariance[index], operators.energy[index] + lam * ridge, n_modes, rounding)

    spectra = list(map_ordered(range(count), solve))
    return None if any(modes is None for modes in spectra) else spectra


def _turned(modes: SplitModes, target: np.ndarray, operators: Operators, test: int) -> _Fold:
    rotation = Rotation.nearest(modes.vectors.T @ target)
    turned = modes.vectors @ rotation.matrix
    return _Fold(modes, rotation, turned, operators.weight[test], operators.covariance[test], operators.energy[test])


def _undetermined(statistics: Statistics, n_modes: int) -> Loss:
    def adjoint() -> tuple[Statistics, float]:
        return Statistics(*map_arrays(lambda array: np.full_like(array, np.nan), statistics)), np.nan

    return Loss(np.nan, {"heldout": np.nan}, np.full(n_modes, np.nan), np.nan, adjoint)


def _operators_adjoint(
    operators: Operators, spectra: list[SplitModes], target: np.ndarray, folds: list[_Fold], by_forms: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Σ̄ and L̄ of all unions of samples, and the sum B̄ over the eigenproblems, from P̄ and Ē of the folds.

    Of each fold V̄ = ŪQᵀ + TM̄ᵀ and T̄ = VM̄ for M = VᵀT with Q̄ = VᵀŪ; of T = ΣA then Σ̄ = sym(T̄Aᵀ) and Ā = ΣT̄.
    """
    covariances, energies = np.zeros((2, *operators.covariance.shape))
    by_modes, by_target = [], np.zeros_like(target)
    for union, (fold, by_P, by_E) in enumerate(zip(folds, *by_forms, strict=True), start=1 + len(folds)):
        covariances[union], energies[union], by_turned = fold.forms_adjoint(by_P, by_E)
        V = fold.modes.vectors
        by_overlap = fold.rotation.adjoint(V.T @ by_turned)
        by_modes.append(by_turned @ fold.rotation.matrix.T + target @ by_overlap.T)
        by_target += V @ by_overlap
    covariances[0] = _sym(by_target @ spectra[0].vectors.T)
    by_modes.insert(0, operators.covariance[0] @ by_target)
    penalty = np.zeros_like(energies[0])
    for union, (by_covariance, by_penalty) in enumerate(
        map_ordered(zip(spectra, by_modes, strict=True), lambda pair: modes_adjoint(*pair))
    ):
        covariances[union] += by_covariance
        energies[union] = by_penalty
        penalty += by_penalty
    return covariances, energies, penalty


def _sym(matrix: np.ndarray) -> np.ndarray:
    return (matrix + matrix.T) / 2
