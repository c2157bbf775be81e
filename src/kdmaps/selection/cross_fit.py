"""Modes of one kernel fitted on every fold and on all samples, for a path of regularizations."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial

import numpy as np

from kdmaps.forms.moments import Moments
from kdmaps.selection.folds import united
from kdmaps.spectrum.directed import doubled, doubled_ridge
from kdmaps.spectrum.iteration import STEPS, FoldPath, cross_fit_path, seen_directions
from kdmaps.spectrum.path import RegularizationPath
from kdmaps.spectrum.pencil import rounding_variance
from kdmaps.utils.threads import check_cancelled, map_ordered


@dataclass(frozen=True)
class FoldFit:
    """Modes V fitted on the training samples of a fold, and the operators of its test samples."""

    coefficients: np.ndarray  #: (p, r): V, with unit variance on the training samples.
    eigenvalues: np.ndarray  #: (r,): μ on the training samples.
    regularization: float  #: λ.
    test_weight: float  #: Total weight of the test samples.
    test_covariance: np.ndarray  #: (r, r): VᵀΣV of the test samples.
    test_energy: np.ndarray  #: (r, r): VᵀLV of the test samples.
    test_ridge: np.ndarray  #: (r, r): VᵀRV.
    train_energy: np.ndarray  #: (r, r): VᵀLV of the training samples; there VᵀΣV = 1.
    test_path: Callable[[], RegularizationPath]  #: Returns the eigenproblem of the test samples themselves.
    #: (r,), or 0 after screening: means of the modes over the test samples minus their means over all samples.
    test_shift: np.ndarray | float = 0.0

    @cached_property
    def test_eigenvalues(self) -> np.ndarray:
        """μ_1..μ_{r+1} of the test samples' own eigenproblem, padded with 0."""
        n = self.coefficients.shape[1] + 1
        values, _ = self.test_path().solve(n, self.regularization)
        return np.pad(values, (0, n - len(values)))


@dataclass(frozen=True)
class CrossFit:
    """Modes of one kernel and one λ, fitted on every fold and on all samples."""

    folds: list[FoldFit]
    coefficients: np.ndarray  # modes of all samples; (p, r)
    rotations: np.ndarray  # Procrustes rotations of the modes of each fold towards the modes of all samples; (F, r, r)
    eigenvalues: np.ndarray  # μ on all samples; (r,)
    rates: np.ndarray  # λ-free rates on all samples; (r,)
    coverage: float  # mean number of times that a sample is tested; for repeated folds, the number of repeats
    overlaps: np.ndarray  # VᵀΣA for the modes V of each fold and A of all samples, Σ of all samples; (F, r, r)
    spreads: np.ndarray  # VᵀΣV; (F, r, r)
    condition_number: float
    seconds: list[float] = field(default_factory=list)  # time to solve each fold

    def agreement(self, n_modes: int | None = None) -> float:
        """Mean squared cosine between the spaces of the first modes of the folds and of all samples."""
        k = len(self.eigenvalues) if n_modes is None else n_modes
        M, S = self.overlaps[:, :k, :k], self.spreads[:, :k, :k]
        return float(np.sum(M * np.linalg.solve(S, M)) / (k * len(M)))

    def held_out_quotients(self) -> np.ndarray:
        """Σ_f n_f E_f|∇V_k|² / Σ_f n_f E_f(V_k - EV_k)² for the k-th mode V_k of each fold on its test samples.

        EV_k is the mean over all samples: a block of a trajectory has less variance about its own mean.

        Rates on the training samples are too small, because the modes minimise them there. Held-out quotients are not
        optimistic; by the variational principle they are too large, as the modes of a fold are not exact. Modes keep
        the order of their fold: rotating or sorting them on test samples would be a choice by these samples.
        """
        energy, variance = self.test_parts()
        return energy.sum(axis=0) / variance.sum(axis=0)

    def test_parts(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the terms of numerator and denominator of `held_out_quotients`; (F, r) each."""
        weight = np.array([fold.test_weight for fold in self.folds])[:, None]
        energy = np.stack([np.diagonal(fold.test_energy) for fold in self.folds])
        variance = np.stack([np.diagonal(fold.test_covariance) + fold.test_shift**2 for fold in self.folds])
        return weight * energy, weight * variance


#: Operators are expressed in a frame if it has at most this fraction of the features: else it costs more than it saves.
_WORTHWHILE = 0.5


@dataclass(eq=False)
class Operators:
    """Σ and L of some samples, and the modes that they determine for any λ.

    With a frame B, BᵀRB = 1, coefficients are relative to its columns: the operators are BᵀΣB and BᵀLB.
    """

    moments: Moments
    ridge: np.ndarray | None
    center: bool
    frame: np.ndarray | None = None

    def __post_init__(self) -> None:
        covariance, energy, frame = self.moments.covariance(self.center), self.moments.mean_energy(), self.frame
        self.covariance: np.ndarray = covariance if frame is None else frame.T @ covariance @ frame
        self.energy: np.ndarray = energy if frame is None else frame.T @ energy @ frame

    @cached_property
    def path(self) -> RegularizationPath:
        return RegularizationPath(self.covariance, self.energy, self.ridge)

    def features(self, a: np.ndarray) -> np.ndarray:
        """Convert coefficients relative to the frame to coefficients of the features."""
        return a if self.frame is None else self.frame @ a

    def modes(self, n_components: int, regularization: float) -> tuple[np.ndarray, np.ndarray] | None:
        """μ and coefficients of unit variance; None if the samples do not determine so many modes."""
        values, a = self.path.solve(n_components, regularization)
        if len(values) < n_components or np.any(values <= rounding_variance(self.moments, self.features(a))):
            return None
        return values, a / np.sqrt(np.einsum("mk,mk->k", a, self.covariance @ a))


def seen_frame(whole: Moments, ridge: np.ndarray | None) -> np.ndarray | None:
    """Return the directions with variance or energy on some samples, if these are few; needs R = 1."""
    return None if ridge is not None else seen_directions(whole.gram, whole.energy)


def make_fold_fit(train: Operators, test: Operators, values: np.ndarray, V: np.ndarray, lam: float) -> FoldFit:
    """Return the modes V of the training samples of a fold, with their operators on its test samples."""
    trained, tested = train.moments, test.moments
    shift = trained.weight / (trained.weight + tested.weight) * (tested.mean - trained.mean)
    coefficients = train.features(V)
    return FoldFit(
        coefficients=coefficients,
        eigenvalues=values,
        regularization=lam,
        test_weight=tested.weight,
        test_covariance=V.T @ test.covariance @ V,
        test_energy=V.T @ test.energy @ V,
        test_ridge=V.T @ (V if test.ridge is None else test.ridge @ V),
        train_energy=V.T @ train.energy @ V,
        test_path=partial(getattr, test, "path"),
        test_shift=train.center * (shift @ coefficients),
    )


def cross_fit(
    whole: Moments,
    folds: list[tuple[Moments, Moments]],
    ridge: np.ndarray | None,
    n_components: int,
    regularizations: Iterable[float],
    center: bool = True,
) -> list[CrossFit | None]:
    """Return a `CrossFit` for every λ; None where the samples do not determine `n_components` modes.

    If the direction of time matters, modes are functions of both ends of a lag, with coefficients of (φ(x), φ(y)).
    """
    if whole.flow is not None:
        whole, ridge = doubled(whole), doubled_ridge(ridge)
        folds = [(doubled(train), doubled(test)) for train, test in folds]
    everything, frame = Operators(whole, ridge, center), None
    # Directions without variance or energy on all samples have none on any fold; for smooth kernels these are most.
    seen = everything.path.frame
    if seen.shape[1] <= _WORTHWHILE * seen.shape[0]:
        ridge, frame = None, seen
        everything = Operators(whole, ridge, center, frame)
    pairs = [tuple(Operators(part, ridge, center, frame) for part in fold) for fold in folds]
    for _ in map_ordered([everything, *(train for train, _ in pairs)], lambda operators: operators.path):
        check_cancelled()  # factorised by several threads, and kept
    return [_fit(everything, pairs, n_components, lam) for lam in regularizations]


def rough_cross_fit(
    sums: list[Moments],
    members: np.ndarray,
    ridge: np.ndarray | None,
    n_components: int,
    regularizations: Sequence[float],
    center: bool = True,
    steps: np.ndarray = STEPS,
    bound: float = 0.0,
) -> list[CrossFit | None]:
    """Return what `cross_fit` does, from `Folds.sums` and by a few steps of subspace iteration (`cross_fit_path`)."""
    check_cancelled()
    start, n_folds = time.perf_counter(), len(members) // 2
    if sums[0].flow is not None:  # every set is centred at both ends by its own means
        sums, ridge = [doubled(united(sums, row)) for row in members], doubled_ridge(ridge)
        members = np.eye(len(sums), dtype=bool)
    path = cross_fit_path(members, sums, ridge, np.array(regularizations), n_components, center, steps, bound)
    share = (time.perf_counter() - start) / (len(regularizations) * (1 + n_folds))

    def test_path(f: int) -> RegularizationPath:
        return Operators(united(sums, members[1 + n_folds + f]), ridge, center).path

    paths = [cache(partial(test_path, f)) for f in range(n_folds)]
    return [_unpacked(path, i, lam, paths, share) if path.known[i] else None for i, lam in enumerate(regularizations)]


def _unpacked(
    path: FoldPath, i: int, lam: float, test_paths: Sequence[Callable[[], RegularizationPath]], seconds: float
) -> CrossFit:
    """Return the cross-fit at the i-th λ of a path."""
    n_folds, modes, forms = len(test_paths), path.modes[i], path.forms[i]
    weights = path.weight[1 + n_folds :].tolist()  # of the test samples
    numbers = range(n_folds)
    fields = ((modes[1 + f].T, path.values[i, 1 + f], lam, weights[f], *forms[f, :4], test_paths[f]) for f in numbers)
    folds = [FoldFit(*own) for own in fields]
    return CrossFit(
        folds=folds,
        coefficients=modes[0].T,
        rotations=forms[:, 6],
        eigenvalues=path.values[i, 0],
        rates=path.rates[i],
        coverage=float(path.weight[1 + n_folds :].sum() / path.weight[0]),
        overlaps=forms[:, 4],
        spreads=forms[:, 5],
        condition_number=np.nan,
        seconds=[seconds] * n_folds,
    )


def _fit(everything: Operators, pairs: list[tuple[Operators, ...]], n_components: int, lam: float) -> CrossFit | None:
    """Fit the modes of all samples and of the training samples of each fold at one λ."""
    reference = everything.modes(n_components, lam)
    if reference is None:
        return None
    mu, a = reference
    results, rotations, overlaps, spreads, seconds = [], [], [], [], []
    image = everything.covariance @ a
    for train, test in pairs:
        check_cancelled()
        start = time.perf_counter()
        fitted = train.modes(n_components, lam)
        seconds.append(time.perf_counter() - start)
        if fitted is None:
            return None
        results.append(make_fold_fit(train, test, *fitted, lam))
        V = fitted[1]
        overlaps.append(V.T @ image)
        spreads.append(V.T @ everything.covariance @ V)
        left, _, right = np.linalg.svd(V.T @ train.covariance @ a)  # without test samples
        rotations.append(left @ right)
    return CrossFit(
        folds=results,
        coefficients=everything.features(a),
        rotations=np.reshape(rotations, (-1, len(mu), len(mu))),
        eigenvalues=mu,
        rates=np.einsum("mk,mk->k", a, everything.energy @ a),
        coverage=sum(fold.test_weight for fold in results) / everything.moments.weight,
        overlaps=np.reshape(overlaps, (-1, len(mu), len(mu))),
        spreads=np.reshape(spreads, (-1, len(mu), len(mu))),
        condition_number=everything.path.condition_number(lam),
        seconds=seconds,
    )
