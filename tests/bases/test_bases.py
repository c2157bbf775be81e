"""Features, gradients and energy Gram matrices of every basis against explicit (N·d)×p products."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans

from kdmaps import Factor, KernelDiffusionMap
from kdmaps.bases import BASES, FourierBasis, ModeBasis, RandomPhaseBasis, make_basis, select_landmarks
from kdmaps.bases._fourier import BLOCK_ROWS
from kdmaps.bases._landmarks import _spread_out
from kdmaps.forms.diffusion import DiffusionTensor
from kdmaps.forms.energy import compute_moments
from kdmaps.forms.moments import Moments
from kdmaps.kernels import Gaussian, Matern, Metric
from shared import assert_same_moments, diffusions, kernels

DIM, N, P = 3, 60, 18
KERNELS = kernels(
    "gaussian",
    "laplacian",
    "matern12",
    "matern32",
    "matern52",
    "rq2",
    "gaussian-anisotropic",
    "laplacian-anisotropic",
    "matern52-anisotropic",
    "mixture",
    "mixture-proportional",
    "mixture-not-radial",
    "mixture-not-proportional",
    "metric-gaussian",
    "metric-matern12",
    "metric-matern32",
    "metric-laplacian",
    "metric-of-metric",
    "metric-of-mixture",
    "mixture-of-metrics",
    "mixture-of-different-metrics",
)
X = np.random.default_rng(0).standard_normal((N, DIM)) * [1.0, 0.6, 1.5] + [3.0, -1.0, 0.2]
WEIGHT = np.random.default_rng(1).uniform(0.2, 3, N)
DIFFUSIONS = diffusions(X)

every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
every_basis = pytest.mark.parametrize("name", BASES)


def build(name, kernel, X=X, **options):
    # Landmarks are samples, because formulas can fail at coincident points.
    options = {"landmarks": "uniform", **options}
    return make_basis(name, kernel, X, P, random_state=0, **options)


def jacobian(basis, X):
    """Return ∇φ_m(x_i), shape (n, p, d), one feature at a time."""
    return basis.gradient(X, np.eye(basis.n_features))


def explicit(basis, tensors, X=X, weight=WEIGHT):
    """Compute n, Σ w, Σ w², Σ w φ, Σ w φφᵀ and Σ w ∇φ D ∇φᵀ by definition, for tensors (n, d, d)."""
    phi, J = basis.features(X), jacobian(basis, X)
    gram, energy = np.einsum("n,np,nq->pq", weight, phi, phi), np.einsum("n,npi,nij,nqj->pq", weight, J, tensors, J)
    return Moments(len(X), weight.sum(), (weight**2).sum(), weight @ phi, gram, energy)


class TestDefinition:
    @every_kernel
    @pytest.mark.parametrize("name", ["landmarks", "full"])
    def test_landmark_features_are_kernels(self, name, kernel):
        basis = build(name, kernel)
        assert_allclose(basis.features(X), kernel(X, basis.landmarks), rtol=1e-10, atol=1e-14)
        # The ridge is W plus a jitter of 1e-9 of its trace (eq:W-stab), p·1e-9 on the diagonal.
        W = kernel(basis.landmarks)
        assert_allclose(basis.ridge, W + 1e-9 * basis.n_features * np.eye(basis.n_features), rtol=1e-10, atol=1e-14)

    @every_kernel
    def test_fourier_features_are_waves(self, kernel):
        basis = build("fourier", kernel)
        angles = (X - basis.origin) @ basis.frequencies.T
        waves = np.hstack([np.cos(angles), np.sin(angles)])
        assert_allclose(basis.features(X), waves * np.tile(np.sqrt(basis.weights), 2), rtol=0, atol=1e-12)
        assert basis.ridge is None

    def test_random_phase_features_are_shifted_waves(self):
        basis = build("random-phase", KERNELS["mixture"])
        angles = (X - basis.origin) @ basis.frequencies.T + basis.phases
        assert_allclose(basis.features(X), np.sqrt(2 * basis.weights) * np.cos(angles), rtol=0, atol=1e-13)

    @every_kernel
    @pytest.mark.parametrize("name", ["fourier", "random-phase"])
    def test_fourier_features_approximate_the_kernel(self, name, kernel):
        # Monte Carlo over q frequencies: an entry has a variance of at most 1/q with pairs, 1.5/q with random phases
        # (E(2 cos cos)² ≤ 3/2), so 5 standard deviations bound all of the 60×60 entries with probability 1 - 2e-3.
        q = 4096
        frequencies, weights = kernel.sample_frequencies(q, DIM, "iid", random_state=0)
        if name == "fourier":
            basis = FourierBasis(kernel, frequencies, weights, X.mean(axis=0))
        else:
            phases = np.random.default_rng(0).uniform(0, 2 * np.pi, q)
            basis = RandomPhaseBasis(kernel, frequencies, weights, X.mean(axis=0), phases)
        phi = basis.features(X)
        assert_allclose(phi @ phi.T, kernel(X), rtol=0, atol=5 * np.sqrt(1.5 / q))

    @every_basis
    @every_kernel
    def test_combinations(self, name, kernel):
        basis = build(name, kernel)
        many = np.vstack([X, X + 0.5, X - 0.5, X + 1, X - 1, X + 2])  # more than one block of rows
        assert len(many) > BLOCK_ROWS
        coefficients = np.random.default_rng(2).standard_normal((basis.n_features, 4))
        expected = basis.features(many) @ coefficients
        # Sums of p terms in a different order.
        assert_allclose(basis.combine(many, coefficients), expected, rtol=0, atol=1e-13 * np.abs(expected).max())

    @every_basis
    @every_kernel
    def test_gradient(self, name, kernel):
        basis = build(name, kernel)
        away = X[:20] + 0.0123  # off the landmarks, where rough kernels have kinks
        coefficients = np.random.default_rng(2).standard_normal((basis.n_features, 4))
        analytic = basis.gradient(away, coefficients)
        # Truncation h²|f'''|/6; f''' ~ w³ for the frequencies at hand (Cauchy and Student-t draws reach |w| ~ 100).
        h = 1e-5 if name in ("landmarks", "full") else 1e-4 / np.abs(basis.frequencies).max()
        for j, e in enumerate(np.eye(DIM)):
            difference = (basis.features(away + h * e) - basis.features(away - h * e)) @ coefficients / (2 * h)
            assert_allclose(analytic[:, :, j], difference, rtol=0, atol=1e-6 * np.abs(analytic).max())


class TestEnergy:
    @every_basis
    @every_kernel
    def test_against_the_explicit_product(self, name, kernel):
        basis = build(name, kernel)
        assert_same_moments(compute_moments(basis, X, WEIGHT), explicit(basis, DIFFUSIONS["none"][1]))

    @every_basis
    @every_kernel
    def test_against_finite_differences(self, name, kernel):
        # Independent of `gradient`: only `features` enters.
        basis = build(name, kernel)
        away = X + 0.0123
        h = 1e-5 if name in ("landmarks", "full") else 1e-4 / np.abs(basis.frequencies).max()
        J = np.stack(
            [(basis.features(away + h * e) - basis.features(away - h * e)) / (2 * h) for e in np.eye(DIM)], axis=2
        )
        energy = np.einsum("npd,nqd->pq", J, J)
        assert_allclose(compute_moments(basis, away).energy, energy, rtol=0, atol=1e-6 * np.abs(energy).max())

    @every_basis
    @pytest.mark.parametrize(
        "kernel",
        [
            "gaussian",
            "laplacian",
            "metric-gaussian",
            "metric-matern32",
            *(
                pytest.param(n, marks=pytest.mark.slow)
                for n in ("matern32", "gaussian-anisotropic", "mixture", "metric-laplacian", "mixture-of-metrics")
            ),
        ],
    )
    @pytest.mark.parametrize("diffusion", DIFFUSIONS)
    def test_diffusion_tensor(self, name, kernel, diffusion):
        basis = build(name, KERNELS[kernel])
        argument, tensors = DIFFUSIONS[diffusion]
        moments = compute_moments(basis, X, WEIGHT, DiffusionTensor(argument, DIM))
        assert_same_moments(moments, explicit(basis, tensors))

    @pytest.mark.parametrize("diffusion", DIFFUSIONS)
    def test_diffusion_tensor_of_modes(self, diffusion):
        rng = np.random.default_rng(3)
        modes = ModeBasis(build("fourier", KERNELS["mixture"]), rng.standard_normal((P, 4)), rng.standard_normal(4))
        argument, tensors = DIFFUSIONS[diffusion]
        assert_same_moments(compute_moments(modes, X, WEIGHT, DiffusionTensor(argument, DIM)), explicit(modes, tensors))

    @pytest.mark.parametrize("diffusion", ["array-matrices", "array-thin-factors", "array-factors"])
    def test_tensors_per_sample_follow_their_rows(self, diffusion):
        basis = build("fourier", KERNELS["gaussian"])
        argument, tensors = DIFFUSIONS[diffusion]
        rows = np.array([40, 3, 3, 17, 59])
        moments = compute_moments(basis, X, WEIGHT, DiffusionTensor(argument, DIM), rows=rows)
        assert_same_moments(moments, explicit(basis, tensors[rows], X[rows], WEIGHT[rows]))

    @every_basis
    @pytest.mark.parametrize("diffusion", ["none", "matrix", "callable-scalars", "callable-matrices"])
    def test_memory_order_has_no_effect(self, name, diffusion):
        # BLAS gets raw pointers, so a transposed array must not be read in memory order.
        basis = build(name, KERNELS["matern52"])
        argument, tensors = DIFFUSIONS[diffusion]
        moments = compute_moments(basis, np.asfortranarray(X), WEIGHT, DiffusionTensor(argument, DIM))
        assert_same_moments(moments, explicit(basis, tensors))

    @every_basis
    @every_kernel
    def test_one_coordinate(self, name, kernel):
        if np.size(getattr(kernel, "bandwidth", 1)) == DIM or "[0.9" in repr(kernel):
            kernel = Matern(1.5, [0.9])
        if "Metric" in repr(kernel):
            kernel = Metric(Matern(1.5, [0.9]), [[1.3]])
        basis = build(name, kernel, X[:, :1])
        tensors = np.ones((N, 1, 1))
        assert_same_moments(compute_moments(basis, X[:, :1], WEIGHT), explicit(basis, tensors, X[:, :1]))

    @pytest.mark.parametrize("name", ["fourier", "landmarks"])
    def test_energy_is_positive_semidefinite(self, name):
        for kernel in KERNELS.values():
            eigenvalues = np.linalg.eigvalsh(compute_moments(build(name, kernel), X).energy)
            assert eigenvalues[0] > -1e-10 * eigenvalues[-1]


class TestLandmarks:
    def select(self, method, n=10, X=X, seed=0):
        return select_landmarks(X, n, method, seed)

    def rows_of(self, landmarks, X=X):
        """Return the index of the sample of each landmark; fail if a landmark is not a sample."""
        equal = (landmarks[:, None] == X[None]).all(axis=2)
        assert equal.any(axis=1).all()
        return equal.argmax(axis=1)

    @pytest.mark.parametrize("method", ["uniform", "all"])
    def test_landmarks_are_distinct_samples(self, method):
        landmarks = self.select(method)
        assert len(landmarks) == (N if method == "all" else 10)
        assert len(set(self.rows_of(landmarks))) == len(landmarks)

    def test_uniform_is_uniform(self):
        # 600 draws of 10 out of 60: each sample is drawn Binomial(600, 1/6) times, 100 ± 9.1; five deviations.
        counts = np.bincount(
            np.concatenate([self.rows_of(self.select("uniform", seed=seed)) for seed in range(600)]), minlength=N
        )
        assert np.abs(counts - 100).max() < 46

    def test_kmeans_finds_separated_clusters(self):
        rng = np.random.default_rng(5)
        centres = np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0], [50.0, 50.0]])
        cloud = np.repeat(centres, 30, axis=0) + rng.uniform(-1, 1, (120, 2))
        landmarks = select_landmarks(cloud, 4, "kmeans", 0)
        means = cloud.reshape(4, 30, 2).mean(axis=1)
        assert_allclose(landmarks[np.lexsort(landmarks.T)], means[np.lexsort(means.T)], rtol=1e-10)

    @pytest.mark.parametrize("method", ["kmeans", "uniform", "all"])
    def test_fewer_distinct_samples_than_asked(self, method):
        repeated = np.repeat(X[:4], 6, axis=0)
        landmarks = select_landmarks(repeated, 10, method, 0)
        assert_array_equal(landmarks, np.unique(X[:4], axis=0))

    @pytest.mark.parametrize("method", ["kmeans", "uniform"])
    def test_seed(self, method):
        one, two, other = (self.select(method, seed=seed) for seed in (3, 3, 4))
        assert_array_equal(one, two)
        assert np.abs(one - other).max() > 0.1

    def test_large_samples(self):
        many = np.random.default_rng(6).standard_normal((10_500, 2))
        found = {name: select_landmarks(many, 12, name, 0) for name in ("kmeans", "uniform")}
        assert len(set(self.rows_of(found["uniform"], many))) == 12
        # Centres of a subsample of 10,000 are about as good as scikit-learn's centres of all samples.
        inertia = np.sum((many[:, None] - found["kmeans"]) ** 2, axis=2).min(axis=1).sum()
        assert inertia < 1.05 * KMeans(12, n_init=3, random_state=0).fit(many).inertia_

    def test_array_of_landmarks(self):
        Z = X[[5, 5, 1]] + 0.5
        landmarks = self.select(Z)
        assert_array_equal(landmarks, Z)
        assert landmarks is not Z  # the caller's array may change later

    @pytest.mark.parametrize(
        ("method", "message"),
        [
            ("farthest", "landmarks must be 'kmeans'"),
            (np.ones((4, 2)), r"3 columns like X, got shape \(4, 2\)"),
            (np.full((4, 3), np.nan), "or a finite array with"),
        ],
    )
    def test_bad_method(self, method, message):
        with pytest.raises(ValueError, match=message):
            self.select(method)


def test_unknown_basis():
    with pytest.raises(ValueError, match="Unknown basis 'splines'"):
        make_basis("splines", Gaussian(), X, 10)


def test_odd_number_of_features_is_rounded_up_to_pairs():
    assert make_basis("fourier", Gaussian(), X, 7, random_state=0).n_features == 8


def test_factor_of_wrong_width():
    samples = np.zeros((100_000, 2))  # more than a chunk
    with pytest.raises(ValueError, match=r"diffusion .* \(100000, 2, k\) .* got \(100000, 3, 1\)"):
        KernelDiffusionMap(diffusion=Factor(np.ones((100_000, 3, 1)))).fit(samples)


@pytest.mark.parametrize(("n", "d", "k"), [(300, 1, 80), (200, 3, 120), (150, 10, 40)])
def test_first_centres_agree_with_scikit_learn(n, d, k):
    X = np.random.default_rng(d).standard_normal((n, d))
    exact, ours = (
        KMeans(k, init=init, n_init=1, max_iter=50, random_state=3).fit(X).cluster_centers_
        for init in ("k-means++", _spread_out)
    )
    np.testing.assert_allclose(ours, exact, rtol=0, atol=1e-9)  # the same draws, so the same clusters
