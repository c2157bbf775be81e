"""Cases with misleading samples."""

import numpy as np

from kdmaps import AdaptiveDiffusionMap, KernelDiffusionMap, KernelSearchCV, problems
from kdmaps.problems.langevin import Langevin1D
from silent.case import case, close, dw, intervals, numbers


def double_well(barrier: float) -> Langevin1D:
    """Return the double well V = barrier (x² - 1)², in units of kT."""
    return Langevin1D(lambda x: barrier * (x**2 - 1) ** 2, lambda x: 4 * barrier * x * (x**2 - 1), (-3.0, 3.0))


@case(
    1,
    r"Row\(s\) 0 of X \(counted from 0\) lie alone",
    "tests/diagnostics/test_trust.py",
    [(KernelSearchCV, 5.0), (KernelSearchCV, 1e3), (AdaptiveDiffusionMap, 5.0), (AdaptiveDiffusionMap, 1e3)],
)
def outlier(variant: tuple[type, float]) -> tuple[str, bool]:
    """One outlier, at 5 or at 1000, among 600 samples of a double well (first rate 0.79), `KernelSearchCV` and
    `AdaptiveDiffusionMap`.
    """
    X = dw()
    X[0] = variant[1]
    rate = variant[0](2, random_state=0).fit(X).rates_[0]
    return f"{rate:.2g}", close(rate, 0.79)


@case(
    3,
    "lie in the transition of mode 1",
    "tests/diagnostics/test_trust.py",
    [2.0, 4.0],
)
def clusters(distance: float) -> tuple[str, bool]:
    """Two clusters at ±2 and at ±4 without a sample between them: the rate and its interval."""
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(-distance, 0.5, (250, 2)), rng.normal(distance, 0.5, (250, 2))]
    model = AdaptiveDiffusionMap(1, random_state=0).fit(X)
    return f"{model.rates_[0]:.2g} in [{numbers(intervals(model, X)[0])}]", False


@case(
    4,
    r"((energy|variance|transition|Overfitting|rate) of|over-smooths) mode 1\b",
    "tests/diagnostics/test_trust.py",
    range(8),
)
def barrier(seed: int) -> tuple[str, bool]:
    """Barrier of 6 kT, 500 samples, eight data sets: rate over the exact rate, and whether the interval contains the
    exact rate.
    """
    problem = double_well(6.0)
    X, exact = problem.sample(500, random_state=seed), problem.rates(1)[0]
    model = AdaptiveDiffusionMap(1, random_state=seed).fit(X)
    low, high = intervals(model, X)[0]
    holds = bool(low <= exact <= high)
    return f"{model.rates_[0] / exact:.2g}{'' if holds else ' not contained'}", close(model.rates_[0], exact) and holds


@case(
    5,
    r"at most \d+ distinct values|the codes of a category",
    "tests/data/test_check.py",
    ["rounded", "one-hot"],
)
def discrete(kind: str) -> tuple[str, bool]:
    """One rounded column, `np.round(2*dw)/2`, and three additional one-hot columns."""
    codes = np.eye(3)[np.random.default_rng(0).integers(0, 3, 600)]
    X = np.round(2 * dw()) / 2 if kind == "rounded" else np.column_stack([dw(), codes])
    rates = KernelSearchCV(2, random_state=0).fit(X).rates_
    return f"{kind}: {numbers(rates)}", close(rates[0], 0.79) and close(rates[1], 3.55)


@case(
    8,
    r"leave [\d.]+ effective samples of 1000|Too few independent samples",
    "tests/diagnostics/test_trust.py",
    [2.87, 5.2],
)
def weights(spread: float) -> tuple[str, bool]:
    """Weights with an effective sample size of 14 or 4, of 1,000 samples (first rate 1): rates and the interval of the
    first.
    """
    X, weight = problems.load("ou2d-4").sample(1000, random_state=0), np.random.default_rng(5).standard_normal(1000)
    weight = np.exp(spread * weight)
    model = KernelSearchCV(2, random_state=0).fit(X, sample_weight=weight)
    low, high = intervals(model, X, sample_weight=weight)[0]
    effective = weight.sum() ** 2 / (weight**2).sum()
    return f"{effective:.0f}: {numbers(model.rates_)}, [{low:.2g}, {high:.2g}]", close(model.rates_[0], 1, 1.3)


@case(
    17,
    r"Column\(s\) 0 of X fill \[-π, π\] up to both ends",
    "tests/data/test_angles.py",
)
def angle() -> tuple[str, bool]:
    """Angle in radians with a well at ±π (rate 1.37)."""
    phi = np.random.default_rng(0).vonmises(np.pi, 1.5, (4000, 1))
    rate = KernelDiffusionMap(1, regularization=1e-3, random_state=0).fit(phi).rates_[0]
    return f"{rate:.2g}", close(rate, 1.37)


@case(
    18,
    r"1 of 2 rows of X lie far outside the samples of the fit|2 of 2 rows of X lie far outside the samples of the fit",
    "tests/data/test_support.py",
)
def outside() -> tuple[str, bool]:
    """`transform` far outside the samples, at x = 3 and x = 5."""
    return numbers(KernelDiffusionMap(1, random_state=0).fit(dw()).transform([[3.0], [5.0]])[:, 0]), False
