"""Dictionaries from the data: a metric, or modes as inputs.

Every dictionary gets two rounds of equally many candidates: six families × eight bandwidths × six regularizations, all
with the same folds and 200 Fourier features. The first round is the same for all. The second round uses intermediate
bandwidths (in medians of the distances of its inputs), and its inputs are

- *families*: the inputs of the first round;
- *metric*: X H, H Hᵀ = M = E Σ_k ∇φ_k ∇φ_kᵀ / rate_k, of the modes φ of the first round;
- *modes*: the modes φ(x) themselves;
- *inputs and modes*: both side by side.

Modes as inputs change the kernel alone. With the Jacobian J = ∂y/∂x of the new inputs, a function f(y(x)) has the
gradient Jᵀ∇f, so its energy uses the tensor J Jᵀ at every sample: `diffusion=Factor(J)`. The round with the higher
held-out score counts. *default* is `AdaptiveDiffusionMap` at its own cost.

SubR² is the mean squared cosine with the true slow modes. The first rate belongs to the slowest function in the span of
the learned modes. Seconds are CPU time of both rounds. The second table compares both rounds: how often the second one
has the higher held-out score, how often the higher SubR², and the increase of the score Σ√t on held-out samples and of
Σt on 2,000 fresh samples.

    python -m experiments.dictionaries --quick
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from experiments._fits import error_dots, fit_default, ritz
from experiments._runner import Row, grouped, markdown, options_of, publish, run_tasks
from kdmaps import metrics, problems
from kdmaps.data.distances import median_distance
from kdmaps.diagnostics.relevance import relevance
from kdmaps.estimators.search import KernelSearchCV
from kdmaps.forms.diffusion import Factor
from kdmaps.problems import Problem
from kdmaps.selection.roots import metric_root

#: Problem with inputs that do not matter.
NUISANCE = "triplewell2d+48"
PROBLEMS = ("ou2d-4", "ou10d", "triplewell2d", "sphere-3", "circle", NUISANCE)
N_SAMPLES, N_FRESH, N_FEATURES, N_FOLDS = 500, 2000, 200, 3
#: Bandwidths of both rounds, by turns, in median distances; absolute regularizations: these systems have rates near 1.
BANDWIDTHS, LAMBDAS = np.geomspace(0.5, 50, 16), np.geomspace(1e-6, 1e-1, 6)
DICTIONARIES = ("families", "metric", "modes", "inputs and modes")
#: Offset of the seeds of fresh samples.
FRESH = 1_000_000


class Inputs(NamedTuple):
    """Inputs of the kernels at every point, and their derivatives with respect to the points."""

    values: np.ndarray  # (n, k)
    jacobian: np.ndarray  # (n, k, d)


def plain(X: np.ndarray) -> Inputs:
    """Return the points themselves."""
    return linear(X, np.eye(X.shape[1]))


def linear(X: np.ndarray, root: np.ndarray) -> Inputs:
    """Return X H."""
    return Inputs(X @ root, np.broadcast_to(root.T, (len(X), *root.T.shape)))


def inputs_of(dictionary: str, X: np.ndarray, first: KernelSearchCV) -> Callable[[np.ndarray], Inputs]:
    """Return the inputs of a second round as a function of the points, after a first one on X."""
    if dictionary == "families":
        return plain
    if dictionary == "metric":
        root = metric_root(relevance(first, X).matrix)
        return lambda points: linear(points, root)
    if dictionary == "modes":
        return lambda points: Inputs(first.transform(points), first.gradient(points))
    scale = median_distance(X, None, 0) / median_distance(first.transform(X), None, 0)

    def both(points: np.ndarray) -> Inputs:
        pairs = zip(plain(points), (scale * first.transform(points), scale * first.gradient(points)), strict=True)
        return Inputs(*(np.concatenate(pair, axis=1) for pair in pairs))

    return both


def search(inputs: Inputs, n_modes: int, seed: int, bandwidths: np.ndarray) -> tuple[KernelSearchCV, float]:
    """Return a search in these inputs with the energy of the samples themselves, and its seconds of the CPU."""
    one = inputs.jacobian[0]
    diffusion: Any = one @ one.T if np.all(inputs.jacobian == one) else Factor(inputs.jacobian)
    start = time.process_time()
    model = KernelSearchCV(
        n_modes,
        bandwidths=bandwidths * median_distance(inputs.values, None, seed),
        regularizations=LAMBDAS,
        max_extensions=0,
        basis="fourier",
        n_features=N_FEATURES,
        diffusion=diffusion,
        cv=N_FOLDS,
        random_state=seed,
        n_jobs=1,
    ).fit(inputs.values)
    return model, time.process_time() - start


def rates_at(model: Any, inputs: Inputs) -> np.ndarray:
    """Return the rates in the span of the modes of a model, at the points that these inputs belong to."""
    slopes = model.gradient(inputs.values)
    return ritz(model.transform(inputs.values), np.einsum("nmk,nkd->nmd", slopes, inputs.jacobian))[0]


class Truth(NamedTuple):
    """The exact problem, the samples, and fresh samples."""

    system: Problem
    X: np.ndarray
    fresh: np.ndarray

    def measures(self, model: Any, inputs: Callable[[np.ndarray], Inputs]) -> Row:
        """Return SubR², the first rate over the exact one, and the sum of time scales at fresh samples."""
        system, here = self.system, inputs(self.X)
        r2 = metrics.subspace_r2(model.transform(here.values), system.reference(self.X, system.n_modes))
        rate = rates_at(model, here)[0] / system.rates(1)[0]
        return {"r2": float(r2), "rate": float(rate), "fresh": float((1 / rates_at(model, inputs(self.fresh))).sum())}


def run(problem: str, n: int, seed: int) -> list[Row]:
    """Return the rows of one sample: of the first round, each dictionary and the default."""
    system = problems.load(problem)
    truth = Truth(system, system.sample(n, random_state=seed), system.sample(N_FRESH, random_state=seed + FRESH))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [*rounds(truth, seed), default(truth, seed)]
    return [{"problem": problem, "n": n, "seed": seed, **row} for row in found]


def rounds(truth: Truth, seed: int) -> list[Row]:
    """Return the first round and, for each dictionary, the better of both rounds with the values of each."""
    r, X = truth.system.n_modes, truth.X
    model, spent = search(plain(X), r, seed, BANDWIDTHS[::2])
    first = {**truth.measures(model, plain), "score": model.best_selection_score_}
    rows: list[Row] = [{"dictionary": "first round", **first, "seconds": spent}]
    for name in DICTIONARIES:
        inputs = inputs_of(name, X, model)
        other, seconds = search(inputs(X), r, seed, BANDWIDTHS[1::2])
        second = {**truth.measures(other, inputs), "score": other.best_selection_score_}
        better = second if second["score"] > first["score"] else first
        rows.append({"dictionary": name, **better, "seconds": spent + seconds, "first": first, "second": second})
    return rows


def default(truth: Truth, seed: int) -> Row:
    """Return the row of the default estimator."""
    start = time.process_time()
    model, _ = fit_default(truth.X, truth.system.n_modes, seed, n_jobs=1)
    seconds = time.process_time() - start
    return {"dictionary": "default", **truth.measures(model, plain), "seconds": seconds}


def table(rows: list[Row]) -> str:
    """Return two Markdown tables: the answers, and both rounds of each dictionary."""
    names = list(dict.fromkeys(row["problem"] for row in rows))
    kinds = list(dict.fromkeys(row["dictionary"] for row in rows))
    lines = []
    for kind in kinds:
        for measure in ("SubR² (worst)", "error of rate 1", "seconds"):
            cells = [_cell([row for row in rows if _is(row, name, kind)], measure) for name in names]
            lines.append([kind if measure.startswith("Sub") else "", measure, *cells])
    second = [row for row in rows if "second" in row]
    groups = {NUISANCE: {NUISANCE}, "the others": set(names) - {NUISANCE}}
    rounds = [
        [kind, group, *_rounds(mine)]
        for kind in dict.fromkeys(row["dictionary"] for row in second)
        for group, members in groups.items()
        if (mine := [row for row in second if row["dictionary"] == kind and row["problem"] in members])
    ]
    header = ["second round", "problems", "fits", "higher score", "higher SubR²", "score rises by", "Σt, fresh, by",
              "SubR² by"]  # fmt: skip
    answers = markdown(["dictionary", "", *names], lines)
    return f"{answers}\n\nThe second round against the first:\n\n{markdown(header, rounds)}"


def _is(row: Row, problem: str, dictionary: str) -> bool:
    return bool(row["problem"] == problem and row["dictionary"] == dictionary)


def _cell(rows: list[Row], measure: str) -> str:
    if measure.startswith("Sub"):
        r2 = [row["r2"] for row in rows]
        return f"{np.mean(r2):.4f} ({min(r2):.3f})"
    if measure == "seconds":
        return f"{np.mean([row['seconds'] for row in rows]):.1f}"
    return f"{np.mean([abs(row['rate'] - 1) for row in rows]):.1%}"


def _rounds(rows: list[Row]) -> list[str]:
    """Return the cells that compare both rounds; differences are means over samples, with their standard errors."""

    def gain(name: str) -> np.ndarray:
        return np.array([row["second"][name] - row["first"][name] for row in rows])

    score, r2 = gain("score"), gain("r2")
    fresh = 100 * gain("fresh") / [row["first"]["fresh"] for row in rows]
    count = [str(len(rows)), str(np.sum(score > 0)), str(np.sum(r2 > 0))]
    error = np.sqrt(max(len(rows), 2) - 1)
    shown = [(score, ".4f", ""), (fresh, ".2f", " %"), (r2, ".4f", "")]
    return [*count, *(f"{x.mean():+{how}}{unit} ± {x.std() / error:{how}}" for x, how, unit in shown)]


def figure(rows: list[Row]) -> Figure:
    """Plot the error 1 - SubR² of every sample with each dictionary."""
    series = {kind: mine for (kind,), mine in grouped(rows, "dictionary").items()}
    title = "Two rounds of candidates with different inputs in the second one"
    return error_dots(series, ["problem"], title, {"first round": "0.5", "default": "k"}, size=(9.5, 4.2))


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment from the command line."""
    parser = options_of("dictionaries", __doc__, n_seeds=3, quick="one sample of 200 of one problem", first_seed=9700)
    options = parser.parse_args(arguments)
    names, n, n_seeds = (PROBLEMS[:1], 200, 1) if options.quick else (PROBLEMS, N_SAMPLES, options.seeds)
    tasks = [
        {"problem": name, "n": n, "seed": options.first_seed + number} for name in names for number in range(n_seeds)
    ]
    publish("dictionaries", run_tasks(run, tasks, options.out / "rows.jsonl", options.jobs), table, figure, options.out)


if __name__ == "__main__":
    main()
