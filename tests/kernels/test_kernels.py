"""Kernels against scikit-learn, gpytorch, finite differences and their spectral distributions."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import special
from sklearn.gaussian_process import kernels as sk

from kdmaps.generators import Generator
from kdmaps.kernels import (
    FAMILIES,
    Gaussian,
    Laplacian,
    Matern,
    Metric,
    Mixture,
    RationalQuadratic,
    kernel_from_dict,
    make_kernel,
)
from kdmaps.kernels._base import _apportion
from shared import ANISOTROPIC, ISOTROPIC_KERNELS, KERNELS, ROOT

DIM = 3
RADIAL = {name: kernel for name, kernel in KERNELS.items() if kernel.linear_map is not None}
SMOOTH = {name: kernel for name, kernel in KERNELS.items() if kernel.smoothness >= 2}
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
every_radial_kernel = pytest.mark.parametrize("kernel", RADIAL.values(), ids=RADIAL)
every_smooth_kernel = pytest.mark.parametrize("kernel", SMOOTH.values(), ids=SMOOTH)


def points(seed, n, dim=DIM):
    return np.random.default_rng(seed).standard_normal((n, dim))


class TestValue:
    # scikit-learn evaluates the same formulas (ν = 7/2 through the Bessel function K_ν), so only rounding differs.
    @pytest.mark.parametrize("bandwidth", [0.9, ANISOTROPIC], ids=["isotropic", "anisotropic"])
    @pytest.mark.parametrize(
        ("ours", "theirs"),
        [
            (Gaussian, sk.RBF),
            *(
                (lambda b, nu=nu: Matern(nu, b), lambda b, nu=nu: sk.Matern(b, nu=nu))
                for nu in (0.5, 1.5, 2.5, 3.5, 5.5)
            ),
        ],
        ids=["gaussian", "matern12", "matern32", "matern52", "matern72", "matern112"],
    )
    def test_against_scikit_learn(self, ours, theirs, bandwidth):
        X, Z = points(0, 20), points(1, 15)
        assert_allclose(ours(bandwidth)(X, Z), theirs(bandwidth)(X, Z), rtol=1e-11, atol=1e-14)

    @pytest.mark.parametrize("alpha", [0.7, 2.0, 5.0])
    def test_rational_quadratic_against_scikit_learn(self, alpha):
        X, Z = points(0, 20), points(1, 15)
        theirs = sk.RationalQuadratic(length_scale=0.9, alpha=alpha)
        assert_allclose(RationalQuadratic(alpha, 0.9)(X, Z), theirs(X, Z), rtol=1e-12)

    def test_matern_is_its_bessel_function(self):
        r = np.linspace(0.05, 30, 60)
        for nu in (0.5, 1.5, 2.5, 3.5, 6.5):
            t = np.sqrt(2 * nu) * r
            exact = 2 ** (1 - nu) / special.gamma(nu) * t**nu * special.kv(nu, t)
            assert_allclose(Matern(nu).profile(r**2), exact, rtol=1e-12)

    def test_laplacian_closed_form(self):
        X, Z = points(0, 6), points(1, 5)
        exact = np.exp(-np.sum(np.abs(X[:, None] - Z) / ANISOTROPIC, axis=2))
        assert_allclose(Laplacian(ANISOTROPIC)(X, Z), exact, rtol=1e-14)

    @every_kernel
    def test_one_argument_is_symmetric_with_unit_diagonal(self, kernel):
        X = points(2, 12)
        K = kernel(X)
        assert_allclose(K, kernel(X, X), rtol=0, atol=0)
        assert_allclose(K, K.T, rtol=0, atol=1e-15)
        assert_allclose(np.diagonal(K), 1, rtol=1e-14)

    @every_kernel
    def test_far_away(self, kernel):
        """Squares overflow single precision: only the powers of rational quadratics are not 0."""
        far = np.full((1, DIM), 1e20)
        value, slopes = 0.0, np.zeros(DIM)
        for beta, part in kernel.components():
            if isinstance(part, RationalQuadratic):
                scaled = 2e20 / np.broadcast_to(part.bandwidth, DIM)
                base = 1 + scaled @ scaled / (2 * part.alpha)
                value += beta * base**-part.alpha
                slopes -= beta * base ** (-part.alpha - 1) * scaled / part.bandwidth
        assert_allclose(kernel(far, -far), value, rtol=1e-12, atol=1e-300)
        assert_allclose(np.ravel(list(kernel.partials(far, -far))), slopes, rtol=1e-12, atol=1e-300)


LAPLACIAN = Generator(np.zeros_like)


class TestDerivatives:
    @every_kernel
    def test_gradient(self, kernel):
        X, Z = points(3, 9), points(4, 8)
        h = 1e-5  # truncation ~ h²|k'''|/6 ~ 1e-10·10, rounding ~ 1e-16/h = 1e-11
        for j, e in enumerate(np.eye(DIM)):
            difference = (kernel(X + h * e, Z) - kernel(X - h * e, Z)) / (2 * h)
            assert_allclose(kernel.gradient(X, Z)[:, :, j], difference, atol=2e-8)

    @every_kernel
    def test_gradient_vanishes_at_coincident_points(self, kernel):
        # k(x + δ, x) is even in δ: the central difference at x = z is 0, and so must be the derivative, kinks included.
        X = points(3, 5)
        diagonal = np.einsum("nnd->nd", kernel.gradient(X, X))
        assert_allclose(diagonal, 0, atol=1e-300)

    @pytest.mark.parametrize("name", sorted(set(KERNELS) - set(SMOOTH)))
    def test_laplacian_of_rough_kernels(self, name):
        with pytest.raises(ValueError, match="not twice differentiable"):
            LAPLACIAN(KERNELS[name], points(5, 7), points(6, 6))

    @every_smooth_kernel
    def test_laplacian(self, kernel):
        X, Z = points(5, 7), points(6, 6)
        h = 1e-5  # of the analytic gradient, so that rounding stays at 1e-11
        difference = sum(
            (kernel.gradient(X + h * e, Z)[:, :, j] - kernel.gradient(X - h * e, Z)[:, :, j]) / (2 * h)
            for j, e in enumerate(np.eye(DIM))
        )
        assert_allclose(LAPLACIAN(kernel, X, Z), difference, atol=1e-7)

    @every_smooth_kernel
    def test_laplacian_at_coincident_points(self, kernel):
        X = points(5, 4)
        h = 1e-6  # Matérn-3/2 has a kink in k'' there, so the difference is only of first order: 2h·κ'''-like ~ 1e-5
        difference = sum(
            (kernel.gradient(X + h * e, X)[:, :, j] - kernel.gradient(X - h * e, X)[:, :, j]) / (2 * h)
            for j, e in enumerate(np.eye(DIM))
        )
        assert_allclose(np.diagonal(LAPLACIAN(kernel, X, X)), np.diagonal(difference), rtol=5e-5)

    @pytest.mark.parametrize("name", sorted(set(KERNELS) - set(RADIAL)))
    def test_profile_of_nonradial_kernels(self, name):
        with pytest.raises(NotImplementedError, match="is not radial"):
            KERNELS[name].profile(np.ones(1))

    @every_radial_kernel
    @pytest.mark.parametrize("order", [1, 2])
    def test_profile(self, kernel, order):
        s = np.geomspace(1e-2, 30, 40)
        h = 1e-5 * s  # relative truncation ~ 1e-10 s²κ'''/κ', rounding ~ 1e-16/1e-5
        difference = (kernel.profile(s + h, order - 1) - kernel.profile(s - h, order - 1)) / (2 * h)
        assert_allclose(kernel.profile(s, order), difference, rtol=1e-7, atol=1e-9)

    @every_radial_kernel
    def test_profile_is_the_kernel(self, kernel):
        X, Z = points(7, 6), points(8, 5)
        s = np.sum(kernel.coordinates(X[:, None] - Z) ** 2, axis=2)
        assert_allclose(kernel.profile(s), kernel(X, Z), rtol=1e-12)

    def test_log_slope(self):
        s = np.linspace(0, 20, 30)
        for kernel in KERNELS.values():
            if kernel.log_slope is not None:
                assert_allclose(kernel.profile(s, 1), kernel.log_slope * kernel.profile(s), rtol=1e-14)

    @pytest.mark.slow
    @pytest.mark.parametrize("order", [0, 1, 2])
    @every_radial_kernel
    def test_profile_in_jax(self, kernel, order):
        jax = pytest.importorskip("jax")
        s = np.geomspace(1e-3, 30, 25)
        with jax.enable_x64(True):
            traced = jax.jit(lambda u: kernel.profile(u, order))(jax.numpy.asarray(s))
            assert_allclose(np.asarray(traced), kernel.profile(s, order), rtol=1e-13)
            if order:
                slope = jax.vmap(jax.grad(lambda u: kernel.profile(u, order - 1)))(jax.numpy.asarray(s))
                assert_allclose(np.asarray(slope), kernel.profile(s, order), rtol=1e-11)


class TestGpytorch:
    reference = json.loads((Path(__file__).parents[1] / "references" / "gpytorch_kernels.json").read_text())

    @pytest.mark.parametrize("case", reference["cases"], ids=lambda c: f"{c['gpytorch']}-{c['kernel']}")
    def test_value_and_gradient(self, case):
        kernel = kernel_from_dict(case["kernel"])
        X, Z = np.array(self.reference["X"]), np.array(self.reference["Z"])
        # gpytorch takes distances from |x|² + |z|² - 2xz, which costs up to 1e-16/r² ~ 1e-13 at its nearest pair.
        assert_allclose(kernel(X, Z), case["value"], rtol=1e-11, atol=1e-13)
        assert_allclose(kernel.gradient(X, Z), case["gradient"], rtol=1e-11, atol=1e-12)


class TestSpectralLaw:
    """k(x, z) = E cos(wᵀ(x - z)). With n iid frequencies the mean of cos has variance (1 + k(2δ) - 2k(δ)²)/(2n)."""

    n = 2**15
    # Offsets between a tenth and a few bandwidths, along an axis and obliquely.
    offsets = np.array([[0.1, 0, 0], [0.5, 0, 0], [0, 1.0, 0], [0, 0, 2.5], [0.4, -0.5, 0.3], [1, 1, 1]])

    def deviations(self, frequencies, weights, kernel):
        """Errors of the estimate in units of the standard error of independent draws."""
        zero = np.zeros((1, DIM))
        exact, doubled = kernel(self.offsets, zero)[:, 0], kernel(2 * self.offsets, zero)[:, 0]
        error = np.sqrt((1 + doubled - 2 * exact**2) / 2 / len(frequencies))
        return (weights @ np.cos(frequencies @ self.offsets.T) - exact) / error

    @pytest.mark.slow
    @pytest.mark.parametrize("method", ["iid", "orthogonal", "sobol"])
    @every_kernel
    def test_sampled_kernel(self, kernel, method):
        frequencies, weights = kernel.sample_frequencies(self.n, DIM, method, random_state=0)
        assert_allclose(weights.sum(), 1, rtol=1e-12)
        # 5 standard errors: a probability of 6e-7 for each offset. Stratified draws have at most about that variance.
        assert np.abs(self.deviations(frequencies, weights, kernel)).max() < 5

    @pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
    def test_bound_detects_wrong_degrees_of_freedom(self, nu):
        # Student-t with ν instead of 2ν degrees: w = g √(ν/χ²_ν), a factor of 2 that loose bounds would not detect.
        rng = np.random.default_rng(0)
        wrong = rng.standard_normal((self.n, DIM)) * np.sqrt(nu / rng.chisquare(nu, self.n))[:, None]
        assert np.abs(self.deviations(wrong, np.full(self.n, 1 / self.n), Matern(nu))).max() > 15

    def test_bound_detects_a_chi_square_per_coordinate(self):
        rng = np.random.default_rng(0)
        wrong = rng.standard_t(3, (self.n, DIM))
        assert np.abs(self.deviations(wrong, np.full(self.n, 1 / self.n), Matern(1.5))).max() > 10

    @pytest.mark.parametrize("method", ["orthogonal", "sobol"])
    @pytest.mark.parametrize("name", ["gaussian", "matern52", "rq2"])
    def test_stratified_draws_have_smaller_errors(self, name, method):
        # The methods should have a smaller mean squared error at equal n. 40 draws distinguish ratios below 0.7 from 1.
        kernel = ISOTROPIC_KERNELS[name]
        squares = {
            m: [
                np.mean(self.deviations(*kernel.sample_frequencies(128, DIM, m, random_state=seed), kernel) ** 2)
                for seed in range(40)
            ]
            for m in ("iid", method)
        }
        assert np.mean(squares[method]) < 0.7 * np.mean(squares["iid"])

    @pytest.mark.parametrize("dim", [1, 5])
    def test_orthogonal_blocks(self, dim):
        frequencies, _ = Gaussian().sample_frequencies(3 * dim, dim, "orthogonal", random_state=0)
        for block in frequencies.reshape(3, dim, dim):
            gram = block @ block.T
            assert_allclose(gram, np.diag(np.diagonal(gram)), atol=1e-12)

    def test_seeded(self):
        for method in ("iid", "orthogonal", "sobol"):
            one, two, other = (
                KERNELS["mixture"].sample_frequencies(50, DIM, method, random_state=s)[0] for s in (1, 1, 2)
            )
            assert_allclose(one, two, rtol=0)
            assert np.abs(one - other).max() > 0.1


class TestMixture:
    def test_value_is_the_convex_combination(self):
        X, Z = points(0, 5), points(1, 4)
        parts, beta = [Gaussian(0.8), Laplacian(1.3), RationalQuadratic(2.0, 3.0)], np.array([0.2, 0.5, 0.3])
        mixture = Mixture(parts, beta)
        assert_allclose(mixture(X, Z), sum(b * k(X, Z) for b, k in zip(beta, parts, strict=True)), rtol=1e-14)

    def test_frequencies_in_proportion(self):
        # The three components differ in scale by 1e4, so the size of a frequency identifies its component.
        kernel = Mixture([Gaussian(1e-4), Gaussian(1.0), Gaussian(1e4)], [0.5, 0.3, 0.2])
        frequencies, weights = kernel.sample_frequencies(100, 8, "sobol", random_state=0)
        owner = np.digitize(np.linalg.norm(frequencies, axis=1), [1e-2, 1e2])
        assert np.bincount(owner).tolist() == [20, 30, 50]
        assert_allclose(weights, 1 / 100, rtol=1e-12)

    def test_weights_correct_rounded_counts(self):
        kernel = Mixture([Gaussian(1e-4), Gaussian(1e4)], [0.98, 0.02])
        frequencies, weights = kernel.sample_frequencies(10, 8, "iid", random_state=0)
        wide = np.linalg.norm(frequencies, axis=1) < 1
        assert wide.sum() == 1
        assert_allclose([weights[wide].sum(), weights[~wide].sum()], [0.02, 0.98], rtol=1e-12)

    @given(st.lists(st.floats(0, 1), min_size=1, max_size=6).filter(lambda w: sum(w) > 1e-3), st.integers(1, 200))
    def test_apportion(self, raw, n):
        weights = np.array(raw) / sum(raw)
        counts = _apportion(weights, n)
        assert counts.sum() == n
        assert (counts >= 0).all()
        assert (counts[weights == 0] == 0).all()
        if n >= np.count_nonzero(weights):
            assert (counts[weights > 0] >= 1).all()
        # Counts differ from their share by at most one, except to give every component at least one.
        assert (np.abs(counts - weights * n) <= len(raw)).all()

    def test_radial_only_if_proportional(self):
        for name in ("mixture-not-proportional", "mixture-not-radial", "metric-not-radial", "metric-laplacian"):
            assert KERNELS[name].linear_map is None
        assert KERNELS["mixture-of-different-metrics"].linear_map is None
        assert_allclose(KERNELS["mixture-proportional"].linear_map, 1 / ANISOTROPIC)
        assert_allclose(KERNELS["mixture-of-metrics"].linear_map, ROOT / 1.4)
        assert_allclose(KERNELS["metric-matern32"].linear_map, ROOT / ANISOTROPIC)

    def test_number_is_proportional_to_the_identity(self):
        assert_allclose(Mixture([Gaussian(2.0), Metric(Gaussian(), np.eye(3))]).linear_map, 0.5)
        assert Mixture([Gaussian([1.0, 2.0]), Metric(Gaussian(), np.eye(3))]).linear_map is None

    def test_smoothness_is_the_smallest(self):
        assert Mixture([Gaussian(), Laplacian()]).smoothness == 0
        assert Mixture([Gaussian(), Matern(2.5), Matern(1.5)]).smoothness == 2

    @given(
        st.lists(st.sampled_from(sorted(ISOTROPIC_KERNELS)), min_size=1, max_size=4),
        st.lists(st.floats(-5, 5), min_size=4, max_size=4),
        st.integers(0, 2**32 - 1),
    )
    def test_positive_definite(self, chosen, u, seed):
        X = points(seed, 10)
        X = np.vstack([X, X[:2]])  # with duplicates
        K = Mixture([ISOTROPIC_KERNELS[name] for name in chosen], special.softmax(np.array(u[: len(chosen)])))(X)
        assert_allclose(K, K.T, rtol=0, atol=1e-15)
        assert_allclose(np.diagonal(K), 1, rtol=1e-12)
        assert np.linalg.eigvalsh(K)[0] > -12 * 1e-14  # rounding of a 12×12 matrix with entries up to 1


class TestEquality:
    @every_kernel
    def test_round_trip(self, kernel):
        again = kernel_from_dict(json.loads(json.dumps(kernel.to_dict())))
        X, Z = points(0, 4), points(1, 3)
        assert again == kernel
        assert hash(again) == hash(kernel)
        assert_allclose(again(X, Z), kernel(X, Z), rtol=0)

    def test_different_kernels_differ(self):
        assert len(set(KERNELS.values())) == len(KERNELS)
        assert Gaussian(1.0) != Gaussian(1.0 + 1e-12)

    @pytest.mark.parametrize("name", FAMILIES)
    def test_make_kernel(self, name):
        kernel = make_kernel(name, 2.5)
        X, Z = points(0, 4), points(1, 3)
        assert_allclose(kernel(X, Z), FAMILIES[name](bandwidth=1.0)(X / 2.5, Z / 2.5), rtol=1e-13)
        assert make_kernel(kernel, 7.0) is kernel
        assert kernel.with_bandwidth(7.0) == make_kernel(name, 7.0)

    def test_repr_names_the_parameters(self):
        assert repr(Matern(2.5, [1, 2])) == "Matern(nu=2.5, bandwidth=[1.0, 2.0])"
