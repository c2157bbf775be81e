"""Koopman spectra against closed forms: transition counts, rotating Ornstein–Uhlenbeck processes, a limit cycle."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

import kdmaps
from commands import run
from experiments.driven import noisy_logistic, rotating_ou, stuart_landau, van_der_pol
from kdmaps.checks import muted
from kdmaps.dynamics import koopman
from kdmaps.plotting import plot_koopman, plot_phases
from shared import expects


def fit(X, n_components=2, bandwidth=6.0, **options):
    settings = {"kernel": "gaussian", "lag": 1, "reversible": False, "regularization": 1e-4, "random_state": 0}
    settings |= {"n_features": 120, **options}
    with muted():  # of the fit, not of what is tested here
        return kdmaps.KernelDiffusionMap(n_components, bandwidth=bandwidth, **settings).fit(X)


@pytest.fixture(scope="module")
def spiral():
    """Rates -1±2i, -2±4i, -2."""
    return rotating_ou(10_000, seed=3)


@pytest.fixture(scope="module")
def model(spiral):
    return fit(spiral.X, 5, time_step=spiral.time_step)


@pytest.fixture(scope="module")
def found(model, spiral):
    return koopman(model, spiral.X)


class TestChain:
    """On four points, three functions and the constant span all functions: λ must be those of the counts."""

    states = np.random.default_rng(0).choice([0, 0, 0, 0, 0, 0, 1, 1, 1, 3], size=4000).cumsum() % 4
    points = np.array([[0.0, 0.0], [1.0, 0.2], [1.3, 1.1], [-0.2, 0.9]])

    @staticmethod
    def counted(pairs, weight=None):
        counts = np.zeros((4, 4))
        np.add.at(counts, tuple(pairs), 1 if weight is None else weight)
        return counts / counts.sum(axis=1, keepdims=True)

    def exact(self, matrix):
        values = np.linalg.eigvals(matrix)
        return np.sort_complex(values[np.argsort(-np.abs(values))][1:])

    def test_eigenvalues(self):
        model = fit(self.points[self.states], 3, 1.0, n_features=20, time_step=0.5)
        k = koopman(model)
        P = self.counted((self.states[:-1], self.states[1:]))
        # Frames at both ends differ by one; the Koopman operator of their sums has the eigenvalues of P to rounding.
        assert_allclose(np.sort_complex(k.eigenvalues), self.exact(P), atol=1e-8)
        assert_allclose(k.rates, np.log(k.eigenvalues) / 0.5)
        assert k.eigenvalues[0].imag > 0
        assert_allclose(k.eigenvalues[1], k.eigenvalues[0].conj(), rtol=1e-9)
        assert k.intervals is None

    def test_eigenfunctions_at_both_ends(self):
        model = fit(self.points[self.states], 3, 1.0, n_features=20)
        k, P = koopman(model), self.counted((self.states[:-1], self.states[1:]))
        psi, xi = k.eigenfunctions(self.points), k.left_eigenfunctions(self.points)
        # Kψ = λψ up to a constant, because the means of first and second frames differ by O(1/n).
        difference = P @ psi - psi * k.eigenvalues
        assert_allclose(difference - difference.mean(axis=0), 0, atol=1e-8)
        assert np.abs(difference).max() < 3 / len(self.states)
        second = np.bincount(self.states[1:], minlength=4) / (len(self.states) - 1)
        assert_allclose((xi.conj() * second[:, None]).T @ psi, np.eye(3), atol=1e-8)
        first = np.bincount(self.states[:-1], minlength=4) / (len(self.states) - 1)
        assert_allclose(first @ np.abs(psi) ** 2, 1, rtol=1e-8)

    def test_weights_and_groups(self):
        weight, groups = np.random.default_rng(1).random(4000), np.repeat([0, 1], 2000)
        settings = {"kernel": "gaussian", "bandwidth": 1.0, "lag": 1, "reversible": False, "n_features": 20}
        model = kdmaps.KernelDiffusionMap(3, regularization=1e-6, random_state=0, **settings)
        with muted():
            model.fit(self.points[self.states], sample_weight=weight, groups=groups)
        starts = np.delete(np.arange(3999), 1999)
        P = self.counted((self.states[starts], self.states[starts + 1]), weight[starts])
        assert_allclose(np.sort_complex(koopman(model).eigenvalues), self.exact(P), atol=1e-7)


@pytest.mark.parametrize("speed", [0.5, 2.0, 5.0])
def test_rotating_ou(speed):
    system = rotating_ou(10_000, seed=1, speed=speed)
    k = koopman(fit(system.X, 5, time_step=system.time_step))
    # The information about either part of the first rate in a time T is T: a standard error of √(1/1000) = 0.032.
    assert_allclose(k.rates[0], -1 + 1j * speed, atol=4 * 0.032)
    second = k.rates[np.argmin(np.abs(k.rates - (-2 + 2j * speed)))]
    assert_allclose(second, -2 + 2j * speed, atol=0.4)
    assert_allclose(k.periods[0], 2 * np.pi / k.rates[0].imag)


def test_limit_cycle():
    system = stuart_landau(10_000, seed=0)
    k = koopman(fit(system.X, 4, 0.7, time_step=system.time_step))
    # In a time of 1000, phases diffuse with D = 0.062: a standard error of the frequency of √(2D/1000) = 0.011.
    assert_allclose(k.rates[::2].imag, system.rates[:2].imag, atol=0.06)
    assert_allclose(k.rates[::2].real, system.rates[:2].real, rtol=0.15)


def test_modes_of_observables_predict(found, spiral):
    """E[x_{t+k}] = e^{-k dt} R(2k dt) x_t: modes of the coordinates, times powers of λ."""
    starts = np.array([[1.0, 0.0], [0.0, -1.5]])
    k = 3
    expected = found.eigenfunctions(starts) @ (found.eigenvalues[:, None] ** k * found.modes(spiral.X))
    z = (starts @ [1, 1j]) * np.exp(k * spiral.time_step * (-1 + 2j))
    # Rates are known to 0.03, times 0.3 in time; means to √(2/1000) = 0.045.
    assert_allclose(expected.real + spiral.X.mean(axis=0), np.column_stack([z.real, z.imag]), atol=0.15)
    assert np.abs(expected.imag).max() < 1e-10
    explained = found.projection(spiral.X)
    assert np.var(explained - spiral.X) < 0.01 * np.var(spiral.X)
    assert_allclose(found.modes(spiral.X[:, 0]), found.modes(spiral.X[:, 0], spiral.X), rtol=1e-8)


def test_intervals_and_trust(found):
    low, high = found.intervals[0]
    # Standard errors of 0.032 for both parts: intervals of about ±0.063.
    assert 0.06 < high.real - low.real < 0.25
    assert 0.06 < high.imag - low.imag < 0.25
    assert found.trust.ok.all()
    assert repr(found.trust).startswith(f"{len(found.trust.ok)} of {len(found.trust.ok)} eigenfunctions pass")
    assert "⚠" not in found.trust._repr_html_()
    assert (found.trust.agreement[:2] > 0.95).all()
    assert_allclose(found.trust.held_out[0], found.eigenvalues[0], atol=0.02)
    assert found.samples.shape == (200, 5)
    row = found.table()[0]
    assert row["ok"] is True
    # The interval of the period is the interval of the frequency, turned round.
    assert_allclose([row["period_low"], row["period_high"]], 2 * np.pi / np.array([high.imag, low.imag]))
    assert f"Oscillation with period {row['period']:.4g} ({row['period_low']:.3g}" in found.slowest()
    assert f"{row['period']:.4g} ns (" in found.slowest("ns")
    assert f"{row['period']:.4g}" in repr(found)


def test_white_noise_is_doubtful():
    X = np.random.default_rng(0).normal(size=(2000, 3))
    with expects("koopman-unstable"):
        k = koopman(fit(X, 3, 1.0), X, n_resamples=20)
    assert not k.trust.ok.any()


def test_folds_of_a_search_certify_eigenfunctions(spiral, tmp_path):
    """The first pair of a rotating process; white noise has no eigenfunctions. Neither needs the frames again."""
    search = kdmaps.KernelSearchCV(2, lag=1, reversible=False, n_features=60, bandwidths=[4.0, 8.0], random_state=0)
    noise = np.random.default_rng(0).normal(size=(2000, 3))
    with muted():
        good, poor = (clone(search).fit(X) for X in (spiral.X[:4000], noise))
    assert (good.trust_.eigenfunctions > 0.95).all()
    assert "agreement of folds" in repr(good.trust_)
    # The same test at the frames themselves, in other blocks, whose means and errors differ by O(1/√4000).
    assert_allclose(good.trust_.overfit, koopman(good, spiral.X[:4000]).trust.overfit, atol=0.01)
    assert (poor.trust_.overfit > 0.1).all()
    koopman(good)  # no warning
    poor.save(tmp_path / "model.npz")
    for model in (poor, kdmaps.load(tmp_path / "model.npz")):
        with expects("koopman-unstable"):
            koopman(model)


@pytest.fixture(scope="module")
def van_der_pol_path():
    return van_der_pol(5_000, seed=7)


#: Decay rates of the first pair and of its second harmonic: means of fits to five trajectories of 20,000 frames (seeds
#: 200 to 204) at a lag of ten frames, with standard errors of 0.0002 and 0.0008.
DECAY = np.array([0.0151, 0.0602])


def test_short_lag(van_der_pol_path):
    """After 0.1 every smooth function is predictable: the leading singular functions contain no oscillation."""
    model = fit(van_der_pol_path, 4, 0.7, regularization=1e-9, n_features=200, time_step=0.1)
    k = koopman(model, van_der_pol_path, n_resamples=20)
    turns = np.unwrap(np.angle(van_der_pol_path @ [1, -1j]))
    frequency = (turns[-1] - turns[0]) / (0.1 * 4_999)  # 0.93
    # The angle differs from the phase by less than 1 at both ends of 500 time units: 0.004 in the frequency.
    assert_allclose(k.rates[::2].imag, [frequency, 2 * frequency], atol=0.01)
    # 500 time units are 7.5 and 30 decay times.
    assert_allclose(-k.rates[::2].real, DECAY, rtol=0.5)
    assert k.trust.ok.all()


def test_wrong_pair_is_doubtful(van_der_pol_path):
    """With a few polynomials (a wide kernel), decay rates are three times too large, which one lag does not show."""
    model = fit(van_der_pol_path, 4, 100.0, regularization=1e-4, n_features=200, time_step=0.1)
    with expects("koopman-open"):
        k = koopman(model, van_der_pol_path, n_resamples=20)
    assert -k.rates[0].real > 2 * DECAY[0]
    assert (k.trust.overfit < 0.01).all()
    assert (k.trust.agreement > 0.95).all()
    assert not k.trust.ok.any()


@pytest.mark.parametrize(("bandwidth", "right"), [(0.3, True), (30.0, False)])
def test_decay_of_a_limit_cycle(bandwidth, right):
    """Polynomials reproduce frequencies, and decay rates 1.5 times too large, which 0.25 as a limit would allow."""
    system = stuart_landau(10_000, seed=50)
    options = {"regularization": 1e-6, "n_features": 150, "time_step": system.time_step}
    with muted():
        k = koopman(fit(system.X, 6, bandwidth, **options), system.X, n_resamples=20)
    found = np.argmin(np.abs(k.rates[:, None] - system.rates[:3]), axis=0)
    ratio = k.rates[found].real / system.rates[:3].real
    # 62, 239 and 518 decay times determine the rates to 13, 6 and 4 %.
    assert_allclose(ratio, 1 if right else 1.5, atol=0.25 if right else 0.2)
    assert (k.trust.residuals[found] < 0.25).all()
    assert (k.trust.ok[found] == right).all()


def test_rounding_of_smooth_features():
    """A wide kernel with almost no regularization: the covariance of the features is not positive definite."""
    angles = 0.7 * np.arange(500)
    X = np.column_stack([np.cos(angles), np.sin(angles)])
    k = koopman(fit(X, 2, 30.0, regularization=1e-30, n_features=200))
    assert_allclose(k.eigenvalues, np.exp([0.7j, -0.7j]), atol=1e-6)


def test_few_modes_of_a_non_normal_operator():
    """Four singular functions of the logistic map span no eigenfunction; all features do."""
    system = noisy_logistic(10_000, seed=0)
    k = koopman(fit(system.X, 4, 0.3))
    # Eigenvalues of magnitude 0.27 under singular values up to 0.92 have errors of about 0.1 (also in Ulam's method).
    nearest = np.abs(k.eigenvalues - np.exp(system.rates[0])).min()
    assert nearest < 0.15


def test_cut_pair_is_completed(van_der_pol_path):
    k = koopman(fit(van_der_pol_path, 3, 0.7, regularization=1e-9, n_features=100, time_step=0.1))
    assert len(k.rates) == 4
    assert_allclose(k.rates[3], k.rates[2].conj(), rtol=1e-9)


def test_lists_and_files(model, spiral, found, tmp_path):
    halves = [spiral.X[:5000], spiral.X[5000:]]
    one, other = found.eigenfunctions(halves)
    assert_allclose(np.concatenate([one, other]), found.eigenfunctions(spiral.X))
    koopman(model, halves, n_resamples=20)
    model.save(tmp_path / "model.npz")
    again = koopman(kdmaps.load(tmp_path / "model.npz"))
    assert_allclose(again.eigenvalues, found.eigenvalues, rtol=1e-12)
    assert_allclose(again.eigenfunctions(spiral.X[:5]), found.eigenfunctions(spiral.X[:5]), rtol=1e-12)


def test_search_and_dask(spiral, model):
    da = pytest.importorskip("dask.array")
    X = da.from_array(spiral.X, chunks=(2500, 2))
    lazy = fit(X, 5, time_step=spiral.time_step, landmarks=model.landmarks)
    k = koopman(lazy, X, n_resamples=20)
    assert_allclose(k.rates[0], -1 + 2j, atol=0.15)
    assert k.trust.ok[0]


def test_errors(spiral, model):
    with pytest.raises(ValueError, match="reversible=False"):
        koopman(fit(spiral.X, reversible=True))
    with pytest.raises(ValueError, match="without a lag"):
        koopman(kdmaps.KernelDiffusionMap(2, random_state=0).fit(spiral.X[:500]))
    for short in (spiral.X[:3], np.ones((100, 2))):
        with pytest.raises(ValueError, match="does not determine the eigenfunctions"), muted():
            koopman(model, short)
    with pytest.raises(ValueError, match="Give X"):
        koopman(model).modes(spiral.X)
    with pytest.raises(ValueError, match="values"):
        koopman(model).modes(spiral.X[:7], spiral.X)


def test_command_and_report(spiral, tmp_path):
    pd.DataFrame(spiral.X[:2000], columns=["x", "y"]).to_csv(tmp_path / "data.csv", index=False)
    options = ("--kernel", "gaussian", "--bandwidth", 6, "--lambda", 1e-4, "--features", 60, "--modes", 2)
    time = ("--lag", 1, "--time-step", 0.1, "--no-reversible", "--resamples", 40)
    result = run("fit", tmp_path / "data.csv", *options, *time, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "Oscillation with period" in result.stdout
    page = (tmp_path / "out" / "report.html").read_text()
    k = koopman(kdmaps.load(tmp_path / "out" / "model.npz"))
    assert f"{k.periods[0]:.4g}" in page
    assert "Oscillation with period" in page
    assert "Phase of eigenfunction 1" in page
    wrong = run("fit", tmp_path / "data.csv", "--no-reversible")
    assert wrong.exit_code == 2
    assert "--lag" in wrong.output


def test_figures(found, spiral):
    ax = plot_koopman(found, exact=np.exp(0.1 * spiral.rates))
    offsets = [tuple(part.get_offsets().data[0]) for part in ax.collections]
    assert (found.eigenvalues[0].real, found.eigenvalues[0].imag) in offsets
    axes = plot_phases(found, spiral.X[:300])
    assert len(axes) == 2
    assert_allclose(axes[0].collections[0].get_array(), np.angle(found.eigenfunctions(spiral.X[:300])[:, 0]))
    with pytest.raises(ValueError, match="mode"):
        plot_phases(found, spiral.X[:300], axes=axes[:1])


class TestPseudospectrum:
    """A unitary operator has the residual dist(λ, spectrum) at every λ, a contraction has eigenvalues inside."""

    def test_rotation(self):
        angles = np.sqrt(2) * np.arange(2000)
        X = np.column_stack([np.cos(angles), np.sin(angles)])
        with muted():  # a phase is correlated for ever
            k = koopman(fit(X, 4, 1.5, n_features=60, regularization=1e-8), X, n_resamples=20)
        values = np.exp(np.sqrt(2) * 1j * np.array([1, -1, 2]))
        assert k.pseudospectrum(values).max() < 1e-3
        # The spectrum is dense on the circle: the distance is 1 - |λ|, also on held-out frames.
        inside = k.pseudospectrum(np.outer([0.0, 0.5, 0.9], values))
        assert_allclose(inside, np.tile([[1.0], [0.5], [0.1]], 3), atol=2e-3)

    def test_linear_map(self):
        """x → Ax with the eigenvalues 0.9e^{±i} and their products."""
        rng, turn = np.random.default_rng(0), 0.9 * np.array([[np.cos(1), -np.sin(1)], [np.sin(1), np.cos(1)]])
        first = rng.normal(size=(2000, 2))
        X, groups = np.vstack([first, first @ turn.T]), np.tile(np.arange(2000), 2)
        settings = {"kernel": "gaussian", "bandwidth": 4.0, "n_features": 120, "regularization": 1e-8}
        model = kdmaps.KernelDiffusionMap(2, lag=1, reversible=False, random_state=0, **settings)
        with muted():
            k = koopman(model.fit(X, groups=groups), X, groups=groups, n_resamples=20)
        assert k.trust is None  # no three frames in a row
        assert k.pseudospectrum([0.9 * np.exp(1j), 0.81 * np.exp(2j), 0.81]).max() < 1e-3
        # The density of Ax is at most 1/0.81 of the density of x: E|g(Ax)|² ≤ E|g(x)|²/0.81, up to sampling errors.
        assert k.pseudospectrum(3.0) > 3 - 1 / 0.9 - 0.1

    def test_noisy_systems_are_refused(self, found, model):
        with pytest.raises(ValueError, match="noisy"):
            found.pseudospectrum(1.0)
        with pytest.raises(ValueError, match="give X"):
            koopman(model).pseudospectrum(1.0)
