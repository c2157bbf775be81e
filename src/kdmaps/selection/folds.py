"""Folds: training and test sets as sums of moments; every sample is summed once, whatever the number of folds."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import cached_property
from math import ceil
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator, GroupKFold, RepeatedKFold, check_cv

from kdmaps.bases import Basis
from kdmaps.checks import Check, rules, warn, warn_of
from kdmaps.data.check import order_checks, order_in
from kdmaps.data.correlation import Order
from kdmaps.data.sources import ROWS_PER_MODE, Form, Sample, Source, too_few
from kdmaps.exceptions import ArgumentError, Undetermined
from kdmaps.forms.moments import Moments, sum_moments
from kdmaps.language import Either

#: A single draw of folds sometimes favours a bad candidate. A second draw costs solves, but no pass over the samples.
REPEATS = 2
#: With more classes than this, adding up p×p moments costs more than summing samples again.
MAX_CLASSES_PER_FOLD = 3

#: Random folds, and folds of groups, of cv="auto".
FOLDS = 3
#: Blocks of consecutive frames. Blocks cannot be drawn twice, so there are more of them than random folds; with five, a
#: training set has most of the transitions.
BLOCKS = 5
#: Largest gap on either side of a block, as a fraction of all rows: a training set keeps 60 % of the rows.
WIDEST_GAP = 0.1

Splits = list[tuple[np.ndarray, np.ndarray]]


class BlockedKFold(BaseCrossValidator):
    """Use K contiguous blocks as test sets; the `gap` samples on either side of a block belong to neither set.

    For one trajectory, in which consecutive frames are correlated: choose `gap` about as long as the correlation time
    of the fast coordinates. For several trajectories pass `groups`.

    Parameters
    ----------
    n_splits : int, default=3
        Number of blocks.
    gap : int, default=0
        Number of samples left out on either side of a block.

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
        self.n_splits: int = n_splits
        self.gap: int = gap

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of blocks."""
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the indices of training and test samples, block after block."""
        index = np.arange(len(X))
        for block in np.array_split(index, self.n_splits):
            low, high = (block[0], block[-1]) if len(block) else (len(X), -1)  # more blocks than rows
            far = (index < low - self.gap) | (index > high + self.gap)
            yield index[far], block


class WalkerKFold(BaseCrossValidator):
    """Hold out whole walkers, whose frames take turns: row i belongs to walker i modulo their number."""

    def __init__(self, n_walkers: int):
        self.n_walkers: int = n_walkers

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return min(FOLDS, self.n_walkers)

    def _iter_test_masks(self, X: Any = None, y: Any = None, groups: Any = None) -> Iterator[np.ndarray]:
        fold = np.arange(len(X)) % self.n_walkers % self.get_n_splits()
        return (fold == number for number in range(self.get_n_splits()))


def is_auto(cv: Any) -> bool:
    """Return True if the folds are to be chosen by the order of the rows."""
    return isinstance(cv, str) and cv == "auto"


def resolve_cv(cv: Any, source: Source, groups: Any, preview: Sample | None = None) -> Any:
    """Return the folds for "auto"; any other `cv` is returned unchanged.

    With groups, and for independent rows, "auto" is 3. Random folds of rows that depend on rows nearby would test on
    neighbours of training samples: consecutive frames are cut into blocks, and walkers are held out as a whole, with a
    `DataWarning`. Sorted rows, which follow a trend but are independent otherwise, have random folds. `preview` has
    some rows of a source that is not an array.
    """
    if not is_auto(cv):
        return cv
    if groups is not None:
        return FOLDS
    order = order_in(source, preview)
    warn_of(order_checks(order))
    if order.n_walkers > 1:
        return WalkerKFold(order.n_walkers)
    return blocks_of(order, source.n_samples or 0) if order.n_walkers and not order.sorted else FOLDS


def blocks_of(order: Order, n_samples: int) -> BlockedKFold:
    """Return blocks of consecutive frames, with a gap of their correlation time."""
    gap = ceil(order.correlation_time) if order.n_walkers else 0
    return BlockedKFold(BLOCKS, gap=min(gap, int(WIDEST_GAP * n_samples)))


def check_groups(groups: Any, n_samples: int | None) -> None:
    """Raise a ValueError if groups are given, but not one label for each sample."""
    if groups is not None and n_samples is not None and np.shape(groups) != (n_samples,):
        raise ValueError(
            f"groups must hold one label for each of the {n_samples} samples, got shape {np.shape(groups)}."
        )


def make_splits(cv: Any, X: np.ndarray, groups: Any, n_components: int, seed: int) -> Splits:
    """Return the index pairs (train, test) of `cv`: a number, None, a scikit-learn splitter or a list of index pairs.

    A number is that many random folds, drawn twice; with groups, that many folds of whole groups. None is 5. X has as
    many rows as there are samples, and every set must have more samples than `n_components`.
    """
    n = len(X)
    cv = 5 if cv is None else cv  # as in scikit-learn
    check_groups(groups, n)
    if isinstance(cv, Iterator):
        raise ValueError("cv is an iterator, which can be read only once; pass list(cv), or the splitter itself.")
    splitter = _numbered(int(cv), n, groups, seed) if isinstance(cv, Integral) else check_cv(cv)
    splits = [(np.asarray(train), np.asarray(test)) for train, test in splitter.split(X, groups=groups)]
    if any(part.size and not 0 <= part.min() <= part.max() < n for split in splits for part in split):
        raise ValueError(f"cv gives row numbers outside 0…{n - 1}, the rows of X; make it for these samples.")
    if any(np.intersect1d(train, test).size for train, test in splits):
        raise ValueError("cv gives a split with test samples among the training samples; they must be disjoint.")
    if len(splits) < 2:
        raise ValueError(f"cv gives {len(splits)} split(s); a choice by held-out samples needs at least 2.")
    smallest = min(min(len(train), len(test)) for train, test in splits)
    if smallest <= n_components and isinstance(splitter, BlockedKFold) and splitter.gap:
        raise Undetermined(
            "{rows} rows are too few for {blocks} blocks with gaps of {gap} rows around them: a fold has {smallest} "
            "samples, too few for {modes} mode(s). Use a shorter lag{fewer}, or more rows.",
            rows=n,
            blocks=splitter.n_splits,
            gap=splitter.gap,
            smallest=smallest,
            modes=n_components,
            fewer=Either(", a smaller gap of cv", ""),
        )
    if smallest <= n_components and n < ROWS_PER_MODE * n_components:
        raise too_few("rows", np.shape(X), n_components)
    if smallest <= n_components:
        raise Undetermined(
            "A fold of {folds} has {smallest} samples, too few for {modes} mode(s); use {remedy} or more samples.",
            folds=Either("cv", "the samples"),
            smallest=smallest,
            modes=n_components,
            remedy=Either("fewer folds, fewer n_components", "fewer --modes"),
        )
    return splits


def _numbered(n_folds: int, n_samples: int, groups: Any, seed: int) -> BaseCrossValidator:
    """Return the splitter that a number stands for."""
    if not 2 <= n_folds <= n_samples:
        raise ValueError(f"cv must be from 2 folds to as many as X has samples (n_samples={n_samples}), got {n_folds}.")
    if groups is None:
        return RepeatedKFold(n_splits=n_folds, n_repeats=REPEATS, random_state=seed)
    n_groups = len(np.unique(groups))
    if n_groups < 2:
        raise ArgumentError("{groups} names one group only; held-out groups need two or more. Leave it out.")
    return GroupKFold(min(n_folds, n_groups))


def splits_at(cv: Any, source: Source, groups: Any, rows: np.ndarray, n_components: int, seed: int) -> Splits:
    """Split all samples of a source, then keep the given rows: blocks, gaps and groups keep their meaning.

    Random folds are drawn among the rows themselves. Folds with too few of these rows are left out.
    """
    if groups is None and (cv is None or isinstance(cv, Integral)):
        return make_splits(cv, np.broadcast_to(0.0, (len(rows), 1)), None, n_components, seed)
    n = source.n_samples or 0
    position = np.full(n, -1)
    position[rows] = np.arange(len(rows))
    splits = make_splits(cv, source.rows_for_splitters, groups, n_components, seed)
    kept = [tuple(position[part][position[part] >= 0] for part in split) for split in splits]
    known = [split for split in kept if min(map(len, split)) > n_components]
    if len(known) < max(2, len(kept) / 2):
        raise ValueError(
            f"{len(kept) - len(known)} of {len(kept)} folds of cv have at most n_components={n_components} of the "
            f"{len(rows)} samples of the search for training or testing: use fewer folds, or a larger "
            "max_search_samples."
        )
    if len(known) < len(kept):
        words = {"count": len(kept), "rows": len(rows)}
        warn(Check(rules.FOLDS_LEFT_OUT, len(kept) - len(known), words=words))
    return make_splits(known, np.broadcast_to(0.0, (len(rows), 1)), None, n_components, seed)


def is_free(X: np.ndarray, landmarks: np.ndarray) -> np.ndarray:
    """Return True for each row of X that is not a landmark."""
    known = {row.tobytes() for row in np.asarray(landmarks, dtype=np.float64)}
    return np.array([row.tobytes() not in known for row in np.asarray(X, dtype=np.float64)], dtype=bool)


def make_folds(
    splits: Splits,
    source: Source,
    sample_weight: np.ndarray | None,
    n_components: int,
    landmarks: np.ndarray | None = None,
) -> Folds:
    """Return the folds of these splits of a source, without test samples that are landmarks."""
    if landmarks is not None:
        free = source.rowwise(is_free, landmarks)
        splits = [(train, test[free[test]]) for train, test in splits]
        if min(len(test) for _, test in splits) <= n_components:
            raise ArgumentError(
                "Nearly all samples are landmarks, which leaves none to test on; use fewer {n_features}."
            )
    if sample_weight is not None and not all(sample_weight[part].sum() > 0 for split in splits for part in split):
        raise ArgumentError("{sample_weight} is 0 for all samples of a fold; remove such samples.")
    return Folds(splits, source.n_samples or 0)


class Folds:
    """Training and test sets of all folds, cut so that one pass over the samples gives the moments of each.

    Samples with the same role in every split form a class; a training or test set is a union of classes. (K folds have
    K classes, two draws of K folds K².) If splits overlap so much that there are too many classes, every set is summed
    separately.
    """

    assignment: np.ndarray  #: (n_samples, n_folds): 1 where a sample trains, 2 where it tests, 0 where it does neither.
    owner: np.ndarray  #: (n_samples, 1): class of each sample.
    rows: list[np.ndarray]  #: Samples of each class.
    roles: np.ndarray  #: (n_classes, n_folds): the assignment of each class.
    smallest: int  #: Number of samples of the smallest set.

    def __init__(self, splits: Splits, n_samples: int):
        roles = np.zeros((n_samples, len(splits)), dtype=np.int8)
        for f, (train, test) in enumerate(splits):
            roles[train, f], roles[test, f] = 1, 2
        self._cut(roles)

    def _cut(self, roles: np.ndarray) -> None:
        """Cut the samples into classes."""
        self.assignment = roles
        self.roles, owner = np.unique(roles, axis=0, return_inverse=True)
        self.owner = owner.reshape(-1, 1).astype(np.min_scalar_type(len(self.roles)))
        self.rows = [np.flatnonzero(self.owner == c) for c in range(len(self.roles))]
        self.smallest = min(int(np.count_nonzero(roles == role, axis=0).min()) for role in (1, 2))

    @cached_property
    def first(self) -> Folds:
        """The first folds, as many as are needed to test every sample that is tested at all."""
        tested = np.cumsum(self.assignment == 2, axis=1) > 0
        n = int(np.argmax(np.all(tested == tested[:, -1:], axis=0))) + 1
        if n == len(self):
            return self
        folds = copy(self)
        folds._cut(np.ascontiguousarray(self.assignment[:, :n]))
        return folds

    def __len__(self) -> int:
        return self.assignment.shape[1]

    def moments(
        self, source: Source, form: Form, basis: Basis, sample_weight: np.ndarray | None = None, **options: Any
    ) -> tuple[Moments, list[tuple[Moments, Moments]]]:
        """Return the moments of all samples, and of the training and test samples of every fold.

        `options` are passed to `Source.moments`.
        """
        sums, members = self.sums(source, form, basis, sample_weight, **options)
        whole, *parts = (united(sums, row) for row in members)
        return whole, list(zip(parts[: len(self)], parts[len(self) :], strict=True))

    def sums(
        self, source: Source, form: Form, basis: Basis, sample_weight: np.ndarray | None = None, **options: Any
    ) -> tuple[list[Moments], np.ndarray]:
        """Return moments, and which of them add up to which set of samples.

        Returns
        -------
        sums : list of n Moments
            Of the classes; of all sets themselves, where there are too many classes.
        members : ndarray of shape (1+2F, n) of bool
            For all samples, the training samples of each fold, and the test samples of each fold.
        """
        n_folds = len(self)
        # Gram and energy of every class; of the training and test samples of every fold, as sums and as operators.
        options["kept"] = 2 * min(len(self.rows), MAX_CLASSES_PER_FOLD * n_folds) + 8 * n_folds
        if len(self.rows) > MAX_CLASSES_PER_FOLD * n_folds:
            sets = [None, *((f, role) for role in (1, 2) for f in range(n_folds))]
            labels, members = self.assignment, np.eye(len(sets), dtype=bool)
        else:
            sets = [(0, c) for c in range(len(self.rows))]
            labels = self.owner
            members = np.vstack([np.ones(len(sets), dtype=bool), self.roles.T == 1, self.roles.T == 2])
        return source.moments(form, basis, sample_weight, labels, sets, **options), members


def united(sums: list[Moments], members: np.ndarray) -> Moments:
    """Add up the moments that are members."""
    return sum_moments(part for part, chosen in zip(sums, members, strict=True) if chosen)
