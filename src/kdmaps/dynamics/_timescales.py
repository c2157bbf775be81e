"""Implied time scales: what every lag says about the same modes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from kdmaps.diagnostics.resampling import Resampling, joint_intervals, optimistic_intervals
from kdmaps.dynamics._along import Along, check_reversible, checked_lags, project
from kdmaps.estimators.transformer import ModeTransformer
from kdmaps.exceptions import UnreliableModesWarning
from kdmaps.forms.moments import Moments
from kdmaps.spectrum.clock import Clock
from kdmaps.utils.types import RandomStateLike, SamplesLike

#: A lag can only be called flat if one at least so many times as long says the same.
LONGER = 2
#: Relative differences of time scales below this do not matter.
FLAT = 0.05


@dataclass(frozen=True)
class ImpliedTimescales:
    """Time scales for several lags.

    Attributes
    ----------
    lags : ndarray of int of shape (n_lags,)
        In frames.
    times : ndarray of shape (n_lags,)
        The same in the unit of `time_step`.
    timescales : ndarray of shape (n_lags, r)
        Longest first; 0 where no correlation is left after the lag.
    intervals : ndarray of shape (n_lags, r, 2)
        Confidence intervals.
    time_step : float
        Time between frames.
    confidence : float
        Confidence level of the intervals.
    samples : ndarray of shape (n_resamples, n_lags, r)
        Time scales of the resamples, those of all lags from the same blocks.
    n_blocks : int
        Number of blocks that were resampled.
    """

    lags: np.ndarray
    times: np.ndarray
    timescales: np.ndarray
    intervals: np.ndarray
    time_step: float
    confidence: float
    samples: np.ndarray
    n_blocks: int

    @property
    def resolved(self) -> np.ndarray:
        """Which time scales are longer than the lag, shape (n_lags, r): no lag shows what relaxes within it."""
        return self.timescales > self.times[:, None]

    @property
    def plateau(self) -> int | None:
        """The smallest lag from which the resolved time scales are flat within their errors; None if there is none.

        A lag is compared with all longer ones, of which one must be twice as long: log t must not differ by more than
        5 % beyond the interval of this difference. Both come from the same blocks, so that the interval is far
        narrower than that of a time scale. The intervals of all differences hold together, with one confidence: of a
        dozen lags that are compared one by one, each at 95 %, one differs by chance in every tenth trajectory or so.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            logs, samples = np.log(self.timescales), np.log(self.samples)
            for i, lag in enumerate(self.lags):
                longer = self.resolved[i + 1 :] & self.resolved[i]
                if not longer[self.lags[i + 1 :] >= LONGER * lag, :1].any():
                    return None
                change, changes = logs[i + 1 :] - logs[i], samples[:, i + 1 :] - samples[:, i : i + 1]
                ends = joint_intervals(change[longer], changes[:, longer], self.confidence, self.n_blocks)
                if ((ends[:, 0] <= FLAT) & (ends[:, 1] >= -FLAT)).all():
                    return int(lag)
        return None

    @property
    def longest_resolved(self) -> int:
        """The longest lag that the slowest time scale outlives, which `choose_lag` takes if none is flat."""
        slow = self.resolved[:, 0]
        return int(self.lags[slow][-1] if slow[0] else self.lags[0])

    @property
    def why_not_flat(self) -> UnreliableModesWarning:
        """What `choose_lag` warns of if no lag is flat."""
        if not self.resolved[0, 0]:
            return UnreliableModesWarning(
                f"Nothing in these frames outlives a lag of {self.lags[0]} frame(s): they are not in the order of "
                "time, or too far apart. Use frames as they were written, at shorter time steps."
            )
        return UnreliableModesWarning(
            "Implied time scales of the cheap model that chooses the lag are not flat within their errors; a lag of "
            f"{self.longest_resolved} frames is used, the longest one that the slowest time scale outlives. Test the "
            "fit with kdmaps.dynamics.validate; use longer trajectories, or inputs that hold all that is slow."
        )

    def table(self) -> list[dict[str, Any]]:
        """Return one row of plain data per lag and mode, for example for `pandas.DataFrame`."""
        return [
            {
                "lag": int(lag),
                "time": float(self.times[i]),
                "mode": k + 1,
                "timescale": float(self.timescales[i, k]),
                "timescale_low": float(self.intervals[i, k, 0]),
                "timescale_high": float(self.intervals[i, k, 1]),
            }
            for i, lag in enumerate(self.lags)
            for k in range(self.timescales.shape[1])
        ]

    def __repr__(self) -> str:
        lines = [f"Implied time scales ({100 * self.confidence:g} % intervals), longest first; –: shorter than the lag"]
        for i, (lag, time) in enumerate(zip(self.lags, self.times, strict=True)):
            shown = (self._shown(i, k) for k in range(self.timescales.shape[1]))
            lines.append(f"  lag {lag} (time {time:.4g}): {', '.join(shown)}")
        flat = self.plateau
        lines.append("  not flat within the errors" if flat is None else f"  flat within the errors from lag {flat}")
        return "\n".join(lines)

    def _shown(self, i: int, k: int) -> str:
        if not self.resolved[i, k]:
            return "–"
        low, high = self.intervals[i, k]
        return f"{self.timescales[i, k]:.4g} ({low:.4g} – {high:.4g})"


def implied_timescales(
    model: ModeTransformer,
    X: SamplesLike,
    lags: ArrayLike | Sequence[int],
    *,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    n_resamples: int = 100,
    confidence: float = 0.95,
    random_state: RandomStateLike = None,
) -> ImpliedTimescales:
    """Compute the time scales of a model's modes for several lags, in one pass over the data.

    If the modes describe all that is slow, and the lag is long enough for the rest to be forgotten, then t = -τ/ln ν(τ)
    does not depend on the lag τ. Time scales that still grow say: use a longer lag, or a better kernel.

    Parameters
    ----------
    model : fitted estimator, with a lag
    X : array-like of shape (n_frames, d), list of such arrays, path of a file
        Frames at equal time steps, e.g. the training data.
    lags : sequence of int
        Ascending, in frames.
    groups : array-like of shape (n_frames,), optional
        Trajectory of each frame; pairs never cross trajectories.
    sample_weight : array-like of shape (n_frames,), optional
        The weight of a pair is that of its first frame.
    n_resamples : int, default=100
        Number of resamples of the block bootstrap.
    confidence : float, default=0.95
        Confidence level of the intervals.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    ImpliedTimescales

    Warns
    -----
    UnreliableModesWarning
        If the trajectory holds too few correlation times for intervals.

    Notes
    -----
    The frames are projected on at most 50 leading functions of the fitted eigenproblem, its modes among them. For each
    lag, the slowest combinations of these are found by Rayleigh–Ritz: L_τ v = (1 - ν) C₀ v. Intervals are basic
    bootstrap intervals of log t over blocks of at least five correlation times of the modes, as in
    `kdmaps.uncertainty.bootstrap`: they hold any optimism of the time scales between none and that of the resamples,
    and so the time scales themselves.

    Examples
    --------
    >>> import kdmaps
    >>> path = kdmaps.problems.load("dw1d").simulate(5000, dt=0.1, random_state=0)[0]
    >>> m = kdmaps.KernelDiffusionMap(1, lag=2, time_step=0.1, regularization=1e-4, random_state=0).fit(path)
    >>> found = kdmaps.dynamics.implied_timescales(m, path, [1, 2, 4, 8], random_state=0)
    >>> found.plateau
    1
    """
    resampling = Resampling(n_resamples, confidence, random_state)
    check_reversible(model)
    along = project(model, X, groups, sample_weight)
    return scan_lags(along, checked_lags(lags, along.longest), resampling)


def scan_lags(along: Along, lags: np.ndarray, resampling: Resampling) -> ImpliedTimescales:
    """Return the time scales of functions along trajectories for several lags."""
    counts, step = resampling.counts(len(along.blocks)), along.time_step
    found = [_of_lag(along, Clock(int(lag), step), counts) for lag in lags]
    rates, samples = (np.array(part) for part in zip(*found, strict=True))
    samples = np.moveaxis(samples, 1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = optimistic_intervals(-np.log(rates), -np.log(samples), resampling.confidence, len(along.blocks))
    return ImpliedTimescales(
        lags, lags * step, 1 / rates, np.exp(logs), step, float(resampling.confidence), 1 / samples, len(along.blocks)
    )


def _of_lag(along: Along, clock: Clock, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest rates of all blocks, and of each resample."""
    assert clock.lag is not None
    moments, r = along.moments(clock.lag), along.n_modes
    rates = _slowest(moments.combine(np.ones(counts.shape[1])), clock, r)
    return rates, np.array([_slowest(moments.combine(row), clock, r) for row in counts])


def _slowest(moments: Moments, clock: Clock, n_modes: int) -> np.ndarray:
    quotients = linalg.eigh(
        moments.mean_energy(), moments.covariance(), eigvals_only=True, check_finite=False, overwrite_a=True
    )[:n_modes]
    return clock.rates(np.maximum(quotients, np.finfo(float).tiny))
