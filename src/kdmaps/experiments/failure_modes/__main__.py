"""Run the experiment from the command line."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from kdmaps.experiments import failure_modes
from kdmaps.experiments._runner import run_tasks
from kdmaps.experiments.failure_modes._claims import table
from kdmaps.experiments.failure_modes._figure import figure
from kdmaps.experiments.failure_modes._laboratory import CASES, Settings, run


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment from the command line."""
    parser = argparse.ArgumentParser(
        description=failure_modes.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3, help="how many")
    parser.add_argument("--quick", action="store_true", help="one seed, fewer bandwidths, the first two cases")
    parser.add_argument("--out", type=Path, default=Path("results/failure_modes"))
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(arguments)
    settings = Settings(n_sigmas=13, steps=20) if options.quick else Settings()
    cases, seeds = (CASES[:2], range(1)) if options.quick else (CASES, range(options.seeds))
    tasks = [
        {"part": "landscape", "problem": p, "family": k, "basis": b, "seed": s, **asdict(settings)}
        for p, k, b in cases
        for s in seeds
    ]
    p, k, b = CASES[0]
    tasks.append({"part": "descent", "problem": p, "family": k, "basis": b, "seed": 0, **asdict(settings)})
    rows = run_tasks(run, tasks, options.out / "rows.jsonl", options.jobs)
    text = table(rows)
    (options.out / "table.md").write_text(text + "\n")
    figure(rows, options.out / "failure_modes.png")
    print(text)


if __name__ == "__main__":
    main()
