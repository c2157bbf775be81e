"""Eigenvectors of the random walk on a graph, in each of its connected parts."""

from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh

from kdmaps.checks import Check, Phrase, rules
from kdmaps.spectrum import modes

#: A weight below this share of the degrees at both ends connects nothing: modes across it are not distinguished from
#: a constant on each side by the eigenvectors, whose errors are the square root of their tolerance.
NEGLIGIBLE = 1e-8
#: With fewer rows, eigenvectors of the full matrix are computed.
DENSE_ROWS = 500
#: Tolerance of the eigenvalues.
TOLERANCE = 1e-10


class GraphModes(modes.Modes):
    """Modes of a graph: nothing was regularised, and halves of the rows measure how stable the modes are."""

    @property
    def gap(self) -> float:
        return np.inf

    @property
    def checks(self) -> list[Check]:
        return []


@dataclass(frozen=True, eq=False)
class GraphSpectrum:
    """Slowest modes of a random walk on a graph, which is unconnected between its components."""

    values: np.ndarray  #: (n, r): modes with mean 0 and variance 1, weighted by degrees.
    eigenvalues: np.ndarray  #: (r,): λ in descending order; 1 for the indicators of components.
    next_eigenvalue: float  #: The largest λ that is left; NaN if there is none.

    def modes(self) -> GraphModes:
        """Return the modes as functions in a basis of their own values."""
        r = len(self.eigenvalues)
        return GraphModes(
            coefficients=np.eye(r),
            offset=np.zeros(r),
            eigenvalues=self.eigenvalues,
            next_eigenvalue=self.next_eigenvalue,
            quotients=1 - self.eigenvalues,
            condition_number=1.0,
            effective_rank=np.ones(r),
            effective_count=float(len(self.values)),
            next_quotient=1 - self.next_eigenvalue,
        )


def find_components(graph: sparse.csr_array, smallest: int) -> np.ndarray:
    """Return the component of each row, the largest is 0; -1 for rows in components with fewer rows than `smallest`."""
    degrees = graph.sum(axis=1)
    links = sparse.coo_array(graph)
    rows, columns = links.coords
    kept = links.data >= NEGLIGIBLE * np.minimum(degrees[rows], degrees[columns])
    strong = sparse.csr_array((links.data[kept], (rows[kept], columns[kept])), shape=graph.shape)
    _, labels = connected_components(strong, directed=False)
    sizes = np.bincount(labels)
    order = np.argsort(-sizes, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    rank[sizes < smallest] = -1
    return rank[labels]


def graph_spectrum(graph: sparse.csr_array, labels: np.ndarray, n_modes: int, seed: int) -> GraphSpectrum:
    """Return the slowest modes of the components with labels 0, 1, …; rows of no component have the value 0.

    The first modes are indicators: mode k is positive on component k, negative on those before and 0 on those after.
    """
    degrees = graph.sum(axis=1)
    measure = np.where(labels >= 0, degrees, 0.0)
    measure = measure / measure.sum()
    count = labels.max() + 1
    vectors = [_indicator(measure, labels, k) for k in range(1, min(count, n_modes + 2))]
    eigenvalues = [1.0] * len(vectors)
    if len(vectors) <= n_modes:
        for k in range(count):
            members = np.flatnonzero(labels == k)
            of_component, walk_values = _walk_modes(graph[members][:, members], n_modes + 1, seed)
            for vector, eigenvalue in zip(of_component.T, walk_values, strict=True):
                extended = np.zeros(len(labels))
                extended[members] = vector
                vectors.append(extended)
                eigenvalues.append(eigenvalue)
    order = np.argsort(-np.array(eigenvalues), kind="stable")[: n_modes + 1]
    chosen = np.array([vectors[i] for i in order[:n_modes]]).T
    scales = np.sqrt(measure @ chosen**2)
    largest = np.take_along_axis(chosen, np.abs(chosen).argmax(axis=0)[None], axis=0)
    following = eigenvalues[order[n_modes]] if len(order) > n_modes else np.nan
    ordered = np.array([eigenvalues[i] for i in order[:n_modes]])
    return GraphSpectrum(chosen * np.sign(largest) / scales, ordered, float(following))


def _indicator(measure: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    """Return the function that is positive on component k, negative on those before it, and 0 on the others."""
    inside = labels == k
    before = (labels >= 0) & (labels < k)
    return inside / measure[inside].sum() - before / measure[before].sum()


def _walk_modes(graph: sparse.csr_array, n_modes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the slowest modes of the walk on a connected graph, without the constant, and their eigenvalues."""
    n = graph.shape[0]
    degrees = graph.sum(axis=1)
    degrees = np.where(degrees > 0, degrees, 1.0)  # in a subset of the rows, a row may have lost all neighbours
    scaling = sparse.diags_array(degrees**-0.5)
    symmetric = scaling @ graph @ scaling
    n_modes = min(n_modes, n - 1)
    if n <= max(DENSE_ROWS, 3 * n_modes):
        values, vectors = linalg.eigh(symmetric.toarray(), subset_by_index=(n - 1 - n_modes, n - 1))
    else:
        start = np.random.RandomState(seed).standard_normal(n)
        values, vectors = eigsh(
            sparse.csr_array(symmetric), n_modes + 1, which="LA", v0=start, ncv=max(40, 3 * n_modes), tol=TOLERANCE
        )
    order = np.argsort(-values, kind="stable")[1:]
    return vectors[:, order] / np.sqrt(degrees)[:, None], values[order]


def span_agreement(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the mean squared cosine between the spans of the first m columns of two matrices, m = 1, 2, …."""
    first = first - first.mean(axis=0)
    second = second - second.mean(axis=0)
    agreement = np.empty(min(first.shape[1], second.shape[1]))
    for m in range(1, len(agreement) + 1):
        frames = [np.linalg.qr(values[:, :m])[0] for values in (first, second)]
        agreement[m - 1] = np.linalg.norm(frames[0].T @ frames[1]) ** 2 / m
    return agreement


def stability(agreement: float, n_stable: int) -> Check:
    """Return the check of the agreement of halves, which is at least the limit for the first `n_stable` modes."""
    stable = Phrase("stable modes", {"count": n_stable}) if n_stable else Phrase("no stable modes")
    return Check(rules.UNSTABLE_SPAN, agreement, words={"stable": stable})
