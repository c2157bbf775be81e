"""Static and lagged answers side by side."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.signal import lfilter

import kdmaps
from kdmaps.dynamics import coarse_states, compare_clocks, compare_with_trajectory
from kdmaps.exceptions import UnreliableModesWarning
from shared import wide_map


def columns(n, diffusions, alphas, seed):
    """Simulate dX_j = -α_j D_j X_j dt + √(2D_j) dW exactly at time steps of 1."""
    rng, found = np.random.default_rng(seed), []
    for diffusion, alpha in zip(diffusions, alphas, strict=True):
        a = np.exp(-alpha * diffusion)
        noise = rng.standard_normal(n) * np.sqrt((1 - a**2) / alpha)
        found.append(lfilter([1.0], [1.0, -a], noise, zi=a * rng.standard_normal(1) / np.sqrt(alpha))[0])
    return np.column_stack(found)


def test_one_diffusion_constant_for_all_modes():
    """D = 0.02, with α = 1 and 1.6: modes x (rate 1) and y (rate 1.6)."""
    X = columns(40_000, [0.02, 0.02], [1.0, 1.6], 0)
    static, lagged = wide_map(2).fit(X), wide_map(2, lag=3, time_step=0.5).fit(X)
    found = compare_clocks(static, lagged, X, random_state=0)
    assert found.subspace_r2 > 0.99
    assert_allclose(found.correlations, np.eye(2), atol=0.15)
    assert_allclose(found.static_rates, [1, 1.6], rtol=0.15)  # 800 correlation times: 5 % of a variance
    assert (np.abs(found.diffusion - 0.04) < 4 * found.diffusion_errors).all()
    assert (found.diffusion_errors < 0.1 * 0.04).all()
    assert found.disagreement < 4
    assert found.common_diffusion == pytest.approx(0.04, rel=0.15)
    assert "SubR²" in repr(found)
    assert [row["static_mode"] for row in found.table()] == [1, 2]
    assert "standard errors" in repr(compare_with_trajectory(static, X, time_step=0.5))


def test_a_metric_that_is_not_that_of_the_noise():
    """x (static rate 1) has D = 0.05 and y (1.6) D = 0.02: in time, y with 0.032 is slower than x with 0.05."""
    X = columns(40_000, [0.05, 0.02], [1.0, 1.6], 1)
    static, lagged = wide_map(2).fit(X), wide_map(2, lag=1).fit(X)
    found = compare_clocks(static, lagged, X, random_state=0)
    assert [row["static_mode"] for row in found.table()] == [2, 1]
    assert (np.abs(found.diffusion - [0.02, 0.05]) < 4 * found.diffusion_errors + 0.001).all()
    assert found.disagreement > 10
    with pytest.warns(UnreliableModesWarning, match=r"disagree about the diffusion constant.*use lag=1"):
        comparison = compare_with_trajectory(static, X)
    assert comparison.disagreement > 4
    # Pairs of frames need no diffusion constant: the same decay, and no warning.
    assert compare_with_trajectory(lagged, X).diffusion[0] == pytest.approx(1, abs=0.15)


def test_weights_and_trajectories():
    X = columns(3000, [0.1], [1.0], 2)
    static, lagged = wide_map(1).fit(X), wide_map(1, lag=1).fit(X)
    parts = compare_clocks(static, lagged, [X[:1000], X[1000:]], random_state=0)
    whole = compare_clocks(
        static, lagged, X, groups=np.arange(3000) >= 1000, sample_weight=np.full(3000, 2.0), random_state=0
    )
    assert_allclose(parts.diffusion, whole.diffusion, rtol=1e-10)
    assert_allclose(parts.angles, whole.angles, atol=1e-6)


def test_models_in_the_wrong_place_are_named():
    X = columns(1000, [0.1], [1.0], 0)
    static, lagged = wide_map(1).fit(X), wide_map(1, lag=1).fit(X)
    with pytest.raises(ValueError, match="static_model was fitted with a lag"):
        compare_clocks(lagged, lagged, X)
    with pytest.raises(ValueError, match="was fitted without a lag"):
        compare_clocks(static, static, X)
    with pytest.raises(ValueError, match="X has 2 features"):
        compare_clocks(static, lagged, np.hstack([X, X]))


def test_states_describe_themselves():
    path = kdmaps.problems.load("dw1d").simulate(3000, dt=0.1, random_state=0)[0]
    states = coarse_states(wide_map(1).fit(path).transform(path), 2)
    assert repr(states).startswith(
        f"2 coarse states of 3000 samples (PCCA+): state 1 (label 0) {states.populations[0]:.1%}, state 2 (label 1) "
    )
