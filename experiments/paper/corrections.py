"""Statements of the paper that need a correction, each with a number; and the page of sections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from experiments._runner import Row
from experiments.paper import _sections
from experiments.paper._experiment import Call, Experiment, now
from experiments.paper._learning import N_LANDMARKS
from experiments.paper._problems import load
from experiments.paper._show import Table
from experiments.paper._sweep import BANDWIDTHS, Features, Operators, Sample, Settings
from experiments.theory.mixtures import DictionaryOperators, projector_continuity, projector_stability
from kdmaps.bases import select_landmarks
from kdmaps.certificates import cv_consistency
from kdmaps.data.distances import median_distance
from kdmaps.generators import for_problem, rayleigh_residuals
from kdmaps.kernels import Gaussian, Matern, Mixture

LAMBDA = 0.01
N_DRAWS = 2000


def landmark_operators(X: np.ndarray, sigma: float, landmarks: np.ndarray) -> tuple[np.ndarray, Operators]:
    """Return C, and the operators of one Gaussian at landmarks, as in appendix B."""
    kernel = Gaussian(sigma)
    values = kernel(X, landmarks)
    slopes = kernel.gradient(X, landmarks)
    energy = np.einsum("imj,inj->mn", slopes, slopes, optimize=True) / len(X)
    ridge = kernel(landmarks) + 1e-10 * np.eye(len(landmarks))
    return values, Operators(values.T @ values / len(X), energy + LAMBDA * ridge)


def ritz_values(seed: int) -> dict[str, float]:
    """Return μ₁ for nested spaces of 10 to 300 landmarks on OU2D α=4, at half a median distance."""
    X = load("ou2d-4").sample(500, random_state=seed)
    landmarks = np.random.RandomState(seed).permutation(X)
    sigma = 0.5 * median_distance(X)
    sizes = (10, 30, 100, 200, 300)
    return {f"p = {p}": float(landmark_operators(X, sigma, landmarks[:p])[1].eigenpairs(1)[0][0]) for p in sizes}


def cluster_draws(seed: int, n_draws: int = N_DRAWS) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return distance, printed bound and corrected bound (thm:residual-gap) of random functions near a cluster.

    Rates are sums of exponential gaps; the cluster is the second and third mode, λ the Rayleigh quotient of φ.
    """
    rng = np.random.default_rng(seed)
    rates = np.cumsum(rng.exponential(size=(n_draws, 8)), axis=1)
    coefficients = rng.standard_normal((n_draws, 8)) * np.array([0.2, 1, 1, 0.2, 0.2, 0.2, 0.2, 0.2])
    coefficients /= np.linalg.norm(coefficients, axis=1)[:, None]
    value = np.sum(rates * coefficients**2, axis=1)
    residual = np.sqrt(np.sum(((rates - value[:, None]) * coefficients) ** 2, axis=1))
    outside = np.array([0, 3, 4, 5, 6, 7])
    distance = np.linalg.norm(coefficients[:, outside], axis=1)
    between = np.abs(rates[:, outside, None] - rates[:, None, [1, 2]]).min(axis=(1, 2))
    from_value = np.abs(rates[:, outside] - value[:, None]).min(axis=1)
    return distance, residual / between, residual / from_value


def cluster_bound(seed: int) -> dict[str, float]:
    """Count violations of both bounds."""
    distance, printed, corrected = cluster_draws(seed)
    slack = 1 + 1e-12
    return {
        "draws": float(len(distance)),
        "printed bound violated": float(np.sum(distance > printed * slack)),
        "corrected bound violated": float(np.sum(distance > corrected * slack)),
    }


def projector_constant(seed: int) -> dict[str, float]:
    """Return C₀ and both bounds for five Gaussians at 60 landmarks and a change of 0.001 of the weights."""
    X = load("ou2d-4").sample(500, random_state=seed)
    median = median_distance(X)
    kernels = [Gaussian(median * factor) for factor in np.geomspace(0.5, 5, 5)]
    landmarks = select_landmarks(X, N_LANDMARKS, "kmeans", np.random.RandomState(seed))
    operators = DictionaryOperators.compute(Mixture(kernels), landmarks, X, LAMBDA)
    theorem = projector_continuity(operators, 3, 0.001)
    sharp = projector_stability(operators, 3, 0.001)
    return {
        "C₀": theorem.constants.get("C₀", np.inf),
        "bound of the theorem": theorem.value,
        "sharp bound": sharp.value,
    }


def subspace_term(seed: int) -> dict[str, float]:
    """Return L_sub of modes in the gauge of the eigenproblem, and after eq:normalize-orth."""
    X = load("circle").sample(500, random_state=seed)
    landmarks = select_landmarks(X, N_LANDMARKS, "kmeans", np.random.RandomState(seed))
    values, operators = landmark_operators(X, median_distance(X), landmarks)
    modes = values @ operators.eigenpairs(4)[1]
    centred = modes - modes.mean(axis=0)
    normalised = np.linalg.qr(centred)[0] * np.sqrt(len(X))
    return {"as solved": printed_subspace_term(modes), "normalised": printed_subspace_term(normalised)}


def printed_subspace_term(modes: np.ndarray, eta: float = 1.0) -> float:
    """Return L_sub (eq:anchor-loss) of values of modes at samples."""
    gram = modes.T @ modes / len(modes)
    means = np.sum(modes.mean(axis=0) ** 2)
    norms = np.sum((np.diagonal(gram) - 1) ** 2)
    return float(means + norms + eta * np.sum(np.triu(gram, 1) ** 2))


def matern_frequencies(seed: int) -> dict[str, float]:
    """Return the largest deviation of 100,000 features from the Matérn-3/2 kernel for both laws of frequencies."""
    x = np.linspace(0, 4, 41)[:, None]
    exact = Matern(1.5, 1.0)(x, np.zeros((1, 1)))[:, 0]
    found = {}
    laws: tuple[Literal["printed", "exact"], ...] = ("printed", "exact")
    for law in laws:
        w = Features.draw("matern32", 1.0, 100_000, 1, seed, Settings(matern=law)).frequencies
        found[f"{law} frequencies"] = float(np.max(np.abs(np.mean(np.cos(w @ x.T), axis=0) - exact)))
    return found


def constant_mode(seed: int) -> dict[str, float]:
    """Return the standard deviation and the mean of the first mode at the widest bandwidth, OU2D α=4."""
    X = load("ou2d-4").sample(500, random_state=seed)
    sigma = BANDWIDTHS[-1] * median_distance(X)
    sample = Sample.of(Features.draw("gaussian", sigma, 300, 2, seed, Settings()), X)
    first = sample.values @ sample.operators(LAMBDA).eigenpairs(1)[1][:, 0]
    return {"mean": float(abs(first.mean())), "standard deviation": float(first.std())}


def gap_proxy(seed: int) -> dict[str, float]:
    """Return μ_r - μ_{r+1} for OU2D α=16 and r = 2, not centred and centred, and the gap of the rates, 3 - 2."""
    X = load("ou2d-16").sample(500, random_state=seed)
    sample = Sample.of(Features.draw("gaussian", median_distance(X), 300, 2, seed, Settings()), X)
    operators = sample.operators(LAMBDA)
    mean = sample.values.mean(axis=0)
    centred = Operators(operators.covariance - np.outer(mean, mean), operators.penalty)
    mu = {"μ₂ - μ₃": operators.eigenpairs(3)[0], "centred": centred.eigenpairs(3)[0]}
    return {name: float(values[1] - values[2]) for name, values in mu.items()} | {"gap of the rates": 1.0}


def residual_gradients(seed: int) -> dict[str, float]:
    """Return the derivative of the residual by log σ with λ̂ fixed and with λ̂ refreshed, OU2D α=4."""
    system = load("ou2d-4")
    X = system.sample(500, random_state=seed)
    landmarks = select_landmarks(X, 30, "kmeans", np.random.RandomState(seed))
    generator = for_problem(system)
    median = median_distance(X)

    def images(log_sigma: float) -> tuple[np.ndarray, np.ndarray]:
        sigma = median * np.exp(log_sigma)
        values, operators = landmark_operators(X, sigma, landmarks)
        a = operators.eigenpairs(3)[1]
        return values @ a, generator(Gaussian(sigma), X, landmarks) @ a

    fixed = rayleigh_residuals(*images(0.0)).rates
    step = 1e-4

    def residual(log_sigma: float, rates: np.ndarray | None) -> float:
        values, moved = images(log_sigma)
        found = rayleigh_residuals(values, moved).rates if rates is None else rates
        return float(np.sum(np.mean((moved + found * values) ** 2, axis=0)))

    return {
        "λ̂ fixed": (residual(step, fixed) - residual(-step, fixed)) / (2 * step),
        "λ̂ refreshed": (residual(step, None) - residual(-step, None)) / (2 * step),
    }


def fold_factor(seed: int) -> dict[str, float]:
    """Return the bound of thm:cv-consistency as printed and with the factor F, for the paper's grid."""
    M, r, F = 60, 4, 3
    margin, fold_size, c = 1.0, 10_000.0, 0.05
    printed = 2 * M * r * np.exp(-c * fold_size * margin**2 / (4 * r**2))
    return {"printed": float(printed), "with F": cv_consistency(margin, M, r, F, fold_size, c).value}


@dataclass(frozen=True)
class Correction:
    """A statement, its correction, and the function that returns numbers as evidence."""

    place: str
    printed: str
    corrected: str
    evidence: Callable[[int], dict[str, float]]


CORRECTIONS = (
    Correction(
        "Section 3.2",
        "Ritz values approximate the population eigenvalues from above",
        "from below: maxima over a subspace are at most maxima over the space, and grow with it (Courant–Fischer)",
        ritz_values,
    ),
    Correction(
        "Theorem 2, clusters",
        "dist ≤ ‖(𝒢+λ)φ‖/γ_I with the gap γ_I between the rates inside and outside the cluster",
        "the gap is the distance from λ to the rates outside the cluster",
        cluster_bound,
    ),
    Correction(
        "Theorem 1",
        "C₀ is the Lipschitz constant of Proposition 4.3",
        "that proposition bounds Σ and L, not L^(-1/2)ΣL^(-1/2); C₀ contains λγ to the power -3/2, and the bound is "
        "vacuous. A sharp bound exists",
        projector_constant,
    ),
    Correction(
        "Theorem 3",
        "P(miss) ≤ 2Mr exp(…)",
        "2MrF exp(…): F ≥ 1 does not allow dropping the factor F of the union bound over folds",
        fold_factor,
    ),
    Correction(
        "Eq. 28 and 30",
        "modes are normalised (eq. 28), and L_sub of these modes (eq. 30) is minimised",
        "L_sub of normalised modes is zero for every kernel. It depends on the kernel only in another gauge",
        subspace_term,
    ),
    Correction(
        "Section 3.4",
        "centring and QR do not change the estimated eigenspace",
        "one of the r modes is a constant with a small remainder, which centring scales up; centring Σ before the "
        "solve removes it",
        constant_mode,
    ),
    Correction(
        "Section 5.1",
        "Matérn-ν features have frequencies t_ν(0, √ν/σ)",
        "t with 2ν degrees of freedom and scale 1/σ",
        matern_frequencies,
    ),
    Correction(
        "Section 6",
        "a Rayleigh estimate λ̂ that depends on σ freezes the descent; refreshing it from time to time does not",
        "λ̂ minimises the residual, so that its derivative by λ̂ is zero and both gradients are equal",
        residual_gradients,
    ),
    Correction(
        "Section 4.4",
        "the gap of the rates can be estimated by μ_r - μ_{r+1}",
        "μ are time scales, not rates, and the first is the eigenvalue of the constant: the difference estimates "
        "1/κ_{r-1} - 1/κ_r",
        gap_proxy,
    ),
)


def evidence(index: int, seed: int) -> Row:
    """Return the numbers of a correction."""
    return {"correction": index, "seed": seed, "numbers": CORRECTIONS[index].evidence(seed)}


class Corrections(Experiment):
    """The corrections with their numbers."""

    def run(self, seed: int, call: Call = now) -> list[Row]:
        """Return one row per correction."""
        return [call(evidence, index=index, seed=seed) for index in range(len(CORRECTIONS))]

    def table(self, rows: Sequence[Row]) -> Table:
        """Tabulate statement, correction and numbers."""
        lines = []
        for row in rows:
            item = CORRECTIONS[row["correction"]]
            numbers = ", ".join(f"{name}: {value:.4g}" for name, value in row["numbers"].items())
            lines.append([item.place, item.printed, item.corrected, numbers])
        notes = [
            "Proposition 4.8 takes the rate at which training modes converge from Proposition 4.3, which is about the "
            "weights β, not about the number of samples; the limit is right for simple eigenvalues.",
            "Proposition 4.5 (a minimiser exists) holds for weights on the simplex. With bandwidths the domain is not "
            "compact, and the infimum of -Σμ is approached as σ → ∞.",
        ]
        return Table(("place", "printed", "corrected", "numbers (seed 42)"), lines, notes)


class Sections(Experiment):
    """From labels to code."""

    def run(self, seed: int, call: Call = now) -> list[Row]:
        """Return no rows: the page is made from stored labels."""
        return []

    def table(self, rows: Sequence[Row]) -> Table:
        """Tabulate the labels."""
        return _sections.table()


EXPERIMENTS: dict[str, Experiment] = {
    "corrections": Corrections(
        "Corrections",
        """Statements of the text that need a correction.

        The results of the paper's appendix and the other propositions are right as printed. Each correction comes with
        numbers from a computation.
        """,
        n_seeds=1,
    ),
    "sections": Sections(_sections.TITLE, _sections.TEXT, n_seeds=1),
}
