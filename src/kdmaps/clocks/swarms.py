"""Weights of the frames of many short runs, without any other simulation.

Runs of a reversible diffusion whose frames have the law q are reweighted to the stationary law by w = e^{b·χ}. With
functions χ, the generator 𝓛 and the law w q, an integration by parts gives E_q[∇χ a ∇χᵀ] b = E_q[𝓛χ]. Over pairs
(x, y) of frames a time τ apart these are E_q[(χ(y) - χ(x))(χ(y) - χ(x))ᵀ]/2τ and E_q[χ(y) - χ(x)]/τ: one ridge solve,
and the weights are positive. Kernel and ridge minimise bᵀEb/2 - bᵀd on held-out runs.
"""

from dataclasses import dataclass

import numpy as np
from scipy.cluster.vq import kmeans2
from scipy.linalg import solve
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from kdmaps.bases import Basis, BasisSpec
from kdmaps.checks import Check, rules
from kdmaps.clocks.runs import Runs
from kdmaps.clocks.tensor import whitening_of
from kdmaps.data.distances import resolve_bandwidth
from kdmaps.kernels import Gaussian

#: Features, bandwidths in median distances, and ridges relative to the mean energy of a feature.
FEATURES, WIDTHS, RIDGES = 150, (0.25, 0.4, 0.6, 1.0, 1.6), tuple(10.0 ** np.arange(-6, 1))
#: Folds of whole runs; rows per block of sums.
FOLDS, BLOCK = 5, 4_096
#: Cells that show whether runs connect all regions, and a cell of fewer frames shows nothing.
CELLS, FEWEST = 40, 10
#: Errors are those at this ridge or a smaller one, of cells with this share of the frames or more.
LEAST_RIDGE, LEAST_SHARE = 1e-2, 0.01
#: Frames by which the median distance and the cells are found.
MOST_FRAMES = 20_000


@dataclass(frozen=True, eq=False)
class SwarmWeights:
    """Weights of all frames of a swarm of runs."""

    weights: list[np.ndarray]  #: One array for each run; their mean over all frames is 1.
    bandwidth: float  #: Chosen bandwidth, in median distances.
    ridge: float  #: Chosen ridge, relative to the mean energy of a feature.
    error: float  #: Largest standard error of log w between two regions of the frames.
    checks: tuple[Check, ...]  #: Checks of the connection of all regions and of the errors of the weights.

    @property
    def joined(self) -> np.ndarray:
        """The weights of all frames, one run after the other, for `sample_weight`."""
        return np.concatenate(self.weights)

    def __repr__(self) -> str:
        failed = ", ".join(check.code for check in self.checks if not check.passed)
        return f"SwarmWeights({len(self.weights)} runs, error of log w {self.error:.2f}, failed: {failed or 'none'})"


@dataclass(frozen=True, eq=False)
class _LogWeights:
    """log w = coefficients · χ, and what it was found from."""

    basis: Basis
    points: np.ndarray  # (n_frames, d): whitened frames
    coefficients: np.ndarray
    width: float
    ridge: float
    energy: np.ndarray  # (p, p): sum over pairs

    def features(self, rows: np.ndarray) -> np.ndarray:
        """Return χ at some frames."""
        return self.basis.features(self.points[rows])


def swarm_of(runs: Runs, lag: int, seed: int) -> SwarmWeights:
    """Return the weights of all frames of runs."""
    found = _solved(runs, lag, seed)
    blocks = range(0, len(found.points), BLOCK)
    everything = np.arange(len(found.points))
    logs = np.concatenate([found.features(everything[i : i + BLOCK]) @ found.coefficients for i in blocks])
    weights = np.exp(logs - logs.max())
    weights /= weights.mean()
    label = _cells(found.points, seed)
    error = _error(found, runs, lag, label)
    checks = (
        Check(rules.SWARM_CONNECTED, _unconnected(runs, label)),
        Check(rules.SWARM_SPREADS, _spreading(runs, found.points)),
        Check(rules.SWARM_ERROR, error),
    )
    parts = np.split(weights, runs.first[1:])
    return SwarmWeights(parts, found.width, found.ridge, error, checks)


def _solved(runs: Runs, lag: int, seed: int) -> _LogWeights:
    """Solve for log w with the kernel and the ridge of the best held-out score."""
    points = runs.frames @ whitening_of(runs.displacements(lag)[1])
    begin = runs.pairs(lag)
    fold = runs.owner[begin] % min(FOLDS, len(runs))
    sample = _some(points)
    median = float(np.asarray(resolve_bandwidth("median", sample, None, seed)))
    best: _LogWeights | None = None
    smallest = np.inf
    for width in WIDTHS:
        basis = BasisSpec("fourier", FEATURES).make(Gaussian(width * median), sample, None, seed)
        energies, changes = _sums(basis, points, begin, lag, fold, lag * runs.time_step)
        for ridge in RIDGES:
            score, coefficients = _judged(energies, changes, ridge)
            if score < smallest:
                smallest = score
                best = _LogWeights(basis, points, coefficients, width, ridge, energies.sum(axis=0))
    assert best is not None
    return best


def _some(points: np.ndarray) -> np.ndarray:
    """Return evenly spaced rows, if there are many."""
    return points[:: max(1, len(points) // MOST_FRAMES)]


def _sums(
    basis: Basis, points: np.ndarray, begin: np.ndarray, lag: int, fold: np.ndarray, duration: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return Σ ΔχΔχᵀ/2τ, (n_folds, p, p), and Σ Δχ/τ, (n_folds, p)."""
    count = int(fold.max()) + 1
    energies = np.zeros((count, basis.n_features, basis.n_features))
    changes = np.zeros((count, basis.n_features))
    for number in range(count):
        chosen = begin[fold == number]
        for start in range(0, len(chosen), BLOCK):
            rows = chosen[start : start + BLOCK]
            change = basis.features(points[rows + lag]) - basis.features(points[rows])
            energies[number] += change.T @ change / (2 * duration)
            changes[number] += change.sum(axis=0) / duration
    return energies, changes


def _ridged(energy: np.ndarray, ridge: float) -> np.ndarray:
    """Add a ridge relative to the mean energy of a feature."""
    return energy + ridge * np.trace(energy) / len(energy) * np.eye(len(energy))


def _judged(energies: np.ndarray, changes: np.ndarray, ridge: float) -> tuple[float, np.ndarray]:
    """Return the held-out score, smaller is better, and the coefficients of all runs."""
    total = energies.sum(axis=0)
    change = changes.sum(axis=0)
    penalty = _ridged(total, ridge) - total
    score = 0.0
    for energy, own in zip(energies, changes, strict=True):
        coefficients = solve(total - energy + penalty, change - own, assume_a="pos")
        score += float(coefficients @ energy @ coefficients / 2 - coefficients @ own)
    return score, solve(total + penalty, change, assume_a="pos")


# --- checks -------------------------------------------------------------------------------------------------------
def _cells(points: np.ndarray, seed: int) -> np.ndarray:
    """Return the cell of each frame, by k-means."""
    sample = _some(points)
    centres = kmeans2(sample, min(CELLS, max(2, len(sample) // FEWEST)), minit="++", seed=seed)[0]
    squares = np.sum(centres**2, axis=1)
    blocks = range(0, len(points), BLOCK)
    return np.concatenate([np.argmin(squares - 2 * points[i : i + BLOCK] @ centres.T, axis=1) for i in blocks])


def _unconnected(runs: Runs, label: np.ndarray) -> float:
    """Return the share of the frames outside the largest set of cells among which runs go back and forth."""
    begin = runs.pairs(1)
    cells = int(label.max()) + 1
    graph = coo_array((np.ones(len(begin)), (label[begin], label[begin + 1])), shape=(cells, cells))
    component = connected_components(graph.tocsr(), connection="strong")[1]
    frames = np.bincount(component[label])
    return float(1 - frames.max() / frames.sum())


def _spreading(runs: Runs, points: np.ndarray) -> float:
    """Return the largest standard deviation of a column in the second halves of runs over that in the first."""
    place = np.arange(len(points)) - np.repeat(runs.first, runs.lengths)
    late = 2 * place >= np.repeat(runs.lengths, runs.lengths)
    return float(np.max(points[late].std(axis=0) / points[~late].std(axis=0)))


def _error(found: _LogWeights, runs: Runs, lag: int, label: np.ndarray) -> float:
    """Return the largest standard error of the mean of log w in one cell relative to another.

    By the influence of each run, (d_run - E_run b), at a ridge that does not hide directions without information.
    """
    begin = runs.pairs(lag)
    owner = runs.owner[begin]
    influence = np.zeros((len(runs), len(found.coefficients)))
    for start in range(0, len(begin), BLOCK):
        rows = begin[start : start + BLOCK]
        change = found.features(rows + lag) - found.features(rows)
        terms = change * (1 - change @ found.coefficients / 2)[:, None] / (lag * runs.time_step)
        np.add.at(influence, owner[start : start + BLOCK], terms)
    sensitivity = np.linalg.inv(_ridged(found.energy, min(found.ridge, LEAST_RIDGE)))
    covariance = sensitivity @ (influence.T @ influence) @ sensitivity
    counts = np.bincount(label)
    large = np.flatnonzero(counts > LEAST_SHARE * len(label))
    means = np.array([found.features(_some(np.flatnonzero(label == cell))).mean(axis=0) for cell in large])
    products = means @ covariance @ means.T
    variances = np.diagonal(products)
    return float(np.sqrt(np.max(variances[:, None] + variances - 2 * products)))
