"""Koopman spectra and forecasts of fitted models of deterministic systems, as their user sees them."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oscillators import STEP, first_tutorial, rotating_noise, tones

import kdmaps
from kdmaps.exceptions import ArgumentError, NotApplicable, UnreliableModesWarning
from kdmaps.propagation.choice import Law


def fit(X, n_components=4, time_step=STEP, **options):
    settings = {"lag": 1, "time_step": time_step, "reversible": False, "random_state": 0}
    return kdmaps.AdaptiveDiffusionMap(n_components, **settings, **options).fit(X)


@pytest.fixture(scope="module")
def frames():
    return tones(600, decays=(0.1, 0.2))


@pytest.fixture(scope="module")
def model(frames):
    return fit(frames[:500])


@pytest.fixture(scope="module")
def spectrum(model, frames):
    return kdmaps.dynamics.koopman(model, frames[:500])


@pytest.mark.parametrize("n_delays", [2, 4, 10])
@pytest.mark.parametrize("noise", [0.0, 1e-3, 0.2])
def test_first_tutorial_of_pydmd(n_delays, noise):
    """Without noise to rounding; the largest error of the frequencies is noise/100 for 1e-3, and 2 % for 0.2."""
    X, step = first_tutorial(n_delays, noise)
    with warnings.catch_warnings(action="ignore"):  # some checks fail with few noisy frames
        k = kdmaps.dynamics.koopman(fit(X, time_step=step))
    assert_allclose(np.sort(k.rates.imag), [-2.8, -2.3, 2.3, 2.8], atol={0.0: 1e-9, 1e-3: 2e-3, 0.2: 0.06}[noise])


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_standing_waves_without_delays_are_flagged(noise):
    """Two standing waves are no function of the present frame: their rates cannot be found, and this is said."""
    X, step = first_tutorial(1, noise)
    with warnings.catch_warnings(action="ignore"):
        k = kdmaps.dynamics.koopman(fit(X, time_step=step), X)
    wrong = np.abs(np.abs(k.rates.imag) - 2.3) + np.abs(np.abs(k.rates.imag) - 2.8) > 0.6
    assert not np.any(k.trust.ok & wrong)


def test_spectrum(spectrum):
    assert_allclose(spectrum.rates, [-0.1 + 2j, -0.1 - 2j, -0.2 + 5j, -0.2 - 5j], atol=1e-9)
    assert spectrum.trust.ok.all()
    assert spectrum.shares[0] > spectrum.shares[2] > 5e-3
    assert spectrum.products == ["", "", "", ""]
    low, high = spectrum.intervals.T
    assert np.all(low.imag <= spectrum.rates.imag) & np.all(spectrum.rates.imag <= high.imag)
    assert "share" in repr(spectrum)
    assert {"share", "product", "growth", "others"} <= set(spectrum.table()[0])


def test_eigenfunctions(spectrum, frames):
    psi = spectrum.eigenfunctions(frames)
    assert_allclose(psi[1:], psi[:-1] * spectrum.eigenvalues, atol=1e-8)
    assert_allclose(spectrum.eigenfunctions([frames[:3], frames[3:5]])[1], psi[3:5], rtol=1e-12)


def test_modes_explain_the_frames(spectrum, frames):
    modes = spectrum.modes(frames[:500])
    assert_allclose(modes, spectrum.dynamic_modes, atol=1e-6)
    assert_allclose(spectrum.projection(frames[:500]), frames[:500], atol=1e-7)
    times = STEP * np.array([0.0, 1.0, 40.0])
    assert_allclose(spectrum.reconstruct(times, frames[:9]), [frames[k : k + 9] for k in (0, 1, 40)], atol=1e-7)
    assert_allclose(spectrum.reconstruct(STEP, frames[:9]), frames[1:10], atol=1e-7)


def test_left_eigenfunctions_are_biorthogonal(spectrum, frames):
    psi, xi = spectrum.eigenfunctions(frames[:500]), spectrum.left_eigenfunctions(frames[:500])
    centred = psi[:499] - psi[:499].mean(axis=0)
    assert_allclose(xi[:499].conj().T @ centred / 499, np.eye(4), atol=1e-6)


def test_predict(model, frames):
    assert_allclose(model.predict(frames[500:510]), frames[501:511], atol=1e-9)
    several, errors = model.predict(frames[500:510], [1, 30], return_std=True)
    assert_allclose(several[1], frames[530:540], atol=1e-9)
    assert errors.shape == (2, 4)
    assert errors.max() < 1e-8
    assert_allclose(model.predict(frames[500:510], time=30 * STEP), several[1], rtol=1e-12)
    halves = model.predict(frames[500:510], time=[0.5 * STEP, STEP])
    assert_allclose(model.predict(halves[0], time=0.5 * STEP), halves[1], atol=1e-7)
    assert_allclose(model.predict(frames[500:510], 0), frames[500:510], atol=1e-12)


def test_saved_models_forecast(model, frames, tmp_path):
    model.save(tmp_path / "model.npz")
    loaded = kdmaps.load(tmp_path / "model.npz")
    for options in ({"steps": [1, 20], "return_std": True}, {"time": 0.7}):
        for one, other in zip(model.predict(frames[:5], **options), loaded.predict(frames[:5], **options), strict=True):
            np.testing.assert_array_equal(one, other)
    expected, found = (kdmaps.dynamics.koopman(one) for one in (model, loaded))
    np.testing.assert_array_equal(expected.rates, found.rates)
    np.testing.assert_array_equal(expected.trust.others, found.trust.others)


@pytest.mark.parametrize("options", [{"steps": -1}, {"steps": 1.5}, {"time": [[1.0]]}, {"time": np.nan}, {"steps": []}])
def test_bad_times(model, frames, options):
    with pytest.raises(ArgumentError, match="steps" if "steps" in options else "time"):
        model.predict(frames[:2], **options)


def test_bad_frames(model):
    with pytest.raises(ValueError, match="NaN"):
        model.predict(np.full((2, 4), np.nan))
    with pytest.raises(ValueError, match="features"):
        model.predict(np.zeros((2, 3)))


def test_models_without_forecasts_say_why(frames):
    reversible = kdmaps.KernelDiffusionMap(1, lag=1, regularization=1e-3, n_features=20, random_state=0)
    with warnings.catch_warnings(action="ignore"):
        reversible.fit(frames)
    with pytest.raises(AttributeError) as error:
        reversible.predict(frames)
    assert "reversible=False" in str(error.value.__cause__)


def test_a_spectrum_of_noisy_dynamics_is_that_of_the_kernel():
    """The path of stochastic systems: no shares, and predict is what `forecast` finds, but without the frames."""
    X = rotating_noise(1500, seed=1)
    search = kdmaps.KernelSearchCV(families=["gaussian"])
    with warnings.catch_warnings(action="ignore"):
        m = fit(X, 2, 0.1, search=search, metric_rounds=0, n_features=60)
        k = kdmaps.dynamics.koopman(m)
    assert m.propagator_.law is Law.STOCHASTIC
    assert k.shares is None
    with pytest.raises(NotApplicable):
        k.reconstruct(0.1, X[:2])
    later = kdmaps.dynamics.forecast(m, X, X, [0.1, 0.5], at=X[:200])
    values, errors = m.predict(X[:200], [1, 5], return_std=True)
    assert_allclose(values, later.values, atol=0.1)
    assert_allclose(errors, later.rmse, rtol=0.1)


def test_fewer_eigenfunctions_are_said():
    t = np.arange(200)
    m = fit(np.column_stack([np.cos(0.3 * t), np.sin(0.3 * t)]), 4, 1.0)
    with pytest.warns(UnreliableModesWarning) as caught:
        k = kdmaps.dynamics.koopman(m)
    assert [warning.message.check.code for warning in caught] == ["fewer-modes"]
    assert_allclose(k.rates, [0.3j, -0.3j], atol=1e-12)
