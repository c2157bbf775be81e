"""Time and memory of functions; runs alternate, so that a busy machine affects all of them equally."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

#: Threads of BLAS spin for about 30 ms after a call and would slow the next function down: wait until they sleep.
REST = 0.1


def best_times(functions: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Shortest of `repeats` run times of each function, in seconds.

    The functions alternate, so that a slow phase of the machine affects all of them. Each runs once before, untimed,
    for compilation and the start of thread pools.
    """
    for function in functions.values():
        function()
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(repeats):
        for name, function in functions.items():
            time.sleep(REST)
            start = time.perf_counter()
            function()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def peak_memory_above(prepare: str, run: str) -> float:
    """Peak of the resident memory of a fresh process while it executes `run`, in MB above its start (Linux only).

    Parameters
    ----------
    prepare, run : str
        Python statements. Memory that `prepare` holds at its end is not counted.
    """
    script = "\n".join([f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})",
                        "from benchmarks._timing import resident", prepare, "before = resident('VmRSS')", run,
                        "print(resident('VmHWM') - before)"])  # fmt: skip
    return float(subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout)


def resident(field: str) -> float:
    """VmRSS (now) or VmHWM (highest so far) of this process in MB.

    `getrusage` would not do: a new process inherits the high-water mark of its parent.
    """
    with open("/proc/self/status") as status:
        return next(float(line.split()[1]) / 1024 for line in status if line.startswith(field))
