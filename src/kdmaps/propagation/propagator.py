"""The propagator of a model: spectrum, forecasts and their errors, without any frames."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.propagation.choice import Law, choose
from kdmaps.propagation.dictionary import Dictionary
from kdmaps.propagation.forecaster import Forecaster, best_forecaster, error_covariances, make_forecaster
from kdmaps.propagation.frames import Coordinates, Frames
from kdmaps.propagation.pair_tests import PairTests, tests_of_pairs
from kdmaps.propagation.pairs import LeadingPairs, leading_pairs, spectrum_of

#: Pairs that are kept for times between lags.
KEPT_PAIRS = 24
#: Fewest pairs of frames that anything is learned from.
FEWEST_PAIRS = 4
#: Times that differ from a whole number of lags by less are whole.
WHOLE = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Propagator:
    """Forecasts of all columns of X, and eigenpairs of the Koopman operator in the order of their share of them.

    `m.propagator_` of a model that is fitted with `reversible=False`, for arrays in memory.
    """

    law: Law  #: Whether the dynamics are deterministic, exponentials in noise, or stochastic.
    method: str  #: Candidate chosen for the spectrum: "affine", "instrumental", "kernel" or "exponentials".
    unpredictable: float  #: Held-out error of forecasts after one lag, relative to the change in one lag.
    asked: int  #: Number of eigenfunctions asked for.
    n_frame_pairs: int  #: Number of pairs of frames that it was fitted to.
    coordinates: Coordinates
    dictionary: Dictionary  #: Of the eigenfunctions.
    pairs: LeadingPairs  #: At least as many as were asked for, if there are so many.
    tests: PairTests  #: Of the first pairs.
    covariance: np.ndarray  #: (r, r): of the first eigenfunctions, E[ψ̄_i ψ_j] about their means.
    forecaster: Forecaster
    steps: np.ndarray  #: Ascending numbers of lags after which forecasts were tested.
    errors: np.ndarray  #: (n_steps, k, k): second moments of these errors, in principal coordinates.
    rest: np.ndarray  #: (d,): variance of each column outside of the first k principal coordinates.

    @property
    def n_pairs(self) -> int:
        """Number of eigenfunctions that were asked for, and one more if this would cut a conjugate pair."""
        return len(self.tests.agreement)

    @property
    def is_deterministic(self) -> bool:
        """True unless the dynamics are stochastic."""
        return self.law is not Law.STOCHASTIC

    def eigenfunctions(self, X: np.ndarray) -> np.ndarray:
        """Evaluate the first eigenfunctions; (n, r) complex."""
        features = self.dictionary(self.coordinates.at(X))
        return features @ self.pairs.spectrum.functions[:, : self.n_pairs]

    @property
    def modes(self) -> np.ndarray:
        """The dynamic modes, coefficients of the first eigenfunctions in the columns of X; (r, d) complex."""
        modes = self.pairs.modes[: self.n_pairs]
        k = modes.shape[1]
        return self.coordinates.scale * (modes @ self.coordinates.directions[:, :k].T)

    def reconstruct(self, X: np.ndarray, lags: ArrayLike) -> np.ndarray:
        """Return c + Σ_j v_j λ_j^t ψ_j(x) of the first eigenfunctions after times t in lags; (n_times, n, d)."""
        psi = self.eigenfunctions(X)
        values = self.pairs.spectrum.values[: self.n_pairs]
        modes = self.pairs.modes[: self.n_pairs]
        later = [(psi * values**t) @ modes for t in np.atleast_1d(lags)]
        return self.coordinates.back(np.real(later) + self.pairs.mean)

    def forecast(self, X: np.ndarray, lags: np.ndarray) -> np.ndarray:
        """Return forecasts of all columns after times in lags, at least 0; (n_times, n, d)."""
        Z = self.coordinates.at(X)
        return np.stack([self.coordinates.back(self._after(Z, float(t))) for t in lags])

    def _after(self, Z: np.ndarray, lags: float) -> np.ndarray:
        """Return coordinates after a time; between whole numbers of lags, the eigenpairs interpolate."""
        whole = int(np.floor(lags + WHOLE))
        later = self.forecaster.after(Z, whole) if whole else Z
        part = lags - whole
        if part <= WHOLE:
            return later
        state = np.zeros((len(later), self.coordinates.directions.shape[1]))
        state[:, : later.shape[1]] = later
        spectrum = self.pairs.spectrum
        psi = self.dictionary(state) @ spectrum.functions
        state[:, : self.pairs.modes.shape[1]] += ((psi * (spectrum.values**part - 1)) @ self.pairs.modes).real
        return state

    def standard_errors(self, lags: np.ndarray) -> np.ndarray:
        """Return root mean square errors of each column on held-out frames, noise included; (n_times, d).

        Between tested times variances are interpolated; after the last one they are those of the last.
        """
        k = self.errors.shape[1]
        directions = self.coordinates.directions[:, :k]
        at_steps = [np.einsum("dk,kl,dl->d", directions, moments, directions, optimize=True) for moments in self.errors]
        variances = self.coordinates.scale**2 * np.array(at_steps) + self.rest
        steps = np.concatenate([[0.0], self.steps])
        variances = np.vstack([np.zeros(len(self.rest)), np.maximum(variances, 0)])
        place = np.clip(np.searchsorted(steps, lags, side="right") - 1, 0, len(steps) - 2)
        share = np.clip((lags - steps[place]) / (steps[place + 1] - steps[place]), 0, 1)[:, None]
        return np.sqrt((1 - share) * variances[place] + share * variances[place + 1])


def learn_propagator(
    X: np.ndarray, groups: Any, lag: int, n_functions: int, weight: np.ndarray | None = None, seed: int = 0
) -> Propagator | None:
    """Choose and fit a propagator; None if there are too few pairs of different frames."""
    frames = Frames.of(X, groups, lag, weight)
    followed = len(frames.within(frames.starts, 2)) > 0  # pairs alone show no dynamics over several lags
    if len(frames.starts) < FEWEST_PAIRS or not followed or not frames.n_coordinates or not frames.change > 0:
        return None
    compared = frames.thinned()
    choice = choose(compared, seed)
    candidate, lifted = best_forecaster(choice, compared)
    spectrum = spectrum_of(choice.best, frames, frames.starts)
    forecaster = make_forecaster(candidate, frames, frames.starts, lifted)
    if spectrum is None or forecaster is None:
        return None
    pairs = leading_pairs(spectrum, choice.best, compared, max(n_functions, KEPT_PAIRS))
    first = _first_pairs(pairs.spectrum.values, n_functions)
    tests = tests_of_pairs(pairs.spectrum.take(range(first)), choice, compared)
    features = choice.best.dictionary(compared.values[compared.starts])
    covariance = np.atleast_2d(np.cov((features @ pairs.spectrum.functions[:, :first]).T, ddof=0)).conj()
    errors = error_covariances(candidate, lifted, compared)
    k = errors.shape[1]
    kept = max(k, choice.best.dictionary.n_coordinates)
    pairs = replace(pairs, modes=pairs.modes[:, :kept], mean=pairs.mean[:kept])
    coordinates = frames.coordinates
    unexplained = coordinates.directions[:, k:] ** 2 @ frames.values[:, k:].var(axis=0)
    return Propagator(
        law=choice.law,
        method=choice.best.name,
        unpredictable=choice.unpredictable,
        asked=n_functions,
        n_frame_pairs=len(frames.starts),
        coordinates=coordinates.first(kept),
        dictionary=choice.best.dictionary,
        pairs=pairs,
        tests=tests,
        covariance=covariance,
        forecaster=forecaster,
        steps=np.array(compared.steps),
        errors=errors,
        rest=coordinates.scale**2 * unexplained,
    )


def _first_pairs(values: np.ndarray, n: int) -> int:
    """Return n, or one more if a conjugate pair would be cut, or as many as there are."""
    n = min(n, len(values))
    cut = 0 < n < len(values) and values[n - 1].imag > 0
    return n + int(cut)
