"""Seconds of the default, `AdaptiveDiffusionMap().fit(X)`: against 0.1.0 and against the textbook sweep.

Every fit is the first one of a fresh process; the seconds of the import and of a second fit are listed too. Bytecode
and compiled code are already on disk. The textbook sweep (benchmarks/textbook.py) has as many candidates as the grid
of 0.1.0: its time is the mean time of some candidates, spread over that grid, times their number; nothing is refined.
Version 0.1.0 comes from the history of the repository and needs jax and optax; its seconds are kept in
results/default/release_0_1_0.json and measured again on a machine of different speed. SubR²: mean squared cosine with
the true slow modes, if they are known. "data check": time of the data check, relative to a second fit. The column
0.2.0.dev0 has the second fit of the development version whose score had seen its test samples, measured in turn with
the present one; the ratio is now / then.

Run `python -m benchmarks.bench_default` from the root of the repository, on an idle machine; `--quick` takes two cases.
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
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits, make_swiss_roll
from sklearn.model_selection import KFold

from benchmarks import textbook
from benchmarks._show import show
from benchmarks._timing import best_times
from compare.release_0_1_0 import extract
from kdmaps import metrics, problems
from kdmaps.bases import make_basis
from kdmaps.data import ArraySource
from kdmaps.data.check import order_in, warn_of_data
from kdmaps.data.distances import median_distance
from kdmaps.kernels import make_kernel
from kdmaps.utils.threads import n_threads

ROOT, OUT = Path(__file__).resolve().parents[1], Path("results/default")
OLD_VERSION, N_MODES, N_FEATURES = "0.1.0", 4, 300
#: A version without honest scores, its commit, and the number of times as long that a fit may take now.
LEAKY, LEAKY_COMMIT, GOAL_LEAKY = "0.2.0.dev0", "778f362", 1.5
#: Candidates of the grid of 0.1.0: 6 families × 10 bandwidths × 7 regularizations, without extensions.
N_CANDIDATES = 420
#: Candidates that are timed, spread over that grid: family, bandwidth in median distances, regularization.
TIMED = (("gaussian", 3.0, 1e-2), ("laplacian", 1.5, 1e-3), ("matern32", 5.0, 3e-2), ("matern52", 10.0, 1e-4),
         ("rq2", 20.0, 1e-1), ("rq5", 30.0, 3e-4))  # fmt: skip
#: Problems and numbers of samples; data sets without a number are whole.
CASES = {"ou2d-4": 500, "ou10d": 500, "dw1d": 500, "circle": 500, "mdlike-20": 500, "triplewell2d": 5000,
         "swiss roll": 1500, "digits": None}  # fmt: skip
QUICK = ("dw1d", "ou2d-4")
GOAL_OLD, GOAL_TEXTBOOK = 10, 150  # times as fast
#: Share of a fit that the data check may take.
GOAL_CHECK = 0.05
#: Seconds that the first fit may take.
GOAL_SECONDS = {"ou2d-4": 2.0, "ou10d": 2.0}
#: Seconds of 0.1.0 count on machines whose syrk takes the same time within this factor.
SAME_MACHINE = 1.2


def samples(case: str) -> np.ndarray:
    """Return the samples of a case."""
    if case == "swiss roll":
        return make_swiss_roll(CASES[case], random_state=0)[0]
    if case == "digits":
        X = load_digits().data
        return X[:, X.std(axis=0) > 0]
    return problems.load(case).sample(CASES[case], random_state=0)


def agreement(case: str, X: np.ndarray, modes: np.ndarray) -> float | None:
    """Return SubR², or None if the true modes are not known."""
    if case not in problems.names():
        return None
    return metrics.subspace_r2(modes, problems.load(case).reference(X, N_MODES))


def fresh(source: Path, case: str, X: np.ndarray, n_fits: int) -> dict[str, Any]:
    """Fit in a new process with the kdmaps in `source`; return its seconds, and SubR².

    Raises
    ------
    RuntimeError
        If the process fails, with the last line of its error output.
    """
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/X.npy", X)
        script = str(Path(__file__).with_name("_default_fit.py"))
        command = [sys.executable, script, f"{folder}/X.npy", str(n_fits), f"{folder}/modes.npy"]
        environment = {**os.environ, "PYTHONPATH": str(source)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode on disk
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1])
        found = json.loads(done.stdout.splitlines()[-1])
        if n_fits:
            found["r2"] = agreement(case, X, np.load(f"{folder}/modes.npy"))
        return found


def syrk_seconds() -> float:
    """Return the shortest of some run times of one fixed syrk, a measure of the current speed of this machine."""
    Z = np.random.default_rng(0).standard_normal((20_000, 300))
    return best_times({"syrk": lambda: Z.T @ Z}, 10)["syrk"]


def same_machine(entry: dict[str, Any], machine: dict[str, float]) -> bool:
    """Return whether seconds were measured on a machine as fast as this one, with as many threads."""
    ratio = entry["syrk"] / machine["syrk"]
    return entry["threads"] == machine["threads"] and 1 / SAME_MACHINE <= ratio <= SAME_MACHINE


class OldVersion:
    """Seconds of 0.1.0: stored ones if they come from a machine of the same speed, or new ones."""

    def __init__(self, path: Path, machine: dict[str, float], folder: str, measure: bool = True):
        self.path, self.machine, self.folder = path, machine, Path(folder)
        self.kept: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.exists() else {}
        self.why_not = "" if measure else "not asked for"
        self._ready = False

    def seconds(self, case: str, X: np.ndarray) -> dict[str, Any] | None:
        """Return the row of a case; None if it is not in the file and cannot be measured (`why_not`)."""
        if case in self.kept and same_machine(self.kept[case], self.machine):
            return self.kept[case]
        if not self.why_not and not self._ready:
            self._prepare()
        if self.why_not:
            return None
        self.kept[case] = {**fresh(self.folder / "src", case, X, 1), **self.machine}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.kept, indent=1) + "\n")
        return self.kept[case]

    def _prepare(self) -> None:
        try:
            extract(str(self.folder))
            fresh(self.folder / "src", "", np.random.default_rng(0).standard_normal((2000, 2)), 0)
            self._ready = True
        except (RuntimeError, subprocess.CalledProcessError, OSError) as error:
            self.why_not = f"it cannot be run here ({error})"


def textbook_seconds(X: np.ndarray, quick: bool = False) -> float:
    """Return the seconds of the textbook sweep over N_CANDIDATES, extrapolated from a few candidates."""
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    median = median_distance(X, random_state=0)
    times = []
    # The first candidate runs once more, untimed, to start the threads of BLAS.
    for family, width, lam in (TIMED[0], *TIMED[: 1 if quick else None]):
        basis = make_basis("fourier", make_kernel(family, width * median), X, N_FEATURES, random_state=0)
        amplitude = np.tile(np.sqrt(basis.weights), 2)
        start = time.perf_counter()
        textbook.score(X - basis.origin, splits, basis.frequencies, amplitude, N_MODES, lam, 1.0)
        times.append(time.perf_counter() - start)
    return N_CANDIDATES * float(np.mean(times[1:]))


def check_seconds(X: np.ndarray) -> float:
    """Return the seconds of the data check that runs before every fit."""
    source = ArraySource(X)

    def check() -> None:
        warn_of_data(source, None, None)
        order_in(source)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return best_times({"check": check}, 5)["check"]


def extract_leaky(folder: str) -> Path | None:
    """Write the source of 0.2.0.dev0, and return its folder; None without the history of the repository."""
    try:
        extract(folder, LEAKY_COMMIT)
    except (subprocess.CalledProcessError, OSError):
        return None
    return Path(folder) / "src"


def measure(case: str, old: OldVersion, leaky: Path | None, processes: int, quick: bool) -> dict[str, Any]:
    """Return the row of one case."""
    X, runs, before = samples(case), [], []
    for _ in range(processes):
        runs.append(fresh(ROOT / "src", case, X, 2))
        before += [] if leaky is None else [fresh(leaky, case, X, 2)["second"]]
    now = min(runs, key=lambda run: run["first"])
    return {
        "case": case,
        "n": X.shape[0],
        "d": X.shape[1],
        **now,
        "import": min(run["import"] for run in runs),
        "second": min(run["second"] for run in runs),
        "all first": [run["first"] for run in runs],
        "check": check_seconds(X),
        "old": old.seconds(case, X),
        "leaky": min(before, default=None),
        "textbook": textbook_seconds(X, quick),
        **old.machine,
    }


def ratio_cell(ratio: float, goal: float) -> str:
    return f"{ratio:.1f}× {'✓' if ratio >= goal else '✗'}"


def make_table(rows: list[dict[str, Any]]) -> Table:
    """Return the table of all cases, with ✓ or ✗ where there is a goal."""
    threads = rows[0]["threads"]
    goals = f"goals: {GOAL_OLD}× as fast as {OLD_VERSION}, {GOAL_TEXTBOOK}× as fast as the textbook"
    goals += f", at most {GOAL_LEAKY} times as long as {LEAKY}, data check below {GOAL_CHECK:.0%} of a fit"
    limits = ", ".join(f"{case} in {limit:g} s" for case, limit in GOAL_SECONDS.items())
    table = Table(title=f"The default fit in a fresh process, seconds, {threads} threads; {goals}, {limits}")
    for column in ("case", "N × d", "import", "first fit", "second", "data check", LEAKY, "ratio", OLD_VERSION,
                   "ratio", "textbook", "ratio", "SubR²", f"SubR² of {OLD_VERSION}"):  # fmt: skip
        table.add_column(column, justify="left" if column == "case" else "right")
    for row in rows:
        limit, old, leaky = GOAL_SECONDS.get(row["case"]), row["old"], row["leaky"]
        slower = np.nan if leaky is None else row["second"] / leaky
        first = f"{row['first']:.2f}" + ("" if limit is None else f" {'✓' if row['first'] < limit else '✗'}")
        table.add_row(
            row["case"],
            f"{row['n']:,} × {row['d']}",
            f"{row['import']:.2f}",
            first,
            f"{row['second']:.2f}",
            f"{row['check'] / row['second']:.1%} {'✓' if row['check'] < GOAL_CHECK * row['second'] else '✗'}",
            "–" if leaky is None else f"{leaky:.2f}",
            "–" if leaky is None else f"{slower:.2f} {'✓' if slower <= GOAL_LEAKY else '✗'}",
            f"{old['first']:.1f}" if old else "–",
            ratio_cell(old["first"] / row["first"], GOAL_OLD) if old else "–",
            f"{row['textbook']:.0f}",
            ratio_cell(row["textbook"] / row["first"], GOAL_TEXTBOOK),
            "–" if row["r2"] is None else f"{row['r2']:.4f}",
            "–" if not old or old["r2"] is None else f"{old['r2']:.4f}",
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two cases, one process each, one candidate of a textbook")
    parser.add_argument("--cases", nargs="+", choices=CASES, help="some cases only; results/default is not changed")
    parser.add_argument("--no-old", action="store_true", help="do not run 0.1.0; show its seconds if they are stored")
    parser.add_argument("--processes", type=int, default=2, help="fresh processes for each case; the best counts")
    arguments = parser.parse_args()
    cases = arguments.cases or (QUICK if arguments.quick else list(CASES))
    console, machine = Console(), {"syrk": syrk_seconds(), "threads": n_threads()}
    rows = []
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
        old = OldVersion(OUT / "release_0_1_0.json", machine, folder, measure=not arguments.no_old)
        leaky, processes = extract_leaky(other), 1 if arguments.quick else arguments.processes
        for case in cases:
            rows.append(measure(case, old, leaky, processes, arguments.quick))
            console.print(f"{case}: {rows[-1]['first']:.2f} s")
    whole = set(cases) == set(CASES) and not arguments.quick
    show(make_table(rows), "default" if whole else None)
    if whole:
        (OUT / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    if old.why_not and any(row["old"] is None for row in rows):
        console.print(f"{OLD_VERSION} was not measured: {old.why_not}.")


if __name__ == "__main__":
    main()
