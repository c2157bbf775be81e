"""Regret of a kernel selected without the true modes.

For every candidate of the default grid the true subspace error is known. The *regret* of a scoring rule is the
difference between the best SubR² of the grid and the SubR² of the candidate that the rule selects. There are two
oracles: the best candidate in hindsight, and the candidate that 4,000 new samples would select. `KernelSearchCV`, now
and in version 0.1.0, may leave the grid.

    python -m experiments.regret --quick
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments._references import paper_reference
from experiments._runner import Row, grouped, load_samples, markdown, options_of, publish, rows_before, run_tasks
from experiments.paper._printed import cross_validated
from kdmaps import metrics
from kdmaps.bases import make_basis
from kdmaps.data import ArraySource
from kdmaps.data.distances import median_distance
from kdmaps.estimators.search import KernelSearchCV
from kdmaps.forms.diffusion import DiffusionTensor
from kdmaps.forms.energy import EnergyForm, compute_moments
from kdmaps.kernels import FAMILIES, make_kernel
from kdmaps.problems.base import Problem
from kdmaps.selection.cross_fit import CrossFit, cross_fit
from kdmaps.selection.folds import Folds, make_splits
from kdmaps.selection.grid import BANDWIDTH_RANGE, REGULARIZATIONS
from kdmaps.selection.scores import SCORINGS, Score, pooled_ritz_timescales, pooled_score, timescale_score

PROBLEMS = (
    "ou2d-4",
    "ou2d-16",
    "ou3d",
    "ou10d",
    "ou20d",
    "dw1d",
    "dw1d-asym",
    "circle",
    "mdlike-6",
    "mdlike-10",
    "mdlike-20",
)


@dataclass(frozen=True)
class Settings:
    """Settings of a run."""

    n_features: int = 300
    n_bandwidths: int = 10
    n_fresh: int = 4000
    folds: int = 3


def _pooled(power: float, caution: float) -> Callable[[CrossFit], float]:
    """Σ_k t_k^power of the pooled held-out time scales, minus `caution` standard errors."""
    return lambda fit: pooled_score(fit, power).lower_bound(caution)


def _capped(fit: CrossFit) -> float:
    """Return the pooled sum with each held-out time scale capped at its training value."""
    held_out = np.sort(pooled_ritz_timescales(fit))[::-1]
    trained = np.sort(1 / np.mean([np.linalg.eigvalsh(f.train_energy) for f in fit.folds], axis=0))[::-1]
    return float(np.minimum(held_out, trained).sum())


def _value(select: Callable[[CrossFit], Score], fit: CrossFit) -> float:
    return select(fit).value


#: Scoring rules: "timescale" is the default of KernelSearchCV, the others are alternatives that were rejected.
RULES: dict[str, Callable[[CrossFit], float]] = {
    **{name: partial(_value, select) for name, select in SCORINGS.items()},
    "mean of fold sums": lambda fit: float(np.mean(SCORINGS["timescale"](fit).fold_values)),
    "pooled sum": _pooled(1.0, 0.0),
    "pooled sum - SE": _pooled(1.0, 1.0),
    "pooled sqrt": _pooled(0.5, 0.0),
    "pooled sqrt - SE/2": _pooled(0.5, 0.5),
    "capped by training": _capped,
    "pooled sum x agreement": lambda fit: _pooled(1.0, 0.0)(fit) * fit.agreement(),
}


def _candidates(system: Problem, X: np.ndarray, seed: int, settings: Settings) -> list[dict[str, Any]]:
    """Return the scores of all rules and the true SubR² for each candidate of the grid."""
    r = system.n_modes
    fresh = system.sample(settings.n_fresh, random_state=seed + 100_000)
    reference, printed = system.reference(X, r), paper_reference(system, X)
    folds = Folds(make_splits(settings.folds, X, None, r, seed), len(X))
    source, form = ArraySource(X, checked=True), EnergyForm(DiffusionTensor(None, system.dim))
    found = []
    for family in FAMILIES:
        for sigma in median_distance(X, random_state=seed) * np.geomspace(*BANDWIDTH_RANGE, settings.n_bandwidths):
            basis = make_basis("fourier", make_kernel(family, sigma), X, settings.n_features, random_state=seed)
            Z, beyond = basis.features(X), compute_moments(basis, fresh)
            fits = cross_fit(*folds.moments(source, form, basis), basis.ridge, r, REGULARIZATIONS)
            for lam, fit in zip(REGULARIZATIONS, fits, strict=True):
                if fit is not None:
                    a = fit.coefficients
                    found.append(
                        {
                            "kernel": f"{family} {sigma:.3g} {lam:.0e}",
                            "rules": {name: rule(fit) for name, rule in RULES.items()},
                            "fresh": timescale_score(a.T @ beyond.covariance() @ a, a.T @ beyond.mean_energy() @ a),
                            "r2": metrics.subspace_r2(Z @ a, reference),
                            "paper_r2": metrics.subspace_r2(Z @ a, printed),
                            "rates": np.sort(fit.rates),
                        }
                    )
    return found


def run(problem: str, seed: int, **settings: Any) -> list[Row]:
    """Return one row per rule for one sample of one problem."""
    system, X = load_samples(problem, seed)
    candidates = _candidates(system, X, seed, Settings(**settings))
    chosen = {rule: max(candidates, key=lambda c: c["rules"][rule]) for rule in RULES}
    chosen["fresh samples"] = max(candidates, key=lambda c: c["fresh"])
    chosen["oracle"] = max(candidates, key=lambda c: c["r2"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = KernelSearchCV(system.n_modes, random_state=seed).fit(X)
    modes = search.transform(X)
    chosen["KernelSearchCV"] = {
        "kernel": str(search.best_params_),
        "r2": metrics.subspace_r2(modes, system.reference(X, system.n_modes)),
        "paper_r2": metrics.subspace_r2(modes, paper_reference(system, X)),
        "rates": np.sort(search.rates_),
    }
    exact = system.rates(min(3, system.n_modes))
    return [
        {
            "problem": problem,
            "seed": seed,
            "rule": rule,
            "kernel": c["kernel"],
            "r2": float(c["r2"]),
            "paper_r2": float(c["paper_r2"]),
            "rate_errors": (np.abs(c["rates"][: len(exact)] / exact - 1)).tolist(),
        }
        for rule, c in chosen.items()
    ]


def table(rows: list[Row]) -> str:
    """Return a Markdown table of the regrets by problem and rule."""
    lines = []
    for (problem,), mine in grouped(rows, "problem").items():
        by_seed = sorted(mine, key=lambda row: row["seed"])
        r2 = {rule: np.array([row["r2"] for row in by_seed if row["rule"] == rule]) for rule in _rules(mine)}
        for rule in _rules(mine):
            regret = r2["oracle"] - r2[rule]
            errors = np.mean([row["rate_errors"] for row in mine if row["rule"] == rule], axis=0)
            paper = np.mean([row["paper_r2"] for row in mine if row["rule"] == rule])
            lines.append(
                [
                    problem,
                    rule,
                    f"{r2[rule].mean():.4f}",
                    f"{regret.mean():.4f}",
                    f"{regret.max():.4f}",
                    f"{(r2['fresh samples'] - r2[rule]).mean():+.4f}",
                    " ".join(f"{e:.2f}" for e in errors),
                    f"{paper:.3f}",
                    f"{cross_validated(problem):.3f}",
                ]
            )
    header = ["problem", "rule", "SubR²", "regret", "worst", "vs fresh", "rate errors", "paper's reference", "printed"]
    return markdown(header, lines)


def figure(rows: list[Row]) -> Figure:
    """Plot the regret of each seed, by problem, for the default rule and the rules of the paper."""
    names = list(dict.fromkeys(row["problem"] for row in rows))
    oracle = {(row["problem"], row["seed"]): row["r2"] for row in rows if row["rule"] == "oracle"}
    fig = Figure(figsize=(10, 4.5), layout="constrained")
    ax = fig.subplots()
    shown = {"timescale": "C0", "rayleigh": "C1", "gap": "C2", "eigsum": "C3"}
    for shift, (rule, colour) in zip(np.linspace(-0.27, 0.27, len(shown)), shown.items(), strict=True):
        mine = [row for row in rows if row["rule"] == rule]
        regret = [max(oracle[row["problem"], row["seed"]] - row["r2"], 1e-4) for row in mine]
        at = np.array([names.index(row["problem"]) for row in mine]) + shift
        ax.plot(at, regret, "o", color=colour, alpha=0.6, ms=5, mec="none", label=rule)
    ax.axhline(0.05, color="0.6", lw=0.8, ls="--")
    ax.set(yscale="log", ylabel="regret: oracle SubR² - selected SubR²", title="Choosing the kernel without the truth")
    ax.set_xticks(range(len(names)), names, rotation=30, ha="right")
    ax.legend(title="scoring", ncols=4)
    return fig


def landscape(problem: str, seed: int, settings: Settings, path: Path) -> None:
    """Plot the true SubR² of each candidate against its score, from folds and from new samples."""
    system, X = load_samples(problem, seed)
    candidates = _candidates(system, X, seed, settings)
    r2 = np.array([c["r2"] for c in candidates])
    fig = Figure(figsize=(10, 4), layout="constrained")
    titles = {"timescale": "by the folds of these samples", "fresh": f"by {settings.n_fresh} fresh samples"}
    for ax, (name, title) in zip(fig.subplots(1, 2, sharey=True), titles.items(), strict=True):
        score = np.array([c["fresh"] if name == "fresh" else c["rules"][name] for c in candidates])
        for family in FAMILIES:
            mine = [c["kernel"].startswith(family + " ") for c in candidates]
            ax.plot(score[mine], r2[mine], ".", ms=4, alpha=0.7, label=family)
        best = int(np.argmax(score))
        ax.plot(score[best], r2[best], "*", ms=15, mfc="none", mec="black", label="chosen")
        ax.axhline(r2.max(), color="0.6", lw=0.8, ls="--")
        ax.set(xlabel=f"score {title}", title=f"{problem}, seed {seed}: {candidates[best]['kernel']}")
        ax.set_xlim(np.quantile(score, 0.4), None)
    fig.axes[0].set_ylabel("SubR² against the true slow modes")
    fig.axes[0].legend(frameon=False, fontsize="small")
    fig.savefig(path, dpi=130)


def _rules(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(row["rule"] for row in rows))


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment from the command line."""
    # Seeds below 2000 were used to choose the rule.
    parser = options_of("regret", __doc__, n_seeds=5, quick="two seeds, fewer bandwidths", first_seed=2000)
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS))
    parser.add_argument("--landscape", nargs=2, metavar=("PROBLEM", "SEED"), help="draw one landscape and stop")
    options = parser.parse_args(arguments)
    settings = Settings(n_bandwidths=5) if options.quick else Settings()
    if options.landscape:
        problem, seed = options.landscape[0], int(options.landscape[1])
        options.out.mkdir(parents=True, exist_ok=True)
        landscape(problem, seed, settings, options.out / f"landscape-{problem}-{seed}.png")
        return
    seeds = range(options.first_seed, options.first_seed + (2 if options.quick else options.seeds))
    tasks = [{"problem": p, "seed": s, **asdict(settings)} for p in options.problems for s in seeds]
    rows = run_tasks(run, tasks, options.out / "rows.jsonl", options.jobs)
    publish("regret", rows + rows_before("regret", rows), table, figure, options.out)


if __name__ == "__main__":
    main()
