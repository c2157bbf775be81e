"""The sum over samples in JAX, on its default device: for accelerators, and as a reference of the CPU loop.

Every function here is the chunk step of a basis in whole-array operations; the formulas are in the docstrings of
`FourierBasis` and `LandmarkBasis`.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from kdmaps.bases import MIN_ROWS, Basis, FourierBasis, LandmarkBasis, Sums, TensorRows
from kdmaps.kernels import Kernel

#: Bytes of features per chunk: accelerators need long products.
CHUNK_BYTES = 64 * 2**20


class JaxLoop:
    """The sum over samples of a basis on JAX's default device, accumulated in float64."""

    def __init__(self, basis: Basis):
        if not self.supports(basis):
            raise ValueError(
                f"engine='jax' needs Fourier features or a smooth radial kernel, not {basis.kernel!r} at landmarks; "
                "use engine='numba'."
            )
        self.basis = basis
        self.row_bytes: int = 2 * basis.row_bytes
        self.chunk_rows: int = max(MIN_ROWS, CHUNK_BYTES // (basis.dtype.itemsize * basis.n_features))

    @staticmethod
    def supports(basis: Basis) -> bool:
        """Return whether there is a chunk step for this basis."""
        return isinstance(basis, FourierBasis) or (isinstance(basis, LandmarkBasis) and basis.radial)

    def start(self, rows: int, n_samples: int | None = None) -> dict[str, Any]:
        """Return an accumulator without sums."""
        return {"rows": rows, "sums": None}

    def step(
        self, state: dict[str, Any], X: np.ndarray, root_weight: np.ndarray, tensor: TensorRows, constant: Any
    ) -> None:
        """Add a chunk, without waiting for the device."""
        # Samples of weight 0 fill the last chunk: all chunks have one shape, for which the code is compiled once.
        missing = state["rows"] - X.shape[0]

        def padded(a: np.ndarray | None) -> np.ndarray | None:
            return None if a is None else np.pad(a, [(0, missing)] + [(0, 0)] * (a.ndim - 1))

        rows = map(padded, (X - self.basis.origin, root_weight, tensor.scalar, tensor.factor))
        with jax.enable_x64(True), jax.default_matmul_precision("highest"):
            if isinstance(self.basis, FourierBasis):
                sums = _fourier(*rows, self.basis.frequencies, str(self.basis.dtype))
            elif isinstance(self.basis, LandmarkBasis):
                z, kernel, metric = self.basis.centred_landmarks, self.basis.kernel, self.basis.metric(constant)[0]
                sums = _landmarks(*rows, z, metric, kernel, constant is not None)
            state["sums"] = sums if state["sums"] is None else jax.tree.map(jnp.add, state["sums"], sums)

    def finish(self, states: list[Any], constant: np.ndarray | None, sign: float) -> Sums:
        """Return the sums, turned into moments by the basis."""
        state = self.basis.start(0)
        for name, value in (states[0]["sums"] or {}).items():
            setattr(state, name, np.array(value, dtype=np.float64))
        return self.basis.finish([state], constant, sign)


def _gram(A: jax.Array) -> jax.Array:
    """AᵀA in the type of A, as float64."""
    return (A.T @ A).astype(jnp.float64)


@partial(jax.jit, static_argnames="dtype")
def _fourier(Y: Any, root: Any, scalar: Any, factor: Any, frequencies: Any, dtype: str) -> dict[str, Any]:
    Y, root, frequencies = (jnp.asarray(a, dtype) for a in (Y, root, frequencies))
    angles = Y @ frequencies.T
    cosines, sines = jnp.cos(angles) * root[:, None], jnp.sin(angles) * root[:, None]
    single = dtype == "float32"
    shifted = -2 * jnp.sin(angles / 2) ** 2 * root[:, None] if single else cosines  # cos - 1
    waves = jnp.hstack([shifted, sines])
    sums = {"total": (root @ waves).astype(jnp.float64), "gram": _gram(waves), "weight": _gram(root)}
    if scalar is not None:
        sums["scaled"] = _gram(jnp.hstack([cosines, sines]) * jnp.sqrt(scalar).astype(dtype)[:, None])
    if factor is not None:
        along = jnp.einsum("ndk,qd->knq", factor.astype(dtype), frequencies)
        sums["energy"] = sum(_gram(jnp.hstack([-a * sines, a * cosines])) for a in along)
    return sums


@partial(jax.jit, static_argnames=("kernel", "has_constant"))
def _landmarks(
    Y: Any, root: Any, scalar: Any, factor: Any, landmarks: Any, metric: Any, kernel: Kernel, has_constant: bool
) -> dict[str, Any]:
    y, zeta = kernel.coordinates(Y), kernel.coordinates(landmarks)
    s = _squared_distances(y, zeta)
    values = kernel.profile(s) * root[:, None]
    slopes = 2 * kernel.profile(s, 1) * root[:, None]
    sums = {"total": root @ values, "gram": _gram(values)}
    if factor is not None:
        directions = kernel.coordinates(jnp.moveaxis(factor, 2, 0))
        along = jnp.einsum("nd,knd->kn", y, directions)[:, :, None] - jnp.einsum("knd,md->knm", directions, zeta)
        sums["directed"] = sum(_gram(slopes * a) for a in along)
        if not has_constant:
            return sums
    if scalar is not None:
        slopes = slopes * jnp.sqrt(scalar)[:, None]
    elif kernel.log_slope is not None:
        slopes = values  # as in LandmarkBasis: g is a multiple of φ
    if jnp.ndim(metric) == 0:
        weighted = s  # `finish` multiplies by a metric that is a number
    else:
        weighted = _squared_distances(*(a @ metric if jnp.ndim(metric) == 2 else a * metric for a in (y, zeta)))
    sums["slopes"] = _gram(slopes)
    sums["cross"] = (slopes * weighted).T @ slopes
    return sums


def _squared_distances(A: jax.Array, B: jax.Array) -> jax.Array:
    s = jnp.sum(A * A, axis=1)[:, None] + jnp.sum(B * B, axis=1) - 2 * A @ B.T
    return jnp.maximum(s, 0)
