"""AdaptiveCommittor: probability to reach B before A, and the rates between A and B, from samples in any order."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from kdmaps.bases import Basis, ModeBasis
from kdmaps.checks import Checks, collected, warn_of
from kdmaps.clocks.clock import BurstClock
from kdmaps.data.detached import RareGroup, detached_check, find_groups, left_out
from kdmaps.data.distances import Support
from kdmaps.data.findings import CheckedRows, run_checks
from kdmaps.data.inputs import join_trajectories
from kdmaps.data.sources import ArraySource, gather
from kdmaps.diagnostics.committor import CommittorTrust
from kdmaps.diagnostics.evidence import evaluated_at, values_at
from kdmaps.diagnostics.resampling import Resampling
from kdmaps.estimators.committor_fit import CONFIDENCE, CommittorFit, boundary_sides, fit_committor, search_kernel
from kdmaps.estimators.fit import Columns
from kdmaps.estimators.real_time import GivenBursts, clock_of_committor, fit_with_bursts
from kdmaps.estimators.transformer import FittedEstimator, checked_source, read_samples
from kdmaps.forms.diffusion import is_per_sample
from kdmaps.forms.tangent import DiffusionLike, TangentSpaces, checked_tensor
from kdmaps.kernels import Kernel
from kdmaps.selection.committor import BASES, OUTSIDE, BoundaryData
from kdmaps.selection.folds import check_groups
from kdmaps.selection.plan import ISOLATED
from kdmaps.utils.frames import check_rows, join_rows, split_rows
from kdmaps.utils.notebook import card, warning_lines
from kdmaps.utils.numbers import rounded
from kdmaps.utils.threads import at_most, n_workers_of, one_blas_thread
from kdmaps.utils.types import RandomStateLike, SamplesLike
from kdmaps.utils.validation import (
    check_choice,
    check_positive_integer,
    checked_samples,
    checked_weight,
    seed_of,
    unit_weight,
)

#: Quantities of tables, and their names.
NAMES = {
    "flux": "flux",
    "rate": "rate A → B",
    "reverse_rate": "rate B → A",
    "mean_first_passage_time": "mean first passage time A → B",
}


def quantity_rows(model: AdaptiveCommittor) -> list[list[str]]:
    """Return name, value and interval of flux, rates and mean first passage time."""
    return [
        [title, rounded(getattr(model, f"{name}_")), " – ".join(map(rounded, getattr(model, f"{name}_interval_")))]
        for name, title in NAMES.items()
    ]


class FittedCommittor(FittedEstimator):
    """Attributes of a fitted committor."""

    flux_: float
    rate_: float
    reverse_rate_: float
    mean_first_passage_time_: float
    flux_interval_: np.ndarray
    rate_interval_: np.ndarray
    reverse_rate_interval_: np.ndarray
    trust_: CommittorTrust
    basis_: Basis
    kernel_: Kernel
    coefficients_: np.ndarray
    offset_: np.ndarray
    best_score_: float
    regularization_: float
    candidates_: list[dict[str, Any]]
    support_: Support
    tangents_: TangentSpaces | None
    checks_: Checks
    rare_groups_: tuple[RareGroup, ...]
    clock_: BurstClock | None
    _fit: CommittorFit


@dataclass(eq=False, repr=False)
class AdaptiveCommittor(FittedCommittor):
    """Committor and reaction rates between two sets, from samples of the stationary law, with the kernel chosen.

    The committor q(x) is the probability that a path from x reaches the set B before the set A. For the diffusion dX =
    -a∇V dt + √(2a) dW (temperature 1) it minimises the energy E[∇qᵀa∇q] with q = 0 in A and q = 1 in B. The minimum is
    the reactive flux ν, the number of transitions per time, and the rate from A to B is ν/E[1 - q]. In the span of
    kernel features this is one linear system. Family, bandwidth, metric, basis and λ minimise the energy on held-out
    samples, an upper bound of ν up to noise. Samples may come from biased simulations, with weights, in any order: no
    trajectory is needed.

    Parameters
    ----------
    diffusion : None, float, array-like, callable, "tangent" or TangentDiffusion, default=None
        Diffusion tensor a, as in `AdaptiveDiffusionMap`. It sets the unit of time of flux and rates; a constant factor
        does not change q.
    isolated : {"separate", "keep", "drop"}, default="separate"
        Treatment of fewer than 50 rows outside of A and B that lie behind an empty gap: left out of the fit, with a
        `DataWarning` ("separate", "drop"), or fitted with the others ("keep").
    basis : {"auto", "fourier", "landmarks"}, default="auto"
        Basis functions. "auto" tries both; PLUMED input needs "fourier".
    n_features : int, default=300
        Number p of basis functions.
    cv : "auto", int or scikit-learn splitter, default="auto"
        Folds. "auto" is five random folds with equal parts of A and B; folds of whole groups with `groups`; blocks with
        gaps if rows depend on rows nearby.
    n_resamples : int, default=500
        Resamples of the block bootstrap for the intervals.
    max_search_samples : int, default=20000
        The kernel is chosen by at most so many samples; the result is fitted to all of them.
    time_step : float, optional
        Time between the frames of `bursts` of `fit`, in any unit, which becomes the unit of time. By default the step
        of the times in the bursts.
    random_state : int, RandomState instance or None, default=None
        Seed of frequencies, landmarks, folds and resamples.
    n_jobs : int or None, default=-1
        Number of threads of `fit`; -1 is one per core, None is 1.
    progress : bool, default=False
        If True, show progress.

    Attributes
    ----------
    flux_, flux_interval_ : float, and ndarray of shape (2,)
        Reactive flux ν, the mean of the energies on training samples (too low) and on held-out samples (too high), and
        its 95 % interval.
    rate_, rate_interval_ : float, and ndarray of shape (2,)
        Rate from A to B, ν/E[1 - q].
    reverse_rate_, reverse_rate_interval_ : float, and ndarray of shape (2,)
        Rate from B to A, ν/E[q].
    mean_first_passage_time_, mean_first_passage_time_interval_ : float, and ndarray of shape (2,)
        1/`rate_`: mean time from the entry into A to the next entry into B.
    trust_ : kdmaps.diagnostics.committor.CommittorTrust
        Reliability: `trust_.ok`, `trust_.checks`, numbers of samples between the sets and of samples that carry the
        flux, boundary values, overshoot.
    kernel_, basis_, regularization_ :
        The choice.
    best_score_ : float
        Negative held-out energy of the choice, without the samples that contribute most.
    rare_groups_ : tuple of kdmaps.data.RareGroup
        Groups of rows that are left out, as in `AdaptiveDiffusionMap`.
    clock_ : kdmaps.clocks.clock.BurstClock or None
        The clock that `bursts` of `fit` show: all estimators of the flux with errors, the choice, checks.
    candidates_ : list of dict
        All candidates, in the order of their evaluation.
    coefficients_, offset_ : ndarray of shape (p, 1), and (1,)
        q = Σ_m coefficients_m φ_m - offset before it is clipped to [0, 1].
    n_features_in_ : int
    feature_names_in_ : ndarray, only for data frames

    See Also
    --------
    kdmaps.dynamics.committor : Committor from a trajectory, by a model with a lag.
    kdmaps.dynamics.rate_matrix : Rates between several states.

    Notes
    -----
    Boundary values hold at the samples of A and B: the function is stretched until it is at most 0 at all samples of A
    and at least 1 at all samples of B, to rounding, and then clipped to [0, 1]. `trust_` warns if it has to be
    stretched by more than 15 %. At other points of A and B, values are as good as the samples nearby.

    Examples
    --------
    >>> import kdmaps
    >>> X = kdmaps.problems.load("dw1d").sample(1000, random_state=0)
    >>> y = (X[:, 0] > 1).astype(int) - (abs(X[:, 0]) <= 1)  # 0 left, 1 right, -1 between
    >>> c = kdmaps.AdaptiveCommittor(random_state=0).fit(X, y)
    >>> bool(abs(c.predict([[0.0]])[0] - 0.5) < 0.05)
    True
    """

    _: KW_ONLY
    diffusion: DiffusionLike = None
    isolated: str = "separate"
    basis: str = "auto"
    n_features: int = 300
    cv: Any = "auto"
    n_resamples: int = 500
    max_search_samples: int = 20_000
    time_step: float | None = None
    random_state: RandomStateLike = None
    n_jobs: int | None = -1
    progress: bool = False

    @one_blas_thread()
    def fit(
        self,
        X: SamplesLike,
        y: Any,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        bursts: Any = None,
        burst_start: Any = None,
        burst_weight: Any = None,
    ) -> Self:
        """Find the committor of the samples X.

        Parameters
        ----------
        X : array-like of shape (n_samples, d), list of such arrays, path
            Samples of A, of B and of the region between them; not Dask data.
        y : array-like of shape (n_samples,), pair of masks or of callables, or CoarseStates
            Labels 0 in A, 1 in B and -1 elsewhere; or masks of A and B; or functions that map X to these masks; or two
            `kdmaps.dynamics.CoarseStates`, whose cores are used.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights of the stationary law: of biased samples, π over the law of the samples.
        groups : array-like of shape (n_samples,), optional
            Trajectory of each sample: folds and resamples keep groups together.
        bursts, burst_start, burst_weight : optional
            Short unbiased runs, their starts and weights, as in `AdaptiveDiffusionMap.fit`: flux and rates are then in
            real time.

        Returns
        -------
        self
        """
        given = GivenBursts(bursts, burst_start, burst_weight)
        if given:
            timed = fit_with_bursts(self, X, y, sample_weight, groups, given, read_samples)
            inner = timed.estimator
            fitted = clock_of_committor(timed, inner._fit)
            assert fitted.clock is not None
            return self._publish(inner._columns, fitted, inner.checks_ + fitted.clock.checks)
        n_features = check_positive_integer("n_features", self.n_features)
        most = check_positive_integer("max_search_samples", self.max_search_samples)
        check_choice("basis", self.basis, BASES)
        check_choice("isolated", self.isolated, ISOLATED)
        seed = seed_of(self.random_state)
        resampling = Resampling(self.n_resamples, CONFIDENCE, seed)
        check_rows(X, y=y)
        X, groups, lengths = join_trajectories(X, groups, sample_weight)
        data, groups, columns, kept, detached = self._data(X, y, sample_weight, groups, lengths, seed)
        names = None if columns.names is None else list(columns.names)
        share = None if sample_weight is None else data.share
        rows = CheckedRows(data.X, kept, share, None if groups is None else np.asarray(groups), names, False)
        with collected() as checks:
            warn_of([detached_check(detached, of_fit=True)])
            warn_of(run_checks(rows, diffusion=self.diffusion is not None, detached=self.isolated == "keep"))
            with at_most(n_workers_of(self.n_jobs)):
                search, choice = search_kernel(data, groups, most, n_features, self.basis, self.cv, self.progress)
                fitted = fit_committor(data, search, choice, groups, resampling)
            row = int(kept[fitted.trust.overshoot_row])
            rare = tuple(group for group in detached if not group.is_fitted)
            fitted = replace(fitted, trust=replace(fitted.trust, overshoot_row=row), rare_groups=rare)
            warn_of(fitted.trust.checks)
        return self._publish(columns, fitted, Checks(checks))

    @property
    def checks(self) -> Checks:
        """All checks of the data and of the committor that the fit has made."""
        check_is_fitted(self)
        return self.checks_

    def _data(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, lengths: Any, seed: int
    ) -> tuple[BoundaryData, Any, Columns, np.ndarray, tuple[RareGroup, ...]]:
        """Return samples of the fit, their groups, the columns of X, the rows of these samples, and detached groups."""
        source, columns = read_samples(self, X)
        if type(source).__name__ == "DaskSource":
            raise ValueError(
                "X is Dask data, but a committor needs values at single samples. Compute the samples that are needed, "
                "such as X[::10].compute(), and their weights."
            )
        rows = np.asarray(gather(source), dtype=np.float64)
        check_groups(groups, len(rows))
        weight = checked_weight(sample_weight, source)
        side = boundary_sides(y if lengths is None else join_rows("y", y, lengths), rows, weight)
        kept = np.arange(len(rows)) if weight is None else np.flatnonzero(weight)
        detached = self._detached(rows, weight, side)
        kept = np.setdiff1d(kept, left_out(detached))
        tensor = checked_tensor(self.diffusion, ArraySource(rows, checked=True), weight)
        share = unit_weight(weight, len(rows))[kept]
        if left_out(detached).size:
            share = share / share.sum()
        groups = None if groups is None else np.asarray(groups)[kept]
        data = BoundaryData(rows[kept], share, side[kept], tensor.at(rows[kept], kept), seed)
        return data, groups, columns, kept, detached

    def _detached(self, X: np.ndarray, weight: np.ndarray | None, side: np.ndarray) -> tuple[RareGroup, ...]:
        """Return the detached groups; those with rows in A or B, which are boundary conditions, are fitted."""
        if self.isolated == "keep":
            return ()
        groups = []
        for group in find_groups(X, weight):
            bound = bool((side[group.rows] != OUTSIDE).any())
            groups.append(replace(group, is_state=False, is_fitted=group.is_fitted or bound))
        return tuple(groups)

    def _card(self) -> str:
        if not hasattr(self, "trust_"):
            return ""
        title = f"Committor from A to B: {self.trust_.between} samples between the sets; {self.checks_.headline()}"
        return card(title, ("", "value", "95 % interval"), quantity_rows(self), warning_lines(self.checks_))

    @one_blas_thread()
    def predict(self, X: SamplesLike) -> Any:
        """Return the committor, from 0 to 1, at any points.

        Parameters
        ----------
        X : array-like of shape (n_samples, d), list of such arrays, path, stream of chunks

        Returns
        -------
        q : ndarray of shape (n_samples,)
            For a list of arrays a list; for Dask data a Dask array.
        """
        return self._values(X, clip=True)

    @one_blas_thread()
    def decision_function(self, X: SamplesLike) -> Any:
        """Return the smooth function that `predict` clips to [0, 1]: a collective variable with continuous forces.

        Parameters
        ----------
        X : array-like of shape (n_samples, d), list of such arrays, path, stream of chunks

        Returns
        -------
        f : ndarray of shape (n_samples,)
        """
        return self._values(X, clip=False)

    def _values(self, X: SamplesLike, clip: bool) -> Any:
        check_is_fitted(self)
        X, _, lengths = join_trajectories(X)
        source = checked_source(self, X)
        self._warn_of_extrapolation(source)
        values = source.project(self._function(), np.ones(1), self.basis_.chunk_rows)[:, 0]
        values = values.clip(0, 1) if clip else values
        return values if lengths is None else split_rows(values, lengths)

    @one_blas_thread()
    def gradient(self, X: ArrayLike) -> np.ndarray:
        """Return ∇q at any points, in closed form; 0 where q is clipped.

        Parameters
        ----------
        X : array-like of shape (n_samples, d)

        Returns
        -------
        gradients : ndarray of shape (n_samples, d)
        """
        check_is_fitted(self)
        X = np.asarray(checked_samples(self, X, reset=False), dtype=np.float64)
        function = self._function()
        values = values_at(function, X)[:, 0]
        return function.gradient(X, np.eye(1))[:, 0] * ((values > 0) & (values < 1))[:, None]

    @one_blas_thread()
    def score(
        self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None, *, diffusion: DiffusionLike = None
    ) -> float:
        """Return the negative energy -E[∇qᵀa∇q; outside of A and B] on X; larger is better.

        On samples that q was not fitted to, its expectation is at most the negative flux.

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
        y : as in `fit`, optional
            A and B; by default the points where q is 0 or 1.
        sample_weight : array-like of shape (n_samples,), optional
        diffusion : optional
            Diffusion tensor at these samples, needed if `fit` had one tensor per sample.
        """
        check_is_fitted(self)
        rows = np.asarray(checked_samples(self, X, reset=False), dtype=np.float64)
        weight = checked_weight(sample_weight, rows)
        if diffusion is None and is_per_sample(self.diffusion):
            raise ValueError("diffusion was given per sample of fit; pass the tensors at these samples as diffusion=….")
        learned = None if self.clock_ is None else self.clock_.diffusion
        own = self.diffusion if learned is None else learned
        given = own if diffusion is None else diffusion
        tensor = checked_tensor(given, rows, weight, spaces=self.tangents_ if diffusion is None else None)
        function = self._function()
        values = values_at(function, rows)[:, 0]
        counted = (values > 0) & (values < 1)
        if y is not None:
            counted &= boundary_sides(y, rows, weight, complete=False) == OUTSIDE
        index = np.flatnonzero(counted)
        energies = evaluated_at(function, rows[index], tensor, index)[1][:, 0] if index.size else np.zeros(0)
        return -float(unit_weight(weight, len(rows))[index] @ energies)

    def _function(self) -> ModeBasis:
        return ModeBasis(self.basis_, self.coefficients_, self.offset_)

    def _publish(self, columns: Columns, fitted: CommittorFit, checks: Checks) -> Self:
        checks = checks if len(checks) else Checks(fitted.trust.checks)
        self._set_attributes(columns, {**fitted.attributes(), "checks_": checks})
        self._fit = fitted
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
