"""Run the experiment from the command line."""

from __future__ import annotations

from dataclasses import asdict

from experiments import failure_modes
from experiments._runner import options_of, publish, run_tasks
from experiments.failure_modes._figure import figure
from experiments.failure_modes._laboratory import CASES, Settings, run
from experiments.failure_modes._tables import table


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment from the command line."""
    quick = "one seed, fewer bandwidths, the first two cases"
    options = options_of("failure_modes", failure_modes.__doc__, n_seeds=3, quick=quick).parse_args(arguments)
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
    publish("failure_modes", rows, table, figure, options.out)


if __name__ == "__main__":
    main()
