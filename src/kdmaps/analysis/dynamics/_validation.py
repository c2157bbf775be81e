"""Whether the lag of a model is long enough: implied time scales, and what one lag predicts for several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from kdmaps.analysis.dynamics._along import Along, check_reversible, checked_lags, project
from kdmaps.analysis.dynamics._chapman import ChapmanKolmogorov, chapman_kolmogorov
from kdmaps.analysis.dynamics._choose import default_lags, some_frames
from kdmaps.analysis.dynamics._timescales import ImpliedTimescales, scan_lags
from kdmaps.analysis.resampling import Resampling
from kdmaps.data.inputs import as_source, join_trajectories
from kdmaps.data.sources import ArraySource
from kdmaps.estimators.transformer import ModeTransformer
from kdmaps.utils.types import RandomStateLike, SamplesLike
from kdmaps.utils.validation import checked_weight
from kdmaps.utils.warn import muted

#: Frames that are looked at: what a hundred thousand do not show, hardly matters.
MOST_FRAMES = 100_000
#: Multiples of the lag that are predicted, where trajectories are long enough.
STEPS = 5
#: Probability that chance alone fails a correct model.
LEVEL = 0.01
#: Differences of autocorrelations below this do not matter.
SMALL = 0.02


@dataclass(frozen=True)
class Validation:
    """Tests of a model's lag.

    Attributes
    ----------
    lag : int
        Of the model, in frames.
    implied : ImpliedTimescales
        Time scales over lags, that of the model among them.
    chapman : ChapmanKolmogorov or None
        None if no trajectory has frames two lags apart.
    """

    lag: int
    implied: ImpliedTimescales
    chapman: ChapmanKolmogorov | None

    @property
    def flat(self) -> bool:
        """Whether the time scales do not depend on the lag any more, from the lag of the model on."""
        return self.implied.plateau is not None and self.implied.plateau <= self.lag

    @property
    def limit(self) -> float:
        """The largest deviation that chance explains, in standard errors: of all steps and modes (Bonferroni)."""
        assert self.chapman is not None
        compared = self.chapman.deviations[1:].size
        return float(norm.ppf(1 - LEVEL / (2 * max(compared, 1))))

    @property
    def worst(self) -> tuple[int, int] | None:
        """Step and mode, counted from 0, of the largest deviation that is not small; None if all are."""
        if self.chapman is None:
            return None
        test = self.chapman
        sizes = np.where(np.abs(test.estimated - test.predicted) > SMALL, np.abs(test.deviations), 0.0)
        step, mode = np.unravel_index(np.argmax(sizes), sizes.shape)
        return (int(step), int(mode)) if sizes[step, mode] > 0 else None

    @property
    def predicts(self) -> bool | None:
        """Whether what one lag predicts for several holds within the errors; None if it could not be tested."""
        if self.chapman is None:
            return None
        return self.worst is None or bool(abs(self.chapman.deviations[self.worst]) <= self.limit)


def validate(
    model: ModeTransformer,
    X: SamplesLike,
    *,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    n_resamples: int = 100,
    confidence: float = 0.95,
    random_state: RandomStateLike = 0,
) -> Validation:
    """Test the lag of a model: `implied_timescales` and `chapman_kolmogorov` with settings that fit the trajectory.

    Parameters
    ----------
    model : fitted estimator, with a lag
    X : array-like of shape (n_frames, d), list of such arrays, path of a file
        Frames at equal time steps, e.g. the training data. Of more than 100,000 frames, pieces are used.
    groups : array-like of shape (n_frames,), optional
        Trajectory of each frame.
    sample_weight : array-like of shape (n_frames,), optional
    n_resamples, confidence, random_state :
        As in `implied_timescales`.

    Returns
    -------
    Validation
        `flat`: from the model's lag on, time scales do not depend on it. `predicts`: one lag predicts several.

    Raises
    ------
    ValueError
        If the trajectories are too short.

    Examples
    --------
    >>> import kdmaps
    >>> path = kdmaps.problems.load("dw1d").simulate(5000, dt=0.1, random_state=0)[0]
    >>> m = kdmaps.KernelDiffusionMap(1, lag=2, time_step=0.1, regularization=1e-4, random_state=0).fit(path)
    >>> tests = kdmaps.dynamics.validate(m, path)
    >>> tests.flat, tests.predicts
    (True, True)
    """
    resampling = Resampling(n_resamples, confidence, random_state)
    check_reversible(model)
    X, groups, _ = join_trajectories(X, groups)
    source = as_source(X)
    X, groups, weight = some_frames(source, groups, checked_weight(sample_weight, source), MOST_FRAMES)
    frames = ArraySource(X)  # without names, which only the whole of X has
    # What is to be said of the trajectory was said by the fit; a resample may hold no pair.
    with muted(), np.errstate(invalid="ignore"):
        along, implied = _scan(model, frames, groups, weight, resampling)
        steps = min(STEPS, (along.longest - 1) // along.lag)
        chapman = None
        if steps > 1:
            given: dict[str, Any] = {"n_resamples": n_resamples, "confidence": confidence, "random_state": random_state}
            chapman = chapman_kolmogorov(model, frames, steps=steps, groups=groups, sample_weight=weight, **given)
    return Validation(along.lag, implied, chapman)


def _scan(
    model: ModeTransformer, frames: ArraySource, groups: ArrayLike | None, weight: np.ndarray | None, given: Resampling
) -> tuple[Along, ImpliedTimescales]:
    """Return implied time scales, of the modes alone where few frames do not determine more functions."""
    for n_functions in (None, 1):
        along = project(model, frames, groups, weight, n_functions)
        lags = default_lags(along)
        if along.lag < along.longest:
            lags = np.union1d(lags, along.lag)
        try:
            return along, scan_lags(along, checked_lags(lags, along.longest), given)
        except np.linalg.LinAlgError:
            continue
    raise ValueError("X is too short for tests of the lag; use longer trajectories or a shorter lag.")
