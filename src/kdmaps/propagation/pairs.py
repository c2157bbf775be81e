"""Eigenpairs of a candidate in the order of their share of the coordinates."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kdmaps.propagation.candidates import Candidate, fitted
from kdmaps.propagation.exponentials import fit_exponentials
from kdmaps.propagation.frames import Frames
from kdmaps.propagation.regression import sums_of

#: Rows that eigenfunctions are compared at, and most eigenfunctions that are compared.
ROWS, MOST_COMPARED = 600, 100
#: An eigenfunction with a smaller part of the variance that its coefficients allow is constant.
SMALLEST_VARIANCE = 1e-12
#: Eigenvalues of a smaller modulus vanish within a lag.
SMALLEST_VALUE = 1e-3
#: Pairs that explain less of the coordinates are left out.
SMALLEST_SHARE = 1e-7
#: Directions of a pair that others explain up to this part are the same.
SMALLEST_DIRECTION = 1e-4
#: Imaginary parts of real eigenvalues.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues λ of one lag and eigenfunctions ψ = f(x)ᵀw in a dictionary f; conjugate pairs are adjacent."""

    values: np.ndarray  #: λ, (r,) complex.
    functions: np.ndarray  #: w, (q, r) complex.

    def take(self, chosen: Sequence[int] | np.ndarray) -> "Spectrum":
        """Return some of them."""
        rows = np.asarray(chosen, dtype=int)
        return Spectrum(self.values[rows], self.functions[:, rows])


@dataclass(frozen=True, eq=False)
class LeadingPairs:
    """The pairs that explain most of x_{t+h} ≈ c + Σ_j v_j λ_j^h ψ_j(x_t) for h = 0, 1, 2, …, largest share first."""

    spectrum: Spectrum
    shares: np.ndarray  #: (r,): part of the sum of squares that a pair of conjugates explains beyond those before it.
    modes: np.ndarray  #: v, (r, k) complex: in principal coordinates.
    mean: np.ndarray  #: c, (k,).


def spectrum_of(candidate: Candidate, frames: Frames, starts: np.ndarray) -> Spectrum | None:
    """Return all eigenpairs of a candidate that is fitted to the pairs beginning at these rows; None if it fails."""
    if candidate.exponents is not None:
        model = fit_exponentials(frames, starts, len(candidate.exponents), candidate.exponents)
        if model is None or len(model.functions) > candidate.dictionary.n_functions:
            return None
        missing = candidate.dictionary.n_functions - len(model.functions)
        return Spectrum(np.exp(model.exponents), np.pad(model.functions, ((0, missing), (0, 0))))
    K = fitted(candidate, frames, sums_of(candidate.dictionary, frames, starts), starts)
    return None if K is None else eigenpairs(K)


def eigenpairs(K: np.ndarray) -> Spectrum | None:
    """Return the eigenpairs of an operator; None if it is not finite."""
    if not np.isfinite(K).all():
        return None
    values, functions = np.linalg.eig(K)
    return Spectrum(values.astype(complex), functions.astype(complex))


def leading_pairs(spectrum: Spectrum, candidate: Candidate, frames: Frames, n_functions: int) -> LeadingPairs:
    """Choose pairs one by one, by how much they add to the explanation of the coordinates at all steps."""
    steps = (0, *frames.steps)
    rows = frames.within(np.arange(len(frames.owner)), steps[-1])
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), ROWS)).astype(int)]
    truth = np.vstack([(frames.values @ frames.targets)[rows + h * frames.lag] for h in steps])
    features = candidate.dictionary(frames.values[rows])
    psi = features @ spectrum.functions
    blocks = {}
    for j in _compared(spectrum, candidate, frames, features, psi):
        series = np.concatenate([spectrum.values[j] ** h * psi[:, j] for h in steps])
        blocks[j] = _columns(series, spectrum.values[j])
    chosen, shares = _pursuit(truth, blocks, n_functions)
    pairs, places = _with_conjugates(spectrum, chosen, blocks)
    pairs = _of_unit_variance(pairs, candidate, frames)
    mean, modes = _modes(pairs, frames, rows, features, steps)
    return LeadingPairs(pairs, np.array(shares)[places], modes, mean)


def _of_unit_variance(spectrum: Spectrum, candidate: Candidate, frames: Frames) -> Spectrum:
    starts = frames.starts[np.linspace(0, len(frames.starts) - 1, min(len(frames.starts), 10 * ROWS)).astype(int)]
    values = candidate.dictionary(frames.values[starts]) @ spectrum.functions
    return Spectrum(spectrum.values, spectrum.functions / values.std(axis=0))


def _compared(
    spectrum: Spectrum, candidate: Candidate, frames: Frames, features: np.ndarray, psi: np.ndarray
) -> np.ndarray:
    """Return the eigenfunctions that may be chosen, one of each pair, those with the smallest residuals first."""
    values = spectrum.values
    variance = psi.var(axis=0)
    largest = np.mean(features**2, axis=0) @ np.abs(spectrum.functions) ** 2
    proper = (variance > SMALLEST_VARIANCE * largest) & (np.abs(values) > SMALLEST_VALUE)
    proper &= values.imag >= -1e-12
    starts = frames.starts[np.linspace(0, len(frames.starts) - 1, min(len(frames.starts), ROWS)).astype(int)]
    first = candidate.dictionary(frames.values[starts]) @ spectrum.functions
    second = candidate.dictionary(frames.values[starts + frames.lag]) @ spectrum.functions
    with np.errstate(divide="ignore", invalid="ignore"):
        residuals = np.mean(np.abs(second - values * first) ** 2, axis=0) / variance
    order = np.flatnonzero(proper)
    return order[np.argsort(residuals[order], kind="stable")][:MOST_COMPARED]


def _columns(values: np.ndarray, eigenvalue: complex) -> np.ndarray:
    """Return real and imaginary part, or the real part only, of unit length."""
    columns = values.real[:, None]
    if abs(eigenvalue.imag) > ROUNDING:
        columns = np.column_stack([values.real, values.imag])
    lengths = np.linalg.norm(columns, axis=0)
    return columns / np.where(lengths > 0, lengths, 1.0)


def _pursuit(truth: np.ndarray, blocks: dict[int, np.ndarray], n_functions: int) -> tuple[list[int], list[float]]:
    """Choose blocks of columns that explain most of the truth about its mean, and their shares."""
    rest = truth - truth.mean(axis=0)
    total = max(float(np.sum(rest**2)), np.finfo(float).tiny)
    frame = np.full((len(truth), 1), len(truth) ** -0.5)
    chosen: list[int] = []
    shares: list[float] = []
    while sum(blocks[j].shape[1] for j in chosen) < n_functions and len(chosen) < len(blocks):
        best, largest, directions = -1, SMALLEST_SHARE, frame[:, :0]
        for j, columns in blocks.items():
            if j in chosen:
                continue
            new = _outside(columns, frame)
            share = float(np.sum((new.T @ rest) ** 2)) / total
            if share > largest:
                best, largest, directions = j, share, new
        if best < 0:
            break
        chosen.append(best)
        shares.append(largest)
        rest = rest - directions @ (directions.T @ rest)
        frame = np.hstack([frame, directions])
    return chosen, shares


def _outside(columns: np.ndarray, frame: np.ndarray) -> np.ndarray:
    """Return orthonormal directions of columns outside of a frame."""
    rest = columns - frame @ (frame.T @ columns)
    left, lengths, _ = np.linalg.svd(rest, full_matrices=False)
    return left[:, lengths > SMALLEST_DIRECTION]


def _with_conjugates(
    spectrum: Spectrum, chosen: list[int], blocks: dict[int, np.ndarray]
) -> tuple[Spectrum, list[int]]:
    """Return the chosen pairs, each complex one followed by its conjugate, and the place of each in `chosen`."""
    places = [place for place, j in enumerate(chosen) for _ in range(blocks[j].shape[1])]
    second = np.array([place == before for place, before in zip(places, [-1, *places[:-1]], strict=True)], dtype=bool)
    pairs = spectrum.take([chosen[place] for place in places])
    values = np.where(second, pairs.values.conj(), pairs.values)
    return Spectrum(values, np.where(second, pairs.functions.conj(), pairs.functions)), places


def _modes(
    spectrum: Spectrum, frames: Frames, rows: np.ndarray, features: np.ndarray, steps: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return c and v of the regression of the coordinates at all steps on the pairs."""
    psi = features @ spectrum.functions
    design = np.vstack([np.column_stack([np.ones(len(rows)), psi * spectrum.values**h]) for h in steps])
    truth = np.vstack([frames.values[rows + h * frames.lag] for h in steps])
    coefficients = np.linalg.lstsq(design, truth.astype(complex), rcond=1e-10)[0]
    return coefficients[0].real, coefficients[1:]
