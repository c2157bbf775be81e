"""Learning the kernel by gradients: the paper's objectives compared with the held-out score.

All methods use the same samples. "uniform", "sub-only", "eig-only" and "combined" are the paper's (landmarks, the
constant among the modes). "VarRFF" is its bounded anisotropic Fourier method, started at the widest bandwidth of its
grid. "search" is the kernel that the search of the default `AdaptiveDiffusionMap` chose, "refined" the estimator
itself, now and in version 0.1.0; "oracle" is the candidate of a grid that agrees best with the true modes, in
hindsight.

    python -m experiments.variational --quick
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments._fits import error_dots
from experiments._references import paper_reference
from experiments._runner import Row, grouped, load_samples, markdown, options_of, publish, rows_before, run_tasks
from experiments.paper._protocol import uniform_mixture
from kdmaps import metrics
from kdmaps.bases import make_basis
from kdmaps.data.distances import median_distance
from kdmaps.estimators.adaptive import AdaptiveDiffusionMap
from kdmaps.estimators.kernel_map import KernelDiffusionMap
from kdmaps.estimators.variational import VariationalKernelMap
from kdmaps.forms.energy import compute_moments
from kdmaps.kernels import FAMILIES, make_kernel
from kdmaps.selection.cross_fit import cross_fit
from kdmaps.selection.grid import BANDWIDTH_RANGE, REGULARIZATIONS, bandwidth_grid

PROBLEMS = ("dw1d", "dw1d-asym", "ou2d-4", "ou2d-16", "ou3d", "circle", "ou10d", "mdlike-10", "mdlike-20")


@dataclass(frozen=True)
class Settings:
    """Settings of a run."""

    regularization: float = 1e-2
    n_landmarks: int = 60
    adam_steps: int = 100
    lbfgs_steps: int = 30
    widest: float = 50.0  # bandwidth of the paper's grid, in median distances, which its cross-validation selects


def _paper_methods(r: int, seed: int, X: np.ndarray, s: Settings) -> dict[str, Callable[[], object]]:
    shared: dict[str, Any] = {"regularization": s.regularization, "center": False, "random_state": seed}
    steps: dict[str, Any] = {"adam_steps": s.adam_steps, "lbfgs_steps": s.lbfgs_steps}

    def learned(objective: str) -> Callable[[], object]:
        return lambda: VariationalKernelMap(r, objective=objective, n_features=s.n_landmarks, **steps, **shared)

    return {
        "uniform": lambda: KernelDiffusionMap(
            r, kernel=uniform_mixture(median_distance(X)), basis="landmarks", n_features=s.n_landmarks, **shared
        ),
        **{objective: learned(objective) for objective in ("sub-only", "eig-only", "combined")},
        "VarRFF": lambda: VariationalKernelMap(
            r, objective="varrff", basis="fourier", bandwidth=s.widest * median_distance(X), **steps, **shared
        ),
    }


def _grid(X: np.ndarray, r: int, seed: int) -> Iterator[np.ndarray]:
    """Yield the modes of each candidate of the default search, fitted to all samples."""
    for family in FAMILIES:
        for sigma in bandwidth_grid(10, BANDWIDTH_RANGE, median_distance(X, None, seed)):
            basis = make_basis("fourier", make_kernel(family, sigma), X, 300, random_state=seed)
            fits = cross_fit(compute_moments(basis, X), [], basis.ridge, r, REGULARIZATIONS)
            yield from (basis.features(X) @ fit.coefficients for fit in fits if fit is not None)


def run(part: str, problem: str, seed: int, **settings: Any) -> list[Row]:
    """Return one row per method (of the paper or of kdmaps) for one sample of one problem."""
    system, X = load_samples(problem, seed)
    r = system.n_modes
    truth, printed = system.reference(X, r), paper_reference(system, X)
    rows = []

    def add(method: str, modes: np.ndarray, **more: Any) -> None:
        r2, paper_r2 = metrics.subspace_r2(modes, truth), metrics.subspace_r2(modes, printed)
        row = {"problem": problem, "seed": seed, "method": method, "r2": float(r2), "paper_r2": float(paper_r2)}
        rows.append({**row, **more})

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if part == "paper":
            for method, make in _paper_methods(r, seed, X, Settings(**settings)).items():
                add(method, make().fit_transform(X))  # type: ignore[attr-defined]
            return rows
        if part == "oracle":
            add("oracle", max(_grid(X, r, seed), key=lambda modes: metrics.subspace_r2(modes, truth)))
            return rows
        model = AdaptiveDiffusionMap(r, random_state=seed).fit(X)
        searched = KernelDiffusionMap(r, **model.search_result_.best.params, random_state=seed).fit(X)
        add("search", searched.transform(X), kernel=repr(searched.kernel_))
        kept = model.refinement_ is not None and model.refinement_.preferred
        add("refined", model.transform(X), kernel=repr(model.kernel_), kept=kept)
    return rows


def table(rows: list[Row]) -> str:
    """Return the mean SubR² by problem and method: true slow modes, and the paper's reference in brackets."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    lines = []
    for (problem,), mine in grouped(rows, "problem").items():
        by = {m: sorted((row for row in mine if row["method"] == m), key=lambda row: row["seed"]) for m in methods}
        cells = [
            f"{np.mean([row['r2'] for row in by[m]]):.3f} ({np.mean([row['paper_r2'] for row in by[m]]):.3f})"
            if by[m]
            else "–"
            for m in methods
        ]
        change = np.array([b["r2"] - a["r2"] for a, b in zip(by["search"], by["refined"], strict=True)])
        kept = sum(row["kept"] for row in by["refined"])
        lines.append([problem, *cells, f"{change.mean():+.4f}", f"{change.min():+.4f}", f"{kept}/{len(change)}"])
    header = ["problem", *methods, "refined - search", "worst seed", "kept"]
    return markdown(header, lines)


def figure(rows: list[Row]) -> Figure:
    """Plot the error 1 - SubR² of each seed, by problem and method."""
    series = {method: mine for (method,), mine in grouped(rows, "method").items()}
    return error_dots(series, ["problem"], "Learning the kernel", size=(11, 4.5))


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment from the command line."""
    # Seeds below 4000 were used to choose the method.
    parser = options_of("variational", __doc__, n_seeds=5, quick="one seed, fewer steps", first_seed=4000)
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS))
    options = parser.parse_args(arguments)
    settings = Settings(adam_steps=20, lbfgs_steps=10) if options.quick else Settings()
    seeds = range(options.first_seed, options.first_seed + (1 if options.quick else options.seeds))
    tasks = [
        {"part": part, "problem": problem, "seed": seed, **asdict(settings)}
        for part in ("paper", "kdmaps", "oracle")
        for seed in seeds
        for problem in options.problems
    ]
    rows = run_tasks(run, tasks, options.out / "rows.jsonl", options.jobs)
    publish("variational", rows + rows_before("variational", rows), table, figure, options.out)


if __name__ == "__main__":
    main()
