"""Losses and network of the neural reference methods, where torch is there: `.venv-neural/bin/python -m pytest …`."""

import numpy as np
import pytest

from kdmaps import metrics, problems

torch = pytest.importorskip("torch")
losses = pytest.importorskip("benchmarks.neural._losses")


def outputs(r=3, d=2, n=50, seed=0):
    torch.manual_seed(seed)
    X = torch.randn(n, d, dtype=torch.float64)
    return X, losses.Network(X, r).double()


def test_gradients_equal_autograd():
    X, network = outputs()
    jacobian = torch.func.vmap(torch.func.jacrev(lambda x: network(x[None])[0][0]))(X)
    torch.testing.assert_close(network(X)[1], jacobian, rtol=1e-10, atol=1e-12)


def test_sums_in_parts_equal_the_whole_sum(monkeypatch):
    X, network = outputs()
    monkeypatch.setattr(losses, "PART", 7)  # the last part has one sample
    for found, expected in zip(losses._sums_in_parts(network, X), losses.sums(*network(X)), strict=True):
        torch.testing.assert_close(found, expected.detach(), rtol=1e-12, atol=1e-14)


def test_diverging_training_keeps_the_best_parameters(monkeypatch):
    system = problems.load("triplewell2d")
    X = system.sample(500, random_state=0)
    calls = []

    def loss(values, gradient):
        calls.append(1)
        return losses.neural_ef(values, gradient) * (1 if len(calls) <= 200 else np.nan)

    monkeypatch.setattr(losses, "STEPS", 400)
    found = losses.train(X, 2, 0, loss, 1e-3, 60)[0](X)
    monkeypatch.setattr(losses, "STEPS", 200)
    expected = losses.train(X, 2, 0, losses.neural_ef, 1e-3, 60)[0](X)
    np.testing.assert_array_equal(found, expected)


def exact(n=200_000):
    """Return the first three modes of an Ornstein–Uhlenbeck process (rates 1, 2, 3) and their gradients."""
    x = torch.as_tensor(problems.OrnsteinUhlenbeck((1,)).sample(n, random_state=0))
    values = torch.cat([x, (x**2 - 1) / 2**0.5, (x**3 - 3 * x) / 6**0.5], 1)
    gradient = torch.stack([torch.ones_like(x), 2 * x / 2**0.5, (3 * x**2 - 3) / 6**0.5], 1)
    return values, gradient


def test_losses_of_the_exact_modes():
    values, gradient = exact()
    # Minus the sum of time scales, and the weighted sum of rates; Monte-Carlo errors of fourth and sixth moments.
    assert float(losses.neural_ef(values, gradient)) == pytest.approx(-(1 + 1 / 2 + 1 / 3), rel=0.02)
    assert float(losses.deep_ritz(values, gradient)) == pytest.approx(1 + 0.75 * 2 + 0.5 * 3, rel=0.02)


@pytest.mark.parametrize("loss", ["neural_ef", "deep_ritz"])
def test_a_mixture_of_modes_is_worse(loss):
    values, gradient = exact()
    turn = torch.linalg.qr(torch.as_tensor(np.random.default_rng(0).normal(size=(3, 3))))[0]
    function = getattr(losses, loss)
    mixed = function(values @ turn, torch.einsum("nid,ij->njd", gradient, turn))
    assert float(mixed) > float(function(values, gradient)) + 0.05


@pytest.mark.parametrize("loss", ["neural_ef", "deep_ritz"])
def test_training_finds_the_slow_modes(loss):
    system = problems.load("triplewell2d")
    X = system.sample(2000, random_state=0)
    modes, rates = losses.train(X, 2, 0, getattr(losses, loss), 3e-3, seconds=5.0)
    # Far above what an untrained network of this size has (about 0.6).
    assert metrics.subspace_r2(modes(X), system.reference(X, 2)) > 0.95
    np.testing.assert_allclose(rates, system.rates(2), rtol=0.25)
