"""Size of the chunks that samples are summed in, for a limit on memory."""

from numbers import Real
from typing import Any

import numpy as np

from kdmaps.bases import MIN_ROWS, Basis
from kdmaps.utils.threads import n_threads

#: p×p matrices that are alive at once, in the sum (for each thread) and in the solve: counted, and tested.
MATRICES_PER_THREAD, MATRICES = 4, 10


def check_memory_limit(memory_limit: Any) -> None:
    """Raise a ValueError unless the limit is None or a positive number."""
    if memory_limit is not None and (not isinstance(memory_limit, Real) or not 0 < float(memory_limit) < np.inf):
        raise ValueError(f"memory_limit must be None or a number of megabytes, got {memory_limit!r}.")


def chunk_rows(
    basis: Basis, n_features: int, memory_limit: float | None, kept: int = 0, row_bytes: int | None = None
) -> int:
    """Return samples per chunk for which a fit stays within `memory_limit` megabytes, all threads together.

    The limit covers chunks, accumulators, the p×p matrices of the solve and `kept` more of them.
    """
    if memory_limit is None:
        return basis.chunk_rows
    check_memory_limit(memory_limit)  # the estimator's limit may have changed since the fit
    threads, row_bytes = n_threads(), basis.row_bytes if row_bytes is None else row_bytes
    fixed = 8 * n_features**2 * (max(MATRICES_PER_THREAD * threads, MATRICES) + kept)
    rows = int((float(memory_limit) * 2**20 - fixed) / (threads * row_bytes))
    if rows < MIN_ROWS:
        needed = (fixed + MIN_ROWS * threads * row_bytes) / 2**20
        raise ValueError(
            f"memory_limit={memory_limit} MB is too small{f' for {n_features} features' if n_features else ''} on "
            f"{threads} thread(s), which need {np.ceil(needed):.0f} MB; increase it, or use fewer n_features."
        )
    return min(rows, basis.chunk_rows)
