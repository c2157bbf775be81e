"""Cross-validation on Moments: every sample is summed once, whatever the number of folds."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator, RepeatedKFold, check_cv

from kdmaps.bases import Basis
from kdmaps.data import ArraySource, Source
from kdmaps.data.remote import RemoteSource
from kdmaps.exceptions import DataWarning
from kdmaps.forms.diffusion import DiffusionTensor
from kdmaps.forms.moments import Moments, compute_moments, sum_moments
from kdmaps.selection.scores import FoldFit
from kdmaps.spectrum.path import RegularizationPath
from kdmaps.spectrum.pencil import rounding_variance

#: One draw of folds now and then flatters a bad candidate. A second draw costs solves, but no pass over the samples.
REPEATS = 2
#: With more classes than this, adding up p×p moments costs more than summing samples again.
MAX_CLASSES_PER_FOLD = 3


class BlockedKFold(BaseCrossValidator):
    """K contiguous blocks as test sets; the `gap` samples on either side of a block belong to neither set.

    For one correlated trajectory: neighbours in time are no independent test of one another, so choose `gap` about as
    long as the correlation time of the fast coordinates. For several trajectories use scikit-learn's `GroupKFold`.

    Parameters
    ----------
    n_splits : int, default=3
    gap : int, default=0

    Examples
    --------
    >>> import kdmaps
    >>> for train, test in kdmaps.BlockedKFold(2, gap=1).split(range(6)):
    ...     print(train, test)
    [4 5] [0 1 2]
    [0 1] [3 4 5]
    """

    def __init__(self, n_splits: int = 3, gap: int = 0):
        if n_splits < 2 or gap < 0:
            raise ValueError(f"BlockedKFold needs n_splits >= 2 and gap >= 0, got {n_splits} and {gap}.")
        self.n_splits, self.gap = n_splits, gap

    def get_n_splits(self, X=None, y=None, groups=None) -> int:
        """Number of blocks."""
        return self.n_splits

    def split(self, X, y=None, groups=None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Indices of training and test samples, block after block."""
        index = np.arange(len(X))
        for block in np.array_split(index, self.n_splits):
            far = (index < block[0] - self.gap) | (index > block[-1] + self.gap)
            yield index[far], block


def make_splits(cv, X: np.ndarray, groups, n_components: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Index pairs (train, test) of any scikit-learn splitter; a number is that many random folds, drawn twice."""
    cv = 5 if cv is None else cv  # as in scikit-learn
    if groups is not None and np.shape(groups) != (len(X),):
        raise ValueError(f"groups must hold one label for each of the {len(X)} samples, got shape {np.shape(groups)}.")
    if isinstance(cv, Iterator):
        raise ValueError("cv is an iterator, which can be read only once; pass list(cv), or the splitter itself.")
    if isinstance(cv, Integral):
        if groups is not None:
            warn_of_unused_groups(cv)
            groups = None
        if not 2 <= int(cv) <= len(X):
            raise ValueError(f"cv must be from 2 folds to as many as X has samples (n_samples={len(X)}), got {cv}.")
        splitter = RepeatedKFold(n_splits=int(cv), n_repeats=REPEATS, random_state=seed)
    else:
        splitter = check_cv(cv)
    splits = [(np.asarray(train), np.asarray(test)) for train, test in splitter.split(X, groups=groups)]
    if any(part.size and not 0 <= part.min() <= part.max() < len(X) for split in splits for part in split):
        raise ValueError(f"cv gives row numbers outside 0…{len(X) - 1}, the rows of X; it was made for other samples.")
    if any(np.intersect1d(train, test).size for train, test in splits):
        raise ValueError("cv gives a split whose test samples are training samples too: held-out samples must be new.")
    if len(splits) < 2:
        raise ValueError(f"cv gives {len(splits)} split(s); a choice by held-out samples needs at least 2.")
    smallest = min(min(len(train), len(test)) for train, test in splits)
    if smallest <= n_components:
        raise ValueError(
            f"A fold of cv has {smallest} samples, too few for n_components={n_components} modes; use fewer folds, "
            "fewer modes or more samples."
        )
    return splits


def warn_of_unused_groups(cv) -> None:
    """Random folds would tear groups apart, which is hardly what was meant by them."""
    warnings.warn(
        f"groups are not used: cv={cv} draws random folds, whatever the groups. Pass cv=GroupKFold() of scikit-learn "
        "to keep groups together.",
        DataWarning,
        stacklevel=5,
    )


def splits_of(cv, source: Source, groups, rows: np.ndarray, n_components: int):
    """What a splitter does to all samples, seen on `rows` of them: its blocks, gaps and groups keep their meaning."""
    if cv is None or isinstance(cv, Integral):
        if groups is not None:
            warn_of_unused_groups(cv)
        return cv
    n = source.n_samples or 0
    X = source.array if isinstance(source, ArraySource) else np.broadcast_to(0.0, (n, 1))
    position = np.full(n, -1)
    position[rows] = np.arange(len(rows))
    splits = make_splits(cv, X, groups, n_components, 0)
    return [tuple(position[part][position[part] >= 0] for part in split) for split in splits]


def without_landmarks(splits, X: np.ndarray | RemoteSource, landmarks: np.ndarray, n_components: int):
    """The splits without the test samples that are landmarks."""
    free = X.rowwise(_is_free, landmarks) if isinstance(X, RemoteSource) else _is_free(X, landmarks)
    splits = [(train, test[free[test]]) for train, test in splits]
    if min(len(test) for _, test in splits) <= n_components:
        raise ValueError("Nearly all samples are landmarks, which leaves none to test on; use fewer n_features.")
    return splits


def _is_free(X: np.ndarray, landmarks: np.ndarray) -> np.ndarray:
    known = {row.tobytes() for row in np.asarray(landmarks, dtype=np.float64)}
    return np.array([row.tobytes() not in known for row in np.asarray(X, dtype=np.float64)], dtype=bool)


def make_folds(
    cv, X: np.ndarray | RemoteSource, weight, groups, n_components: int, seed: int, landmarks=None
) -> FoldMoments:
    """The folds of `cv`, without test samples that are landmarks."""
    n = X.shape[0]
    rows = np.broadcast_to(0.0, (n, 1)) if isinstance(X, RemoteSource) else X
    splits = make_splits(cv, rows, groups, n_components, seed)
    if landmarks is not None:
        splits = without_landmarks(splits, X, landmarks, n_components)
    if weight is not None and not all(weight[part].sum() > 0 for split in splits for part in split):
        raise ValueError("sample_weight is 0 for all samples of a fold; remove such samples or use another cv.")
    return FoldMoments(splits, n)


class FoldMoments:
    """Moments of the training and the test samples of all folds, from one pass over the samples.

    The samples are cut into the classes that no split tells apart; a training or test set is a union of classes.
    (K folds have K classes, two draws of K folds K².) Where splits overlap so much that there would be more classes
    than samples are worth, every set is summed by itself.

    Attributes
    ----------
    assignment : ndarray of shape (n_samples, n_folds)
        1 where a sample trains, 2 where it tests, 0 where it does neither.
    rows : list of ndarray of int
        Samples of each class.
    roles : ndarray of shape (n_classes, n_folds)
        The assignment of each class.
    """

    def __init__(self, splits: list[tuple[np.ndarray, np.ndarray]], n_samples: int):
        roles = np.zeros((n_samples, len(splits)), dtype=np.int8)
        for f, (train, test) in enumerate(splits):
            roles[train, f], roles[test, f] = 1, 2
        self.assignment, self._splits = roles, splits
        self.roles, owner = np.unique(roles, axis=0, return_inverse=True)
        self._owner = owner.reshape(-1, 1).astype(np.min_scalar_type(len(self.roles)))
        self.rows = [np.flatnonzero(self._owner == c) for c in range(len(self.roles))]
        self.mean_test_size = float(np.mean([len(test) for _, test in splits]))
        self.smallest = min(len(part) for split in splits for part in split)

    def compute(
        self,
        basis: Basis,
        X,
        sample_weight,
        diffusion: DiffusionTensor,
        engine: str | None = "numba",
        memory_limit: float | None = None,
    ) -> tuple[Moments, list[tuple[Moments, Moments]]]:
        """Moments of all samples, and of the training and test samples of every fold."""
        n_folds = len(self._splits)
        how: dict[str, Any] = {"engine": engine, "memory_limit": memory_limit}
        # Gram and energy of every class; of the training and test samples of every fold, as sums and as operators.
        kept = 2 * min(len(self.rows), MAX_CLASSES_PER_FOLD * n_folds) + 8 * n_folds

        def moments(sets: list, labels: np.ndarray, names: list[tuple[int, int] | None]) -> list[Moments]:
            if isinstance(X, RemoteSource):
                return X.moments(basis, sample_weight, diffusion, labels, names, **how)
            return [compute_moments(basis, X, sample_weight, diffusion, rows, kept=kept, **how) for rows in sets]

        if len(self.rows) > MAX_CLASSES_PER_FOLD * n_folds:
            names = [(f, role) for f in range(n_folds) for role in (1, 2)]
            whole, *parts = moments([None, *chain(*self._splits)], self.assignment, [None, *names])
            return whole, list(zip(parts[::2], parts[1::2], strict=True))
        classes = moments(self.rows, self._owner, [(0, c) for c in range(len(self.rows))])

        def union(f: int, role: int) -> Moments:
            return sum_moments(m for m, roles in zip(classes, self.roles, strict=True) if roles[f] == role)

        return sum_moments(classes), [(union(f, 1), union(f, 2)) for f in range(n_folds)]


@dataclass(frozen=True)
class CrossFit:
    """Modes of one kernel and one λ, fitted on every fold and on all samples.

    Attributes
    ----------
    folds : list of FoldFit
    coefficients : ndarray of shape (p, r)
        Modes of all samples.
    rotations : list of ndarray of shape (r, r)
        Procrustes rotation that turns each fold's modes towards those of all samples.
    eigenvalues : ndarray of shape (r,)
        μ on all samples.
    rates : ndarray of shape (r,)
        λ-free rates on all samples.
    coverage : float
        How often a sample is tested, on average: the number of repeats for repeated folds.
    overlaps, spreads : list of ndarray of shape (r, r)
        VᵀΣA and VᵀΣV for the modes V of each fold and A of all samples, Σ of all samples.
    condition_number : float
    """

    folds: list[FoldFit]
    coefficients: np.ndarray
    rotations: list[np.ndarray]
    eigenvalues: np.ndarray
    rates: np.ndarray
    coverage: float
    overlaps: list[np.ndarray]
    spreads: list[np.ndarray]
    condition_number: float

    def agreement(self, n_modes: int | None = None) -> float:
        """Mean squared cosine between the spaces of the first modes of the folds and of all samples."""
        k = len(self.eigenvalues) if n_modes is None else n_modes
        cosines = [
            np.sum(M[:k, :k] * np.linalg.solve(S[:k, :k], M[:k, :k])) / k
            for M, S in zip(self.overlaps, self.spreads, strict=True)
        ]
        return float(np.mean(cosines))

    def held_out_rates(self) -> np.ndarray:
        """Σ_f n_f V_kᵀL_fV_k / Σ_f n_f V_kᵀΣ_fV_k for the k-th mode V_k of each fold on its test samples.

        A rate on the samples that chose the mode is too small: of the functions that look alike, the one with the
        smallest quotient on these samples was taken. Held-out quotients have no such optimism; by the variational
        principle their error is upwards, since a fold's mode is not quite the true one. Modes keep the order that
        their own fold gave them: to turn or sort them by test samples would be a choice by these samples again.
        """
        energy, variance = (
            np.sum([fold.test_weight * np.diagonal(getattr(fold, name)) for fold in self.folds], axis=0)
            for name in ("test_energy", "test_covariance")
        )
        return energy / variance


#: Operators are expressed in a frame if it has at most this fraction of the features: else it costs more than it saves.
_WORTHWHILE = 0.5


class _Operators:
    """Σ and L of some samples, and the modes that they determine for any λ.

    With a frame B, BᵀRB = 1, coefficients are relative to its columns: the operators are BᵀΣB and BᵀLB.
    """

    def __init__(self, moments: Moments, ridge: np.ndarray | None, center: bool, frame: np.ndarray | None = None):
        self.moments, self.ridge, self.frame = moments, ridge, frame
        self.covariance, self.energy = moments.covariance(center), moments.mean_energy()
        if frame is not None:
            self.covariance, self.energy = (frame.T @ m @ frame for m in (self.covariance, self.energy))

    @cached_property
    def path(self) -> RegularizationPath:
        return RegularizationPath(self.covariance, self.energy, self.ridge)

    def features(self, a: np.ndarray) -> np.ndarray:
        """Coefficients of the features, from those of the frame."""
        return a if self.frame is None else self.frame @ a

    def modes(self, n_components: int, regularization: float) -> tuple[np.ndarray, np.ndarray] | None:
        """μ and coefficients of unit variance; None if the samples do not determine so many modes."""
        values, a = self.path.solve(n_components, regularization)
        if len(values) < n_components or np.any(values <= rounding_variance(self.moments, self.features(a))):
            return None
        return values, a / np.sqrt(np.einsum("mk,mk->k", a, self.covariance @ a))


def cross_fit(
    whole: Moments,
    folds: list[tuple[Moments, Moments]],
    ridge: np.ndarray | None,
    n_components: int,
    regularizations: Iterable[float],
    center: bool = True,
) -> list[CrossFit | None]:
    """`CrossFit` for every λ; None where the samples do not determine `n_components` modes."""
    everything, frame = _Operators(whole, ridge, center), None
    # What all samples do not see, no fold does: a smooth kernel leaves a small part of the features.
    seen = everything.path.frame
    if seen.shape[1] <= _WORTHWHILE * seen.shape[0]:
        ridge, frame = None, seen
        everything = _Operators(whole, ridge, center, frame)
    pairs = [tuple(_Operators(part, ridge, center, frame) for part in fold) for fold in folds]

    def at(lam: float) -> CrossFit | None:
        reference = everything.modes(n_components, lam)
        if reference is None:
            return None
        mu, a = reference
        results, rotations, overlaps, spreads = [], [], [], []
        for train, test in pairs:
            fitted = train.modes(n_components, lam)
            if fitted is None:
                return None
            values, V = fitted
            results.append(
                FoldFit(
                    coefficients=train.features(V),
                    eigenvalues=values,
                    regularization=lam,
                    test_weight=test.moments.weight,
                    test_covariance=V.T @ test.covariance @ V,
                    test_energy=V.T @ test.energy @ V,
                    test_ridge=V.T @ (V if ridge is None else ridge @ V),
                    train_energy=V.T @ train.energy @ V,
                    test_path=partial(getattr, test, "path"),
                )
            )
            overlaps.append(V.T @ everything.covariance @ a)
            spreads.append(V.T @ everything.covariance @ V)
            left, _, right = np.linalg.svd(overlaps[-1])
            rotations.append(left @ right)
        return CrossFit(
            folds=results,
            coefficients=everything.features(a),
            rotations=rotations,
            eigenvalues=mu,
            rates=np.einsum("mk,mk->k", a, everything.energy @ a),
            coverage=sum(fold.test_weight for fold in results) / whole.weight,
            overlaps=overlaps,
            spreads=spreads,
            condition_number=everything.path.condition_number(lam),
        )

    return [at(lam) for lam in regularizations]


def cross_fitted_rates(
    whole: Moments,
    folds: list[tuple[Moments, Moments]],
    ridge: np.ndarray | None,
    n_components: int,
    regularization: float,
    center: bool = True,
) -> np.ndarray:
    """Rates of modes on samples that they were not fitted to: `CrossFit.held_out_rates`."""
    fit = cross_fit(whole, folds, ridge, n_components, [regularization], center)[0]
    if fit is None:
        raise ValueError(
            f"The samples of a fold do not determine n_components={n_components} modes, so that rates='cross-fitted' "
            "has nothing to average; use rates='ritz', fewer modes, fewer folds or more samples."
        )
    return fit.held_out_rates()
