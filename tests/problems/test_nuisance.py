"""Nuisance coordinates against the base problem and Hermite polynomials."""

import numpy as np
import pytest

import kdmaps.problems as problems


@pytest.fixture(scope="module")
def base():
    return problems.load("triplewell2d")


@pytest.mark.parametrize("rotation", [None, 3])
@pytest.mark.parametrize("k", [1, 48])
def test_slow_modes_are_those_of_the_base(base, k, rotation):
    p = problems.nuisance(base, k, 0.25, rotation=rotation)
    assert p.dim == 2 + k
    assert p.n_modes == base.n_modes
    # The new coordinates have rate 16, beyond the first modes of the base.
    np.testing.assert_array_equal(p.rates(4), base.rates(4))
    X = p.sample(300, random_state=0)
    plain = X if rotation is None else X @ p.rotation
    np.testing.assert_allclose(p.reference(X, 4), base.reference(plain[:, :2], 4), atol=1e-10)
    np.testing.assert_allclose(plain[:, :2], base.sample(300, random_state=np.random.default_rng(0)), atol=1e-12)


def test_products_of_modes(assert_mean):
    well = problems.load("dw1d")
    p = problems.nuisance(well, 2, 0.5)
    first, second = well.rates(2)
    sums = [i + 4 * m + 4 * n for i in (0, *well.rates(6)) for m in range(4) for n in range(4)]
    np.testing.assert_allclose(p.rates(8), np.sort(sums)[1:9], rtol=1e-12)
    # Sorted: φ₁, φ₂, then z₁ and z₂ of rate 4, with z = x/0.5.
    assert first < second < 4 < well.rates(3)[2]
    X = p.sample(100_000, random_state=0)
    expected = np.hstack([well.eigenfunctions(X[:, :1], 2), 2 * X[:, 1:]])
    np.testing.assert_allclose(p.eigenfunctions(X, 4), expected, atol=1e-12)
    assert_mean(X[:, 1:] ** 2, 0.25)
    assert_mean(X[:, :1] * X[:, 1:], 0.0)


def test_rotation_rotates_everything(base):
    plain, rotated, other = (problems.nuisance(base, 3, 0.6, rotation=seed) for seed in (None, 0, 1))
    Q = rotated.rotation
    np.testing.assert_allclose(Q @ Q.T, np.eye(5), atol=1e-12)
    assert np.abs(Q - other.rotation).max() > 0.1
    X = plain.sample(50, random_state=1)
    np.testing.assert_allclose(rotated.sample(50, random_state=1), X @ Q.T, atol=1e-12)
    np.testing.assert_allclose(rotated.drift(X @ Q.T), plain.drift(X) @ Q.T, atol=1e-9)
    # The new coordinates, of rate 1/0.36 = 2.8, and their products with φ₁ are among these.
    np.testing.assert_array_equal(rotated.rates(9), plain.rates(9))
    np.testing.assert_allclose(rotated.eigenfunctions(X @ Q.T, 9), plain.eigenfunctions(X, 9), atol=1e-9)
    paths, turned = (p.simulate(5, 0.01, 3, x0=p.sample(3, 2), random_state=4) for p in (plain, rotated))
    np.testing.assert_allclose(turned, paths @ Q.T, atol=1e-9)


def test_diffusion_constant_of_the_base(assert_mean):
    p = problems.nuisance(problems.OrnsteinUhlenbeck([1.5], diffusion=0.1), 2, 0.2)
    assert p.diffusion == 0.1
    np.testing.assert_allclose(p.rates(4), [1.5, 2.5, 2.5, 3.0], rtol=1e-12)
    X = p.sample(50_000, random_state=0)
    assert_mean(X**2, [0.1 / 1.5, 0.04, 0.04])
    phi = p.eigenfunctions(X, 4)
    assert_mean(phi**2, 1.0)
    paths = p.simulate(2, 0.3, n_trajectories=50_000, x0=[0.1, 0.4, 0.0], random_state=0)[:, 1, 1:]
    decay = np.exp(-0.3 * 2.5)
    assert_mean(paths, [0.4 * decay, 0.0])
    assert_mean((paths - [0.4 * decay, 0.0]) ** 2, 0.04 * (1 - decay**2))


@pytest.mark.parametrize("name", ["circle", "sphere-3"])
@pytest.mark.parametrize("rotation", [None, 0])
def test_problems_without_a_drift(name, rotation, assert_mean):
    base = problems.load(name)
    p = problems.nuisance(base, 2, 0.1, rotation=rotation)
    assert not hasattr(p, "drift")
    np.testing.assert_array_equal(p.rates(3), base.rates(3))
    x0 = p.sample(20_000, random_state=0)
    paths = p.simulate(2, 0.05, n_trajectories=len(x0), x0=x0, random_state=1)
    np.testing.assert_array_equal(paths[:, 0], x0)
    # The new coordinates have rate 100 and forget: e^{-5}. The circle draws new noise instead of following its modes.
    end = paths[:, 1] if rotation is None else paths[:, 1] @ p.rotation
    assert_mean(end[:, -2:] ** 2, 0.01)
    assert_mean(p.eigenfunctions(paths[:, 1], 2), 0.0)


def test_names(base):
    p = problems.load("triplewell2d+198x0.1")
    assert p.name == "triplewell2d+198x0.1"
    assert p.dim == 200
    np.testing.assert_array_equal(
        p.sample(5, random_state=0), problems.nuisance(base, 198, 0.1).sample(5, random_state=0)
    )
    np.testing.assert_allclose(problems.load("dw1d+3").drift(np.ones((1, 4)))[:, 1:], -16)
    assert problems.nuisance(base, 198, 0.1).name == "triplewell2d+198x0.1"


@pytest.mark.parametrize("k", [0, -1, 2.5, True, "3"])
def test_bad_number(base, k):
    with pytest.raises(ValueError, match="k must"):
        problems.nuisance(base, k, 0.25)


@pytest.mark.parametrize("std", [0, -0.1, np.nan, "x"])
def test_bad_deviation(base, std):
    with pytest.raises(ValueError, match="std must"):
        problems.nuisance(base, 3, std)


def test_bad_problem():
    with pytest.raises(ValueError, match=r"problem must be a problem.*'triplewell2d'"):
        problems.nuisance("triplewell2d", 3, 0.25)
    for name in ("nowhere+3", "dw1d+", "dw1d+3x"):
        with pytest.raises(ValueError, match="Unknown problem name"):
            problems.load(name)
    with pytest.raises(ValueError, match="same diffusion constant"):
        problems.Product([problems.OrnsteinUhlenbeck([1.0]), problems.OrnsteinUhlenbeck([1.0], 0.5)])
