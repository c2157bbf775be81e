"""The default estimator of version 0.1.0 on the samples of experiments.release: two hours, resumable.

The source of that version comes from the history of this repository; run this script in a clone, with jax and optax.
"""

import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

from release_0_1_0 import extract

OUT = Path(__file__).resolve().parents[1] / "results" / "release" / "release_0_1_0.jsonl"
#: Problems and numbers of samples, as in experiments.release.
CASES = [
    *((name, 500) for name in ("ou2d-4", "ou2d-16", "ou3d", "dw1d", "dw1d-asym", "circle", "mdlike-6", "ou10d")),
    *((name, 1000) for name in ("ou10d", "ou20d", "mdlike-10", "mdlike-20")),
]
SEEDS, MORE_SEEDS = range(7000, 7010), range(7010, 7060)
UNSTEADY = (("ou2d-4", 500), ("ou2d-16", 500), ("ou3d", 500), ("ou10d", 500))


def fit(problem: str, n: int, seed: int) -> dict:
    """Return the row of one fit, with the kdmaps that is imported."""
    import kdmaps

    system = kdmaps.problems.load(problem)
    X = system.sample(n, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kdmaps.AdaptiveDiffusionMap(system.n_modes, random_state=seed, n_jobs=1).fit(X)
    r2 = kdmaps.metrics.subspace_r2(model.transform(X), system.reference(X, system.n_modes))
    rates, exact = model.rates_.tolist(), system.rates(system.n_modes).tolist()
    task = {"problem": problem, "n": n, "seed": seed}
    return {**task, "r2": float(r2), "rates": rates, "exact": exact, "kernel": repr(model.kernel_)}


def missing() -> list[tuple[str, int, int]]:
    """Return the fits whose rows are not in the file."""
    rows = [json.loads(line) for line in OUT.read_text().splitlines()] if OUT.exists() else []
    done = {(row["problem"], row["n"], row["seed"]) for row in rows}
    wanted = [(*case, seed) for seed in SEEDS for case in CASES] + [(*c, seed) for seed in MORE_SEEDS for c in UNSTEADY]
    return [task for task in wanted if task not in done]


def main() -> None:
    """Append the missing rows."""
    OUT.parent.mkdir(parents=True, exist_ok=True)
    for task in missing():
        row = fit(*task)
        with OUT.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(*task, row["r2"], flush=True)


if __name__ == "__main__":
    if "--inside" in sys.argv:
        main()
    elif missing():
        with tempfile.TemporaryDirectory() as folder:
            extract(folder)
            environment = {**os.environ, "PYTHONPATH": f"{folder}/src"}
            subprocess.run([sys.executable, __file__, "--inside"], env=environment, check=True)
