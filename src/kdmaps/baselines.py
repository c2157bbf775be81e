"""An established method with the same interface, for comparison: classical diffusion maps."""

from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.neighbors import BallTree
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from kdmaps.checks import Check, or_fewer, rules, warn
from kdmaps.data.distances import OVERFLOW
from kdmaps.utils.threads import one_blas_thread
from kdmaps.utils.validation import checked_random_state, checked_samples

#: Rows and bandwidths from which the automatic bandwidth is chosen.
SLOPE_ROWS, SLOPE_BANDWIDTHS = 500, 60


@dataclass(eq=False, repr=False)
class DiffusionMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Diffusion maps with α-normalisation.

    With k(x, y) = exp(-|x-y|²/(2σ²)) and q(x) = Σ_y k(x, y) over the training points,

        k_α(x, y) = k(x, y) / (q(x)^α q(y)^α)                     (eq:alpha-normalization)
        P f(x) = Σ_y k_α(x, y) f(y) / Σ_y k_α(x, y)               (eq:markov-operator)

    For samples of the density π = exp(-V), P = exp(t·A) + o(t) as t = σ²/2 → 0, where exp(-|x-y|²/(4t)) is the heat
    kernel of the Laplacian and A = Δ - 2(1-α) ∇V·∇:

    ===== ========================= ===================================================================
    α     A                         use
    ===== ========================= ===================================================================
    0     Δ - 2∇V·∇                 normalised graph Laplacian: diffusion in the doubled potential
    1/2   Δ - ∇V·∇                  the generator of dX = -∇V dt + √2 dW, whose stationary law is π
    1     Δ                         Laplace–Beltrami operator: the geometry alone, whatever the density
    ===== ========================= ===================================================================

    Parameters
    ----------
    n_components : int, default=4
        Number of modes, not counting the constant.
    bandwidth : float or "auto", default="auto"
        σ. The bias of the rates is O(σ²), so the median distance is usually too wide. "auto" maximises the log-log
        slope of the kernel sum (Notes).
    alpha : float in [0, 1], default=0.5
        The α above. With the default, rates and modes can be compared with those from `KernelDiffusionMap`.
    random_state : int, RandomState instance or None, default=None
        Seed of the rows that the automatic bandwidth uses.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Largest eigenvalues of P, without the eigenvalue 1 of the constant.
    rates_ : ndarray of shape (n_components,)
        -log(`eigenvalues_`)/t with t = σ²/2: eigenvalues of -A. Infinite where the eigenvalue is not positive.
    timescales_ : ndarray of shape (n_components,)
        1/`rates_`.
    embedding_ : ndarray of shape (n_samples, n_components)
        Modes at the training points.
    bandwidth_ : float
        The σ used.
    n_features_in_, feature_names_in_ : int and ndarray of str
        Number of columns of the training samples, and their names, if they are strings.

    See Also
    --------
    sklearn.manifold.SpectralEmbedding : Laplacian eigenmaps; no α, no rates, no out-of-sample extension.

    Notes
    -----
    **Cost.** All pairs of samples are used, with O(n²) memory.

    **Normalisation.** Like all modes in kdmaps, `embedding_` has mean 0 and variance 1 under the empirical law. The
    modes are orthogonal under the stationary law of P, with density ∝ π^{2(1-α)}, which agrees with it for α = 1/2; the
    entry of largest magnitude of each mode is positive.

    **Automatic bandwidth.** S(σ) = Σ_xy k(x, y) grows like σ^d where the kernel covers a d-dimensional neighbourhood,
    and is flat for smaller and larger σ [2]_. "auto" takes the σ of steepest growth d log S / d log σ² = Σ_xy k(x, y)
    |x-y|²/(2σ²) / S [3]_, but at least the largest distance of a sample to its nearest neighbour. Without this lower
    bound, samples in the tails are isolated, each with a spurious mode of rate near zero. With it, a single outlier
    makes the kernel too wide; set σ by hand in that case.

    **Out of sample.** `transform` is the Nyström extension φ(x) = P φ(x)/λ: at the training points it returns
    `embedding_` up to rounding errors of relative size 1e-16/λ.

    References
    ----------
    .. [1] R. R. Coifman, S. Lafon, "Diffusion maps", Appl. Comput. Harmon. Anal. 21 (2006).
    .. [2] R. R. Coifman, Y. Shkolnisky, F. J. Sigworth, A. Singer, "Graph Laplacian tomography from unknown random
       projections", IEEE Trans. Image Process. 17 (2008).
    .. [3] T. Berry, J. Harlim, "Variable bandwidth diffusion kernels", Appl. Comput. Harmon. Anal. 40 (2016).

    Examples
    --------
    >>> import numpy as np
    >>> from kdmaps.baselines import DiffusionMap
    >>> angle = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    >>> circle = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> DiffusionMap(n_components=4, bandwidth=0.1).fit(circle).rates_.round(1) + 0.0  # exact: 1, 1, 4, 4
    array([1., 1., 4., 4.])
    """

    n_components: int = 4
    _: KW_ONLY
    bandwidth: float | str = "auto"
    alpha: float = 0.5
    random_state: Any = None
    bandwidth_: float = field(init=False)
    eigenvalues_: np.ndarray = field(init=False)
    rates_: np.ndarray = field(init=False)
    timescales_: np.ndarray = field(init=False)
    embedding_: np.ndarray = field(init=False)

    @one_blas_thread()
    def fit(self, X: ArrayLike, y: object = None) -> "DiffusionMap":
        """Compute the leading modes of the Markov operator of the samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored
        """
        samples: np.ndarray = checked_samples(self, X, reset=True, ensure_min_samples=2)
        self._check_parameters(len(samples))
        random = checked_random_state(self.random_state)

        self._points = samples.astype(np.float64)
        squared = cdist(self._points, self._points, "sqeuclidean")
        if not squared.max() < np.inf:
            raise ValueError(OVERFLOW)
        if self.bandwidth == "auto":
            nearest = BallTree(self._points).query(self._points, k=2)[0][:, 1]
            self.bandwidth_ = max(_slope_bandwidth(squared, random), float(nearest.max()))
        else:
            self.bandwidth_ = float(self.bandwidth)
        kernel = np.exp(squared / (-2 * self.bandwidth_**2))
        self._weights = kernel.sum(axis=1) ** -self.alpha
        kernel = _scale(self._weights, kernel)
        degrees = kernel.sum(axis=1)
        # P = D⁻¹K is similar to the symmetric D^-½ K D^-½, whose leading eigenvector √degrees is the constant of P.
        symmetric, constant = _scale(degrees**-0.5, kernel), np.sqrt(degrees / degrees.sum())
        # Moving its eigenvalue from 1 to -1 separates the constant from other eigenvectors of eigenvalue 1, which exist
        # if the graph is disconnected.
        symmetric -= 2 * np.outer(constant, constant)
        n = len(samples)
        values, vectors = eigh(symmetric, subset_by_index=(n - self.n_components, n - 1), overwrite_a=True)
        self.eigenvalues_, vectors = values[::-1], vectors[:, ::-1]
        self.rates_ = _rates(self.eigenvalues_, time=self.bandwidth_**2 / 2)
        with np.errstate(divide="ignore"):
            self.timescales_ = 1 / self.rates_

        modes = vectors / np.sqrt(degrees)[:, None]
        mean, std = modes.mean(axis=0), modes.std(axis=0)
        embedding = (modes - mean) / std
        sign = np.sign(embedding[np.abs(embedding).argmax(axis=0), np.arange(self.n_components)])
        self.embedding_ = embedding * sign
        self._offset = mean / std * sign  # embedding_ + _offset is an eigenvector of P, embedding_ alone is not
        return self

    @one_blas_thread()
    def transform(self, X: ArrayLike) -> np.ndarray:
        """Evaluate the modes at any points by the Nyström extension.

        Parameters
        ----------
        X : array-like of shape (n_points, n_features)

        Returns
        -------
        ndarray of shape (n_points, n_components)
            Values of the modes, in the precision of `X`.
        """
        check_is_fitted(self)
        points: np.ndarray = checked_samples(self, X, reset=False)
        # Batches no larger than the training set need no more memory than `fit`.
        batches = gen_batches(len(points), len(self._points))
        return np.vstack([self._extend(points[batch].astype(np.float64)) for batch in batches]).astype(points.dtype)

    def _extend(self, points: np.ndarray) -> np.ndarray:
        squared = cdist(points, self._points, "sqeuclidean")
        # A factor per row cancels in P; k(x, y)/max_y k(x, y) does not underflow far from the data.
        squared -= squared.min(axis=1, keepdims=True)
        kernel = np.exp(squared / (-2 * self.bandwidth_**2))
        average = kernel @ (self._weights[:, None] * (self.embedding_ + self._offset))
        return average / (kernel @ self._weights)[:, None] / self.eigenvalues_ - self._offset

    def _check_parameters(self, n_samples: int) -> None:
        r = self.n_components
        if not isinstance(r, Integral) or isinstance(r, bool) or not 1 <= r < n_samples:
            raise ValueError(f"n_components must be an integer from 1 to n_samples - 1 = {n_samples - 1}, got {r!r}.")
        if not (isinstance(self.alpha, Real) and 0 <= self.alpha <= 1):
            raise ValueError(f"alpha must be a number in [0, 1], got {self.alpha!r}.")
        if self.bandwidth != "auto" and not (isinstance(self.bandwidth, Real) and 0 < self.bandwidth < np.inf):
            raise ValueError(f'bandwidth must be a positive number or "auto", got {self.bandwidth!r}.')

    @property
    def _n_features_out(self) -> int:
        return self.n_components

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _scale(weights: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Return diag(weights) kernel diag(weights)."""
    return weights[:, None] * kernel * weights


def _slope_bandwidth(squared: np.ndarray, random: np.random.RandomState) -> float:
    """Return the σ of steepest log-log slope of S(σ), estimated from a sample of complete rows."""
    if squared.shape[0] > SLOPE_ROWS:
        squared = squared[np.sort(random.choice(squared.shape[0], SLOPE_ROWS, replace=False))]
    values = squared.ravel()
    if not values.max() > 0:
        raise ValueError('bandwidth="auto" needs different samples, but all samples coincide.')

    def slope(bandwidth: float) -> float:
        exponent = values / (2 * bandwidth**2)
        kernel = np.exp(-exponent)
        return float(kernel @ exponent / kernel.sum())

    candidates = np.sqrt(np.geomspace(values[values > 0].min(), values.max(), SLOPE_BANDWIDTHS))
    return float(max(candidates, key=slope))


def _rates(eigenvalues: np.ndarray, time: float) -> np.ndarray:
    """Return -log(eigenvalue)/time; warn about eigenvalues that do not determine a rate."""
    warn(Check(rules.DISCONNECTED, float(eigenvalues[0])))
    determined = int(np.count_nonzero(eigenvalues >= rules.ZERO_EIGENVALUES.limit))
    warn(Check(rules.ZERO_EIGENVALUES, float(eigenvalues[-1]), words={"fewer": or_fewer(determined)}))
    with np.errstate(divide="ignore"):
        return -np.log(np.clip(eigenvalues, 0, 1)) / time + 0.0  # + 0.0 turns -0 into 0, so that 1/rate is +inf
