"""Whether the modes describe the gaps between the samples: parts without a sampled connection exchange at rate 0.

A smooth kernel interpolates across a narrow gap, as if the samples were connected. A graph of neighbours does not.
"""

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import NearestNeighbors

from kdmaps.data.distances import neighbors
from kdmaps.utils.validation import unit_weight

#: Neighbours of each sample in the graph. Of 870 samples of 29 systems with 200 to 2,000 rows, eight had two large
#: parts, all with barriers that 200 or 500 rows hardly sample.
NEIGHBOURS = 15
#: Smallest share of the samples in a part: smaller ones are tails and rare states.
LEAST_SHARE = 0.05
#: Largest number of samples in the graph, and fewest that a fit is judged by: a graph of fewer falls apart by chance.
MOST_ROWS, FEWEST_JUDGED = 5_000, 1_000


def find_parts(X: np.ndarray) -> np.ndarray | None:
    """Return the part of each sample, -1 for samples outside of large parts; None if there is one large part."""
    n = len(X)
    if n <= NEIGHBOURS:
        return None
    centred = np.asarray(X, dtype=np.float64) - X.mean(axis=0)
    graph = neighbors(centred, NEIGHBOURS + 1).kneighbors_graph(centred)  # each sample is a neighbour of itself
    _, labels = connected_components(graph, directed=False)
    large = np.flatnonzero(np.bincount(labels) >= LEAST_SHARE * n)
    if len(large) < 2:
        return None
    place = np.full(labels.max() + 1, -1)
    place[large] = np.arange(len(large))
    return place[labels]


def crosses(X: np.ndarray, parts: np.ndarray, later: np.ndarray) -> bool:
    """Return whether a pair of frames, of which X are the first ones, begins and ends in different parts."""
    inside = parts >= 0
    nearest = NearestNeighbors(n_neighbors=1).fit(X[inside])
    ends = parts[inside][nearest.kneighbors(later[inside])[1][:, 0]]
    return bool((ends != parts[inside]).any())


def unseparated(values: np.ndarray, parts: np.ndarray, weight: np.ndarray | None) -> float:
    """Return how far the slowest modes are from the functions that are constant in every part: from 0 to 1.

    m parts have m - 1 such modes of rate 0, before all others. The number is one minus the mean squared cosine between
    the two spaces at the samples of large parts.
    """
    inside = parts >= 0
    root = np.sqrt(unit_weight(None if weight is None else weight[inside], int(inside.sum())))[:, None]
    indicators = (parts[inside][:, None] == np.arange(parts.max() + 1)).astype(np.float64)
    slowest = values[inside][:, : parts.max()]
    mean = root.T**2
    steps = np.linalg.svd(root * (indicators - mean @ indicators), full_matrices=False)[0][:, : parts.max()]
    modes = np.linalg.qr(root * (slowest - mean @ slowest))[0]
    return float(1 - np.sum((steps.T @ modes) ** 2) / modes.shape[1])
