"""The sum over samples in single precision, in little memory, in many pieces."""

import re
import subprocess
import sys
import warnings
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import KFold

import kdmaps
from kdmaps import KernelDiffusionMap, KernelSearchCV, problems
from kdmaps.bases import make_basis
from kdmaps.bases._fourier import LARGE_ARGUMENT, cos_sin
from kdmaps.forms.diffusion import DiffusionTensor
from kdmaps.forms.energy import compute_moments
from kdmaps.forms.moments import Moments, add_exactly
from kdmaps.kernels import Gaussian
from kdmaps.metrics import subspace_r2
from shared import assert_same_moments, diffusion_arguments, expects, known, traced_peak

N, DIM = 300, 3
X = np.random.default_rng(0).standard_normal((N, DIM)) * [1.0, 0.7, 0.4] + 100
WEIGHT = np.random.default_rng(1).uniform(0, 2, N)
FIELDS = diffusion_arguments(X, "none", "matrix", "callable-scalars", "callable-matrices")


@pytest.mark.slow
def test_jax_is_not_imported_by_default():
    script = (
        "import sys, numpy as np, kdmaps\n"
        "kdmaps.KernelDiffusionMap(1, n_features=10).fit(np.random.default_rng(0).standard_normal((50, 2)))\n"
        "assert 'jax' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True)


class TestSinglePrecision:
    @pytest.mark.parametrize("size", [1e-10, 0.5, 10.0, 1e3, 0.999 * LARGE_ARGUMENT[np.dtype(np.float32)], 1e6])
    def test_cos_sin(self, size):
        angles = np.random.default_rng(0).uniform(-size, size, (200, 7)).astype(np.float32)
        angles[0] = np.float32(np.pi / 2) * np.arange(-3, 4) if size > 0.6 else 0
        out = np.empty((200, 14), np.float32)
        cos_sin(angles, np.ones(200, np.float32), out)
        exact = np.hstack([np.cos(angles.astype(float)), np.sin(angles.astype(float))])
        assert_allclose(out, exact, rtol=0, atol=2 * 2.0**-23)  # two units in the last place of 1
        cos_sin(angles, np.ones(200, np.float32), out, shift=1.0)
        exact[:, :7] = -2 * np.sin(angles.astype(float) / 2) ** 2
        # Relative to itself where the cosine is close to 1.
        assert_allclose(out, exact, rtol=4e-7, atol=0 if size < 0.6 else 2 * 2.0**-23)

    @pytest.mark.parametrize("diffusion", FIELDS)
    @pytest.mark.parametrize("name", ["fourier", "random-phase"])
    def test_moments(self, name, diffusion):
        basis = make_basis(name, Gaussian(1.5), X, 24, random_state=0)
        tensor = DiffusionTensor(FIELDS[diffusion], DIM)
        single = compute_moments(basis.astype("float32"), X, WEIGHT, tensor)
        assert_same_moments(single, compute_moments(basis, X, WEIGHT, tensor), 2e-6)

    def test_rounding_does_not_grow_with_chunks(self, monkeypatch):
        # In float32 a running sum of 1000 chunks would lose 1e-6 and more; here every chunk loses the same.
        monkeypatch.setattr("kdmaps.bases._base.CHUNK_BYTES", 0)  # 64 rows
        basis = make_basis("fourier", Gaussian(1.0), X[:1], 2, random_state=0).astype("float32")
        Z = np.full((64 * 1000, DIM), 100.3)
        assert_allclose(compute_moments(basis, Z).gram, 1000 * compute_moments(basis, Z[:64]).gram, rtol=1e-12)

    @known("mismatch")
    @pytest.mark.parametrize("problem", ["ou2d-4", "dw1d", "circle"])
    @known("ridge")  # kernels so wide that cosines are nearly 1
    @known("unresolved")
    def test_modes(self, problem):
        Z = problems.load(problem).sample(2000, random_state=0)
        double, single = (
            KernelDiffusionMap(4, n_features=200, random_state=0, bandwidth=5.0, dtype=dtype).fit(Z)
            for dtype in ("float64", "float32")
        )
        assert single.basis_.dtype == np.float32
        assert subspace_r2(single.transform(Z), double.transform(Z)) > 1 - 1e-8
        # Without the shift of the cosines, the fourth rate of the double well is off by half.
        assert_allclose(single.rates_, double.rates_, rtol=2e-3)

    @known("mismatch")
    @known("ridge")
    @known("unresolved")
    def test_warns_of_modes_lost_to_rounding(self):
        Z = problems.load("dw1d").sample(2000, random_state=0)
        model = KernelDiffusionMap(4, n_features=200, random_state=0, regularization=1e-3, dtype="float32")
        with expects("single-precision"):
            model.set_params(bandwidth=22.0).fit(Z)
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "Single precision")
            model.set_params(bandwidth=4.0).fit(Z)
            model.set_params(bandwidth=22.0, dtype="float64").fit(Z)

    def test_landmarks_need_double_precision(self):
        with pytest.raises(ValueError, match="dtype='float32' needs Fourier features"):
            KernelDiffusionMap(2, basis="landmarks", dtype="float32").fit(X)


class TestParameters:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"dtype": "float16"}, "dtype must be .* got 'float16'"),
            ({"memory_limit": -1}, "memory_limit must be .* got -1"),
            ({"memory_limit": "1GB"}, "memory_limit must be .* got '1GB'"),
            ({"memory_limit": 1, "n_features": 400}, "memory_limit=1 MB is too small for 400 features"),
        ],
    )
    def test_bad(self, parameters, message):
        with pytest.raises(ValueError, match=message):
            KernelDiffusionMap(2, **parameters).fit(X)

    @pytest.mark.slow
    @known("no-gap")
    def test_saved(self, tmp_path):
        model = KernelDiffusionMap(2, n_features=20, random_state=0, dtype=np.float32, memory_limit=40).fit(X)
        model.save(tmp_path / "model.npz")
        again = kdmaps.load(tmp_path / "model.npz")
        assert (again.dtype, again.memory_limit) == ("float32", 40)
        assert again.basis_.dtype == np.float32
        assert_array_equal(again.transform(X), model.transform(X))
        assert_array_equal(again.partial_fit(X).rates_, model.partial_fit(X).rates_)

    @pytest.mark.slow
    def test_search_uses_them(self):
        grid = {"n_components": 2, "families": ["gaussian"], "bandwidths": 2, "n_features": 30, "random_state": 0}
        scores = KernelSearchCV(**grid).fit(X).cv_results_["selection_score"]
        search = KernelSearchCV(**grid, dtype="float32", memory_limit=50).fit(X)
        assert search.best_estimator_.basis_.dtype == np.float32
        assert search.best_estimator_.memory_limit == 50
        difference = np.abs(search.cv_results_["selection_score"] / scores - 1)
        assert 1e-12 < difference.max() < 1e-2  # another precision, similar scores


def megabytes(function):
    return traced_peak(function) / 2**20


@pytest.mark.parametrize("basis", ["fourier", "landmarks"])
@pytest.mark.parametrize(("p", "limit"), [(100, 3), (200, 5)])
@pytest.mark.slow
def test_peak_memory_is_below_the_limit(basis, p, limit, monkeypatch):
    Z = np.random.default_rng(2).standard_normal((20_000, 4)) * [1.0, 0.8, 0.5, 0.5]
    model = KernelDiffusionMap(2, n_features=p, basis=basis, bandwidth=3.0, landmarks=Z[:p], random_state=0)
    model.fit(Z[:2000])  # compiled code is not data
    peaks, rows, step = [], [], type(model.basis_).step

    def recorded(self, state, chunk, *others):
        rows[-1] = max(rows[-1], len(chunk))
        step(self, state, chunk, *others)

    monkeypatch.setattr(type(model.basis_), "step", recorded)
    for memory_limit in (None, limit):
        model.set_params(memory_limit=memory_limit)
        rows.append(0)
        peaks.append(megabytes(lambda: model.fit(Z)))
    assert rows[1] * model.basis_.row_bytes < limit * 2**20 < rows[0] * model.basis_.row_bytes
    preview = 3 * 10_000 * 4 * 8 / 2**20  # samples: the subsample, its centred copy and its distances
    # The data check before a fit needs 5,000 rows and their distinct values, and two matrices of distances between the
    # 1,000 rows from which it finds detached ones.
    limit = max(limit, 4) + 2 * 1000**2 * 8 / 2**20
    assert peaks[1] < limit + preview
    # Features are summed in blocks that fit the cache, so that a limit saves little.
    assert peaks[1] <= peaks[0] + 0.1


@pytest.mark.parametrize("cv", [3, KFold(5)], ids=["drawn twice", "five folds"])
@pytest.mark.slow
def test_memory_limit_counts_folds(cv):
    Z = np.random.default_rng(2).standard_normal((4000, 3)) * [1.0, 0.8, 0.5]
    settings = {"n_features": 300, "bandwidth": 1.0, "rates": "cross-fitted", "cv": cv, "random_state": 0}
    with pytest.raises(ValueError, match=r"memory_limit=20 MB is too small for 300 features .* increase it") as error:
        KernelDiffusionMap(2, memory_limit=20, **settings).fit(Z)
    needed = float(re.search(r"need (\d+) MB", str(error.value))[1])
    model = KernelDiffusionMap(2, memory_limit=needed + 1, **settings).fit(Z)
    assert 0.4 * needed < megabytes(lambda: model.fit(Z)) < needed


@pytest.mark.slow
@known("extrapolation")
def test_memory_limit_of_transform_and_score():
    # With landmarks, all features of a chunk are in memory at once; Fourier features never are.
    Z = np.random.default_rng(2).standard_normal((20_000, 4)) * [1.0, 0.8, 0.5, 0.5]
    model = KernelDiffusionMap(2, n_features=100, basis="landmarks", bandwidth=3.0, landmarks=Z[:100])
    modes = model.fit(Z[:2000]).transform(Z)
    result = 2 * modes.nbytes / 2**20  # the modes, and the chunks that are joined to them
    score = model.score(Z)
    for limit, function, own in ((2, model.transform, result), (0.9, model.score, 0.0)):
        model.set_params(memory_limit=None)
        free = megabytes(lambda function=function: function(Z))
        model.set_params(memory_limit=limit)
        assert megabytes(lambda function=function: function(Z)) < limit + own < free
    assert_allclose(model.transform(Z), modes, rtol=1e-12, atol=1e-12)
    assert model.score(Z) == pytest.approx(score, rel=1e-12)


class TestExactSums:
    @pytest.mark.slow
    def test_against_exact_arithmetic(self):
        # 20,000 parts of very different size: plain addition loses 1e-13 and more, compensated addition nothing.
        values = np.random.default_rng(3).standard_normal(20_000) * 10.0 ** np.random.default_rng(4).integers(
            -6, 6, 20_000
        )
        parts = [Moments(1, 1.0, 1.0, np.array([v]), np.array([[abs(v)]]), np.array([[v / 3]])) for v in values]
        total, carry = parts[0], None
        for part in parts[1:]:
            total, carry = add_exactly(part, total, carry)
        for name in ("total", "gram", "energy"):
            exact = float(sum(Fraction(getattr(part, name).item()) for part in parts))
            assert getattr(total, name).item() == pytest.approx(exact, rel=3e-16)
        assert total.count == 20_000

    @pytest.mark.slow
    def test_chunks_too_light_for_one_addition(self):
        # Each chunk is below half a unit in the last place of the first: added one by one, all 400 would be lost.
        Z, light = np.random.default_rng(6).standard_normal((80, 1)) + 1e4, 1e-17
        model = KernelDiffusionMap(1, bandwidth=2.0, n_features=8, random_state=0).partial_fit(Z)
        for _ in range(400):
            model.partial_fit(Z[:40], sample_weight=np.full(40, light))
        first, light_chunk = (compute_moments(model.basis_, *part) for part in ((Z,), (Z[:40], np.full(40, light))))
        for name in ("weight", "total", "gram", "energy"):
            exact = np.longdouble(getattr(first, name)) + 400 * np.longdouble(getattr(light_chunk, name))
            # Half a unit from rounding the sum, and a little from rounding the carry; plain sums would lose 2e-15.
            assert_allclose(getattr(model.moments_, name), np.float64(exact), rtol=2.3e-16, err_msg=name)

    @pytest.mark.slow
    def test_many_chunks_far_from_zero(self):
        # Chunks of any size in any order, with a mean of 1e4 standard deviations.
        rng = np.random.default_rng(5)
        Z = rng.standard_normal((200_000, 1)) + 1e4
        model = KernelDiffusionMap(2, bandwidth=2.0, n_features=8, random_state=0)
        first, rest = Z[:1000], Z[1000:]
        whole = model.partial_fit(first).partial_fit(rest).moments_
        rates = model.rates_
        pieces = np.split(rest, np.sort(rng.choice(len(rest), 300, replace=False)))
        again = KernelDiffusionMap(2, bandwidth=2.0, n_features=8, random_state=0).partial_fit(first)
        for k in rng.permutation(len(pieces)):
            again.partial_fit(pieces[k])
        phi = model.basis_.features(Z).astype(np.longdouble)
        exact = phi.T @ phi
        for moments in (whole, again.moments_):
            # Rounding of features (1e-16 each, random) and of some 600 sums of blocks, in one chain.
            assert_allclose(moments.gram, exact.astype(float), rtol=0, atol=5e-15 * float(np.abs(exact).max()))
            assert_allclose(moments.total, phi.sum(axis=0).astype(float), rtol=0, atol=2e-15 * len(Z))
        assert_allclose(again.rates_, rates, rtol=1e-11)
