"""The paper's cross-validation as a textbook would write it: the baseline of bench_search.py.

Explicit (N·d)×p derivative matrix, `np.cos` and `np.sin`, a full `scipy.linalg.eigh`, every fold and every
regularization from scratch. The frequencies, folds and score are those of kdmaps, so the scores must agree.
"""

import numpy as np
from scipy.linalg import eigh


def operators(X, frequencies, amplitude):
    n, d = X.shape
    angles = X @ frequencies.T
    cosine, sine = np.cos(angles), np.sin(angles)
    Z = np.hstack([cosine, sine]) * amplitude
    J = np.concatenate([-sine[:, None, :] * frequencies.T[None], cosine[:, None, :] * frequencies.T[None]], axis=2)
    J = (J * amplitude).reshape(n * d, -1)
    Z = Z - Z.mean(axis=0)
    return Z.T @ Z / n, J.T @ J / n


def modes(X, frequencies, amplitude, n_components, regularization):
    covariance, energy = operators(X, frequencies, amplitude)
    values, vectors = eigh(covariance, energy + regularization * np.eye(len(energy)))
    V = vectors[:, ::-1][:, :n_components] / np.sqrt(values[::-1][:n_components])
    return V, covariance


def pooled_timescale(parts):
    covariance = sum(n * C for n, C, _ in parts)
    energy = sum(n * E for n, _, E in parts)
    return np.trace(np.linalg.solve(energy, covariance))


def score(X, splits, frequencies, amplitude, n_components, regularization):
    """Pooled held-out time scales of one candidate: one value per subset of folds that the jackknife needs."""
    A, whole = modes(X, frequencies, amplitude, n_components, regularization)
    parts = []
    for train, test in splits:
        V, _ = modes(X[train], frequencies, amplitude, n_components, regularization)
        covariance, energy = operators(X[test], frequencies, amplitude)
        left, _, right = np.linalg.svd(V.T @ whole @ A)
        V = V @ left @ right
        parts.append((len(test), V.T @ covariance @ V, V.T @ energy @ V))
    return pooled_timescale(parts)
