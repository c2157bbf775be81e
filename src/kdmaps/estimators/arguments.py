"""Arguments of functions that take a fitted model and samples: pipelines, swapped arguments, other samples."""

import numpy as np
from scipy.spatial.distance import cdist

from kdmaps.checks import Check, rules
from kdmaps.data.distances import Support
from kdmaps.utils.fitted import model_and_samples

__all__ = ["model_and_samples", "same_samples_check"]

#: Samples of the fit that are searched for in the samples of an analysis.
PROBES = 50
#: A sample is the same one if it differs by less than this part of the range: files have about ten digits.
SAME = 1e-6


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
