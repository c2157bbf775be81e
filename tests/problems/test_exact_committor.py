"""Committors by finite volumes against closed forms."""

import numpy as np
import pytest
from scipy.integrate import quad

from kdmaps.problems.finite_volume import Rectangle


def test_a_product_has_the_committor_of_its_first_factor():
    def V(x):
        return 2 * (x**2 - 1) ** 2

    rectangle = Rectangle(lambda X: V(X[:, 0]) + X[:, 1] ** 2, ((-2.0, 2.0), (-4.0, 4.0)), 80)
    found = rectangle.committor(lambda X: X[:, 0] < -1, lambda X: X[:, 0] > 1, diffusion=0.5)
    total = quad(lambda x: np.exp(V(x)), -1, 1)[0]
    norm = quad(lambda x: np.exp(-V(x)), -2, 2)[0]
    # The sets begin half a cell (h = 1/80) beyond ±1, where V is near 0: the resistance grows by h of 12.
    assert found.flux == pytest.approx(0.5 / (norm * total), rel=3e-3)
    assert found.rate == pytest.approx(found.reverse_rate, rel=1e-9)  # by symmetry
    assert found.rate == pytest.approx(2 * found.flux, rel=1e-9)
    x = np.linspace(-0.9, 0.9, 7)
    exact = [quad(lambda t: np.exp(V(t)), -1, end)[0] / total for end in x]
    np.testing.assert_allclose(found.function(np.column_stack([x, 0.3 + 0 * x])), exact, atol=2e-3)
