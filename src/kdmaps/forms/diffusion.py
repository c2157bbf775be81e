"""The diffusion tensor D(x) of the energy E[∇fᵀ D(x) ∇f]."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.bases import TensorRows, square_root
from kdmaps.utils.types import Index
from kdmaps.utils.validation import as_numbers

if TYPE_CHECKING:
    from kdmaps.forms.tangent import TangentSpaces


class Factor:
    """Marks an array (n, d, k) as factors F of the tensor, D = FFᵀ, since for k = d it could also be the tensor itself.

    Descriptors ξ(q) with Jacobian J = ∂ξ/∂q of a unit diffusion in q have D = JJᵀ: pass `Factor(J)`.

    Parameters
    ----------
    array : array-like of shape (n_samples, d, k)
        F at every sample.

    Examples
    --------
    A coordinate divided by two has a quarter of the diffusion, and the same rates:

    >>> import numpy as np
    >>> import kdmaps
    >>> X = kdmaps.problems.load("dw1d").sample(500, random_state=0)
    >>> m = kdmaps.KernelDiffusionMap(1, random_state=0).fit(X)
    >>> half = kdmaps.KernelDiffusionMap(1, diffusion=kdmaps.Factor(np.full((500, 1, 1), 0.5)), random_state=0)
    >>> bool(np.isclose(half.fit(X / 2).rates_, m.rates_).all())
    True
    """

    def __init__(self, array: ArrayLike):
        self.array: np.ndarray = np.asarray(array, dtype=np.float64)
        if self.array.ndim != 3:
            raise ValueError(f"A diffusion factor must have shape (n_samples, d, k), got {self.array.shape}.")


#: Numbers per block of tensors, for a digest.
CONTENT_NUMBERS = 2**20
#: Argument of `DiffusionTensor`.
TensorLike: TypeAlias = ArrayLike | Callable[[np.ndarray], Any] | Factor | None


class DiffusionTensor:
    """A validated diffusion tensor: constant (the energy then keeps its one-Gram cost) or given per sample.

    In general D(x) = C ± F(x)F(x)ᵀ with a constant part C (`constant`; a number is a multiple of the identity, None is
    0), the factor F of `rows` and the sign `sign`; only tangent spaces (`kdmaps.forms.tangent`) have both parts.
    `value` is the `diffusion` of estimators: None (the identity), a number, (d,) diagonal or (d, d) matrix; per sample
    (n, d, d), (n, d, k), a `Factor`, or a callable that maps samples (n, d) to such an array, to (n,) scalars or to
    (n, d) diagonals.
    """

    sign: float = 1.0
    spaces: TangentSpaces | None = None  #: Tangent spaces that the tensor projects on.

    def __init__(self, value: TensorLike, dim: int):
        self.dim = dim
        self.constant: np.ndarray | None = None
        self._value: Any = None
        if value is None:
            self.constant = np.array(1.0)
        elif callable(value) or isinstance(value, Factor):
            self._value = value
        else:
            array = as_numbers("diffusion", value, "None, a number, an array or a callable")
            if array.ndim == 3:
                self._value = array
            else:
                self.constant = self._constant_matrix(array)

    def _constant_matrix(self, array: np.ndarray) -> np.ndarray:
        dim = self.dim
        if array.ndim == 0 and 0 < array < np.inf:
            return array
        if array.ndim == 0:
            array = np.full(dim, float(array))
        if array.shape == (dim,):
            array = np.diag(array)
        if array.shape != (dim, dim):
            raise ValueError(
                f"diffusion of shape {array.shape} does not fit X with {dim} columns; a constant tensor is a number, "
                f"({dim},) or ({dim}, {dim}), a tensor per sample is (n_samples, {dim}, {dim}) or a factor."
            )
        if not np.all(np.isfinite(array)) or not np.allclose(array, array.T, rtol=1e-8, atol=0):
            raise ValueError("diffusion must be a finite symmetric matrix.")
        array = (array + array.T) / 2
        eigenvalues = np.linalg.eigvalsh(array)
        if eigenvalues[-1] <= 0 or eigenvalues[0] < -1e-10 * eigenvalues[-1]:
            raise ValueError("diffusion must be positive semidefinite and not zero.")
        return array[0, 0] if np.array_equal(array, array[0, 0] * np.eye(dim)) else array

    @property
    def per_sample(self) -> bool:
        """True if the tensor is an array with one entry per training sample, undefined at other points."""
        return self.constant is None and not callable(self._value)

    def check_rows(self, n_samples: int) -> None:
        """Raise unless an array given per sample has `n_samples` entries."""
        if self.per_sample:
            array = self._value.array if isinstance(self._value, Factor) else self._value
            if array.shape[1] != self.dim:
                raise ValueError(
                    f"diffusion per sample must have shape ({n_samples}, {self.dim}, {self.dim}), or ({n_samples}, "
                    f"{self.dim}, k) for a factor, got {array.shape}."
                )
            if array.shape[0] != n_samples:
                raise ValueError(
                    f"diffusion holds {array.shape[0]} tensors but X has {n_samples} samples; pass one tensor per "
                    "sample with these samples, or a callable."
                )

    def part(self, index: slice) -> DiffusionTensor:
        """Return the tensor of these rows of X alone."""
        if not self.per_sample:
            return self
        value = self._value
        return DiffusionTensor(Factor(value.array[index]) if isinstance(value, Factor) else value[index], self.dim)

    def at(self, X: np.ndarray, index: Index) -> DiffusionTensor:
        """Return the tensor of the samples `X`, which are rows `index` of the whole array, for many passes over X."""
        factor = None if self.constant is not None else self.rows(X, index).factor
        return self if factor is None else DiffusionTensor(Factor(factor), self.dim)

    def rows(self, X: np.ndarray, index: Index) -> TensorRows:
        """Return the tensor at the samples `X`, which are rows `index` of the whole array."""
        if self.constant is not None:
            return TensorRows()
        # A user's function gets a view that it cannot change.
        value = self._value(np.broadcast_to(X, X.shape)) if callable(self._value) else self._value
        factored = isinstance(value, Factor)
        array = np.asarray(value.array if factored else value, dtype=np.float64)
        array = array if callable(self._value) else array[index]
        n, dim = X.shape
        if array.shape[:1] != (n,) or array.shape[1:2] not in ((), (dim,)) or array.ndim > 3:
            raise ValueError(
                f"diffusion per sample must have shape ({n},), ({n}, {dim}), ({n}, {dim}, {dim}) or ({n}, {dim}, k) "
                f"for {n} samples, got {array.shape}."
            )
        if not np.all(np.isfinite(array)):
            raise ValueError("diffusion holds NaN or infinity.")
        if array.ndim < 3:
            if np.any(array < 0):
                raise ValueError("diffusion must be positive semidefinite: it holds negative values.")
            if array.ndim == 1:
                return TensorRows(scalar=array)
            return TensorRows(factor=np.sqrt(array)[:, :, None] * np.eye(dim))
        if factored or array.shape[2] != dim:
            return TensorRows(factor=array)
        if not np.allclose(array, np.swapaxes(array, 1, 2), rtol=1e-8, atol=1e-12):
            raise ValueError("diffusion must be symmetric at every sample; wrap a factor (n, d, d) in kdmaps.Factor.")
        return TensorRows(factor=square_root(array, tolerance=1e-10))

    def content(self, X: np.ndarray, index: np.ndarray) -> Iterator[np.ndarray]:
        """Yield arrays that identify this tensor: its values at the samples, block by block."""
        if self.constant is not None:
            yield self.constant
            return
        rows = max(1, CONTENT_NUMBERS // self.dim**2)
        for begin in range(0, len(X), rows):
            part = slice(begin, begin + rows)
            values = self.rows(np.asarray(X[part], dtype=np.float64), index[part])
            yield from (array for array in values if array is not None)


def mean_diffusion(tensor: DiffusionTensor, X: np.ndarray, index: Index) -> float:
    """Return E tr D(x)/d over the samples `X`, which are rows `index` of the whole array."""
    scalar, factor = tensor.rows(X, index)
    constant = 0.0 if tensor.constant is None else tensor.constant
    trace = float(np.trace(constant) if np.ndim(constant) else tensor.dim * constant)
    if scalar is not None:
        trace += tensor.dim * float(np.mean(scalar))
    if factor is not None:
        trace += tensor.sign * float(np.sum(factor**2)) / len(X)
    return trace / tensor.dim


def is_per_sample(diffusion: Any) -> bool:
    """Return whether an estimator's argument holds one tensor per sample, for these samples only."""
    if diffusion is None or callable(diffusion) or isinstance(diffusion, str):
        return False
    return isinstance(diffusion, Factor) or np.ndim(diffusion) == 3
