"""Open questions of the paper by experiment: differentiable selectors, mini-batches, other scores, other methods."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import linalg
from scipy.special import softmax

from experiments._runner import Row, finished
from experiments.paper._experiment import FIRST_SEED, Call, Experiment, now
from experiments.paper._printed import LABELS
from experiments.paper._problems import load
from experiments.paper._show import Table, cell
from kdmaps import metrics
from kdmaps.bases import FourierBasis, make_basis
from kdmaps.data.distances import median_distance
from kdmaps.estimators.adaptive import AdaptiveDiffusionMap
from kdmaps.estimators.kernel_map import KernelDiffusionMap
from kdmaps.estimators.variational import VariationalKernelMap
from kdmaps.forms.energy import compute_moments
from kdmaps.forms.moments import Moments
from kdmaps.generators import for_problem
from kdmaps.kernels import FAMILIES, Gaussian, Kernel, Mixture, make_kernel
from kdmaps.learn.objectives import make_objective
from kdmaps.learn.parametrisations import Anisotropy
from kdmaps.learn.problem import Problem
from kdmaps.learn.statistics import Samples
from kdmaps.problems import Problem as System
from kdmaps.selection.folds import Folds, make_splits

N_FEATURES = 150
REGULARIZATIONS = (1e-4, 1e-3, 1e-2, 1e-1)
#: The paper's bandwidths up to ten medians, denser: the wide half of its grid is never selected by held-out scores.
FACTORS = np.geomspace(0.5, 10, 7)


# --- a grid of candidates with several scores -------------------------------------------------------------------------
@dataclass(frozen=True)
class Fit:
    """Centred modes of some samples."""

    rates: np.ndarray
    coefficients: np.ndarray

    @classmethod
    def of(cls, moments: Moments, r: int, regularization: float) -> Fit:
        """Solve Σa = μ(L+λ)a with centred Σ."""
        covariance = moments.covariance(True)
        energy = moments.mean_energy()
        penalty = energy + regularization * np.eye(len(energy))
        p = len(energy)
        values, vectors = linalg.eigh(covariance, penalty, subset_by_index=[p - r, p - 1])
        return cls(1 / values[::-1], vectors[:, ::-1])


def held_out_timescales(fit: Fit, test: Moments) -> float:
    """Return Σ log t_k of the modes on test samples: the score of kdmaps, for one fold."""
    V = fit.coefficients
    times = linalg.eigh(V.T @ test.covariance(True) @ V, V.T @ test.mean_energy() @ V, eigvals_only=True)
    return float(np.sum(np.log(times)))


def held_out_rayleigh(fit: Fit, test: Moments, regularization: float) -> float:
    """Return the sum of Rayleigh quotients on test samples, centred, with λ."""
    V = fit.coefficients
    above = np.sum(V * (test.covariance(True) @ V), axis=0)
    below = np.sum(V * (test.mean_energy() @ V), axis=0) + regularization * np.sum(V**2, axis=0)
    return float(np.sum(above / below))


def reconstruction(train: np.ndarray, test: np.ndarray, X_train: np.ndarray, X_test: np.ndarray) -> float:
    """Return the share of the variance of X at test samples that a linear function of the modes explains."""
    design = np.column_stack([np.ones(len(train)), train])
    weights = np.linalg.lstsq(design, X_train, rcond=None)[0]
    residual = X_test - np.column_stack([np.ones(len(test)), test]) @ weights
    return float(1 - np.mean(residual**2) / np.mean((X_test - X_train.mean(axis=0)) ** 2))


def scored_candidates(X: np.ndarray, r: int, seed: int) -> list[dict[str, Any]]:
    """Return families, bandwidths and λ with the mean scores over three folds."""
    splits = make_splits(3, X, None, r, seed)[:3]
    median = median_distance(X)
    found = []
    for family, factor in product(FAMILIES, FACTORS):
        kernel = make_kernel(family, factor * median)
        basis = make_basis("fourier", kernel, X, N_FEATURES, random_state=seed)
        features = basis.features(X)
        parts = [[compute_moments(basis, X, rows=rows) for rows in split] for split in splits]
        for lam in REGULARIZATIONS:
            scores = []
            for (train, test), (rows, others) in zip(parts, splits, strict=True):
                fit = Fit.of(train, r, lam)
                V = fit.coefficients
                scores.append(
                    [
                        held_out_timescales(fit, test),
                        held_out_rayleigh(fit, test, lam),
                        reconstruction(features[rows] @ V, features[others] @ V, X[rows], X[others]),
                    ]
                )
            timescales, rayleigh, explained = np.mean(scores, axis=0)
            found.append(
                {
                    "kernel": kernel,
                    "family": family,
                    "factor": float(factor),
                    "regularization": lam,
                    "basis": basis,
                    "held-out time scales": timescales,
                    "Rayleigh quotients, centred": rayleigh,
                    "reconstruction of X": explained,
                }
            )
    return found


RULES = ("held-out time scales", "Rayleigh quotients, centred", "reconstruction of X")


def true_score(system: System, X: np.ndarray, modes: np.ndarray) -> float:
    """Return SubR² with the true slow modes."""
    return float(metrics.subspace_r2(modes, system.reference(X, modes.shape[1])))


def scores_of_rules(problem: str, seed: int) -> Row:
    """Return SubR² of the candidate that each rule selects, and of the best candidate."""
    system = load(problem)
    X = system.sample(500, random_state=seed)
    r = system.n_modes
    candidates = scored_candidates(X, r, seed)
    reached = []
    for candidate in candidates:
        basis = candidate["basis"]
        fit = Fit.of(compute_moments(basis, X), r, candidate["regularization"])
        reached.append(true_score(system, X, basis.features(X) @ fit.coefficients))
    chosen = {rule: reached[int(np.argmax([c[rule] for c in candidates]))] for rule in RULES}
    return {"problem": problem, "seed": seed, "r2": {**chosen, "best candidate": max(reached)}}


class Scores(Experiment):
    """Regret of three scores."""

    def run(self, seed: int, call: Call = now) -> list[Row]:
        """Return one row per problem."""
        return [call(scores_of_rules, problem=problem, seed=seed) for problem in self.problems]

    def table(self, rows: Sequence[Row]) -> Table:
        """Tabulate SubR² and regret."""
        lines = []
        for problem in dict.fromkeys(row["problem"] for row in rows):
            mine = [row["r2"] for row in rows if row["problem"] == problem]
            best = np.array([r2["best candidate"] for r2 in mine])
            regrets = [best - np.array([r2[rule] for r2 in mine]) for rule in RULES]
            lines.append([LABELS[problem], cell(best), *map(cell, regrets)])
        return Table(("problem", "SubR² of the best candidate", *(f"regret, {rule}" for rule in RULES)), lines)


# --- differentiable selectors -----------------------------------------------------------------------------------------
TEMPERATURES = (0.01, 0.1, 1.0)
#: Candidates with less weight are left out of a mixture.
SMALLEST_WEIGHT = 1e-3
C1_FAMILIES = ("gaussian", "matern32", "matern52", "rq2", "rq5")
STARTS = (1.0, 10.0)


def selectors(problem: str, seed: int) -> Row:
    """Return what argmax, soft argmax and gradients of the held-out score select, with SubR² and costs."""
    system = load(problem)
    X = system.sample(500, random_state=seed)
    r = system.n_modes
    start = time.process_time()
    candidates = scored_candidates(X, r, seed)
    cost = time.process_time() - start
    scores = np.array([candidate["held-out time scales"] for candidate in candidates])
    best = candidates[int(np.argmax(scores))]
    found = [_selected("argmax", system, X, seed, best["kernel"], best["regularization"], best["factor"], 1.0)]
    found[0]["family"] = best["family"]
    for temperature in TEMPERATURES:
        found.append(_soft(system, X, seed, candidates, softmax(scores / temperature), temperature))
    for factor in STARTS:
        found.append(_implicit(system, X, seed, factor, cost))
    return {"problem": problem, "seed": seed, "selectors": found}


def _selected(
    name: str, system: System, X: np.ndarray, seed: int, kernel: Kernel, lam: float, factor: float, cost: float
) -> dict[str, Any]:
    """Fit the selected kernel with pairs of features, and describe it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KernelDiffusionMap(
            system.n_modes, kernel=kernel, regularization=lam, n_features=N_FEATURES, random_state=seed
        ).fit(X)
    r2 = true_score(system, X, model.transform(X))
    return {"name": name, "r2": r2, "factor": factor, "regularization": lam, "cost": cost}


def _soft(
    system: System, X: np.ndarray, seed: int, candidates: list[dict[str, Any]], weights: np.ndarray, temperature: float
) -> dict[str, Any]:
    """Fit the mixture of all candidates with softmax weights and the mean of log λ."""
    kept = np.flatnonzero(weights > SMALLEST_WEIGHT)
    shares = weights[kept] / weights[kept].sum()
    kernel = Mixture([candidates[i]["kernel"] for i in kept], shares)
    lam = float(np.exp(shares @ np.log([candidates[i]["regularization"] for i in kept])))
    factor = float(np.exp(shares @ np.log([candidates[i]["factor"] for i in kept])))
    families = {name: sum(s for s, i in zip(shares, kept, strict=True) if candidates[i]["family"] == name) for name
                in FAMILIES}  # fmt: skip
    found = _selected(f"soft argmax, T = {temperature:g}", system, X, seed, kernel, lam, factor, 1.0)
    leading = max(families, key=lambda name: families[name])
    return {**found, "family": leading, "effective": float(np.exp(-np.sum(shares * np.log(shares))))}


def _implicit(system: System, X: np.ndarray, seed: int, factor: float, cost: float) -> dict[str, Any]:
    """Maximise the held-out score over weights of families, bandwidths and λ by its implicit derivative."""
    median = median_distance(X)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = VariationalKernelMap(
            system.n_modes,
            objective="heldout",
            kernels=C1_FAMILIES,
            bandwidth=factor * median,
            learn_regularization=True,
            n_features=100,
            adam_steps=30,
            lbfgs_steps=15,
            random_state=seed,
        ).fit(X)
    spent = time.process_time() - began
    parts = model.kernel_.components()
    weight, kernel = max(parts, key=lambda part: part[0])
    family = next(name for name, part in zip(C1_FAMILIES, parts, strict=True) if part[1] is kernel)
    return {
        "name": f"implicit gradient from {factor:g} medians",
        "r2": true_score(system, X, model.transform(X)),
        "family": family,
        "factor": float(np.ravel(kernel.bandwidth)[0]) / median,  # type: ignore[attr-defined]
        "regularization": float(model.regularization_),
        "cost": spent / cost,
        "effective": float(np.exp(-np.sum([w * np.log(w) for w, _ in parts]))),
        "weight": float(weight),
    }


class Selectors(Experiment):
    """Argmax, soft argmax and implicit gradients."""

    def run(self, seed: int, call: Call = now) -> list[Row]:
        """Return one row per problem."""
        return [call(selectors, problem=problem, seed=seed) for problem in self.problems]

    def table(self, rows: Sequence[Row]) -> Table:
        """Tabulate SubR², selected values and costs."""
        lines = []
        for problem in dict.fromkeys(row["problem"] for row in rows):
            mine = [row["selectors"] for row in rows if row["problem"] == problem]
            hard = [selected[0] for selected in mine]
            for position, first in enumerate(mine[0]):
                same = [selected[position] for selected in mine]
                agree = sum(s["family"] == h["family"] for s, h in zip(same, hard, strict=True))
                lines.append(
                    [
                        LABELS[problem],
                        first["name"],
                        cell(np.array([s["r2"] for s in same])),
                        ", ".join(s["family"] for s in same),
                        f"{agree} of {len(same)}",
                        ", ".join(f"{s['factor']:.2g}" for s in same),
                        ", ".join(f"{s['regularization']:.1g}" for s in same),
                        ", ".join(f"{s.get('effective', 1.0):.1f}" for s in same),
                        f"{np.mean([s['cost'] for s in same]):.1f}",
                    ]
                )
        header = ("problem", "selector", "SubR², true slow modes", "family", "family of the argmax", "σ / median",
                  "λ", "effective number of kernels", "cost / search")  # fmt: skip
        return Table(header, lines)


# --- mini-batches -----------------------------------------------------------------------------------------------------
BATCHES = (None, 2000, 500)
N_LARGE = 10_000
STEPS = 25
LEARNING_RATE = 0.05


def batched(problem: str, batch: int | None, seed: int) -> Row:
    """Return SubR² and cost of σ_j learned by Adam from batches; None is all samples at every step."""
    system = load(problem)
    X = system.sample(N_LARGE, random_state=seed)
    r = system.n_modes
    kernel = Gaussian(3 * median_distance(X, random_state=seed))
    basis = make_basis("fourier", kernel, X, N_FEATURES, random_state=seed)
    assert isinstance(basis, FourierBasis)
    objective = make_objective("heldout", r)
    rng = np.random.default_rng(seed)
    theta = np.zeros(system.dim)
    mean = np.zeros(system.dim)
    square = np.zeros(system.dim)
    values = []
    began = time.process_time()
    for step in range(1, STEPS + 1):
        rows = X if batch is None else X[rng.choice(len(X), batch, replace=False)]
        folds = Folds(make_splits(3, rows, None, r, step)[:3], len(rows))
        samples = Samples.of(rows, folds=folds)
        evaluation = Problem(Anisotropy(samples, basis, bound=3.0), objective, 1e-3).evaluate(theta)
        gradient = evaluation.gradient
        values.append(evaluation.value)
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        move = (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        theta = theta - LEARNING_RATE * move
    seconds = time.process_time() - began
    final = Anisotropy(Samples.of(X), basis, bound=3.0).basis(theta)
    modes = final.features(X) @ Fit.of(compute_moments(final, X), r, 1e-3).coefficients
    before = basis.features(X) @ Fit.of(compute_moments(basis, X), r, 1e-3).coefficients
    return {
        "problem": problem,
        "batch": batch,
        "seed": seed,
        "r2": true_score(system, X, modes),
        "start_r2": true_score(system, X, before),
        "theta": theta.tolist(),
        "spread": float(np.std(values[-5:])),
        "seconds": seconds,
    }


class Batches(Experiment):
    """Stochastic optimisation of the held-out score."""

    def run(self, seed: int, call: Call = now) -> list[Row]:
        """Return one row per problem and size of batches."""
        return [call(batched, problem=p, batch=batch, seed=seed) for p in self.problems for batch in BATCHES]

    def table(self, rows: Sequence[Row]) -> Table:
        """Tabulate SubR², the spread of the loss and the cost."""
        lines = []
        for problem, batch in product(dict.fromkeys(row["problem"] for row in rows), BATCHES):
            mine = [row for row in rows if row["problem"] == problem and row["batch"] == batch]
            full = [row for row in rows if row["problem"] == problem and row["batch"] is None]
            cost = np.mean([row["seconds"] for row in mine]) / np.mean([row["seconds"] for row in full])
            shifts = np.mean([row["theta"] for row in mine], axis=0)
            lines.append(
                [
                    LABELS[problem],
                    "all samples" if batch is None else str(batch),
                    cell(np.array([row["start_r2"] for row in mine])),
                    cell(np.array([row["r2"] for row in mine])),
                    ", ".join(f"{shift:+.2f}" for shift in shifts),
                    f"{np.mean([row['spread'] for row in mine]):.3f}",
                    f"{cost:.2f}",
                ]
            )
        header = ("problem", "batch", "SubR² at the start", "SubR² after 25 steps", "mean θ_j",
                  "sd of the last five losses", "cost / all samples")  # fmt: skip
        return Table(header, lines)


# --- other methods on the samples of the networks ---------------------------------------------------------------------
N_NEW = 2000
#: Modes slower than those inside of single wells, as in the comparison with networks.
N_MODES = {"triplewell2d": 2}
#: Bandwidths in medians of methods that have no rule of their own.
GRID = (0.25, 0.5, 1.0, 2.0)
#: Eigenvectors of K that kernel generator EDMD keeps, relative to the largest eigenvalue.
SMALLEST_EIGENVALUE = 1e-4
NETWORKS = ("kdmaps", "NeuralEF", "Deep Ritz")


@dataclass(frozen=True)
class Task:
    """Samples, and new points at which modes are compared."""

    system: System
    X: np.ndarray
    new: np.ndarray
    r: int
    seed: int

    def score(self, values: np.ndarray, rates: np.ndarray) -> dict[str, float]:
        """Return SubR² at the new points and the mean relative error of the rates."""
        exact = self.system.rates(self.r)
        return {
            "r2": true_score(self.system, self.new, values),
            "rate_error": float(np.mean(np.abs(np.sort(rates) / exact - 1))),
        }


def default(task: Task) -> dict[str, float]:
    """Fit the default of kdmaps."""
    model = AdaptiveDiffusionMap(task.r, random_state=task.seed).fit(task.X)
    return task.score(model.transform(task.new), model.rates_)


def kernel_flow(task: Task, halves: int = 10) -> dict[str, float]:
    """Choose σ by kernel flows for the drift, which must be known, and fit a Gaussian with it.

    ρ = 1 - |u_half|²/|u|² for the interpolants of the drift at half of the samples and at all, in the norm of the
    kernel's space, averaged over random halves.
    """
    X = task.X
    n = len(X)
    targets = for_problem(task.system).drift(X)
    targets = targets - targets.mean(axis=0)
    rng = np.random.default_rng(task.seed)
    parts = [rng.permutation(n)[: n // 2] for _ in range(halves)]
    losses = []
    sigmas = median_distance(X) * np.geomspace(0.1, 10, 13)
    for sigma in sigmas:
        gram = Gaussian(sigma)(X) + 1e-6 * np.eye(n)
        whole = np.sum(targets * linalg.solve(gram, targets, assume_a="pos"))
        shares = []
        for rows in parts:
            half = np.sum(targets[rows] * linalg.solve(gram[np.ix_(rows, rows)], targets[rows], assume_a="pos"))
            shares.append(1 - half / whole)
        losses.append(float(np.mean(shares)))
    sigma = float(sigmas[int(np.argmin(losses))])
    model = KernelDiffusionMap(task.r, bandwidth=sigma, regularization=1e-3, random_state=task.seed).fit(task.X)
    return {**task.score(model.transform(task.new), model.rates_), "factor": sigma / median_distance(X)}


def kernel_generator(task: Task) -> dict[str, float]:
    """Fit kernel generator EDMD (Klus, Nüske, Hamzi 2020), with the best σ in hindsight.

    Functions are f = Σ_j c_j k(·, x_j) in the leading eigenvectors of K: with c = US^(-1/2)b, values US^(1/2)b and
    images (𝒢k)c at the samples, S^(-1/2)Uᵀ(𝒢k)US^(-1/2)b = -κb. Without this cut, vectors that K maps to zero have
    κ = 0.
    """
    X = task.X
    generator = for_problem(task.system)
    found = []
    for factor in GRID:
        kernel = Gaussian(factor * median_distance(X))
        scales, U = linalg.eigh(kernel(X))
        kept = scales > SMALLEST_EIGENVALUE * scales[-1]
        half = U[:, kept] / np.sqrt(scales[kept])
        values, vectors = linalg.eig(half.T @ generator(kernel, X, X) @ half)
        order = np.argsort(-values.real)[1 : task.r + 1]  # the first one is the constant
        modes = kernel(task.new, X) @ (half @ vectors[:, order].real)
        found.append({**task.score(modes, -values[order].real), "factor": factor})
    return max(found, key=lambda result: result["r2"])


def laplace_transform(task: Task, steps: int = 40) -> dict[str, float]:
    """Estimate the resolvent by a Laplace transform of correlations over short paths from the same samples.

    ∫ e^{-ηt} C(t) dt a = ρ (C(0)+γ) a with ρ = 1/(η+κ): the method of Kostic et al. (2025), with Fourier features, for
    a reversible process. The best σ in hindsight.
    """
    system = task.system
    eta = float(system.rates(1)[0])
    time_step = 0.1 / system.rates(task.r)[-1]
    rng = np.random.default_rng(task.seed + 1)
    paths = system.simulate(steps + 1, time_step, len(task.X), x0=task.X, random_state=rng)
    weights = np.exp(-eta * time_step * np.arange(steps + 1)) * time_step
    weights[[0, -1]] /= 2
    found = []
    for factor in GRID:
        basis = make_basis("fourier", Gaussian(factor * median_distance(task.X)), task.X, 200, random_state=task.seed)
        first = basis.features(task.X)
        mean = first.mean(axis=0)
        first = first - mean
        later = sum(w * (basis.features(paths[:, k]) - mean) for k, w in enumerate(weights))
        resolvent = first.T @ later / len(first)
        covariance = first.T @ first / len(first) + 1e-4 * np.eye(len(mean))
        p = len(mean)
        values, vectors = linalg.eigh((resolvent + resolvent.T) / 2, covariance, subset_by_index=[p - task.r, p - 1])
        modes = (basis.features(task.new) - mean) @ vectors
        # The transform ends at T: ρ = (1 - e^{-(η+κ)T})/(η+κ); its end is left out of the rates.
        found.append({**task.score(modes, 1 / values - eta), "factor": factor})
    return max(found, key=lambda result: result["r2"])


METHODS: dict[str, Callable[[Task], dict[str, float]]] = {
    "kdmaps": default,
    "kernel flows": kernel_flow,
    "kernel generator EDMD": kernel_generator,
    "Laplace transform": laplace_transform,
}


def methods(problem: str, seed: int) -> Row:
    """Return scores and costs of all methods on the samples that networks are trained on."""
    system = load(problem)
    number = seed - FIRST_SEED  # seeds of the comparison with networks start at 0
    X = system.sample(500, random_state=number)
    new = system.sample(N_NEW, random_state=number + 100_000)
    task = Task(system, X, new, N_MODES.get(problem, system.n_modes), number)
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, method in METHODS.items():
            began = time.process_time()
            result = method(task)
            found[name] = {**result, "seconds": time.process_time() - began}
    return {"problem": problem, "seed": seed, "methods": found}


class Methods(Experiment):
    """Other methods on the samples of the networks."""

    def run(self, seed: int, call: Call = now) -> list[Row]:
        """Return one row per problem."""
        return [call(methods, problem=problem, seed=seed) for problem in self.problems]

    def table(self, rows: Sequence[Row]) -> Table:
        """Tabulate SubR², errors of rates, selected bandwidths and costs."""
        lines = []
        for problem in dict.fromkeys(row["problem"] for row in rows):
            mine = [row["methods"] for row in rows if row["problem"] == problem]
            base = np.mean([found["kdmaps"]["seconds"] for found in mine])
            for name in METHODS:
                results = [found[name] for found in mine]
                factors = ", ".join(f"{result['factor']:.2g}" for result in results if "factor" in result)
                lines.append(
                    [
                        problem,
                        name,
                        cell(np.array([result["r2"] for result in results])),
                        f"{np.mean([result['rate_error'] for result in results]):.2g}",
                        factors or "–",
                        f"{np.mean([result['seconds'] for result in results]) / base:.1f}",
                    ]
                )
            seeds = {row["seed"] - FIRST_SEED for row in rows}
            for name in NETWORKS[1:]:
                stored = network_scores(problem, name, seeds)
                if len(stored):
                    lines.append([problem, f"{name} (stored)", cell(stored), "–", "–", "–"])
        header = ("problem", "method", "SubR² at new samples", "error of the rates", "σ / median", "cost / kdmaps")
        return Table(header, lines)


def network_scores(problem: str, name: str, seeds: set[int], root: Path = Path("results/neural")) -> np.ndarray:
    """Return SubR² of a network on the same samples, from the stored comparison."""
    path = root / "rows.jsonl"
    if not path.exists():
        return np.array([])
    rows = [row for part in finished(path).values() for row in part]
    scores = {
        row["seed"]: row["subr2"]
        for row in rows
        if row["peer"] == name and row["n"] == 500 and row["problem"] == problem and "subr2" in row
    }
    return np.array([scores[seed] for seed in sorted(seeds & scores.keys())])


EXPERIMENTS: dict[str, Experiment] = {
    "question_selector": Selectors(
        "A differentiable selector",
        """Can a differentiable selector match the search on bandwidth, family and λ?

        *argmax*: the candidate with the largest held-out score, of six families, seven bandwidths and four λ. *soft
        argmax*: the mixture of all candidates with weights softmax(score/T), the proposal of the paper; it costs as
        much as the search, because every candidate is scored. *implicit gradient*: the held-out score itself is
        maximised over the weights of five differentiable families, their bandwidths and λ, by its derivative through
        the eigenproblem, from a narrow and a wide start. One sample of each problem.
        """,
        problems=("ou2d-4", "dw1d", "circle"),
        few=("dw1d",),
        n_seeds=1,
    ),
    "question_batches": Batches(
        "Mini-batches",
        """Stochastic optimisation: σ_j of a Gaussian from 10,000 samples by Adam, with all samples or batches.

        The loss is the held-out score of three folds within the batch, so batches change the objective and not only
        its noise. One sample.
        """,
        problems=("ou2d-4",),
        n_seeds=1,
    ),
    "question_scores": Scores(
        "Cross-validation by reconstruction",
        """Reconstruction-based cross-validation, which the paper mentions, among the regrets.

        It selects the modes from which a linear regression explains most of the variance of X at held-out samples. The
        regret is SubR² of the best candidate minus SubR² of the selected one.
        """,
        problems=("ou2d-4", "ou2d-16", "dw1d", "circle", "mdlike-10"),
        few=("dw1d", "mdlike-10"),
        n_seeds=2,
    ),
    "question_methods": Methods(
        "Kernel flows, kernel generator EDMD, Laplace transforms",
        """Three related methods on the 500 samples that networks are trained on elsewhere.

        *Kernel flows* choose σ so that the drift interpolated from half of the samples agrees with the interpolation
        from all; the drift must be known. *Kernel generator EDMD* needs the drift, too, and an eigenproblem of the size
        of the samples; its σ is the best in hindsight. The *Laplace transform* estimates the resolvent from paths of 40
        steps that start at the samples; its σ is the best in hindsight. kdmaps and networks use the samples alone.
        """,
        problems=("ou2d-4", "ou10d", "triplewell2d"),
        few=("ou2d-4",),
        n_seeds=3,
    ),
}
