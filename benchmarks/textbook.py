"""Cross-validated kernel selection as in a textbook: the baseline of bench_search.py and bench_default.py.

Explicit (N·d)×p derivative matrix, `np.cos` and `np.sin`, a full `scipy.linalg.eigh`, every fold and every
regularization from scratch. Frequencies, folds and score are the same as in kdmaps, so the scores must agree.
"""

import numpy as np
from scipy.linalg import eigh


def operators(X, frequencies, amplitude):
    """Centred covariance and energy of the features."""
    n, d = X.shape
    angles = X @ frequencies.T
    cosine, sine = np.cos(angles), np.sin(angles)
    Z = np.hstack([cosine, sine]) * amplitude
    J = np.concatenate([-sine[:, None, :] * frequencies.T, cosine[:, None, :] * frequencies.T], axis=2)
    J = (J * amplitude).reshape(n * d, -1)
    Z = Z - Z.mean(axis=0)
    return Z.T @ Z / n, J.T @ J / n


def modes(X, frequencies, amplitude, n_components, regularization):
    """Leading modes, of unit variance, and the covariance."""
    covariance, energy = operators(X, frequencies, amplitude)
    values, vectors = eigh(covariance, energy + regularization * np.eye(len(energy)))
    return vectors[:, ::-1][:, :n_components] / np.sqrt(values[::-1][:n_components]), covariance


def log_timescales(parts):
    """Σ log t of the pooled held-out time scales."""
    times = eigh(sum(n * C for n, C, _ in parts), sum(n * E for n, _, E in parts), eigvals_only=True)
    return np.log(times).sum()


def score(X, splits, frequencies, amplitude, n_components, regularization, caution):
    """Return the selection score of one candidate: its pooled score minus `caution` jackknife standard errors."""
    A, _ = modes(X, frequencies, amplitude, n_components, regularization)
    parts = []
    for train, test in splits:
        V, trained = modes(X[train], frequencies, amplitude, n_components, regularization)
        covariance, energy = operators(X[test], frequencies, amplitude)
        left, _, right = np.linalg.svd(V.T @ trained @ A)
        V = V @ left @ right
        parts.append((len(test), V.T @ covariance @ V, V.T @ energy @ V))
    n = len(parts)
    left_out = np.array([log_timescales(parts[:f] + parts[f + 1 :]) for f in range(n)])
    repeats = sum(len(test) for _, test in splits) / len(X)
    error = np.sqrt(repeats * (n - 1) / n * np.sum((left_out - left_out.mean()) ** 2))
    return log_timescales(parts) - caution * error
