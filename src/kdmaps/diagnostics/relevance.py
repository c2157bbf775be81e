"""Relevance of inputs, and of combinations of inputs, from averaged products of the modes' gradients."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.bases import Basis, FourierBasis, ModeBasis
from kdmaps.data.inputs import as_source, check_columns, join_trajectories
from kdmaps.spectrum.modes import Modes
from kdmaps.utils.fitted import model_and_samples
from kdmaps.utils.frames import aligned, column_names
from kdmaps.utils.threads import map_reduce, one_blas_thread, slices
from kdmaps.utils.types import RandomStateLike, SamplesLike
from kdmaps.utils.validation import checked_random_state, checked_weight, unit_weight

#: Maximum number of samples over which gradients are averaged: shares are then accurate to about 1/√2,000 = 2 %.
SAMPLES = 2_000
#: Combinations are kept until they explain this share, up to LEADING of them.
EXPLAINED, LEADING = 0.99, 10
#: Number of inputs listed in the text of a result; the others are summed.
LISTED = 10
#: Bytes of the gradients of a block of samples.
BLOCK_BYTES = 2**24


@dataclass(frozen=True)
class Relevance:
    """Dependence of modes on each input."""

    names: tuple[str, ...]  #: The d inputs.
    #: (r, d): share_kj = E[(∂_jφ_k)²] Var(x_j) / Σ_i E[(∂_iφ_k)²] Var(x_i), the share of input j in the gradients of
    #: mode k. Rows sum to 1.
    shares: np.ndarray
    overall: np.ndarray  #: (d,): mean of the shares over the modes.
    #: (d, m): F with FFᵀ = M = E Σ_k ∇φ_k ∇φ_kᵀ/rate_k, in the units of the inputs. With a unit diffusion E|∇φ_k|² =
    #: rate_k: every mode counts the same.
    factor: np.ndarray
    scales: np.ndarray  #: (d,): standard deviations of the inputs.
    #: (m, d): leading unit eigenvectors u of DMD, D = diag(scales), in rows: the modes change most along Σ_j u_j
    #: x_j/scale_j.
    combinations: np.ndarray
    combination_shares: np.ndarray  #: (m,): their eigenvalues divided by the trace.

    @property
    def matrix(self) -> np.ndarray:
        """M, of shape (d, d)."""
        return self.factor @ self.factor.T

    def __repr__(self) -> str:
        order = np.argsort(-self.overall, kind="stable")
        shown, rest = order[:LISTED], order[LISTED:]
        r = len(self.shares)
        lines = [["input", *(f"mode {k + 1}" for k in range(r)), "mean"]]
        parts = [(self.names[j], [*self.shares[:, j], self.overall[j]]) for j in shown]
        if len(rest):
            others = f"{len(rest)} other{'s' if len(rest) > 1 else ''}"
            parts.append((others, [*self.shares[:, rest].sum(axis=1), self.overall[rest].sum()]))
        lines += [[name, *(f"{share:.1%}" for share in shares)] for name, shares in parts]
        leading = ", ".join(f"{share:.1%}" for share in self.combination_shares)
        title = f"Shares of {len(self.names)} inputs in {r} mode{'s' if r > 1 else ''}"
        return "\n".join([title, *aligned(lines), f"leading combinations of inputs: {leading} of all modes"])


@one_blas_thread()
def relevance(
    model: Any, X: SamplesLike, sample_weight: ArrayLike | None = None, *, random_state: RandomStateLike = 0
) -> Relevance:
    """Find the inputs, and the combinations of inputs, that the modes of a fitted model depend on.

    The share of input j in mode k is E[(∂_jφ_k)²] Var(x_j), normalised over the inputs. The derivative alone would
    depend on the unit of x_j; multiplied by the variance it is the change of the mode over the range of x_j.

    Parameters
    ----------
    model : fitted estimator
    X : array-like of shape (n_samples, d), or anything that `kdmaps.data.as_source` takes
        Samples of the stationary distribution, of which at most 2,000 are drawn.
    sample_weight : array-like of shape (n_samples,), optional
        Weights with which X represents the stationary distribution.
    random_state : int, RandomState instance or None, default=0

    Notes
    -----
    For correlated inputs, the division of their common part is arbitrary: two copies of an input have half of its share
    each. The combinations show such inputs together. On a curved surface, derivatives normal to it are included.

    Examples
    --------
    A double well in the first of two coordinates; the second one is noise:

    >>> import kdmaps
    >>> X = kdmaps.problems.load("dw1d+1x0.5").sample(1000, random_state=0)
    >>> found = kdmaps.relevance(kdmaps.KernelDiffusionMap(1, bandwidth=1.5, random_state=0).fit(X), X)
    >>> found.names
    ('x1', 'x2')
    >>> bool(found.overall[0] > 0.9)
    True
    """
    model, X = model_and_samples(model, X)
    joined = join_trajectories(X)[0]
    source = as_source(joined)
    if source.feature_names is None:
        source.feature_names = column_names(joined)
    check_columns(model, source, reset=False)
    weight = checked_weight(sample_weight, source)
    drawn = source.sample(SAMPLES, checked_random_state(random_state), weight)
    return relevance_at(model.basis_, model.modes_, drawn.X, drawn.weight, getattr(model, "feature_names_in_", None))


def relevance_at(
    basis: Basis,
    modes: Modes,
    X: np.ndarray,
    weight: np.ndarray | None,
    names: Sequence[str] | None = None,
    span: np.ndarray | None = None,
) -> Relevance:
    """Return the relevance of the inputs, averaged over all of these samples.

    X may be in coordinates of a `span`, orthonormal columns in the space of the inputs.
    """
    weight = unit_weight(weight, len(X))
    points = np.asarray(X, dtype=np.float64)
    deviations = points - weight @ points
    scales = np.sqrt(weight @ (deviations if span is None else deviations @ span.T) ** 2)
    products, frame = gradient_products(ModeBasis(basis, modes.coefficients, modes.offset), points, weight)
    if span is not None:
        frame = span if frame is None else span @ frame
    values, vectors = np.linalg.eigh(metric_matrix(products, modes))
    factor = (vectors if frame is None else frame @ vectors) * np.sqrt(np.maximum(values, 0))
    if frame is None:
        squares = np.diagonal(products, axis1=1, axis2=2)
    else:
        squares = np.stack([np.einsum("jm,jm->j", frame @ own, frame) for own in products])
    shares = _normalised(squares * scales**2)
    rows, lengths, _ = np.linalg.svd(scales[:, None] * factor, full_matrices=False)
    parts = _normalised(lengths**2)
    kept = min(int(np.searchsorted(np.cumsum(parts), EXPLAINED)) + 1, LEADING, len(parts))
    rows = rows.T[:kept]
    largest = np.take_along_axis(rows, np.argmax(np.abs(rows), axis=1)[:, None], axis=1)
    return Relevance(
        names=tuple(f"x{j + 1}" for j in range(len(scales))) if names is None else tuple(map(str, names)),
        shares=shares,
        overall=shares.mean(axis=0),
        factor=factor,
        scales=scales,
        combinations=rows * np.where(largest < 0, -1.0, 1.0),
        combination_shares=parts[:kept],
    )


def gradient_products(modes: ModeBasis, X: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return E ∇φ_k ∇φ_kᵀ of every mode, shape (r, m, m), with weights of sum 1, and coordinates that span gradients.

    The coordinates are orthonormal columns (d, m): the span of fewer frequencies than inputs; None are the inputs.
    """
    r, identity, basis = modes.n_features, np.eye(modes.n_features), modes.basis
    spanned = isinstance(basis, FourierBasis) and len(basis.frequencies) < X.shape[1]
    m = len(basis.frequencies) if spanned else X.shape[1]  # type: ignore[attr-defined]

    def step(sums: np.ndarray, part: slice) -> None:
        slopes = basis.slopes(X[part], modes.coefficients) if spanned else modes.gradient(X[part], identity)  # type: ignore[attr-defined]
        for k, own in enumerate(np.swapaxes(slopes * np.sqrt(weight[part])[:, None, None], 0, 1)):
            own = np.ascontiguousarray(own)
            sums[k] += own.T @ own

    rows = max(1, min(modes.chunk_rows, BLOCK_BYTES // (8 * r * m)))
    products = sum(map_reduce(list(slices(len(X), rows)), lambda: np.zeros((r, m, m)), step))
    if not spanned:
        return products, None
    frame, directions = np.linalg.qr(basis.frequencies.T)  # type: ignore[attr-defined]
    return directions @ products @ directions.T, frame


def metric_matrix(products: np.ndarray, modes: Modes) -> np.ndarray:
    """Return M = Σ_k E ∇φ_k ∇φ_kᵀ/rate_k; modes of pairs, whose rates have another unit, add 1 to its trace."""
    rates = modes.rates if modes.clock.lag is None else np.trace(products, axis1=1, axis2=2)
    per_rate = np.divide(1, rates, out=np.zeros_like(rates), where=rates > 0)  # the gradient is 0 if the rate is 0
    return np.einsum("kij,k->ij", products, per_rate)


def _normalised(parts: np.ndarray) -> np.ndarray:
    """Divide rows by their sums; rows of zeros stay zero."""
    total = parts.sum(axis=-1, keepdims=True)
    return parts / np.where(total > 0, total, 1)
