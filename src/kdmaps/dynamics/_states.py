"""Coarse states: regions in which the slow modes are nearly constant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.spatial import ConvexHull, QhullError

from kdmaps.data.inputs import join_trajectories
from kdmaps.spectrum.clock import rate_ratios
from kdmaps.utils.frames import join_rows
from kdmaps.utils.types import SamplesLike
from kdmaps.utils.validation import checked_weight, unit_weight

#: With more modes than this, computing the convex hull costs more than it saves.
HULL_MODES = 5
#: Smallest fraction of the samples of a state that form its core.
CORE = 0.1


@dataclass(frozen=True)
class CoarseStates:
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
    #: A in memberships = [1, modes] A, before negative values (by rounding, or far from the samples) are set to 0; None
    #: for states by signs.
    transformation: np.ndarray | None
    #: (n_states, n_modes): signs of the modes in each state, True for positive; None for PCCA+.
    signs: np.ndarray | None = None

    def __repr__(self) -> str:
        method = "PCCA+" if self.signs is None else "signs"
        crisp = np.mean(self.memberships.max(axis=1) > self.crisp)
        shown = ", ".join(f"state {k + 1} (label {k}) {part:.1%}" for k, part in enumerate(self.populations))
        return (
            f"{len(self.populations)} coarse states of {len(self.labels)} samples ({method}): {shown}; "
            f"{crisp:.0%} of the samples have a membership above {self.crisp:g}"
        )

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
        table = self.transformation if self.signs is None else self.signs
        assert table is not None  # exactly one of the two is set
        used = table.shape[1] - (self.signs is None)
        if modes.shape[1] < used:
            raise ValueError(f"modes must contain the {used} modes used to find the states, got {modes.shape[1]}.")
        if self.signs is None:
            return _memberships(modes[:, :used], table)
        same = ((modes[:, None, :used] > 0) == self.signs).all(axis=2)
        if not same.any(axis=1).all():
            raise ValueError(
                f"Point {int(np.argmin(same.any(axis=1)))} of modes has a combination of signs that does not occur in "
                'the samples. Use method="pcca", which defines memberships everywhere.'
            )
        return same.astype(np.float64)


def suggest_states(model: Any) -> int:
    """Suggest the number of states: one more than the number of modes before the largest gap in the rates.

    Parameters
    ----------
    model : fitted estimator

    Returns
    -------
    int
        k + 1 for the largest rate_{k+1}/rate_k, including the rate after the last mode.

    Examples
    --------
    >>> import kdmaps
    >>> X = kdmaps.problems.load("dw1d").sample(1000, random_state=0)
    >>> kdmaps.dynamics.suggest_states(kdmaps.KernelDiffusionMap(n_components=2, random_state=0).fit(X))
    2
    """
    modes = model.modes_
    following = float(modes.clock.rates(np.array(modes.next_quotient)))
    rates = np.append(modes.rates, following if following > modes.rates[-1] else modes.rates[-1])
    return int(np.argmax(rate_ratios(rates))) + 2


def coarse_states(
    modes: SamplesLike, n_states: int | None = None, *, method: str = "pcca", sample_weight: ArrayLike | None = None
) -> CoarseStates:
    """Find the metastable states between which the slow modes describe transitions, as `CoarseStates`.

    Parameters
    ----------
    modes : array-like of shape (n_samples, r), or list of such arrays
        Modes at the samples, slowest first (`model.transform(X)`). The arrays of a list (several trajectories) are
        joined, and labels and memberships refer to the rows of the joined array.
    n_states : int or None, default=None
        Number m ≥ 2 of states, found from the first m - 1 modes; None means r + 1. Choose one more than the number of
        slow modes before a gap in the time scales (`suggest_states`).
    method : {"pcca", "sign"}, default="pcca"
        "pcca" is PCCA+: the linear map of (1, φ_1, …, φ_{m-1}) to non-negative memberships with sum 1 that are as crisp
        as possible. "sign" forms one state for each combination of signs that occurs, at most 2^{m-1} states.
    sample_weight : array-like of shape (n_samples,), or list of such arrays, optional
        Weights for the populations.

    Notes
    -----
    PCCA+ uses the extreme values of the modes, which span a simplex whose vertices are the states. It assumes
    metastable states; modes without plateaus (of a single well) have no such vertices.

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
    n_states = modes.shape[1] + 1 if n_states is None else n_states
    if not isinstance(n_states, int | np.integer) or not 2 <= n_states <= modes.shape[1] + 1:
        raise ValueError(f"n_states must be from 2 to {modes.shape[1] + 1} (one more than the number of modes).")
    modes = modes[:, : n_states - 1]
    weight = checked_weight(join_rows("sample_weight", sample_weight), modes)
    transformation = signs = None
    if method == "pcca":
        transformation = _pcca(modes)
        memberships = _memberships(modes, transformation)
    elif method == "sign":
        signs, labels = np.unique(modes > 0, axis=0, return_inverse=True)
        memberships = np.eye(labels.max() + 1)[labels.ravel()]
    else:
        raise ValueError(f'method must be "pcca" or "sign", got {method!r}.')
    populations = np.bincount(memberships.argmax(axis=1), unit_weight(weight, len(modes)), memberships.shape[1])
    order = np.argsort(-populations, kind="stable")
    memberships = memberships[:, order]
    return CoarseStates(
        labels=memberships.argmax(axis=1),
        memberships=memberships,
        populations=populations[order],
        transformation=None if transformation is None else transformation[:, order],
        signs=None if signs is None else signs[order],
    )


def _checked_modes(modes: SamplesLike) -> np.ndarray:
    modes = np.asarray(join_trajectories(modes)[0], dtype=np.float64)
    if modes.ndim != 2 or not np.isfinite(modes).all():
        raise ValueError(f"modes must be a finite array of shape (n_samples, r), got shape {modes.shape}.")
    return modes


def _memberships(modes: np.ndarray, transformation: np.ndarray) -> np.ndarray:
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
        raise ValueError("modes are constant or linearly dependent on the samples; use fewer n_states.") from None


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
