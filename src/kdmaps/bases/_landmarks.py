"""Kernel functions at landmarks (Nyström), for one kernel or for several with any weights."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.utils import check_random_state

from kdmaps.bases._base import MIN_ROWS, Basis, Sums, TensorRows, square_root, times
from kdmaps.kernels import Kernel
from kdmaps.utils.blas import add_gram, add_product, mirror
from kdmaps.utils.floor import FEWEST_COLUMNS, Floor, squares_between
from kdmaps.utils.types import RandomStateLike
from kdmaps.utils.validation import as_numbers

#: Jitter ε_W of eq:W-stab relative to the trace of W. With much less, rounding determines the norm of functions where W
#: is numerically singular, which gives spurious modes with impossible time scales.
JITTER = 1e-9
#: Arrays of the size of a chunk's features that are used at once.
WORK_ARRAYS = 4
#: Relative size of rounding errors of a metric.
DIAGONAL = 1e-12
#: Clusters of wide samples are found in so many random directions: squared distances change by √(2/64) = 18 %.
DIRECTIONS = 64
#: Landmarks are chosen among at most this many samples.
SELECTION_SAMPLES = 10_000


@dataclass
class _State:
    total: np.ndarray  # Σ w φ
    gram: np.ndarray  # Σ w φφᵀ, lower triangle
    energy: np.ndarray  # part of Σ w ∇φ D ∇φᵀ summed as a Gram matrix, lower triangle
    slopes: np.ndarray | None = None  # Σ w g gᵀ, lower triangle, g = 2κ'
    cross: np.ndarray | None = None  # Σ w (g∘s) gᵀ
    directed: np.ndarray | None = None  # Σ w ∇φ FFᵀ ∇φᵀ for a diffusion factor F per sample, lower triangle


@dataclass(eq=False, repr=False)
class LandmarkBasis(Basis):
    """Kernel functions φ_m(x) = k(x, z_m) at p landmarks z.

    For a radial kernel in its coordinates y = xT (`Kernel.linear_map`), with g_m = 2κ'(|y - ζ_m|²) and the metric
    M = TᵀDT of the diffusion tensor D, the energy Gram matrix needs no array with a coordinate axis, since
    (y - ζ_m)ᵀM(y - ζ_n) = ½(s_m + s_n - S_mn), s_m = |y - ζ_m|²_M, S_mn = |ζ_m - ζ_n|²_M:

        Σ_i g_m g_n (y_i - ζ_m)ᵀM(y_i - ζ_n) = ½[(g∘s)ᵀg + gᵀ(g∘s)] - ½ S∘(gᵀg).

    Kernels that are not radial (Laplacian, mixtures of different anisotropy) are treated coordinate by coordinate.
    Landmarks that are samples are also part of the sums; k-means centres are not.
    """

    kernel: Kernel
    landmarks: np.ndarray  #: (p, d).
    origin: np.ndarray  #: (d,).

    def __post_init__(self) -> None:
        kernel = self.kernel
        self.n_features: int = self.landmarks.shape[0]
        self._metrics: dict[bytes, Any] = {}
        self.centred_landmarks: np.ndarray = self.landmarks - self.origin
        # If the kernel is not C¹, g → ∞ at coincident points; the coordinate-wise derivative stays finite there.
        self.radial: bool = kernel.linear_map is not None and kernel.smoothness >= 1
        if self._floor is not None:
            W = kernel.profile(self._between[0])
        elif self.radial and self.dim >= FEWEST_COLUMNS:
            W = kernel.profile(squares_between(self._zeta))
        else:
            W = kernel(self.centred_landmarks)
        self._ridge = (W + W.T) / 2 + JITTER * np.trace(W) * np.eye(self.n_features)  # eq:W-stab

    @property
    def chunk_rows(self) -> int:
        # Several arrays of a chunk's size are alive at once, and have to fit into the cache together.
        return max(MIN_ROWS, super().chunk_rows // WORK_ARRAYS)

    @property
    def ridge(self) -> np.ndarray:
        return self._ridge

    def features(self, X: np.ndarray, n_rows: float | None = None) -> np.ndarray:
        X = X - self.origin
        if not self.radial:
            return self.kernel(X, self.centred_landmarks)
        return np.asarray(self.kernel.profile(self._distances(X)))

    def gradient(self, X: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        X = X - self.origin
        if not self.radial:
            parts = [partial @ coefficients for partial in self.kernel.partials(X, self.centred_landmarks)]
            return np.stack(parts, axis=-1)
        # Σ_m a_m g_m (y - ζ_m), without an array that has an axis for landmarks and one for coordinates.
        T = self.kernel.linear_map
        slopes = 2 * np.asarray(self.kernel.profile(self._distances(X), 1))
        y, zeta = (X, self.centred_landmarks) if self._floor is not None else (self.kernel.coordinates(X), self._zeta)
        (n, d), r = y.shape, coefficients.shape[1]
        pulled = slopes @ (coefficients[:, :, None] * zeta[:, None, :]).reshape(len(zeta), -1)
        directions = (slopes @ coefficients)[:, :, None] * y[:, None, :] - pulled.reshape(n, r, d)
        if self._floor is not None:
            return self._floor.times(directions)
        return directions @ T.T if T.ndim == 2 else directions * T  # type: ignore[union-attr]

    def start(self, rows: int, n_samples: int | None = None) -> _State:
        p = self.n_features
        return _State(np.zeros(p), np.zeros((p, p)), np.zeros((p, p)))

    def step(
        self, state: _State, X: np.ndarray, root_weight: np.ndarray, tensor: TensorRows, constant: np.ndarray | None
    ) -> None:
        X = X - self.origin
        if tensor.factor is not None and state.directed is None:
            state.directed = np.zeros_like(state.gram)
        if self.radial:
            self._step_radial(state, X, root_weight, tensor, constant)
        else:
            self._step_coordinates(state, X, root_weight, tensor, constant)

    def _add_values(self, state: _State, values: np.ndarray, root_weight: np.ndarray) -> None:
        if np.any(root_weight != 1):
            values *= root_weight[:, None]
        add_gram(state.gram, values)
        state.total += root_weight @ values

    def _step_radial(
        self, state: _State, X: np.ndarray, root_weight: np.ndarray, tensor: TensorRows, constant: np.ndarray | None
    ) -> None:
        if self._floor is not None and tensor.factor is None and (constant is None or constant.ndim == 0):
            self._step_above_floor(state, X, root_weight, tensor, constant)
            return
        y, zeta = self.kernel.coordinates(X), self._zeta
        s = _squared_distances(y, zeta)
        scaled = self.kernel.log_slope is not None and tensor.scalar is None and tensor.factor is None
        # For a constant log_slope, g is a multiple of φ, and so is its Gram matrix.
        values, slope = (self.kernel.profile(s), None) if scaled else self.kernel.value_and_slope(s)
        self._add_values(state, values, root_weight)
        if tensor.factor is not None:
            slopes = (2 * root_weight)[:, None] * slope
            for direction in self.kernel.coordinates(np.moveaxis(tensor.factor, 2, 0)):
                along = np.einsum("nd,nd->n", y, direction)[:, None] - direction @ zeta.T
                add_gram(state.directed, slopes * along)  # type: ignore[arg-type]
            if constant is None:
                return
        metric, stretched = self.metric(constant)
        weighted = s
        if stretched is not None:
            weighted = _squared_distances(y @ metric if metric.ndim == 2 else y * metric, stretched)
        self._add_slopes(state, values, slope, weighted, root_weight, tensor)

    def _step_above_floor(
        self, state: _State, X: np.ndarray, root_weight: np.ndarray, tensor: TensorRows, constant: np.ndarray | None
    ) -> None:
        """Add a chunk for a metric with a floor and a scalar diffusion, without products with d×d matrices."""
        floor = self._floor
        assert floor is not None
        plain = _squared_distances(X, self.centred_landmarks)
        s = self._above(plain, X, floor.level, floor.directions)
        weighted = self._above(plain, X, floor.level**2, floor.stretched)
        if constant is not None:
            weighted *= constant
        scaled = self.kernel.log_slope is not None and tensor.scalar is None
        values, slope = (self.kernel.profile(s), None) if scaled else self.kernel.value_and_slope(s)
        self._add_values(state, values, root_weight)
        self._add_slopes(state, values, slope, weighted, root_weight, tensor)

    def _add_slopes(
        self,
        state: _State,
        values: np.ndarray,
        slope: np.ndarray | None,
        weighted: np.ndarray,
        root_weight: np.ndarray,
        tensor: TensorRows,
    ) -> None:
        """Add the products of slopes, and of slopes times squared distances in the metric of the energy."""
        if state.cross is None:
            state.cross, state.slopes = np.zeros_like(state.gram), np.zeros_like(state.gram)
        if self.kernel.log_slope is not None and tensor.scalar is None:
            slopes = values
        else:
            root = root_weight if tensor.scalar is None else root_weight * np.sqrt(tensor.scalar)
            slope *= (2 * root)[:, None]
            slopes = slope
            add_gram(state.slopes, slopes)  # type: ignore[arg-type]
        weighted *= slopes  # `finish` multiplies by a metric that is a number
        add_product(state.cross, weighted, slopes)

    @cached_property
    def _floor(self) -> Floor | None:
        """The split of a metric with few directions above its floor; None for other kernels."""
        return Floor.of(self.kernel.linear_map) if self.radial else None

    @cached_property
    def _between(self) -> tuple[np.ndarray, np.ndarray]:
        """Squared distances of landmarks, in a metric with a floor: of the kernel, and of the energy with D = 1."""
        assert self._floor is not None
        return self._floor.squared_distances(self.centred_landmarks)

    def _distances(self, X: np.ndarray) -> np.ndarray:
        """Return the squared distances of points from the landmarks in which the kernel is radial."""
        if self._floor is None:
            return _squared_distances(self.kernel.coordinates(X), self._zeta)
        plain = _squared_distances(X, self.centred_landmarks)
        return self._above(plain, X, self._floor.level, self._floor.directions)

    def _above(self, plain: np.ndarray, X: np.ndarray, level: float, directions: np.ndarray) -> np.ndarray:
        """Return level·|x - z|² + |(x - z)V|² for the directions V."""
        return level * plain + _squared_distances(X @ directions, self.centred_landmarks @ directions)

    @cached_property
    def _zeta(self) -> np.ndarray:
        """Landmarks in the coordinates of a radial kernel."""
        return self.kernel.coordinates(self.centred_landmarks)

    def metric(self, constant: np.ndarray | None) -> tuple[Any, np.ndarray | None]:
        """Return (c, None) if M = TᵀDT = c·1, otherwise a root B with M = BBᵀ and ζB, for D = `constant` (None is 1).

        B is a matrix, or its diagonal: with D = 1, the metric of a `Metric` with orthogonal directions is diagonal.
        """
        D = np.array(1.0) if constant is None else constant
        key = D.tobytes()
        if key not in self._metrics:  # shared by all chunks
            self._metrics[key] = self._metric(D)
        return self._metrics[key]

    def _metric(self, D: np.ndarray) -> tuple[Any, np.ndarray | None]:
        T: Any = self.kernel.linear_map
        if T.ndim < 2 and D.ndim == 0:
            squares = T**2 * D
        else:
            T = T if T.ndim == 2 else T * np.eye(self.dim)
            M = T.T @ times(T.T, D).T
            squares = np.diagonal(M)
            if np.abs(M - np.diag(squares)).max() > DIAGONAL * squares.max():
                B = times(T.T, square_root(D))
                return B, self._zeta @ B
        if np.ptp(squares) <= DIAGONAL * squares.max():
            return squares.flat[0], None
        return np.sqrt(squares), self._zeta * np.sqrt(squares)

    def _step_coordinates(
        self, state: _State, X: np.ndarray, root_weight: np.ndarray, tensor: TensorRows, constant: np.ndarray | None
    ) -> None:
        values = self.kernel(X, self.centred_landmarks)
        root = root_weight if tensor.scalar is None else root_weight * np.sqrt(tensor.scalar)
        partials = self.kernel.partials(X, self.centred_landmarks)
        if constant is None and tensor.factor is None:
            constant = np.array(1.0)
        if constant is not None and constant.ndim == 0:
            constant = constant * np.eye(self.dim)
        diagonal = constant is not None and np.array_equal(constant, np.diag(np.diagonal(constant)))
        factors: list[tuple[np.ndarray, Any]] = []  # each with the sum to which it contributes
        if constant is not None and not diagonal:
            factor = np.broadcast_to(square_root(constant), (X.shape[0], *constant.shape))
            factors.append((factor, state.energy))
        if tensor.factor is not None:
            factors.append((tensor.factor, state.directed))
        alongs = [np.zeros((factor.shape[2], *values.shape)) for factor, _ in factors]
        for j, partial in enumerate(partials):
            if diagonal:
                add_gram(state.energy, np.ascontiguousarray(partial * (root * np.sqrt(constant[j, j]))[:, None]))  # type: ignore[index]
            for (factor, _), along in zip(factors, alongs, strict=True):
                along += factor[:, j].T[:, :, None] * partial
        for (_, total), along in zip(factors, alongs, strict=True):
            for derivative in along:
                add_gram(total, derivative * root[:, None])
        self._add_values(state, values, root_weight)

    def finish(self, states: list[Any], constant: np.ndarray | None, sign: float) -> Sums:
        total, gram = sum(state.total for state in states), mirror(sum(state.gram for state in states))
        energy = mirror(sum(state.energy for state in states))
        if states[0].directed is not None:
            energy += sign * mirror(sum(state.directed for state in states))
        if states[0].cross is not None:
            cross = sum(state.cross for state in states)
            if self._floor is not None and (constant is None or constant.ndim == 0) and states[0].directed is None:
                S = self._between[1] * (1.0 if constant is None else constant)
            else:
                metric, zeta = self.metric(constant)
                if zeta is None:
                    zeta, cross = self._zeta * np.sqrt(metric), cross * metric
                S = squares_between(zeta)
            slopes = mirror(sum(state.slopes for state in states))
            if constant is not None and self.kernel.log_slope is not None:
                slopes, factor = gram, (2 * self.kernel.log_slope) ** 2
            else:
                factor = 1.0
            energy += factor * ((cross + cross.T) / 2 - S * slopes / 2)
        return total, gram, energy


def _squared_distances(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return |A_i - B_m|² from one product; rounding is relative to |A_i|² + |B_m|², so both should be centred."""
    left = np.column_stack([A, np.einsum("ij,ij->i", A, A), np.ones(len(A))])
    s = left @ np.vstack([-2 * B.T, np.ones(len(B)), np.einsum("ij,ij->i", B, B)])
    return np.maximum(s, 0, out=s)


def select_landmarks(
    X: np.ndarray, n: int, method: str | ArrayLike, random_state: RandomStateLike = None
) -> np.ndarray:
    """Select landmarks for the samples X.

    Parameters
    ----------
    X : ndarray of shape (n_samples, d)
    n : int
        Number of landmarks; fewer if X has fewer distinct samples.
    method : {"kmeans", "uniform", "all"} or array of shape (p, d)
        k-means centres; samples drawn uniformly; every sample; or the landmarks themselves. All but "all" use a random
        subsample of at most 10,000 samples.
    random_state : int, RandomState instance or None
    """
    if not isinstance(method, str):
        what = f"'kmeans', 'uniform' or a finite array with {X.shape[1]} columns like X"
        landmarks = np.array(as_numbers("landmarks", method, what), ndmin=2)
        if landmarks.ndim != 2 or landmarks.shape[1] != X.shape[1] or not np.all(np.isfinite(landmarks)):
            raise ValueError(f"landmarks must be {what}, got shape {landmarks.shape}.")
        return landmarks
    rng = check_random_state(random_state)
    if method == "all":
        return np.unique(np.asarray(X, dtype=np.float64), axis=0)
    if X.shape[0] > SELECTION_SAMPLES:
        X = X[np.sort(rng.choice(X.shape[0], SELECTION_SAMPLES, replace=False))]
    distinct = np.unique(np.asarray(X, dtype=np.float64), axis=0)
    n = min(n, distinct.shape[0])
    if method == "uniform":
        return distinct[np.sort(rng.choice(distinct.shape[0], n, replace=False))]
    if method == "kmeans":
        if n == distinct.shape[0]:
            return distinct
        return _centres(distinct, n, rng.randint(2**31))
    raise ValueError(f"landmarks must be 'kmeans', 'uniform', 'all' or an array, got {method!r}.")


def _centres(X: np.ndarray, n: int, seed: int) -> np.ndarray:
    """Return the means of n clusters, which are found in fewer random directions if there are many columns."""
    found: Any = MiniBatchKMeans(n, n_init=1, batch_size=2048, random_state=seed)
    if len(X) <= 2_000:
        found = KMeans(n, n_init=1, max_iter=50, random_state=seed, init=_spread_out)
    if X.shape[1] <= DIRECTIONS:
        return found.fit(X).cluster_centers_
    owner = found.fit_predict(X @ np.random.RandomState(seed).standard_normal((X.shape[1], DIRECTIONS)))
    members = np.eye(n)[:, owner]
    members = members[members.any(axis=1)]
    return members @ X / members.sum(axis=1, keepdims=True)


def _spread_out(X: np.ndarray, n: int, random_state: np.random.RandomState) -> np.ndarray:
    """Return the first centres of k-means++ with scikit-learn's draws, but without its checks at every centre."""
    trials, squares, chosen = 2 + int(np.log(n)), np.einsum("ij,ij->i", X, X), np.empty(n, dtype=int)
    drawn = np.array([random_state.choice(len(X), p=np.full(len(X), 1 / len(X)))])
    nearest = np.full(len(X), np.inf)
    for step in range(n):
        left = (-2 * X[drawn]) @ X.T
        left += squares
        left += squares[drawn, None]
        np.maximum(left, 0, out=left)
        np.minimum(left, nearest, out=left)
        best = int(np.add.reduce(left, axis=1).argmin())
        chosen[step], nearest = drawn[best], left[best]
        total = nearest.cumsum()
        drawn = np.minimum(total.searchsorted(random_state.uniform(size=trials) * total[-1]), len(X) - 1)
    return X[chosen]


class DictionaryBasis(LandmarkBasis):
    """All k_ℓ(·, z_m), kernel after kernel; the energy is summed coordinate by coordinate, for kernels of any kind.

    Parameters
    ----------
    kernels : sequence of Kernel
    landmarks : ndarray of shape (p, d)
    origin : ndarray of shape (d,)
    """

    def __init__(self, kernels: Sequence[Kernel], landmarks: np.ndarray, origin: np.ndarray):
        self.kernel: Any = _Stack(kernels)
        self.kernels: tuple[Kernel, ...] = tuple(kernels)
        self.landmarks: np.ndarray = landmarks
        self.origin: np.ndarray = origin
        self.n_features: int = len(kernels) * len(landmarks)
        self.centred_landmarks: np.ndarray = landmarks - origin
        self.radial = False

    @property
    def ridges(self) -> np.ndarray:
        """W_ℓ of every kernel, with its jitter (eq:W-stab); (L, p, p)."""
        return np.stack([LandmarkBasis(kernel, self.landmarks, self.origin).ridge for kernel in self.kernels])


class _Stack(NamedTuple):
    """The kernel matrices of several kernels side by side."""

    kernels: Sequence[Kernel]

    def __call__(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return np.hstack([kernel(X, Z) for kernel in self.kernels])

    def partials(self, X: np.ndarray, Z: np.ndarray) -> Iterator[np.ndarray]:
        for parts in zip(*(kernel.partials(X, Z) for kernel in self.kernels), strict=True):
            yield np.hstack(parts)


def pair_blocks(matrices: np.ndarray, n_kernels: int) -> np.ndarray:
    """Return symmetric parts M_ℓm of ½(block ℓm + block mℓ) for all pairs ℓ ≤ m of kernels, ordered as `triu_indices`.

    `matrices` (C, L·p, L·p) hold products of the features of a `DictionaryBasis`; the result is (L(L+1)/2, C, p, p).
    With φ = Σ_ℓ β_ℓ φ_ℓ, the symmetric part of the matrix of a mixture is Σ_ℓm β_ℓβ_m M_ℓm.
    """
    c, p = matrices.shape[0], matrices.shape[1] // n_kernels
    blocks = matrices.reshape(c, n_kernels, p, n_kernels, p)
    out = np.empty((n_kernels * (n_kernels + 1) // 2, c, p, p))
    for index, (first, second) in enumerate(zip(*np.triu_indices(n_kernels), strict=True)):
        both = (blocks[:, first, :, second, :] + blocks[:, second, :, first, :]) / 2
        out[index] = (both + np.swapaxes(both, 1, 2)) / 2
    return out
