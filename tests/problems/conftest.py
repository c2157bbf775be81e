"""Independent checks of modes: the Schrödinger form of the generator, and Monte Carlo errors."""

import numpy as np
import pytest
from scipy.linalg import eigh


def _sinc_kinetic(n, h):
    """Return -d²/dx² in the sinc basis (Colbert and Miller, J. Chem. Phys. 96, 1982 (1992)), spectrally accurate."""
    offset = np.subtract.outer(np.arange(n), np.arange(n))
    with np.errstate(divide="ignore"):
        kinetic = 2.0 * (-1.0) ** offset / offset**2
    np.fill_diagonal(kinetic, np.pi**2 / 3)
    return kinetic / h**2


@pytest.fixture(scope="session")
def schroedinger():
    """Compute rates and modes of -G from √π(-G)/√π = -Δ + |∇V|²/4 - ΔV/2, for V of points (n, d) in a box."""

    def solve(potential, gradient, domain, n, k, killing=None, cutoff=30.0):
        axes = [np.linspace(*side, n) for side in domain]
        d = len(axes)
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, d)
        step = 1e-5
        laplacian = sum(
            (gradient(points + step * e)[:, j] - gradient(points - step * e)[:, j]) / (2 * step)
            for j, e in enumerate(np.eye(d))
        )
        diagonal = np.sum(gradient(points) ** 2, axis=1) / 4 - laplacian / 2
        if killing is not None:
            diagonal = diagonal + killing(points)
        spacing = [axis[1] - axis[0] for axis in axes]
        hamiltonian = np.diag(diagonal)
        for j in range(d):
            factors = [_sinc_kinetic(n, spacing[i]) if i == j else np.eye(n) for i in range(d)]
            hamiltonian += factors[0] if d == 1 else np.kron(*factors)
        v = potential(points)
        keep = v - v.min() < cutoff
        rates, vectors = eigh(hamiltonian[np.ix_(keep, keep)], subset_by_index=(0, k - 1))
        root_mass = np.exp((v.min() - v[keep]) / 2)
        return rates, points[keep], vectors * np.linalg.norm(root_mass) / root_mass[:, None], root_mass**2

    return solve


@pytest.fixture(scope="session")
def assert_mean():
    """Compare sample means with exact ones: within 5 standard errors (probability 6e-7 each) plus a given bias."""

    def check(values, expected, bias=0.0):
        error = values.std(axis=0) / np.sqrt(len(values))
        deviation = np.abs(values.mean(axis=0) - expected)
        assert (deviation <= 5 * error + bias + 1e-12).all(), (deviation / error).max()

    return check
