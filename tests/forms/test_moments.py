"""Moments are sums: they do not depend on chunks and threads, and weights are repetitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from kdmaps.bases import BASES, ModeBasis, _base, make_basis
from kdmaps.forms.diffusion import DiffusionTensor, Factor
from kdmaps.forms.energy import compute_moments
from kdmaps.forms.moments import Moments, sum_moments
from kdmaps.kernels import Gaussian
from kdmaps.spectrum.pencil import find_modes
from kdmaps.utils import threads as threads_module
from shared import assert_same_moments, diffusion_arguments, kernels

N, DIM, P = 500, 3, 24
X = np.random.default_rng(0).standard_normal((N, DIM)) * [1.0, 0.6, 1.5]
WEIGHT = np.random.default_rng(1).uniform(0, 2, N)
KERNELS = kernels("gaussian", "matern52-anisotropic", "mixture-not-radial")
DIFFUSIONS = diffusion_arguments(X, "none", "matrix", "callable-scalars", "callable-matrices")


@pytest.fixture(params=["gaussian", *(pytest.param(name, marks=pytest.mark.slow) for name in list(KERNELS)[1:])])
def kernel(request):
    return KERNELS[request.param]


@pytest.fixture(params=BASES)
def basis(request, kernel):
    name = request.param
    reference = X[:40] if name == "full" else X
    return make_basis(name, kernel, reference, P, landmarks="uniform", random_state=0)


@pytest.fixture(params=DIFFUSIONS.values(), ids=DIFFUSIONS)
def diffusion(request):
    return DiffusionTensor(request.param, DIM)


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(_base, "CHUNK_BYTES", 0)  # the least number of rows, 64: eight chunks, the last one shorter


class TestChunks:
    def test_chunks_add_up_to_the_whole(self, basis, diffusion, monkeypatch):
        monkeypatch.setattr("kdmaps.bases._fourier.BLOCKS", 1)
        monkeypatch.setattr(_base, "CHUNK_BYTES", 2**30)
        whole = compute_moments(basis, X, WEIGHT, diffusion)
        monkeypatch.setattr(_base, "CHUNK_BYTES", 0)
        assert basis.chunk_rows < N / 4
        assert_same_moments(compute_moments(basis, X, WEIGHT, diffusion), whole)

    @pytest.mark.usefixtures("small_chunks")
    def test_number_of_threads_has_no_effect(self, basis, diffusion, monkeypatch):
        results = []
        for threads in (1, 2, 3):
            monkeypatch.setattr(threads_module, "n_threads", lambda threads=threads: threads)
            results.append(compute_moments(basis, X, WEIGHT, diffusion))
        assert_same_moments(results[1], results[0])
        assert_same_moments(results[2], results[0])

    def test_two_threads_are_deterministic(self, basis, diffusion, monkeypatch):
        monkeypatch.setattr(threads_module, "n_threads", lambda: 2)
        first = compute_moments(basis, X, WEIGHT, diffusion)
        assert_same_moments(compute_moments(basis, X, WEIGHT, diffusion), first, rtol=0)

    def test_subtracting_a_fold_leaves_it_out(self, basis, diffusion):
        fold = np.arange(N) % 3 == 0
        whole = compute_moments(basis, X, WEIGHT, diffusion)
        subtracted = whole - compute_moments(basis, X[fold], WEIGHT[fold], diffusion)
        assert_same_moments(subtracted, compute_moments(basis, X[~fold], WEIGHT[~fold], diffusion))

    @pytest.mark.usefixtures("small_chunks")
    def test_rows(self, basis, diffusion):
        rows = np.random.default_rng(2).permutation(N)[:333]
        assert_same_moments(
            compute_moments(basis, X, WEIGHT, diffusion, rows=rows),
            compute_moments(basis, X[rows], WEIGHT[rows], diffusion),
        )

    def test_weights_are_repetitions(self, basis, diffusion):
        times = np.random.default_rng(3).integers(0, 4, N)
        weighted = compute_moments(basis, X, times.astype(float), diffusion)
        repeated = compute_moments(basis, np.repeat(X, times, axis=0), None, diffusion)
        assert_same_moments(weighted, repeated, names=("weight", "total", "gram", "energy"))

    def test_iterator_of_chunks(self, basis, diffusion):
        parts = (compute_moments(basis, X[i : i + 77], WEIGHT[i : i + 77], diffusion) for i in range(0, N, 77))
        assert_same_moments(sum_moments(parts), compute_moments(basis, X, WEIGHT, diffusion))

    def test_empty_rows_are_zero(self, basis, diffusion):
        whole = compute_moments(basis, X, WEIGHT, diffusion)
        nothing = compute_moments(basis, X, WEIGHT, diffusion, rows=np.arange(0))
        assert_same_moments(whole + nothing, whole, rtol=0)

    def test_single_precision_is_read_as_double(self, basis):
        single = X.astype(np.float32)
        assert_same_moments(compute_moments(basis, single), compute_moments(basis, single.astype(np.float64)), rtol=0)

    def test_modes_are_projected_moments(self, basis, diffusion):
        rng = np.random.default_rng(4)
        V, offset = rng.standard_normal((basis.n_features, 3)), rng.standard_normal(3)
        full = compute_moments(basis, X, WEIGHT, diffusion)
        modes = compute_moments(ModeBasis(basis, V, offset), X, WEIGHT, diffusion)
        total = full.total @ V
        gram = V.T @ full.gram @ V - np.outer(total, offset) - np.outer(offset, total)
        gram += full.weight * np.outer(offset, offset)
        assert_allclose(modes.total, total - full.weight * offset, rtol=0, atol=1e-10 * np.abs(total).max())
        assert_allclose(modes.gram, gram, rtol=0, atol=1e-10 * np.abs(gram).max())
        energy = V.T @ full.energy @ V
        assert_allclose(modes.energy, energy, rtol=0, atol=1e-10 * np.abs(energy).max())
        ridge = np.eye(basis.n_features) if basis.ridge is None else basis.ridge
        assert_allclose(ModeBasis(basis, V, offset).ridge, V.T @ ridge @ V, rtol=1e-12)

    def test_tensors_of_some_samples(self, basis):
        A = np.random.default_rng(5).standard_normal((N, DIM, DIM))
        tensors = A @ np.swapaxes(A, 1, 2)
        rows = np.arange(3, N, 7)
        for value in (tensors, Factor(A), A[:, :, :2]):
            tensor = DiffusionTensor(value, DIM)
            part = compute_moments(basis, X[rows], WEIGHT[rows], tensor.at(X[rows], rows))
            assert_same_moments(part, compute_moments(basis, X, WEIGHT, tensor, rows=rows))
        with pytest.raises(ValueError, match="symmetric at every sample"):
            DiffusionTensor(A, DIM).at(X, slice(None))


class TestFarFromZero:
    @pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
    @pytest.mark.parametrize("name", BASES)
    def test_same_as_centred(self, name, kernel):
        # Shifting by 2^20 rounds X to 2^-32: samples are multiples of it, so that only the last bits of the origin
        # change.
        grid = np.round(X[:150] * 2**30) / 2**30
        shift = 2.0**20 * np.array([1.0, -1.0, 2.0])
        options = {"landmarks": "uniform", "random_state": 0}
        centred = compute_moments(make_basis(name, kernel, grid, P, **options), grid)
        shifted = compute_moments(make_basis(name, kernel, grid + shift, P, **options), grid + shift)
        # The origin is rounded to 2^-32 ~ 2e-10, times frequencies up to 100 for the rough kernels.
        assert_same_moments(shifted, centred, rtol=1e-7)

    @pytest.mark.parametrize("name", BASES)
    def test_same_modes(self, name):
        options = {"landmarks": "uniform", "random_state": 0}
        rates = []
        for samples in (X[:150], X[:150] + 1e6):
            basis = make_basis(name, Gaussian(1.5), samples, P, **options)
            rates.append(find_modes(compute_moments(basis, samples), basis.ridge, 3, 1e-2).rates)
        # Samples of size 1e6 are rounded to 1e-10.
        assert_allclose(rates[1], rates[0], rtol=1e-7)


class TestStatistics:
    def test_against_numpy(self):
        basis = make_basis("fourier", Gaussian(1.5), X, P, random_state=0)
        phi = basis.features(X)
        moments = compute_moments(basis, X, WEIGHT)
        assert_allclose(moments.mean, np.average(phi, axis=0, weights=WEIGHT), rtol=1e-11, atol=1e-13)
        assert_allclose(moments.covariance(), np.cov(phi.T, aweights=WEIGHT, ddof=0), rtol=0, atol=1e-13)
        second = np.einsum("n,np,nq->pq", WEIGHT, phi, phi) / WEIGHT.sum()
        assert_allclose(moments.covariance(center=False), second, rtol=0, atol=1e-13)
        assert_allclose(moments.mean_energy(), moments.energy / WEIGHT.sum(), rtol=1e-14)
        assert moments.count == N

    def test_effective_count(self):
        basis = make_basis("fourier", Gaussian(1.5), X, P, random_state=0)
        assert_allclose(compute_moments(basis, X).effective_count, N)
        # Half of the samples at weight 3, half at 0: N/2 count.
        assert_allclose(compute_moments(basis, X, np.repeat([3.0, 0.0], N // 2)).effective_count, N / 2)

    def test_covariance_does_not_change_the_moments(self):
        basis = make_basis("fourier", Gaussian(1.5), X, P, random_state=0)
        moments = compute_moments(basis, X)
        gram = moments.gram.copy()
        moments.covariance()
        assert_allclose(moments.gram, gram, rtol=0)


@st.composite
def random_moments(draw, p=3):
    """Whole numbers, so that sums are exact and laws can be required to hold exactly."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def whole(*shape):
        return rng.integers(-1000, 1000, shape).astype(float)

    return Moments(int(rng.integers(1, 100)), float(rng.integers(1, 100)), 7.0, whole(p), whole(p, p), whole(p, p))


class TestGroup:
    @given(random_moments(), random_moments(), random_moments())
    def test_laws(self, a, b, c):
        assert_same_moments((a + b) + c, a + (b + c), rtol=0)
        assert_same_moments(a + b, b + a, rtol=0)
        assert_same_moments((a + b) - b, a, rtol=0)
        assert_same_moments(a - a + b, b, rtol=0)
        assert_same_moments(sum_moments([a, b, c]), a + b + c, rtol=0)
