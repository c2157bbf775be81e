"""Variance of three ways to draw frequencies: the reason for the default `sampling`.

Root mean square error of the Fourier approximation of the kernel, over pairs of points and draws, for 150 frequencies.
Run `python -m benchmarks.bench_frequencies` from the root of the repository.
"""

from __future__ import annotations

import numpy as np

from benchmarks._show import make_table, show
from kdmaps.kernels import FAMILIES, make_kernel

METHODS, DRAWS, FREQUENCIES = ("iid", "orthogonal", "sobol"), 50, 150


def error(kernel, X: np.ndarray, method: str) -> float:
    pairs, exact, squares = np.triu_indices(len(X), 1), kernel(X), []
    for seed in range(DRAWS):
        W, weights = kernel.sample_frequencies(FREQUENCIES, X.shape[1], method, seed)
        angles = X @ W.T
        waves = np.hstack([np.cos(angles), np.sin(angles)]) * np.sqrt(np.tile(weights, 2))
        squares.append((waves @ waves.T - exact)[pairs] ** 2)
    return float(np.sqrt(np.mean(squares)))


def main() -> None:
    table = make_table(f"RMS error of the kernel, {FREQUENCIES} frequencies, {DRAWS} draws", "d", "family", *METHODS)
    for d in (1, 2, 10):
        X = np.random.default_rng(0).normal(size=(40, d))
        for family in FAMILIES:
            errors = [error(make_kernel(family, 1.5), X, method) for method in METHODS]
            table.add_row(str(d), family, *(f"{e:.4f}" for e in errors))
    show(table, "frequencies")


if __name__ == "__main__":
    main()
