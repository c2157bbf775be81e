"""Cases about correlation, degeneracy and many dimensions."""

import warnings

import numpy as np

import kdmaps
from kdmaps import AdaptiveDiffusionMap, KernelDiffusionMap, KernelSearchCV, problems
from silent.case import case, close, intervals

CUTS = [("circle", 1, 1), ("circle", 3, 1), ("sphere-3", 2, 1), ("sphere-3", 1, 1), ("circle", 1, 5)]


@case(
    13,
    "interleaved frames of 20 walkers",
    "tests/test_uncertainty.py",
)
def walkers() -> tuple[str, bool]:
    """Bootstrap of 20 interleaved walkers without groups (correlation time 126 frames), 20 data sets."""
    problem, times, held = problems.load("dw1d"), [], []
    for seed in range(20):
        X = problem.simulate(200, dt=0.02, n_trajectories=20, random_state=seed).swapaxes(0, 1).reshape(-1, 1)
        model = KernelDiffusionMap(1, bandwidth=2.0, regularization=1e-3, n_features=40, random_state=0).fit(X)
        found = kdmaps.uncertainty.bootstrap(model, X, n_resamples=100, random_state=0)
        low, high = found.rate_intervals[0]
        times.append(found.correlation_time)
        held.append(low <= problem.rates(1)[0] <= high)
    text = f"correlation time {np.mean(times):.3g}; {sum(held)} of 20 intervals contain the rate"
    return text, close(float(np.mean(times)), 126) and sum(held) >= 18


@case(
    14,
    "have the same time scale within the sampling error",
    "tests/diagnostics/test_trust.py",
    CUTS,
)
def cut(variant: tuple[str, int, int]) -> tuple[str, bool]:
    """`n_components` splits a degenerate cluster: circle with 1 and 3 modes, sphere with 2 and 1, circle with every
    frame repeated five times; 20 data sets each.
    """
    name, r, copies = variant
    found = []
    for seed in range(20):
        X = problems.load(name).sample(500, random_state=seed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            KernelDiffusionMap(r, random_state=seed).fit(np.repeat(X, copies, axis=0))
        found += [w for w in caught if "have the same time scale" in str(w.message)]
    if len(found) > 16:  # of 20 cuts with a check of a level of 95 %, more are silent in 2 cases of 100
        warnings.warn(found[0].message, stacklevel=2)
    return f"{20 - len(found)} silent", False


@case(
    15,
    r"folds are blocks of rows",
    "tests/selection/test_auto_folds.py",
    [0, 1],
)
def frames(seed: int) -> tuple[str, bool]:
    """1,000 consecutive frames of six coordinates of rate 1: held-out score of two modes (at most 2), and λ."""
    X = problems.OrnsteinUhlenbeck([1.0] * 6).simulate(1000, dt=0.02, random_state=seed)[0]
    search = KernelSearchCV(2, families=["gaussian"], n_features=200, random_state=0).fit(X)
    return f"{search.best_score_:.2g}, {search.best_params_['regularization']:.1g}", search.best_score_ < 2


@case(
    16,
    r"((energy|rate) of|over-smooths) mode 1\b",
    "tests/diagnostics/test_trust.py",
)
def many_dimensions() -> tuple[str, bool]:
    """50 dimensions, eight random states: the first rate (0.40), and the interval of the first state."""
    problem = problems.load("triplewell2d")
    noise = 0.25 * np.random.default_rng(0).standard_normal((1000, 48))
    X = np.column_stack([problem.sample(1000, random_state=0), noise])
    models = [AdaptiveDiffusionMap(2, random_state=seed).fit(X) for seed in range(8)]
    rates, (low, high) = [model.rates_[0] for model in models], intervals(models[0], X)[0]
    right = low <= min(rates) and max(rates) <= high and low <= problem.rates(1)[0] <= high
    return f"{min(rates):.2g} to {max(rates):.2g}, interval [{low:.2g}, {high:.2g}]", bool(right)
