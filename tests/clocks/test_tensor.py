"""The diffusion tensor from displacements, against diffusions with known tensors."""

import numpy as np
import pytest

from kdmaps.clocks.runs import Runs
from kdmaps.clocks.tensor import learn_diffusion, smooth
from kdmaps.dynamics import diffusion_tensor
from kdmaps.exceptions import ArgumentError

STEP = 0.01


def steep(x):
    """A diffusion constant that changes ninefold around 0."""
    return 0.1 * (1 + 0.8 * np.tanh(3 * x))


def walks(diffusion, n_runs=200, n_frames=40, drift=0.0, seed=0, dim=1):
    """Runs of the Itô equation dX = drift dt + √(2a) dW, whose squared displacements are exact in one step."""
    rng = np.random.default_rng(seed)
    X = np.empty((n_frames, n_runs, dim))
    X[0] = rng.uniform(-1.5, 1.5, (n_runs, dim))
    for t in range(1, n_frames):
        noise = np.sqrt(2 * diffusion(X[t - 1]) * STEP) * rng.standard_normal((n_runs, dim))
        X[t] = X[t - 1] + drift * STEP + noise
    return list(np.swapaxes(X, 0, 1))


def test_constant_diffusion_is_found_within_its_error():
    runs = walks(lambda x: 0 * x + [0.1, 0.4], dim=2)
    learned = diffusion_tensor(runs, time_step=STEP)
    points = np.random.default_rng(1).uniform(-1, 1, (20, 2))
    relative = np.abs(learned(points)[:, [0, 1], [0, 1]] / [0.1, 0.4] - 1)
    assert np.all(relative < 4 * learned.errors(points)[:, None])
    assert np.abs(learned(points)[:, 0, 1]).max() < 4 * learned.errors(points).max() * 0.2  # √(0.1·0.4)


def test_diffusion_that_changes_in_space_is_resolved():
    learned = diffusion_tensor(walks(steep, 1000), time_step=STEP)
    points = np.linspace(-1, 1, 21)[:, None]
    assert np.isfinite(learned.width)
    # The kernel smooths over its width, which adds to the sampling error.
    assert np.median(np.abs(learned(points)[:, 0, 0] / steep(points[:, 0]) - 1)) < 0.05


def test_held_out_displacements_choose_one_tensor_if_it_is_constant():
    widths = [learn_diffusion(Runs.read(walks(lambda x: 0 * x + 0.1, seed=seed), STEP)).width for seed in range(5)]
    assert np.median(widths) > 0.5  # half of the range of the starts


def test_errors_are_the_spread_over_repeated_runs():
    values, errors = [], []
    for seed in range(100):
        learned = learn_diffusion(Runs.read(walks(lambda x: 0 * x + 0.1, 40, seed=seed), STEP), widths=[0.4])
        values.append(learned([[0.0]])[0, 0, 0])
        errors.append(0.1 * learned.errors([[0.0]])[0])
    # The spread of 100 values has a relative error of 1/√200 = 0.07.
    assert np.std(values) == pytest.approx(np.mean(errors), rel=0.21)


@pytest.mark.parametrize("drift", [0.0, 10.0])
def test_drift_is_removed(drift):
    # With the drift v, the mean square of displacements is 2Dτ + v²τ², six times 2Dτ for v = 10.
    learned = diffusion_tensor(walks(lambda x: 0 * x + 0.1, 400, drift=drift), time_step=STEP)
    assert learned([[0.0]])[0, 0, 0] == pytest.approx(0.1, rel=0.08)


def test_tensor_is_positive_definite_far_from_all_runs():
    learned = diffusion_tensor(walks(lambda x: steep(x) * [1, 0.25], dim=2), time_step=STEP)
    points = np.array([[0.0, 0.0], [5.0, 5.0], [100.0, -100.0]])
    tensors = learned(points)
    np.testing.assert_array_equal(tensors, np.swapaxes(tensors, 1, 2))
    assert np.linalg.eigvalsh(tensors).min() > 0.001
    assert learned.errors(points)[2] == np.inf


def test_sums_add_up():
    runs = Runs.read(walks(steep, 30), STEP)
    points, shifts, _ = runs.displacements(1)
    landmarks = points[::50]
    whole = smooth(points, shifts, landmarks, 0.5, np.eye(1), STEP)
    halves = [
        smooth(points[part], shifts[part], landmarks, 0.5, np.eye(1), STEP)
        for part in (slice(0, 500), slice(500, None))
    ]
    for name in ("counts", "shifts", "squares", "overlaps"):
        assert getattr(whole, name) == pytest.approx(getattr(halves[0], name) + getattr(halves[1], name))


def test_rotated_correlated_tensor():
    rng = np.random.default_rng(0)
    truth = np.array([[1.0, 0.6], [0.6, 0.5]])
    root = np.linalg.cholesky(2 * STEP * truth)
    runs = [np.cumsum(rng.standard_normal((40, 2)) @ root.T, axis=0) for _ in range(300)]
    assert diffusion_tensor(runs, time_step=STEP)([[0.0, 0.0]])[0] == pytest.approx(truth, abs=0.05)


def test_a_column_that_does_not_move_is_named():
    runs = [np.column_stack([run[:, 0], np.ones(len(run))]) for run in walks(steep, 10)]
    with pytest.raises(ArgumentError, match="singular"):
        diffusion_tensor(runs, time_step=STEP)
