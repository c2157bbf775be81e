"""Modes of pairs of frames without time reversal: singular functions at both ends of a lag."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import linalg

from kdmaps.forms.moments import Moments
from kdmaps.spectrum.clock import Clock
from kdmaps.spectrum.modes import Modes
from kdmaps.spectrum.pencil import find_modes


def doubled(moments: Moments) -> tuple[Moments, np.ndarray, np.ndarray]:
    """Return moments of the features (φ(x), φ(y)) about their means, and the means of φ(x) and of φ(y).

    For functions f(x) and g(y), the variance ½(Var f + Var g) and the energy ½E|f(x) - g(y)|², both about the means,
    have the quotient 1 - σ at the singular functions of the transfer operator; for f = g this is the variance and
    energy of `kdmaps.forms.lagged`.
    """
    assert moments.flow is not None
    assert moments.change is not None
    w = moments.weight
    gain, turn = (moments.flow + moments.flow.T) / (2 * w), (moments.flow - moments.flow.T) / (2 * w)
    first, second = (moments.total - moments.change) / w, (moments.total + moments.change) / w
    C00 = moments.gram / w - gain - np.outer(first, first)
    C11 = moments.gram / w + gain - np.outer(second, second)
    C01 = (moments.gram - moments.energy) / w + turn - np.outer(first, second)
    variance = linalg.block_diag(C00, C11) / 2
    energy = np.block([[C00, -C01], [-C01.T, C11]]) / 2
    sums = Moments(moments.count, 1.0, moments.weight_squared / w**2, np.zeros(2 * len(first)), variance, energy)
    return sums, first, second


def find_directed_modes(
    moments: Moments, ridge: np.ndarray | None, n_components: int, regularization: float, clock: Clock
) -> tuple[Modes, Modes]:
    """Return the most correlated functions f of first and g of second frames, longest time scale first.

    These are the singular functions of the transfer operator, of unit variance, from an eigenproblem of twice the size.
    The quotients are 1 - σ with the correlations σ of f and g; λ weighs ½(‖f‖² + ‖g‖²).
    """
    sums, first, second = doubled(moments)
    p = len(first)
    half = np.eye(p) / 2 if ridge is None else ridge / 2
    modes = find_modes(sums, linalg.block_diag(half, half), n_components, regularization, center=False, clock=clock)
    a, b = modes.coefficients[:p], modes.coefficients[p:]
    C00, C11 = 2 * sums.gram[:p, :p], 2 * sums.gram[p:, p:]
    a, b = (m / np.sqrt(np.einsum("mk,mk->k", m, C @ m)) for m, C in ((a, C00), (b, C11)))
    correlations = -2 * np.einsum("mk,mk->k", a, sums.energy[:p, p:] @ b)
    left = replace(modes, coefficients=a, offset=first @ a, quotients=1 - correlations, next_coefficients=None)
    order = np.argsort(left.quotients, kind="stable")
    return left.take(order), replace(left, coefficients=b, offset=second @ b).take(order)


def directed_score(moments: Moments) -> float:
    """Return the VAMP-2 score Σσ² of functions (f, g), with the canonical correlations σ of f(x) and g(y)."""
    sums, _, _ = doubled(moments)
    r = len(moments.total) // 2
    f, g = slice(0, r), slice(3 * r, 4 * r)  # f of first frames, g of second frames
    factors = [linalg.cholesky(2 * sums.gram[part, part], lower=True) for part in (f, g)]
    cross = linalg.solve_triangular(factors[0], -2 * sums.energy[f, g], lower=True)
    return float(np.sum(linalg.solve_triangular(factors[1], cross.T, lower=True) ** 2))
