"""Modes fitted on some of the samples and evaluated on the others."""

import numpy as np
from numpy.testing import assert_allclose

from kdmaps.forms.moments import Moments
from kdmaps.selection.cross_fit import cross_fit


def moments_of(x):
    """Sums of the only feature x, with |∇x|² = 1."""
    n = len(x)
    return Moments(n, n, n, total=np.array([x.sum()]), gram=np.array([[x @ x]]), energy=np.array([[float(n)]]))


def test_blocks_of_a_trajectory_have_the_variance_of_all_samples():
    # Blocks at -1 and 1 in turn: x has the variance 1.01, but 0.01 about the mean of its block.
    x = np.repeat([-1.0, 1.0, -1.0, 1.0], 50) + 0.1 * np.random.default_rng(0).standard_normal(200)
    block = np.arange(200) // 50
    folds = [(moments_of(x[block != b]), moments_of(x[block == b])) for b in range(4)]
    quotient = cross_fit(moments_of(x), folds, None, 1, [0.0])[0].held_out_quotients()
    # Folds scale x by slightly different standard deviations of their training samples, hence 1 %.
    assert_allclose(quotient, 1 / x.var(), rtol=0.01)
