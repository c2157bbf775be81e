"""What samples may hold that is probably not meant: one small function for each, and the reasons of its limits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from kdmaps.data.correlation import LOOKED_AT, MIN_ROWS, is_clock
from kdmaps.data.sources import MAX_ROWS_NAMED
from kdmaps.utils.threads import slices

#: Columns that a finding names.
MAX_COLUMNS_NAMED = 8
#: A column of this many distinct values or fewer is discrete, if there are ten rows or more for each. Modes are steps
#: between the values, which cost no energy: on a rounded double well up to 47 values give rates of 0, of 84 right ones.
FEW_VALUES, ROWS_PER_VALUE = 50, 10
#: Share of rows that repeat others from which random folds test on training samples.
MANY_COPIES = 0.01
#: Standard deviations of columns that differ by more than this factor are in other units, or one is nearly constant.
WIDEST_SCALES = 1e4
#: A row is alone if fewer than this many others are nearer than the limit: the limit is twice the median distance of
#: all rows (the last samples of a Gaussian tail are that far apart in 1 of 1,000 data sets), and in many dimensions,
#: where neighbours are about as far as others, three times the median distance of neighbours.
COMPANY, ALONE_PAIRS, ALONE_NEIGHBOURS = 3, 2.0, 3.0
#: Rows that show the typical distance, and the farthest rows that may be alone.
TYPICAL_ROWS, FARTHEST = 250, 10
#: An angle has values up to both ends of a turn (within 2 % of it), and in the 5 % before each end at least a quarter
#: of the rows that equal shares would have. (A Gaussian that just fits between -π and π has a twentieth.)
REACHED, END, LEAST_SHARE = 0.02, 0.05, 0.25
TURNS = {
    "[-π, π]": (-np.pi, np.pi),
    "[0, 2π]": (0.0, 2 * np.pi),
    "[-180, 180]": (-180.0, 180.0),
    "[0, 360]": (0.0, 360.0),
}
#: Names of columns, or their last parts, that hold weights or the bias energies of a simulation.
NO_COORDINATES = {"weight", "weights", "sample_weight", "logweight", "logweights", "bias", "rbias"}
#: Weights are dominated by a few rows if fewer effective samples than this part, or than this number, are left.
MIN_EFFECTIVE_PART, MIN_EFFECTIVE = 0.01, 50
#: Rows that are looked at, and rows at which neighbourhoods are looked at.
SURFACE_ROWS, SURFACE_PROBES = 2_000, 200
#: Neighbours; each size is twice the one before, and the last at most a quarter of the rows.
SURFACE_SIZES = (20, 40, 80, 160)
#: A local spectrum of variances ends with its first fall by this factor, in the median over the probes. Samples that
#: fill their space make smaller ones, in neighbourhoods of twenty.
SURFACE_FALL = 3.0
#: Largest part of the normal in the tangential variance: beyond it neighbourhoods see most of the curvature.
SURFACE_LARGEST = 0.1
#: More columns need more neighbours than there are for the spectra.
SURFACE_MAX_COLUMNS = 20


@dataclass(frozen=True)
class Finding:
    """Something in the data that is probably not meant.

    Attributes
    ----------
    name : str
        Name of the check.
    where : tuple of str or int
        Names (or numbers) of the columns, or numbers of the rows.
    found : str
        A sentence that says what was found.
    remedy : str
        What to do.
    severity : {"warning", "error", "note"}
        "error" is a column that makes the result meaningless: `kdmaps fit` stops. A "note" is nothing wrong: fits do
        not warn of it.
    """

    name: str
    where: tuple[Any, ...]
    found: str
    remedy: str
    severity: str = "warning"

    def __str__(self) -> str:
        return f"{self.found} {self.remedy}"


@dataclass(frozen=True)
class Looked:
    """What the checks look at: rows of positive weight, and what is known of them."""

    X: np.ndarray
    rows: np.ndarray  # their numbers among all
    weight: np.ndarray | None
    groups: np.ndarray | None
    names: Sequence[str] | None

    @cached_property
    def head(self) -> np.ndarray:
        """The first rows; those of the first trajectory, if there are groups."""
        first = self.X[:LOOKED_AT]
        if self.groups is not None:
            other = np.flatnonzero(self.groups[: len(first)] != self.groups[0])
            first = first[: other[0]] if other.size and other[0] >= MIN_ROWS else first
        return np.asarray(first, dtype=np.float64)

    @cached_property
    def distinct(self) -> np.ndarray:
        """Number of distinct values of every column of the head."""
        return 1 + np.count_nonzero(np.diff(np.sort(self.head, axis=0), axis=0), axis=0)

    @cached_property
    def spread(self) -> np.ndarray:
        """Standard deviation of every column of the head."""
        return self.head.std(axis=0)

    @cached_property
    def clocks(self) -> np.ndarray:
        """Columns that are a time or an index; none if all are, as those of sorted rows."""
        found = np.array([is_clock(x) or self._counts(j) for j, x in enumerate(self.head.T)])
        return np.flatnonzero(found) if not found.all() else np.array([], dtype=int)

    @cached_property
    def discrete(self) -> np.ndarray:
        """Columns of few distinct values, but more than one; not if that is because rows as a whole are few."""
        few = (self.distinct <= min(FEW_VALUES, len(self.head) // ROWS_PER_VALUE)) & (self.distinct > 1)
        return np.flatnonzero(few & (self.distinct < self.distinct_rows)) if len(few) > 1 else np.flatnonzero(few)

    @cached_property
    def distinct_rows(self) -> int:
        """Number of distinct rows of the head."""
        return len({row.tobytes() for row in self.head})

    def _counts(self, j: int) -> bool:
        """Whether a column holds consecutive integers in any order, as the index of shuffled rows does."""
        head, n = self.head[:, j], len(self.X)
        if n < MIN_ROWS or self.distinct[j] < len(head) or not np.array_equal(head, np.rint(head)):
            return False
        return bool(np.ptp(self.X[:, j]) == n - 1)

    def label(self, columns: Iterable[int]) -> tuple[Any, ...]:
        """Return the names of columns, or their numbers if they have none."""
        return tuple(int(j) if self.names is None else str(self.names[j]) for j in columns)


def time_columns(data: Looked) -> Finding | None:
    """Find columns that are a time or an index, beside others that are not."""
    if not data.clocks.size:
        return None
    where = data.label(data.clocks)
    return Finding(
        "time or index",
        where,
        f"Column(s) {_listed(where)} of X run on from row to row, as a time or an index does.",
        "A time that is a coordinate becomes the slowest mode; leave it out of X (--columns on the command line).",
        "error",
    )


def weight_columns(data: Looked) -> Finding | None:
    """Find columns whose names say that they are weights or energies of a bias, beside others."""
    named = [str(name).lower().rpartition(".")[2] in NO_COORDINATES for name in data.names or ()]
    if not any(named) or all(named):
        return None
    where = data.label(np.flatnonzero(named))
    return Finding(
        "weights",
        where,
        f"Column(s) {_listed(where)} of X are weights or energies of a bias by their names, but here coordinates.",
        "Leave them out of X, and give weights as sample_weight (--weights on the command line).",
    )


def constant_columns(data: Looked) -> Finding | None:
    """Find columns of one value, beside others that vary."""
    constant = [int(j) for j in np.flatnonzero(data.distinct == 1) if np.ptp(data.X[:, j]) == 0]
    if not constant or len(constant) == data.X.shape[1]:
        return None
    where = data.label(constant)
    return Finding(
        "constant columns",
        where,
        f"Column(s) {_listed(where)} of X are constant and say nothing about the modes;",
        "drop them.",
    )


def discrete_columns(data: Looked) -> Finding | None:
    """Find columns of few distinct values."""
    columns = np.setdiff1d(data.discrete, [*_one_hot(data), *data.clocks])
    if not columns.size:
        return None
    where = data.label(columns)
    return Finding(
        "discrete columns",
        where,
        f"Column(s) {_listed(where)} of X hold {data.distinct[columns].max()} distinct values or fewer: modes are "
        "steps between them, and rates mean nothing.",
        "Give X without rounding; leave out counts and categories, or fit each of their values by itself.",
    )


def one_hot_columns(data: Looked) -> Finding | None:
    """Find columns of 0 and 1 that are the codes of a category."""
    columns = _one_hot(data)
    if not columns.size:
        return None
    where = data.label(columns)
    return Finding(
        "one-hot columns",
        where,
        f"Column(s) {_listed(where)} of X are 0 or 1, and each row has the same number of ones, as the codes of a "
        "category have: categories become modes, whatever the system does.",
        "Leave them out of X; fit each category by itself, or say with groups which rows belong together.",
    )


def scales(data: Looked) -> Finding | None:
    """Find columns whose standard deviations differ by orders of magnitude."""
    varying = np.setdiff1d(np.flatnonzero(data.spread > 0), data.clocks)
    spread = data.spread[varying]
    if not varying.size or not spread.max() > WIDEST_SCALES * spread.min():
        return None
    where = data.label(varying[[spread.argmax(), spread.argmin()]])
    return Finding(
        "scales",
        where,
        f"Column {where[0]} of X varies {spread.max() / spread.min():.1g} times as much as column {where[1]}, which is "
        "nearly constant beside it: distances do not see it, and its modes are fast.",
        "Give both in units in which they diffuse equally fast, or say with diffusion how fast each is.",
    )


def wrapped_angles(data: Looked) -> Finding | None:
    """Find columns that are angles and reach both ends of a turn."""
    turns = {j: turn for j, x in enumerate(data.head.T) if (turn := _turn(x)) is not None}
    columns = [j for j in turns if j not in data.clocks and j not in data.discrete]
    if not columns:
        return None
    where = data.label(columns)
    degrees = ", degrees=True" if any("π" not in turns[j] for j in columns) else ""
    call = f"kdmaps.data.angles(X, {[*where]}{degrees})"
    return Finding(
        "angles that wrap",
        where,
        f"Column(s) {_listed(where)} of X fill {turns[columns[0]]} up to both ends, as angles do: the two ends are the "
        "same place, but far apart in X.",
        f"Use cosine and sine: {call}, or --angles on the command line.",
    )


def copied_rows(data: Looked) -> Finding | None:
    """Find rows that repeat others; discrete columns repeat anyway, and groups keep copies together."""
    n = len(data.head)
    if data.groups is not None or n < MIN_ROWS:
        return None
    copies = n - data.distinct_rows
    if len(data.discrete) == data.X.shape[1] or copies <= max(1, MANY_COPIES * n):
        return None
    return Finding(
        "copies of rows",
        (),
        f"{copies} of {n} rows repeat others: folds test on what they trained on, and error bars are too small.",
        "Keep one of each, with sample_weight if the numbers of copies mean something.",
    )


def outliers(data: Looked) -> Finding | None:
    """Find rows that are far away from all others."""
    X = np.delete(data.X, data.clocks, axis=1) if data.clocks.size else data.X  # a time has the largest distances
    if len(X) < MIN_ROWS:
        return None
    typical = np.asarray(X[:: -(-len(X) // TYPICAL_ROWS)], dtype=np.float64)
    distances = cdist(typical, typical)
    neighbours = np.partition(distances, COMPANY, axis=1)[:, COMPANY]
    limit = max(ALONE_PAIRS * np.median(distances), ALONE_NEIGHBOURS * np.median(neighbours))
    gaps = _gaps(X, np.median(typical, axis=0), limit)
    alone = {row: gap for row, gap in gaps.items() if gap > limit > 0}
    if not alone:
        return None
    where = tuple(int(data.rows[row]) for row in sorted(alone))
    away = ALONE_PAIRS * max(alone.values()) / limit
    return Finding(
        "outliers",
        where,
        f"Row(s) {_listed(where, MAX_ROWS_NAMED)} of X (counted from 0) lie alone, {away:.2g} typical distances from "
        "the others: such a row becomes a mode by itself.",
        "Leave out rows that are errors; if they belong to a rare state, sample it more often.",
    )


def dominating_weights(data: Looked) -> Finding | None:
    """Find weights of which a few are nearly all."""
    if data.weight is None or len(data.weight) < MIN_ROWS:
        return None
    # A weight of 0 leaves a row out, as a mask does.
    n, effective = int(np.count_nonzero(data.weight)), effective_sample_size(data.weight)
    if not is_dominated(n, effective):
        return None
    return Finding(
        "weights",
        (),
        f"The weights leave {effective:.1f} effective samples of {n}: a few rows decide the result.",
        "Check how sample_weight was made, or sample longer, nearer to the law that is wanted.",
    )


def effective_sample_size(weights: ArrayLike) -> float:
    """Return Kish's effective sample size (Σ w)²/Σ w².

    Examples
    --------
    >>> from kdmaps.simulation import effective_sample_size
    >>> effective_sample_size([1.0, 1.0, 0.0, 0.0])
    2.0
    """
    weights = np.asarray(weights, dtype=np.float64)
    return float(weights.sum() ** 2 / (weights @ weights))


def is_dominated(n_samples: int, effective: float) -> bool:
    """Return whether so few effective samples mean that a few rows dominate."""
    return effective < max(MIN_EFFECTIVE_PART * n_samples, min(n_samples / 2, MIN_EFFECTIVE))


def _one_hot(data: Looked) -> np.ndarray:
    """Return the columns of 0 and 1 if every row has the same number of ones among them."""
    binary = np.array([j for j in data.discrete if data.distinct[j] == 2], dtype=int)
    codes = data.head[:, binary]
    if len(binary) < 2 or not np.isin(codes, (0.0, 1.0)).all() or np.ptp(codes.sum(axis=1)) > 0:
        return np.array([], dtype=int)
    return binary


def _turn(x: np.ndarray) -> str | None:
    """Return the range of an angle that a column fills up to both ends."""
    for name, (low, high) in TURNS.items():
        turn = high - low
        inside = x.min() >= low - 1e-6 * turn and x.max() <= high + 1e-6 * turn
        if inside and x.min() < low + REACHED * turn and x.max() > high - REACHED * turn:
            ends = np.mean(x < low + END * turn), np.mean(x > high - END * turn)
            if min(ends) >= LEAST_SHARE * END:
                return name
    return None


def _gaps(X: np.ndarray, centre: np.ndarray, limit: float) -> dict[int, float]:
    """Return, for the rows farthest from the centre, the distance that fewer than `COMPANY` other rows are within.

    Rows far from others but in the middle, between clusters, are transitions and no outliers. A row whose distance from
    the centre is below the limit by that of the rows next to the centre has these for company: most data end here.
    """
    parts = list(slices(len(X), 2**12))
    radii = np.sqrt(np.concatenate([np.sum((X[part] - centre) ** 2, axis=1) for part in parts]))
    middle = np.partition(radii, COMPANY)[COMPANY]
    far = np.argpartition(radii, -min(FARTHEST, len(radii)))[-FARTHEST:]
    far = far[radii[far] + middle > limit]
    if not far.size:
        return {}
    near = np.concatenate([cdist(X[far], X[part]) for part in parts], axis=1)
    return dict(zip(far.tolist(), np.partition(near, COMPANY, axis=1)[:, COMPANY].tolist(), strict=True))


def _listed(where: Sequence[Any], most: int = MAX_COLUMNS_NAMED) -> str:
    """Join names of columns or numbers of rows, of which there may be many."""
    return ", ".join(map(str, where[:most])) + (f", … ({len(where)} in all)" if len(where) > most else "")


#: Every check; the order is that of the warnings.
CHECKS = (
    time_columns,
    weight_columns,
    constant_columns,
    discrete_columns,
    one_hot_columns,
    scales,
    wrapped_angles,
    copied_rows,
    outliers,
    dominating_weights,
)


def run_checks(data: Looked, folds: bool = True, paired: bool = False) -> list[Finding]:
    """Return what the checks find.

    Without folds, copies of rows do no harm. Pairs of frames are read without gradients: they may return to where they
    were, and live on a few values, as a chain does.
    """
    harmless = set() if folds else {copied_rows}
    harmless |= {copied_rows, discrete_columns, one_hot_columns} if paired else set()
    checks = (check for check in CHECKS if check not in harmless)
    with np.errstate(over="ignore", invalid="ignore"):  # numbers that overflow are found all the same
        return [finding for check in checks if (finding := check(data)) is not None]


def surface_dimension(X: np.ndarray) -> int | None:
    """Return the dimension of the curved surface that samples lie on, or None.

    In a neighbourhood of radius ρ the variance along a surface of dimension D grows as ρ² and, because of its
    curvature, the variance normal to it as ρ⁴: the ratio of both doubles D/2 times slower than the number k of
    neighbours, as k^(2/D). Samples that scatter about a surface, and thin slabs, show the opposite: the smaller a
    neighbourhood, the larger the ratio. So the ratio has to grow at least as k^(1/D), over two doublings of k.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    """
    X = np.unique(np.asarray(X[:: -(-len(X) // SURFACE_ROWS)], dtype=np.float64), axis=0)  # copies are no neighbours
    sizes = [k for k in SURFACE_SIZES if k <= len(X) // 4]
    if not 2 <= X.shape[1] <= SURFACE_MAX_COLUMNS or len(sizes) < 3:
        return None
    probes = X[:: -(-len(X) // SURFACE_PROBES)]
    nearest = np.argsort(cdist(probes, X), axis=1)[:, : sizes[-1]]
    found = [_dimension(X[nearest[:, :k]]) for k in sizes]
    for (D, first), (D2, second), (D3, third) in zip(found, found[1:], found[2:], strict=False):
        grows = min(second / first, third / second) >= 2 ** (1 / D) if first > 0 else False
        if D == D2 == D3 < X.shape[1] and first <= SURFACE_LARGEST and grows:
            return D
    return None


def _dimension(neighbourhoods: np.ndarray) -> tuple[int, float]:
    """Return the dimension that local spectra show, and the median ratio of normal to tangential variance."""
    deviations = neighbourhoods - neighbourhoods.mean(axis=1, keepdims=True)
    spectra = np.linalg.eigvalsh(np.swapaxes(deviations, 1, 2) @ deviations)[:, ::-1]
    spectra = np.maximum(spectra, 1e-14 * spectra[:, :1])  # rounding
    falls = np.flatnonzero(np.median(spectra[:, :-1] / spectra[:, 1:], axis=0) >= SURFACE_FALL)
    D = int(falls[0]) + 1 if falls.size else spectra.shape[1]
    return D, float(np.median(spectra[:, D] / spectra[:, :D].mean(axis=1))) if falls.size else 1.0


def curved_surface(X: np.ndarray) -> Finding | None:
    """Return a note on the surface that samples lie on, if there is one."""
    D = surface_dimension(X)
    if D is None:
        return None
    return Finding(
        "surface",
        (),
        f"The samples lie on a curved surface of dimension {D} in {X.shape[1]} columns.",
        "This is no mistake; with diffusion='tangent' (kdmaps fit --diffusion tangent) the energy is that on the "
        "surface, and modes and rates are more accurate.",
        "note",
    )
