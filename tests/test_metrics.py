"""Agreement of subspaces and modes, against SciPy's subspace angles and closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.linalg import subspace_angles
from scipy.stats import ortho_group

from experiments.paper._protocol import average_abs_correlation
from kdmaps.metrics import align_modes, correlation_table, principal_angles, subspace_r2

N = 40
seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 5)


def gaussian(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def centred(values):
    return values - values.mean(axis=0)


def trigonometric(n=200):
    """Exactly orthonormal and centred columns √2 cos(kt), √2 sin(kt), k = 1, 2."""
    t = 2 * np.pi * np.arange(n) / n
    return np.sqrt(2) * np.column_stack([np.cos(t), np.sin(t), np.cos(2 * t), np.sin(2 * t)])


class TestSubspace:
    @given(seeds, sizes, sizes)
    def test_against_scipy(self, seed, r, big_r):
        values = gaussian(seed, N, r + big_r)
        modes, reference = values[:, :r], values[:, r:]
        angles = subspace_angles(centred(modes), centred(reference))
        score = subspace_r2(modes, reference)
        assert 0 <= score <= 1
        assert_allclose(score, np.mean(np.cos(angles) ** 2), atol=1e-12)
        assert_allclose(principal_angles(modes, reference), np.sort(angles), atol=1e-10)

    @given(seeds, sizes, sizes)
    def test_depends_on_the_spans_only(self, seed, r, big_r):
        rng = np.random.default_rng(seed)
        values = rng.standard_normal((N, r + big_r))
        modes, reference = values[:, :r], values[:, r:]
        mixed = modes @ ortho_group.rvs(r, random_state=rng) * rng.uniform(0.1, 10, r) if r > 1 else -3 * modes
        shifted = reference + rng.standard_normal(big_r)
        assert_allclose(subspace_r2(mixed, shifted), subspace_r2(modes, reference), atol=1e-11)

    @given(seeds, sizes)
    def test_same_span_is_one(self, seed, r):
        modes = gaussian(seed, N, r)
        mixed = modes @ (np.eye(r) + np.triu(gaussian(seed, r, r), 1)) + 7
        assert subspace_r2(mixed, modes) == pytest.approx(1, abs=1e-12)
        assert_allclose(principal_angles(mixed, modes), 0, atol=1e-10)

    @given(seeds, st.lists(st.integers(0, 3), min_size=N, max_size=N).filter(lambda w: np.count_nonzero(w) > 12))
    def test_weights_count_repetitions(self, seed, weight):
        values = gaussian(seed, N, 5)
        modes, reference = values[:, :2], values[:, 2:]
        repeated = np.repeat(values, weight, axis=0)
        expected = subspace_r2(repeated[:, :2], repeated[:, 2:])
        assert_allclose(subspace_r2(modes, reference, sample_weight=weight), expected, atol=1e-10)
        angles = principal_angles(repeated[:, :2], repeated[:, 2:])
        assert_allclose(principal_angles(modes, reference, sample_weight=weight), angles, atol=1e-8)

    @pytest.mark.parametrize("angle", [0.0, 1e-7, 0.3, 1.2, np.pi / 2])
    def test_known_angle(self, angle):
        # Modes cos 1, and sin 1 tilted by `angle` towards cos 2.
        f = trigonometric()
        modes = np.column_stack([f[:, 0], np.cos(angle) * f[:, 1] + np.sin(angle) * f[:, 2]])
        assert_allclose(principal_angles(modes, f[:, :2]), [0, angle], atol=1e-12)
        assert subspace_r2(modes, f[:, :2]) == pytest.approx((1 + np.cos(angle) ** 2) / 2)

    def test_complete_clusters(self):
        f = trigonometric()
        # One mode somewhere in a reference of four, and three of four modes in a reference of three.
        assert subspace_r2(f @ [[1], [2], [3], [4]], f) == pytest.approx(1)
        assert subspace_r2(f, f[:, :3]) == pytest.approx(1)
        # Two modes of which one is in the reference of three.
        assert subspace_r2(f[:, [0, 3]], f[:, :3]) == pytest.approx(0.5)

    def test_dependent_columns(self):
        f = trigonometric()
        repeated = f[:, [0, 0]]
        # A repeated mode finds one of two modes; a repeated reference function counts once.
        assert subspace_r2(repeated, f) == pytest.approx(0.5)
        assert subspace_r2(f[:, :2], f[:, [0, 1, 1]]) == pytest.approx(1)
        assert principal_angles(repeated, f).shape == (1,)

    @pytest.mark.parametrize("unit", [1e-200, 1e-8, 1e200])
    def test_units_do_not_matter(self, unit):
        values = gaussian(0, N, 4)
        expected = subspace_r2(values[:, :2], values[:, 2:])
        assert_allclose(subspace_r2(values[:, :2] * [unit, 1], values[:, 2:] * unit), expected, rtol=1e-10)


class TestAlignment:
    @given(seeds, st.integers(2, 5))
    def test_procrustes_undoes_a_rotation(self, seed, r):
        rng = np.random.default_rng(seed)
        q = np.linalg.qr(centred(rng.standard_normal((N, r))))[0] * np.sqrt(N)
        rotated = q @ ortho_group.rvs(r, random_state=rng) + 5
        assert_allclose(align_modes(rotated, q), q, atol=1e-9)

    @given(seeds, st.integers(2, 4))
    def test_procrustes_minimum(self, seed, r):
        """‖Ũ Q - U‖² reaches 2r - 2 tr Σ, and no other rotation is better."""
        rng = np.random.default_rng(seed)
        u, v = (np.linalg.qr(centred(rng.standard_normal((N, r))))[0] for _ in range(2))
        aligned = align_modes(u, v) / np.sqrt(N)
        minimum = 2 * r - 2 * np.linalg.svd(u.T @ v, compute_uv=False).sum()
        assert_allclose(np.sum((aligned - v) ** 2), minimum, atol=1e-10)
        assert np.sum((u @ ortho_group.rvs(r, random_state=rng) - v) ** 2) >= minimum - 1e-10
        assert subspace_r2(aligned, u) == pytest.approx(1)

    def test_procrustes_with_a_larger_reference(self):
        f = trigonometric()
        rotation = np.array([[0.6, -0.8], [0.8, 0.6]])
        assert_allclose(align_modes(f[:, [1, 3]] @ rotation, f), f[:, [1, 3]], atol=1e-12)

    def test_procrustes_with_a_smaller_reference(self):
        f = trigonometric()
        assert_allclose(align_modes(f @ ortho_group.rvs(4, random_state=0), f[:, 2:]), f[:, 2:], atol=1e-12)

    def test_procrustes_needs_independent_columns(self):
        f = trigonometric()
        with pytest.raises(ValueError, match="linearly independent"):
            align_modes(f[:, [0, 0]], f)
        with pytest.raises(ValueError, match="linearly independent"):
            align_modes(f[:, :2], f[:, [0, 0]])

    @given(st.permutations(range(4)), st.lists(st.sampled_from([-2.0, 0.5]), min_size=4, max_size=4))
    def test_hungarian_undoes_order_and_signs(self, order, scale):
        f = trigonometric()
        modes = f[:, order] * scale
        aligned = align_modes(modes, f, method="hungarian")
        assert_allclose(aligned, f * np.abs(np.array(scale)[np.argsort(order)]), atol=1e-12)

    def test_hungarian_maximises_the_sum(self):
        # Greedy would pair a with f0 (0.8) and leave b with f1 at 0; the best sum is a-f1, b-f0.
        f = trigonometric()
        a = 0.8 * f[:, 0] + 0.6 * f[:, 1]
        b = 0.7 * f[:, 0] + np.sqrt(0.51) * f[:, 2]
        modes = np.column_stack([a, -b])
        assert_allclose(correlation_table(modes, f[:, :2]), [[0.8, 0.6], [0.7, 0]], atol=1e-12)
        assert average_abs_correlation(modes, f[:, :2]) == pytest.approx(0.65)
        assert_allclose(align_modes(modes, f[:, :2], method="hungarian"), np.column_stack([b, a]))
        # Among all four functions, or for them, the best sum is a-f0, b-f2.
        assert_allclose(align_modes(modes, f, method="hungarian"), np.column_stack([a, b]))
        assert_allclose(align_modes(f, modes, method="hungarian"), np.column_stack([f[:, 0], -f[:, 2]]))

    @given(seeds, sizes, sizes)
    def test_table_against_numpy(self, seed, r, big_r):
        values = gaussian(seed, N, r + big_r)
        expected = np.abs(np.corrcoef(values, rowvar=False)[:r, r:])
        assert_allclose(correlation_table(values[:, :r], values[:, r:]), expected, atol=1e-12)
        weight = np.arange(N) % 4
        covariance = np.cov(values, rowvar=False, aweights=weight)
        scale = np.sqrt(np.diagonal(covariance))
        expected = np.abs(covariance / np.outer(scale, scale))[:r, r:]
        assert_allclose(correlation_table(values[:, :r], values[:, r:], weight), expected, atol=1e-12)

    def test_rejects_unknown_method(self):
        with pytest.raises(ValueError, match="hungarian"):
            align_modes(trigonometric(), trigonometric(), method="greedy")


@pytest.mark.parametrize("function", [subspace_r2, principal_angles, align_modes, correlation_table])
class TestArguments:
    def test_rejects_bad_arrays(self, function):
        good = gaussian(0, N, 2)
        bad = {
            "contains NaN": np.where(np.arange(N)[:, None] == 3, np.nan, good),
            "must have shape": good[:, 0],
            "more samples": good[:2],
            "is constant": np.column_stack([good[:, 0], np.full(N, 0.1)]),
        }
        for message, values in bad.items():
            with pytest.raises(ValueError, match=message):
                function(values, good)
            with pytest.raises(ValueError, match=message):
                function(good, values)

    def test_rejects_different_samples(self, function):
        with pytest.raises(ValueError, match="same points"):
            function(gaussian(0, N, 2), gaussian(0, N + 1, 2))


@pytest.mark.parametrize("weight", [np.ones(N - 1), np.zeros(N), -np.ones(N), np.full(N, np.nan)])
@pytest.mark.parametrize("function", [subspace_r2, principal_angles, correlation_table])
def test_rejects_bad_weights(function, weight):
    with pytest.raises(ValueError, match=r"(?i)sample.weight"):
        function(gaussian(0, N, 2), gaussian(1, N, 2), sample_weight=weight)
