"""Whether the lag of a model is long enough: implied time scales, and what one lag predicts for several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.data.inputs import as_source, join_trajectories
from kdmaps.data.sources import ArraySource
from kdmaps.diagnostics.projection import Projection
from kdmaps.diagnostics.resampling import Resampling
from kdmaps.dynamics._chapman import SMALL, ChapmanKolmogorov, chapman_kolmogorov
from kdmaps.dynamics._model import check_reversible, project_model
from kdmaps.estimators.transformer import ModeTransformer
from kdmaps.exceptions import UnreliableModesWarning
from kdmaps.selection.lag import ImpliedTimescales, checked_lags, default_lags, scan_lags, some_frames
from kdmaps.spectrum.checks import Check
from kdmaps.utils.types import RandomStateLike, SamplesLike
from kdmaps.utils.validation import checked_weight
from kdmaps.utils.warn import muted, warn

#: Frames that are looked at: what a hundred thousand do not show, hardly matters.
MOST_FRAMES = 100_000
#: Multiples of the lag that are predicted, where trajectories are long enough.
STEPS = 5


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
        return self.chapman.limit

    @property
    def worst(self) -> tuple[int, int] | None:
        """Step and mode, counted from 0, of the largest deviation that is not small; None if all are."""
        worst = None if self.chapman is None else self.chapman.worst
        return None if worst is None else (worst[0], worst[1])

    @property
    def predicts(self) -> bool | None:
        """Whether what one lag predicts for several holds, by the rule of `ChapmanKolmogorov`; None if not tested."""
        return None if self.chapman is None else self.chapman.passed

    @property
    def doubtful(self) -> np.ndarray:
        """Which modes fail the Chapman–Kolmogorov test; (r,) of bool."""
        r = self.implied.timescales.shape[1]
        return np.zeros(r, dtype=bool) if self.chapman is None else np.any(self.chapman.failed, axis=0)

    @property
    def flat_words(self) -> str:
        """From which lag on the implied time scales are flat."""
        flat = self.implied.plateau
        if flat is None:
            return str(self._flat().warning)
        where = (
            f"Implied time scales of the fitted model are flat within their errors from a lag of {_frames(flat)} on."
        )
        if self.flat:
            return where + ("" if flat == self.lag else f" The lag of {_frames(self.lag)} is long enough.")
        return f"{where} Those of the lag of {_frames(self.lag)} differ from them: compare with a fit of that lag."

    def checks(self) -> list[Check]:
        """Return what was tested, each with its limit and, where it is not kept, what to do."""
        # One lag in twenty misses an interval by chance, and a small difference matters little: flat later on is no
        # failure.
        later = self.implied.plateau is not None and not self.flat
        return [*([] if later else [self._flat()]), *([] if self.chapman is None else [self._predicts(self.chapman)])]

    def warnings(self) -> list[UnreliableModesWarning]:
        """Return the reasons not to trust the time scales, each with its remedy; empty if the tests are passed."""
        return [check.warning for check in self.checks() if check.warning is not None]

    def _flat(self) -> Check:
        flat, longest = self.implied.plateau, int(self.implied.lags[-1])
        what, limit = "lag in frames from which implied time scales are flat", f"{self.lag}, the lag, or less"
        if flat is None:
            warning = UnreliableModesWarning(
                "Implied time scales of the fitted model are not flat within their errors at any lag up to "
                f"{_frames(longest)}: use longer trajectories, or inputs that hold all that is slow."
            )
            return Check(what, "none", limit, warning)
        return Check(what, str(flat), limit, None)

    def _predicts(self, test: ChapmanKolmogorov) -> Check:
        what, limit = "largest deviation of a Chapman–Kolmogorov test", f"at most {test.limit:.1f} standard errors"
        if test.worst is None:
            return Check(what, f"below {SMALL:g}", limit, None)
        at = test.worst
        size = abs(test.deviations[at])
        warning = UnreliableModesWarning(
            f"Chapman–Kolmogorov test of {len(test.steps)} lags failed: after {test.steps[at[0]]} of them the "
            f"autocorrelation of mode {at[1] + 1} is {test.estimated[at]:.2f}, where {test.predicted[at]:.2f} is "
            f"predicted, a difference of {size:.1f} standard errors; chance explains {test.limit:.1f}. Use a longer "
            "lag, or inputs that hold all that is slow."
        )
        return Check(what, f"{size:.1f}", limit, None if test.passed else warning)

    def __repr__(self) -> str:
        flat = f"implied time scales are {'' if self.flat else 'not '}flat within their errors from it on"
        predicts = {
            True: "it predicts longer ones",
            False: "it does not predict longer ones",
            None: "nothing predicted",
        }
        lines = [f"Tests of a lag of {_frames(self.lag)}: {flat}; {predicts[self.predicts]}", repr(self.implied)]
        return "\n".join(lines if self.chapman is None else [*lines, repr(self.chapman)])


def _frames(number: int) -> str:
    return f"{number} frame{'' if number == 1 else 's'}"


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

    Warns
    -----
    UnreliableModesWarning
        If a test is failed.

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
    tests = Validation(along.lag, implied, chapman)
    for warning in tests.warnings():
        warn(warning)
    return tests


def _scan(
    model: ModeTransformer, frames: ArraySource, groups: ArrayLike | None, weight: np.ndarray | None, given: Resampling
) -> tuple[Projection, ImpliedTimescales]:
    """Return implied time scales, of the modes alone where few frames do not determine more functions."""
    for n_functions in (None, 1):
        along = project_model(model, frames, groups, weight, n_functions)
        lags = default_lags(along)
        if along.lag < along.longest:
            lags = np.union1d(lags, along.lag)
        try:
            return along, scan_lags(along, checked_lags(lags, along.longest), given)
        except np.linalg.LinAlgError:
            continue
    raise ValueError("X is too short for tests of the lag; use longer trajectories or a shorter lag.")
