"""Sums of exponentials Σ_j b_j e^{w_j t} + c along one trajectory, by variable projection."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import least_squares as minimise

from kdmaps.propagation.candidates import Candidate, mean_squared, tested_rows
from kdmaps.propagation.dictionary import Dictionary
from kdmaps.propagation.frames import Frames
from kdmaps.propagation.regression import instrumental, least_squares, sums_of

#: Numbers of exponentials that are tried.
NUMBERS = (2, 4, 6, 8)
#: Coordinates that are fitted, per exponential, and rows for each coordinate that determines the amplitudes.
COORDINATES_PER_EXPONENT, ROWS_PER_COORDINATE = 2, 6
#: Steps of the minimisation.
STEPS = 60
#: Most decay or growth along the trajectory, as an exponent; more cannot be seen.
MOST_DECAY = 100.0
#: Decay per lag from which the minimisation starts, at most.
FASTEST_START = 0.05


@dataclass(frozen=True, eq=False)
class Exponentials:
    """A sum of exponentials, and the functions of the coordinates that stand for each of them."""

    exponents: np.ndarray  #: w, (s,): complex, per lag.
    modes: np.ndarray  #: (s, m): of the coordinates.
    mean: np.ndarray  #: c, (m,).
    functions: np.ndarray  #: (1 + k, s): coefficients of 1, z_1, …, z_k.

    def readout(self, steps: float) -> np.ndarray:
        """Return the coefficients of forecasts of the coordinates after so many lags; (1 + k, m)."""
        forecast = ((self.functions * np.exp(steps * self.exponents)) @ self.modes).real
        forecast[0] += self.mean
        return forecast


def exponential_candidates(frames: Frames) -> list[Candidate]:
    """Return sums of 2, 4, … exponentials, if the frames are one trajectory."""
    if frames.owner[-1] > 0 or frames.lag > 1:
        return []
    found = []
    for n in [n for n in NUMBERS if n <= frames.n_coordinates]:
        candidate = _candidate(frames, n)
        if candidate is not None:
            found.append(candidate)
    return found


def _candidate(frames: Frames, n: int) -> Candidate | None:
    truth = frames.values @ frames.targets
    errors = np.full((frames.n_blocks, len(frames.steps)), np.nan)
    for block in range(frames.n_blocks):
        rows = frames.starts[frames.block[frames.starts] != block]
        model = fit_exponentials(frames, rows, n)
        if model is None:
            return None
        k, m = len(model.functions) - 1, model.modes.shape[1]
        for j, steps in enumerate(frames.steps):
            tested = tested_rows(frames, block, steps)
            functions = np.column_stack([np.ones(len(tested)), frames.values[tested, :k]])
            forecast = functions @ model.readout(steps) @ frames.targets[:m]
            errors[block, j] = mean_squared(forecast - truth[tested + steps])
    model = fit_exponentials(frames, frames.starts, n)
    if model is None:
        return None
    dictionary = Dictionary(len(model.functions) - 1)
    return Candidate("exponentials", dictionary, errors / frames.variance, exponents=model.exponents)


def fit_exponentials(frames: Frames, rows: np.ndarray, n: int, start: np.ndarray | None = None) -> Exponentials | None:
    """Fit a sum of n exponentials to some rows, from the rates of a regression, or from a given `start`."""
    starts = [start] if start is not None else _starts(frames, rows, n)
    m = min(frames.n_coordinates, COORDINATES_PER_EXPONENT * n)
    centre = rows.mean()
    times = rows - centre
    Z = frames.values[rows, :m]
    best: tuple[float, np.ndarray] | None = None
    for exponents in starts:
        solution = _minimised(Z, times, exponents)
        if solution is not None and (best is None or solution[0] < best[0]):
            best = solution
    if best is None:
        return None
    exponents = best[1]
    waves = np.exp(times[:, None] * exponents)
    design = np.column_stack([waves, np.ones(len(times))])
    amplitudes = np.linalg.lstsq(design, Z.astype(complex), rcond=None)[0]
    k = min(frames.n_coordinates, max(1, len(rows) // ROWS_PER_COORDINATE))
    coordinates = np.column_stack([np.ones(len(rows)), frames.values[rows, :k]])
    functions = np.linalg.lstsq(coordinates, waves, rcond=1e-10)[0]
    return Exponentials(exponents, amplitudes[:n], amplitudes[n].real, functions)


def _starts(frames: Frames, rows: np.ndarray, n: int) -> list[np.ndarray]:
    """Return the exponents of regressions in n coordinates, with and without instruments."""
    dictionary = Dictionary(n)
    operators = [
        least_squares(sums_of(dictionary, frames, rows)),
        instrumental(dictionary, frames, rows, frames.n_delays),
    ]
    found = []
    for K in operators:
        if K is None:
            continue
        with np.errstate(divide="ignore"):
            exponents = np.log(np.linalg.eigvals(K[1:, 1:]).astype(complex) + 1e-12)
        found.append(np.clip(exponents.real, -FASTEST_START, 0) + 1j * exponents.imag)
    return found


def _minimised(Z: np.ndarray, times: np.ndarray, start: np.ndarray) -> tuple[float, np.ndarray] | None:
    """Return the residual and the exponents of a fit of Z; None if it fails."""
    n = len(start)
    fastest = MOST_DECAY / np.ptp(times)

    def projected(parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        exponents = np.clip(parameters[:n], -fastest, fastest) + 1j * parameters[n:]
        waves = np.exp(times[:, None] * exponents)
        design = np.column_stack([waves, np.ones(len(times))])
        frame, triangle = np.linalg.qr(design)
        overlaps = frame.conj().T @ Z
        amplitudes = np.linalg.lstsq(triangle, overlaps, rcond=1e-13)[0]
        return design, frame, amplitudes, Z - frame @ overlaps

    def residuals(parameters: np.ndarray) -> np.ndarray:
        return _stacked(projected(parameters)[3])

    def slopes(parameters: np.ndarray) -> np.ndarray:
        """Return derivatives by Kaufman's approximation, for fixed amplitudes."""
        design, frame, amplitudes, _ = projected(parameters)
        moved = design[:, :n] * times[:, None]
        moved = moved - frame @ (frame.conj().T @ moved)
        columns: list[Any] = [-np.outer(moved[:, j], amplitudes[j]) for j in range(n)]
        return np.column_stack([_stacked(turn * column) for turn in (1, 1j) for column in columns])

    initial = np.concatenate([start.real, start.imag])
    solution = minimise(residuals, initial, jac=slopes, x_scale="jac", max_nfev=STEPS)
    if not np.isfinite(solution.x).all():
        return None
    decays = np.clip(solution.x[:n], -fastest, fastest)
    return float(solution.cost), decays + 1j * solution.x[n:]


def _stacked(values: np.ndarray) -> np.ndarray:
    return np.concatenate([values.real.ravel(), values.imag.ravel()])
