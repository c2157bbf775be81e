"""Blocks of consecutive samples that are approximately independent of one another."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import ceil
from numbers import Integral

import numpy as np

from kdmaps.bases import Basis
from kdmaps.data.correlation import integrated_correlation_time
from kdmaps.exceptions import UnreliableModesWarning
from kdmaps.utils.warn import warn

#: Largest number of blocks by default. B blocks give a standard error to a relative accuracy of about 1/√(2B); more of
#: them cost memory and time without a visible improvement of the intervals.
MAX_BLOCKS = 50
#: With fewer blocks the intervals are unreliable.
MIN_BLOCKS = 10
#: Memory in bytes for the moments of all blocks; many features mean fewer blocks (but not below twice MIN_BLOCKS).
BLOCK_BYTES = 2**28
#: Number of integrated correlation times g = 1 + 2 Σ |ρ_t| in a block. For ρ_t = e^{-t/τ}, g ≈ 2τ and the variance
#: between blocks of length b underestimates the true one by a relative τ/b = 1/10.
CORRELATION_TIMES_PER_BLOCK = 5


def independent_blocks(
    modes: np.ndarray, weight: np.ndarray | None, trajectories: Sequence[np.ndarray], block_length: int | str, most: int
) -> tuple[list[np.ndarray], int, float]:
    """Return approximately independent blocks of samples, their length and the correlation time used."""
    n = len(modes)
    # Weights that vary from sample to sample lower the correlations, but not the time over which samples are dependent;
    # correlated weights add to it.
    weighted = iter(()) if weight is None else (weight * series for series in modes.T)
    correlation_time = max(integrated_correlation_time(series, trajectories) for series in chain(modes.T, weighted))
    length = _block_length(block_length, most, correlation_time, n)
    blocks = cut_blocks(trajectories, length)
    if len(blocks) < 2:
        raise ValueError(
            f"block_length={length} leaves {len(blocks)} block of {n} samples; pass a smaller block_length."
        )
    if len(blocks) < MIN_BLOCKS:
        warn(
            f"The samples form only {len(blocks)} blocks of {length}: too few for reliable intervals, which are "
            "probably too narrow. Use more samples, of a longer trajectory if they are frames.",
            UnreliableModesWarning,
        )
    return blocks, length, correlation_time


def cut_blocks(trajectories: Sequence[np.ndarray], length: int) -> list[np.ndarray]:
    """Cut trajectories into blocks of at least `length` consecutive samples; shorter trajectories are joined."""
    blocks: list[np.ndarray] = []
    gathered: list[np.ndarray] = []
    for rows in trajectories:
        for piece in np.array_split(rows, max(1, len(rows) // length)):
            gathered.append(piece)
            if sum(map(len, gathered)) >= length:
                blocks.append(gathered[0] if len(gathered) == 1 else np.concatenate(gathered))
                gathered = []
    if gathered:
        blocks[-1:] = [np.concatenate([*blocks[-1:], *gathered])]
    return blocks


def most_blocks(basis: Basis) -> int:
    """Return how many blocks fit into memory, at most the number that is worth it."""
    fitting = BLOCK_BYTES // (8 * basis.n_features * (basis.n_features + 1))
    return min(MAX_BLOCKS, max(2 * MIN_BLOCKS, fitting))


def _block_length(block_length: int | str, max_blocks: int, correlation_time: float, n_samples: int) -> int:
    least = ceil(n_samples / max_blocks)
    if isinstance(block_length, str) and block_length == "auto":
        wanted = ceil(CORRELATION_TIMES_PER_BLOCK * correlation_time)
        longest = n_samples // MIN_BLOCKS
        if wanted > longest:
            warn(
                f"The modes have a correlation time of {correlation_time:.0f} samples, too long for {n_samples} "
                "samples: the intervals are probably too narrow. Use a longer trajectory.",
                UnreliableModesWarning,
            )
        return max(1, least, min(wanted, longest))
    if not isinstance(block_length, Integral) or block_length < 1:
        raise ValueError(f'block_length must be "auto" or a positive integer, got {block_length!r}.')
    return max(int(block_length), least)
