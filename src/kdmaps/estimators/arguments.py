"""Arguments of functions that take a fitted model and samples: pipelines, swapped arguments, other samples."""

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from kdmaps.checks import Check, rules
from kdmaps.data.distances import Support
from kdmaps.exceptions import ArgumentError

#: Samples of the fit that are searched for in the samples of an analysis.
PROBES = 50
#: A sample is the same one if it differs by less than this part of the range: files have about ten digits.
SAME = 1e-6


def model_and_samples(model: Any, X: Any, kind: type | tuple[type, ...]) -> tuple[Any, Any]:
    """Return a fitted model and its samples: of a pipeline, its last step and the samples after the other steps.

    Raises
    ------
    ArgumentError
        If the arguments are swapped, or `model` is not of this `kind`.
    """
    if isinstance(model, Pipeline):
        check_is_fitted(model)
        steps = model[:-1]
        X = X if X is None or not len(steps) else steps.transform(X)
        model = model[-1]
    if isinstance(model, kind):
        check_is_fitted(model)
        return model, X
    if isinstance(X, BaseEstimator):
        raise ArgumentError("The arguments are swapped: pass the model first and the samples second, (model, X).")
    raise ArgumentError(
        "model must be a fitted estimator of kdmaps, got {what}. Call fit first, and pass the model before the "
        "samples.",
        what=type(model).__name__,
    )


def same_samples_check(support: Support | None, X: np.ndarray) -> Check:
    """Check whether the samples of a fit, of which a model keeps some, are rows of X; unknown for old models."""
    if support is None or not len(support.samples):
        return Check(rules.OTHER_DATA)
    span = support.high - support.low
    scale = np.where(span > 0, span, 1.0)
    probes = support.samples[:: -(-len(support.samples) // PROBES)] / scale
    nearest = np.full(len(probes), np.inf)
    for rows in np.array_split(np.asarray(X, dtype=np.float64), max(1, len(X) // 10_000)):
        nearest = np.minimum(nearest, cdist(probes, rows / scale).min(axis=1))
    missing = int(np.count_nonzero(nearest > SAME * np.sqrt(X.shape[1])))
    words = {"missing": missing, "probes": len(probes)}
    return Check(rules.OTHER_DATA, missing / len(probes), words=words)
