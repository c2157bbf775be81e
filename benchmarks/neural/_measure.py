"""One method on several samples of several problems, in one process of its environment."""

from __future__ import annotations

import importlib
import itertools
import sys
import time
from importlib.metadata import version
from typing import Any

import numpy as np
from joblib import Memory

from benchmarks._timing import resident
from benchmarks.neural._methods import PEERS, ROOT
from benchmarks.rivals._measure import answer, draw, forget_peak, run_limited
from benchmarks.rivals._methods import Data
from experiments._runner import Row
from kdmaps import metrics, problems

#: Limits of a process, which makes many fits.
SECONDS, GIGABYTES = 3600.0, 12.0
#: New samples at which modes are compared. The modes of muller-brown live in wells that at most three in a thousand
#: samples visit: of 2,000 samples, five to ten would determine the first mode, and one or none the second.
N_NEW, N_NEW_RARE = 2000, {"muller-brown": 100_000}
PROBLEMS = ("ou2d-4", "ou10d", "triplewell2d", "muller-brown", "sphere-3", "circle", "triplewell2d+48")
#: Pairs are kept, because their simulation may take longer than a fit.
PAIRS = ROOT / "results" / "neural" / "runs"
#: Faster modes are inside of single wells.
N_MODES = {"triplewell2d": 2, "triplewell2d+48": 2}


def measure(peer: str, n: int, problem_names: list[str], training: float, **task: Any) -> list[Row]:
    """Return one row for each fit; a process that ends early makes one row for each problem, with its message.

    Parameters
    ----------
    peer : str
        A name of `PEERS`.
    n : int
        Number of samples.
    problem_names : list of str
        Names of problems.
    training : float
        Limit on the processor time of a training, in seconds.
    **task
        Further arguments of `work`.
    """
    arguments = {"peer": peer, "n": n, "problem_names": problem_names, "training": training, **task}
    outcome = run_limited(SECONDS, GIGABYTES, PEERS[peer].python, __name__, **arguments)
    rows = outcome.get("rows") or [{"problem": name, "training": training, **outcome} for name in problem_names]
    return [{"peer": peer, "n": n, **row} for row in rows]


def work(
    peer: str, n: int, problem_names: list[str], seeds: list[int], learning_rates: list[float | None], training: float
) -> Row:
    """Fit every problem, seed and learning rate in this process; training stops after so much processor time."""
    chosen = PEERS[peer]
    fit = getattr(importlib.import_module("benchmarks.neural._methods"), chosen.adapter)
    for package in chosen.packages:
        importlib.import_module(package)
    get = Memory(PAIRS, verbose=0).cache(samples) if chosen.lagged else samples
    versions = {package: version(package) for package in chosen.packages}
    rows: list[Row] = []
    for problem, seed in itertools.product(problem_names, seeds):
        system = problems.load(problem)
        data = get(problem, n, seed, chosen.lagged)
        new = system.sample(N_NEW_RARE.get(problem, N_NEW), random_state=seed + 100_000)
        for rate in learning_rates:
            row: Row = {"problem": problem, "seed": seed, "learning_rate": rate, "training": training}
            before = resident("VmRSS")
            forget_peak()
            start = time.process_time()
            try:
                modes, rates = fit(data, rate, training)
                row |= {"seconds": time.process_time() - start, "peak_mb": resident("VmHWM") - before}
                row |= score(system, data, modes, rates, chosen.lagged, new)
            except Exception as error:
                row["error"] = f"{type(error).__name__}: {error}"
            rows.append({**row, "packages": versions})
    return {"rows": rows}


def samples(problem: str, n: int, seed: int, lagged: bool) -> Data:
    """Return the samples of a task."""
    system = problems.load(problem)
    return draw(system, n, seed, N_MODES.get(problem, system.n_modes), lagged)


def score(system: problems.Problem, data, modes, rates: np.ndarray | None, lagged: bool, new: np.ndarray) -> Row:
    """Return SubR² at new and at training samples, and the mean relative error of the rates."""
    r = data.n_modes
    row: Row = {"rate_error": None}
    for name, points in (("subr2", new), ("subr2_training", data.X)):
        values = modes(points)
        if not np.isfinite(values).all():
            raise ValueError("the modes are not finite")
        row[name] = float(metrics.subspace_r2(values, system.reference(points, r)))
    if rates is not None and len(rates) == r:
        found = np.sort(rates) * (1.0 if lagged else system.diffusion)
        row["rate_error"] = float(np.mean(np.abs(found / system.rates(r) - 1)))
    return row


if __name__ == "__main__":
    answer(work, *sys.argv[1:])
