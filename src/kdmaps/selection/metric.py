"""A metric for the kernel, from the gradients of the modes found so far."""

from __future__ import annotations

import numpy as np

from kdmaps.bases import ModeBasis
from kdmaps.data.distances import median_distance
from kdmaps.diagnostics.relevance import gradient_products, metric_matrix
from kdmaps.selection.candidate import Candidate
from kdmaps.selection.evaluation import SearchData
from kdmaps.spectrum.pencil import find_modes

#: Smallest eigenvalue of the metric relative to its largest: no direction is shrunk by more than its root.
FLOOR = 2e-4


def metric_root(matrix: np.ndarray) -> np.ndarray:
    """Return H = U diag(√v), M = U diag(v) Uᵀ with its largest eigenvalue made 1 and none below `FLOOR`.

    The columns are in the order of their importance: the first coordinates of a Sobol sequence are its best.
    """
    values, vectors = np.linalg.eigh(matrix)
    values = np.maximum(values[::-1] / values[-1], FLOOR)
    return vectors[:, ::-1] * np.sqrt(values)


def metric_of(data: SearchData, candidate: Candidate) -> np.ndarray | None:
    """Return H for the modes of a candidate, scaled to keep the median distance of the inputs.

    Expected gradient outer products: active subspaces, and "recursive feature machines" in regression. None if the
    samples do not determine the modes, or their gradients are not finite.
    """
    basis, fit = data.make_basis(candidate.kernel, candidate.basis), data.fit
    (moments,) = data.source.moments(data.form, basis, data.weight, engine=fit.engine)
    try:
        modes = find_modes(moments, basis.ridge, fit.n_components, candidate.regularization, fit.center, fit.clock)
    except ValueError:  # a few features and folds had more modes than all of them leave above rounding
        return None
    X, weight = data.typical
    share = np.full(len(X), 1 / len(X)) if weight is None else weight / weight.sum()
    products = gradient_products(ModeBasis(basis, modes.coefficients, modes.offset), X, share)
    matrix = metric_matrix(products, modes)
    if not np.all(np.isfinite(matrix)) or not np.trace(matrix) > 0:
        return None
    root = metric_root(matrix)
    return root * (data.median / median_distance(X @ root, weight, data.seed))
