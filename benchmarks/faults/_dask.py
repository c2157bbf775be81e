"""A search of Dask data whose workers are killed while they load blocks."""

from __future__ import annotations

import os
import signal
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

#: Rows of a block.
ROWS = 50
#: Seconds until a lost worker must be back. A local cluster gives up after 15, too early on a busy machine, and then
#: waits for its results forever.
PATIENCE = 300


def load(folder: str, at: int, X: NDArray[np.float64], block_info: Any = None) -> NDArray[np.float64]:
    """Return a block of X; the process that makes the load number `at` (0: none) is killed, once."""
    (start, stop), _ = block_info[None]["array-location"]
    (Path(folder) / f"{uuid4().hex}.load").touch()
    if at and len([*Path(folder).glob("*.load")]) >= at:
        try:
            os.close(os.open(Path(folder) / "killed", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return X[start:stop]
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.2)
    return X[start:stop]


def blocks_of(X: NDArray[np.float64], folder: Path, at: int = 0) -> Any:
    """Return X as a Dask array whose blocks are loaded by `load`."""
    import dask.array as da

    chunks = (tuple(np.diff([*range(0, len(X), ROWS), len(X)]).tolist()), (X.shape[1],))
    return da.map_blocks(load, str(folder), at, X, chunks=chunks, dtype=np.float64, meta=np.empty((0, 0)))


def lose_workers(times: int) -> Counter[str]:
    """Search `times` times, killing a worker at loads spread evenly over the search; compare with a whole search."""
    import dask
    import distributed

    from benchmarks.faults._work import X, make_search

    warnings.simplefilter("ignore")
    whole = make_search(0).fit(X)
    found: Counter[str] = Counter()
    local = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    patient = dask.config.set({"distributed.deploy.lost-worker-timeout": PATIENCE})
    with patient, distributed.Client(**local) as client, tempfile.TemporaryDirectory() as place:
        (first := Path(place) / "first").mkdir()
        make_search(0).fit(blocks_of(X, first))
        loads = len([*first.glob("*.load")])
        for number, at in enumerate(np.linspace(1, loads, times).astype(int)):
            (folder := Path(place) / str(number)).mkdir()
            client.wait_for_workers(2, timeout=PATIENCE)
            again = make_search(0).fit(blocks_of(X, folder, int(at)))
            # Sums in another order differ by rounding, which λ = 1e-3 amplifies by far less than 1e6.
            same = again.best_params_ == whole.best_params_
            same = same and np.allclose(again.timescales_, whole.timescales_, rtol=1e-9)
            found.update(tried=1, interrupted=(folder / "killed").exists(), unequal=not same)
    return found
