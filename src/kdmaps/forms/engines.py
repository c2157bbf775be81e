"""Engines of the sum over samples: the compiled loop of a basis on the CPU, or JAX on an accelerator."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from kdmaps.bases import MIN_ROWS, Basis
from kdmaps.utils.optional import optional
from kdmaps.utils.threads import n_threads

if TYPE_CHECKING:
    from kdmaps.forms.jax_loop import JaxLoop

#: Sums features over samples.
Loop: TypeAlias = "Basis | JaxLoop"
ENGINES = ("numba", "jax")
#: p×p matrices that are alive at once, in the sum (for each thread) and in the solve: counted, and tested.
MATRICES_PER_THREAD, MATRICES = 4, 10


def make_loop(basis: Basis, engine: str | None) -> Loop:
    """Return the loop that sums the features: the basis itself, or JAX if asked for or with an accelerator."""
    if engine == "numba" or (engine is None and not has_accelerator()):
        return basis
    optional("jax", "learn", "Sums with engine='jax'")
    from kdmaps.forms.jax_loop import JaxLoop

    if engine is None and not JaxLoop.supports(basis):
        return basis
    return JaxLoop(basis)


def check_engine(engine: Any, memory_limit: Any) -> None:
    """Raise a ValueError for invalid settings."""
    if engine not in (*ENGINES, None):
        raise ValueError(f"engine must be None or one of {', '.join(ENGINES)}, got {engine!r}.")
    if memory_limit is not None and (not isinstance(memory_limit, Real) or not 0 < float(memory_limit) < np.inf):
        raise ValueError(f"memory_limit must be None or a number of megabytes, got {memory_limit!r}.")


@cache
def has_accelerator() -> bool:
    """Return whether JAX would run on an accelerator; it is imported only if a plug-in for one is installed."""
    if find_spec("jax") is None or not any(map(find_spec, ("jax_plugins", "libtpu"))):
        return False
    import jax

    return jax.default_backend() != "cpu"


def chunk_rows(
    loop: Loop, n_features: int, memory_limit: float | None, kept: int = 0, row_bytes: int | None = None
) -> int:
    """Return samples per chunk for which a fit stays within `memory_limit` megabytes, all threads together.

    The limit covers chunks, accumulators, the p×p matrices of the solve and `kept` more of them.
    """
    if memory_limit is None:
        return loop.chunk_rows
    check_engine(None, memory_limit)  # the estimator's limit may have changed since the fit
    threads, row_bytes = n_threads(), loop.row_bytes if row_bytes is None else row_bytes
    fixed = 8 * n_features**2 * (max(MATRICES_PER_THREAD * threads, MATRICES) + kept)
    rows = int((float(memory_limit) * 2**20 - fixed) / (threads * row_bytes))
    if rows < MIN_ROWS:
        needed = (fixed + MIN_ROWS * threads * row_bytes) / 2**20
        raise ValueError(
            f"memory_limit={memory_limit} MB is too small{f' for {n_features} features' if n_features else ''} on "
            f"{threads} thread(s), which need {np.ceil(needed):.0f} MB; increase it, or use fewer n_features."
        )
    return min(rows, loop.chunk_rows)
