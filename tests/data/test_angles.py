"""Angles as points on a circle."""

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import eigh

import kdmaps
from kdmaps.data import angles, as_source, gather
from shared import expects, known

X = np.random.default_rng(0).uniform(-3, 3, (50, 3))
EXPECTED = np.column_stack([X[:, 0], np.cos(X[:, 1]), np.sin(X[:, 1]), X[:, 2]])


def test_arrays_frames_and_sources():
    np.testing.assert_array_equal(angles(X, [1]), EXPECTED)
    assert angles(X).shape == (50, 6)
    frame = pd.DataFrame(X, columns=["x", "phi", "y"], index=np.arange(50) * 2)
    made = angles(frame, ["phi"])
    assert [*made.columns] == ["x", "cos(phi)", "sin(phi)", "y"]
    assert [*made.index] == [*frame.index]
    np.testing.assert_array_equal(made, EXPECTED)
    source = as_source(X)
    source.feature_names = ["x", "phi", "y"]
    again = angles(source, ["phi"])
    assert again.feature_names == [*made.columns]
    np.testing.assert_array_equal(gather(again), EXPECTED)
    np.testing.assert_allclose(angles(np.degrees(X[:, [1]]), degrees=True), EXPECTED[:, 1:3], atol=1e-15)


def test_unknown_columns():
    with pytest.raises(ValueError, match=r"column 'psi'.* named x, phi, y"):
        angles(pd.DataFrame(X, columns=["x", "phi", "y"]), ["psi"])
    with pytest.raises(ValueError, match="numbered 0 to 2"):
        angles(X, [3])


def circle_rate(kappa, n=400):
    """The slowest rate of dφ = -V' dt + √2 dW on the circle with V = -κ cos(φ-π), by finite volumes."""
    h = 2 * np.pi / n
    pi = np.exp(kappa * np.cos(h * np.arange(n) - np.pi))
    between = np.exp(kappa * np.cos(h * (np.arange(n) + 0.5) - np.pi)) / h**2
    L = np.diag(between + np.roll(between, 1))
    for i in range(n):
        L[i, (i + 1) % n] -= between[i]
        L[(i + 1) % n, i] -= between[i]
    return eigh(L, np.diag(pi), eigvals_only=True)[1]


@known("mismatch")
def test_well_at_the_ends_of_a_turn_has_the_rates_of_the_circle():
    phi = np.random.default_rng(0).vonmises(np.pi, 1.5, (4000, 1))
    exact = circle_rate(1.5)
    settings = {"regularization": 1e-3, "random_state": 0}
    right = kdmaps.KernelDiffusionMap(2, **settings).fit(angles(phi))
    np.testing.assert_allclose(right.rates_[0], exact, rtol=0.1)  # 4,000 samples: a few per cent, and the bias of λ
    with expects("angles"):
        wrong = kdmaps.KernelDiffusionMap(1, **settings).fit(phi)
    assert wrong.rates_[0] < exact / 10
