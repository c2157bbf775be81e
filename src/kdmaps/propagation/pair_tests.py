"""Tests of eigenpairs on held-out blocks, against other dictionaries, and against the growth of the coordinates."""

from dataclasses import dataclass

import numpy as np

from kdmaps.propagation.candidates import Candidate, tested_rows
from kdmaps.propagation.choice import Choice
from kdmaps.propagation.frames import Frames
from kdmaps.propagation.pairs import ROWS, Spectrum, spectrum_of

#: Candidates with scores worse by at most this, in powers of ten, are asked for their eigenvalues, too.
NEARLY_AS_GOOD = 0.5
#: Other dictionaries that are compared.
MOST_OTHERS = 2
#: Products of eigenvalues that differ from another eigenvalue λ by less than this part of |λ - 1|.
PRODUCT_TOLERANCE = 0.02
#: Longest time, in lags, over which growth is measured.
LONGEST = 50


@dataclass(frozen=True, eq=False)
class PairTests:
    """Numbers about each of r eigenpairs, most of them from fits without a block of the frames."""

    without_block: np.ndarray  #: (F, r) complex: eigenvalues of the fits without each block; NaN where one failed.
    held_out: np.ndarray  #: (r,) complex: E[ψ̄(x)ψ(y)]/E|ψ(x)|² on held-out frames.
    agreement: np.ndarray  #: (r,): mean squared cosine between ψ and its counterparts in these fits.
    overfit: np.ndarray  #: (r,): held-out E|ψ(y) - λψ(x)|²/(|λ|²E|ψ(x)|²).
    residuals: np.ndarray  #: (r,): |ρ/λ^k - 1| for ρ = E[ψ̄(x_t)ψ(x_{t+k})]/E|ψ(x_t)|² on held-out frames.
    steps: np.ndarray  #: (r,): k.
    n_tested: int  #: Held-out pairs.
    others: np.ndarray  #: (r,): largest relative change of ln λ in dictionaries that forecast nearly as well.
    growth: np.ndarray  #: (r,): |λ|^2k over the growth of the coordinates in k lags, half of a trajectory.


def tests_of_pairs(pairs: Spectrum, choice: Choice, frames: Frames) -> PairTests:
    """Test eigenpairs of the best candidate of a choice."""
    rows = np.linspace(0, len(frames.owner) - 1, min(len(frames.owner), ROWS)).astype(int)
    reference = choice.best.dictionary(frames.values[rows]) @ pairs.functions
    steps = _steps(pairs.values, frames.steps[-1])
    r = len(pairs.values)
    without_block = np.full((frames.n_blocks, r), np.nan, dtype=complex)
    cosines = np.zeros((frames.n_blocks, r))
    sums = np.zeros((4, r), dtype=complex)
    n_tested = 0
    for block in range(frames.n_blocks):
        starts = frames.starts[frames.block[frames.starts] != block]
        other = spectrum_of(choice.best, frames, starts) if len(starts) else None
        if other is None:
            continue
        chosen, cosines[block] = _matched(reference, choice.best, frames, rows, other)
        fold = other.take(chosen)
        without_block[block] = fold.values
        tested = tested_rows(frames, block, 1)
        n_tested += len(tested)
        sums += _sums(fold, choice.best, frames, block, steps)
    size, cross, error, ratio = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        residuals = np.abs(ratio) / size.real
        overfit = error.real / size.real
        held_out = cross / size.real
    if choice.best.exponents is not None:  # functions of noisy frames are noisy, exponents are not
        residuals = np.nanmean(np.abs((without_block / pairs.values) ** steps - 1), axis=0)
        overfit = np.zeros(r)
    numbers = (held_out, cosines.mean(axis=0), overfit, residuals, steps, n_tested)
    others = _of_others(pairs, reference, choice, frames, rows)
    return PairTests(without_block, *numbers, others, _growth(pairs.values, frames))


def _steps(values: np.ndarray, longest: int) -> np.ndarray:
    """Return the numbers of lags after which about half of |ψ|² is left, or as many as are tested."""
    with np.errstate(divide="ignore"):
        steps = np.log(0.5) / (2 * np.log(np.minimum(np.abs(values), 1 - 1e-12)))
    return np.clip(np.round(steps), 1, longest).astype(int)


def _matched(
    reference: np.ndarray, candidate: Candidate, frames: Frames, rows: np.ndarray, other: Spectrum
) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenfunctions of another spectrum that are most like the reference, and squared cosines."""
    psi = candidate.dictionary(frames.values[rows]) @ other.functions
    squares = _squared_cosines(reference, psi)
    chosen = squares.argmax(axis=1)
    return chosen, squares[np.arange(len(chosen)), chosen]


def _squared_cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return squared correlations of functions; 0 where one is constant."""
    units = []
    for values in (first, second):
        centred = values - values.mean(axis=0)
        lengths = np.linalg.norm(centred, axis=0)
        proper = lengths > 1e-9 * np.linalg.norm(values, axis=0)
        units.append(np.where(proper, centred / np.where(proper, lengths, 1.0), 0))
    return np.abs(units[0].conj().T @ units[1]) ** 2


def _sums(pairs: Spectrum, candidate: Candidate, frames: Frames, block: int, steps: np.ndarray) -> np.ndarray:
    """Return sums over frames of a block: Σ|ψ|², Σψ̄ψ(y), Σ|ψ(y) - λψ|²/|λ|², Σψ̄(ψ(x_k)/λ^k - ψ); the last per row."""
    found = np.zeros((4, len(pairs.values)), dtype=complex)
    rows = tested_rows(frames, block, 1)
    if not len(rows):
        return found
    first = candidate.dictionary(frames.values[rows]) @ pairs.functions
    second = candidate.dictionary(frames.values[rows + frames.lag]) @ pairs.functions
    found[0] = np.sum(np.abs(first) ** 2, axis=0)
    found[1] = np.sum(first.conj() * second, axis=0)
    found[2] = np.sum(np.abs(second / pairs.values - first) ** 2, axis=0)
    for k in np.unique(steps):
        chosen = steps == k
        rows_k = tested_rows(frames, block, int(k))
        if not len(rows_k):
            continue
        own = pairs.take(np.flatnonzero(chosen))
        first = candidate.dictionary(frames.values[rows_k]) @ own.functions
        later = candidate.dictionary(frames.values[rows_k + k * frames.lag]) @ own.functions
        size = np.sum(np.abs(first) ** 2, axis=0)
        difference = np.sum(first.conj() * (later / own.values**k - first), axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            found[3, chosen] = difference / size * found[0, chosen]
    return found


def _of_others(pairs: Spectrum, reference: np.ndarray, choice: Choice, frames: Frames, rows: np.ndarray) -> np.ndarray:
    """Return the largest change of ln λ in other dictionaries, relative to |ln λ|; 0 without such dictionaries."""
    changes = np.zeros(len(pairs.values))
    if choice.best.name != "kernel":
        return changes
    best_of_bandwidth: dict[float, Candidate] = {}
    for candidate in sorted(choice.kernels, key=lambda candidate: candidate.score):
        best_of_bandwidth.setdefault(candidate.bandwidth, candidate)
    nearly = [
        candidate
        for candidate in best_of_bandwidth.values()
        if candidate.bandwidth != choice.best.bandwidth and candidate.score < choice.best.score + NEARLY_AS_GOOD
    ]
    for candidate in nearly[:MOST_OTHERS]:
        other = spectrum_of(candidate, frames, frames.starts)
        if other is None:
            continue
        chosen, _ = _matched(reference, candidate, frames, rows, other)
        with np.errstate(divide="ignore", invalid="ignore"):
            difference = np.abs(np.log(other.values[chosen] / pairs.values))
            changes = np.fmax(changes, difference / np.maximum(np.abs(np.log(pairs.values)), 1e-12))
    return changes


def _growth(values: np.ndarray, frames: Frames) -> np.ndarray:
    """Return |λ|^2k over the largest growth of a coordinate in k lags, about half of a typical trajectory."""
    lengths = np.bincount(frames.owner) // frames.lag
    k = int(np.clip(np.median(lengths) // 2, 1, LONGEST))
    starts = frames.within(np.arange(len(frames.owner)), k)
    columns = frames.values @ frames.targets
    before = np.sum(columns[starts] ** 2, axis=0)
    after = np.sum(columns[starts + k * frames.lag] ** 2, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        largest = np.nanmax(np.where(before > 0, after / before, np.nan))
    return np.abs(values) ** (2 * k) / max(float(largest), 1.0)


def products(values: np.ndarray, shares: np.ndarray) -> list[str]:
    """Return, for each eigenvalue, two or three with a larger share that it is the product of, as "1·1"; else ""."""
    return [_product(k, values, shares) for k in range(len(values))]


def _product(k: int, values: np.ndarray, shares: np.ndarray) -> str:
    larger = np.flatnonzero(shares > shares[k])
    tolerance = PRODUCT_TOLERANCE * abs(values[k] - 1)
    for a in larger:
        for b in larger[larger >= a]:
            if abs(values[a] * values[b] - values[k]) < tolerance:
                return f"{a + 1}·{b + 1}"
    for a in larger:
        for b in larger[larger >= a]:
            for c in larger[larger >= b]:
                if abs(values[a] * values[b] * values[c] - values[k]) < tolerance:
                    return f"{a + 1}·{b + 1}·{c + 1}"
    return ""
