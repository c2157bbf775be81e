"""Committors and mean first passage times by the dynamical Galerkin approximation.

Both solve E[u(x_σ) + h·σ | x] = u(x) outside of sets, where u is known, for a pair of frames that is stopped: σ is the
lag, or the first time at which the path is in one of the sets, if that is earlier. So u = Σ_i c_i φ_i outside of the
sets has
    Σ_i ⟨φ_j(x), φ_i(x) - φ_i(x_σ)⟩ c_i = ⟨φ_j(x), u(x_σ) + h·σ⟩,
where φ_i = 0 in the sets, and u(x_σ) on the right only counts where the path has ended in one. Only what happens after
x matters: frames need not be in equilibrium. Thiede, Giannakis, Dinner and Weare, J. Chem. Phys. 150, 244111 (2019);
stopped pairs: Strahan et al., J. Chem. Theory Comput. 17, 2948 (2021).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kdmaps.diagnostics.projection import Projection

#: Combinations of functions with a smaller part of the variance outside of the sets are left out.
RANK_TOLERANCE = 1e-5


@dataclass(frozen=True)
class System:
    """The sums of every block: ⟨φφᵀ⟩, ⟨φ(x)(φ(x) - φ(x_σ))ᵀ⟩ and ⟨φ(x)·gain⟩.

    Attributes
    ----------
    functions : ndarray of shape (n_frames, q)
        The constant and the functions of the model, 0 in the sets.
    gram, change : ndarray of shape (n_blocks, q, q)
    gain : ndarray of shape (n_blocks, q)
    """

    functions: np.ndarray
    gram: np.ndarray
    change: np.ndarray
    gain: np.ndarray

    def solve(self, counts: np.ndarray) -> np.ndarray:
        """Return c, with block b counted `counts[b]` times; NaN where the sets cannot be reached."""
        gram, change, gain = (np.tensordot(counts, part, axes=1) for part in (self.gram, self.change, self.gain))
        values, vectors = np.linalg.eigh(gram)
        kept = values > RANK_TOLERANCE * values[-1]
        frame = vectors[:, kept] / np.sqrt(values[kept])
        try:
            return frame @ np.linalg.solve(frame.T @ change @ frame, frame.T @ gain)
        except np.linalg.LinAlgError:
            return np.full(len(gain), np.nan)


def stopped_system(along: Projection, boundary: np.ndarray, arrived: np.ndarray, per_frame: float) -> System:
    """Sum over the pairs that begin outside of the sets.

    Parameters
    ----------
    along : Projection
    boundary : ndarray of bool of shape (n_frames,)
        Which frames are in one of the sets.
    arrived : ndarray of shape (n_frames,)
        u in the sets.
    per_frame : float
        h times the time step.
    """
    n = len(boundary)
    outside = ~boundary
    functions = np.column_stack([np.ones(n), along.values]) * outside[:, None]
    # The first frame from each one on that is in a set; n if there is none.
    entered = np.minimum.accumulate(np.where(boundary, np.arange(n), n)[::-1])[::-1]
    sums = []
    for block in along.blocks:
        starts, ends = (np.arange(n)[rows] for rows in along.pairs(along.lag, block))
        begin = outside[starts]
        starts, ends = starts[begin], np.minimum(ends[begin], entered[starts[begin]])
        here = functions[starts]
        gain = np.where(boundary[ends], arrived[ends], 0.0) + per_frame * (ends - starts)
        sums.append((here.T @ here, here.T @ (here - functions[ends]), here.T @ gain))
    gram, change, gain = (np.array(part) for part in zip(*sums, strict=True))
    return System(functions, gram, change, gain)
