"""Koopman spectra of systems without noise in their dynamics, in the order of their share of the coordinates."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from kdmaps.checks import Check, rules
from kdmaps.data.inputs import join_trajectories
from kdmaps.data.sources import gather
from kdmaps.dynamics._koopman_trust import KoopmanTrust
from kdmaps.estimators.transformer import checked_source
from kdmaps.propagation.pair_tests import PairTests, products
from kdmaps.propagation.propagator import Propagator
from kdmaps.spectrum.directed import Eigenfunctions
from kdmaps.spectrum.pencil import fewer_modes
from kdmaps.utils.types import SamplesLike

#: Bounds of residuals, as for noisy systems.
RESIDUALS = (0.05, 0.25)


@dataclass(frozen=True, eq=False, repr=False)
class TrustWithoutNoise(KoopmanTrust):
    """The same tests of eigenfunctions of a deterministic system, against other dictionaries and the data's growth too.

    The error E|ψ(y) - λψ(x)|² of an eigenfunction is 0 here: `overfit` is this error relative to |λ|².
    """

    others: np.ndarray  #: (r,): largest relative change of ln λ in dictionaries that forecast nearly as well.
    growth: np.ndarray  #: (r,): |λ|^2k over the growth of the coordinates after k lags, about half of a trajectory.

    @property
    def ok(self) -> np.ndarray:
        """True for eigenfunctions that pass all tests; (r,)."""
        tests = super().ok
        return tests & (self.others <= rules.KOOPMAN_DICTIONARY.limit) & (self.growth <= rules.KOOPMAN_GROWTH.limit)

    @property
    def checks(self) -> list[Check]:
        """The checks of all systems, and those that only deterministic systems have."""
        growth = Check(rules.KOOPMAN_GROWTH, self.growth)
        return [*super().checks, growth, Check(rules.KOOPMAN_DICTIONARY, self.others)]


def trust_of(values: np.ndarray, tests: PairTests) -> TrustWithoutNoise:
    """Return the tests of eigenpairs of a propagator as those of `koopman`."""
    limits = np.clip(2 * np.sqrt(tests.steps / max(tests.n_tested, 1)), *RESIDUALS)
    shared = (values, tests.held_out, tests.agreement, tests.overfit, tests.residuals, tests.steps, limits)
    return TrustWithoutNoise(*shared, tests.others, tests.growth)


def intervals_of(values: np.ndarray, tests: PairTests, duration: float, confidence: float) -> dict[str, Any]:
    """Return intervals of the rates by a jackknife over the blocks, and its eigenvalues; nothing if a block failed."""
    without_block = tests.without_block
    n = len(without_block)
    if n < 2 or not np.isfinite(without_block).all() or not without_block.all():
        return {}
    rates = np.log(values) / duration
    changes = np.log(without_block / values) / duration
    width = stats.t.ppf((1 + confidence) / 2, n - 1) * np.sqrt((n - 1) / n)
    parts = []
    for part in (changes.real, changes.imag):
        parts.append(width * np.sqrt(np.sum((part - part.mean(axis=0)) ** 2, axis=0)))
    half = parts[0] + 1j * parts[1]
    return {"samples": without_block, "intervals": np.column_stack([rates - half, rates + half])}


def spectrum_of(propagator: Propagator) -> tuple[Eigenfunctions, list[str], list[Check]]:
    """Return the eigenfunctions, which of them are products of others, and checks of what was found."""
    r = propagator.n_pairs
    values = propagator.pairs.spectrum.values[:r]
    shares = propagator.pairs.shares[:r]
    found = [fewer_modes(min(r, propagator.asked), propagator.asked), Check(rules.KOOPMAN_SHARE, shares)]
    # Products of the covariance with its inverse are exact to its condition, which is small for different functions.
    left = np.linalg.pinv(propagator.covariance, hermitian=True)
    return Eigenfunctions(values, np.eye(r, dtype=complex), left), products(values, shares), found


def evaluate_eigenfunctions(model: Any, X: SamplesLike) -> tuple[np.ndarray, list[int] | None]:
    """Return eigenfunctions at the rows of X, and the lengths of its trajectories."""
    X, _, lengths = join_trajectories(X)
    source = checked_source(model, X)
    model._warn_of_extrapolation(source)
    return model.propagator_.eigenfunctions(np.asarray(gather(source), dtype=np.float64)), lengths
