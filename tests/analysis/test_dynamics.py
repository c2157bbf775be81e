"""Weights, trajectories, coarse states and exports of modes, against closed forms and other implementations."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from kdmaps.dynamics import coarse_states, compare_with_trajectory
from numpy.testing import assert_allclose, assert_array_equal
from scipy.signal import lfilter

import kdmaps
from kdmaps.analysis.dynamics._lagged import _analyse
from kdmaps.exceptions import DataWarning
from kdmaps.kernels import Gaussian, Laplacian, Matern, Mixture
from kdmaps.simulation import as_jax, boltzmann_weights, effective_sample_size, plumed_input

REFERENCES = Path(__file__).parents[1] / "references"
pytestmark = pytest.mark.filterwarnings("ignore::kdmaps.exceptions.UnreliableModesWarning")


def make(n_components=2, **options):
    # A wide kernel with little regularization holds the linear and quadratic modes of an Ornstein–Uhlenbeck process.
    defaults = {"bandwidth": 6.0, "n_features": 40, "regularization": 1e-4, "random_state": 0}
    return kdmaps.KernelDiffusionMap(n_components, **{**defaults, **options})


class TestWeights:
    def test_biased_samples_show_the_rates_of_the_system(self):
        """V = x²/2 with the bias x²/4 is sampled as N(0, 2/3); reweighted, it has the rates 1 and 2 of V."""
        X = np.sqrt(2 / 3) * np.random.default_rng(0).standard_normal((20_000, 1))
        weights = boltzmann_weights(X[:, 0] ** 2 / 4, kT=1.0)
        # Influence function 1 - x² under weights: Var = E_V[w (1 - x²)²]/n with w = e^{x²/4}/Z < 1.2, about 2/n.
        assert make().fit(X, sample_weight=weights).rates_[0] == pytest.approx(1, abs=0.06)
        assert make().fit(X).rates_[0] == pytest.approx(1.5, abs=0.06)

    def test_effective_sample_size_and_its_warning(self):
        assert effective_sample_size([1, 1, 0, 0]) == 2
        weights = boltzmann_weights(5.0 + np.log([1.0, 2.0, 3.0]), kT=1.0)
        assert_allclose(weights, [0.5, 1.0, 1.5])
        assert_allclose(boltzmann_weights(2.5 * np.log([1.0, 2.0, 3.0]), kT=2.5), weights)
        with pytest.warns(DataWarning, match=r"1\.0 effective samples of 1000"):
            boltzmann_weights(np.r_[np.zeros(999), 100.0], kT=1.0)

    def test_only_differences_of_energy_matter(self):
        # e^{1e4} is beyond all floats; the difference is good to the last place of 1e4, about 1e-12.
        assert_allclose(boltzmann_weights([1e4, 1e4 + np.log(3.0)], kT=1.0), [0.5, 1.5], rtol=1e-11)

    @pytest.mark.parametrize(("energy", "kT", "name"), [([0.0], 0, "kT"), ([np.nan], 1, "bias"), ([[0.0]], 1, "bias")])
    def test_bad_arguments_are_named(self, energy, kT, name):
        with pytest.raises(ValueError, match=name):
            boltzmann_weights(energy, kT)


def ou_trajectories(n, steps, diffusion, seed):
    """Exact samples at time steps 1 of dX_j = -α_j D X_j dt + √(2D) dW, with α = 1, 4: variance 1/α_j."""
    rng, columns = np.random.default_rng(seed), []
    for alpha in (1.0, 4.0):
        a = np.exp(-alpha * diffusion)
        noise = rng.standard_normal((n, steps)) * np.sqrt((1 - a**2) / alpha)
        first = a * rng.standard_normal((n, 1)) / np.sqrt(alpha)
        columns.append(lfilter([1.0], [1.0, -a], noise, zi=first)[0].ravel())
    return np.column_stack(columns)


class TestLaggedData:
    def test_diffusion_constant_of_an_ornstein_uhlenbeck_process(self):
        X, groups = ou_trajectories(4, 10_000, 0.02, 0), np.repeat(np.arange(4), 10_000)
        model = make(2).fit(X)  # rates 1 and 2: x and x² - 1
        found = compare_with_trajectory(model, X, time_step=0.5, groups=groups)
        # D = 0.02 per sample is 0.04 per unit of time. 40,000 samples hold 400 correlation times 2/0.02: about 7 %.
        assert (found.diffusion_errors < 0.2 * 0.04).all()
        assert (np.abs(found.diffusion - 0.04) < 4 * found.diffusion_errors).all()
        assert found.common_diffusion == pytest.approx(0.04, rel=0.2)
        assert_allclose(found.timescales[0] * found.diffusion[0] * model.rates_[0], 1, rtol=1e-12)
        # Samples are Markovian at every lag; the modes are exact to the sampling error of the fit.
        assert_allclose(found.amplitudes, 1, atol=0.1)
        exact = np.exp(-np.outer(found.times, [1, 2]) * 0.04)
        assert (np.abs(found.autocorrelations - exact) < 5 * found.autocorrelation_errors + 0.03).all()
        rows = found.table()
        assert len(rows) == 2 * len(found.times)
        assert rows[-1]["autocorrelation"] == found.autocorrelations[-1, 1]

    def test_memory_shows_as_a_lost_amplitude(self):
        """White noise added to the observed coordinate: ρ(t) = A e^{-Dt}, A = Var x/(Var x + Var noise) = 0.8."""
        X = ou_trajectories(1, 40_000, 0.02, 1)[:, :1]
        noisy = X + 0.5 * np.random.default_rng(2).standard_normal(X.shape)
        found = compare_with_trajectory(make(1).fit(noisy), noisy, lags=np.arange(1, 80, 8))
        assert found.amplitudes[0] == pytest.approx(0.8, abs=0.04)
        # The noise makes the static rate 1/Var = 1/1.25, and leaves the decay in time.
        assert abs(1 / found.timescales[0] - 0.02) < 4 * found.timescale_errors[0] / found.timescales[0] ** 2
        assert found.diffusion[0] == pytest.approx(0.02 * 1.25, rel=0.25)

    def test_lags_in_the_noise_do_not_count_and_the_others_as_they_are_known(self):
        times, rho = np.arange(1.0, 8.0), np.array([0.9, 0.6, 0.5, 0.3, 0.05, 0.4, 0.2])
        sums = np.ones((8, 1, 2))
        sums[1:, 0, 0] = rho
        found, (decay, amplitude) = _analyse(sums, times)
        assert_allclose(found[:, 0], rho)
        # Least squares of log ρ with weights ρ², up to the first correlation below 0.1.
        A, weight = np.column_stack([np.ones(4), -times[:4]]), np.diag(rho[:4] ** 2)
        expected = np.linalg.solve(A.T @ weight @ A, A.T @ weight @ np.log(rho[:4]))
        assert_allclose([np.log(amplitude[0]), decay[0]], expected, rtol=1e-10)

    def test_errors_are_those_of_repeated_trajectories(self):
        columns, runs = SimpleNamespace(transform=lambda X: X, rates_=np.array([1.0, 4.0])), []
        for seed in range(40):
            X = ou_trajectories(1, 4000, 0.05, seed) * [1.0, 2.0]
            runs.append(compare_with_trajectory(columns, X, lags=[1, 2, 3, 4, 5]))
        for name in ("diffusion", "autocorrelation"):
            values, errors = (
                np.array([np.ravel(getattr(run, field)) for run in runs])
                for field in (name if name == "diffusion" else f"{name}s", f"{name}_errors")
            )
            # The spread of 40 values is known to 11 %, and three of those; ten parts make the jackknife a little large.
            ratio = np.sqrt(np.mean(errors**2, axis=0)) / np.std(values, axis=0, ddof=1)
            assert ((ratio > 0.65) & (ratio < 1.5)).all(), ratio

    def test_the_common_constant_trusts_the_modes_by_their_errors(self):
        columns = SimpleNamespace(transform=lambda X: X, rates_=np.array([1.0, 4.0]))
        found = compare_with_trajectory(columns, ou_trajectories(1, 4000, 0.05, 3), lags=[1, 2, 3, 4, 5])
        precision = (found.diffusion / found.diffusion_errors) ** 2  # 1/Var log D
        expected = precision @ np.log(found.diffusion) / precision.sum()
        assert abs(expected - np.log(found.diffusion).mean()) > 0.01
        assert np.log(found.common_diffusion) == pytest.approx(expected, rel=1e-12)

    def test_pairs_never_cross_trajectories(self):
        X, groups = ou_trajectories(1000, 4, 0.1, 0)[:, :1], np.repeat(np.arange(1000), 4)
        found = compare_with_trajectory(make(1).fit(X), X, groups=groups)
        # Lags end where trajectories do. The standard error of ρ is √((1 - ρ²)/1000) at most, 0.02; pairs across
        # trajectories, a quarter of all at lag 1, would take 0.2 away.
        assert_array_equal(found.times, [1, 2, 3])
        assert_allclose(found.autocorrelations[:, 0], np.exp(-0.1 * found.times), atol=0.06)

    def test_a_mode_that_is_constant_along_trajectories_says_nothing_about_time(self):
        rng = np.random.default_rng(0)
        stuck, groups = np.repeat(rng.standard_normal((400, 1)), 10, axis=0), np.repeat(np.arange(400), 10)
        with pytest.raises(ValueError, match=r"No correlated mode decays over lags of up to 3 .* constant along"):
            compare_with_trajectory(make(1).fit(stuck), stuck, lags=[1, 2, 3], groups=groups)
        # Beside it, a mode that decays with 0.1 per sample has the only say; 400 trajectories tell it to about 10 %.
        X = np.column_stack([stuck, ou_trajectories(400, 10, 0.1, 1)[:, 0]])
        columns = SimpleNamespace(transform=lambda X: X, rates_=np.array([1.0, 2.0]))
        found = compare_with_trajectory(columns, X, lags=[1, 2, 3], groups=groups)
        assert_allclose(found.diffusion, [0, 0.05], rtol=0.3, atol=1e-12)
        assert found.common_diffusion == pytest.approx(found.diffusion[1], rel=1e-12)
        assert found.common_diffusion_error == pytest.approx(found.diffusion_errors[1], rel=1e-12)

    def test_the_error_of_the_common_diffusion_constant_is_its_spread(self):
        """Over independent trajectories, of which the coordinates themselves are the modes, with the rates 1 and 4."""
        columns = SimpleNamespace(transform=lambda X: X, rates_=np.array([1.0, 4.0]))
        draws = [
            compare_with_trajectory(columns, ou_trajectories(1, 8000, 0.05, seed), lags=[1, 2, 4, 8])
            for seed in range(60)
        ]
        constants = np.array([draw.common_diffusion for draw in draws])
        errors = np.array([draw.common_diffusion_error for draw in draws])
        assert abs(constants.mean() - 0.05) < 4 * constants.std() / np.sqrt(60)
        # The deviation of 60 draws is known to 1/√120 = 9 %, a jackknife of ten parts to 24 %, their mean to 3 %.
        assert np.sqrt(np.mean(errors**2)) == pytest.approx(constants.std(ddof=1), rel=0.3)
        # Both modes tell more than the better one.
        assert errors.mean() < min(np.mean([draw.diffusion_errors for draw in draws], axis=0))

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"time_step": 0}, "time_step"),
            ({"lags": [1]}, "lags must hold"),
            ({"lags": [0, 1]}, "at least 1"),
            ({"lags": [1, 500]}, "too many"),
            ({"groups": [1]}, "groups"),
            ({"lags": [1, 50], "groups": np.repeat(np.arange(20), 50)}, "longest trajectory has 50"),
        ],
    )
    def test_bad_arguments_are_named(self, options, message):
        X = ou_trajectories(1, 1000, 0.1, 0)
        with pytest.raises(ValueError, match=message):
            compare_with_trajectory(make().fit(X), X, **options)


class TestCoarseStates:
    def test_same_memberships_as_deeptime(self):
        """A birth–death chain with three wells; computed by compare/deeptime_pcca.py."""
        reference = json.loads((REFERENCES / "deeptime_pcca.json").read_text())
        found = coarse_states(reference["modes"], 3, sample_weight=reference["stationary"])
        expected = np.array(reference["memberships"])
        expected = expected[:, np.argsort(-np.array(reference["stationary"]) @ expected)]
        # Both optimise by Nelder and Mead to a relative 1e-4 in the matrix.
        assert_allclose(found.memberships, expected, atol=2e-3)
        lifted = np.column_stack([np.ones(len(expected)), reference["modes"]]) @ found.transformation
        assert_allclose(lifted, found.memberships, atol=1e-9)

    def test_wells_of_a_triple_well(self):
        problem = kdmaps.problems.load("triplewell2d")
        X = problem.sample(4000, random_state=0)
        modes = problem.eigenfunctions(X, 2)
        found = coarse_states(modes, 3)
        assert_allclose(found.populations, found.memberships.mean(axis=0))
        assert (np.diff(found.populations) <= 0).all()
        # Every state is one region: its samples and another's are split by which mode space corner they are near.
        corners = np.linalg.inv(found.transformation)[:, 1:]
        nearest = np.argmin(((modes[:, None] - corners) ** 2).sum(axis=2), axis=1)
        crisp = found.memberships.max(axis=1) > 0.9
        assert_array_equal(found.labels[crisp], nearest[crisp])

    def test_signs(self):
        modes = np.array([[1.0, 1.0], [2.0, -1.0], [-1.0, 1.0], [1.0, 3.0]])
        found = coarse_states(modes, method="sign")
        assert_allclose(found.populations, [0.5, 0.25, 0.25])
        assert found.labels[0] == found.labels[3] == 0
        assert len(set(found.labels)) == 3
        assert_array_equal(found.memberships_at(modes[::-1]), found.memberships[::-1])
        with pytest.raises(ValueError, match="Point 1 of modes has a combination of signs that no sample had"):
            found.memberships_at([[1.0, 1.0], [-1.0, -1.0]])

    def test_new_points(self):
        """Those of the samples at the samples; linear between them; never negative beyond."""
        problem = kdmaps.problems.load("triplewell2d")
        X = problem.sample(500, random_state=0)
        modes = problem.eigenfunctions(X, 3)
        found = coarse_states(modes, 3)  # of two modes: a third is no matter
        assert_allclose(found.memberships_at(modes), found.memberships, atol=1e-14)  # rounding
        middle = (modes[:-1] + modes[1:]) / 2
        assert_allclose(found.memberships_at(middle), (found.memberships[:-1] + found.memberships[1:]) / 2, atol=1e-12)
        beyond = found.memberships_at(10 * modes)
        assert (beyond >= 0).all()
        assert_allclose(beyond.sum(axis=1), 1)
        with pytest.raises(ValueError, match="modes must hold the 2 modes that the states were found with, got 1"):
            found.memberships_at(modes[:, :1])

    def test_two_states_are_linear_in_the_mode(self):
        mode = np.array([[-1.0], [0.0], [3.0]])
        assert_allclose(coarse_states(mode).memberships, [[1, 0], [0.75, 0.25], [0, 1]], atol=1e-12)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (([[1.0], [2.0]], 3), "n_states must be"),
            ((np.zeros((9, 2)), 3), "linearly dependent"),
            (([1.0, 2.0], 2), "modes must be"),
        ],
    )
    def test_bad_arguments_are_named(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            coarse_states(*arguments)


KERNELS = [
    Gaussian(2.0),
    Laplacian([2.0, 3.0]),
    Matern(1.5, 2.0),
    Mixture([Gaussian([1.0, 3.0]), Matern(2.5, 2.0)], [0.3, 0.7]),
]


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).standard_normal((300, 2)) * [1.0, 0.5] + [5.0, -3.0]


class TestExport:
    @pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
    @pytest.mark.parametrize("basis", ["fourier", "random-phase", "landmarks"])
    def test_jax_function_is_the_mode(self, X, basis, kernel):
        model = make(basis=basis, kernel=kernel, regularization=1e-2).fit(X)
        points = X[:20] + 0.1
        with jax.enable_x64(True):
            function = as_jax(model, 1)
            values, gradients = function(points), jax.vmap(jax.grad(function))(points)
        assert_allclose(values, model.transform(points)[:, 1], atol=1e-9)  # rounding of large coefficients
        assert_allclose(gradients, model.gradient(points)[:, 1], atol=1e-8)

    def test_jax_function_in_single_precision(self, X):
        model = make(regularization=1e-2).fit(X)
        value = jax.jit(as_jax(model))(X[0].astype(np.float32))
        assert value.dtype == np.float32
        # Coefficients of order 100 lose two of seven digits.
        assert_allclose(value, model.transform(X[:1])[0, 0], atol=1e-3)

    @pytest.mark.parametrize("basis", ["fourier", "random-phase"])
    def test_plumed_input_computes_the_mode(self, X, basis):
        """Run by a small interpreter of what PLUMED's manual says of COMBINE and CUSTOM."""
        model = make(basis=basis, regularization=1e-2).fit(X)
        text = plumed_input(model, ["a.x", "b"], mode=1, label="slow")
        values = {"a.x": X[:, 0], "b": X[:, 1]}
        for line in text.splitlines():
            label, action, rest = re.fullmatch(r"(\S+): (\S+) (.*)", line).groups()
            keys = dict(word.split("=", 1) for word in rest.split(" "))
            assert keys.pop("PERIODIC") == "NO"
            arguments = [values[name] for name in keys.pop("ARG").split(",")]
            if action == "COMBINE":  # Σ c_i (x_i - a_i)
                c, shift = (
                    [float(number) for number in keys.pop(name, ",".join([default] * len(arguments))).split(",")]
                    for name, default in (("COEFFICIENTS", "1"), ("PARAMETERS", "0"))
                )
                values[label] = sum(ci * (x - ai) for ci, x, ai in zip(c, arguments, shift, strict=True))
            else:
                assert action == "CUSTOM"
                phase = re.fullmatch(r"cos\(x\+\((\S+)\)\)", keys.pop("FUNC")).group(1)
                values[label] = np.cos(arguments[0] + float(phase))
            assert not keys
        assert_allclose(values["slow"], model.transform(X)[:, 1], atol=1e-9)

    def test_bad_arguments_are_named(self, X):
        model = make().fit(X)
        for arguments, message in [((["a"],), "2 PLUMED labels"), ((["a", "b c"],), "2 PLUMED"), (("ab",), "2 PLUMED")]:
            with pytest.raises(ValueError, match=message):
                plumed_input(model, *arguments)
        with pytest.raises(ValueError, match="arguments must be different labels"):
            plumed_input(model, ["a", "a"])
        with pytest.raises(ValueError, match="mode must be"):
            as_jax(model, 2)
        with pytest.raises(ValueError, match="no PLUMED form"):
            plumed_input(make(basis="landmarks").fit(X), ["a", "b"])
