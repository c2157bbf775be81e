"""Two losses for the slow modes of a diffusion, on one network: NeuralEF and Deep Ritz, for the Dirichlet energy.

Both depend on samples only through covariance C_ij = Cov(f_i, f_j) and energy E_ij = E[∇f_i · ∇f_j] of the outputs.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable

import numpy as np
import torch
from scipy.linalg import eigh

WIDTH, BATCH, STEPS, CHECK_EVERY, HELD_OUT = 64, 512, 20_000, 50, 0.2
#: Samples whose gradients are in memory together, outside of the training.
PART = 5000
#: Weight of the orthonormality in Deep Ritz: above the largest wanted rate, or a mode pays for its constraint.
PENALTY = 20.0


class Network(torch.nn.Module):
    """Two hidden layers of tanh; inputs are standardised, and the Jacobian is in closed form."""

    def __init__(self, X: torch.Tensor, n_outputs: int):
        super().__init__()
        self.mean, self.std = X.mean(0), X.std(0)
        self.first = torch.nn.Linear(X.shape[1], WIDTH)
        self.second = torch.nn.Linear(WIDTH, WIDTH)
        self.last = torch.nn.Linear(WIDTH, n_outputs)

    def forward(self, X: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the outputs, (n, r), and their gradients, (n, r, d)."""
        one = torch.tanh(self.first((X - self.mean) / self.std))
        two = torch.tanh(self.second(one))
        gradient = self.last.weight * (1 - two**2)[:, None]
        gradient = (gradient @ self.second.weight) * (1 - one**2)[:, None]
        return self.last(two), (gradient @ self.first.weight) / self.std


def sums(values: torch.Tensor, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the covariance C and the energy E of outputs."""
    centred = values - values.mean(0)
    return centred.T @ centred / len(values), torch.einsum("nid,njd->ij", gradient, gradient) / len(values)


def neural_ef(values: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    """Return -Σ_j [C_jj - Σ_{i<j} C_ij² / C_ii] of outputs of energy 1; gradients ignore the earlier output i.

    This is NeuralEF for the operator whose quadratic form is the variance, in the inner product of the energy: it is
    positive and compact, and its largest eigenvalues are the time scales.
    """
    energy = (gradient**2).sum(2).mean(0)
    scaled = (values - values.mean(0)) * energy.clamp_min(1e-12).rsqrt()
    fixed = scaled.detach()
    across = fixed.T @ scaled / len(values)
    earlier = torch.triu(torch.ones_like(across), 1)
    variance = (scaled**2).mean(0)
    return -(variance.sum() - (earlier * across**2 / variance.detach()[:, None]).sum())


def deep_ritz(values: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    """Return Σ_i w_i E_ii / C_ii + κ Σ_ij (C_ij - δ_ij)²; the weights w_i fall, which puts the modes in order."""
    covariance, energy = sums(values, gradient)
    weights = torch.linspace(1.0, 0.5, len(energy))
    quotient = (weights * energy.diagonal() / covariance.diagonal().clamp_min(1e-12)).sum()
    return quotient + PENALTY * ((covariance - torch.eye(len(energy))) ** 2).sum()


def train(
    X: np.ndarray, n_modes: int, seed: int, loss: Callable, learning_rate: float, seconds: float
) -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]:
    """Fit a network by Adam; return its modes as a function of points, and their rates.

    The parameters of the best held-out sum of time scales are kept. The modes solve the pencil (E, C) of all samples
    in the span of the outputs.
    """
    torch.manual_seed(seed)
    data = torch.as_tensor(X, dtype=torch.float32)[torch.randperm(len(X))]
    test, training = data.split([int(HELD_OUT * len(X)), len(X) - int(HELD_OUT * len(X))])
    network = Network(training, n_modes)
    optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate)
    best, kept = -np.inf, copy.deepcopy(network.state_dict())
    end = time.process_time() + seconds
    for step in range(STEPS):
        batch = training if len(training) <= BATCH else training[torch.randint(len(training), (BATCH,))]
        optimizer.zero_grad()
        loss(*network(batch)).backward()
        optimizer.step()
        if step % CHECK_EVERY == CHECK_EVERY - 1:
            score = _time_scales(network, test[:PART])
            if score > best:
                best, kept = score, copy.deepcopy(network.state_dict())
            if time.process_time() > end:
                break
    network.load_state_dict(kept)
    rates, mixing = ritz(*_sums_in_parts(network, data))

    def modes(points: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return network(torch.as_tensor(points, dtype=torch.float32))[0].double().numpy() @ mixing

    return modes, rates


@torch.no_grad()
def _time_scales(network: Network, data: torch.Tensor) -> float:
    """Return the sum of time scales in the span of the outputs: minus infinity if they diverged or are all alike."""
    try:
        return float(np.sum(1 / ritz(*sums(*network(data)))[0]))
    except (ValueError, np.linalg.LinAlgError):
        return -np.inf


@torch.no_grad()
def _sums_in_parts(network: Network, data: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return `sums` of all samples, whose gradients need not be in memory together.

    In double precision: outputs that are nearly alike have a covariance that is singular in single precision.
    """
    values, energy = [], torch.zeros(())
    for part in data.split(PART):
        outputs, gradient = (found.double() for found in network(part))
        values.append(outputs)
        energy = energy + sums(outputs, gradient)[1] * (len(part) / len(data))
    centred = torch.cat(values)
    centred -= centred.mean(0)
    return centred.T @ centred / len(data), energy


def ritz(covariance: torch.Tensor, energy: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Return rates, ascending, and coefficients of the modes in the span of the outputs."""
    left, right = energy.double().numpy(), covariance.double().numpy()
    return eigh(left, right + 1e-9 * np.trace(right) * np.eye(len(right)))
