"""Statistical uncertainty of rates, time scales and modes by a block bootstrap on Moments.

The samples are summed once, block by block. A resample draws blocks with replacement and is a weighted sum of their
Moments. Blocks that are long compared with the correlation time of the modes are approximately independent, even if the
samples of a trajectory are not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from scipy.stats import norm

from kdmaps.checks import Check, Checks, muted, or_fewer, recorded, rules, warn, warn_of
from kdmaps.clocks.clock import BurstClock
from kdmaps.data import ArraySource
from kdmaps.data.check import order_checks
from kdmaps.data.correlation import order_of, trajectories_of
from kdmaps.data.inputs import join_trajectories
from kdmaps.data.pairs import make_pairs, paired_rows
from kdmaps.data.sources import Source
from kdmaps.diagnostics.resampling import Resampling, independent_blocks, most_blocks, optimistic_intervals
from kdmaps.diagnostics.trust import Trust
from kdmaps.estimators.arguments import model_and_samples
from kdmaps.estimators.isolation import at_rows, outside
from kdmaps.estimators.transformer import ModeTransformer, checked_source
from kdmaps.exceptions import Undetermined
from kdmaps.forms.diffusion import is_per_sample
from kdmaps.forms.energy import EnergyForm
from kdmaps.forms.lagged import LaggedForm
from kdmaps.forms.moments import Moments, StackedMoments
from kdmaps.forms.tangent import DiffusionLike, checked_tensor
from kdmaps.selection.folds import BlockedKFold
from kdmaps.spectrum.directed import doubled, doubled_ridge
from kdmaps.spectrum.modes import Modes
from kdmaps.spectrum.pencil import find_modes
from kdmaps.summary import show_interval
from kdmaps.utils.frames import aligned, records, with_ends
from kdmaps.utils.notebook import TableCard
from kdmaps.utils.numbers import rounded
from kdmaps.utils.progress import track
from kdmaps.utils.threads import one_blas_thread
from kdmaps.utils.types import RandomStateLike, SamplesLike
from kdmaps.utils.validation import checked_weight

#: Factor of λ for the estimate of its bias.
BIAS_STEP = 0.1
#: Means of products of features of the same samples differ by rounding, relative to the largest of them; means over
#: other samples of the same law differ by one over the root of their number.
SAME = 1e-4


@dataclass(frozen=True)
class Uncertainty(TableCard):
    """Result of the block bootstrap."""

    rates: np.ndarray  #: (r,): rates of the model.
    timescales: np.ndarray  #: (r,): time scales of the model.
    rate_intervals: np.ndarray  #: (r, 2): confidence intervals.
    timescale_intervals: np.ndarray  #: (r, 2): confidence intervals.
    rate_errors: np.ndarray  #: (r,): standard errors.
    timescale_errors: np.ndarray  #: (r,): standard errors.
    #: (r,): upper confidence bounds, in radians and ascending, of the principal angles between the spans of all modes
    #: of the model and of a resample.
    angles: np.ndarray
    #: (r,): the same for each mode separately. Modes of a degenerate cluster are defined up to a rotation; they share
    #: the largest angle between their span and the span of the matching modes.
    mode_angles: np.ndarray
    clusters: list[np.ndarray]  #: Indices of the modes in each degenerate cluster.
    confidence: float  #: Confidence level of the intervals and bounds.
    block_length: int  #: Smallest number of samples in a block.
    n_blocks: int  #: Number of blocks.
    correlation_time: float  #: Largest integrated correlation time g = 1 + 2 Σ_t |ρ_t| of the modes, in samples.
    rate_samples: np.ndarray  #: (n_resamples, r): rates of the resamples, in the order of the model's modes.
    angle_samples: np.ndarray  #: (n_resamples, r): principal angles of the resamples.
    checks: Checks = field(default_factory=Checks, repr=False)  #: Whether blocks and resamples determine intervals.

    def table(self) -> list[dict[str, Any]]:
        """Return one row of plain data per mode, for example for `pandas.DataFrame`."""
        columns = {"mode": np.arange(len(self.rates)) + 1}
        columns |= with_ends("timescale", self.timescales, self.timescale_intervals)
        columns |= {"timescale_error": self.timescale_errors, **with_ends("rate", self.rates, self.rate_intervals)}
        return records(**columns, rate_error=self.rate_errors, angle_degrees=np.degrees(self.mode_angles))

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return titles and rows of a table with one row for each mode."""
        percent, lines = f"{100 * self.confidence:g} %", []
        for row in self.table():
            times, rates = (
                [
                    rounded(row[name]),
                    show_interval(np.array([row[f"{name}_low"], row[f"{name}_high"]]), 4),
                ]
                for name in ("timescale", "rate")
            )
            lines.append([str(row["mode"]), *times, *rates, f"{row['angle_degrees']:.2g}°"])
        return ["mode", "time scale", f"{percent} interval", "rate", f"{percent} interval", "direction within"], lines

    def __repr__(self) -> str:
        titles, rows = self.cells()
        angles = ", ".join(f"{angle:.2g}°" for angle in np.degrees(self.angles))
        return "\n".join(
            [
                f"Block bootstrap: {len(self.rate_samples)} resamples of {self.n_blocks} blocks of at least "
                f"{self.block_length} samples (correlation time {self.correlation_time:.3g})",
                *aligned([titles, *rows]),
                f"principal angles of the span of all modes, {100 * self.confidence:g} % bounds: {angles}",
            ]
        )


@one_blas_thread()
@recorded
def bootstrap(
    model: ModeTransformer,
    X: SamplesLike,
    *,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    diffusion: DiffusionLike = None,
    n_resamples: int = 200,
    block_length: int | str = "auto",
    max_blocks: int | None = None,
    confidence: float = 0.95,
    random_state: RandomStateLike = 0,
    progress: bool = False,
) -> Uncertainty:
    """Compute the `Uncertainty` of a model: confidence intervals of its rates and time scales, and of its modes.

    The intervals describe the variation over samples of the same law, for the kernel, the basis and λ of the model.
    They are widened to include the rates for kernels with similar scores and for other random features
    (`Trust.alternatives`). Their lower or upper end is 0 or infinite if the samples give no bound: a rate determined by
    a few samples may be 0, and the rate of a mode that changes in a region without samples may be arbitrarily large.

    Parameters
    ----------
    model : fitted estimator
    X : array-like of shape (n_samples, d), memory map, or path of a .npy file
        The training samples, in temporal order if they come from a trajectory.
    sample_weight : array-like of shape (n_samples,), optional
        The weights used in the fit.
    groups : array-like of shape (n_samples,), optional
        Trajectory of each sample. Blocks are cut within trajectories; short trajectories are joined. Without groups,
        interleaved walkers are detected by the autocorrelation of the modes and used as groups, with a `DataWarning`
        (unless the model was fitted with `reversible=False`).
    diffusion : optional
        Diffusion tensor of these samples; by default the `diffusion` of the estimator.
    n_resamples : int, default=200
    block_length : int or "auto", default="auto"
        Smallest number of consecutive samples in a block. "auto" uses five times the largest integrated correlation
        time of the modes.
    max_blocks : int or None, default=None
        Maximum number of blocks, which makes blocks longer if necessary. None means 50, or fewer if their moments (a
        p×p matrix each) would take more than 256 MB.
    confidence : float, default=0.95
    random_state : int, RandomState instance or None, default=0
    progress : bool, default=False
        Show a bar on a terminal or in a notebook, and lines in a log file.

    Warns
    -----
    UnreliableModesWarning
        If there are fewer than ten blocks, the resamples do not determine all modes, or the bias of a given λ exceeds
        an interval.

    Notes
    -----
    With c the multinomial counts of the blocks b, the operators of a resample are Σ_b c_b M_b / Σ_b c_b w_b. Its rates
    are the λ-free Ritz values of its modes, which are matched to the modes of the model by correlation. Intervals are
    basic bootstrap intervals of log rate, [θ̂²/q_high, θ̂²/q_low] for quantiles q of the resampled rates; the reflection
    removes the optimism of the fit. Resamples are more optimistic than the fit, so the intervals also include the ends
    without this shift. They are corrected for the number of blocks, as Student's quantiles correct normal quantiles.

    References
    ----------
    Künsch, H. R. (1989). The jackknife and the bootstrap for general stationary observations. Ann. Statist. 17.

    Examples
    --------
    >>> import kdmaps
    >>> X = kdmaps.problems.load("dw1d").sample(2000, random_state=0)
    >>> m = kdmaps.KernelDiffusionMap(n_components=2, random_state=0).fit(X)
    >>> u = kdmaps.uncertainty.bootstrap(m, X)
    >>> bool(u.timescale_intervals[0, 0] < m.timescales_[0] < u.timescale_intervals[0, 1])
    True
    """
    model, X = model_and_samples(model, X, ModeTransformer)
    resampling = Resampling(n_resamples, confidence, random_state)
    if max_blocks is not None and (not isinstance(max_blocks, Integral) or max_blocks < 2):
        raise ValueError(f"max_blocks must be None or an integer of at least 2, got {max_blocks!r}.")
    fitted: Any = getattr(model, "best_estimator_", model)
    X, groups, _ = join_trajectories(X, groups, sample_weight)
    X = checked_source(model, X)
    if not isinstance(X, ArraySource):
        raise ValueError("X must be an array or a .npy file, from which blocks of rows can be selected.")
    weight = checked_weight(sample_weight, X)
    if diffusion is None and is_per_sample(fitted.diffusion):
        diffusion = fitted.diffusion
    X, weight, groups, diffusion = _without_groups(fitted, X, weight, groups, diffusion)
    values = np.asarray(ModeTransformer.transform(fitted, X), dtype=np.float64)
    if groups is None and fitted.right_modes_ is None:  # oscillations resemble interleaved walkers
        order = order_of(values)
        if order.n_walkers > 1:
            warn_of(order_checks(order))
            groups = order.walker_of(len(values))
    source, form, weight, groups, first = _observations(fitted, X, weight, groups, diffusion)
    values = values[first]
    trajectories = trajectories_of(groups, len(values))
    frames = fitted.modes_.clock.lag is not None or isinstance(getattr(model, "cv", None), BlockedKFold)
    if groups is None and not frames and order_of(X.array).sorted:
        trajectories = [np.random.RandomState(0).permutation(len(values))]  # independent rows, as for the folds
    most = max_blocks or most_blocks(fitted.basis_)
    blocks, length, correlation_time = independent_blocks(values, weight, trajectories, block_length, most)
    moments = StackedMoments([form.moments(fitted.basis_, source, weight, rows) for rows in blocks])
    refit = _Refit(fitted, moments.combine(np.ones(len(blocks))))
    rates, angles, mode_angles = _compare_resamples(refit, moments, resampling.counts(len(blocks)), progress)
    on_samples, rates, mode_angles = refit.modes.rates[refit.order], rates[:, refit.order], mode_angles[:, refit.order]
    centre = np.asarray(fitted.rates_)
    # Centred at the rates on the training samples, even if the model has cross-fitted rates: these lack the optimism of
    # a fit, which the reflection removes.
    # Rates are infinite where modes relax within a lag; then ends of intervals are unknown.
    with np.errstate(invalid="ignore", divide="ignore"):
        intervals = np.exp(optimistic_intervals(np.log(on_samples), np.log(rates), confidence, len(blocks)))
    if not hasattr(model, "cv_results_"):
        _warn_of_bias(refit, intervals)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.log(rates).std(axis=0, ddof=1)  # of log rate: the relative error of a rate and of its time scale
    if model.trust_ is not None:
        with np.errstate(invalid="ignore"):
            intervals = _widened(_corrected(intervals, model.trust_, spread, confidence), model.trust_)
    clock = fitted.clock_
    if clock is not None:
        intervals, spread = _in_real_time(clock, intervals, on_samples, spread, confidence)
        rates = rates * clock.factor
    with np.errstate(divide="ignore"):
        timescale_intervals = 1 / intervals[:, ::-1]  # 1/0 = ∞
    return Uncertainty(
        rates=centre,
        timescales=1 / centre,
        rate_intervals=intervals,
        timescale_intervals=timescale_intervals,
        rate_errors=spread * np.where(np.isfinite(centre), centre, np.nan),
        timescale_errors=spread / centre,
        angles=np.quantile(angles, confidence, axis=0),
        mode_angles=np.quantile(mode_angles, confidence, axis=0),
        clusters=fitted.modes_.clusters,
        confidence=float(confidence),
        block_length=length,
        n_blocks=len(blocks),
        correlation_time=correlation_time,
        rate_samples=rates,
        angle_samples=angles,
    )


def _without_groups(
    fitted: Any, X: ArraySource, weight: np.ndarray | None, groups: Any, diffusion: DiffusionLike
) -> tuple[ArraySource, np.ndarray | None, Any, DiffusionLike]:
    """Return samples, weights, groups and tensors without the rows that the fit has left out."""
    if not fitted.rare_groups_:
        return X, weight, groups, diffusion
    rows = np.flatnonzero(outside(fitted.rare_groups_, X.array))
    return (
        ArraySource(X.array[rows], checked=True),
        None if weight is None else weight[rows],
        None if groups is None else np.asarray(groups)[rows],
        at_rows(diffusion, rows, len(X.array)),
    )


def _observations(
    fitted: Any, X: ArraySource, weight: np.ndarray | None, groups: Any, diffusion: DiffusionLike
) -> tuple[Source, Any, np.ndarray | None, Any, slice | np.ndarray]:
    """Return the samples or pairs of frames, their form, weights, groups and rows in X."""
    lag = fitted.modes_.clock.lag
    if lag is None:
        spaces = fitted.tangents_ if diffusion is None else None
        if diffusion is None:
            learned = None if fitted.clock_ is None else fitted.clock_.diffusion
            diffusion = fitted.diffusion if learned is None else learned
        tensor = checked_tensor(diffusion, X, weight, spaces=spaces)
        return X, EnergyForm(tensor), weight, groups, slice(None)
    first = paired_rows(len(X.array), lag, None if groups is None else np.asarray(groups))[0]
    with muted():  # the fit has warned of short trajectories
        pairs, weight, groups = make_pairs(X, lag, weight, groups)
    return pairs, LaggedForm(lag, fitted.right_modes_ is None), weight, groups, first


def _corrected(intervals: np.ndarray, trust: Trust, spread: np.ndarray, confidence: float) -> np.ndarray:
    """Replace the intervals of rates that were estimated from held-out samples: resamples repeat their optimism."""
    if trust.corrected is None:
        return intervals
    half = norm.ppf((1 + confidence) / 2) * np.hypot(spread, trust.corrected)[:, None]
    own = trust.rates[:, None] * np.exp(half * np.array([-1.0, 1.0]))
    return np.where(trust.corrected[:, None] > 0, own, intervals)


def _widened(intervals: np.ndarray, trust: Trust) -> np.ndarray:
    """Widen intervals of rates to include alternative rates, and open the sides that the samples do not bound."""
    with np.errstate(divide="ignore"):
        others = np.log(np.vstack([trust.rates, trust.alternatives]) / trust.rates)
        low, high = np.log(intervals.T / trust.rates)
    # In log rate, the squares of independent errors add; an interval that excludes the rate moves as a whole.
    low = np.where(low < 0, -np.hypot(low, others.min(axis=0)), low + others.min(axis=0))
    high = np.where(high > 0, np.hypot(high, others.max(axis=0)), high + others.max(axis=0))
    low, high = np.where(trust.unbounded_below, -np.inf, low), np.where(trust.unbounded_above, np.inf, high)
    return trust.rates[:, None] * np.exp(np.stack([low, high], axis=1))


def _in_real_time(
    clock: BurstClock, intervals: np.ndarray, rates: np.ndarray, spread: np.ndarray, confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return intervals of rates in real time and their spread: the errors of the clock factor are independent."""
    burst_errors = clock.burst_errors
    half = norm.ppf((1 + confidence) / 2) * burst_errors
    with np.errstate(divide="ignore"):
        low, high = np.log(intervals.T / rates)
    # As in `_widened`, squares of independent errors add, and an interval that excludes the rate moves as a whole.
    low = np.where(low < 0, -np.hypot(low, half), low - half)
    high = np.where(high > 0, np.hypot(high, half), high + half)
    centre = rates * clock.factor
    return centre[:, None] * np.exp(np.stack([low, high], axis=1)), np.hypot(spread, burst_errors)


def _warn_of_bias(refit: _Refit, intervals: np.ndarray) -> None:
    """Warn if a tenth of λ, which was not chosen by cross-validation, leads to a rate below its interval."""
    rates = refit.rates_at(BIAS_STEP)
    biased = np.flatnonzero(rates < intervals[:, 0])
    worst = int(np.argmax(intervals[:, 0] / rates)) if biased.size else 0
    relative = rates / np.maximum(intervals[:, 0], np.finfo(float).tiny)
    warn(Check(rules.BIAS, relative, words={"first": worst + 1, "rate": float(rates[worst])}))


def _compare_resamples(
    refit: _Refit, moments: StackedMoments, counts: np.ndarray, progress: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rates, the principal angles and the angle of each mode, one row per resample that determines them."""
    rows = track(counts, len(counts), lambda: "error bars", progress)
    draws = [refit.compare(moments.combine(row)) for row in rows]
    found = [draw for draw in draws if draw is not None]
    if not found:
        fewer = or_fewer(refit.n_modes - 1)
        raise Undetermined("No resample determines the modes; use more samples{fewer}.", fewer=fewer)
    words = {"count": len(draws), "r": refit.n_modes, "fewer": or_fewer(refit.n_modes - 1)}
    warn(Check(rules.RESAMPLES, len(draws) - len(found), len(draws) / 10, words=words))
    rates, angles, mode_angles = (np.array(part) for part in zip(*found, strict=True))
    return rates, angles, mode_angles


class _Refit:
    """The modes of all samples, recomputed from the moments, and comparisons of resamples with them.

    Functions (f, g) of first and second frames, for reversible=False, are modes of the features of both frames.
    """

    def __init__(self, fitted: Any, moments: Moments):
        self._fitted, self._moments, self.n_modes = fitted, moments, len(fitted.eigenvalues_)
        self.modes = self._solve(moments)  # in the order of μ, as in the resamples
        # Indices of the modes of the model, which are in the order of their time scales.
        self.order = np.argsort(np.argsort(-fitted.eigenvalues_, kind="stable"))
        same_rates = np.allclose(self.modes.eigenvalues[self.order], fitted.eigenvalues_, rtol=1e-3)
        # A condition number of 1e15 amplifies rounding of the sums without limit.
        if not same_rates and not _same_means(moments, fitted.moments_):
            raise ValueError(
                "The model was not fitted to this X (with this sample_weight and diffusion): the eigenvalues differ. "
                "Pass the training samples."
            )
        self._covariance = self._problem(moments)[0].covariance(fitted.center)
        self._dual = self._covariance @ self.modes.coefficients

    def _problem(self, moments: Moments) -> tuple[Moments, np.ndarray | None]:
        ridge = self._fitted.basis_.ridge
        return (moments, ridge) if moments.flow is None else (doubled(moments), doubled_ridge(ridge))

    def _solve(self, moments: Moments, factor: float = 1.0) -> Modes:
        fitted, penalty = self._fitted, factor * self._fitted.regularization
        return find_modes(*self._problem(moments), self.n_modes, penalty, fitted.center, fitted.modes_.clock)

    def rates_at(self, factor: float) -> np.ndarray:
        """Return the rates, slowest first, with λ multiplied by a factor; NaN if the modes are not determined."""
        try:
            return np.sort(self._solve(self._moments, factor).rates)
        except (Undetermined, np.linalg.LinAlgError):
            return np.full(self.n_modes, np.nan)

    def compare(self, moments: Moments) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Return rates, principal angles and mode angles, the modes in the order of μ; or None if undetermined."""
        try:
            other = self._solve(moments)
        except (Undetermined, np.linalg.LinAlgError):
            return None
        overlap = self._dual.T @ other.coefficients
        gram = other.coefficients.T @ self._covariance @ other.coefficients
        order = self._match(overlap / np.sqrt(np.diagonal(gram)))
        overlap, gram = overlap[:, order], gram[np.ix_(order, order)]
        mode_angles = np.empty(self.n_modes)
        for cluster in self.modes.clusters:
            own = np.ix_(cluster, cluster)
            mode_angles[cluster] = _angles(overlap[own], gram[own])[-1]
        return other.rates[order], _angles(overlap, gram), mode_angles

    def _match(self, correlation: np.ndarray) -> np.ndarray:
        """Return, for each mode, the matching mode of the resample; within a cluster in the order of μ."""
        clusters = self.modes.clusters
        owner = np.repeat(np.arange(len(clusters)), [len(cluster) for cluster in clusters])
        captured = np.array([np.sum(correlation[cluster] ** 2, axis=0) for cluster in clusters])
        order = linear_sum_assignment(-captured[owner])[1]
        for cluster in clusters:
            order[cluster] = np.sort(order[cluster])
        return order


def _same_means(moments: Moments, others: Moments) -> bool:
    """Return whether moments belong to the same samples, up to rounding."""
    for name in ("total", "gram", "energy"):
        mean = getattr(moments, name) / moments.weight
        other = getattr(others, name) / others.weight
        if mean.shape != other.shape or not np.allclose(mean, other, rtol=0, atol=SAME * np.abs(other).max()):
            return False
    return True


def _angles(overlap: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """Return the principal angles, ascending, between orthonormal functions and functions with this Gram matrix."""
    root = np.linalg.cholesky(gram)
    cosines = np.linalg.svd(np.linalg.solve(root, overlap.T), compute_uv=False)
    return np.arccos(np.clip(cosines, 0, 1))
