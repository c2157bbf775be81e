"""The Chapman–Kolmogorov test: what one lag predicts for several, and what several lags show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from kdmaps.diagnostics.projection import Projection
from kdmaps.diagnostics.resampling import Resampling, basic_intervals
from kdmaps.dynamics._model import check_reversible, project_model
from kdmaps.dynamics._states import CoarseStates, coarse_states
from kdmaps.estimators.transformer import ModeTransformer
from kdmaps.forms.moments import Moments
from kdmaps.utils.types import RandomStateLike, SamplesLike
from kdmaps.utils.validation import check_positive_integer

#: Probability that chance alone fails a correct model.
LEVEL = 0.01
#: Differences of autocorrelations, or of probabilities, below this do not matter, however certain they are.
SMALL = 0.02


@dataclass(frozen=True)
class ChapmanKolmogorov:
    """Predictions of one lag for several, compared with estimates.

    The test fails where a difference is more than 0.02 and also more than chance explains (`limit`). In a long
    trajectory, differences that are too small to matter are many standard errors.

    Attributes
    ----------
    steps : ndarray of int of shape (n_steps,)
        1, 2, …: multiples of the lag.
    times : ndarray of shape (n_steps,)
        The same in the unit of `time_step`.
    predicted, estimated : ndarray of shape (n_steps, r) or (n_steps, m, m)
        Autocorrelations of the modes, or probabilities P_ij of states j after states i.
    predicted_intervals, estimated_intervals : ndarray of shape (…, 2)
        Confidence intervals.
    deviations : ndarray of shape (n_steps, r) or (n_steps, m, m)
        (estimated - predicted) in standard errors of this difference; 0 for the first step, which defines the
        prediction.
    confidence : float
        Confidence level of the intervals.
    n_blocks : int
        Number of blocks that were resampled.
    states : CoarseStates or None
        Of a test of states, in the order of rows of X.
    """

    steps: np.ndarray
    times: np.ndarray
    predicted: np.ndarray
    estimated: np.ndarray
    predicted_intervals: np.ndarray
    estimated_intervals: np.ndarray
    deviations: np.ndarray
    confidence: float
    n_blocks: int
    states: CoarseStates | None = None

    @property
    def limit(self) -> float:
        """The largest deviation that chance explains, in standard errors: of all that is compared (Bonferroni).

        A standard error from resamples of B blocks is √((B - 1)/B) of the right one on average, and known to B - 1
        degrees of freedom: Student's quantile, as for intervals.
        """
        freedom = self.n_blocks - 1
        quantile = stats.t.ppf(1 - LEVEL / (2 * max(self.deviations[1:].size, 1)), freedom)
        return float(np.sqrt(self.n_blocks / freedom) * quantile)

    @property
    def failed(self) -> np.ndarray:
        """Where the test fails: a difference of more than 0.02, and of more standard errors than `limit`."""
        return self._matters & (np.abs(self.deviations) > self.limit)

    @property
    def passed(self) -> bool:
        """Whether the test fails nowhere."""
        return not self.failed.any()

    @property
    def worst(self) -> tuple[int, ...] | None:
        """Place in `deviations`, counted from 0, of the largest one that matters; None if all differences are small."""
        sizes = np.where(self._matters, np.abs(self.deviations), 0.0)
        place = tuple(int(i) for i in np.unravel_index(np.argmax(sizes), sizes.shape))
        return place if sizes[place] > 0 else None

    @property
    def _matters(self) -> np.ndarray:
        return np.abs(self.estimated - self.predicted) > SMALL

    @property
    def verdict(self) -> str:
        """Whether the test is passed, by which rule, and by how much."""
        if self.worst is None:
            largest = np.abs(self.deviations).max()
            return (
                f"passed: no difference exceeds {SMALL:g}, below which none matters, however certain (here up to "
                f"{largest:.1f} standard errors)"
            )
        size, error = (abs(array[self.worst]) for array in (self.estimated - self.predicted, self.deviations))
        return (
            f"{'passed' if self.passed else 'failed'}: of the differences above {SMALL:g}, the most certain is "
            f"{size:.2g}, {error:.1f} standard errors, of {self._name(self.worst[1:])}; chance explains "
            f"{self.limit:.1f} in {self.deviations[1:].size} comparisons"
        )

    def _name(self, place: tuple[int, ...]) -> str:
        if self.states is None:
            return f"mode {place[0] + 1}"
        return f"state {place[0] + 1} to {place[1] + 1} (labels {place[0]} and {place[1]})"

    def table(self) -> list[dict[str, Any]]:
        """Return one row of plain data per mode (or pair of states) and step, for example for `pandas.DataFrame`."""
        rows = []
        for place in np.ndindex(self.predicted.shape[1:]):
            names = {"mode": place[0] + 1} if self.states is None else {"from": place[0], "to": place[1]}
            for i, (step, time) in enumerate(zip(self.steps, self.times, strict=True)):
                at = (i, *place)
                rows.append(
                    {
                        **names,
                        "step": int(step),
                        "time": float(time),
                        "predicted": float(self.predicted[at]),
                        "estimated": float(self.estimated[at]),
                        "estimated_low": float(self.estimated_intervals[at][0]),
                        "estimated_high": float(self.estimated_intervals[at][1]),
                    }
                )
        return rows

    def __repr__(self) -> str:
        what = "modes" if self.states is None else "states"
        lines = [f"Chapman–Kolmogorov test of {self.predicted.shape[1]} {what}, steps of {self.times[0]:.4g} in time"]
        for place in np.ndindex(self.predicted.shape[1:]):
            pairs = zip(self.predicted[(..., *place)], self.estimated[(..., *place)], strict=True)
            shown = ", ".join(f"{one:.3f}/{other:.3f}" for one, other in pairs)
            lines.append(f"  {self._name(place)}: predicted/estimated {shown}")
        lines.append(f"  {self.verdict}")
        return "\n".join(lines)


def chapman_kolmogorov(
    model: ModeTransformer,
    X: SamplesLike,
    *,
    steps: int = 5,
    n_states: int | None = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    n_resamples: int = 100,
    confidence: float = 0.95,
    random_state: RandomStateLike = None,
) -> ChapmanKolmogorov:
    """Test whether what one lag shows also holds for several: ν_k(sτ) = ν_k(τ)^s, or P(sτ) = P(τ)^s.

    Parameters
    ----------
    model : fitted estimator, with a lag
    X : array-like of shape (n_frames, d), list of such arrays, path of a file
        Frames at equal time steps, e.g. the training data.
    steps : int, default=5
        Largest multiple s of the model's lag τ.
    n_states : int, optional
        Test coarse states (`coarse_states` of the modes) instead of single modes.
    groups : array-like of shape (n_frames,), optional
        Trajectory of each frame.
    sample_weight : array-like of shape (n_frames,), optional
        The weight of a pair is that of its first frame.
    n_resamples : int, default=100
        Number of resamples of the block bootstrap.
    confidence : float, default=0.95
        Confidence level of the intervals.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    ChapmanKolmogorov

    Notes
    -----
    Predictions come from the same frames as estimates, at the first step. For memberships χ of states,
    P(τ) = ⟨χχᵀ⟩⁻¹⟨χ(x_t)χ(x_{t+τ})ᵀ⟩, symmetrised over the direction of time: the propagator in the space that they
    span. Its rows have sum 1; noise may make small entries negative.

    Examples
    --------
    >>> import kdmaps
    >>> path = kdmaps.problems.load("dw1d").simulate(5000, dt=0.1, random_state=0)[0]
    >>> m = kdmaps.KernelDiffusionMap(1, lag=2, time_step=0.1, regularization=1e-4, random_state=0).fit(path)
    >>> test = kdmaps.dynamics.chapman_kolmogorov(m, path, steps=4, random_state=0)
    >>> bool(abs(test.estimated - test.predicted).max() < 0.05)
    True
    """
    check_positive_integer("steps", steps)
    resampling = Resampling(n_resamples, confidence, random_state)
    check_reversible(model)
    modes = project_model(model, X, groups, sample_weight, n_functions=1)
    if steps * modes.lag >= modes.longest:
        raise ValueError(
            f"steps={steps} of lag {modes.lag} need more than {steps * modes.lag} frames, but the longest trajectory "
            f"has {modes.longest}; use fewer steps or longer trajectories."
        )
    states, along = None, modes
    if n_states is not None:
        ordered = modes.in_order_of_rows(modes.values)
        states = coarse_states(ordered, n_states, sample_weight=sample_weight)
        along = modes.with_values(states.memberships[modes.rows])
    number = np.arange(1, steps + 1)
    found, samples = _propagators(along, number * modes.lag, resampling, of_states=states is not None)
    predicted, predictions = _powers(found[0], number), np.array([_powers(each[0], number) for each in samples])
    spread = (samples - predictions).std(axis=0, ddof=1)
    spread[0] = np.inf  # the first step defines the prediction
    return ChapmanKolmogorov(
        steps=number,
        times=number * modes.lag * modes.time_step,
        predicted=predicted,
        estimated=found,
        predicted_intervals=basic_intervals(predicted, predictions, confidence, len(along.blocks)),
        estimated_intervals=basic_intervals(found, samples, confidence, len(along.blocks)),
        deviations=(found - predicted) / np.maximum(spread, np.finfo(float).tiny),
        confidence=float(confidence),
        n_blocks=len(along.blocks),
        states=states,
    )


def _propagators(
    along: Projection, lags: np.ndarray, resampling: Resampling, *, of_states: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the propagator of every lag, and those of the resamples."""
    sums, counts = [along.moments(int(lag)) for lag in lags], resampling.counts(len(along.blocks))

    def all_lags(row: np.ndarray) -> np.ndarray:
        each = (moments.combine(row) for moments in sums)
        return np.array([_of_states(m) if of_states else _of_modes(m) for m in each])

    return all_lags(np.ones(counts.shape[1])), np.array([all_lags(row) for row in counts])


def _of_modes(moments: Moments) -> np.ndarray:
    """Return the autocorrelation 1 - L_kk/C_kk of every mode."""
    return 1 - np.diagonal(moments.mean_energy()) / np.diagonal(moments.covariance())


def _of_states(moments: Moments) -> np.ndarray:
    """Return 1 - C⁻¹L: memberships are not centred, because the constant is one of their combinations."""
    energy = moments.mean_energy()
    return np.eye(len(energy)) - np.linalg.solve(moments.covariance(center=False), energy)


def _powers(propagator: np.ndarray, number: np.ndarray) -> np.ndarray:
    if propagator.ndim == 1:
        return propagator ** number[:, None]
    return np.array([np.linalg.matrix_power(propagator, int(s)) for s in number])
