"""Forecasts against exact conditional expectations and explicit regressions."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import kdmaps
from commands import run
from experiments.driven import rotating_ou
from kdmaps.checks import muted
from kdmaps.dynamics import forecast
from kdmaps.estimators import forecast as module

STEP, SPEED = 0.1, -5.0


def fit(X, n_components=4, bandwidth=6.0, **options):
    settings = {"kernel": "gaussian", "lag": 1, "reversible": False, "regularization": 1e-4, "random_state": 0}
    with muted():  # of the fit, not of what is tested here
        settings |= {"n_features": 100, "bandwidth": bandwidth, **options}
        return kdmaps.KernelDiffusionMap(n_components, **settings).fit(X)


@pytest.fixture(scope="module")
def spiral():
    return rotating_ou(10_000, seed=0, speed=SPEED, time_step=STEP).X


@pytest.fixture(scope="module")
def model(spiral):
    return fit(spiral, time_step=STEP)


def exact(starts, time):
    z = (np.asarray(starts) @ [1, 1j]) * np.exp((-1 + 1j * SPEED) * time)
    return np.column_stack([z.real, z.imag])


def test_direction_of_time(model, spiral):
    """From (1, 0), e^{-0.1}(cos 0.5, -sin 0.5) = (0.794, -0.434); functions of one end only give (0.965, 0)."""
    got = model.predict_expectation(spiral, spiral, STEP, at=[[1.0, 0.0]])
    # A trajectory of 1000 relaxation times determines the rates to 0.032, and means to √(2/1000) = 0.045.
    assert_allclose(got, [[0.794, -0.434]], atol=0.03)
    assert_allclose(got, exact([[1.0, 0.0]], STEP), atol=0.03)


def test_expectations_errors_and_horizon(model, spiral):
    starts = np.array([[1.0, 0.0], [0.0, -1.5], [-1.0, 1.0]])
    found = forecast(model, spiral, spiral, [0.1, 0.5, 1.0, 4.0], at=starts)
    truth = np.array([exact(starts, time) for time in found.times])
    assert_allclose(found.values, truth, atol=0.1)
    # A jackknife of six blocks has an error of a third; of 24 numbers, nearly all lie within three errors.
    assert np.mean(np.abs(found.values - truth) < 3 * found.errors + 1e-12) > 0.8
    assert (found.errors < 0.1).all()
    # The noise that is left after a time t has the variance 1 - e^{-2t}.
    assert_allclose(
        found.rmse[:3] / found.spread, np.sqrt(1 - np.exp(-2 * found.times[:3]))[:, None] * [1, 1], rtol=0.05
    )
    assert found.skill[0] == pytest.approx(np.exp(-0.2), abs=0.03)
    assert 1 < found.horizon < 6
    assert f"{found.horizon:.4g}" in repr(found)
    again = model.predict_expectation(spiral, spiral, 0.5, at=starts)
    assert_allclose(again, found.values[1])


def test_nonlinear_observable_and_shape(model, spiral):
    """E[|z_t|²] = 2 + e^{-2t}(|z|² - 2)."""
    radius = np.sum(spiral**2, axis=1)
    found = forecast(model, spiral, radius, 0.3, at=[[2.0, 1.0]])
    assert found.values.shape == found.errors.shape == (1, 1)
    assert_allclose(found.values, 2 + np.exp(-0.6) * 3, atol=0.3)


def test_deterministic_system_uses_all_features():
    """A pendulum without noise: modes are few, all features nearly exact."""
    t = 0.1 * np.arange(3000)
    X = np.column_stack([np.sin(t) + 0.3 * np.sin(2.7 * t), np.cos(t) + 0.3 * np.cos(2.7 * t)])
    X = kdmaps.data.delays(X, 3, step=5)
    model = fit(X[:2000], 4, 3.0, regularization=1e-5)
    found = forecast(model, X[:2000], X[:2000, 0], [1, 10], at=X[2000:])
    assert found.methods == ["all features", "all features"]
    assert_allclose(found.values[1, :-10], X[2010:, 0], atol=0.02)
    assert found.horizon == np.inf


def test_held_out_errors_are_honest(spiral):
    """Noise that nothing predicts: skill 0, horizon of one lag, not the skill of the fit."""
    X = np.random.default_rng(0).normal(size=(1500, 2))
    found = forecast(fit(X, 3, 1.0), X, X, [1, 2])
    assert (found.skill < 0.01).all()
    assert found.horizon == 1


def test_few_frames_use_the_modes(model, spiral):
    found = forecast(model, spiral[:40], spiral[:40], STEP, at=[[1.0, 0.0]])
    assert found.methods == ["modes"]
    assert np.isnan(found.errors).all()
    assert np.isfinite(found.values).all()


def test_trajectories_are_not_joined(spiral):
    """Shuffling whole trajectories changes nothing; interleaving them, with groups, neither."""
    parts = np.split(spiral[:6000], 3)
    model = fit(parts, time_step=STEP)
    found = forecast(model, parts, np.concatenate(parts), STEP, at=parts[0][:5])
    groups = np.tile([0, 1, 2], 2000)
    mixed = np.stack(parts, axis=1).reshape(-1, 2)
    again = forecast(model, mixed, mixed, STEP, at=parts[0][:5], groups=groups)
    assert_allclose(again.values, found.values, rtol=1e-6, atol=1e-8)


def test_reversible_model_and_times(model, spiral):
    reversible = fit(spiral, reversible=True, time_step=STEP)
    found = forecast(reversible, spiral, spiral, STEP, at=[[1.0, 0.0]])
    assert_allclose(found.values[0], [[0.794, -0.434]], atol=0.03)
    with pytest.raises(ValueError, match="multiple of the lag"):
        model.predict_expectation(spiral, spiral, 0.15)
    for wrong in (0.0, -0.1, np.nan, [0.2, 0.1], [], "soon"):
        with pytest.raises(ValueError, match="time"):
            forecast(model, spiral, spiral, wrong)
    with pytest.raises(ValueError, match="without a lag"):
        forecast(kdmaps.KernelDiffusionMap(2, random_state=0).fit(spiral[:300]), spiral, spiral, 1.0)


def test_command(model, spiral, tmp_path):
    frame = pd.DataFrame(spiral[:3000], columns=["x", "y"]).assign(r=np.sum(spiral[:3000] ** 2, axis=1))
    frame.to_csv(tmp_path / "data.csv", index=False)
    named = fit(frame[["x", "y"]], time_step=STEP)
    named.save(tmp_path / "model.npz")
    out = tmp_path / "out.csv"
    result = run("forecast", tmp_path / "model.npz", tmp_path / "data.csv", "--time", "0.1,1", "--out", out)
    assert result.exit_code == 0, result.output
    table = pd.read_csv(out)
    assert list(table) == ["time", "row", "x", "x_error", "y", "y_error"]
    expected = forecast(named, frame[["x", "y"]], frame[["x", "y"]], [0.1, 1.0], at=frame[["x", "y"]].iloc[-1:])
    assert_allclose(table[["x", "y"]], expected.values[:, 0], atol=1e-5)
    assert_array_equal(table["row"], 2999)
    assert "skill" in result.stdout
    other = run("forecast", tmp_path / "model.npz", tmp_path / "data.csv", "--values", "r", "--out", out)
    assert other.exit_code == 0, other.output
    assert "r_error" in pd.read_csv(out)
    wrong = run("forecast", tmp_path / "model.npz", tmp_path / "data.csv", "--time", "0.15", "--out", out)
    assert wrong.exit_code == 2
    assert "multiple of the lag" in wrong.output


def test_search_predicts_too(spiral):
    search = kdmaps.KernelSearchCV(2, lag=1, time_step=STEP, reversible=False, n_features=40, bandwidths=[4.0, 8.0])
    search.set_params(families=["gaussian"], regularizations=[1e-4], random_state=0)
    with muted():
        search.fit(spiral[:3000])
    assert_allclose(search.predict_expectation(spiral, spiral, STEP, at=[[1.0, 0.0]]), [[0.794, -0.434]], atol=0.05)


def test_skill_of_constant_and_untested_observables(model, spiral):
    values = np.column_stack([spiral[:, 0], np.ones(len(spiral))])
    both, one = (forecast(model, spiral, some, [STEP], at=spiral[:1]) for some in (values, values[:, :1]))
    assert_allclose(both.skill, one.skill)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        constant = forecast(model, spiral, values[:, 1], [STEP], at=spiral[:1])
        assert np.isnan(constant.skill).all()
    assert constant.horizon == STEP  # the mean is as good at once


class TestRepeatedForecasts:
    """The sums over pairs, the operators and the tests are kept with the model."""

    @pytest.fixture
    def counts(self, monkeypatch):
        """Numbers of factorised covariances, and of blocks on which forecasts were tested."""
        found = {"factors": 0, "tests": 0}

        def counted(name, function):
            def call(*arguments, **options):
                found[name] += 1
                return function(*arguments, **options)

            return call

        monkeypatch.setattr(module.linalg, "cho_factor", counted("factors", module.linalg.cho_factor))
        monkeypatch.setattr(module.Forecaster, "_test", counted("tests", module.Forecaster._test))
        return found

    def test_factors_do_not_depend_on_the_number_of_values(self, spiral, counts):
        X = spiral[:1000]
        seen = []
        for m in (1, 60):
            model = fit(X, n_features=30)
            counts.update(factors=0, tests=0)
            forecast(model, X, np.cos(np.outer(X[:, 0], np.arange(1, m + 1))), 1.0)
            seen.append(dict(counts))
        assert seen[0] == seen[1]
        # Twice for each of six regularizations, for all pairs and for the training pairs of six blocks.
        assert seen[0] == {"factors": 2 * 6 * 7, "tests": 6}

    def test_other_values_need_no_factors_and_other_points_no_tests(self, spiral, counts):
        X = spiral[:1000]
        model = fit(X, n_features=30)
        first = forecast(model, X, X[:, 0], 1.0)
        counts.update(factors=0, tests=0)
        other = forecast(model, X, X[:, 0], 1.0, at=X[:3])
        assert counts == {"factors": 0, "tests": 0}
        assert_allclose(other.values, first.values[:, :3], rtol=1e-10)
        forecast(model, X, X[:, 1], 1.0)
        assert counts == {"factors": 0, "tests": 6}

    def test_other_frames_and_another_fit_start_again(self, spiral, counts):
        X = spiral[:1000]
        model = fit(X, n_features=30)
        forecast(model, X, X[:, 0], 1.0)
        for change in (lambda: spiral[1000:2000], lambda: model.fit(spiral[2000:3000]) and X):
            counts.update(factors=0, tests=0)
            with muted():
                frames = change()
            found = forecast(model, frames, frames[:, 0], 1.0)
            assert counts["factors"] > 0
            module._kept.clear()
            assert_array_equal(found.values, forecast(model, frames, frames[:, 0], 1.0).values)

    def test_many_values_of_low_rank(self, monkeypatch, spiral):
        """A wave at 200 places is a combination of two columns; errors and forecasts are the same without this."""
        X = spiral[:1000]
        phase = np.arctan2(X[:, 1], X[:, 0])[:, None]
        wave = 3 + np.cos(np.linspace(0, 6, 200) + phase)
        model = fit(X, n_features=30)
        found = forecast(model, X, wave, [1.0, 3.0], at=X[:5])
        monkeypatch.setattr(module, "RANKS", ())
        monkeypatch.setattr(module, "_kept", {})
        plain = forecast(model, X, wave, [1.0, 3.0], at=X[:5])
        assert found.methods == plain.methods
        for name in ("values", "errors", "rmse", "spread", "horizon"):
            assert_allclose(getattr(found, name), getattr(plain, name), rtol=1e-6)

    def test_values_of_full_rank_are_not_approximated(self):
        values = np.random.default_rng(0).standard_normal((300, 200))
        columns, mixing = module._factorised(values)
        assert columns is values
        assert mixing is None
        columns, mixing = module._factorised(values[:, :20] @ values[:20])
        assert columns.shape == (300, 32)
        assert_allclose(columns @ mixing, values[:, :20] @ values[:20], atol=1e-11)

    @pytest.mark.parametrize("n_columns", [1, 7, 90])
    @pytest.mark.parametrize("n", [0, 1, 5, 40])
    def test_powers(self, n_columns, n):
        rng = np.random.default_rng(0)
        step = rng.standard_normal((6, 6)) / 3
        columns = rng.standard_normal((6, n_columns))
        assert_allclose(module._advanced(step, columns, n), np.linalg.matrix_power(step, n) @ columns, atol=1e-12)
