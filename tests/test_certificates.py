"""The bound on the choice of a kernel holds where it applies, and reports when it does not."""

import numpy as np
import pytest

from kdmaps.certificates import cv_consistency


def test_cv_consistency_formula():
    certificate = cv_consistency(2.0, 10, 4, 3, 500, 2.0)
    assert certificate.holds
    # 2·M·r·F exp(-c N_f Δ²/(4r²)), of the order 1e-25
    assert certificate.value == pytest.approx(2 * 10 * 4 * 3 * np.exp(-2 * 500 * 4 / 64), abs=0)
    assert not cv_consistency(0.0, 10, 4, 3, 500, 2.0).holds
    assert cv_consistency(0.0, 10, 4, 3, 500, 2.0).value == 1


def test_cv_consistency_bounds_the_miss_rate():
    """Fold scores that are exactly Gaussian with variance 1/(2cN_f) satisfy the assumed concentration."""
    rng = np.random.default_rng(0)
    margin, n_candidates, fold_size, c = 0.5, 5, 100, 0.5
    scores = np.r_[margin, np.zeros(n_candidates - 1)] + rng.standard_normal((20_000, 3, n_candidates)) / np.sqrt(
        2 * c * fold_size
    )
    missed = np.mean(scores.mean(axis=1).argmax(axis=1) != 0)
    assert missed <= cv_consistency(margin, n_candidates, 1, 3, fold_size, c).value
