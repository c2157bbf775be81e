"""Tangent spaces, their dimension, the floor, and the energy on them."""

import warnings

import numpy as np
import pytest

import kdmaps
from kdmaps import TangentDiffusion
from kdmaps.bases import BASES, ModeBasis, make_basis
from kdmaps.forms.diffusion import DiffusionTensor
from kdmaps.forms.energy import compute_moments
from kdmaps.forms.tangent import TangentSpaces, TangentTensor
from kdmaps.kernels import make_kernel
from kdmaps.metrics import subspace_r2
from shared import adaptive, expects, known


def sphere(n, dim, seed=0):
    return kdmaps.problems.load(f"sphere-{dim}").sample(n, random_state=seed)


def circle(n, noise, seed=0):
    return kdmaps.problems.NoisyCircle(noise).sample(n, random_state=seed)


def plane(n, dim, noise, seed=0):
    """A square in R^dim, turned, with noise in all directions."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    flat = np.hstack([rng.uniform(-1, 1, (n, 2)), np.zeros((n, dim - 2))])
    return (flat + noise * rng.standard_normal((n, dim))) @ turn


def helix(n, seed=0):
    t = np.random.default_rng(seed).uniform(0, 4 * np.pi, n)
    return np.column_stack([np.cos(t), np.sin(t), t / 3])


def tensors(spaces, X):
    """D = P + ε(I-P) as explicit matrices."""
    F = spaces.frames(X)
    P = F @ np.swapaxes(F, 1, 2)
    P = np.eye(X.shape[1]) - P if spaces.normal else P
    return P + spaces.floor * (np.eye(X.shape[1]) - P)


class TestSpaces:
    @pytest.mark.slow
    @pytest.mark.parametrize(("dim", "n", "most"), [(3, 2000, 1e-3), (5, 2000, 6e-3), (19, 5000, 2e-2)])
    def test_exact_tangents_of_the_sphere(self, dim, n, most):
        # The exact normal is x. The squared sine of the angle is of order ε·m/k: normal deviations of relative variance
        # ε tilt each of m directions, independently over k neighbours.
        X = sphere(n, dim)
        spaces = TangentDiffusion().fit(X)
        assert spaces.dimension == dim - 1
        cosine = np.einsum("nd,nd->n", X[:500], spaces.frames(X[:500])[:, :, 0])
        error = np.mean(1 - cosine**2)
        assert error < most
        assert error < 2 * spaces.floor * spaces.dimension / spaces.n_neighbors

    def test_error_decreases_with_the_number_of_samples(self):
        # At fixed k on a surface h² falls as 1/N, and so do ε and the squared angle.
        errors = []
        for n in (500, 5000):
            X = sphere(n, 3)
            frames = TangentDiffusion(n_neighbors=30).fit(X).frames(X)
            errors.append(np.mean(1 - np.einsum("nd,nd->n", X, frames[:, :, 0]) ** 2))
        assert 6 < errors[0] / errors[1] < 16

    def test_new_points_and_tangent_frames(self):
        # A curve: the frame has one column, along the derivative (-sin, cos, 1/3).
        spaces = TangentDiffusion().fit(helix(2000))
        t = np.linspace(1, 11, 50)
        points = np.column_stack([np.cos(t), np.sin(t), t / 3])
        exact = np.column_stack([-np.sin(t), np.cos(t), np.full(50, 1 / 3)]) / np.sqrt(1 + 1 / 9)
        frames = spaces.frames(points)
        assert frames.shape == (50, 3, 1)
        # The chord over a neighbourhood of half width h deviates by less than h.
        h = 4 * np.pi * spaces.n_neighbors / 2000
        assert np.all(np.abs(np.einsum("nd,nd->n", frames[:, :, 0], exact)) > 1 - h**2)

    def test_fewer_neighbours_than_columns(self):
        # k×k instead of d×d products, the same space.
        rng = np.random.default_rng(0)
        X = helix(300) @ rng.standard_normal((3, 40)) + 1e-3 * rng.standard_normal((300, 40))
        spaces = TangentDiffusion(dimension=2, n_neighbors=15).fit(X)
        frames = spaces.frames(X[:20])
        for x, F in zip(X[:20], frames, strict=True):
            near = spaces.samples[np.argsort(np.linalg.norm(spaces.samples - x, axis=1))[:15]]
            exact = np.linalg.svd(near - near.mean(axis=0))[2][:2].T
            np.testing.assert_allclose(F @ F.T, exact @ exact.T, atol=1e-10)

    def test_repetitions_and_zero_weights_are_ignored(self):
        X = sphere(300, 3)
        weight = np.ones(400)
        weight[300:] = 0
        plain = TangentDiffusion().fit(X)
        other = TangentDiffusion().fit(np.vstack([X, X[:50], 5 * X[:50]]), np.append(weight[:350], np.zeros(50)))
        np.testing.assert_array_equal(plain.frames(X), other.frames(X))

    def test_bounded_memory(self):
        spaces = TangentDiffusion(max_samples=200).fit(circle(1000, 1e-6))
        assert len(spaces.samples) == 200
        assert spaces.dimension == 1


MANIFOLDS = {
    "noisy circle": (circle(500, 0.05), 1),
    "many samples of a noisy circle": (circle(8000, 0.05), 1),
    "sphere": (sphere(500, 3), 2),
    "sphere in R^11": (sphere(2000, 11), 10),
    "plane and noise": (plane(1000, 5, 0.05), 2),
    "plane and more columns": (plane(1000, 30, 0.02), 2),
    "helix": (helix(1000), 1),
}


class TestDimension:
    @pytest.mark.parametrize("name", MANIFOLDS)
    @pytest.mark.slow
    def test_manifolds(self, name):
        X, dimension = MANIFOLDS[name]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert TangentDiffusion().fit(X).dimension == dimension

    @pytest.mark.parametrize("dim", [2, 3, 10])
    @pytest.mark.parametrize("n", [100, 2000])
    def test_samples_that_fill_the_space(self, n, dim):
        X = np.random.default_rng(n).standard_normal((n, dim))
        with expects("no-tangent-spaces"):
            spaces = TangentDiffusion().fit(X)
        assert spaces.dimension == dim
        tensor = TangentTensor(spaces)
        np.testing.assert_array_equal(tensor.constant, 1)
        assert tensor.rows(X, slice(None)) == (None, None)

    def test_one_column(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert TangentDiffusion().fit(np.linspace(0, 1, 50)[:, None]).dimension == 1


class TestFloor:
    def test_ratio_of_variances(self):
        # With the normal direction known, the ratio is the variance across over the mean variance along.
        rng = np.random.default_rng(0)
        X = np.column_stack([rng.uniform(size=(4000, 2)), 0.02 * rng.standard_normal(4000)])
        spaces = TangentDiffusion(n_neighbors=100).fit(X)
        near = [X[np.argsort(np.linalg.norm(X - x, axis=1))[:100]] for x in X[::20]]
        x, y, across = np.mean([part.var(axis=0) for part in near], axis=0)
        # Principal components take m/k (1 + ε) = 2.4 % from the smallest variance; the rest is for other probes.
        assert spaces.floor == pytest.approx(0.976 * across / ((x + y) / 2), rel=0.04)

    def test_decreases_with_samples_of_a_clean_manifold_only(self):
        clean = [TangentDiffusion().fit(circle(n, 1e-6)).floor for n in (500, 2000)]
        noisy = [TangentDiffusion().fit(circle(n, 0.05)).floor for n in (500, 2000)]
        assert clean[0] / clean[1] == pytest.approx(16, rel=0.25)  # h² at fixed k on a curve
        assert min(noisy) > 0.05

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", [0, 1])
    @known("no-gap")  # without a floor
    def test_noisy_circle(self, seed):
        X = circle(500, 0.05, seed)
        reference = kdmaps.problems.load("circle").reference(X, 4)
        fits = [
            kdmaps.KernelSearchCV(
                4,
                families=["gaussian"],
                bandwidths=5,
                max_extensions=0,
                random_state=seed,
                diffusion=TangentDiffusion(floor=floor),
            ).fit(X)
            for floor in ("auto", 0.0)
        ]
        quality = [subspace_r2(fit.transform(X), reference) for fit in fits]
        assert quality[0] >= 0.98
        assert quality[1] < 0.9  # without a floor radial functions are free


class TestEnergy:
    @pytest.mark.parametrize("kernel", ["gaussian", "matern32", "laplacian"])
    @pytest.mark.parametrize("name", BASES)
    @pytest.mark.parametrize("dimension", [1, 2])
    def test_against_explicit_tensors(self, name, kernel, dimension):
        rng = np.random.default_rng(1)
        X, weight = sphere(150, 3), rng.uniform(0.5, 2, 150)
        spaces = TangentDiffusion(dimension=dimension, n_neighbors=20, floor=0.1).fit(X)
        assert spaces.normal == (dimension == 2)
        basis = make_basis(name, make_kernel(kernel, 1.5), X, 30, random_state=0)
        explicit = compute_moments(basis, X, weight, DiffusionTensor(tensors(spaces, X), 3))
        for tensor in (TangentTensor(spaces), TangentTensor(spaces).at(X, slice(None))):
            found = compute_moments(basis, X, weight, tensor)
            scale = np.abs(explicit.energy).max()
            np.testing.assert_allclose(found.energy, explicit.energy, atol=1e-12 * scale)
            np.testing.assert_allclose(found.gram, explicit.gram, rtol=1e-13)

    @pytest.mark.parametrize("dimension", [1, 2])
    def test_modes_and_some_rows(self, dimension):
        X, rows = sphere(150, 3), np.arange(5, 120, 3)
        spaces = TangentDiffusion(dimension=dimension, floor=0.1).fit(X)
        full = make_basis("fourier", make_kernel("gaussian", 1.5), X, 30, random_state=0)
        basis = ModeBasis(full, np.random.default_rng(0).standard_normal((30, 4)), np.zeros(4))
        explicit = compute_moments(basis, X, None, DiffusionTensor(tensors(spaces, X), 3), rows)
        found = compute_moments(basis, X, None, TangentTensor(spaces).at(X, slice(None)), rows)
        np.testing.assert_allclose(found.energy, explicit.energy, rtol=1e-11)

    def test_energy_of_radial_functions_is_the_floor(self):
        # |∇r|² = 1, and the normal of a sphere is radial: E = ε + (1-ε) sin² of the angle between them.
        X = sphere(2000, 3)
        spaces = TangentDiffusion().fit(X)
        radial = np.einsum("nd,nde,ne->n", X, tensors(spaces, X), X)
        assert spaces.floor <= radial.mean() < 1.3 * spaces.floor


class TestEstimators:
    @known("mismatch")
    @known("ridge")  # linear modes need a kernel so wide
    def test_rates_of_the_sphere(self):
        # A kernel so wide that modes are linear, v·x: E|v|²/Var = 3 in space, 2 on the sphere. The variance of three
        # coordinates of 3000 samples is 1/3 to √(0.8/3000) of itself, 1.6 %; ε and tilted tangents add 1 %.
        X = sphere(3000, 3)
        ambient, tangent = (
            kdmaps.KernelDiffusionMap(3, bandwidth=50.0, diffusion=diffusion, random_state=0).fit(X)
            for diffusion in (None, "tangent")
        )
        np.testing.assert_allclose(ambient.rates_, 3, rtol=0.05)
        np.testing.assert_allclose(tangent.rates_, 2, rtol=0.05)
        assert tangent.tangents_.dimension == 2
        assert ambient.tangents_ is None

    def test_score_on_new_samples_uses_the_training_tangents(self):
        X, new = sphere(600, 3), sphere(40, 3, seed=1)
        m = kdmaps.KernelDiffusionMap(3, diffusion="tangent", random_state=0).fit(X)
        assert m.score(new) == pytest.approx(m.score(new, diffusion=tensors(m.tangents_, new)), rel=1e-10)
        assert m.score(new) > m.score(new, diffusion=1.0)

    def test_chunks_share_the_tangents_of_the_first(self):
        X = sphere(900, 3)
        streamed = kdmaps.KernelDiffusionMap(3, diffusion="tangent", bandwidth=1.5, random_state=0)
        for part in (X[:500], X[500:]):
            streamed.partial_fit(part)
        assert len(streamed.tangents_.samples) == 500
        whole = kdmaps.KernelDiffusionMap(3, bandwidth=1.5, random_state=0).partial_fit(
            X[:500], diffusion=tensors(streamed.tangents_, X[:500])
        )
        whole.partial_fit(X[500:], diffusion=tensors(streamed.tangents_, X[500:]))
        np.testing.assert_allclose(streamed.rates_, whole.rates_, rtol=1e-9)

    @pytest.mark.slow
    @pytest.mark.parametrize("diffusion", ["tangent", TangentDiffusion(dimension=1, floor=0.2)])
    def test_every_estimator(self, diffusion, tmp_path):
        X = circle(800, 0.05)
        shared = {"n_components": 2, "diffusion": diffusion, "random_state": 0}
        search = {"families": ["gaussian"], "regularizations": [1e-3, 1e-2]}
        for estimator in (
            kdmaps.KernelSearchCV(bandwidths=3, max_extensions=0, **search, **shared),
            adaptive(max_search_samples=200, refine=False, **search, **shared),
            kdmaps.VariationalKernelMap(basis="fourier", adam_steps=2, lbfgs_steps=2, **shared),
            kdmaps.VariationalKernelMap(learn_bandwidths=False, adam_steps=2, lbfgs_steps=2, **shared),
        ):
            estimator.fit(X)
            assert estimator.tangents_.dimension == 1
            # cos θ and sin θ have the rate 1, to three standard errors √(1/800) of their variance.
            np.testing.assert_allclose(estimator.rates_, 1, rtol=0.11)
            estimator.save(tmp_path / "model.npz")
            loaded = kdmaps.load(tmp_path / "model.npz")
            assert loaded.diffusion == diffusion
            assert loaded.score(X[:50]) == pytest.approx(estimator.score(X[:50]), rel=1e-10)

    @pytest.mark.parametrize("weighted", [False, True])
    def test_spaces_do_not_depend_on_the_storage_of_samples(self, tmp_path, weighted):
        X = circle(600, 0.05)
        weight = np.where(np.arange(600) % 3, 1.0, 0.0) if weighted else None
        np.save(tmp_path / "X.npy", X)
        model = kdmaps.KernelDiffusionMap(2, diffusion=TangentDiffusion(max_samples=200), random_state=0)
        inside = model.fit(X, sample_weight=weight).tangents_
        for source in (tmp_path / "X.npy", lambda: iter(np.array_split(X, 7))):
            outside = model.fit(source, sample_weight=weight).tangents_
            np.testing.assert_array_equal(outside.samples, inside.samples)
            assert outside.floor == inside.floor
        assert len(inside.samples) == 200

    @pytest.mark.slow
    def test_bandwidths_at_landmarks_cannot_be_learned(self):
        with pytest.raises(ValueError, match="basis='fourier'"):
            kdmaps.VariationalKernelMap(2, diffusion="tangent").fit(circle(200, 0.05))

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ("tangents", "diffusion must be None, 'tangent'"),
            (TangentDiffusion(dimension=3), "dimension must be None or an integer from 1 to"),
            (TangentDiffusion(dimension=1.5), "dimension must be"),
            (TangentDiffusion(dimension=1, n_neighbors=1), "n_neighbors must be"),
            (TangentDiffusion(floor=2.0), "floor must be 'auto'"),
            (TangentDiffusion(max_samples=0), "max_samples must be"),
        ],
    )
    def test_bad_arguments(self, wrong, message):
        with pytest.raises(ValueError, match=message):
            kdmaps.KernelDiffusionMap(2, diffusion=wrong).fit(circle(100, 0.05))

    def test_damaged_file(self, tmp_path):
        m = kdmaps.KernelDiffusionMap(2, diffusion="tangent", random_state=0).fit(circle(300, 0.05))
        m.tangents_ = TangentSpaces(m.tangents_.samples, 3, 20, 0.1)
        m.save(tmp_path / "model.npz")
        with pytest.raises(ValueError, match="tangent spaces are impossible"):
            kdmaps.load(tmp_path / "model.npz")
