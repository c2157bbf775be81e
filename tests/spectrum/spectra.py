"""Moments with known operators and spectra."""

import numpy as np
from scipy.stats import ortho_group

from kdmaps.forms.moments import Moments


def positive(seed, p, condition=1e3):
    """A symmetric positive definite matrix with eigenvalues from 1 down to 1/condition."""
    Q = ortho_group.rvs(p, random_state=seed) if p > 1 else np.eye(1)
    return (Q * np.geomspace(1, 1 / condition, p)) @ Q.T


def moments_of(covariance, energy, mean=None, count=10**6):
    """Moments of `count` samples with these operators."""
    mean = np.zeros(len(covariance)) if mean is None else mean
    return Moments(
        count, float(count), float(count), count * mean, count * (covariance + np.outer(mean, mean)), count * energy
    )


def with_spectrum(relaxation_times, seed=0, count=10**6):
    """Moments whose exact solution for λ → 0 is μ = `relaxation_times`, in a generic basis."""
    p = len(relaxation_times)
    B = np.linalg.inv(ortho_group.rvs(p, random_state=seed) @ np.diag(np.linspace(1, 2, p)))
    return moments_of(B.T @ np.diag(relaxation_times) @ B, B.T @ B, count=count)
