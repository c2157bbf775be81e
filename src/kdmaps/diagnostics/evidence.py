"""Numbers of samples that carry the energy, the variance and the transition of each mode."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from kdmaps.bases import Basis, ModeBasis, square_root
from kdmaps.data.correlation import integrated_correlation_time
from kdmaps.data.sources import Sample
from kdmaps.forms.diffusion import DiffusionTensor
from kdmaps.utils.threads import map_reduce, slices
from kdmaps.utils.validation import unit_weight

#: Bytes of work space per block of samples, small compared with a fit.
BLOCK_BYTES = 2**22
#: A mode whose variance and energy are carried by fewer rows than these is an outlier, and so is one whose variance is
#: carried by one row, whatever its energy: a wide kernel reaches from a distant row to all others.
FEW_VARIANCE, FEW_ENERGY, ONE_ROW = 6.0, 12.0, 2.0
#: A mode whose variance is less than this fraction of its second moment is the constant.
CONSTANT = 0.1
#: An integrated correlation time that exceeds 1 by less than this over √n is noise: for n independent samples, |ρ| has
#: the mean 0.8/√n at each of about four lags, and counts twice.
CORRELATED = 6.5
#: The 95 % quantile of Kolmogorov's distance between n samples and their distribution is this over √n.
KOLMOGOROV = 1.36
#: Maximum number of samples at which gradients are evaluated, after a search and after a (faster) single fit.
MOST_AFTER_SEARCH, MOST_AFTER_FIT = 5_000, 2_000


@dataclass(frozen=True)
class Evidence:
    """Numbers of samples that determine each of r modes.

    With e_i = w_i ∇φᵀa∇φ and v_i = w_i φ² at sample i of weight w_i. Counts of a subsample are scaled to all samples.
    """

    energy_samples: np.ndarray  #: (r,): n_E = (Σe)²/Σe², the number of samples that carry the energy.
    variance_samples: np.ndarray  #: (r,): n_V = (Σv)²/Σv², the number of samples that carry the variance.
    #: (r,): n_T = (Σs)²/Σs² for the parts s of the energy between neighbouring values of the mode.
    transition_samples: np.ndarray
    #: (r,): (Σw)²/Σw² divided by the integrated correlation time of the mode in the order of the samples, after
    #: subtracting the standard error of this time.
    independent_samples: np.ndarray
    #: (r,): standard error of log rate, √Σ(w_i(e_i/rate - φ_i²))², with the correlation time of these terms.
    errors: np.ndarray
    heaviest: np.ndarray  #: (r,): the row that carries most of the variance.
    heaviest_shares: np.ndarray  #: (r,): fraction of the variance carried by this row.
    mismatch: np.ndarray  #: (r,): misplaced part of the energy, minus the part expected by chance with n_E samples.
    gap_error: float = np.nan  #: Standard error of the logarithm of the ratio of the last two rates.

    def first(self, n: int) -> Self:
        """Return the evidence of the first modes."""
        cut: dict[str, Any] = {name: v[:n] for name, v in vars(self).items() if isinstance(v, np.ndarray)}
        return replace(self, **cut)


def evidence_of(
    values: np.ndarray,
    energies: np.ndarray,
    sample: Sample,
    n_samples: int,
    trajectories: Sequence[np.ndarray] | None = None,
    local: bool = True,
    directed: bool = False,
) -> Evidence:
    """Count the samples behind each mode, from its values and energies at all samples or a subsample.

    `local` is True for energies ∇φᵀa∇φ at the samples, False for energies of pairs of frames. `directed` modes may
    oscillate: every period of a cycle is new evidence, though periods resemble each other. The correlations of φ and of
    φ² are summed with their signs, and the longer time counts.
    """
    weight = unit_weight(sample.weight, len(values))
    second, values, scale = weight @ values**2, values - weight @ values, n_samples / len(values)
    variances = weight[:, None] * values**2
    total = np.maximum(variances.sum(axis=0), np.finfo(float).tiny)
    rates = np.maximum(weight @ energies, np.finfo(float).tiny) / total
    terms = energies / (rates * total) - values**2 / total
    heaviest = np.argmax(variances, axis=0)
    # Without centring the constant is a mode, which needs no samples.
    constant = total < CONSTANT * second

    def error(terms: np.ndarray) -> np.ndarray:
        squares = np.sum((weight[:, None] * terms) ** 2, axis=0) / scale
        return np.sqrt(squares * _correlation_times(terms, scale, trajectories))

    def counted(parts: np.ndarray) -> np.ndarray:
        return np.where(constant, n_samples, scale * effective_count(parts))

    times = [
        _correlation_times(v, scale, trajectories, directed) for v in ((values, values**2) if directed else (values,))
    ]
    longest = np.max(times, axis=0)
    correlation_times = 1 + (longest - 1) / (1 + np.sqrt(10 * longest / n_samples))  # minus Sokal's standard error
    order = np.argsort(values, axis=0, kind="stable")
    between = transition_parts(np.take_along_axis(values, order, axis=0), weight[order])
    changes, weighted = counted(between), weight[:, None] * energies
    energy_samples = counted(weighted)
    misplaced = misplaced_energy(between, np.take_along_axis(weighted, order, axis=0))
    excess = np.maximum(misplaced - KOLMOGOROV / np.sqrt(energy_samples), 0)
    return Evidence(
        energy_samples=energy_samples,
        variance_samples=counted(variances),
        transition_samples=changes if local else np.full(len(total), np.nan),
        independent_samples=scale * effective_count(weight) / correlation_times,
        errors=error(terms),
        heaviest=np.asarray(sample.rows)[heaviest],
        heaviest_shares=variances[heaviest, np.arange(len(total))] / total,
        mismatch=np.where(constant, 0, excess) if local else np.full(len(total), np.nan),
        gap_error=float(error(terms[:, -1:] - terms[:, -2:-1])[0]) if len(total) > 1 else np.nan,
    )


def rests_on_few_rows(
    basis: Basis, coefficients: Sequence[np.ndarray], sample: Sample, tensor: DiffusionTensor, n_samples: int
) -> list[bool]:
    """Return, for several sets of modes, whether one row, or a few rows that carry the energy too, carry the variance.

    Such a mode is an outlier. A rare state has few rows that carry its energy but more that carry its variance; a mode
    that grows in the tails of the samples has few rows of large variance but more that carry its energy. A row of some
    rows that were drawn of all `n_samples` stands for several.
    """
    if not coefficients:
        return []
    rows, X, weight = sample
    X, share, together = np.asarray(X, dtype=np.float64), unit_weight(weight, len(X)), np.hstack(coefficients)
    values = basis.combine(X, together)
    counts = effective_count(share[:, None] * (values - share @ values) ** 2)
    few = counts < FEW_VARIANCE
    unsure = few & (counts * max(n_samples / len(X), 1) >= ONE_ROW)
    if unsure.any():
        modes = ModeBasis(basis, together[:, unsure], np.zeros(np.count_nonzero(unsure)))
        few[unsure] = effective_count(share[:, None] * evaluated_at(modes, X, tensor, rows)[1]) < FEW_ENERGY
    return [bool(own.any()) for own in np.split(few, np.cumsum([part.shape[1] for part in coefficients])[:-1])]


def evaluated_at(
    modes: ModeBasis, X: np.ndarray, tensor: DiffusionTensor, index: np.ndarray, n_rows: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return φ_k and ∇φ_kᵀ a ∇φ_k at the samples X, which are the rows `index` of all `n_rows`; both (n, r)."""
    identity, values, energies = np.eye(modes.n_features), *np.empty((2, len(X), modes.n_features))
    root = None if tensor.constant is None else square_root(tensor.constant)

    def step(_: None, part: slice) -> None:
        scalar, factor = tensor.rows(X[part], index[part])
        if root is None:
            values[part], energy = modes.features(X[part]), np.zeros(1)
        else:
            values[part], energy = modes.energies(X[part], identity, root, n_rows)
        if scalar is not None:
            energy = energy + scalar[:, None] * modes.energies(X[part], identity, np.array(1.0))[1]
        if factor is not None:
            slopes = modes.gradient(X[part], identity)
            energy = energy + tensor.sign * np.sum((slopes @ factor) ** 2, axis=2)
        energies[part] = np.maximum(energy, 0)

    map_reduce(_blocks(modes, X), lambda: None, step)
    return values, energies


def values_at(modes: ModeBasis, X: np.ndarray) -> np.ndarray:
    """Return φ_k at the samples X; (n, r)."""
    return np.concatenate([modes.features(X[part]) for part in _blocks(modes, X)])


def _blocks(modes: ModeBasis, X: np.ndarray) -> list[slice]:
    return list(slices(len(X), max(1, BLOCK_BYTES // modes.row_bytes)))


def transition_parts(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the energy of exact modes between neighbouring values, which are sorted along the first axis.

    From -div(π a∇φ) = rate·π φ, the energy per unit of the mode's value s is rate·F(s) with F(s) = E[φ; φ > s]. Hence
    F(s)(s' - s) over the variance is the fraction between the neighbouring values s and s', without gradients. If one
    fraction is near 1, the mode changes in a region without samples.
    """
    centred = values - np.sum(weight * values, axis=0) / weight.sum(axis=0)
    above = np.cumsum((weight * centred)[::-1], axis=0)[::-1][1:]
    return np.maximum(above, 0) * np.diff(centred, axis=0)


def misplaced_energy(between: np.ndarray, energies: np.ndarray) -> np.ndarray:
    """Return Kuiper's distance between the energy distributions of modes and of exact modes, over the modes' values.

    `between` are the parts of exact modes (`transition_parts`), `energies` the weighted energies in the same order. The
    distance tends to 0 for an exact mode, and is larger for modes smoothed by the regularization or the kernel, and for
    modes that jump between samples.
    """
    tiny = np.finfo(float).tiny
    exact = np.cumsum(np.pad(between, ((1, 0), (0, 0))), axis=0) / np.maximum(between.sum(axis=0), tiny)
    own = energies / np.maximum(energies.sum(axis=0), tiny)
    return np.ptp(np.cumsum(own, axis=0) - own / 2 - exact, axis=0)


def effective_count(parts: np.ndarray) -> np.ndarray:
    """Return the effective number (Σx)²/Σx² of parts along the first axis."""
    largest = np.maximum(parts.max(axis=0, initial=0.0), np.finfo(float).tiny)  # empty for a single sample
    parts = parts / largest  # squares of tiny numbers underflow
    return np.sum(parts, axis=0) ** 2 / np.maximum(np.sum(parts**2, axis=0), np.finfo(float).tiny)


def _correlation_times(
    series: np.ndarray, scale: float, trajectories: Sequence[np.ndarray] | None, signed: bool = False
) -> np.ndarray:
    """Return integrated correlation times of the columns, in samples before thinning by the factor `scale`."""
    excess = np.array([integrated_correlation_time(column, trajectories, signed=signed) for column in series.T]) - 1
    noise = CORRELATED / np.sqrt(len(series)) * (1 if scale == 1 else 2)  # amplified in a subsample
    return 1 + scale * np.where(excess < noise, 0, excess)
