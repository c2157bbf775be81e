"""Settings of the whole process."""

import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

from kdmaps import KernelSearchCV
from silent.case import SMALL, case, dw


def overlap(fit: Callable[[Callable[[], None]], object], inside: Callable[[], object]) -> None:
    """Fit in two threads: the second enters the state that `inside` reports during the first, and leaves it later."""
    entered, ended = [threading.Event(), threading.Event()], threading.Event()

    def run(number: int) -> None:
        before = inside()

        def wait() -> None:
            if inside() is not before or before is None:
                entered[number].set()
                (ended if number else entered[1]).wait(20)

        fit(wait)
        entered[number].set()
        if not number:
            ended.set()

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(run, 0)
        entered[0].wait(60)
        second = pool.submit(run, 1)
        for each in (first, second):
            each.result()


@case(11, "", "tests/utils/test_threads.py")
def filters() -> tuple[str, bool]:
    """Two searches in threads: warning filters afterwards."""

    def fit(wait: Callable[[], None]) -> None:
        def diffusion(x: np.ndarray) -> np.ndarray:
            wait()
            return np.ones(len(x))

        KernelSearchCV(1, **SMALL, regularizations=[1e-3], diffusion=diffusion).fit(dw())

    before = list(warnings.filters)
    overlap(fit, lambda: warnings.filters)
    more = [entry for entry in warnings.filters if entry not in before]
    return f"{len(more)} filter{'s' * (len(more) != 1)} more", not more


def blas_left() -> int:
    """Return the number of BLAS threads after two overlapping searches."""

    def fit(wait: Callable[[], None]) -> None:
        def scoring(fold: Any) -> float:
            wait()
            return float(fold.regularization)

        KernelSearchCV(1, **SMALL, regularizations=[1e-3], scoring=scoring, n_jobs=2).fit(dw())

    overlap(fit, lambda: None)
    return min(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")


@case(12, "", "tests/utils/test_threads.py")
def blas() -> tuple[str, bool]:
    """Two searches in threads: BLAS threads afterwards, of 2."""
    # In a new process, which starts with two threads.
    code = "from silent.threads import blas_left; print(blas_left())"
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    arguments = {"cwd": Path(__file__).parents[1], "env": environment, "capture_output": True, "check": True}
    left = int(subprocess.run([sys.executable, "-c", code], **arguments).stdout)
    return f"{left}", left == 2
