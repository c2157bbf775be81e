"""Profiles of default fits, `AdaptiveDiffusionMap().fit(X)`: the parts of their CPU time, for four sizes.

Seconds of a part include everything that it calls; parts do not contain each other. They are CPU seconds of one thread
under a profiler, which adds about a tenth. "first" is the first fit in an environment in which nothing was ever
compiled, "second" a fit in a new process afterwards. The last table compares seconds of one and of two threads for 500
samples, each the best of five fits.

Run `python -m benchmarks.profile_default` from the root of the repository; it writes results/profile_default.
`--threads` prints the last table only, which needs an idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from experiments._runner import markdown

OUT = Path("results/profile_default")
#: N and d of the samples: two slow coordinates, the others are noise.
CASES = ((500, 10), (5_000, 10), (1_000_000, 10), (2_000, 1_000))
#: Parts of a fit: module and function.
PARTS = {
    "data check": ("check.py", "warn_of_data"),
    "draw of samples, folds": ("evaluation.py", "gather"),
    "search from coarse to fine": ("coarse_to_fine.py", "coarse_to_fine"),
    "exact solve of the best candidate": ("search.py", "confirmed"),
    "refinement": ("adaptive.py", "_refined"),
    "fit of all samples": ("fit.py", "fit_observations"),
    "evidence and trust": ("reliability.py", "trust_after_search"),
    "number of modes": ("evaluation.py", "suggest_n_components"),
}
SCRIPT = """
import cProfile, json, pstats, time, warnings; warnings.simplefilter("ignore")
import kdmaps
X = kdmaps.problems.load("triplewell2d+{more}").sample({n}, random_state=0)
kdmaps.AdaptiveDiffusionMap
start, profile = time.process_time(), cProfile.Profile(time.process_time)
profile.enable(); kdmaps.AdaptiveDiffusionMap(random_state=0).fit(X); profile.disable()
rows = pstats.Stats(profile).stats
print(json.dumps([time.process_time() - start, [[f[0].rpartition("/")[2], f[2], row[3]] for f, row in rows.items()]]))
"""
THREADS = """
import time, warnings; warnings.simplefilter("ignore")
import kdmaps
X, seconds = kdmaps.problems.load("triplewell2d+8").sample(500, random_state=0), []
for _ in range(6):
    start, cpu = time.perf_counter(), time.process_time()
    kdmaps.AdaptiveDiffusionMap(random_state=0, n_jobs={jobs}).fit(X)
    seconds.append((time.perf_counter() - start, time.process_time() - cpu))
print(*min(seconds[1:]))
"""


def run(script: str, threads: int = 1, **environment: str) -> str:
    """Return the output of a script in a fresh process."""
    numbers = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    command = [sys.executable, "-c", script]
    done = subprocess.run(
        command, env={**os.environ, **numbers, **environment}, check=True, capture_output=True, text=True
    )
    return done.stdout


def profiled(n: int, d: int) -> dict[str, Any]:
    """Return the seconds of the first and of the second fit, and of the parts of the second."""
    script = SCRIPT.format(more=d - 2, n=n)
    with tempfile.TemporaryDirectory() as folder:
        first, second = (json.loads(run(script, NUMBA_CACHE_DIR=folder)) for _ in range(2))
    total, calls = second
    parts = {
        name: sum(seconds for module, function, seconds in calls if (module, function) == place)
        for name, place in PARTS.items()
    }
    return {"N": n, "d": d, "first": first[0], "second": total, **parts, "rest": total - sum(parts.values())}


def threads() -> list[list[str]]:
    """Return seconds and CPU seconds of a fit of 500 samples with one and with two threads."""
    rows = []
    for jobs in (1, 2):
        wall, cpu = map(float, run(THREADS.format(jobs=jobs), jobs).split())
        rows.append([str(jobs), f"{wall:.2f}", f"{cpu:.2f}"])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--threads", action="store_true", help="print the table of threads only")
    arguments = parser.parse_args()
    both = markdown(["threads", "seconds", "CPU seconds"], threads())
    if arguments.threads:
        print(both)
        return
    rows = []
    for n, d in CASES:
        rows.append(profiled(n, d))
        print(rows[-1], flush=True)
    header = ["CPU seconds", *(f"{row['N']:,} × {row['d']:,}" for row in rows)]
    names = ["first", "second", *PARTS, "rest"]
    lines = [[name, *(f"{row[name]:.2f}" for row in rows)] for name in names]
    arguments.out.mkdir(parents=True, exist_ok=True)
    text = f"Parts of default fits.\n\n{markdown(header, lines)}\n\n500 samples with one and two threads.\n\n{both}\n"
    (arguments.out / "table.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
