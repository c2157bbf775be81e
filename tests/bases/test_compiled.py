"""Waves and Gram matrices, compiled or not, against NumPy."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kdmaps.bases import _fourier as waves_module
from kdmaps.bases._fourier import LARGE_ARGUMENT, cos_sin
from kdmaps.bases.compiled import add_waves
from kdmaps.utils.blas import add_gram, add_product, mirror

TWO_UNITS = 2 * 2.0**-52  # in the last place of 1


def waves(angles, scale=None):
    out = np.full((angles.shape[0], 2 * angles.shape[1]), np.nan)
    cos_sin(angles, np.ones(angles.shape[0]) if scale is None else scale, out)
    return out


@pytest.mark.parametrize("few", [0, 2048], ids=["compiled", "NumPy"])
class TestCosSin:
    @pytest.fixture(autouse=True)
    def rows(self, monkeypatch, few):
        monkeypatch.setattr(waves_module, "FEW_ROWS", few)

    @pytest.mark.parametrize("size", [1e-300, 1e-8, 0.5, 10.0, 1e3, 0.999 * LARGE_ARGUMENT[np.dtype(float)], 1e7, 1e15])
    def test_against_numpy(self, size):
        angles = np.random.default_rng(0).uniform(-size, size, (200, 7))
        assert_allclose(waves(angles), np.hstack([np.cos(angles), np.sin(angles)]), rtol=0, atol=TWO_UNITS)

    def test_near_multiples_of_half_pi(self):
        # The argument reduction cancels here, which shows in the relative accuracy of the sine. Multiples up to 6e4
        # lose 1e-16 without the third part of π; with it, the error is about 1e-21.
        k = np.r_[np.arange(-400, 401), np.arange(-60_000, 60_001, 997)]
        angles = np.add.outer(k * np.pi / 2, [-1e-9, 0.0, 1e-9, np.pi / 4, np.pi / 4 + 1e-12])
        cosines, sines = np.hsplit(waves(angles), 2)
        assert_allclose(cosines, np.cos(angles), rtol=0, atol=TWO_UNITS)
        assert_allclose(sines, np.sin(angles), rtol=1e-12, atol=1e-20)

    def test_row_scale(self):
        rng = np.random.default_rng(1)
        for size in (3.0, 1e6):
            angles, scale = rng.uniform(-size, size, (30, 4)), rng.uniform(0, 5, 30)
            assert_allclose(waves(angles, scale), waves(angles) * scale[:, None], rtol=0, atol=5 * TWO_UNITS)

    def test_one_large_argument_among_small(self):
        angles = np.array([[0.1, 1e300], [-1e17, 2.0]])
        assert_allclose(waves(angles), np.hstack([np.cos(angles), np.sin(angles)]), rtol=0, atol=TWO_UNITS)

    def test_no_rows(self):
        assert waves(np.empty((0, 3))).shape == (0, 6)


class TestGram:
    @pytest.mark.parametrize(("n", "p"), [(1, 1), (1, 5), (7, 1), (50, 3), (64, 129), (300, 260)])
    def test_accumulates_the_lower_triangle(self, n, p):
        rng = np.random.default_rng(2)
        A, B, start = rng.standard_normal((n, p)), rng.standard_normal((n + 3, p)), rng.standard_normal((p, p))
        out = start.copy()
        add_gram(out, A)
        add_gram(out, B)
        expected = start + A.T @ A + B.T @ B
        # Sums of 2n products of order 1: rounding of at most about 2n·1e-16.
        assert_allclose(np.tril(out), np.tril(expected), rtol=0, atol=1e-12)
        assert_array_equal(np.triu(out, 1), np.triu(start, 1))
        product = start.copy()
        add_product(product, A, B[3:])
        assert_allclose(product, start + A.T @ B[3:], rtol=0, atol=1e-12)

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("block", [1, 7, 40, 100])
    def test_of_waves(self, block, dtype):
        rng = np.random.default_rng(5)
        Y, directions, root = (rng.uniform(0, 2, shape).astype(dtype) for shape in ((40, 3), (3, 6), 40))
        start = rng.standard_normal((12, 12))
        total, gram, work = np.ones(12), start.copy(), None if dtype == np.float64 else np.full((12, 12), 1e9, dtype)
        add_waves(Y, directions, root, np.empty((block, 6), dtype), np.empty((block, 12), dtype), total, gram, work)
        angles = Y.astype(float) @ directions
        z = np.hstack([np.cos(angles) - (dtype == np.float32), np.sin(angles)]) * root[:, None]
        # 40 terms up to 8, each rounded to half a unit, and rounding of angles up to 12.
        atol = 40 * 8 * 12 * np.finfo(dtype).eps
        assert_allclose(total, 1 + root @ z, rtol=0, atol=atol)
        assert_allclose(np.tril(gram), np.tril(start + z.T @ z), rtol=0, atol=atol)
        assert_array_equal(np.triu(gram, 1), np.triu(start, 1))

    @pytest.mark.parametrize("p", [1, 5, 127, 128, 129, 300])
    def test_mirror(self, p):
        A = np.random.default_rng(3).standard_normal((p, p))
        expected = np.tril(A) + np.tril(A, -1).T
        mirrored = mirror(A)
        assert mirrored is A
        assert_array_equal(mirrored, expected)


def test_small_fit_does_not_load_numba():
    """Loading numba takes half a second."""
    script = (
        "import sys, kdmaps\n"
        "X = kdmaps.problems.load('dw1d').sample(300, random_state=0)\n"
        "kdmaps.AdaptiveDiffusionMap(2, random_state=0).fit(X).transform(X)\n"
        "assert 'numba' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True)
