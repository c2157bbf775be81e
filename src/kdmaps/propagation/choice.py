"""The choice among candidates, and the gate that leaves systems with noise to the search of kernels."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from kdmaps.propagation.candidates import Candidate, affine_candidates, instrumental_candidates, kernel_candidates
from kdmaps.propagation.exponentials import exponential_candidates
from kdmaps.propagation.frames import Frames

#: Systems whose forecasts after one lag have smaller errors, relative to the change, are deterministic. Measured: at
#: most 0.075 without noise in the dynamics, 0.16 for a rotation with 1 % of noise, at least 0.41 with noise.
DETERMINISTIC = 0.1
#: Sums of exponentials whose scores differ by less are equally good: a weak one changes scores of noisy frames little.
INDIFFERENT_EXPONENTIALS = 0.01
#: Sums of exponentials may be worse than the best candidate by so many standard errors. With noise in the dynamics,
#: which diffuses phases, they are worse by 2.5 or more.
MOST_BEHIND = 1.0
#: Scores of sums of exponentials must be below this one: forecasts of white noise by its mean have a score of 0.
WORST_SCORE = -0.05
#: With a better score, frames hold no noise that a sum of exponentials could be better at.
EXACT = -4.0


class Law(Enum):
    """What the frames show about the dynamics."""

    DETERMINISTIC = "deterministic"
    EXPONENTIALS = "sum of exponentials with noise"
    STOCHASTIC = "stochastic"


@dataclass(frozen=True, eq=False)
class Choice:
    """The best candidate for spectra and forecasts, and the others."""

    law: Law
    best: Candidate
    unpredictable: float  #: Held-out error after one lag relative to the change in one lag, of the best candidate.
    candidates: tuple[Candidate, ...]

    @property
    def kernels(self) -> list[Candidate]:
        """Candidates with a kernel."""
        return [candidate for candidate in self.candidates if candidate.name == "kernel"]


def choose(frames: Frames, seed: int) -> Choice:
    """Compare all candidates on the frames."""
    affine = affine_candidates(frames)
    kernels = kernel_candidates(frames, seed)
    candidates = [*affine, *instrumental_candidates(frames), *kernels]
    best = _best(candidates)
    unpredictable = best.error_after_one_lag() * np.sqrt(frames.variance) / max(frames.change, np.finfo(float).tiny)
    exponentials = exponential_candidates(frames) if best.score > EXACT else []
    candidates += exponentials
    if exponentials and _best(exponentials).score < WORST_SCORE and _best(exponentials).lead(best) > -MOST_BEHIND:
        lowest = _best(exponentials).score + INDIFFERENT_EXPONENTIALS
        chosen = min((c for c in exponentials if c.score <= lowest), key=lambda c: c.n_functions)
        return Choice(Law.EXPONENTIALS, chosen, unpredictable, tuple(candidates))
    if unpredictable < DETERMINISTIC:
        chosen = _simplest(affine, best) or _best(kernels or candidates)
        return Choice(Law.DETERMINISTIC, chosen, unpredictable, tuple(candidates))
    return Choice(Law.STOCHASTIC, best, unpredictable, tuple(candidates))


def _best(candidates: Iterable[Candidate]) -> Candidate:
    return min(candidates, key=lambda candidate: candidate.score)


def _simplest(candidates: Iterable[Candidate], best: Candidate) -> Candidate | None:
    """Return the candidate with the fewest functions that is as good as the best one, if any."""
    good = [candidate for candidate in candidates if candidate.as_good_as(best)]
    return min(good, key=lambda candidate: (candidate.n_functions, candidate.score), default=None)
