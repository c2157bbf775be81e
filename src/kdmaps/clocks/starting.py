"""Probabilities of rows as starts of bursts, which follow the energy of the modes."""

import numpy as np

#: Shares of the energy of the modes, of all rows alike, and of the stationary law among the probabilities.
ENERGY, UNIFORM, STATIONARY = 0.6, 0.2, 0.2


def start_probabilities(weight: np.ndarray, densities: np.ndarray) -> np.ndarray:
    """Return the probability of each row from energy densities (n_samples, r), with the same share for each mode."""
    shares = weight[:, None] * densities
    totals = np.maximum(shares.sum(axis=0), np.finfo(float).tiny)
    energy = np.mean(shares / totals, axis=1)
    counted = weight > 0
    probabilities = ENERGY * energy + UNIFORM * counted / counted.sum() + STATIONARY * weight
    return probabilities / probabilities.sum()
