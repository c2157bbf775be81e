"""Detached rows: a few rows of X behind an empty gap, found by single linkage before a kernel is chosen.

A function that only distinguishes such rows from all others has no energy, whatever the gap, so a search would find it
first and describe the gap in place of the system. Exchange across the gap is not sampled, and its rate is unknown.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist, pdist, squareform

from kdmaps.checks import Check, Phrase, rules
from kdmaps.data.distances import neighbors
from kdmaps.utils.threads import slices

#: A gap is empty if it exceeds 0.7 times the larger of two median distances between rows and three median distances to
#: the third neighbour, which is larger in high dimensions. Among Gaussian, multimodal and curved samples the largest
#: spacing was 1.32 median distances; the limit is 1.4.
CUT, PAIRS, NEIGHBOURS, COMPANY = 0.7, 2.0, 3.0, 3
#: Number of rows that define the typical distances.
TYPICAL_ROWS = 1_000
#: Largest share of the rows, and of the weight, in a group that is called small: 40 far rows of 500 are, and take the
#: modes like five of them. A larger group is a state of the fit.
MOST_SHARE = 0.08
#: With more than this share of the rows behind gaps the samples have heavy tails: these rows are no exception.
MOST_DETACHED = 0.1
#: Fewer rows are not a state: a fit that keeps three copes with them, one that keeps two is lost.
FEWEST_OF_STATE = 3
#: From this number of rows on, a group can show modes inside it and belongs to the fit.
FEWEST_OF_FIT = 50
#: Two groups are fragments of one if the gap between them is less than this part of the gap around both.
FRAGMENTS = 0.5
#: Distances that are computed to grow one component, at least, and for each row of X.
MOST_DISTANCES, DISTANCES_PER_ROW = 1e7, 64
#: Rows whose distances represent a component of many rows.
REPRESENTATIVES = 1_000
#: Largest number of rows that a message names.
MOST_NAMED = 5
#: In place of distances that overflow.
LARGEST = 1e300


@dataclass(frozen=True, eq=False)
class RareGroup:
    """A few rows of X behind an empty gap.

    Exchange with the other rows is slower than all modes, and the samples do not determine how much.
    """

    rows: np.ndarray  #: (k,): their numbers in X.
    points: np.ndarray  #: (k, d): the rows themselves.
    share: float  #: Of the rows of X, or of their weight.
    gap: float  #: Smallest distance to a row outside of the group.
    typical: float  #: Median distance between rows of X.
    is_state: bool  #: Whether the rows are a state of their own: there are three different ones or more.
    is_fitted: bool  #: Whether the rows take part in the fit: there are fifty different ones or more.

    def indicator(self, X: np.ndarray) -> np.ndarray:
        """Return 1 at points that are nearer to a row of the group than half the gap, 0 at others.

        Parameters
        ----------
        X : array-like of shape (n_points, d)

        Returns
        -------
        ndarray of shape (n_points,)
        """
        distances, _ = cKDTree(self.points).query(np.asarray(X, dtype=np.float64))
        return np.asarray(distances < self.gap / 2, dtype=np.float64)

    def __repr__(self) -> str:
        return f"RareGroup({len(self.rows)} rows, share {self.share:.2g}, gap {self.gap:.3g})"


def find_groups(X: np.ndarray, weight: np.ndarray | None = None) -> tuple[RareGroup, ...]:
    """Return the small groups of rows that lie behind empty gaps, the largest first.

    Rows of weight 0 are ignored, and copies of a row count once, as a row with a larger weight does.

    Parameters
    ----------
    X : ndarray of shape (n_samples, d)
    weight : ndarray of shape (n_samples,), optional

    Examples
    --------
    >>> import numpy as np
    >>> from kdmaps.data.detached import find_groups
    >>> x = np.random.default_rng(0).standard_normal((500, 2))
    >>> find_groups(x)
    ()
    >>> x[[7, 30, 31, 40]] = [[50.0, 0.0], [0.0, 30.0], [0.1, 30.0], [0.2, 30.0]]
    >>> [(group.rows.tolist(), round(group.gap)) for group in find_groups(x)]
    [([30, 31, 40], 27), ([7], 47)]
    """
    kept = np.arange(len(X)) if weight is None else np.flatnonzero(weight)
    with np.errstate(over="ignore", invalid="ignore"):
        rows = np.asarray(X[kept], dtype=np.float64)
        rows = rows - np.median(rows[:: _stride(len(rows))], axis=0)  # rounding is relative to the distance from 0
        typical, limit = _distances(rows)
        if not 0 < limit < np.inf:
            return ()
        component = _components(rows, limit)
        if not component.any():
            return ()
        share = np.full(len(kept), 1 / len(kept)) if weight is None else weight[kept] / weight[kept].sum()
        found = _small_groups(rows, component, limit, share)
    if sum(len(members) for members, _ in found) > MOST_DETACHED * len(kept):
        return ()
    groups = []
    for members, gap in found:
        distinct = len(np.unique(rows[members], axis=0))
        group = RareGroup(
            rows=kept[members],
            points=np.asarray(X[kept[members]], dtype=np.float64),
            share=float(share[members].sum()),
            gap=gap,
            typical=typical,
            is_state=distinct >= FEWEST_OF_STATE,
            is_fitted=distinct >= FEWEST_OF_FIT,
        )
        groups.append(group)
    return tuple(sorted(groups, key=lambda group: (-len(group.rows), group.rows[0])))


def left_out(groups: Sequence[RareGroup]) -> np.ndarray:
    """Return the numbers of the rows, in order, that take no part in a fit."""
    rows = [group.rows for group in groups if not group.is_fitted]
    return np.sort(np.concatenate(rows)) if rows else np.empty(0, dtype=np.intp)


def detached_check(groups: Sequence[RareGroup], of_fit: bool = False) -> Check:
    """Return the check of detached rows; `of_fit` if rows were left out of a fit."""
    kinds = [
        ("detached alone", [group for group in groups if not (group.is_state or group.is_fitted)], of_fit),
        ("detached group", [group for group in groups if group.is_state and not group.is_fitted], of_fit),
        ("detached group", [group for group in groups if group.is_fitted], False),
    ]
    said = [_say(name + ", left out" * out, chosen) for name, chosen, out in kinds if chosen]
    rows = np.sort(np.concatenate([np.empty(0, dtype=np.intp), *(group.rows for group in groups)]))
    where = tuple(int(row) for row in rows)
    return Check(rules.OUTLIERS, float(len(rows)), where=where, words={"said": " ".join(said)})


def _say(phrase: str, groups: Sequence[RareGroup]) -> str:
    """Return a phrase about some groups."""
    rows = np.sort(np.concatenate([group.rows for group in groups]))
    one = len(rows) == 1
    words = {
        "Rows": "Row" if one else "Rows",
        "rows": ", ".join(map(str, rows[:MOST_NAMED])) + ", …" * (len(rows) > MOST_NAMED),
        "lie": "lies" if one else "lie",
        "are": "is" if one else "are",
        "them": "it" if one else "them",
        "count": len(rows),
        "share": f"{sum(group.share for group in groups):.2%}",
        "away": f"{min(group.gap / group.typical for group in groups):.2g}",
        "in_groups": "" if len(groups) == 1 else f" in {len(groups)} groups",
        "states": "a state of their own" if len(groups) == 1 else "states of their own",
    }
    return Phrase(phrase, words).say()


def _stride(n: int) -> int:
    return max(1, -(-n // TYPICAL_ROWS))


def _distances(X: np.ndarray) -> tuple[float, float]:
    """Return the median distance between rows, and the smallest gap that counts as empty; 0 if there are few rows."""
    few = X[:: _stride(len(X))]
    if len(few) <= COMPANY + 1:
        return 0.0, 0.0
    pairs = pdist(few)
    neighbours = np.partition(squareform(pairs), COMPANY, axis=1)[:, COMPANY]
    median = float(np.median(pairs))
    return median, CUT * max(PAIRS * median, NEIGHBOURS * float(np.median(neighbours)))


def _components(X: np.ndarray, limit: float) -> np.ndarray:
    """Return the number of the component of each row, if rows within the limit are connected; 0 is the largest.

    A component grows from one row by the rows within the limit of some of its rows, more and more of them. Most samples
    are connected to the central row or to a few others, so that this takes few distances. Components of many rows may
    be cut in parts if this would take too many.
    """
    component = np.full(len(X), -1)
    rest = np.argsort(np.einsum("ij,ij->i", X, X), kind="stable")
    order = np.random.RandomState(0).permutation(len(X))  # rows are tried in an order without meaning
    most = max(MOST_DISTANCES, DISTANCES_PER_ROW * len(X))
    number = -1
    while rest.size:
        number += 1
        untried = rest[:1]
        component[untried] = number
        rest = rest[1:]
        spent, size = 0.0, 1
        while untried.size and rest.size and spent < most:
            affordable = int((most - spent) / rest.size) + 1
            chosen = min(len(untried), affordable if affordable >= len(untried) else size)
            tried, untried = untried[:chosen], untried[chosen:]
            near = _nearest(X[rest], X[tried]) <= limit
            component[rest[near]] = number
            joined = rest[near]
            untried = np.concatenate([untried, joined[np.argsort(order[joined])]])
            rest = rest[~near]
            spent += chosen * len(near)
            size = 16 * size
    largest = np.bincount(component).argmax()
    return np.where(component == largest, 0, np.where(component < largest, component + 1, component))


def _nearest(points: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the distance of each point to the nearest of some rows."""
    size = max(1, 2**22 // max(1, len(rows)))
    parts = [cdist(points[part], rows).min(axis=1) for part in slices(len(points), size)]
    return np.concatenate(parts)


def _small_groups(
    X: np.ndarray, component: np.ndarray, limit: float, share: np.ndarray
) -> list[tuple[np.ndarray, float]]:
    """Return the small groups, each with the gap around it.

    The tree of single linkage is followed from its root, with one leaf for each component of many rows and one for each
    row of the others. A small branch is a group, unless a gap inside it is wider than half of the gap around it.
    """
    sizes = np.bincount(component)
    large = np.flatnonzero(sizes >= FEWEST_OF_FIT)
    few = np.flatnonzero(sizes[component] < FEWEST_OF_FIT)
    if len(few) > MOST_DETACHED * len(X):
        return []
    leaves = [np.flatnonzero(component == number) for number in large] + [few[[i]] for i in range(len(few))]
    tree = linkage(_between(X, leaves, len(large)), "single")
    n_leaves = len(leaves)
    members = [*leaves, *(np.empty(0, dtype=np.intp) for _ in tree)]
    for i, (first, second, _, _) in enumerate(tree):
        members[n_leaves + i] = np.concatenate([members[int(first)], members[int(second)]])
    found = []
    branches = [(2 * n_leaves - 2, 0.0)]  # the gap around the root is unknown
    while branches:
        node, gap = branches.pop()
        inside = float(tree[node - n_leaves, 2]) if node >= n_leaves else 0.0
        if gap and inside <= max(limit, FRAGMENTS * gap):
            found.append((np.sort(members[node]), gap))
        elif inside > limit:
            for child in map(int, tree[node - n_leaves, :2]):
                own = members[child]
                small = len(own) <= MOST_SHARE * len(X) and share[own].sum() <= MOST_SHARE
                branches.append((child, inside if small else 0.0))
    return found


def _between(X: np.ndarray, leaves: list[np.ndarray], n_large: int) -> np.ndarray:
    """Return the smallest distances between the rows of leaves, of which the first ones have many rows; condensed."""
    n = len(leaves)
    single = np.concatenate([np.empty(0, dtype=np.intp), *leaves[n_large:]])
    distances = np.zeros((n, n))
    if single.size:
        distances[n_large:, n_large:] = cdist(X[single], X[single])
    for i in range(n_large):
        nearest = neighbors(X[leaves[i]], 1)
        if single.size:
            distances[i, n_large:] = nearest.kneighbors(X[single])[0][:, 0]
        for j in range(i):
            other = leaves[j][:: max(1, len(leaves[j]) // REPRESENTATIVES)]
            distances[j, i] = nearest.kneighbors(X[other])[0].min()
    distances = np.maximum(distances, distances.T)
    return squareform(np.nan_to_num(distances, nan=LARGEST, posinf=LARGEST), checks=False)
