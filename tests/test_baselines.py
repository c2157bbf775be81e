"""Classical diffusion maps: exact spectra, self-consistency, and the checks of scikit-learn."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import subspace_angles
from sklearn.utils.estimator_checks import parametrize_with_checks

from kdmaps.baselines import DiffusionMap
from shared import expects


def circle(angle):
    return np.column_stack([np.cos(angle), np.sin(angle)])


def ou_samples(n, seed):
    """Stationary law of dX = -diag(1, 4) X dt + √2 dW: variances 1 and 1/4, rates 1, 2, 3, 4, 4, …"""
    return np.random.default_rng(seed).normal(size=(n, 2)) * [1, 0.5]


def captured(modes, reference):
    """Mean squared cosine of the modes with the span of the reference functions, both centred."""
    angles = subspace_angles(modes - modes.mean(axis=0), reference - reference.mean(axis=0))
    return float(np.mean(np.cos(angles) ** 2))


@parametrize_with_checks([DiffusionMap(n_components=2)])
@pytest.mark.slow
def test_sklearn_checks(estimator, check):
    with warnings.catch_warnings():
        # Some checks fit well-separated blobs or a few points, for which the warnings of DiffusionMap are correct.
        warnings.simplefilter("ignore", UserWarning)
        check(estimator)


def test_bias_of_rates_on_a_regular_circle():
    # Equidistant points: no sampling error. The chord is shorter than the arc, r² ≈ a² - a⁴/12, a relative bias O(σ²).
    X = circle(np.linspace(0, 2 * np.pi, 400, endpoint=False))
    errors = [np.abs(DiffusionMap(bandwidth=s).fit(X).rates_ / [1, 1, 4, 4] - 1).max() for s in (0.2, 0.1, 0.05)]
    assert errors[2] < 0.05**2
    np.testing.assert_allclose([errors[0] / errors[1], errors[1] / errors[2]], 4, rtol=0.05)


@pytest.mark.slow
def test_rates_on_a_random_circle_converge():
    # σ ~ N^(-1/5) balances bias σ² against variance 1/(N σ) of the degrees: the error falls like N^(-2/5), that is to
    # a third from 100 to 1,600 samples.
    def error(n, bandwidth, seed):
        X = circle(np.random.default_rng(seed).uniform(0, 2 * np.pi, n))
        return np.abs(DiffusionMap(bandwidth=bandwidth).fit(X).rates_ / [1, 1, 4, 4] - 1).max()

    coarse = np.mean([error(100, 0.3, seed) for seed in range(5)])
    fine = np.mean([error(1600, 0.3 * 16**-0.2, seed) for seed in range(5)])
    assert fine < 0.1
    assert fine < coarse / 2


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0, 0.5, 1])
def test_ou_rate_at_finite_bandwidth(alpha):
    # For X ~ N(0, s²) the Markov operator of bandwidth σ is itself Gaussian: it takes x to N(x/(1+βσ²), σ²/(1+βσ²))
    # with β = 1/s² - α/(s²+σ²), so its slowest rate is log(1+βσ²)/(σ²/2), which tends to 2(1-α)/s² as σ → 0.
    s2, bandwidth = 1, 0.9
    exact = np.log1p((1 / s2 - alpha / (s2 + bandwidth**2)) * bandwidth**2) / (bandwidth**2 / 2)

    def error(n):
        models = [DiffusionMap(1, bandwidth=bandwidth, alpha=alpha).fit(ou_samples(n, seed)) for seed in range(5)]
        return np.mean([abs(model.rates_[0] / exact - 1) for model in models])

    # The standard error of a sample variance of a Gaussian, √(2/N), is .035 at N=1600 and four times that at N=100.
    fine = error(1600)
    assert fine < 2 * np.sqrt(2 / 1600)
    assert fine < error(100) / 2


@pytest.mark.slow
def test_ou_slow_modes_with_the_automatic_bandwidth():
    # Complete cluster up to the fourth rate: He1 … He4 of x and y. Without the floor under σ this is below 0.6.
    scores = []
    for seed in range(3):
        x, y = (X := ou_samples(500, seed)).T
        reference = np.column_stack([x, x**2, x**3 - 3 * x, x**4 - 6 * x**2, y])
        scores.append(captured(DiffusionMap(random_state=0).fit(X).embedding_, reference))
    assert np.mean(scores) > 0.95


def test_alpha_one_is_independent_of_the_density():
    # Density ∝ exp(cos θ) on the circle; cos θ, sin θ are the slowest modes of its Laplace–Beltrami operator, rate 1.
    angle = np.random.default_rng(0).vonmises(0, 1, size=1000)
    X = circle(angle)
    geometry = DiffusionMap(2, alpha=1, bandwidth=0.25).fit(X)
    graph = DiffusionMap(2, alpha=0, bandwidth=0.25).fit(X)
    assert captured(geometry.embedding_, X) > 0.995
    assert captured(graph.embedding_, X) < 0.95
    np.testing.assert_allclose(geometry.rates_, 1, atol=0.15)


def test_modes_have_mean_zero_unit_variance_and_a_fixed_sign():
    modes = DiffusionMap(alpha=1, bandwidth=0.5).fit(ou_samples(200, 0)).embedding_
    np.testing.assert_allclose(modes.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(modes.std(axis=0), 1, rtol=1e-12)
    np.testing.assert_array_equal(modes.max(axis=0), np.abs(modes).max(axis=0))


# A lattice has many equal distances.
LATTICE = np.stack(np.meshgrid(np.arange(12.0), np.arange(9.0)), axis=-1).reshape(-1, 2)


@pytest.mark.parametrize("X", [ou_samples(200, 0), ou_samples(200, 0) + 1e4, LATTICE], ids=["ou", "far", "lattice"])
@pytest.mark.parametrize("alpha", [0, 0.5, 1])
def test_transform_reproduces_the_training_embedding(X, alpha):
    model = DiffusionMap(bandwidth=0.8, alpha=alpha).fit(X)
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-8)
    np.testing.assert_allclose(model.transform(X[:7]), model.embedding_[:7], atol=1e-8)


def test_transform_interpolates_and_stays_finite_far_away():
    angle = np.linspace(0, 2 * np.pi, 300, endpoint=False)
    model = DiffusionMap(2, bandwidth=0.2).fit(circle(angle))
    between = circle(angle + np.pi / 300)
    assert captured(model.transform(between), between) > 1 - 1e-6
    # More points than training points make several batches. Values do not depend on the other points of a batch.
    far = np.vstack([circle(np.linspace(0, 6, 700)), [[1e3, 0]]])
    values = model.transform(far)
    assert np.isfinite(values).all()
    np.testing.assert_allclose(values[-1], model.transform(far[-1:])[0], rtol=1e-12)


def test_float32_and_data_frames():
    X = ou_samples(100, 0).astype(np.float32)
    model = DiffusionMap(2, bandwidth=0.8)
    assert model.fit_transform(X).dtype == np.float32
    frame = model.set_output(transform="pandas").fit_transform(pd.DataFrame(X, columns=["x", "y"]))
    assert list(frame.columns) == ["diffusionmap0", "diffusionmap1"]


def test_disconnected_samples_give_rate_zero_and_a_warning():
    X = np.vstack([ou_samples(60, 0), ou_samples(60, 1) + 100])
    with expects("disconnected"):
        model = DiffusionMap(2, bandwidth=0.8).fit(X)
    assert model.rates_[0] < 1e-10
    assert model.timescales_[0] > 1e10
    np.testing.assert_allclose(np.abs(model.embedding_[:, 0]), 1, rtol=1e-6)


def test_warns_of_eigenvalues_that_are_zero():
    with expects("zero-eigenvalues"):
        DiffusionMap(20, bandwidth=50).fit(ou_samples(60, 0))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"bandwidth": -1.0}, "bandwidth must be"),
        ({"bandwidth": 0}, "bandwidth must be"),
        ({"bandwidth": np.inf}, "bandwidth must be"),
        ({"bandwidth": "median"}, "bandwidth must be"),
        ({"n_components": 0}, "n_components must be .* 19"),
        ({"n_components": 20}, "n_components must be .* 19"),
        ({"alpha": 1.5}, "alpha must be"),
        ({"alpha": np.nan}, "alpha must be"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        DiffusionMap(**parameters).fit(ou_samples(20, 0))


def test_bad_data_are_named():
    with pytest.raises(ValueError, match="NaN"):
        DiffusionMap().fit([[0.0], [np.nan], [1.0]])
    with pytest.raises(ValueError, match="all samples coincide"):
        DiffusionMap().fit(np.ones((10, 2)))
