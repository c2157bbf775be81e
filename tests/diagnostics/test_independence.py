"""Independent modes of systems whose coordinates are known."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import kdmaps
from kdmaps.diagnostics import independence as module
from kdmaps.summary import describe_independence

RNG = np.random.default_rng(0)
x, y = RNG.uniform(0, np.pi, (2, 1000))
#: Modes of a strip that is about four times as long as wide, in the order of their rates.
STRIP = np.column_stack([np.cos(x), np.cos(2 * x), np.cos(3 * x), np.cos(y), np.cos(x) * np.cos(y), np.cos(4 * x)])


def test_strip():
    found = kdmaps.independent_modes(STRIP)
    assert_array_equal(found.indices, [0, 3])
    assert_array_equal(found.independent, [True, False, False, True, False, False])
    # cos(y) is independent of x: its residual is 1, plus the error of the fit.
    assert found.residuals[3] == pytest.approx(1, abs=0.03)
    # The error of a line in a window of 1/24 of the median distance or more: largest for cos(4x), of degree four.
    assert (found.residuals[[1, 2, 4, 5]] < 0.1).all()
    assert found.residuals[0] == 1


def test_circle_has_two_independent_modes():
    """sin θ is not a function of cos θ."""
    found = kdmaps.independent_modes(np.column_stack([f(k * 2 * x) for k in (1, 2) for f in (np.cos, np.sin)]))
    assert_array_equal(found.indices, [0, 1])
    assert found.residuals[1] == pytest.approx(1, abs=0.03)


def test_prediction_against_explicit_least_squares(monkeypatch):
    """One weighted least-squares problem per sample, without that sample; the best width counts."""
    monkeypatch.setattr(module, "SHRINKAGE", 0.0)
    n = 60
    weight = RNG.uniform(0.5, 1.5, n)
    modes = np.column_stack([STRIP[:n, [0, 3]], STRIP[:n, 4] + 0.1 * RNG.normal(size=n)])
    weight_ = weight / weight.sum()
    modes = modes - weight_ @ modes
    modes /= np.sqrt(weight_ @ modes**2)
    known, wanted = modes[:, :2], modes[:, 2]
    distances = np.linalg.norm(known[:, None] - known, axis=2)
    median = np.median(distances[np.triu_indices(n, 1)])
    errors = []
    for width in module.WIDTHS[:2]:  # in narrower ones too few samples have a weight for three unknowns
        predicted = np.empty(n)
        for i in range(n):
            others = np.arange(n) != i
            root = np.sqrt(np.exp(-((distances[i] / (width * median)) ** 2)) * weight)[others]
            A = np.column_stack([np.ones(n - 1), (known - known[i])[others]])
            predicted[i] = np.linalg.lstsq(A * root[:, None], wanted[others] * root, rcond=None)[0][0]
        errors.append(np.sqrt(weight_ @ (wanted - predicted) ** 2))
    monkeypatch.setattr(module, "WIDTHS", module.WIDTHS[:2])
    found = kdmaps.independent_modes(modes, sample_weight=weight, threshold=0.01)
    assert found.residuals[2] == pytest.approx(min(errors), rel=1e-6)  # conditioning of the local problems


def test_noise_is_independent_of_many_modes():
    """Without leaving samples out of their own prediction, noise would look like a function of earlier modes."""
    noise = RNG.normal(size=(400, 4))
    found = kdmaps.independent_modes(noise)
    assert found.independent.all()
    # Random errors of the prediction add to those of the mode: about 1 + 1/(2 · effective neighbours).
    assert_allclose(found.residuals[1:], 1.04, atol=0.08)
    assert "Every mode is a new coordinate" in describe_independence(found)


def test_invariance_to_units_signs_and_zero_weights():
    known = kdmaps.independent_modes(STRIP[:400])
    scaled = kdmaps.independent_modes(STRIP[:400] * [1, -2, 1e6, 1e-6, -1, 3] + 7)
    assert_allclose(scaled.residuals, known.residuals, rtol=1e-6)
    weight = np.r_[np.full(400, 5.0), np.zeros(100)]
    masked = kdmaps.independent_modes(np.vstack([STRIP[:400], RNG.normal(size=(100, 6))]), sample_weight=weight)
    assert_allclose(masked.residuals, known.residuals, rtol=1e-10)


def test_subsample_gives_similar_residuals():
    all_of_them = kdmaps.independent_modes(STRIP)
    some = kdmaps.independent_modes(STRIP, max_samples=300, random_state=1)
    assert (all_of_them.n_samples, some.n_samples) == (1000, 300)
    assert_array_equal(some.indices, all_of_them.indices)
    again = kdmaps.independent_modes(STRIP, max_samples=300, random_state=1)
    assert_array_equal(some.residuals, again.residuals)


def test_outlier_is_predicted_by_its_neighbour():
    """All kernel weights of an outlier underflow without rescaling."""
    modes = np.vstack([STRIP[:200], [[1e4, 2e4, 0, 0, 0, 0]]])
    assert np.isfinite(kdmaps.independent_modes(modes).residuals).all()


def test_description():
    text = describe_independence(kdmaps.independent_modes(STRIP[:300]))
    assert "Modes 1, 4 are new" in text
    assert "2 (0.0" in text
    assert "Mode 1 is the only" in describe_independence(kdmaps.independent_modes(STRIP[:300, :2]))


@pytest.mark.parametrize(
    ("modes", "options", "message"),
    [
        (STRIP[:, 0], {}, r"modes must have shape \(n_samples, r\)"),
        (STRIP[:, :0], {}, r"r ≥ 1"),
        (np.where(STRIP > 0.99, np.nan, STRIP), {}, "modes contains NaN"),
        (np.column_stack([STRIP[:, 0], np.ones(1000)]), {}, r"Mode 2 \(column of modes\) is constant"),
        (STRIP[:19], {}, "at least 20 samples"),
        (STRIP, {"threshold": 1.0}, "threshold must be a number between 0 and 1, got 1.0"),
        (STRIP, {"threshold": "half"}, "threshold must be"),
        (STRIP, {"max_samples": 5}, "max_samples must be an integer of at least 20, got 5"),
        (STRIP, {"sample_weight": -np.ones(1000)}, "sample_weight"),
        (STRIP, {"sample_weight": np.ones(3)}, "sample_weight"),
    ],
)
def test_rejects_bad_input(modes, options, message):
    with pytest.raises(ValueError, match=message):
        kdmaps.independent_modes(modes, **options)
