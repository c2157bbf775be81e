"""The energy form: variance against Dirichlet energy, for samples in any order.

A form defines the sums over samples and their meaning. This one sums features φ and their gradients: with the
covariance Σ = E φφᵀ - E φ E φᵀ and the energy L = E ∇φ D ∇φᵀ for a diffusion tensor D, the eigenvalues μ of
Σa = μ(L+λR)a are the relaxation times of the generator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kdmaps.bases import MIN_ROWS, Basis
from kdmaps.data.sources import ArraySource, Source, weights_at
from kdmaps.forms.diffusion import DiffusionTensor
from kdmaps.forms.moments import Moments, MomentsForm, chunk_rows
from kdmaps.forms.tangent import TangentSpaces
from kdmaps.utils.threads import map_reduce
from kdmaps.utils.types import Index


@dataclass(frozen=True)
class EnergyForm(MomentsForm):
    """Sums of features and of their energies."""

    tensor: DiffusionTensor  #: The diffusion tensor D at the samples of one source.

    @property
    def spaces(self) -> TangentSpaces | None:
        """The tangent spaces that the tensor projects on, if any."""
        return self.tensor.spaces

    def part(self, rows: slice) -> EnergyForm:
        """Return the form of these rows of the source alone."""
        tensor = self.tensor.part(rows)
        return self if tensor is self.tensor else EnergyForm(tensor)

    def at(self, X: np.ndarray, rows: Index) -> EnergyForm:
        """Return the form of the samples X, which are these rows of the source, for many passes over X."""
        return EnergyForm(self.tensor.at(X, rows))

    def moments(
        self,
        basis: Basis,
        source: Source,
        sample_weight: np.ndarray | None = None,
        rows: np.ndarray | None = None,
        *,
        memory_limit: float | None = None,
        kept: int = 0,
    ) -> Moments:
        """Sum over the samples of a source, in chunks over all cores; no array is larger than a chunk.

        Parameters
        ----------
        basis : Basis
        source : Source
            In this process; `Source.moments` works for all sources.
        sample_weight : ndarray of shape (n_samples,), optional
        rows : ndarray of int, optional
            Only these samples, of an array.
        memory_limit : float, optional
            Megabytes, as in `kdmaps.forms.moments.chunk_rows`.
        kept : int, default=0
            Number of additional p×p matrices that count towards the limit.
        """
        tensor = self.tensor

        def step(state: Any, part: Any) -> None:
            index, chunk = source.read(part)
            chunk = np.asarray(chunk, dtype=np.float64)
            weight = np.ones(chunk.shape[0]) if sample_weight is None else weights_at(sample_weight, index)
            basis.step(state, chunk, np.sqrt(weight), tensor.rows(chunk, index), tensor.constant)

        size = chunk_rows(basis, basis.n_features, memory_limit, kept)
        known = source.n_samples if rows is None else len(rows)
        if known is not None:
            size = min(size, max(MIN_ROWS, known))
        states = map_reduce(source.parts(size, rows), lambda: basis.start(size, source.n_samples), step)
        n = len(rows) if rows is not None else source.n_samples or 0
        weight, squared = float(n), float(n)
        if sample_weight is not None:
            weights = sample_weight if rows is None else sample_weight[rows]
            if len(weights) != n:
                raise ValueError(f"sample_weight has {len(weights)} entries, but X has {n} samples.")
            weight, squared = float(weights.sum()), float(weights @ weights)
        return Moments(n, weight, squared, *basis.finish(states, tensor.constant, tensor.sign))


def compute_moments(
    basis: Basis,
    X: np.ndarray | Source,
    sample_weight: np.ndarray | None = None,
    diffusion: DiffusionTensor | None = None,
    rows: np.ndarray | None = None,
    **options: Any,
) -> Moments:
    """Return `EnergyForm.moments` of an array or a source, with the identity as the default diffusion tensor."""
    source = X if isinstance(X, Source) else ArraySource(X, checked=True)
    form = EnergyForm(DiffusionTensor(None, basis.dim) if diffusion is None else diffusion)
    return form.moments(basis, source, sample_weight, rows, **options)
