"""Checks of the data for common mistakes: one function for each, with the reasons for its limits."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from kdmaps.checks import Check, Phrase, Rule, list_items, rules
from kdmaps.data.correlation import EARLY_ROWS, FIRST_ROWS, MIN_ROWS, is_clock
from kdmaps.data.detached import detached_check, find_groups
from kdmaps.utils.numbers import rounded

#: A column with at most this many distinct values is discrete if there are ten or more rows for each. Modes are then
#: steps between the values, which cost no energy: on a rounded double well 47 values give rates of 0, 84 correct ones.
FEW_VALUES, ROWS_PER_VALUE = 50, 10
#: Scales of different units have a gap of this factor between them. Those of principal components, or of the fast and
#: slow coordinates of one system, fall by small steps.
SCALE_GAP = 10.0
#: Columns with the same values to this part of their standard deviation are copies: files are rounded.
COPY = 1e-4
#: Share of repeated rows above which random folds test on training samples.
MANY_COPIES = 0.01
#: Number of frames in which atoms are superposed.
TYPICAL_ROWS = 250
#: An angle has values within 2 % of both ends of a turn, and at least a quarter of a uniform share of rows in the last
#: 5 % before each end. (A Gaussian that just fits between -π and π has a twentieth.)
REACHED, END, LEAST_SHARE = 0.02, 0.05, 0.25
TURNS = {
    "[-π, π]": (-np.pi, np.pi),
    "[0, 2π]": (0.0, 2 * np.pi),
    "[-180, 180]": (-180.0, 180.0),
    "[0, 360]": (0.0, 360.0),
}
#: Radians beyond two turns, up to the largest angle in degrees, are probably degrees.
TWO_TURNS, LARGEST_DEGREES = 4 * np.pi, 360.5
#: Parts of names of angles. The histogram of an angle is compared with an even one in so many bins, by a sum that 1 in
#: 10⁴ samples of an even strip exceed (χ² with 19 degrees of freedom: 52).
ANGLE_NAMES = ("phi", "psi", "omega", "chi", "theta", "angle", "dihedral", "torsion", "φ", "ψ", "θ", "χ")
BINS, UNEVEN = 20, 52.0
#: Names of columns, or their last parts, that contain weights or bias energies of a simulation.
WEIGHT_NAMES = {"weight", "weights", "sample_weight", "logweight", "logweights", "bias", "rbias"}
#: A few rows dominate if the effective sample size is below this share of the rows, or below this number.
MIN_EFFECTIVE_PART, MIN_EFFECTIVE = 0.01, 50
#: Smallest median of the squared distance of atoms from their centre, in units of the largest: 0.25 for a rod. Less for
#: columns of unequal variance, such as principal components, whose largest ones turn into each other.
EVEN = 0.05
#: Fewer atoms may seem to rotate by chance.
FEWEST_ATOMS = 5
#: Rows used to find a surface, and rows whose neighbourhoods are examined.
SURFACE_ROWS, SURFACE_PROBES = 2_000, 200
#: Numbers of neighbours, each twice the previous one; at most a quarter of the rows.
SURFACE_SIZES = (20, 40, 80, 160)
#: The tangent space ends where the median ratio of consecutive local variances first exceeds this factor. Samples that
#: fill their space have smaller ratios in neighbourhoods of twenty.
SURFACE_DROP = 3.0
#: Largest ratio of normal to tangential variance; above it, neighbourhoods are larger than the curvature radius.
SURFACE_MAX_RATIO = 0.1
#: With more columns, local spectra need more neighbours than `SURFACE_SIZES`.
SURFACE_MAX_COLUMNS = 20


@dataclass(frozen=True)
class CheckedRows:
    """Rows of positive weight that the checks examine."""

    X: np.ndarray
    rows: np.ndarray  # row numbers in the full data
    weight: np.ndarray | None
    groups: np.ndarray | None
    names: Sequence[str] | None
    standardizes: bool = True  # whether the command that fits them has --standardize

    @cached_property
    def head(self) -> np.ndarray:
        """The first rows, of the first trajectory if there are groups."""
        first = self.X[:FIRST_ROWS]
        if self.groups is not None:
            other = np.flatnonzero(self.groups[: len(first)] != self.groups[0])
            first = first[: other[0]] if other.size and other[0] >= MIN_ROWS else first
        return np.asarray(first, dtype=np.float64)

    @cached_property
    def distinct(self) -> np.ndarray:
        """Number of distinct values in each column of the head; of the first rows alone if these have many."""
        found = _distinct(self.head[:EARLY_ROWS])
        few = found <= FEW_VALUES
        found[few] = _distinct(self.head[:, few])
        return found

    @cached_property
    def distinct_rows(self) -> int:
        """Number of distinct rows of the head."""
        return len({row.tobytes() for row in self.head})

    @cached_property
    def clocks(self) -> np.ndarray:
        """Columns that are a time or an index; none if all columns are, as in sorted rows."""
        found = np.array([is_clock(x) or self._is_index(j) for j, x in enumerate(self.head.T)])
        return np.flatnonzero(found) if not found.all() else np.array([], dtype=int)

    @cached_property
    def discrete(self) -> np.ndarray:
        """Columns with few, but more than one, distinct values, unless there are equally few distinct rows."""
        few = (self.distinct <= min(FEW_VALUES, len(self.head) // ROWS_PER_VALUE)) & (self.distinct > 1)
        if len(few) > 1 and few.any():
            few &= self.distinct < self.distinct_rows
        return np.flatnonzero(few)

    @cached_property
    def one_hot(self) -> np.ndarray:
        """Columns of 0 and 1, if every row has the same number of ones."""
        binary = np.array([j for j in self.discrete if self.distinct[j] == 2], dtype=int)
        codes = self.head[:, binary]
        if len(binary) < 2 or not np.isin(codes, (0.0, 1.0)).all() or np.ptp(codes.sum(axis=1)) > 0:
            return np.array([], dtype=int)
        return binary

    @cached_property
    def turns(self) -> dict[int, str]:
        """Columns with the range of a turn, up to both ends, and the turn."""
        # Few columns have this range.
        wide = np.flatnonzero(np.ptp(self.head, axis=0) > (1 - 2 * REACHED) * 2 * np.pi)
        ranges = {int(j): _turn(self.head[:, j]) for j in wide if j not in self.clocks and j not in self.discrete}
        return {j: turn for j, turn in ranges.items() if turn is not None}

    @cached_property
    def angles(self) -> list[int]:
        """Columns that are evidently angles."""
        return [j for j, turn in self.turns.items() if _wraps(self, j, TURNS[turn])]

    def _is_index(self, j: int) -> bool:
        """Return whether a column is a permutation of consecutive integers, such as the index of shuffled rows."""
        head, n = self.head[:, j], len(self.X)
        if n < MIN_ROWS or not np.array_equal(head[:MIN_ROWS], np.rint(head[:MIN_ROWS])):
            return False
        whole = np.array_equal(head, np.rint(head)) and len(np.unique(head)) == len(head)
        return whole and bool(np.ptp(self.X[:, j]) == n - 1)

    def label(self, columns: Iterable[int]) -> tuple[Any, ...]:
        """Return the names of columns, or their numbers if they are not named."""
        return tuple(int(j) if self.names is None else str(self.names[j]) for j in columns)

    def of_columns(self, rule: Rule, columns: Sequence[int] | np.ndarray, /, **words: Any) -> Check:
        """Return a check of the number of columns with a fault."""
        where = self.label(columns)
        return Check(rule, len(where), where=where, words=words)


def time_columns(data: CheckedRows) -> Check:
    """Find columns that are a time or an index."""
    return data.of_columns(rules.TIME_OR_INDEX, data.clocks)


def weight_columns(data: CheckedRows) -> Check:
    """Find columns with the names of weights or bias energies, unless all columns have them."""
    named = [str(name).lower().rpartition(".")[2] in WEIGHT_NAMES for name in data.names or ()]
    return data.of_columns(rules.WEIGHT_COLUMNS, [] if all(named) else np.flatnonzero(named))


def constant_columns(data: CheckedRows) -> Check:
    """Find constant columns, unless all columns are constant."""
    constant = [int(j) for j in np.flatnonzero(data.distinct == 1) if np.ptp(data.X[:, j]) == 0]
    return data.of_columns(rules.CONSTANT_COLUMNS, constant if len(constant) < data.X.shape[1] else [])


def discrete_columns(data: CheckedRows) -> Check:
    """Find columns with few distinct values."""
    columns = np.setdiff1d(data.discrete, [*data.one_hot, *data.clocks])
    return data.of_columns(rules.DISCRETE_COLUMNS, columns, most=int(data.distinct[columns].max(initial=0)))


def one_hot_columns(data: CheckedRows) -> Check:
    """Find columns that encode a category."""
    return data.of_columns(rules.ONE_HOT_COLUMNS, data.one_hot)


def copied_columns(data: CheckedRows) -> Check:
    """Find columns that are linear functions of others; times, constants and categories are found by other checks."""
    with np.errstate(over="ignore", invalid="ignore"):  # fits refuse values that overflow
        deviations = data.head.std(axis=0)
        varying = np.flatnonzero((deviations > 0) & np.isfinite(deviations) & (data.distinct > FEW_VALUES))
        varying = np.setdiff1d(varying, data.clocks)
        scaled = (data.head[:, varying] - data.head[:, varying].mean(axis=0)) / deviations[varying]
    probe = np.random.RandomState(0).standard_normal(len(scaled)) @ scaled
    order = np.argsort(np.abs(probe))  # copies have the same probe, up to sign, and become neighbours
    scaled = (scaled * np.sign(probe))[:, order]
    same = np.abs(np.diff(scaled, axis=1)).max(axis=0, initial=0.0) < COPY
    first, copy = varying[order][:-1][same], varying[order][1:][same]
    pairs = np.sort(np.column_stack([first, copy]), axis=1)
    originals = list_items(data.label(sorted({*pairs[:, 0].tolist()} - {*pairs[:, 1].tolist()})))
    return data.of_columns(rules.COPIED_COLUMNS, sorted({*pairs[:, 1].tolist()}), first=originals)


def scales(data: CheckedRows) -> Check:
    """Find columns whose standard deviations differ by orders of magnitude; angles are found by another check."""
    with np.errstate(over="ignore", invalid="ignore"):  # fits refuse values that overflow
        deviations = data.head.std(axis=0)
    varying = np.setdiff1d(np.flatnonzero(deviations > 0), [*data.clocks, *data.angles])
    spread = deviations[varying]
    if varying.size < 2:
        return Check(rules.SCALES, 1.0)
    ordered = np.sort(spread)
    apart = bool(np.any(ordered[1:] / ordered[:-1] >= SCALE_GAP))
    ratio = float(ordered[-1] / ordered[0]) if apart else 1.0
    large, small = data.label(varying[[spread.argmax(), spread.argmin()]])
    rescale = Phrase("standardize" if data.standardizes else "similar units")
    words = {"large": large, "small": small, "ratio": rounded(ratio, 1), "rescale": rescale}
    return Check(rules.SCALES, ratio, where=(large, small), words=words)


def wrapped_angles(data: CheckedRows) -> Check:
    """Find angles that reach both ends of a turn; a note if nothing but their range shows that they are angles."""
    turns = data.turns
    shown = data.angles or [*turns]
    if not shown:
        return data.of_columns(rules.ANGLES, [])
    labels = data.label(shown)
    words = {
        "turn": turns[shown[0]],
        "columns": f"{[*labels]}",
        "degrees": ", degrees=True" if any("π" not in turns[j] for j in shown) else "",
        "listed": ",".join(map(str, labels)),
    }
    rule = rules.ANGLES if data.angles else rules.POSSIBLE_ANGLES
    return data.of_columns(rule, shown, **words)


def _wraps(data: CheckedRows, j: int, turn: tuple[float, float]) -> bool:
    """Return whether a column with the range of a turn is an angle, by its name, its jumps or its histogram.

    A uniform strip has this range, too: its rows neither jump from one end to the other, nor does its density show a
    structure that returns to the same value at both ends.
    """
    name = "" if data.names is None else str(data.names[j]).lower()
    if any(part in name for part in ANGLE_NAMES):
        return True
    steps = np.abs(np.diff(data.head[:, j])) / (turn[1] - turn[0])
    jumps, between = np.mean(steps > 0.9), np.mean((steps > 0.5) & (steps <= 0.9))
    if jumps > 0 and between < jumps:
        return True
    counts = np.histogram(data.head[:, j], bins=BINS, range=turn)[0]
    expected = len(data.head) / BINS
    return bool(np.sum((counts - expected) ** 2) / expected > UNEVEN)


def copied_rows(data: CheckedRows) -> Check:
    """Find repeated rows, except where discrete columns or groups explain them."""
    n = len(data.head)
    most = max(1, int(MANY_COPIES * n))
    explained = data.groups is not None or n < MIN_ROWS or len(data.discrete) == data.X.shape[1]
    copies = 0 if explained else n - data.distinct_rows
    return Check(rules.COPIES_OF_ROWS, copies, most, words={"copies": copies, "rows": n})


def outliers(data: CheckedRows) -> Check:
    """Find rows behind an empty gap."""
    X = np.delete(data.X, data.clocks, axis=1) if data.clocks.size else data.X  # a time has the largest distances
    weight = data.weight
    if weight is not None and len(weight) != len(X):  # of all rows
        weight = weight[data.rows]
    groups = find_groups(X, weight)
    return detached_check([replace(group, rows=data.rows[group.rows]) for group in groups])


def dominating_weights(data: CheckedRows) -> Check | None:
    """Find weights that leave only a few effective samples; rows of weight 0 do not count."""
    if data.weight is None or len(data.weight) < MIN_ROWS:
        return None
    n, effective = int(np.count_nonzero(data.weight)), effective_sample_size(data.weight)
    return Check(rules.DOMINATING_WEIGHTS, effective, least_effective(n), words={"rows": n})


def effective_sample_size(weights: ArrayLike) -> float:
    """Return Kish's effective sample size (Σ w)²/Σ w².

    Parameters
    ----------
    weights : array-like of shape (n_samples,)

    Examples
    --------
    >>> from kdmaps.simulation import effective_sample_size
    >>> effective_sample_size([1.0, 1.0, 0.0, 0.0])
    2.0
    """
    weights = np.asarray(weights, dtype=np.float64)
    return float(weights.sum() ** 2 / (weights @ weights))


def least_effective(n_samples: int) -> float:
    """Return the smallest effective sample size with which no few rows dominate."""
    return max(MIN_EFFECTIVE_PART * n_samples, min(n_samples / 2, MIN_EFFECTIVE))


def angle_units(angles: np.ndarray, labels: Sequence[Any], degrees: bool) -> Check:
    """Find angles that are read as radians and seem to be in degrees, or the other way round."""
    if degrees:
        wrong = ["π" in (_turn(x) or "") for x in angles.T]
        words: dict[str, Any] = {"reason": Phrase("radians"), "unit": Phrase("leave out degrees")}
    else:
        largest = np.abs(angles).max(axis=0, initial=0.0)
        wrong = [bool(TWO_TURNS < value <= LARGEST_DEGREES) for value in largest]
        words = {"reason": Phrase("degrees", {"largest": f"{largest.max():.3g}"}), "unit": Phrase("give degrees")}
    where = tuple(label for label, is_wrong in zip(labels, wrong, strict=True) if is_wrong)
    return Check(rules.ANGLE_UNITS, len(where), where=where, words=words)


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


def _distinct(rows: np.ndarray) -> np.ndarray:
    """Return the number of distinct values in each column."""
    return 1 + np.count_nonzero(np.diff(np.sort(rows, axis=0), axis=0), axis=0)


def unaligned_atoms(data: CheckedRows) -> Check | None:
    """Find coordinates (x, y, z) of atoms that rotate together: superposition removes most of their variance."""
    n, d = data.X.shape
    if d % 3 or d < 3 * FEWEST_ATOMS or n < MIN_ROWS:
        return None
    atoms = np.asarray(data.X[:: -(-n // TYPICAL_ROWS)], dtype=np.float64).reshape(-1, d // 3, 3)
    atoms = turned = atoms - atoms.mean(axis=1, keepdims=True)
    if not np.isfinite(variance := float(atoms.var(axis=0).sum())) or variance == 0:
        return None
    for reference in (1, len(atoms)):  # the first frame, then the mean of all
        left, _, right = np.linalg.svd(np.swapaxes(atoms, 1, 2) @ turned[:reference].mean(axis=0))
        left[:, :, 2] *= np.sign(np.linalg.det(left @ right))[:, None]
        turned = atoms @ (left @ right)
    radii = np.square(turned.mean(axis=0)).sum(axis=1)
    if np.median(radii) < EVEN * radii.max():
        return None
    left_over = float(turned.var(axis=0).sum() / variance)
    return Check(rules.UNALIGNED_ATOMS, left_over, words={"columns": d, "atoms": d // 3})


#: All checks, in the order of their warnings.
CHECKS = (
    time_columns,
    weight_columns,
    constant_columns,
    discrete_columns,
    one_hot_columns,
    copied_columns,
    scales,
    wrapped_angles,
    copied_rows,
    unaligned_atoms,
    outliers,
    dominating_weights,
)


def run_checks(
    data: CheckedRows, folds: bool = True, paired: bool = False, diffusion: bool = False, detached: bool = True
) -> list[Check]:
    """Return the outcome of all checks that apply.

    Copies of rows are harmless without folds. Pairs of frames are summed without gradients, so their trajectories may
    return to the same values and have only a few of them, like a Markov chain. A diffusion tensor makes the units of
    columns irrelevant. Without `detached`, rows behind an empty gap were found before.
    """
    harmless: set[Any] = set() if folds else {copied_rows}
    harmless |= {copied_rows, copied_columns, discrete_columns, one_hot_columns} if paired else set()
    harmless |= {scales} if diffusion else set()
    harmless |= set() if detached else {outliers}
    checks = (check for check in CHECKS if check not in harmless)
    with np.errstate(over="ignore", invalid="ignore"):  # values that overflow are outliers
        return [found for check in checks if (found := check(data)) is not None]


def curved_surface(X: np.ndarray) -> Check:
    """Note that samples lie on a curved surface; run only if `CHECKS` find nothing, since bad columns can mimic one."""
    dimension = surface_dimension(X)
    words = {"dimension": dimension, "columns": X.shape[1]}
    return Check(rules.SURFACE, int(dimension is not None), words=words)


def surface_dimension(X: np.ndarray) -> int | None:
    """Return the dimension of the curved surface that samples lie on, or None.

    In a neighbourhood of radius ρ, the variance along a surface of dimension D grows as ρ² and, because of curvature,
    the variance normal to it as ρ⁴, so their ratio grows with the number of neighbours k as k^(2/D). Samples scattered
    about a surface, and thin slabs, show the opposite: the ratio decreases with k. The ratio must grow at least as
    k^(1/D) over two doublings of k.
    """
    X = np.unique(np.asarray(X[:: -(-len(X) // SURFACE_ROWS)], dtype=np.float64), axis=0)
    X /= np.abs(X).max(initial=np.finfo(float).tiny)  # squares might overflow
    sizes = [k for k in SURFACE_SIZES if k <= len(X) // 4]
    if not 2 <= X.shape[1] <= SURFACE_MAX_COLUMNS or len(sizes) < 3:
        return None
    probes = X[:: -(-len(X) // SURFACE_PROBES)]
    nearest = np.argsort(cdist(probes, X), axis=1)[:, : sizes[-1]]
    found = [_local_dimension(X[nearest[:, :k]]) for k in sizes]
    for (D, first), (D2, second), (D3, third) in zip(found, found[1:], found[2:], strict=False):
        grows = min(second / first, third / second) >= 2 ** (1 / D) if first > 0 else False
        if D == D2 == D3 < X.shape[1] and first <= SURFACE_MAX_RATIO and grows:
            return D
    return None


def _local_dimension(neighbourhoods: np.ndarray) -> tuple[int, float]:
    """Return the dimension of local spectra, and the median ratio of normal to tangential variance."""
    deviations = neighbourhoods - neighbourhoods.mean(axis=1, keepdims=True)
    spectra = np.linalg.eigvalsh(np.swapaxes(deviations, 1, 2) @ deviations)[:, ::-1]
    spectra = np.maximum(spectra, 1e-14 * spectra[:, :1])  # rounding
    drops = np.flatnonzero(np.median(spectra[:, :-1] / spectra[:, 1:], axis=0) >= SURFACE_DROP)
    D = int(drops[0]) + 1 if drops.size else spectra.shape[1]
    return D, float(np.median(spectra[:, D] / spectra[:, :D].mean(axis=1))) if drops.size else 1.0
