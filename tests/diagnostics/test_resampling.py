"""Bootstrap intervals against Student's intervals."""

import numpy as np
import pytest
from scipy import stats

from kdmaps.diagnostics.resampling import Resampling, basic_intervals, joint_intervals


def means_of_resamples(blocks, n_resamples, seed):
    counts = Resampling(n_resamples, 0.95, seed).counts(len(blocks))
    return counts @ blocks / len(blocks)


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_mean_of_few_blocks_against_student(confidence):
    blocks = np.random.default_rng(0).standard_normal(8)
    found = basic_intervals(blocks.mean(), means_of_resamples(blocks, 20_000, 0), confidence, len(blocks))
    exact = stats.t.interval(confidence, 7, blocks.mean(), stats.sem(blocks))
    # Quantiles of 20,000 resamples are accurate to 2 % of the width; deviations from normality add a few percent.
    np.testing.assert_allclose(found, exact, atol=0.05 * np.diff(exact)[0])


@pytest.mark.parametrize("n_blocks", [10, 50])
def test_coverage(n_blocks):
    """Without the corrections the coverage is .88 and .93."""
    rng = np.random.default_rng(1)
    blocks = rng.standard_normal((2000, n_blocks))
    counts = rng.multinomial(n_blocks, np.full(n_blocks, 1 / n_blocks), size=(2000, 100))
    samples = np.einsum("rsb,rb->sr", counts, blocks) / n_blocks
    low, high = basic_intervals(blocks.mean(axis=1), samples, 0.95, n_blocks).T
    covered = np.mean((low <= 0) & (high >= 0))
    assert abs(covered - 0.95) < 3 * np.sqrt(0.95 * 0.05 / 2000)


@pytest.mark.parametrize("n_blocks", [10, 50])
def test_coverage_of_joint_intervals(n_blocks):
    """Separate intervals contain all of twelve independent means in 0.95¹² = 54 % of the cases."""
    rng, n = np.random.default_rng(1), 600
    blocks = rng.standard_normal((n, n_blocks, 12))
    counts = rng.multinomial(n_blocks, np.full(n_blocks, 1 / n_blocks), size=(n, 100))
    together = []
    for row, own in zip(counts, blocks, strict=True):
        ends = joint_intervals(own.mean(axis=0), row @ own / n_blocks, 0.95, n_blocks)
        together.append(np.all((ends[:, 0] <= 0) & (ends[:, 1] >= 0)))
    # The quantile of 100 resamples, and Student's correction of it, are good to about 1 % each.
    assert abs(np.mean(together) - 0.95) < 3 * np.sqrt(0.95 * 0.05 / n) + 0.02


def test_joint_intervals_of_correlated_estimates():
    """Copies in other units do not widen the intervals, and infinite resamples are left out."""
    blocks = np.random.default_rng(0).standard_normal(20)
    samples = means_of_resamples(blocks, 2000, 0)
    scales = np.array([1.0, 10.0, 100.0])
    alone = joint_intervals(blocks.mean()[None], samples[:, None], 0.95, 20)
    found = joint_intervals(blocks.mean() * scales, samples[:, None] * scales, 0.95, 20)
    np.testing.assert_allclose(found, alone * scales[:, None])
    exact = stats.t.interval(0.95, 19, blocks.mean(), stats.sem(blocks))
    np.testing.assert_allclose(alone[0], exact, atol=0.05 * np.diff(exact)[0])  # as above
    some = np.where(np.arange(2000)[:, None] % 50 == [[1, 2]], -np.inf, samples[:, None])
    np.testing.assert_allclose(joint_intervals(np.full(2, blocks.mean()), some, 0.95, 20)[0], exact, atol=0.05)


@pytest.mark.parametrize(
    ("given", "named"),
    [((19, 0.95), "n_resamples"), ((20.0, 0.95), "n_resamples"), ((20, 0), "confidence"), ((20, 1.0), "confidence")],
)
def test_rejects_bad_arguments(given, named):
    with pytest.raises(ValueError, match=f"^{named} must be"):
        Resampling(*given, 0)
