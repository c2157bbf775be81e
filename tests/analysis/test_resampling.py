"""Intervals of resampled blocks, against Student's."""

import numpy as np
import pytest
from scipy import stats

from kdmaps.analysis.resampling import Resampling, basic_intervals


def means_of_resamples(blocks, n_resamples, seed):
    counts = Resampling(n_resamples, 0.95, seed).counts(len(blocks))
    return counts @ blocks / len(blocks)


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_mean_of_few_blocks_has_students_interval(confidence):
    blocks = np.random.default_rng(0).standard_normal(8)
    found = basic_intervals(blocks.mean(), means_of_resamples(blocks, 20_000, 0), confidence, len(blocks))
    exact = stats.t.interval(confidence, 7, blocks.mean(), stats.sem(blocks))
    # Quantiles of 20,000 resamples are known to 2 % of the width; the resamples are not normal by another few.
    np.testing.assert_allclose(found, exact, atol=0.05 * np.diff(exact)[0])


@pytest.mark.parametrize("n_blocks", [10, 50])
def test_intervals_hold_what_they_say(n_blocks):
    """Without the corrections .88 and .93."""
    rng = np.random.default_rng(1)
    blocks = rng.standard_normal((2000, n_blocks))
    counts = rng.multinomial(n_blocks, np.full(n_blocks, 1 / n_blocks), size=(2000, 100))
    samples = np.einsum("rsb,rb->sr", counts, blocks) / n_blocks
    low, high = basic_intervals(blocks.mean(axis=1), samples, 0.95, n_blocks).T
    covered = np.mean((low <= 0) & (high >= 0))
    assert abs(covered - 0.95) < 3 * np.sqrt(0.95 * 0.05 / 2000)


@pytest.mark.parametrize(
    ("given", "named"),
    [((19, 0.95), "n_resamples"), ((20.0, 0.95), "n_resamples"), ((20, 0), "confidence"), ((20, 1.0), "confidence")],
)
def test_arguments(given, named):
    with pytest.raises(ValueError, match=f"^{named} must be"):
        Resampling(*given, 0)
