"""Run the experiment from the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from experiments import theory
from experiments._runner import Row, finished, options_of, run_tasks
from experiments.theory import constant, continuous, optimism
from experiments.theory._page import figures, table
from kdmaps.utils.files import write_text

PARTS: dict[str, Callable[..., list[Row]]] = {
    "constant": constant.run,
    "optimism": optimism.run,
    "continuous": continuous.run,
}


def run(part: str, **task: Any) -> list[Row]:
    """Return the rows of one task of one part."""
    return PARTS[part](**task)


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment from the command line."""
    parser = options_of("theory", theory.__doc__, n_seeds=200, quick="three seeds of everything")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS), help="what to compute")
    options = parser.parse_args(arguments)
    n = 3 if options.quick else options.seeds
    tasks: list[dict[str, Any]] = [
        {"part": "constant", "problem": problem, "family": family, "seed": seed}
        for problem in constant.PROBLEMS
        for family in constant.FAMILIES
        for seed in range(min(n, 3))
    ]
    tasks += [
        {"part": "optimism", "problem": problem, "n_modes": r, "n": size, "seed": seed}
        for problem, r, size in optimism.CASES
        for seed in range(1000, 1000 + n)
    ]
    tasks += [
        {"part": "continuous", "n": size, "seed": seed} for size in continuous.SIZES for seed in range(-1, min(n, 40))
    ]
    tasks = [task for task in tasks if task["part"] in options.parts]
    run_tasks(run, tasks, options.out / "rows.jsonl", options.jobs)
    rows = [row for found in finished(options.out / "rows.jsonl").values() for row in found]
    text = table(rows)
    write_text(options.out / "table.md", text + "\n")
    figures(rows, options.out)
    print(text)


if __name__ == "__main__":
    main()
