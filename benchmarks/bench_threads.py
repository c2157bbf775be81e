"""Processor time and waiting time of commands with all threads against one, idle and beside two busy processes.

Run `python -m benchmarks.bench_threads` from the root of the repository, on a machine without other work. Every run
is a process of its own, once with the environment as it is and once with `OMP_NUM_THREADS=1`, in turn. Processor time
is counted within the command alone, after imports and compilation. Finished runs are kept in
`results/threads/runs.json`, from which an interrupted benchmark resumes; `--fresh` starts again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import kdmaps
from benchmarks._show import at_most, make_table, show
from kdmaps.utils.files import write_text

RUNS = Path("results/threads/runs.json")
#: Limits of processor time and waiting time with all threads, in units of the same with one thread. Waiting times of
#: equal runs differ by about 5 %.
CPU_GOAL, WALL_GOAL = 1.3, 1.05
#: Processes that occupy the cores.
BUSY = 2
#: Commands of a quick run, and their sizes in units of the full sizes.
QUICK = ("default fit", "committor", "Koopman eigenvalues", "forecast", "error bars", "report", "kdmaps fit --lag")
QUICK_SIZE = 0.5
#: Variables that limit threads.
LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def triple_well(n: int) -> np.ndarray:
    return kdmaps.problems.load("triplewell2d").sample(n, random_state=0)


def double_well(n: int) -> np.ndarray:
    """Return frames of a double well."""
    return kdmaps.problems.load("dw1d").trajectory(n, 0.1, random_state=0)


def sides(X: np.ndarray) -> np.ndarray:
    """Return 0 left, 1 right and -1 between."""
    return np.where(X[:, 0] < -0.8, 0, np.where(X[:, 0] > 0.8, 1, -1))


def with_lag(X: np.ndarray, **options: Any) -> kdmaps.KernelDiffusionMap:
    """Return a fitted model of pairs of frames."""
    return kdmaps.KernelDiffusionMap(3, lag=2, time_step=0.1, bandwidth=1.0, random_state=0, **options).fit(X)


def fit(n: int) -> Callable[[], object]:
    X = triple_well(n)
    return lambda: kdmaps.AdaptiveDiffusionMap(random_state=0).fit(X)


def one_kernel(n: int) -> Callable[[], object]:
    X = triple_well(n)
    return lambda: kdmaps.KernelDiffusionMap(random_state=0).fit(X)


def landmarks(n: int) -> Callable[[], object]:
    X = triple_well(n)
    return lambda: kdmaps.KernelDiffusionMap(basis="landmarks", random_state=0).fit(X)


def many_features(n: int) -> Callable[[], object]:
    X = triple_well(n)
    return lambda: kdmaps.KernelDiffusionMap(n_features=1500, random_state=0).fit(X)


def committor(n: int) -> Callable[[], object]:
    X = triple_well(n)
    return lambda: kdmaps.AdaptiveCommittor(random_state=0).fit(X, sides(X))


def koopman(n: int) -> Callable[[], object]:
    X = double_well(n)
    model = with_lag(X, reversible=False)
    return lambda: kdmaps.dynamics.koopman(model, X)


def forecast(n: int) -> Callable[[], object]:
    X = double_well(n)
    model = with_lag(X, reversible=False)
    return lambda: kdmaps.dynamics.forecast(model, X, X[:, 0], [0.2, 0.4, 1.0, 2.0])


def bootstrap(n: int) -> Callable[[], object]:
    X = double_well(n)
    model = with_lag(X)
    return lambda: kdmaps.uncertainty.bootstrap(model, X)


def validation(n: int) -> Callable[[], object]:
    X = double_well(n)
    model = with_lag(X)
    return lambda: kdmaps.dynamics.validate(model, X)


def states(n: int) -> Callable[[], object]:
    X = double_well(n)
    model = with_lag(X)
    return lambda: kdmaps.dynamics.coarse_states(model.transform(X))


def passages(n: int) -> Callable[[], object]:
    X = double_well(n)
    model = with_lag(X)
    return lambda: kdmaps.dynamics.mean_first_passage_times(model, X, sides(X))


def report(n: int) -> Callable[[], object]:
    X = double_well(n)
    model = with_lag(X)
    return lambda: kdmaps.report.render_report(model, X)


def command_line(command: str, n: int) -> Callable[[], object]:
    """Return a call of the command line in this process."""
    from kdmaps.cli import app

    folder = Path(tempfile.mkdtemp(prefix="kdmaps-threads-"))
    table = folder / "frames.csv"
    np.savetxt(table, double_well(n), header="x", comments="")
    options = {"fit": ["--lag", "2"], "committor": ["--from", "x<-0.8", "--to", "x>0.8"]}[command]
    arguments = [command, str(table), *options, "--out", str(folder / "out"), "--force"]
    return lambda: app(arguments, standalone_mode=False)


#: Commands and their sizes.
COMMANDS: dict[str, tuple[Callable[[int], Callable[[], object]], int]] = {
    "default fit": (fit, 800),
    "fit of one kernel": (one_kernel, 100_000),
    "fit at landmarks": (landmarks, 20_000),
    "fit with 1,500 features": (many_features, 20_000),
    "committor": (committor, 1_500),
    "Koopman eigenvalues": (koopman, 4_000),
    "forecast": (forecast, 2_000),
    "error bars": (bootstrap, 3_000),
    "tests of a lag": (validation, 3_000),
    "coarse states": (states, 10_000),
    "passage times": (passages, 10_000),
    "report": (report, 3_000),
    "kdmaps fit --lag": (lambda n: command_line("fit", n), 3_000),
    "kdmaps committor": (lambda n: command_line("committor", n), 1_500),
}


def measure(name: str, n: int) -> dict[str, float]:
    """Time one command in this process, after a small run of it for imports and compilation."""
    warnings.simplefilter("ignore")
    make, _ = COMMANDS[name]
    make(min(n, 400))()
    run = make(n)
    start, used = time.perf_counter(), time.process_time()
    run()
    return {"wall": time.perf_counter() - start, "cpu": time.process_time() - used}


def measure_apart(name: str, n: int, one_thread: bool) -> dict[str, float]:
    """Time one command in a process of its own."""
    environment = {key: value for key, value in os.environ.items() if key not in LIMITS}
    if one_thread:
        environment |= dict.fromkeys(LIMITS, "1")
    command = [sys.executable, "-m", "benchmarks.bench_threads", "--measure", name, str(n)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    times: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return times


@contextmanager
def occupied(n_processes: int) -> Iterator[None]:
    """Keep so many cores busy within this context."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n_processes)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def run_all(names: list[str], repeats: int, scale: float, runs: dict[str, list[dict[str, float]]], keep: bool) -> None:
    """Time all commands that have fewer than `repeats` runs."""
    for number in range(repeats):
        for busy in (0, BUSY):
            for name in names:
                for threads in ("all", "one"):
                    own = runs.setdefault(f"{name}, {threads}, {busy} busy", [])
                    if len(own) > number:
                        continue
                    with occupied(busy):
                        own.append(measure_apart(name, int(scale * COMMANDS[name][1]), threads == "one"))
                    if keep:
                        RUNS.parent.mkdir(parents=True, exist_ok=True)
                        write_text(RUNS, json.dumps(runs, indent=1))


def tabulate(runs: dict[str, list[dict[str, float]]], names: list[str], keep: bool) -> bool:
    """Show the medians over the runs; return whether all goals are reached."""
    title = f"Seconds with all threads and with one, {len(os.sched_getaffinity(0))} cores"
    columns = ("wall, all", "wall, one", "ratio", "goal", "CPU, all", "CPU, one", "ratio ", "goal ")
    table = make_table(title, "command", *columns)
    reached = True
    for busy in (0, BUSY):
        for name in names:
            label = f"{name}, {'idle' if not busy else f'beside {busy} busy processes'}"
            row = [label]
            for quantity, goal in (("wall", WALL_GOAL), ("cpu", CPU_GOAL)):
                seconds = {
                    threads: median(run[quantity] for run in runs[f"{name}, {threads}, {busy} busy"])
                    for threads in ("all", "one")
                }
                ratio = seconds["all"] / seconds["one"]
                reached &= ratio <= goal
                row += [f"{seconds['all']:.2f}", f"{seconds['one']:.2f}", f"{ratio:.2f}", at_most(ratio, goal)]
            table.add_row(*row)
    show(table, "threads" if keep else None)
    return reached


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="some commands once, half the size; nothing is written")
    parser.add_argument("--fresh", action="store_true", help="forget finished runs")
    parser.add_argument("--repeats", type=int, default=3, help="runs of which the median counts")
    parser.add_argument("--only", nargs="+", choices=list(COMMANDS), help="only these commands; nothing is written")
    parser.add_argument("--measure", nargs=2, metavar=("COMMAND", "N"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure[0], int(arguments.measure[1]))))
        return 0
    names = arguments.only or list(QUICK if arguments.quick else COMMANDS)
    keep = not (arguments.quick or arguments.only)
    runs = json.loads(RUNS.read_text()) if keep and RUNS.exists() and not arguments.fresh else {}
    run_all(names, 1 if arguments.quick else arguments.repeats, QUICK_SIZE if arguments.quick else 1.0, runs, keep)
    return int(not tabulate(runs, names, keep))


if __name__ == "__main__":
    sys.exit(main())
