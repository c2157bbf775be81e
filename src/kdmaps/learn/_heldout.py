"""The held-out term, which refinements minimise, and its derivative in closed form.

Everything is linear algebra of size p×p. Modes solve Σa = μBa with B = L+λR; a bar denotes the derivative of the loss.
Derivatives by p×p matrices have the low rank of the modes, and stay factored until they are added up for each class.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import linalg

from kdmaps.learn.objectives import Loss, Objective
from kdmaps.learn.statistics import Statistics, map_arrays, rounding_variance
from kdmaps.selection.scores import PooledScore
from kdmaps.spectrum.adjoint import LeadingModes, leading_modes
from kdmaps.utils.threads import map_ordered

#: Start of the solver for each eigenproblem, by number: `LeadingModes.reduced` at the previous θ.
Memory = dict[int, np.ndarray]


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


class _Union:
    """Operators of a union of classes: Σ = Σ_c s_c G_c - mmᵀ and L = Σ_c s_c E_c with shares s_c = 1/w, m = E φ.

    `members` is 1 for classes that belong to the union, 0 for the others; without `center`, m = 0.
    """

    def __init__(self, statistics: Statistics, members: np.ndarray, center: bool):
        self._statistics = statistics
        self.weight = float(statistics.weights @ members)
        self.share = members / self.weight
        self.mean = self.share @ statistics.totals * float(center)

    def matrices(self) -> tuple[np.ndarray, np.ndarray]:
        """Return Σ and L."""
        gram, energy = (np.tensordot(self.share, part, 1) for part in self._statistics[2:4])
        gram -= np.outer(self.mean, self.mean)
        return gram, energy

    def images(self, U: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ΣU and LU, without the matrices of the union."""
        classes = np.flatnonzero(self.share)
        gram, energy = (sum(self.share[c] * (part[c] @ U) for c in classes) for part in self._statistics[2:4])
        return gram - np.outer(self.mean, self.mean @ U), energy


class _Fold:
    """Modes of the training samples of a fold, turned towards the modes of all samples, and its test samples."""

    def __init__(self, modes: LeadingModes, target: np.ndarray, test: _Union):
        self.modes, self.weight = modes, test.weight  # n, of the test samples
        self.rotation = Rotation.nearest(modes.vectors.T @ target)
        self.turned = modes.vectors @ self.rotation.matrix  # U = VQ
        self.covariance, self.energy = test.images(self.turned)  # ΣU and LU of the test samples

    def forms(self) -> tuple[np.ndarray, np.ndarray]:
        """P = n UᵀΣU and E = n UᵀLU."""
        P, E = (self.weight * (self.turned.T @ image) for image in (self.covariance, self.energy))
        return (P + P.T) / 2, (E + E.T) / 2

    def forms_adjoint(self, by_P: np.ndarray, by_E: np.ndarray) -> tuple[_Adjoint, np.ndarray]:
        """Σ̄ = n UP̄Uᵀ and L̄ = n UĒUᵀ of the test samples, and Ū = 2n(ΣUP̄ + LUĒ)."""
        U, n = self.turned, self.weight
        by_turned = 2 * n * (self.covariance @ by_P + self.energy @ by_E)
        return _Adjoint(n * U @ by_P, n * U @ by_E, U), by_turned


class _Adjoint(NamedTuple):
    """Σ̄ = sym(SVᵀ) and L̄ = sym(TVᵀ) of a union of classes, as S, T and V."""

    covariance: np.ndarray
    energy: np.ndarray
    right: np.ndarray

    def by_mean(self, mean: np.ndarray) -> np.ndarray:
        """-2Σ̄m: the derivative by the mean of Σ = gram/w - mmᵀ."""
        return -(self.covariance @ (self.right.T @ mean) + self.right @ (self.covariance.T @ mean))


class _Fit(NamedTuple):
    """The modes of all samples and of every fold, and their score on the test samples."""

    unions: list[_Union]  # all samples, the training samples of every fold, the test samples of every fold
    spectra: list[LeadingModes]  # of all samples and of the training samples
    target: np.ndarray  # T = ΣA of all samples
    folds: list[_Fold]
    score: PooledScore


def heldout(
    statistics: Statistics,
    log_regularization: float,
    objective: Objective,
    roles: np.ndarray,
    memory: Memory | None = None,
) -> Loss:
    """Minus the held-out score (`PooledScore`) of the modes of every fold; NaN where samples do not determine them.

    Modes V of the training samples of each fold, and A of all samples, have VᵀΣV = 1. With T = ΣA and the rotation Q
    nearest to VᵀT, the modes U = VQ are scored on the test samples of their fold. This depends on spaces only and has
    an exact derivative, through the rotations, too.

    `roles` are as in `Samples`. `memory` is filled here; given again with similar statistics, it saves most of the work
    of the eigenproblems.
    """
    n, lam = objective.n_components, float(np.exp(log_regularization))
    fit = _fit(statistics, lam, objective, roles, {} if memory is None else memory)
    if fit is None:
        unknown = partial(map_arrays, lambda array: np.full_like(array, np.nan), statistics)
        nothing = np.full(n, np.nan)
        return Loss(np.nan, {"heldout": np.nan}, nothing, np.nan, lambda: (Statistics(*unknown()), np.nan))

    def adjoint() -> tuple[Statistics, float]:
        by_forms = [-part for part in fit.score.lower_bound_adjoint(objective.caution)]
        adjoints, problems = _union_adjoints(fit, by_forms)
        totals, grams, energies = _class_adjoints(fit.unions, adjoints, objective.center)
        others = statistics._replace(totals=None, grams=None, energies=None, ridge=None)
        result = Statistics(*map_arrays(np.zeros_like, others))
        result = result._replace(totals=totals, grams=grams, energies=energies)
        if statistics.ridge is None:  # R = 1
            return result, lam * float(sum(np.vdot(part.energy, part.right) for part in problems))
        ridge = lam * _sym(np.hstack([part.energy for part in problems]), np.hstack([p.right for p in problems]))
        return result._replace(ridge=ridge), float(np.vdot(ridge, statistics.ridge))

    value, values = -fit.score.lower_bound(objective.caution), fit.spectra[0].values
    below = values[n] if n < len(values) else 0.0
    with np.errstate(divide="ignore"):
        gap = float(values[n - 1] / below)
    return Loss(value, {"heldout": value}, values[:n], gap, adjoint)


def _fit(statistics: Statistics, lam: float, objective: Objective, roles: np.ndarray, memory: Memory) -> _Fit | None:
    """Solve the eigenproblems of all samples and of every fold; None where one of them does not determine its modes."""
    n_folds, rounding = roles.shape[1], rounding_variance(statistics)
    members = np.vstack([np.ones(len(roles)), roles.T == 1, roles.T == 2])
    unions = [_Union(statistics, row, objective.center) for row in members]

    def solve(index: int) -> LeadingModes | None:
        covariance, penalty = unions[index].matrices()
        if statistics.ridge is None:
            penalty.flat[:: len(penalty) + 1] += lam
        else:
            penalty += lam * statistics.ridge
        return leading_modes(covariance, penalty, objective.n_components, rounding, memory.get(index))

    spectra = [modes for modes in map_ordered(range(1 + n_folds), solve) if modes is not None]
    if len(spectra) < 1 + n_folds:
        return None
    memory.update(enumerate(modes.reduced for modes in spectra))
    target, tests = unions[0].images(spectra[0].vectors)[0], unions[1 + n_folds :]
    folds = [_Fold(modes, target, test) for modes, test in zip(spectra[1:], tests, strict=True)]
    P, E = (np.stack(forms) for forms in zip(*(fold.forms() for fold in folds), strict=True))
    coverage = sum(fold.weight for fold in folds) / unions[0].weight
    return _Fit(unions, spectra, target, folds, PooledScore(P, E, coverage, objective.power))


def _union_adjoints(fit: _Fit, by_forms: list[np.ndarray]) -> tuple[list[_Adjoint], list[_Adjoint]]:
    """Return the derivatives by the operators of all unions, and by Σ and B of the eigenproblems alone.

    Of each fold V̄ = ŪQᵀ + TM̄ᵀ and T̄ = VM̄ for M = VᵀT with Q̄ = VᵀŪ; of T = ΣA then Σ̄ = sym(T̄Aᵀ) and Ā = ΣT̄.
    """
    by_modes, by_target, tests = [], np.zeros_like(fit.target), []
    for fold, by_P, by_E in zip(fit.folds, *by_forms, strict=True):
        test, by_turned = fold.forms_adjoint(by_P, by_E)
        V = fold.modes.vectors
        by_overlap = fold.rotation.adjoint(V.T @ by_turned)
        by_modes.append(by_turned @ fold.rotation.matrix.T + fit.target @ by_overlap.T)
        by_target += V @ by_overlap
        tests.append(test)
    by_modes.insert(0, fit.unions[0].images(by_target)[0])
    solved = map_ordered(zip(fit.spectra, by_modes, strict=True), lambda pair: pair[0].adjoint(pair[1]))
    problems = [_Adjoint(S, T, modes.vectors) for (S, T), modes in zip(solved, fit.spectra, strict=True)]
    whole = problems[0]._replace(covariance=problems[0].covariance + by_target)
    return [whole, *problems[1:], *tests], problems


def _class_adjoints(
    unions: list[_Union], adjoints: list[_Adjoint], center: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the derivatives by totals, Grams and energies of classes, from the derivatives by unions of classes."""
    shares = np.stack([union.share for union in unions])
    totals = np.zeros((shares.shape[1], len(adjoints[0].right)))
    if center:
        totals = shares.T @ np.stack([part.by_mean(union.mean) for part, union in zip(adjoints, unions, strict=True)])
    grams, energies = np.empty((2, len(totals), *2 * totals.shape[1:]))
    for c, share in enumerate(shares.T):
        parts = [(s, part) for s, part in zip(share, adjoints, strict=True) if s != 0]
        right = np.hstack([s * part.right for s, part in parts])
        grams[c] = _sym(np.hstack([part.covariance for _, part in parts]), right)
        energies[c] = _sym(np.hstack([part.energy for _, part in parts]), right)
    return totals, grams, energies


def _sym(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """sym(SVᵀ)."""
    product = left @ right.T
    return (product + product.T) / 2
