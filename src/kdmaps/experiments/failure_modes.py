"""Which of the paper's failure modes are there, and which leave with the constant?

The Discussion of the paper says where gradient descent takes the bandwidth σ under each training loss. Here every loss
is computed over a grid of σ on one fixed draw of frequencies, uncentred (as in the paper), centred, and against the
held-out score (`heldout`, centred); the three main losses are also descended. A loss has failed where its minimum is at
an edge of [0.05, 500] medians of the distance, or where the modes at its minimum are not the slow ones.

    python -m kdmaps.experiments.failure_modes --quick
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from kdmaps import generators, metrics, problems
from kdmaps.bandwidths import median_distance
from kdmaps.bases import Basis, FourierBasis, LandmarkBasis, make_basis
from kdmaps.experiments._runner import Row, markdown, run_tasks
from kdmaps.folds import CrossFit, FoldMoments, cross_fit, make_splits
from kdmaps.grid import REGULARIZATIONS
from kdmaps.kernels import make_kernel
from kdmaps.learn._anisotropy import frequency_adjoint, scale_bandwidths
from kdmaps.learn._bandwidths import Bandwidths
from kdmaps.learn._objective import PRESETS, make_objective
from kdmaps.learn._optimiser import Settings as DescentSettings
from kdmaps.learn._optimiser import minimise
from kdmaps.learn._parametrisation import Parametrisation
from kdmaps.learn._problem import Problem
from kdmaps.learn._statistics import Samples
from kdmaps.selection import select_by_timescale

#: (problem, kernel, basis): where the paper made its claims, first; then what they might depend on.
CASES = (
    ("ou2d-4", "matern32", "fourier"),
    ("ou2d-4", "gaussian", "fourier"),
    ("ou2d-4", "gaussian", "landmarks"),
    ("dw1d", "gaussian", "fourier"),
)
N_MODES = 4
N_FEATURES = {"fourier": 300, "landmarks": 60}
SIGMA_RANGE = (0.05, 500.0)  # in medians of the pairwise distance, as every σ below
STARTS = (0.2, 2.0, 20.0)  # of descents
WEIGHTS = np.geomspace(1e-3, 1e2, 6)  # of regularizers: five orders of magnitude
#: σ that the paper's cross-validation selects: its eigenvalue sum takes the last σ of its grid, 50 medians.
PAPER_CHOICE = 50.0
TERMS = ("eig", "sub", "rkhs", "spread", "dirichlet", "heldout")
#: What a landscape has at every σ: numbers ("free": of the held-out score with λ chosen too), and numbers per mode.
SCALARS = (*TERMS, "r2", "paper_r2", "free_heldout", "free_r2")
VECTORS = ("mu", "rates", "square", "cross", "heldout_unit", "heldout_solver")
NOTHING = {**dict.fromkeys(SCALARS, np.nan), **dict.fromkeys(VECTORS, np.full(N_MODES, np.nan))}
SETUPS = ("uncentred", "centred", "heldout")
NARROW, WIDE = 0.25, 50.0  # σ → 0 and σ → ∞ mean a minimum at or beyond these


@dataclass(frozen=True)
class Settings:
    """What a run of the experiment depends on."""

    n_samples: int = 500
    n_sigmas: int = 33
    regularization: float = 1e-2
    folds: int = 3
    steps: int = 40


class FourierBandwidth(Parametrisation):
    """One σ for all coordinates, without bounds: θ = (log σ/σ_start,)."""

    def __init__(self, samples: Samples, basis: FourierBasis):
        self.samples, self._base, self.start = samples, basis, np.zeros(1)

    def kernel(self, theta):
        return scale_bandwidths(self._base.kernel, np.exp(theta[0]))

    def basis(self, theta):
        base = self._base
        return FourierBasis(self.kernel(theta), base.frequencies * np.exp(-theta[0]), base.weights, base.origin)

    def describe(self, theta):
        return {"sigma": np.atleast_1d(self.kernel(theta).bandwidth)}

    def forward(self, theta):
        basis = self.basis(theta)
        statistics = self.samples.statistics(basis, log_bandwidths=np.asarray(theta))

        def pullback(adjoint):
            by_frequencies = frequency_adjoint(self.samples, basis, statistics, adjoint)
            return adjoint.log_bandwidths - np.sum(basis.frequencies * by_frequencies)

        return statistics, pullback


class Laboratory:
    """One sample of one problem, one kernel family and one basis, for any σ."""

    def __init__(self, problem: str, family: str, basis: str, seed: int, settings: Settings):
        self.system, self.family, self.kind, self.seed, self.settings = (
            problems.load(problem), family, basis, seed, settings)  # fmt: skip
        self.X = self.system.sample(settings.n_samples, random_state=seed)
        self.median = median_distance(self.X, random_state=seed)
        self.splits = make_splits(settings.folds, self.X, None, N_MODES, seed)
        self.folds = FoldMoments(self.splits, len(self.X))
        self.samples = Samples.of(self.X, folds=self.folds)
        self.generator = generators.for_problem(self.system)

    def basis(self, sigma: float) -> Basis:
        """The same frequencies for every σ, up to their scale; the same landmarks."""
        kernel = make_kernel(self.family, sigma * self.median)
        return make_basis(self.kind, kernel, self.X, N_FEATURES[self.kind], random_state=self.seed)

    def parametrisation(self, sigma: float) -> Parametrisation:
        """A learnable σ that starts at `sigma`."""
        basis = self.basis(sigma)
        if isinstance(basis, LandmarkBasis):
            return Bandwidths(self.samples, [basis.kernel], basis.landmarks, basis.origin, learn_weights=False)
        assert isinstance(basis, FourierBasis)
        return FourierBandwidth(self.samples, basis)

    def problem(self, sigma: float, objective: Any, center: bool) -> Problem:
        """The objective as a function of log σ, from `sigma` on."""
        goal = make_objective(objective, N_MODES, center)
        return Problem(self.parametrisation(sigma), goal, self.settings.regularization)

    def fit(self, sigma: float, center: bool) -> tuple[Basis, CrossFit | None]:
        """Modes of all samples and of every fold; None if the samples do not determine them."""
        basis = self.basis(sigma)
        moments = self.folds.compute(basis, self.X, None, self.samples.diffusion)
        try:
            return basis, cross_fit(*moments, basis.ridge, N_MODES, [self.settings.regularization], center)[0]
        except np.linalg.LinAlgError:
            return basis, None

    def free_regularization(self, sigma: float) -> dict[str, float]:
        """The best held-out score over λ (centred) as a loss, and SubR² there."""
        basis = self.basis(sigma)
        moments = self.folds.compute(basis, self.X, None, self.samples.diffusion)
        fits = cross_fit(*moments, basis.ridge, N_MODES, REGULARIZATIONS)
        scores = [-np.inf if fit is None else select_by_timescale(fit).value for fit in fits]
        fit = fits[int(np.argmax(scores))]
        assert fit is not None
        modes = basis.features(self.X) @ fit.coefficients
        r2 = metrics.subspace_r2(modes, self.system.reference(self.X, N_MODES))
        return {"free_heldout": -max(scores), "free_r2": r2}

    def residual(self, basis: Basis, fit: CrossFit, center: bool) -> dict[str, np.ndarray]:
        """What residuals ‖𝒢φ + λ̂φ‖² of modes of unit norm consist of, and their held-out values."""
        values, images = basis.features(self.X), self.generator.apply(basis, self.X)
        square, cross, _ = _residual_moments(values, images, fit.coefficients, slice(None), slice(None), center)
        held_out = []
        for fold, (train, test) in zip(fit.folds, self.splits, strict=True):
            _, seen, norm = _residual_moments(values, images, fold.coefficients, train, train, center)
            rates = -seen / norm
            s, c, n = _residual_moments(values, images, fold.coefficients, train, test, center)
            held_out.append((s + 2 * rates * c + rates**2 * n, fold.eigenvalues))
        losses, sizes = np.array(held_out).transpose(1, 0, 2)
        return {
            "square": square,
            "cross": cross,
            "heldout_unit": losses.mean(axis=0),
            "heldout_solver": (losses * sizes).mean(axis=0),
        }


def _residual_moments(values, images, coefficients, train, test, center):
    """E(𝒢φ)², Eφ𝒢φ and Eφ² of the modes of `train`, over `test`."""
    phi, g = values @ coefficients, images[test] @ coefficients
    phi = phi[test] - (phi[train].mean(axis=0) if center else 0.0)
    return (g**2).mean(axis=0), (g * phi).mean(axis=0), (phi**2).mean(axis=0)


# --- what is measured -------------------------------------------------------------------------------------------------
def run(part: str, problem: str, family: str, basis: str, seed: int, **settings) -> list[Row]:
    """Rows of the `part` "landscape" or "descent" for one sample of one case."""
    lab = Laboratory(problem, family, basis, seed, Settings(**settings))
    rows = landscape(lab) if part == "landscape" else descents(lab)
    about = {"part": part, "problem": problem, "family": family, "basis": basis, "seed": seed}
    return [{**about, **row} for row in rows]


def landscape(lab: Laboratory) -> list[Row]:
    """All terms, the parts of the residuals and the truth at every σ; one row for each centring."""
    sigmas = np.geomspace(*SIGMA_RANGE, lab.settings.n_sigmas)
    X, system, rows = lab.X, lab.system, []
    for center in (False, True):
        found: list[dict[str, Any]] = []
        for sigma in sigmas:
            basis, fit = lab.fit(sigma, center)
            evaluation = lab.problem(sigma, dict.fromkeys(TERMS, 1.0), center).evaluate(np.zeros(1))
            if fit is None or not np.isfinite(evaluation.value):
                found.append(NOTHING)
                continue
            modes = basis.features(X) @ fit.coefficients
            found.append(
                {
                    **NOTHING,
                    **evaluation.terms,
                    "r2": metrics.subspace_r2(modes, system.reference(X, N_MODES)),
                    "paper_r2": metrics.subspace_r2(modes, system.paper_reference(X)),
                    "mu": fit.eigenvalues,
                    "rates": fit.rates,
                    **lab.residual(basis, fit, center),
                    **(lab.free_regularization(sigma) if center else {}),
                }
            )
        columns = {name: np.array([entry[name] for entry in found]).tolist() for name in found[0]}
        true_rates = system.rates(N_MODES)
        target = true_rates if center else np.append(0.0, true_rates[:-1])  # uncentred, the constant is a mode
        mismatch = [_gradient_mismatch(lab, start, center) for start in STARTS]
        rows.append({"center": center, "sigma": sigmas.tolist(), "target": target.tolist(), "mismatch": mismatch,
                     **columns})  # fmt: skip
    return rows


def _gradient_mismatch(lab: Laboratory, sigma: float, center: bool, step: float = 1e-4) -> float:
    """|dL₁ - dL₂|/|dL₂| by log σ: L₁ with λ̂ a function of σ (residual loss i), L₂ with λ̂ kept (ii)."""
    parts = []
    for shift in (-step, 0.0, step):
        basis, fit = lab.fit(sigma * np.exp(shift), center)
        if fit is None:
            return np.nan
        parts.append(lab.residual(basis, fit, center))
    below, here, above = parts
    moving, frozen = (
        np.sum(_residual(above, rates[1]) - _residual(below, rates[0])) / (2 * step)
        for rates in ((-below["cross"], -above["cross"]), (-here["cross"], -here["cross"]))
    )
    return float(abs(moving - frozen) / abs(frozen))


def _residual(parts: dict[str, np.ndarray], rates: np.ndarray) -> np.ndarray:
    """‖𝒢φ_k + λ̂_kφ_k‖² of modes of unit norm."""
    return parts["square"] + 2 * rates * parts["cross"] + rates**2


def descents(lab: Laboratory) -> list[Row]:
    """Paths of σ under the three main losses, uncentred and centred, and under `heldout`, from every start."""
    tasks = [(name, center) for name in ("sub", "eig", "combined") for center in (False, True)] + [("heldout", True)]
    rows = []
    for name, center in tasks:
        objective = PRESETS["combined"] if name == "combined" else {name: 1.0}
        for start in STARTS:
            settings = DescentSettings(adam_steps=lab.settings.steps, lbfgs_steps=15, learning_rate=0.2, patience=8)
            _, history = minimise(lab.problem(start, objective, center), settings)
            path = history["sigma"][:, 0] / lab.median
            basis, fit = lab.fit(path[-1], center)
            r2 = np.nan if fit is None else metrics.subspace_r2(
                basis.features(lab.X) @ fit.coefficients, lab.system.reference(lab.X, N_MODES))  # fmt: skip
            rows.append({"loss": name, "center": center, "start": start, "path": path.tolist(), "r2": float(r2)})
    return rows


# --- losses over σ, from the rows of a landscape ----------------------------------------------------------------------
class Landscape:
    """The two rows of a landscape as arrays over σ, and the losses made of them."""

    def __init__(self, rows: Sequence[Row]):
        self.sigma = np.array(rows[0]["sigma"])
        self.columns = {
            "centred" if row["center"] else "uncentred": {
                name: np.array(row[name]) for name in (*SCALARS, *VECTORS, "target", "mismatch")
            }
            for row in rows
        }
        self.columns["heldout"] = self.columns["centred"]

    def _base(self, setup: str) -> np.ndarray:
        """What a regularizer is added to."""
        columns = self.columns[setup]
        return columns["heldout"] if setup == "heldout" else columns["eig"] + columns["sub"]

    def term(self, setup: str, name: str) -> np.ndarray:
        """A term; with `heldout`, that one instead."""
        return self.columns[setup]["heldout" if setup == "heldout" else name]

    def combined(self, setup: str) -> np.ndarray:
        """The preset "combined"."""
        columns, weights = self.columns[setup], {"heldout": 1.0} if setup == "heldout" else PRESETS["combined"]
        return np.sum([weight * columns[term] for term, weight in weights.items()], axis=0)

    def regularized(self, setup: str, name: str, weight: float) -> np.ndarray:
        """The combined loss without a regularizer, or `heldout`, plus one."""
        if name == "anchor":
            return self._base(setup) + weight * np.log(self.sigma / self.anchor(setup)) ** 2
        return self._base(setup) + weight * self.columns[setup][name]

    def anchor(self, setup: str) -> float:
        """σ_CV: the choice of the paper's rule, or of the held-out score."""
        return PAPER_CHOICE if setup == "uncentred" else float(self.sigma[_lowest(self.columns["centred"]["heldout"])])

    def nearest(self, sigma: float) -> int:
        """Index of the grid's σ next to a σ."""
        return int(np.argmin(np.abs(np.log(self.sigma / sigma))))

    def moves(self, setup: str) -> list[bool]:
        """Whether descent of the residual (on the grid) leaves each start."""
        loss = self.residual(setup, "solver")
        return [_downhill(loss, self.nearest(start)) != self.nearest(start) for start in STARTS]

    def stays(self, setup: str, weight: float) -> bool:
        """Whether descent (on the grid) from σ_CV with an anchor there ends within a factor 2 of it."""
        choice, loss = self.anchor(setup), self.regularized(setup, "anchor", weight)
        start = self.nearest(choice)
        near = abs(np.log(self.sigma[_downhill(loss, start)] / choice)) < np.log(2)
        return bool(near and np.isfinite(loss[start]))

    def residual(self, setup: str, gauge: str, rates: np.ndarray | None = None) -> np.ndarray:
        """Σ_k ‖𝒢φ_k + λ̂_kφ_k‖², with λ̂ its own at every σ or `rates`; `gauge` "solver" has Eφ_k² = μ_k, "unit" 1."""
        columns = self.columns[setup]
        if setup == "heldout":
            return columns["heldout"]
        each = _residual(columns, -columns["cross"] if rates is None else rates)
        return np.sum(each * (columns["mu"] if gauge == "solver" else 1.0), axis=1)

    def heldout_residual(self, setup: str, gauge: str) -> np.ndarray:
        """The residual on samples that modes and λ̂ were not fitted to."""
        return self.columns[setup]["heldout"] if setup == "heldout" else self.columns[setup][f"heldout_{gauge}"].sum(1)

    def constrained(self, setup: str, weight: float) -> np.ndarray:
        """The residual with Dirichlet quotients held near the true rates, the most favourable target."""
        columns = self.columns[setup]
        penalty = np.sum((columns["rates"] - columns["target"]) ** 2, axis=1)
        return self.residual(setup, "solver") + weight * penalty

    def two_timescales(self, setup: str, gauge: str, start: float, steps: int = 3) -> int:
        """Index of σ where descent ends that moves `steps` points of the grid between two refreshments of λ̂."""
        index = self.nearest(start)
        for _ in range(10 * len(self.sigma)):
            loss = self.residual(setup, gauge, -self.columns[setup]["cross"][index])
            after = _downhill(loss, index, steps)
            if after == index:
                break
            index = after
        return index

    def free_minimum(self) -> Row:
        """Minimum of the held-out loss over σ and λ."""
        columns = self.columns["centred"]
        index = _lowest(columns["free_heldout"])
        r2 = float(columns["free_r2"][index])
        return {
            "where": self.where(index, "centred"),
            "escapes": self.escapes(index, "centred"),
            "sigma": float(self.sigma[index]),
            "r2": r2,
        }

    def where(self, index: int, setup: str) -> str:
        """Whether σ is at an edge of what the samples determine."""
        usable = np.flatnonzero(np.isfinite(self.columns[setup]["eig"]))
        return "left edge" if index <= usable[0] else "right edge" if index >= usable[-1] else "interior"

    def escapes(self, index: int, setup: str) -> bool:
        """Whether σ → ∞: beyond WIDE, or as wide as the modes are determined (dw1d ends before)."""
        return bool(self.sigma[index] >= WIDE) or self.where(index, setup) == "right edge"


def _lowest(loss: np.ndarray) -> int:
    return int(np.nanargmin(loss))


def _downhill(loss: np.ndarray, index: int, steps: int | None = None) -> int:
    """Where descent along the grid ends, after at most `steps` points."""
    for _ in range(len(loss) if steps is None else steps):
        near = [i for i in (index - 1, index + 1) if 0 <= i < len(loss) and loss[i] < loss[index]]
        if not near:
            break
        index = min(near, key=lambda i: loss[i])
    return index


# --- claims -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Claim:
    """A sentence of the Discussion and the losses, one for every weight, that it is about."""

    name: str
    paper: str
    loss: Callable[[Landscape, str, float], np.ndarray]
    weights: tuple[float, ...] = (1.0,)


def _regularizer(name: str, term: str, paper: str) -> Claim:
    return Claim(name, paper, lambda land, setup, w: land.regularized(setup, term, w), tuple(WEIGHTS))


_NO_HELP = "no effect or σ → 0 at any weight"
CLAIMS = (
    Claim("sub", "σ → 0", lambda land, setup, w: land.term(setup, "sub")),
    Claim("eig", "σ → ∞", lambda land, setup, w: land.term(setup, "eig")),
    Claim("combined", "σ → 0: sub dominates", lambda land, setup, w: land.combined(setup)),
    _regularizer("+ coefficient norm", "rkhs", _NO_HELP),
    _regularizer("+ eigenvalue spread", "spread", _NO_HELP),
    _regularizer("+ Dirichlet H¹", "dirichlet", _NO_HELP),
    _regularizer("+ soft anchor", "anchor", "holds σ at σ_CV if strong enough"),
    Claim("residual", "(i) σ stays where it starts", lambda land, setup, w: land.residual(setup, "solver")),
    Claim("residual, unit modes", "(not told apart)", lambda land, setup, w: land.residual(setup, "unit")),
    Claim("held-out residual", "(iii) σ → ∞", lambda land, setup, w: land.heldout_residual(setup, "solver")),
    Claim(
        "held-out residual, unit modes", "(not told apart)", lambda land, setup, w: land.heldout_residual(setup, "unit")
    ),
    Claim(
        "residual + Dirichlet constraint",
        "interior, off σ_CV, worse",
        lambda land, setup, w: land.columns[setup]["heldout"] if setup == "heldout" else land.constrained(setup, w),
        tuple(WEIGHTS),
    ),
)


def minima(lands: Sequence[Landscape], claim: Claim, setup: str, weight: float) -> list[Row]:
    """Where the minimum is for every seed, and how good the modes are there."""
    found = []
    for land in lands:
        index = _lowest(claim.loss(land, setup, weight))
        r2 = float(land.columns[setup]["r2"][index])
        escapes, sigma = land.escapes(index, setup), float(land.sigma[index])
        found.append({"where": land.where(index, setup), "escapes": escapes, "sigma": sigma, "r2": r2})
    return found


def _summary(found: list[Row]) -> str:
    """What most seeds say, with the ranges of σ and SubR²."""
    where, votes = Counter(f["where"] for f in found).most_common(1)[0]
    share = "" if votes == len(found) else f" ({votes} of {len(found)})"
    at = "" if where != "interior" else f" σ={_span([f['sigma'] for f in found], '.2g')}"
    return f"{where}{at}{share}, SubR² {_span([f['r2'] for f in found], '.2f')}"


def _span(values: list[float], form: str) -> str:
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low}…{high}"


def _cell(lands: Sequence[Landscape], claim: Claim, setup: str) -> str:
    """One outcome, or one for every range of weights that agree."""
    by_weight = [(w, minima(lands, claim, setup, w)) for w in claim.weights]
    if len(by_weight) == 1:
        return _summary(by_weight[0][1])
    parts = []
    for _, group in groupby(by_weight, key=lambda entry: Counter(f["where"] for f in entry[1]).most_common(1)[0][0]):
        members = list(group)
        low, high = members[0][0], members[-1][0]
        span = f"{low:.0e}" if low == high else f"{low:.0e}…{high:.0e}"
        parts.append(f"{span}: {_summary([f for _, found in members for f in found])}")
    return "; ".join(parts)


def landscapes(rows: Sequence[Row]) -> dict[tuple[str, str, str], list[Landscape]]:
    """Landscapes of all seeds, by case."""
    found: dict[tuple[str, str, str], dict[int, list[Row]]] = {}
    for row in rows:
        if row["part"] == "landscape":
            case = row["problem"], row["family"], row["basis"]
            found.setdefault(case, {}).setdefault(row["seed"], []).append(row)
    return {case: [Landscape(pair) for pair in seeds.values()] for case, seeds in found.items()}


def _ceiling_cell(lands: Sequence[Landscape], setup: str) -> str:
    """Best SubR² over σ, or that at the minimum of `heldout`: against the slow modes, and the paper's reference."""
    chosen = [
        (c["r2"][i], c["paper_r2"][j])
        for c in (land.columns[setup] for land in lands)
        for i, j in [
            (_lowest(c["heldout"]),) * 2 if setup == "heldout" else (_lowest(-c["r2"]), _lowest(-c["paper_r2"]))
        ]
    ]
    truth, paper = np.mean(chosen, axis=0)
    return f"{'chosen' if setup == 'heldout' else 'best'}: {truth:.3f} (paper's reference {paper:.3f})"


def _descent_cell(rows: Sequence[Row], case: tuple[str, str, str], name: str, setup: str) -> str:
    mine = [
        row for row in rows
        if row["part"] == "descent" and (row["problem"], row["family"], row["basis"]) == case
        and (row["loss"] == "heldout" if setup == "heldout"
             else row["loss"] == name and row["center"] == (setup == "centred"))
    ]  # fmt: skip
    return "σ ends at " + ", ".join(f"{row['path'][-1]:.2g}" for row in mine) if mine else ""


# --- verdicts: is it so? ----------------------------------------------------------------------------------------------
def verdicts(rows: Sequence[Row]) -> str:
    """How often each claim is true over all cases and seeds, with mean SubR² at the minimum."""
    by_case = landscapes(rows)
    lands = [land for mine in by_case.values() for land in mine]
    claims = {claim.name: claim for claim in CLAIMS}

    def at(name: str, setup: str, weight: float = 1.0) -> list[Row]:
        return minima(lands, claims[name], setup, weight)

    def count(true: Sequence[bool], note: str = "") -> str:
        return f"{sum(true)} of {len(true)}{note}"

    def mean(found: Sequence[Row]) -> str:
        return f"{np.mean([f['r2'] for f in found]):.2f}"

    def goes(name: str, narrow: bool) -> list[str]:
        found = {setup: at(name, setup) for setup in SETUPS}
        true = {s: [f["sigma"] <= NARROW if narrow else f["escapes"] for f in found[s]] for s in SETUPS}
        return [count(true[s], f", SubR² {mean(found[s])}") for s in SETUPS]

    def no_gain(name: str) -> list[str]:
        cells = []
        for setup in SETUPS:
            plain, *others = (at(name, setup, w) for w in (0.0, *WEIGHTS))
            best = [max(fs, key=lambda f: f["r2"]) for fs in zip(*others, strict=True)]
            true = [b["r2"] < f["r2"] + 0.05 for b, f in zip(best, plain, strict=True)]
            cells.append(count(true, f", SubR² {mean(plain)} → {mean(best)}"))
        return cells

    def anchored() -> list[str]:
        return [count([land.stays(setup, WEIGHTS[-1]) for land in lands]) for setup in SETUPS]

    def frozen() -> list[str]:
        moved = [[m for land in lands for m in land.moves(setup)] for setup in SETUPS[:2]]
        return [*(count([not m for m in mine], " starts") for mine in moved), ""]

    def gradients() -> list[str]:
        worst = (max(np.nanmax(land.columns[setup]["mismatch"]) for land in lands) for setup in SETUPS[:2])
        return [*(f"equal, to {value:.0e}" for value in worst), ""]

    def refreshed(gauge: str) -> list[str]:
        def ends(setup: str) -> list[bool]:
            return [land.escapes(land.two_timescales(setup, gauge, start), setup) for land in lands for start in STARTS]

        return [*(count(ends(setup), " starts") for setup in SETUPS[:2]), ""]

    def constrained() -> list[str]:
        chosen = at("eig", "heldout")
        cells = []
        for setup in SETUPS[:2]:
            by_weight = zip(*(at("residual + Dirichlet constraint", setup, w) for w in WEIGHTS), strict=True)
            best = [max(found, key=lambda f: f["r2"]) for found in by_weight]
            true = [b["r2"] < c["r2"] - 0.01 for b, c in zip(best, chosen, strict=True)]
            cells.append(count(true, f", best SubR² {mean(best)}"))
        return [*cells, f"(itself: SubR² {mean(chosen)})"]

    def ceiling() -> list[str]:
        mine = [land for case, found in by_case.items() for land in found if case[:2] == ("ou2d-4", "gaussian")]
        return [_ceiling_cell(mine, setup) for setup in SETUPS] if mine else [""] * 3

    lines = [
        ["`sub` drives σ → 0", *goes("sub", True)],
        ["`eig` drives σ → ∞", *goes("eig", False)],
        ["`combined` drives σ → 0", *goes("combined", True)],
        ["no weight of the coefficient norm helps", *no_gain("+ coefficient norm")],
        ["no weight of the eigenvalue spread helps", *no_gain("+ eigenvalue spread")],
        ["no weight of the Dirichlet H¹ norm helps", *no_gain("+ Dirichlet H¹")],
        [f"a soft anchor of weight {WEIGHTS[-1]:g} holds σ within a factor 2 of σ_CV, from there", *anchored()],
        ["(i) residual with differentiable λ̂ leaves σ where it starts", *frozen()],
        ["… unlike (ii): how different are their gradients by σ?", *gradients()],
        ["(ii) residual with refreshed λ̂ drives σ → ∞", *refreshed("solver")],
        ["… with modes of unit norm", *refreshed("unit")],
        ["(iii) held-out residual drives σ → ∞", *goes("held-out residual", False)],
        ["… with modes of unit norm", *goes("held-out residual, unit modes", False)],
        ["a Dirichlet constraint stays worse than a held-out choice", *constrained()],
        ["one Gaussian on ou2d-4 stays below SubR² 0.75", *ceiling()],
    ]
    free = [land.free_minimum() for land in lands]
    wide = count([f["escapes"] for f in free], f", SubR² {mean(free)}")
    lines.append(["for comparison: `heldout` over σ and λ drives σ → ∞", "", "", wide])
    return markdown(["the paper says", "uncentred, as in the paper", "centred", "heldout (centred)"], lines)


INTRODUCTION = f"""\
Of how many samples (all cases and seeds) is it true? σ is in medians of the pairwise distance. σ → 0 means a minimum at
σ ≤ {NARROW:g}, σ → ∞ one at σ ≥ {WIDE:g} or at the widest kernel that determines {N_MODES} modes. A regularizer helps
if some weight from {WEIGHTS[0]:g} to {WEIGHTS[-1]:g} adds 0.05 to SubR² at the minimum. Modes are as the solver gives
them (Eφ² = μ) unless of unit norm. Residuals are descended on the grid, from
σ = {", ".join(f"{s:g}" for s in STARTS)}."""


def table(rows: list[Row]) -> str:
    """How often the claims are true; then, for every case and claim, where minima and descents are."""
    sections = [INTRODUCTION, verdicts(rows)]
    for case, lands in landscapes(rows).items():
        lines = []
        for claim in CLAIMS:
            lines.append([claim.name, claim.paper, *(_cell(lands, claim, setup) for setup in SETUPS)])
            path = [_descent_cell(rows, case, claim.name, setup) for setup in SETUPS]
            if path[0]:
                lines.append([f"descent, {claim.name}", f"from σ = {', '.join(f'{s:g}' for s in STARTS)}", *path])
        lines.append(["heldout, λ chosen too", "", "", "", _summary([land.free_minimum() for land in lands])])
        says = "SubR² ≤ 0.75 at any σ" if case[:2] == ("ou2d-4", "gaussian") else ""
        lines.append([f"ceiling of one {case[1]}", says, *(_ceiling_cell(lands, setup) for setup in SETUPS)])
        title = f"**{case[0]}, {case[1]}, {case[2]}, {len(lands)} seed{'s' * (len(lands) > 1)}**"
        sections.append(f"{title}\n\n" + markdown(["loss", "paper says", *SETUPS], lines))
    return "\n\n".join(sections)


# --- figure -----------------------------------------------------------------------------------------------------------
COLOURS = {"uncentred": "C3", "centred": "C0", "heldout": "C2"}


def figure(rows: list[Row], path: Path) -> None:
    """Loss against σ for the claims of the first case, with minima; SubR² below; descents; minima over weights."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    by_case = landscapes(rows)
    case, lands = next(iter(by_case.items()))
    claims = {claim.name: claim for claim in CLAIMS}
    fig = plt.figure(figsize=(15, 15), layout="constrained")
    grid = fig.add_gridspec(7, 4, height_ratios=[3, 1.5, 2.2, 2.4, 1.5, 3, 1.5])
    for column, name in enumerate(("sub", "eig", "combined")):
        _plot_loss(fig, grid, 0, column, lands, claims[name])
        _plot_descents(fig.add_subplot(grid[2, column]), rows, case, name)
    _plot_ceiling(fig.add_subplot(grid[0:2, 3]), by_case)
    _plot_descents(fig.add_subplot(grid[2, 3]), rows, case, "heldout")
    for column, name in enumerate(c.name for c in CLAIMS if c.name.startswith("+")):
        _plot_weights(fig, grid, 3, column, lands, claims[name])
    shown = ("residual", "residual, unit modes", "held-out residual, unit modes", "residual + Dirichlet constraint")
    for column, name in enumerate(shown):
        _plot_loss(fig, grid, 5, column, lands, claims[name])
    fig.suptitle(f"Where the minimum over σ is: {', '.join(case)} (σ in medians of the pairwise distance)", fontsize=14)
    handles = [plt.Line2D([], [], color=c, marker="o", label=s) for s, c in COLOURS.items()]
    handles.append(
        plt.Line2D([], [], color=COLOURS["heldout"], ls="--", marker="s", mfc="none", label="heldout, λ chosen too")
    )
    fig.legend(handles=handles, loc="outside lower center", ncols=4, title="dots: minima of all seeds; lines: one seed")
    fig.savefig(path, dpi=110)
    plt.close(fig)


def _plot_loss(fig, grid, row: int, column: int, lands: Sequence[Landscape], claim: Claim) -> None:
    top = fig.add_subplot(grid[row, column])
    below = fig.add_subplot(grid[row + 1, column], sharex=top)
    for setup, colour in COLOURS.items():
        for number, land in enumerate(lands):
            loss = claim.loss(land, setup, 1.0)
            height, index = _rescaled(loss), _lowest(loss)
            if number == 0:
                top.plot(land.sigma, height, color=colour, lw=1.6)
                if setup != "heldout":
                    below.plot(land.sigma, land.columns[setup]["r2"], color=colour, lw=1)
            top.plot(land.sigma[index], height[index], "o", color=colour, ms=7, alpha=0.7, clip_on=False, zorder=5)
            below.plot(
                land.sigma[index], land.columns[setup]["r2"][index], "o", color=colour, ms=5, alpha=0.7, clip_on=False,
                zorder=5,
            )  # fmt: skip
    for number, land in enumerate(lands):
        loss, index = land.columns["centred"]["free_heldout"], _lowest(land.columns["centred"]["free_heldout"])
        height, r2 = _rescaled(loss), land.columns["centred"]["free_r2"]
        if number == 0:
            top.plot(land.sigma, height, color=COLOURS["heldout"], lw=1, ls="--")
        for ax, value in ((top, height), (below, r2)):
            ax.plot(land.sigma[index], value[index], "s", color=COLOURS["heldout"], ms=6, mfc="none", clip_on=False)
    top.set(xscale="log", xlim=SIGMA_RANGE, yticks=[], title=f"{claim.name}\npaper: {claim.paper}")
    top.title.set_fontsize(10)
    top.tick_params(labelbottom=False)
    below.set(ylim=(0, 1), xlabel="σ")
    if column == 0:
        top.set_ylabel("loss (each rescaled)")
        below.set_ylabel("SubR²")


def _rescaled(loss: np.ndarray) -> np.ndarray:
    """Between 0 and 1, with the bottom stretched: losses range over orders of magnitude."""
    above = loss - np.nanmin(loss)
    stretched = np.arcsinh(above / max(np.nanquantile(above, 0.3), 1e-12))
    return stretched / np.nanmax(stretched)


def _plot_descents(ax, rows: Sequence[Row], case: tuple[str, str, str], name: str) -> None:
    for row in rows:
        if row["part"] == "descent" and row["loss"] == name and (row["problem"], row["family"], row["basis"]) == case:
            setup = "heldout" if name == "heldout" else "centred" if row["center"] else "uncentred"
            ax.plot(row["path"], color=COLOURS[setup], lw=1.4)
            ax.plot(len(row["path"]) - 1, row["path"][-1], "o", color=COLOURS[setup], ms=4)
    for edge in SIGMA_RANGE:
        ax.axhline(edge, color="0.7", lw=0.7, ls="--")
    ax.set(yscale="log", xlabel="step of descent", ylabel="σ", ylim=(SIGMA_RANGE[0] / 3, SIGMA_RANGE[1] * 3))
    ax.set_title(f"descent under {name}", fontsize=10)


def _plot_weights(fig, grid, row: int, column: int, lands: Sequence[Landscape], claim: Claim) -> None:
    top = fig.add_subplot(grid[row, column])
    below = fig.add_subplot(grid[row + 1, column], sharex=top)
    for setup, colour in COLOURS.items():
        found = [minima(lands, claim, setup, w) for w in claim.weights]
        for ax, key in ((top, "sigma"), (below, "r2")):
            ax.plot(claim.weights, [f[0][key] for f in found], color=colour, lw=1.4)
            for number in range(len(lands)):
                ax.plot(claim.weights, [f[number][key] for f in found], "o", color=colour, ms=4, alpha=0.6)
    for edge in SIGMA_RANGE:
        top.axhline(edge, color="0.7", lw=0.7, ls="--")
    top.set(xscale="log", yscale="log", ylim=(SIGMA_RANGE[0] / 2, SIGMA_RANGE[1] * 2))
    top.set_title(f"eig + sub (or heldout) {claim.name}\npaper: {claim.paper}", fontsize=10)
    top.tick_params(labelbottom=False)
    below.set(ylim=(0, 1), xlabel="weight of the regularizer")
    if column == 0:
        top.set_ylabel("σ at minimum")
        below.set_ylabel("SubR² there")


def _plot_ceiling(ax, by_case: dict[tuple[str, str, str], list[Landscape]]) -> None:
    """SubR² of one Gaussian over σ, against both references."""
    case = next((c for c in by_case if c[:2] == ("ou2d-4", "gaussian")), next(iter(by_case)))
    land = by_case[case][0]
    for setup in ("uncentred", "centred"):
        for key, style, label in (("r2", "-", "slow modes"), ("paper_r2", ":", "paper's reference")):
            ax.plot(land.sigma, land.columns[setup][key], style, color=COLOURS[setup], label=f"{setup}, {label}")
    index = _lowest(land.columns["heldout"]["heldout"])
    ax.plot(land.sigma[index], land.columns["heldout"]["r2"][index], "o", color=COLOURS["heldout"], label="heldout")
    ax.axhline(0.75, color="0.5", lw=0.8, ls="--")
    ax.set(xscale="log", xlim=SIGMA_RANGE, ylim=(0, 1), xlabel="σ", ylabel="SubR²")
    ax.set_title(f"one kernel: {case[1]}\npaper: at most 0.75 (dashed)", fontsize=10)
    ax.legend(fontsize=8, loc="lower right")


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
