"""One rival on one sample in a separate process, with a limit on time and memory.

The process runs this module, which writes its measurement, or an error message, to a file.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._timing import resident
from benchmarks.rivals._methods import RIVALS, Data, Found
from experiments._runner import Row
from kdmaps import metrics, problems
from kdmaps.utils.threads import n_threads

ROOT = Path(__file__).parents[2]
#: A rival runs up to REPEATS times, as long as all runs together take less than REPEAT_SECONDS; the shortest counts.
REPEATS, REPEAT_SECONDS = 5, 5
#: Largest step of simulated trajectories.
TIME_STEP = 1e-3
#: A simulation with more numbers than this (4 GB) goes step by step and keeps only the last frame.
FRAMES = 5 * 10**8
IMPORTS = {"scikit-learn": "sklearn"}


def measure(rival: str, seconds: float, gigabytes: float, options: dict[str, Any] | None = None, **task) -> list[Row]:
    """One row for one task: accuracy, time and memory, or the error.

    Parameters
    ----------
    rival : str
        A name of `RIVALS`.
    seconds, gigabytes : float
        Limits of the whole process.
    options : dict, optional
        Further keyword arguments of the adapter.
    **task
        Arguments of `work`: problem, n, seed, n_modes, repeats.
    """
    chosen = RIVALS[rival]
    outcome = run_limited(
        seconds,
        gigabytes,
        function=chosen.function,
        packages=chosen.packages,
        options={**chosen.options, **(options or {})},
        lagged=chosen.lagged,
        **task,
    )
    return [{"rival": rival, **task, "options": options or {}, **outcome}]


def measure_accuracy(**task) -> list[Row]:
    """Return the row of one run of `measure` without the values that depend on the load of the machine."""
    (row,) = measure(repeats=1, **task)
    return [{name: value for name, value in row.items() if name not in ("seconds", "runs", "peak_mb", "repeats")}]


def run_limited(
    seconds: float, gigabytes: float, python: str = sys.executable, module: str = __name__, **arguments
) -> Row:
    """Run `work(**arguments)` of a module in a new process; return its result, or the error and whether it was a limit.

    The module, run as a script, calls `answer`; `python` is the interpreter of its environment.
    """
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "answer.json"
        command = [python, "-m", module, json.dumps(arguments), str(gigabytes), str(written)]
        try:
            done = subprocess.run(command, cwd=ROOT, timeout=seconds, capture_output=True, text=True)
        except subprocess.TimeoutExpired:
            return {"error": f"stopped after {seconds:g} s", "limit": True}
        if written.exists():
            return json.loads(written.read_text())
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        # The kernel kills processes that take too much memory.
        return {"error": f"exit code {done.returncode}: {last}", "limit": done.returncode == -9}


def work(
    function: str,
    packages: tuple[str, ...],
    options: dict[str, Any],
    lagged: bool,
    problem: str,
    n: int,
    seed: int,
    n_modes: int | None = None,
    repeats: int = REPEATS,
) -> Row:
    """Run an adapter in this process; the first arguments are attributes of `Rival`."""
    module, name = function.split(":")
    fit = getattr(importlib.import_module(module), name)
    for package in packages:
        importlib.import_module(IMPORTS.get(package, package))
    system = problems.load(problem)
    data = draw(system, n, seed, n_modes or system.n_modes, lagged)

    before = resident("VmRSS")
    forget_peak()
    times: list[float] = []
    while not times or (len(times) < repeats and sum(times) + times[-1] < REPEAT_SECONDS):
        start = time.perf_counter()
        found = fit(data, **options)
        times.append(time.perf_counter() - start)
        if len(times) == 1:
            peak = resident("VmHWM") - before
    return {
        "seconds": min(times),
        "runs": len(times),
        "peak_mb": peak,
        **score(system, data, found),
        "threads": n_threads(),
        "packages": {package: version(package) for package in packages},
    }


def draw(system: problems.Problem, n: int, seed: int, n_modes: int, lagged: bool) -> Data:
    """Return the samples of a task, the same for every rival, and their later positions if `lagged`."""
    X = system.sample(n, random_state=seed)
    if not lagged:
        return Data(X, n_modes, seed)
    lag = 0.5 / system.rates(n_modes)[-1]
    steps = int(np.ceil(lag / TIME_STEP))
    later, rng = X, np.random.default_rng(seed + 1)
    together = steps if X.size * steps <= FRAMES else 1
    for _ in range(steps // together):
        later = system.simulate(together + 1, lag / steps, n, x0=later, random_state=rng)[:, -1].copy()
    return Data(X, n_modes, seed, later, lag)


def score(system: problems.Problem, data: Data, found: Found) -> Row:
    """SubR² against the true slow modes, and the mean relative error of the rates (None if there are none)."""
    expected = (len(data.X), data.n_modes)
    if found.modes.shape != expected:
        raise ValueError(f"The modes have shape {found.modes.shape}, expected {expected}.")
    error = None
    if found.rates is not None:
        error = float(np.mean(np.abs(np.sort(found.rates) / system.rates(data.n_modes) - 1)))
    return {
        "subr2": metrics.subspace_r2(found.modes, system.reference(data.X, data.n_modes)),
        "rate_error": error if error is None or np.isfinite(error) else None,
    }


def forget_peak() -> None:
    """Reset the high-water mark of this process (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")


def answer(work: Callable[..., Row], arguments: str, gigabytes: str, path: str) -> None:
    """Write the result of `work`, or its error, as JSON; called in a process of `run_limited`."""
    import resource

    limit = int(float(gigabytes) * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    warnings.simplefilter("ignore")
    try:
        outcome = work(**json.loads(arguments))
    except MemoryError as error:
        outcome = {"error": f"more than {gigabytes} GB: {error}", "limit": True}
    except Exception as error:
        outcome = {"error": f"{type(error).__name__}: {error}", "limit": False}
    Path(path).write_text(json.dumps(outcome))


if __name__ == "__main__":
    answer(work, *sys.argv[1:])
