"""Clock factors: by how much the energy of a mode has to be multiplied to be its rate in real time.

A mode φ, found from frames without a clock, has the energy e = E[∇φᵀ a ∇φ]. Along bursts b, two numbers per estimator
add up: its decay D_b and its energy A_b. Their ratio c = Σ_b D_b / Σ_b A_b is the clock factor. Most of the noise
cancels in it, because a burst that is steep has a large D_b and a large A_b.

R_L: D_b = H mean_t |φ_{t+L} - φ_t|²/(2 L dt),                          A_b = H mean_t g(x_t),
G_{d,t}: D_b = H (φ_d - φ_0)(φ_{d+t} - (φ_0 + φ_d)/2)/(d dt),          A_b = ω_0 g(x_0),

with g = ∇φᵀ a ∇φ and weights ω = (stationary law)/(law of the starts). R_L is for overdamped diffusions, G_{d,t} for
any memory shorter than t. H = 2 ω_0 ω_S/(ω_0 + ω_S), of both ends of a path, is exact for symmetric functions of the
paths of a reversible system; the weight of the start alone is ruined by rare paths that leave a well.
"""

from dataclasses import dataclass

import numpy as np

from kdmaps.clocks.runs import Runs

#: Frames between the times at which energies are evaluated along a burst.
EVERY = 5
#: Lags of the overdamped estimators, in frames.
SHORT_LAGS = (1, 5)
#: First lag and delay of the estimators for systems with memory, in frames.
DELAYS = ((5, 5), (5, 10), (10, 10), (10, 30))
#: Bursts need so many frames, for the estimators that decide whether there is memory.
MIN_FRAMES = 21
#: Estimators that the shortest lag is compared with, and the difference, in standard errors, that shows memory.
COMPARED, MEMORY = ("R5", "G5,10", "G10,10"), 3.0
#: Estimators with a delay agree if they differ by at most so many standard errors.
AGREEMENT = 2.0
#: A delayed estimator whose relative error is larger shows no decay.
LARGEST_ERROR = 0.5


@dataclass(frozen=True, eq=False)
class BurstSums:
    """Decay and energy of r columns along each burst, by k estimators; sums of several bursts add up."""

    names: tuple[str, ...]  #: (k,)
    decays: np.ndarray  #: (k, n_bursts, r): D_b.
    energies: np.ndarray  #: (k, n_bursts, r): A_b.

    def take(self, bursts: np.ndarray) -> "BurstSums":
        """Return the sums of some bursts, which may repeat."""
        return BurstSums(self.names, self.decays[:, bursts], self.energies[:, bursts])


def burst_sums(runs: Runs, values: np.ndarray, densities: np.ndarray, weights: np.ndarray) -> BurstSums:
    """Sum along bursts the values φ (n_frames, r), the energy densities g (n_frames, r) and the weights ω (n_frames,).

    Densities are used at every fifth frame of a burst, weights at its frames 0, 5 and 10 and at its last frame.
    """
    shortest = int(runs.lengths.min())
    delays = [(first, delay) for first, delay in DELAYS if first + delay < shortest]
    names = [f"R{lag}" for lag in SHORT_LAGS] + [f"G{first},{delay}" for first, delay in delays]

    def terms(numbers: np.ndarray, _: np.ndarray) -> np.ndarray:
        phi = values[numbers]
        whole = harmonic_mean(weights[numbers[0]], weights[numbers[-1]])
        along = whole[:, None] * densities[numbers[::EVERY]].mean(axis=0)
        at_start = weights[numbers[0]][:, None] * densities[numbers[0]]
        pairs = []
        for lag in SHORT_LAGS:
            squares = np.mean((phi[lag:] - phi[:-lag]) ** 2, axis=0)
            pairs.append((whole[:, None] * squares / (2 * lag * runs.time_step), along))
        for first, delay in delays:
            both = harmonic_mean(weights[numbers[0]], weights[numbers[first]])
            change = phi[first] - phi[0]
            later = phi[first + delay] - (phi[0] + phi[first]) / 2
            pairs.append((both[:, None] * change * later / (first * runs.time_step), at_start))
        return np.moveaxis(np.array(pairs), 2, 0)  # (n_runs, k, 2, r)

    sums = runs.by_length(terms)
    return BurstSums(tuple(names), np.swapaxes(sums[:, :, 0], 0, 1), np.swapaxes(sums[:, :, 1], 0, 1))


def harmonic_mean(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return 2 a b/(a + b), and 0 where either is 0."""
    total = first + second
    return np.divide(2 * first * second, total, out=np.zeros_like(total), where=total > 0)


@dataclass(frozen=True, eq=False)
class Factors:
    """Clock factors by k estimators for r columns, and the influence of every burst on them."""

    names: tuple[str, ...]
    values: np.ndarray  #: (k, r): c.
    influence: np.ndarray  #: (k, n_bursts, r): change of c by each burst, (D_b - c A_b)/ΣA.

    @classmethod
    def of(cls, sums: BurstSums) -> "Factors":
        """Return the ratios of sums over bursts."""
        total = np.maximum(sums.energies.sum(axis=1), np.finfo(float).tiny)
        values = sums.decays.sum(axis=1) / total
        influence = (sums.decays - values[:, None] * sums.energies) / total[:, None]
        return cls(sums.names, values, influence)

    @property
    def errors(self) -> np.ndarray:
        """Standard errors of log c, (k, r); infinite where c is not positive."""
        spread = np.linalg.norm(self.influence, axis=1)
        return np.divide(spread, self.values, out=np.full_like(spread, np.inf), where=self.values > 0)

    def difference(self, first: str, second: str) -> np.ndarray:
        """Return the difference of two estimators in its standard errors, (r,)."""
        one, other = self.names.index(first), self.names.index(second)
        spread = np.linalg.norm(self.influence[one] - self.influence[other], axis=0)
        return (self.values[one] - self.values[other]) / np.maximum(spread, np.finfo(float).tiny)

    @property
    def memory(self) -> np.ndarray:
        """Largest difference of the shortest lag from the others, in standard errors, (r,)."""
        differences = [np.abs(self.difference("R1", name)) for name in COMPARED]
        return np.max(differences, axis=0)

    @property
    def delayed(self) -> tuple[str, ...]:
        """Estimators for systems with memory, shortest first."""
        return tuple(name for name in self.names if name.startswith("G"))

    def choice(self) -> np.ndarray:
        """Return the number of the estimator for each column, (r,).

        The shortest lag, unless it differs from the others: then the first delayed estimator that agrees with all
        longer ones.
        """
        memory = self.memory > MEMORY
        names = [self._delayed_choice(column) if shown else "R1" for column, shown in enumerate(memory)]
        return np.array([self.names.index(name) for name in names])

    def _delayed_choice(self, column: int) -> str:
        """Return the first delayed estimator that shows a decay and agrees with all longer ones."""
        errors = {name: self.errors[self.names.index(name), column] for name in self.delayed}
        for place, name in enumerate(self.delayed):
            longer = self.delayed[place + 1 :]
            agrees = all(abs(self.difference(name, other)[column]) <= AGREEMENT for other in longer)
            if agrees and errors[name] < LARGEST_ERROR:
                return name
        return min(errors, key=lambda name: errors[name])

    @property
    def disagreement(self) -> np.ndarray:
        """Difference of the two longest delayed estimators, in standard errors, (r,)."""
        return np.abs(self.difference(*self.delayed[-2:]))
