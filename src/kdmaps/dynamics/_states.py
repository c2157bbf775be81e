"""Coarse states: regions in which the slow modes are nearly constant."""

from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil, log2
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.spatial import ConvexHull, QhullError
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans

from kdmaps.checks import Check, Checks, rules
from kdmaps.data.correlation import trajectories_of
from kdmaps.data.inputs import join_trajectories
from kdmaps.data.sources import ArraySource
from kdmaps.exceptions import Undetermined
from kdmaps.spectrum.modes import rate_ratios
from kdmaps.utils.fitted import model_and_samples
from kdmaps.utils.frames import join_rows
from kdmaps.utils.notebook import TableCard
from kdmaps.utils.optional import optional
from kdmaps.utils.threads import one_blas_thread
from kdmaps.utils.types import SamplesLike
from kdmaps.utils.validation import checked_weight, unit_weight

#: With more modes than this, computing the convex hull costs more than it saves.
HULL_MODES = 5
#: Smallest fraction of the samples of a state that form its core.
CORE = 0.1
#: Largest density between clusters, relative to the density inside, for a number of states. In eight systems with 2 to
#: 8 states, the right number had 0.02 to 0.3 (0.4 to 0.8 for a shallow well), larger ones 1.1 to 8.
SEPARATED = 0.5
#: Above this, states may be parts of one region: uniform samples have at least 0.33 on a ring and 0.56 on an interval.
CLEAR = 0.3
#: Number of samples that are clustered, maximum number of states that are tried, smallest population, and smallest
#: number of samples for a suggestion.
CLUSTERED, MOST_STATES, RAREST, FEWEST = 4_000, 12, 0.005, 200


@dataclass(frozen=True)
class CoarseStates(TableCard):
    """Assignment of the samples to states; the samples of several trajectories are concatenated.

    Examples
    --------
    >>> import kdmaps
    >>> X = kdmaps.problems.load("dw1d").sample(1000, random_state=0)
    >>> m = kdmaps.KernelDiffusionMap(n_components=1, random_state=0).fit(X)
    >>> states = kdmaps.dynamics.coarse_states(m.transform(X), 2)
    >>> bool((states.cores[abs(X[:, 0]) < 0.1] == -1).all())
    True
    >>> sorted(X[states.representatives(X)[:, 0], 0].round().tolist())
    [-1.0, 1.0]
    >>> left, right = states.memberships_at(m.transform([[-1.0], [1.0]]))
    >>> bool(left.argmax() != right.argmax())
    True
    """

    #: Membership of samples well inside a state.
    crisp: ClassVar[float] = 0.9

    #: (n_samples,): state of each sample, by decreasing population. Label 0 is called state 1 in texts and figures.
    labels: np.ndarray
    #: (n_samples, n_states): degrees of membership of each sample in each state, non-negative and with sum 1. For two
    #: states they resemble committors.
    memberships: np.ndarray
    #: (n_states,): weighted shares of the samples with each label; the mean membership of a rare state is larger.
    populations: np.ndarray
    #: A in memberships = [1, modes] A, before negative values (beyond a vertex, or far from the samples) are set to 0;
    #: None if the states are not the vertices of a simplex.
    transformation: np.ndarray | None
    #: (n_states, n_modes): means of the modes in each state, for states found by clustering.
    centres: np.ndarray | None = None
    #: Largest density half-way between two states, relative to the density at the less dense one: below 0.3 for states
    #: that are clearly separated in the space of the modes, 1 or more for parts of one state. NaN if unknown.
    valley: float = np.nan
    #: Number of detached groups of samples, which are the last states: `memberships_at` does not find them.
    n_apart: int = 0

    @property
    def checks(self) -> Checks:
        """Whether the states are separate clusters, if that is known."""
        return Checks([] if np.isnan(self.valley) else [Check(rules.SEPARATE_STATES, self.valley)])

    def __repr__(self) -> str:
        method = "PCCA+" if self.centres is None else "clusters"
        crisp = np.mean(self.memberships.max(axis=1) > self.crisp)
        shown = ", ".join(f"state {k + 1} (label {k}) {part:.1%}" for k, part in enumerate(self.populations))
        return (
            f"{len(self.populations)} coarse states of {len(self.labels)} samples ({method}): {shown}; "
            f"{crisp:.0%} of the samples have a membership above {self.crisp:g}"
        )

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return titles and rows of a table of states."""
        rows = []
        for k, part in enumerate(self.populations):
            own = self.memberships[self.labels == k, k]
            inside = np.mean(own > self.crisp) if own.size else 0.0
            rows.append([str(k + 1), f"{part:.1%}", str(own.size), f"{inside:.0%}"])
        return ["state", "population", "samples", f"inside (membership > {self.crisp:g})"], rows

    @property
    def separated(self) -> bool:
        """True if all states are clearly separated: `valley` is less than 0.3."""
        return bool(self.valley < CLEAR)

    @property
    def cores(self) -> np.ndarray:
        """State of each sample well inside a state, -1 for all other samples, shape (n_samples,).

        The core of a state consists of its samples with a membership of at least 0.9, or of the tenth with the largest
        membership if that is more. At the border of `labels`, a path changes its state repeatedly within one crossing;
        between cores it does not.
        """
        found = np.full(len(self.labels), -1)
        for state in range(len(self.populations)):
            found[self._core(state) & (self.labels == state)] = state
        return found

    def _core(self, state: int) -> np.ndarray:
        """Return a mask of the samples whose membership is large enough for the core."""
        membership = self.memberships[:, state]
        own = membership[self.labels == state]
        least = np.quantile(own, 1 - CORE) if own.size else membership.max()
        return membership >= min(self.crisp, least)

    @one_blas_thread()
    def representatives(self, X: SamplesLike, n: int = 1) -> np.ndarray:
        """Return typical samples of every state: the samples of its core nearest to the mean of the core.

        Distances are in standard deviations of the columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, d), or list of such arrays
            The samples at which the states were found.
        n : int, default=1
            Number of samples of each state.

        Returns
        -------
        ndarray of int of shape (n_states, n)
            Rows of X (of a list of arrays, joined), the most typical first; -1 if a core has fewer samples.
        """
        X = np.asarray(join_trajectories(X)[0], dtype=np.float64)
        if X.ndim != 2 or len(X) != len(self.labels):
            raise ValueError(f"X must contain the {len(self.labels)} samples of the states, got shape {X.shape}.")
        scale = X.std(axis=0)
        X = X / np.where(scale > 0, scale, 1.0)
        rows = np.full((len(self.populations), n), -1)
        for state in range(len(self.populations)):
            core = np.flatnonzero(self._core(state))
            distance = np.sum((X[core] - X[core].mean(axis=0)) ** 2, axis=1)
            nearest = core[np.argsort(distance, kind="stable")[:n]]
            rows[state, : len(nearest)] = nearest
        return rows

    def memberships_at(self, modes: SamplesLike) -> np.ndarray:
        """Return the memberships of new points.

        Parameters
        ----------
        modes : array-like of shape (n_points, r), or list of such arrays
            Values at these points of the modes used to find the states (`model.transform(new)`).

        Returns
        -------
        ndarray of shape (n_points, n_states)
            Non-negative, with sum 1; meaningless far from the samples.
        """
        modes = _checked_modes(modes)
        used = len(self.populations) - self.n_apart - 1 if self.centres is None else self.centres.shape[1]
        if modes.shape[1] < used:
            raise ValueError(f"modes must contain the {used} modes used to find the states, got {modes.shape[1]}.")
        found = _memberships(modes[:, :used], self.transformation, self.centres)
        return np.pad(found, ((0, 0), (0, self.n_apart)))

    def milestones(self, groups: ArrayLike | None = None) -> np.ndarray:
        """Return the last state whose core each frame, or a frame before it, was in.

        Unlike `labels`, these change only if a path goes from the core of one state to the core of another.

        Parameters
        ----------
        groups : array-like of shape (n_samples,), optional
            Trajectory of each frame; by default the frames are one trajectory in temporal order.

        Returns
        -------
        ndarray of int of shape (n_samples,)
            -1 before the first core of a trajectory.
        """
        cores, found = self.cores, np.full(len(self.labels), -1)
        for rows in trajectories_of(groups, len(cores)):
            own = cores[rows]
            last = np.maximum.accumulate(np.where(own >= 0, np.arange(len(own)), -1))
            found[rows] = np.where(last >= 0, own[last], -1)
        return found

    def to_deeptime(self, lag: int = 1, *, groups: ArrayLike | None = None) -> Any:
        """Return a Markov state model of the states by deeptime, for transition paths, spectra and simulation.

        Parameters
        ----------
        lag : int, default=1
            Lag of the Markov model, in frames.
        groups : array-like of shape (n_samples,), optional
            Trajectory of each frame.

        Returns
        -------
        deeptime.markov.msm.MarkovStateModel
            Maximum-likelihood reversible model of the `milestones`, on the largest connected set of states.
        """
        markov = optional("deeptime.markov", "deeptime", "Markov state models")
        steps = self.milestones(groups)
        paths = [steps[rows][steps[rows] >= 0] for rows in trajectories_of(groups, len(steps))]
        paths = [path for path in paths if len(path) > lag]
        if not paths:
            raise ValueError(f"No trajectory has two frames lag={lag} apart after its first core; use a shorter lag.")
        counts = markov.TransitionCountEstimator(lag, "sliding").fit(paths).fetch_model().submodel_largest()
        return markov.msm.MaximumLikelihoodMSM().fit(counts).fetch_model()


def suggest_states(model: Any) -> int:
    """Suggest the number of states, from the modes at the samples that a model contains.

    Parameters
    ----------
    model : fitted estimator

    Returns
    -------
    int
        The largest number of clusters in the space of the modes between which the density is less than half of the
        density inside (`CoarseStates.valley`). If it is larger and its clusters are separated at all, k + 1 for the
        largest gap rate_{k+1}/rate_k, including the rate after the last mode. With weights, only the gap counts.

    Examples
    --------
    >>> import kdmaps
    >>> X = kdmaps.problems.load("dw1d").sample(1000, random_state=0)
    >>> kdmaps.dynamics.suggest_states(kdmaps.KernelDiffusionMap(n_components=2, random_state=0).fit(X))
    2
    """
    model, _ = model_and_samples(model, None)
    modes = model.modes_
    rates = np.append(modes.rates, max(modes.rates[-1], float(modes.clock.rates(np.array(modes.next_quotient)))))
    by_gap = int(np.argmax(rate_ratios(rates))) + 2
    support = getattr(model, "support_", None)
    if support is None or model.moments_.weighted or len(support.samples) < FEWEST:
        return by_gap
    values = np.asarray(model.transform(ArraySource(support.samples)))
    separated = [len(found.centres) for found in _separations(values)[1]]
    if separated and (by_gap in separated or _best(values, by_gap).valley >= 1):
        return separated[-1]
    return max([by_gap, *separated])


@one_blas_thread()
def coarse_states(
    modes: SamplesLike,
    n_states: int | None = None,
    *,
    method: str = "auto",
    sample_weight: ArrayLike | None = None,
    apart: ArrayLike | None = None,
) -> CoarseStates:
    """Find the metastable states between which the slow modes describe transitions, as `CoarseStates`.

    Parameters
    ----------
    modes : array-like of shape (n_samples, r), or list of such arrays
        Modes at the samples, slowest first (`model.transform(X)`). The arrays of a list (several trajectories) are
        joined, and labels and memberships refer to the rows of the joined array.
    n_states : int or None, default=None
        Number of states, from 2 to 2^r for "auto" and to r + 1 for "pcca". None means, for "auto", the largest number
        of separated clusters (`CoarseStates.valley` below ½), or the best separated number up to r + 1 if
        there is none; for "pcca" r + 1. `suggest_states` also uses the rates of a model.
    method : {"auto", "pcca"}, default="auto"
        "auto" forms clusters of the modes by k-means, with as many of the modes as separate them best. It works for a
        simplex (m states and m - 1 slow modes) and for products (two states along each of r coordinates: r modes and
        2^r states). "pcca" is PCCA+: the linear map of (1, φ_1, …, φ_{m-1}) to non-negative memberships with sum 1 that
        are as crisp as possible.
    sample_weight : array-like of shape (n_samples,), or list of such arrays, optional
        Weights for clusters and populations.
    apart : array-like of int of shape (n_samples,), optional
        Detached group of each sample, -1 for none (`model.rare_states(X)`). Each group is one more state, after the
        `n_states` of the other samples.

    Notes
    -----
    Modes are nearly constant in metastable states, so that the states are clusters in the space of the modes. If m
    clusters are found from m - 1 modes, memberships are barycentric coordinates with the centres as vertices: linear in
    the modes, as in PCCA+, which has extreme samples as vertices. Otherwise they are d_i^{-4}/Σ_j d_j^{-4} for the
    distances d_i from the centres.

    References
    ----------
    Röblitz, S. and Weber, M. (2013). Fuzzy spectral clustering by PCCA+. Adv. Data Anal. Classif. 7.

    Examples
    --------
    >>> import kdmaps
    >>> X = kdmaps.problems.load("dw1d").sample(1000, random_state=0)
    >>> m = kdmaps.KernelDiffusionMap(n_components=2, random_state=0).fit(X)
    >>> states = kdmaps.dynamics.coarse_states(m.transform(X), 2)
    >>> bool(((X[:, 0] > 0) == (states.labels == states.labels[X[:, 0].argmax()])).mean() > 0.95)
    True
    """
    modes = _checked_modes(modes)
    groups = None if apart is None else np.asarray(apart)
    if groups is not None and (groups.shape != (len(modes),) or groups.dtype.kind not in "iu"):
        raise ValueError(f"apart must have one integer for each of {len(modes)} samples, got shape {groups.shape}.")
    if groups is not None and (groups >= 0).any():
        weight = checked_weight(join_rows("sample_weight", sample_weight), modes)
        return _with_groups(modes, groups, weight, n_states, method)
    r = modes.shape[1]
    most = 2**r if method == "auto" else r + 1
    if n_states is not None and (not isinstance(n_states, int | np.integer) or not 2 <= n_states <= most):
        raise ValueError(f"n_states must be from 2 to {most} for {r} mode(s) and method={method!r}, got {n_states!r}.")
    weight = checked_weight(join_rows("sample_weight", sample_weight), modes)
    centres, valley = None, np.nan
    if method == "auto":
        if n_states is None:  # as many separated clusters as there are, or the best separated ones
            every, clear = _separations(modes, weight)
            found = clear[-1] if clear else min(every[:r], key=lambda clusters: clusters.valley)
        else:
            found = _best(modes, n_states, weight)
        centres, valley = found.centres, found.valley
        used, transformation = modes[:, : centres.shape[1]], None
        if len(centres) == used.shape[1] + 1:
            transformation = np.linalg.inv(np.column_stack([np.ones(len(centres)), centres]))
    elif method == "pcca":
        used = modes[:, : (n_states or r + 1) - 1]
        transformation = _pcca(used)
    else:
        raise ValueError(f'method must be "auto" or "pcca", got {method!r}.')
    memberships = _memberships(used, transformation, centres)
    populations = np.bincount(memberships.argmax(axis=1), unit_weight(weight, len(modes)), memberships.shape[1])
    order = np.argsort(-populations, kind="stable")
    memberships = memberships[:, order]
    return CoarseStates(
        labels=memberships.argmax(axis=1),
        memberships=memberships,
        populations=populations[order],
        transformation=None if transformation is None else transformation[:, order],
        centres=None if centres is None else centres[order],
        valley=valley,
    )


def _with_groups(
    modes: np.ndarray, apart: np.ndarray, weight: np.ndarray | None, n_states: int | None, method: str
) -> CoarseStates:
    """Return the states of the samples outside of detached groups, and each group as one more state."""
    others = apart < 0
    own = None if weight is None else weight[others]
    found = coarse_states(modes[others], n_states, method=method, sample_weight=own)
    n_apart = int(apart.max()) + 1
    n_found = len(found.populations)
    memberships = np.zeros((len(modes), n_found + n_apart))
    memberships[others, :n_found] = found.memberships
    memberships[~others, n_found + apart[~others]] = 1
    labels = memberships.argmax(axis=1)
    populations = np.bincount(labels, unit_weight(weight, len(modes)), memberships.shape[1])
    return replace(found, labels=labels, memberships=memberships, populations=populations, n_apart=n_apart)


class _Clusters(NamedTuple):
    """Clusters of the first modes."""

    centres: np.ndarray  # (n_states, n_modes)
    valley: float  # as in `CoarseStates`
    error: float  # standard error of the valley
    rarest: float  # smallest population


def _separations(modes: np.ndarray, weight: np.ndarray | None = None) -> tuple[list[_Clusters], list[_Clusters]]:
    """Return the best separated clusters for every number of states, and those that are clearly separated."""
    most = min(MOST_STATES, 2 ** modes.shape[1], len(modes))
    found = [_best(modes, n, weight) for n in range(2, most + 1)]
    return found, [c for c in found if c.valley < 1 and c.valley - c.error < SEPARATED and c.rarest >= RAREST]


def _best(modes: np.ndarray, n_states: int, weight: np.ndarray | None = None) -> _Clusters:
    """Cluster the first k modes, with the k that separates the clusters best."""
    if np.any(np.ptp(modes[:, : n_states - 1], axis=0) == 0) or len(modes) < n_states:
        raise ValueError("modes are constant at the samples, or there are fewer samples than n_states.")
    weight = np.ones(len(modes)) if weight is None else weight
    if len(modes) > CLUSTERED:
        rows = np.random.RandomState(0).permutation(len(modes))[:CLUSTERED]
        modes, weight = modes[rows], weight[rows]
    fewest, most = ceil(log2(n_states)), min(n_states - 1, modes.shape[1])
    found = (_clusters(modes[:, :k], n_states, weight) for k in range(fewest, most + 1))
    return min(found, key=lambda clusters: clusters.valley)


def _clusters(modes: np.ndarray, n_states: int, weight: np.ndarray) -> _Clusters:
    """Return the clusters of k-means, and the density between them.

    Of two clusters, the samples are projected on the line between the centres. The valley is the weight within 0.15 of
    the distance around the middle, over the smaller of the weights around the centres.
    """
    found = KMeans(n_states, n_init=5, random_state=0).fit(modes, sample_weight=weight)
    centres, labels, deepest = found.cluster_centers_, found.labels_, (0.0, 0.0)
    for i, j in combinations(range(n_states), 2):
        own = (labels == i) | (labels == j)
        line = centres[j] - centres[i]
        place = (modes[own] - centres[i]) @ line / (line @ line)
        near = [np.abs(place - at) < 0.15 for at in (0, 1, 0.5)]
        start, end, between = (float(weight[own] @ some) for some in near)
        ratio = between / min(start, end) if min(start, end) > 0 else np.inf
        count = min(np.count_nonzero(some) for some in near)  # the smallest determines the error
        deepest = max(deepest, (ratio, ratio / np.sqrt(count) if count else 0.0))
    return _Clusters(centres, *deepest, float(np.bincount(labels, weight, n_states).min() / weight.sum()))


def _checked_modes(modes: SamplesLike) -> np.ndarray:
    if isinstance(modes, BaseEstimator):
        raise TypeError(f"modes must be an array, the values of m.transform(X), got {type(modes).__name__}.")
    modes = np.asarray(join_trajectories(modes)[0], dtype=np.float64)
    if modes.ndim != 2 or not modes.size or not np.isfinite(modes).all():
        raise ValueError(f"modes must be a finite array of shape (n_samples, r), got shape {modes.shape}.")
    return modes


def _memberships(modes: np.ndarray, transformation: np.ndarray | None, centres: Any) -> np.ndarray:
    """Return barycentric coordinates, or else d_i^{-4}/Σ_j d_j^{-4} for the distances d_i from the centres."""
    if transformation is None:
        squares = np.maximum(cdist(modes, centres, "sqeuclidean"), np.finfo(float).tiny ** 0.25)
        values = (squares.min(axis=1, keepdims=True) / squares) ** 2
    else:
        values = np.maximum(transformation[0] + modes @ transformation[1:], 0)
    return values / values.sum(axis=1, keepdims=True)


def _pcca(modes: np.ndarray) -> np.ndarray:
    """Return the feasible A that maximises the crispness Σ_ij A_ij²/A_0j, starting from the inner simplex."""
    outer = _outermost(modes)
    start = _inner_simplex(np.column_stack([np.ones(len(outer)), outer]))
    shape = (start.shape[0] - 1, start.shape[1] - 1)

    def feasible(free: np.ndarray) -> np.ndarray:
        """Complete A so that memberships have sum 1 and minimum 0 at the samples."""
        lower = free.reshape(shape)
        lower = np.column_stack([-lower.sum(axis=1), lower])
        top = -(outer @ lower).min(axis=0)
        return np.vstack([top, lower]) / top.sum()

    def bluntness(free: np.ndarray) -> float:
        A = feasible(free)
        return -float(np.sum(A**2 / A[0]))

    # The objective has kinks where the extreme sample changes, so a gradient-free method is used.
    found = minimize(bluntness, start[1:, 1:].ravel(), method="Nelder-Mead", options={"maxfev": 5000})
    return feasible(found.x)


def _outermost(modes: np.ndarray) -> np.ndarray:
    """Return the rows that are extreme in some direction."""
    if modes.shape[1] == 1:
        return modes[[modes.argmin(), modes.argmax()]]
    if modes.shape[1] > HULL_MODES:
        return modes
    try:
        return modes[ConvexHull(modes).vertices]
    except QhullError:
        raise Undetermined("modes are constant or linearly dependent on the samples; use fewer n_states.") from None


def _inner_simplex(rows: np.ndarray) -> np.ndarray:
    """Return the inverse of the vertices: the row farthest from 0, then repeatedly the farthest from their span."""
    corners = [int(np.argmax(np.linalg.norm(rows, axis=1)))]
    rest = rows - rows[corners[0]]
    for _ in range(rows.shape[1] - 1):
        distance = np.linalg.norm(rest, axis=1)
        corners.append(int(distance.argmax()))
        direction = rest[corners[-1]] / distance.max()
        rest = rest - np.outer(rest @ direction, direction)
    return np.linalg.inv(rows[corners])
