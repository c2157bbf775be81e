"""One fit of the graph of neighbours: the graph, its components, its modes and how stable they are."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import sparse

from kdmaps.checks import Check, rules
from kdmaps.data import distances
from kdmaps.estimators.fit import Fit
from kdmaps.exceptions import Undetermined
from kdmaps.forms.moments import Moments
from kdmaps.forms.neighbors import NeighborBasis, NeighborForm, Neighbors
from kdmaps.spectrum.graph import GraphSpectrum, find_components, graph_spectrum, span_agreement, stability

#: Modes with a smaller eigenvalue change within one step of the walk; their values at new points are noise over λ.
SMALLEST_EIGENVALUE = 0.05
#: Rows of which halves are compared.
MOST_COMPARED = 3_000


@dataclass(frozen=True, eq=False)
class GraphFit:
    """Modes of a graph of neighbours, and what is known about the graph."""

    fit: Fit
    labels: np.ndarray  # component of each row, -1 for rows in groups that are too small
    agreement: float  # of the span of all modes between halves of the rows
    n_stable: int  # the largest number of modes on whose span the halves agree
    graph: sparse.csr_array | None = None  # W; not stored

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of an estimator that are about the graph."""
        return {
            "components_of_rows_": self.labels,
            "fold_agreement_": self.agreement,
            "suggested_n_components_": self.n_stable,
            "graph_": self.graph,
        }

    @classmethod
    def stored(cls, arrays: dict[str, Any], n_neighbors: int, support: distances.Support, n_stable: int) -> Self:
        """Return the fit of a model file from its arrays."""
        rows = Neighbors(arrays["rows"], arrays["row_widths"], n_neighbors)
        means = Neighbors(arrays["means"], arrays["mean_widths"], n_neighbors)
        form = NeighborForm(rows, means, arrays["shares"])
        spectrum = GraphSpectrum(arrays["values"], arrays["eigenvalues"], arrays["next_eigenvalue"])
        fitted = _as_fit(form, spectrum, support)
        return cls(fitted, arrays["components"].astype(np.intp), arrays["agreement"], n_stable)

    @property
    def checks(self) -> list[Check]:
        """The checks of components and of stability."""
        sizes = np.bincount(self.labels[self.labels >= 0])
        apart = np.flatnonzero(self.labels < 0)
        listed = ", ".join(f"{size:,}" for size in sizes)
        components = {"sizes": listed, "indicators": len(sizes) - 1}
        n_neighbors = self.fit.basis.form.rows.n_neighbors  # type: ignore[attr-defined]
        return [
            Check(rules.COMPONENTS, float(len(sizes)), words=components),
            Check(rules.SMALL_GROUPS, float(len(apart)), where=tuple(apart.tolist()), words={"neighbors": n_neighbors}),
            stability(self.agreement, self.n_stable),
        ]


def fit_graph(X: np.ndarray, n_modes: int, n_neighbors: int, seed: int) -> GraphFit:
    """Fit the modes of the graph of neighbours of the rows of X."""
    form, graph = NeighborForm.of(X, n_neighbors, seed)
    labels = find_components(graph, n_neighbors)
    if labels.max() < 0:
        raise Undetermined(
            "All rows of X lie in groups of fewer than {smallest} rows, far from one another; use more samples, or "
            "fewer neighbours than {n_neighbors:{smallest}}.",
            smallest=n_neighbors,
        )
    spectrum = graph_spectrum(graph, labels, n_modes, seed)
    _check_number(spectrum, n_modes, len(X))
    spectrum = replace(spectrum, values=_with_nearest(X, spectrum.values, labels))
    support = distances.Support.of(X, seed).extended((X.min(axis=0), X.max(axis=0)))
    agreement = _half_agreement(X, n_modes, n_neighbors, seed)
    stable = np.flatnonzero(agreement >= rules.UNSTABLE_SPAN.limit)
    n_stable = int(stable[-1]) + 1 if stable.size else 0
    return GraphFit(_as_fit(form, spectrum, support), labels, float(agreement[-1]), n_stable, graph)


def _half_agreement(X: np.ndarray, n_modes: int, n_neighbors: int, seed: int) -> np.ndarray:
    """Return the agreement of two halves of the rows, drawn at random, on the span of the first 1, 2, … modes.

    Each half has a graph and modes of its own, which are continued to the rows of the other half.
    """
    rows = np.random.RandomState(seed).permutation(len(X))[:MOST_COMPARED]
    halves = [np.sort(part) for part in np.array_split(rows, 2)]
    n_neighbors = min(n_neighbors, len(halves[1]) - 1)
    spans = []
    for half in halves:
        form, graph = NeighborForm.of(X[half], n_neighbors, seed)
        labels = np.maximum(find_components(graph, n_neighbors), 0)
        spectrum = graph_spectrum(graph, labels, n_modes, seed)
        basis = NeighborBasis(form, spectrum.values, np.maximum(spectrum.eigenvalues, SMALLEST_EIGENVALUE))
        spans.append(np.vstack([basis.features(X[rows]) for rows in halves]))
    return span_agreement(*spans)


def _as_fit(form: NeighborForm, spectrum: GraphSpectrum, support: distances.Support) -> Fit:
    """Return the modes as functions in a basis of their own values."""
    modes = spectrum.modes()
    n, r = spectrum.values.shape
    moments = Moments(n, float(n), float(n), np.zeros(r), n * np.eye(r), n * np.diag(modes.quotients))
    basis = NeighborBasis(form, spectrum.values, spectrum.eigenvalues)
    return Fit(basis, modes, moments, support=support)


def _check_number(spectrum: GraphSpectrum, n_modes: int, n_samples: int) -> None:
    """Raise an error unless the graph determines this number of modes."""
    enough = int(np.sum(spectrum.eigenvalues > SMALLEST_EIGENVALUE))
    if enough < n_modes:
        raise Undetermined(
            "The graph of {n_samples} samples determines {enough} modes: use {n_components:{most}} or fewer, or more "
            "samples.",
            n_samples=n_samples,
            enough=enough,
            most=enough,
        )


def _with_nearest(X: np.ndarray, values: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the values with those of the nearest row of a component for rows of none."""
    apart = labels < 0
    if not apart.any():
        return values
    inside = X[~apart]
    origin = inside.mean(axis=0)
    index = distances.neighbors(inside - origin, 1).kneighbors(X[apart] - origin, return_distance=False)
    filled = values.copy()
    filled[apart] = values[~apart][index[:, 0]]
    return filled
