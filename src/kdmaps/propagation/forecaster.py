"""Forecasts of the coordinates by the candidate that does best on held-out blocks, and their errors."""

from dataclasses import dataclass

import numpy as np

from kdmaps.propagation.candidates import INDIFFERENT, Candidate, fitted, mean_squared, powers, tested_rows
from kdmaps.propagation.choice import Choice, Law
from kdmaps.propagation.dictionary import Dictionary
from kdmaps.propagation.exponentials import fit_exponentials
from kdmaps.propagation.frames import Frames
from kdmaps.propagation.regression import sums_of

#: Coordinates that are lifted again stay within this multiple of their range.
RANGE = 3.0
#: Rows per block from which forecasts that lift again are tested.
TESTED = 300


@dataclass(frozen=True, eq=False)
class Forecaster:
    """Forecasts z(t + h lags) of the first k principal coordinates."""

    dictionary: Dictionary
    step: np.ndarray | None  #: K, (q, q): f(y)ᵀ ≈ f(x)ᵀK; None for exponentials.
    lifted: bool  #: Whether the functions are evaluated again at the forecast after each lag.
    limit: np.ndarray  #: (k,): largest coordinates that are lifted again.
    values: np.ndarray  #: (s,) complex: eigenvalues of exponentials.
    functions: np.ndarray  #: (q, s) complex.
    modes: np.ndarray  #: (s, k) complex.
    mean: np.ndarray  #: (k,).

    def after(self, Z: np.ndarray, steps: int) -> np.ndarray:
        """Return the coordinates after a whole number of lags; (n, k)."""
        features = self.dictionary(Z)
        if self.step is None:
            return ((features @ self.functions * self.values**steps) @ self.modes).real + self.mean
        k = self.dictionary.n_coordinates
        if not self.lifted:
            (w,) = powers(self.step, self.dictionary.readout(np.eye(k)), (steps,))
            return np.asarray(features @ w)
        Z = Z[:, :k]
        for _ in range(steps):
            Z = np.clip(self.dictionary(Z) @ self.step[:, 1 : 1 + k], -self.limit, self.limit)
        return Z


def make_forecaster(
    candidate: Candidate, frames: Frames, starts: np.ndarray, lifted: bool = False
) -> Forecaster | None:
    """Fit a candidate to the pairs that begin at these rows; None if it cannot be fitted to them."""
    dictionary = candidate.dictionary
    k = dictionary.n_coordinates
    limit = RANGE * np.abs(frames.values[:, :k]).max(axis=0)
    nothing = np.zeros(0, dtype=complex)
    empty = (nothing, nothing.reshape(dictionary.n_functions, 0), nothing.reshape(0, k), np.zeros(k))
    if candidate.exponents is None:
        K = fitted(candidate, frames, sums_of(dictionary, frames, starts), starts)
        return None if K is None else Forecaster(dictionary, K, lifted, limit, *empty)
    model = fit_exponentials(frames, starts, len(candidate.exponents), candidate.exponents)
    if model is None:
        return None
    dictionary = Dictionary(len(model.functions) - 1)
    return Forecaster(dictionary, None, False, limit, np.exp(model.exponents), model.functions, model.modes, model.mean)


def best_forecaster(choice: Choice, frames: Frames) -> tuple[Candidate, bool]:
    """Return the candidate with the best forecasts of held-out blocks, and whether it lifts again after each lag."""
    best = choice.best
    if choice.law is not Law.DETERMINISTIC or not choice.kernels:
        return best, False
    after_one_lag = min(choice.kernels, key=lambda candidate: candidate.error_after_one_lag())
    by_score = min(choice.kernels, key=lambda candidate: candidate.score)
    tried = [after_one_lag] if after_one_lag is by_score else [after_one_lag, by_score]
    scores = [_lifted_score(candidate, frames) for candidate in tried]
    place = int(np.argmin(scores))
    return (tried[place], True) if scores[place] < best.score - INDIFFERENT else (best, False)


def _lifted_score(candidate: Candidate, frames: Frames) -> float:
    """Return the score of forecasts that lift again after each lag."""
    errors = np.full((frames.n_blocks, len(frames.steps)), np.nan)
    for block in range(frames.n_blocks):
        starts = frames.starts[frames.block[frames.starts] != block]
        model = make_forecaster(candidate, frames, starts, lifted=True)
        if model is not None:
            errors[block] = [_error(model, frames, block, steps) for steps in frames.steps]
    scored = Candidate("lifted", candidate.dictionary, errors / frames.variance)
    return scored.score


def _thinned_rows(frames: Frames, block: int, steps: int) -> np.ndarray:
    rows = tested_rows(frames, block, steps)
    return rows[:: -(-len(rows) // TESTED)] if len(rows) else rows


def _error(model: Forecaster, frames: Frames, block: int, steps: int) -> float:
    """Return the mean squared error of the new columns in a block; NaN without rows."""
    rows = _thinned_rows(frames, block, steps)
    if not len(rows):
        return np.nan
    forecast = model.after(frames.values[rows], steps)
    truth = frames.values[rows + steps * frames.lag] @ frames.targets
    return mean_squared(forecast @ frames.targets[: forecast.shape[1]] - truth)


def error_covariances(candidate: Candidate, lifted: bool, frames: Frames) -> np.ndarray:
    """Return second moments of the errors of the first k coordinates on held-out blocks; (n_steps, k, k)."""
    k = candidate.dictionary.n_coordinates
    total = np.zeros((len(frames.steps), k, k))
    counts = np.zeros(len(frames.steps))
    for block in range(frames.n_blocks):
        starts = frames.starts[frames.block[frames.starts] != block]
        model = make_forecaster(candidate, frames, starts, lifted) if len(starts) else None
        if model is None:
            continue
        for j, steps in enumerate(frames.steps):
            rows = _thinned_rows(frames, block, steps)
            forecast = model.after(frames.values[rows], steps)
            m = min(forecast.shape[1], k)
            error = np.zeros((len(rows), k))
            error[:, :m] = forecast[:, :m] - frames.values[rows + steps * frames.lag, :m]
            total[j] += np.nan_to_num(error.T @ error, nan=1e6, posinf=1e6, neginf=-1e6)
            counts[j] += len(rows)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(counts[:, None, None] > 0, total / counts[:, None, None], np.nan)
