"""Measurements: losses, residuals and true errors over the bandwidth, and paths of descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments._references import paper_reference
from experiments._runner import Row
from kdmaps import generators, metrics, problems
from kdmaps.bases import Basis, FourierBasis, LandmarkBasis, make_basis
from kdmaps.data import ArraySource
from kdmaps.data.distances import median_distance
from kdmaps.forms.energy import EnergyForm
from kdmaps.kernels import Kernel, make_kernel
from kdmaps.learn.objectives import PRESETS, make_objective
from kdmaps.learn.optimiser import Settings as DescentSettings
from kdmaps.learn.optimiser import minimise
from kdmaps.learn.parametrisations import Bandwidths, Parametrisation, Pullback, frequency_adjoint, scale_bandwidths
from kdmaps.learn.problem import Problem
from kdmaps.learn.statistics import Samples, Statistics
from kdmaps.selection.cross_fit import CrossFit, cross_fit
from kdmaps.selection.folds import Folds, make_splits
from kdmaps.selection.grid import REGULARIZATIONS
from kdmaps.selection.scores import select_by_timescale
from kdmaps.utils.types import Index

#: (problem, kernel, basis): first the case of the paper's claims, then variations of it.
CASES = (
    ("ou2d-4", "matern32", "fourier"),
    ("ou2d-4", "gaussian", "fourier"),
    ("ou2d-4", "gaussian", "landmarks"),
    ("dw1d", "gaussian", "fourier"),
)
N_MODES = 4
N_FEATURES = {"fourier": 300, "landmarks": 60}
SIGMA_RANGE = (0.05, 500.0)  # in medians of the pairwise distance, like every σ below
STARTS = (0.2, 2.0, 20.0)  # of descents
WEIGHTS = np.geomspace(1e-3, 1e2, 6)  # of regularizers: five orders of magnitude
#: σ that the paper's cross-validation selects: the last of its grid, 50 medians.
PAPER_CHOICE = 50.0
TERMS = ("eig", "sub", "rkhs", "spread", "dirichlet", "heldout")
#: Columns of a landscape: numbers per σ ("free" ones with λ selected by the held-out score too), and numbers per mode.
SCALARS = (*TERMS, "r2", "paper_r2", "free_heldout", "free_r2")
VECTORS = ("mu", "rates", "square", "cross", "heldout_unit", "heldout_solver")
NOTHING = {**dict.fromkeys(SCALARS, np.nan), **dict.fromkeys(VECTORS, np.full(N_MODES, np.nan))}
SETUPS = ("uncentred", "centred", "heldout")
NARROW, WIDE = 0.25, 50.0  # minima at or beyond these count as σ → 0 and σ → ∞


@dataclass(frozen=True)
class Settings:
    """Settings of a run."""

    n_samples: int = 500
    n_sigmas: int = 33
    regularization: float = 1e-2
    folds: int = 3
    steps: int = 40


class FourierBandwidth(Parametrisation):
    """One σ for all coordinates, without bounds: θ = (log σ/σ_start,)."""

    def __init__(self, samples: Samples, basis: FourierBasis):
        self.samples, self._base, self.start = samples, basis, np.zeros(1)

    def kernel(self, theta: np.ndarray) -> Kernel:
        return scale_bandwidths(self._base.kernel, np.exp(theta[0]))

    def basis(self, theta: np.ndarray) -> FourierBasis:
        base = self._base
        return FourierBasis(self.kernel(theta), base.frequencies * np.exp(-theta[0]), base.weights, base.origin)

    def describe(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        return {"sigma": np.atleast_1d(self.kernel(theta).bandwidth)}  # type: ignore[attr-defined]

    def forward(self, theta: np.ndarray) -> tuple[Statistics, Pullback]:
        basis = self.basis(theta)
        statistics = self.samples.statistics(basis, log_bandwidths=np.asarray(theta))

        def pullback(adjoint: Statistics) -> np.ndarray:
            by_frequencies = frequency_adjoint(self.samples, basis, statistics, adjoint)
            return adjoint.log_bandwidths - np.sum(basis.frequencies * by_frequencies)

        return statistics, pullback


class Laboratory:
    """One sample of one problem, one kernel family and one basis, for any σ."""

    def __init__(self, problem: str, family: str, basis: str, seed: int, settings: Settings):
        self.system: problems.Problem = problems.load(problem)
        self.family: str = family
        self.kind: str = basis
        self.seed: int = seed
        self.settings: Settings = settings
        self.X = self.system.sample(settings.n_samples, random_state=seed)
        self.median: float = median_distance(self.X, random_state=seed)
        self.splits = make_splits(settings.folds, self.X, None, N_MODES, seed)
        self.folds: Folds = Folds(self.splits, len(self.X))
        self.samples: Samples = Samples.of(self.X, folds=self.folds)
        self.generator = generators.for_problem(self.system)

    def basis(self, sigma: float) -> Basis:
        """Return the basis at σ, with the same landmarks or (scaled) frequencies for every σ."""
        kernel = make_kernel(self.family, sigma * self.median)
        return make_basis(self.kind, kernel, self.X, N_FEATURES[self.kind], random_state=self.seed)

    def parametrisation(self, sigma: float) -> Parametrisation:
        """Return a learnable σ that starts at `sigma`."""
        basis = self.basis(sigma)
        if isinstance(basis, LandmarkBasis):
            return Bandwidths(self.samples, [basis.kernel], basis.landmarks, basis.origin, learn_weights=False)
        assert isinstance(basis, FourierBasis)
        return FourierBandwidth(self.samples, basis)

    def problem(self, sigma: float, objective: Any, center: bool) -> Problem:
        """Return the objective as a function of log σ, starting at `sigma`."""
        goal = make_objective(objective, N_MODES, center)
        return Problem(self.parametrisation(sigma), goal, self.settings.regularization)

    def fit(self, sigma: float, center: bool) -> tuple[Basis, CrossFit | None]:
        """Fit the modes of all samples and of each fold; None if the samples do not determine them."""
        basis = self.basis(sigma)
        moments = self.folds.moments(ArraySource(self.X, checked=True), EnergyForm(self.samples.diffusion), basis, None)
        try:
            return basis, cross_fit(*moments, basis.ridge, N_MODES, [self.settings.regularization], center)[0]
        except np.linalg.LinAlgError:
            return basis, None

    def free_regularization(self, sigma: float) -> dict[str, float]:
        """Return the best held-out score over λ (centred) as a loss, and SubR² there."""
        basis = self.basis(sigma)
        moments = self.folds.moments(ArraySource(self.X, checked=True), EnergyForm(self.samples.diffusion), basis, None)
        fits = cross_fit(*moments, basis.ridge, N_MODES, REGULARIZATIONS)
        scores = [-np.inf if fit is None else select_by_timescale(fit).value for fit in fits]
        fit = fits[int(np.argmax(scores))]
        assert fit is not None
        modes = basis.features(self.X) @ fit.coefficients
        r2 = metrics.subspace_r2(modes, self.system.reference(self.X, N_MODES))
        return {"free_heldout": -max(scores), "free_r2": r2}

    def residual(self, basis: Basis, fit: CrossFit, center: bool) -> dict[str, np.ndarray]:
        """Return the terms of the residuals ‖𝒢φ + λ̂φ‖² of modes of unit norm, and their held-out values."""
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


def _residual_moments(
    values: np.ndarray, images: np.ndarray, coefficients: np.ndarray, train: Index, test: Index, center: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return E(𝒢φ)², Eφ𝒢φ and Eφ² over `test` of the modes fitted to `train`."""
    phi, g = values @ coefficients, images[test] @ coefficients
    phi = phi[test] - (phi[train].mean(axis=0) if center else 0.0)
    return (g**2).mean(axis=0), (g * phi).mean(axis=0), (phi**2).mean(axis=0)


# --- measurements -----------------------------------------------------------------------------------------------------
def run(part: str, problem: str, family: str, basis: str, seed: int, **settings: Any) -> list[Row]:
    """Return the rows of the `part` "landscape" or "descent" for one sample of one case."""
    lab = Laboratory(problem, family, basis, seed, Settings(**settings))
    rows = landscape(lab) if part == "landscape" else descents(lab)
    about = {"part": part, "problem": problem, "family": family, "basis": basis, "seed": seed}
    return [{**about, **row} for row in rows]


def landscape(lab: Laboratory) -> list[Row]:
    """Return all losses, the terms of the residuals and the true errors at each σ; one row per centring."""
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
                    "paper_r2": metrics.subspace_r2(modes, paper_reference(system, X)),
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
    """Return |dL₁ - dL₂|/|dL₂| by log σ: L₁ with λ̂ a function of σ (residual loss i), L₂ with fixed λ̂ (ii)."""
    parts = []
    for shift in (-step, 0.0, step):
        basis, fit = lab.fit(sigma * np.exp(shift), center)
        if fit is None:
            return np.nan
        parts.append(lab.residual(basis, fit, center))
    below, here, above = parts
    moving, frozen = (
        np.sum(residual_norms(above, rates[1]) - residual_norms(below, rates[0])) / (2 * step)
        for rates in ((-below["cross"], -above["cross"]), (-here["cross"], -here["cross"]))
    )
    return float(abs(moving - frozen) / abs(frozen))


def residual_norms(parts: dict[str, np.ndarray], rates: np.ndarray) -> np.ndarray:
    """Return ‖𝒢φ_k + λ̂_kφ_k‖² of modes of unit norm."""
    return parts["square"] + 2 * rates * parts["cross"] + rates**2


def descents(lab: Laboratory) -> list[Row]:
    """Return the paths of σ under the three main losses, uncentred and centred, and under `heldout`."""
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
