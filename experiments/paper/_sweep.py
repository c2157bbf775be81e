"""The paper's search, plainly: every family and bandwidth with all p features, no screening, and the largest score.

The text leaves some settings open that change the result. They are the fields of `Settings`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy import linalg
from sklearn.model_selection import KFold

from kdmaps.data.distances import median_distance
from kdmaps.kernels import FAMILIES, Kernel, make_kernel

#: Bandwidths in units of the median pairwise distance.
BANDWIDTHS = np.geomspace(0.5, 50, 10)
N_FOLDS = 3


@dataclass(frozen=True)
class Settings:
    """Settings that the text of the paper leaves open.

    Parameters
    ----------
    phases : {"shared", "after", "before"}
        "shared": all candidates have the same phases, from a stream of their own. "after": the generator starts again
        for every candidate, and phases are drawn after the frequencies. Families take different numbers of draws for
        their frequencies, so each family has phases of its own. "before": phases are drawn before the frequencies.
    precision : {"float64", "float32"}
        Type of the samples and of all computations.
    matern : {"printed", "exact"}
        Frequencies of Matérn kernels: t_ν(0, √ν/σ) as printed, or t_{2ν}(0, 1/σ), which belongs to the kernel.
    """

    phases: Literal["shared", "after", "before"] = "shared"
    precision: Literal["float64", "float32"] = "float64"
    matern: Literal["printed", "exact"] = "printed"


AS_STATED = Settings()


def frequencies(family: str, shape: tuple[int, int], rng: np.random.RandomState, matern: str) -> np.ndarray:
    """Draw frequencies (p, d) of a family for σ = 1, as the paper describes them."""
    if family == "laplacian":
        return rng.standard_cauchy(shape)
    kernel = make_kernel(family)
    normals = rng.standard_normal(shape)
    if family.startswith("matern"):
        nu = kernel.nu  # type: ignore[attr-defined]
        degrees = nu if matern == "printed" else 2 * nu
        scale = np.sqrt(nu) if matern == "printed" else 1.0
        return scale * normals / np.sqrt(rng.chisquare(degrees, shape[0]) / degrees)[:, None]
    if family.startswith("rq"):
        alpha = kernel.alpha  # type: ignore[attr-defined]
        return normals * np.sqrt(rng.gamma(alpha, 1 / alpha, shape[0]))[:, None]
    return normals


@dataclass(frozen=True)
class Features:
    """√(2/p) cos(wᵀx + b)."""

    frequencies: np.ndarray  #: (p, d).
    phases: np.ndarray  #: (p,).

    @classmethod
    def draw(cls, family: str, bandwidth: float, n_features: int, dim: int, seed: int, settings: Settings) -> Features:
        """Draw the features of a candidate; the same seed gives the same draws for every bandwidth of a family."""
        rng = np.random.RandomState(seed)

        def phases(source: np.random.RandomState) -> np.ndarray:
            return source.uniform(0, 2 * np.pi, n_features)

        before = phases(rng) if settings.phases == "before" else None
        w = frequencies(family, (n_features, dim), rng, settings.matern) / bandwidth
        after = phases(rng) if settings.phases == "after" else None
        shared = phases(np.random.RandomState([seed, 1])) if settings.phases == "shared" else None
        b = next(drawn for drawn in (before, after, shared) if drawn is not None)
        return cls(w.astype(settings.precision), b.astype(settings.precision))

    def values(self, X: np.ndarray) -> np.ndarray:
        """φ(x), (n, p)."""
        scale = self.phases.dtype.type(np.sqrt(2 / len(self.phases)))
        return scale * np.cos(X.astype(self.phases.dtype) @ self.frequencies.T + self.phases)

    def slopes(self, X: np.ndarray) -> np.ndarray:
        """s(x) of ∂φ_m/∂x_j = s_m w_mj, (n, p)."""
        scale = self.phases.dtype.type(np.sqrt(2 / len(self.phases)))
        return -scale * np.sin(X.astype(self.phases.dtype) @ self.frequencies.T + self.phases)


@dataclass(frozen=True)
class Operators:
    """Σ, not centred, and L+λ of some samples, (p, p)."""

    covariance: np.ndarray
    penalty: np.ndarray

    def eigenpairs(self, n_modes: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the leading μ, descending, and coefficients a with aᵀ(L+λ)a = 1, by the Cholesky-reduced problem."""
        factor = linalg.cholesky(self.penalty, lower=True, check_finite=False)
        half = linalg.solve_triangular(factor, self.covariance, lower=True, check_finite=False)
        reduced = linalg.solve_triangular(factor, half.T, lower=True, check_finite=False)
        p = len(factor)
        values, vectors = linalg.eigh((reduced + reduced.T) / 2, subset_by_index=[p - n_modes, p - 1])
        coefficients = linalg.solve_triangular(factor, vectors[:, ::-1], lower=True, trans=1, check_finite=False)
        return values[::-1], coefficients


@dataclass(frozen=True)
class Sample:
    """Values and slopes of the features at some samples, (n, p)."""

    features: Features
    values: np.ndarray
    slopes: np.ndarray

    @classmethod
    def of(cls, features: Features, X: np.ndarray) -> Sample:
        """Evaluate the features."""
        return cls(features, features.values(X), features.slopes(X))

    def at(self, rows: np.ndarray) -> Sample:
        """Return some of the samples."""
        return Sample(self.features, self.values[rows], self.slopes[rows])

    def operators(self, regularization: float) -> Operators:
        """Return Σ and L+λ."""
        n = self.values.dtype.type(len(self.values))
        return Operators(self.values.T @ self.values / n, self.penalty(regularization))

    def penalty(self, regularization: float) -> np.ndarray:
        """Return L+λ with L = E ∇φ∇φᵀ: products of slopes times wᵀw."""
        n = self.values.dtype.type(len(self.values))
        w = self.features.frequencies
        energy = (self.slopes.T @ self.slopes / n) * (w @ w.T)
        energy.flat[:: len(energy) + 1] += energy.dtype.type(regularization)
        return energy

    def eigenvalues(self, n_modes: int, regularization: float) -> np.ndarray:
        """Return the leading μ, descending: squared singular values of (L+λ)^(-1/2)φᵀ/√n, from the smaller Gram."""
        n, p = self.values.shape
        factor = linalg.cholesky(self.penalty(regularization), lower=True, check_finite=False)
        half = linalg.solve_triangular(factor, self.values.T, lower=True, check_finite=False)
        gram = half.T @ half if n < p else half @ half.T
        size = len(gram)
        found = linalg.eigvalsh(gram, subset_by_index=[max(size - n_modes, 0), size - 1], check_finite=False)
        return found[::-1] / gram.dtype.type(n)


# --- scores -----------------------------------------------------------------------------------------------------------
def _eigenvalue_sum(train: Sample, test: Sample, r: int, regularization: float) -> float:
    """Σ_k μ_k of the held-out samples (eq:emp-cv)."""
    return float(np.sum(test.eigenvalues(r, regularization)))


def _gap(train: Sample, test: Sample, r: int, regularization: float) -> float:
    """μ_r/μ_{r+1} of the held-out samples (rem:gap-cv-preferred)."""
    values = test.eigenvalues(r + 1, regularization)
    return float(values[r - 1] / values[r])


def _rayleigh(train: Sample, test: Sample, r: int, regularization: float) -> float:
    """Σ_k a_kᵀΣa_k / a_kᵀ(L+λ)a_k of the training modes on the held-out samples (eq:rayleigh-cv)."""
    modes = train.operators(regularization).eigenpairs(r)[1]
    held_out = test.operators(regularization)
    above = np.sum(modes * (held_out.covariance @ modes), axis=0)
    below = np.sum(modes * (held_out.penalty @ modes), axis=0)
    return float(np.sum(above / below))


SCORES: dict[str, Callable[[Sample, Sample, int, float], float]] = {
    "eigsum": _eigenvalue_sum,
    "gap": _gap,
    "rayleigh": _rayleigh,
}


# --- SubR² as printed -------------------------------------------------------------------------------------------------
def printed_r2(modes: np.ndarray, reference: np.ndarray, gauge: Literal["orthonormal", "one by one"]) -> float:
    """Return (1/r) Σ_jk ⟨φ̂_j, φ*_k⟩², the paper's SubR², for modes in a gauge.

    Modes and reference are centred. "orthonormal": then QR (eq:normalize-orth), and SubR² does not depend on the basis.
    "one by one": modes are scaled to variance 1, and SubR² may exceed 1 if they are correlated.
    """

    def scaled(functions: np.ndarray) -> np.ndarray:
        centred = functions - functions.mean(axis=0)
        return centred / np.sqrt(np.mean(centred**2, axis=0))

    n, r = modes.shape
    learned = np.linalg.qr(scaled(modes))[0] * np.sqrt(n) if gauge == "orthonormal" else scaled(modes)
    target = np.linalg.qr(scaled(reference))[0] * np.sqrt(n)
    return float(np.sum((learned.T @ target / n) ** 2) / r)


# --- the search -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Candidate:
    """A family and a bandwidth with their features."""

    family: str
    bandwidth: float
    features: Features

    def score(self, X: np.ndarray, r: int, regularization: float, seed: int, scoring: str) -> float:
        """Return the mean score over the folds."""
        sample = Sample.of(self.features, X)
        folds = KFold(N_FOLDS, shuffle=True, random_state=seed).split(X)
        scores = [SCORES[scoring](sample.at(train), sample.at(test), r, regularization) for train, test in folds]
        return float(np.mean(scores))


def candidates(X: np.ndarray, seed: int, n_features: int, settings: Settings = AS_STATED) -> Iterator[Candidate]:
    """Yield every family at every bandwidth."""
    median = median_distance(X, random_state=seed)
    for family in FAMILIES:
        for sigma in median * BANDWIDTHS:
            features = Features.draw(family, sigma, n_features, X.shape[1], seed, settings)
            yield Candidate(family, float(sigma), features)


@dataclass(frozen=True)
class Selection:
    """The selected candidate, its modes on all samples, and the scores of all candidates."""

    candidate: Candidate
    operators: Operators
    coefficients: np.ndarray  #: (p, r).
    cv_results_: list[dict[str, Any]]  #: Family, bandwidth and score of every candidate.

    @property
    def kernel_(self) -> Kernel:
        """The kernel of the candidate."""
        return make_kernel(self.candidate.family, self.candidate.bandwidth)

    @cached_property
    def rates_(self) -> np.ndarray:
        """aᵀ(L+λ)a/aᵀΣa = 1/μ of every mode."""
        a = self.coefficients
        return np.sum(a * (self.operators.penalty @ a), axis=0) / np.sum(a * (self.operators.covariance @ a), axis=0)

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Evaluate the modes, which include the constant-like one."""
        return np.asarray(self.candidate.features.values(X) @ self.coefficients, dtype=np.float64)


def fit_features(features: Features, X: np.ndarray, r: int, regularization: float) -> tuple[Operators, np.ndarray]:
    """Return the operators of all samples, and the coefficients of the modes."""
    operators = Sample.of(features, X).operators(regularization)
    return operators, operators.eigenpairs(r)[1]


def select(
    X: np.ndarray,
    r: int,
    seed: int,
    regularization: float,
    n_features: int,
    scoring: str = "eigsum",
    settings: Settings = AS_STATED,
) -> Selection:
    """Score every candidate with all features, and fit the best one to all samples.

    Parameters
    ----------
    X : ndarray of shape (n_samples, d)
    r : int
        Number of modes, the constant-like one included.
    seed : int
        Seed of features and folds.
    regularization, n_features : float, int
        λ and p.
    scoring : {"eigsum", "gap", "rayleigh"}
    settings : Settings
    """
    results: list[dict[str, Any]] = []
    best = None
    best_score = -np.inf
    for candidate in candidates(X, seed, n_features, settings):
        score = candidate.score(X, r, regularization, seed, scoring)
        results.append({"family": candidate.family, "bandwidth": candidate.bandwidth, "score": score})
        if score > best_score:
            best = candidate
            best_score = score
    if best is None:
        raise ValueError(f"No candidate has a finite score by {scoring!r}.")
    operators, coefficients = fit_features(best.features, X, r, regularization)
    return Selection(best, operators, coefficients, results)
