"""Choice of kernel, metric, basis and λ of a committor by its held-out energy.

Any function between 0 and 1 with the right boundary values has at least the energy of the committor, the reactive flux.
On samples that a candidate was not made of, the lowest energy therefore marks the best candidate, up to noise. Two
properties keep single samples from deciding: functions are clipped to [0, 1] before their energy is measured, which
keeps them admissible and removes small oscillations in the wells, where samples have large weights; and the few samples
that contribute most are left out. Leaving out samples is safe for an energy that is minimised: it can only lower the
energy of candidates that single samples would reject.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from kdmaps.bases import Basis, BasisSpec, ModeBasis, select_landmarks
from kdmaps.checks import Check, rules, warn
from kdmaps.data.distances import median_distance
from kdmaps.data.sources import ArraySource
from kdmaps.diagnostics.evidence import evaluated_at, values_at
from kdmaps.forms.diffusion import DiffusionTensor, mean_diffusion
from kdmaps.forms.energy import EnergyForm
from kdmaps.kernels import Kernel, Metric, make_kernel
from kdmaps.selection.folds import Folds, Splits, make_splits, resolve_cv
from kdmaps.selection.roots import metric_root
from kdmaps.spectrum.committor import BoundarySums
from kdmaps.utils.progress import track
from kdmaps.utils.threads import map_unordered

#: Sides of a sample: in A, in B, outside of both.
SOURCE, TARGET, OUTSIDE = 0, 1, -1
#: Basis functions to choose from: both, or one of them.
BASES = ("auto", "fourier", "landmarks")
#: Folds of independent samples.
FOLDS = 5
#: One of so many samples, rounded up, is left out of a held-out energy.
TRIMMED = 2_000
#: κ in units of the flux. Boundary values are then wrong by about 1e-4; up to 1e8 the solutions hardly differ.
PENALTY = 1e4
#: Penalty of squared misfits at held-out samples of A and B, in units of the flux: a misfit of .01 counts 10 %.
MISFIT = 1000.0
#: λ in units of the flux.
LAMBDAS = 10.0 ** np.arange(-6.0, 1.0)
#: Bandwidths of Gaussians that are tried first (Fourier features unless landmarks are asked for), in units of the
#: median distance.
WIDTHS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
#: Kernels that are tried next, and again with the last metric: family, basis, bandwidth in units of the best so far.
OTHERS = (
    ("gaussian", "fourier", 2**-0.5),
    ("gaussian", "fourier", 2**0.5),
    ("matern52", "fourier", 1.0),
    ("matern52", "fourier", 2.0),
    ("matern32", "fourier", 1.5),
    ("rq5", "fourier", 1.0),
    ("gaussian", "landmarks", 1.5),
    ("gaussian", "landmarks", 3.0),
    ("matern52", "landmarks", 2.5),
    ("matern52", "landmarks", 5.0),
    ("matern32", "landmarks", 5.0),
)
#: Bandwidths in a new metric: of Gaussian Fourier features, and in units of the bandwidth before the metric.
METRIC_WIDTHS, METRIC_FACTORS = (0.1, 0.2, 0.4, 0.8), (0.5, 1.0, 2.0)
#: Largest number of metrics.
METRIC_ROUNDS = 3
#: Samples of each set at which candidates are stretched; the choice is stretched at all samples.
SET_SAMPLES = 300
#: Boundary values of candidates, and of the choice, are stretched to 0 and 1 up to these deviations.
STRETCHED, TOLERANCE = 0.05, 0.15


@dataclass(frozen=True, eq=False)
class BoundaryData:
    """Samples of a boundary value problem."""

    X: np.ndarray  # (n, d)
    share: np.ndarray  # (n,): weights of the stationary law, with sum 1
    side: np.ndarray  # (n,): SOURCE, TARGET or OUTSIDE
    tensor: DiffusionTensor
    seed: int

    @cached_property
    def median(self) -> float:
        """Median distance of the samples, every one counted once: rare samples between the sets matter most."""
        return median_distance(self.X, None, self.seed)

    def sums(self, basis: Basis, labels: np.ndarray, n: int) -> list[BoundarySums]:
        """Return the sums over the samples with each of the labels 0, …, n-1."""
        classes = (3 * labels + self.side + 1)[:, None]  # OUTSIDE is -1
        form, sets = EnergyForm(self.tensor), [(0, 3 * c + k) for c in range(n) for k in range(3)]
        weight = np.where(self.side == OUTSIDE, self.share, 1.0)
        found = ArraySource(self.X, checked=True).moments(form, basis, weight, classes, sets)
        masses = [[self.share[(labels == c) & (self.side == k)].sum() for k in (SOURCE, TARGET)] for c in range(n)]
        parts = (found[3 * c : 3 * c + 3] for c in range(n))
        return [BoundarySums(out, a, b, np.array(mass)) for (out, a, b), mass in zip(parts, masses, strict=True)]

    def stretched(
        self, functions: ModeBasis, rows: np.ndarray, most: int | None = None, tolerance: float = TOLERANCE
    ) -> tuple[ModeBasis, np.ndarray]:
        """Stretch functions to at most 0 in A and at least 1 in B, and return how far they were from it; (n,).

        Of the samples of each set among `rows`, at most the first `most` are used.
        """
        ends = []
        for side, extreme in ((SOURCE, np.max), (TARGET, np.min)):
            own = self.X[rows[self.side[rows] == side][:most]]
            ends.append(extreme(values_at(functions, own), axis=0))
        low, high = np.clip(ends[0], 0, tolerance), np.clip(ends[1], 1 - tolerance, 1)
        coefficients, offset = functions.coefficients / (high - low), (functions.offset + low) / (high - low)
        return ModeBasis(functions.basis, coefficients, offset), np.maximum(ends[0], 1 - ends[1])

    def misfit(self, functions: ModeBasis, rows: np.ndarray, most: int) -> np.ndarray:
        """Return the mean squares of f above 0 in A and below 1 in B, added, at the first `most` rows of each; (n,)."""
        total = np.zeros(functions.n_features)
        for side, sign in ((SOURCE, 1.0), (TARGET, -1.0)):
            own = rows[self.side[rows] == side][:most]
            if own.size:
                excess = sign * (values_at(functions, self.X[own]) - side)
                total += np.mean(np.maximum(excess, 0) ** 2, axis=0)
        return total

    def evaluate(self, functions: ModeBasis, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return values and contributions to the energy of functions clipped to [0, 1], at rows; each (n, k)."""
        X = np.asarray(self.X[rows], dtype=np.float64)
        values = values_at(functions, X)
        values[self.side[rows] == SOURCE], values[self.side[rows] == TARGET] = 0, 1
        energies, inside = np.zeros_like(values), (values > 0) & (values < 1)
        some = np.flatnonzero(inside.any(axis=1))  # gradients are needed at few samples
        if some.size:
            energies[some] = self.share[rows[some], None] * evaluated_at(functions, X[some], self.tensor, rows[some])[1]
        return np.clip(values, 0, 1), np.where(inside, energies, 0)


@dataclass(frozen=True)
class Recipe:
    """How a function is made of samples."""

    family: str
    width: float  # bandwidth in units of the median distance
    basis: str
    regularization: float = LAMBDAS[2]  # λ in units of the flux
    origin: Recipe | None = None  # the function whose gradient defines the metric of the kernel


@dataclass(frozen=True, eq=False)
class Evaluated:
    """A recipe with its held-out energies."""

    recipe: Recipe
    energies: np.ndarray  # (n,): held-out contributions
    misfit: float  # penalty of boundary values that are not met at held-out samples
    score: float  # the energies without the largest, plus the misfit; infinite if there is no solution

    def row(self) -> dict[str, Any]:
        """Return plain data."""
        recipe, rounds = self.recipe, 0
        while recipe.origin is not None:
            recipe, rounds = recipe.origin, rounds + 1
        names = ("family", "basis", "width", "regularization")
        return {name: getattr(self.recipe, name) for name in names} | {"metrics": rounds, "score": self.score}


class CommittorSearch:
    """Evaluation of recipes on folds."""

    def __init__(self, data: BoundaryData, folds: Splits, n_features: int):
        self.data: BoundaryData = data
        self.folds: Splits = folds
        self.n_features: int = n_features
        self._classes = Folds(folds, len(data.X))
        self._everything = np.arange(len(data.X))
        self._landmarks: dict[int | None, np.ndarray] = {}
        self._roots: dict[tuple[Recipe, int | None], np.ndarray] = {}
        self._once = threading.RLock()  # recipes in several threads wait for landmarks and metrics that they share
        # One of the samples in each TRIMMED that have a part in the energy, over all folds.
        self._left_out = ceil(sum(np.count_nonzero(data.side[test] == OUTSIDE) for _, test in folds) / TRIMMED)

    @cached_property
    def flux_scale(self) -> float:
        """Order of magnitude of the flux, the unit of λ and κ: the energy of a first solution in these units."""
        data = self.data
        scale = mean_diffusion(data.tensor, data.X, self._everything) / data.median**2
        basis = self.make_basis(Recipe("gaussian", WIDTHS[2], "fourier"))
        (sums,) = data.sums(basis, np.zeros(len(data.X), dtype=int), 1)
        for _ in range(8):  # converges by orders of magnitude at a time
            c = sums.solve(basis, [LAMBDAS[3] * scale], PENALTY * scale).coefficients
            energy = float(np.einsum("pn,pn->", c, sums.energy() @ c))
            if not energy > 0:
                break
            scale = energy
        return scale

    def solve(self, sums: BoundarySums, basis: Basis, lambdas: Sequence[float] | np.ndarray) -> ModeBasis:
        """Return the solutions at these λ, in units of the flux."""
        unit = self.flux_scale
        return sums.solve(basis, [unit * regularization for regularization in lambdas], PENALTY * unit)

    def evaluate(self, recipe: Recipe) -> list[Evaluated]:
        """Evaluate a recipe on the folds, at every λ."""
        n, k = len(self.data.X), len(LAMBDAS)
        energies, misfits = np.zeros((n, k)), np.zeros(k)
        for f, basis, sums in self._trained(recipe):
            train, test = self.folds[f]
            functions, _ = self.data.stretched(self.solve(sums, basis, LAMBDAS), train, SET_SAMPLES, STRETCHED)
            misfits += self.data.misfit(functions, test, SET_SAMPLES) / len(self.folds)
            energies[test] = self.data.evaluate(functions, test)[1]
        misfits *= MISFIT * self.flux_scale
        scores = np.sort(energies, axis=0)[: n - self._left_out].sum(axis=0) + misfits
        scores = np.where(np.isfinite(scores), scores, np.inf)
        recipes = [replace(recipe, regularization=float(lam)) for lam in LAMBDAS]
        found = zip(recipes, energies.T, misfits.tolist(), scores.tolist(), strict=True)
        return [Evaluated(*one) for one in found]

    def _trained(self, recipe: Recipe) -> Iterator[tuple[int, Basis, BoundarySums]]:
        """Yield the basis of each fold and the sums over its training samples, from which the basis is made."""
        if recipe.basis == "fourier" and recipe.origin is None:  # one basis for all folds
            basis, roles = self.make_basis(recipe), self._classes.roles
            parts = self.data.sums(basis, self._classes.owner[:, 0].astype(int), len(roles))
            for f in range(len(self.folds)):
                chosen = [part for part, role in zip(parts, roles[:, f], strict=True) if role == 1]
                yield f, basis, sum(chosen[1:], chosen[0])
            return
        for f, (train, _) in enumerate(self.folds):
            basis, labels = self.make_basis(recipe, f), np.ones(len(self.data.X), dtype=int)
            labels[train] = 0
            yield f, basis, self.data.sums(basis, labels, 1)[0]

    def make_basis(self, recipe: Recipe, fold: int | None = None) -> Basis:
        """Make the basis of the training samples of a fold, or of all samples."""
        kernel: Kernel = make_kernel(recipe.family, recipe.width * self.data.median)
        if recipe.origin is not None:
            with self._once:
                root = self._root(recipe.origin, fold)
            kernel = Metric(kernel, root)
        X = self.data.X if fold is None else self.data.X[self.folds[fold][0]]
        spec = BasisSpec(recipe.basis, self.n_features)
        if recipe.basis == "landmarks":
            with self._once:
                if fold not in self._landmarks:  # the same for all kernels
                    n = min(self.n_features, max(2, len(X) // 4))
                    self._landmarks[fold] = select_landmarks(X, n, "kmeans", self.data.seed)
            spec = replace(spec, landmarks=self._landmarks[fold])
        return spec.make(kernel, X, None, self.data.seed)

    def fit(self, recipe: Recipe, fold: int | None = None, data: BoundaryData | None = None) -> tuple[ModeBasis, float]:
        """Fit a recipe to the training samples of a fold, to all samples of the search, or to other samples.

        Also returned is the largest deviation from the boundary values before the function was stretched.
        """
        basis, data = self.make_basis(recipe, fold), self.data if data is None else data
        rows = np.arange(len(data.X)) if fold is None else self.folds[fold][0]
        labels = np.ones(len(data.X), dtype=int)
        labels[rows] = 0
        (sums,) = data.sums(basis, labels, 1)
        function, ends = data.stretched(self.solve(sums, basis, [recipe.regularization]), rows)
        return function, float(ends[0])

    def _root(self, recipe: Recipe, fold: int | None) -> np.ndarray:
        """Return H of the metric HHᵀ = E[∇q∇qᵀ] of a function, scaled to keep the median distance."""
        if (recipe, fold) not in self._roots:
            data, rows = self.data, self._everything if fold is None else self.folds[fold][0]
            function, _ = self.fit(recipe, fold)
            energies = data.evaluate(function, rows)[1][:, 0]
            some = rows[np.argsort(energies)[len(rows) - np.count_nonzero(energies) : len(rows) - self._left_out]]
            slopes = function.gradient(data.X[some], np.eye(1))[:, 0]
            matrix = (slopes.T * data.share[some]) @ slopes
            root = metric_root(matrix if matrix.any() else np.eye(len(matrix)))
            scale = data.median / median_distance(data.X @ root, None, data.seed)
            self._roots[recipe, fold] = scale * root
        return self._roots[recipe, fold]

    def _evaluate_all(self, recipes: Sequence[Recipe], label: str, progress: bool) -> list[Evaluated]:
        """Evaluate recipes in several threads; the result is in their order, whichever is finished first."""
        finished: dict[int, list[Evaluated]] = {}
        workers = ArraySource(self.data.X, checked=True).n_callers
        with closing(map_unordered(recipes, self.evaluate, workers)) as results:
            for number, candidates in track(results, len(recipes), lambda: label, progress):
                finished[number] = candidates
        return [candidate for number in range(len(recipes)) for candidate in finished[number]]

    def run(self, basis: str = "auto", progress: bool = False) -> tuple[Evaluated, list[Evaluated]]:
        """Return the best recipe, and all recipes in the order of their evaluation; `basis` is one of BASES."""
        evaluated: list[Evaluated] = []

        def add(recipes: Sequence[Recipe], stage: str) -> Evaluated:
            evaluated.extend(self._evaluate_all(recipes, f"search ({stage})", progress))
            # Without samples between the sets many energies are 0; the widest kernel then interpolates most smoothly.
            return min(evaluated, key=lambda one: (one.score, -one.recipe.width))

        plain = "fourier" if basis == "auto" else basis
        best = add([Recipe("gaussian", width, plain) for width in WIDTHS], "bandwidths")
        first = best.recipe.width
        if first in (WIDTHS[0], WIDTHS[-1]):
            best = add([Recipe("gaussian", first * (0.5 if first == WIDTHS[0] else 2.0), plain)], "more bandwidths")
        best = add(_others(best.recipe, basis), "families and bases")
        determined = 0 < best.score < np.inf and self.data.X.shape[1] > 1
        for metric in range(1, 1 + METRIC_ROUNDS if determined else 1):
            old = best.recipe
            trials = [replace(old, width=factor * old.width, origin=old) for factor in METRIC_FACTORS]
            trials += [Recipe("gaussian", width, plain, origin=old) for width in METRIC_WIDTHS]
            new = add(trials, f"metric {metric}")
            if new is best or not self.is_better(new, best):
                break
            best = new
        if best.recipe.origin is not None:
            add(_others(best.recipe, basis), "families and bases in the metric")
            new = min((one for one in evaluated if one.recipe.origin is best.recipe.origin), key=lambda one: one.score)
            best = new if self.is_better(new, best) else best
        return self._smoothest(best, evaluated), evaluated

    def _smoothest(self, best: Evaluated, evaluated: Sequence[Evaluated]) -> Evaluated:
        """Return the same kernel with the largest λ whose score is not worse by more than the standard error."""
        recipe = replace(best.recipe, regularization=0.0)
        same = (one for one in evaluated if replace(one.recipe, regularization=0.0) == recipe)
        good = (one for one in same if np.isfinite(one.score) and not self.is_better(best, one))
        return max(good, key=lambda one: one.recipe.regularization, default=best)

    def optimism(self, evaluated: Evaluated) -> float:
        """Return the ratio of held-out to training energy; at the samples left out, the training energy is used."""
        training = self.data.evaluate(self.fit(evaluated.recipe)[0], self._everything)[1][:, 0]
        held_out, largest = evaluated.energies.copy(), np.argsort(evaluated.energies)[len(training) - self._left_out :]
        held_out[largest] = np.minimum(held_out[largest], training[largest])
        return float(held_out.sum() / training.sum()) if training.any() else 1.0

    def is_better(self, new: Evaluated, old: Evaluated) -> bool:
        """Return whether a score is lower by more than the standard error of the difference."""
        most = np.maximum(new.energies, old.energies)
        kept = np.argsort(most)[: len(most) - self._left_out]
        difference = new.energies[kept] - old.energies[kept]
        return bool(difference.sum() + new.misfit - old.misfit < -np.sqrt(len(kept)) * difference.std())


def _others(best: Recipe, basis: str) -> list[Recipe]:
    """Return kernels of other families, bases and bandwidths with the same metric."""
    return [
        Recipe(family, best.width * factor, name, origin=best.origin)
        for family, name, factor in OTHERS
        if basis in ("auto", name)
    ]


def boundary_folds(X: np.ndarray, side: np.ndarray, groups: Any, seed: int, cv: Any = "auto") -> Splits:
    """Return folds that each train on samples of A, of B and of neither.

    Independent samples have random folds with equal numbers of samples of A and B. Folds of groups, or blocks of a
    trajectory, that train without one of the sets are left out.
    """
    chosen = resolve_cv(cv, ArraySource(X, checked=True), groups)
    if groups is None and isinstance(chosen, int):
        return _random_folds(side, seed)
    splits = make_splits(FOLDS if isinstance(chosen, int) else chosen, X, groups, 1, seed)
    needed = set(np.unique(side))
    kept = [(train, test) for train, test in splits if set(side[train]) == needed and len(test)]
    if len(kept) >= 2:
        return kept
    warn(Check(rules.COMMITTOR_FOLDS, len(kept)))
    return _random_folds(side, seed)


def _random_folds(side: np.ndarray, seed: int) -> Splits:
    smallest = min(np.unique(side, return_counts=True)[1])
    if smallest < 2:
        raise ValueError(
            "At least 2 samples are needed in A (y = 0), in B (y = 1) and outside of both (y = -1); one of these has 1."
        )
    splitter = StratifiedKFold(min(FOLDS, int(smallest)), shuffle=True, random_state=seed)
    return list(splitter.split(side[:, None], side))
