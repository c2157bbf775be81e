"""Distinguish modes that are new coordinates from functions of earlier modes, such as harmonics."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from kdmaps.utils.threads import one_blas_thread, slices
from kdmaps.utils.types import RandomStateLike
from kdmaps.utils.validation import as_numbers, checked_random_state, checked_weight

#: Maximum number of samples of the regression: residuals are then accurate to about 1/√2,000 = 2 %.
SAMPLES = 2_000
#: Widths of the regression that are tried, in median distances; one third is the choice of Dsilva et al.
WIDTHS = (1 / 3, 1 / 6, 1 / 12, 1 / 24)
#: Slopes are shrunk by this fraction of the squared width, added to the variances of the predictors: a sample with a
#: single neighbour is predicted by its value.
SHRINKAGE = 1e-2
#: Smallest number of samples of a regression.
FEWEST = 20
#: Numbers in the work array of a block of samples.
BLOCK_NUMBERS = 2**20


@dataclass(frozen=True)
class IndependentModes:
    """Residuals of predicting each mode from earlier modes."""

    #: (r,): root mean square error of predicting mode k from the independent modes before it, over its standard
    #: deviation: near 0 for a function of them, near 1 for a new coordinate. The first mode has 1.
    residuals: np.ndarray
    independent: np.ndarray  #: (r,): True if the residual is at least the threshold.
    indices: np.ndarray  #: The independent modes, counted from 0.
    threshold: float  #: Smallest residual of an independent mode.
    n_samples: int  #: Number of samples used.


@one_blas_thread()
def independent_modes(
    modes: ArrayLike,
    *,
    threshold: float = 0.5,
    sample_weight: ArrayLike | None = None,
    max_samples: int = SAMPLES,
    random_state: RandomStateLike = 0,
) -> IndependentModes:
    r"""Find the modes that are new coordinates rather than functions of earlier modes.

    Several modes along a long direction of a manifold come before the first mode along a short one: on a strip, cos(2x)
    and cos(3x) are functions of cos(x). Each mode is predicted from the independent ones before it by local linear
    regression, and is independent itself if the prediction fails :cite:p:`dsilva`. The result is `IndependentModes`.

    Parameters
    ----------
    modes : array-like of shape (n_samples, r)
        Values of the modes at samples, slowest first, as `transform` returns them.
    threshold : float, default=0.5
        Smallest residual of an independent mode, between 0 and 1. If residuals are not clearly below or above it,
        inspect `residuals`.
    sample_weight : array-like of shape (n_samples,), optional
        Weights with which the samples represent the stationary distribution.
    max_samples, random_state : int, default=2000, and int, RandomState instance or None, default=0
        Number of samples used, drawn at random if there are more. The time grows with its square.

    Notes
    -----
    With Φ the independent modes before φ_k, the prediction at sample i is α of

    .. math:: \min_{\alpha,\beta} \sum_{j\neq i} e^{-|\Phi_j-\Phi_i|^2/w^2}
        \bigl(\varphi_k(j) - \alpha - \beta\cdot(\Phi_j-\Phi_i)\bigr)^2,

    and the residual is (Σ_i (φ_k(i) - α_i)²/Σ_i (φ_k(i) - φ̄_k)²)^½, the smallest of several widths w from 1/3 to 1/24
    of the median distance in Φ. Dsilva et al. use 1/3, and predict from all modes before φ_k.

    Examples
    --------
    A strip: the third mode is a harmonic of the first, the second one is new.

    >>> import kdmaps, numpy as np
    >>> x, y = np.random.default_rng(0).uniform(0, np.pi, (2, 1000))
    >>> found = kdmaps.independent_modes(np.column_stack([np.cos(x), np.cos(y), np.cos(2 * x)]))
    >>> found.indices
    array([0, 1])
    """
    values, weight = _checked(modes, threshold, sample_weight, max_samples)
    if len(values) > max_samples:
        rows = checked_random_state(random_state).choice(len(values), int(max_samples), replace=False)
        values, weight = values[rows], weight[rows]
    weight = weight / weight.sum()
    changes = np.ptp(values, axis=0) > 0
    if not changes.all():
        raise ValueError(f"Mode {int(np.argmin(changes)) + 1} (column of modes) is constant; leave it out.")
    values = values - weight @ values
    scales = np.sqrt(weight @ values**2)
    values = values / scales
    residuals, kept = np.ones(values.shape[1]), [0]
    while kept[-1] + 1 < len(residuals):
        after = kept[-1] + 1
        residuals[after:] = _residuals(values[:, kept], values[:, after:], weight)
        new = np.flatnonzero(residuals[after:] >= threshold)
        if not new.size:
            break
        kept.append(after + int(new[0]))
    return IndependentModes(residuals, residuals >= threshold, np.array(kept), float(threshold), len(values))


def _checked(modes: Any, threshold: Any, sample_weight: Any, max_samples: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the modes and weights of the samples whose weight is positive."""
    values = as_numbers("modes", modes, "one row of modes for each sample")
    if values.ndim != 2 or values.shape[1] < 1:
        raise ValueError(f"modes must have shape (n_samples, r) with r ≥ 1, got {values.shape}.")
    if not np.isfinite(values).all():
        raise ValueError("modes contains NaN or infinity; leave out such rows.")
    if not isinstance(threshold, Real) or not 0 < float(threshold) < 1:
        raise ValueError(f"threshold must be a number between 0 and 1, got {threshold!r}.")
    if not isinstance(max_samples, Integral) or max_samples < FEWEST:
        raise ValueError(f"max_samples must be an integer of at least {FEWEST}, got {max_samples!r}.")
    weight = checked_weight(sample_weight, values)
    weight = np.ones(len(values)) if weight is None else weight
    values, weight = values[weight > 0], weight[weight > 0]
    if len(values) < FEWEST:
        raise ValueError(f"modes must contain at least {FEWEST} samples of positive weight, got {len(values)}.")
    return values, weight


def _residuals(predictors: np.ndarray, modes: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the smallest leave-one-out error over the widths, for each of the modes, of mean 0 and variance 1."""
    n = len(modes)
    errors = np.zeros((len(WIDTHS), modes.shape[1]))
    some = predictors[:: -(-n // 500)]
    median = np.median(cdist(some, some)[np.triu_indices(len(some), 1)])
    for part in slices(n, max(1, BLOCK_NUMBERS // n)):
        squares = cdist(predictors[part], predictors, "sqeuclidean")
        squares[np.arange(len(squares)), np.arange(n)[part]] = np.inf
        squares -= squares.min(axis=1, keepdims=True)  # a common factor of the weights, to avoid underflow
        for number, width in enumerate(WIDTHS):
            kernel = np.exp(-squares / (width * median) ** 2) * weight
            predicted = _local_linear(kernel, predictors, modes, predictors[part], SHRINKAGE * (width * median) ** 2)
            errors[number] += weight[part] @ (modes[part] - predicted) ** 2
    return np.sqrt(errors.min(axis=0))


def _local_linear(
    kernel: np.ndarray, predictors: np.ndarray, modes: np.ndarray, at: np.ndarray, shrinkage: float
) -> np.ndarray:
    """Predict modes by a weighted linear fit at each point: ȳ + β·(x - x̄), β = (C + s)⁻¹c with the shrinkage s."""
    (n, q), both = predictors.shape, np.hstack([predictors, modes])
    products = (predictors[:, :, None] * both[:, None, :]).reshape(n, -1)
    sums = kernel @ np.hstack([np.ones((n, 1)), both, products])
    means, products = np.split(sums[:, 1:] / sums[:, :1], [both.shape[1]], axis=1)
    centre, mean = means[:, :q], means[:, q:]
    products = products.reshape(len(at), q, -1) - centre[:, :, None] * means[:, None, :]
    slopes = np.linalg.solve(products[:, :, :q] + shrinkage * np.eye(q), products[:, :, q:])
    return mean + np.einsum("ij,ijk->ik", at - centre, slopes)
