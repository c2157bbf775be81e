"""Diffusion maps of cells in AnnData objects, with the names of scanpy: projection, pseudotime, fates, genes.

The components are the modes of `kdmaps.NeighborDiffusionMap`, the slowest modes of a random walk between neighbours.
Functions read principal components, never counts, and write their results into the object, as scanpy does:

==================================  =========================================================================
field                               content
==================================  =========================================================================
``obsm["X_diffmap"]``               components; the first is constant, as in scanpy
``uns["diffmap_evals"]``            their eigenvalues
``obs["diffmap_component"]``        connected part of the graph, if there are several
``obs["dpt_pseudotime"]``           pseudotime, from 0 to 1; infinite where the root is not connected
``obs["terminal_states"]``          cells at the ends of branches
``obsm["fate_probabilities"]``      probability to reach each terminal state first
``varm["diffmap_loadings"]``        change of each component with the expression of each gene
``obsp["kdmaps_connectivities"]``   weights of the graph, for functions of scanpy with ``neighbors_key="kdmaps"``
``obsp["kdmaps_distances"]``        distances of connected cells
``uns["kdmaps"]``, ``obsm["X_neighbor_means"]``, ``obsm["neighbor_widths"]``: needed by `project`
==================================  =========================================================================
"""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, cg

from kdmaps.checks import rules
from kdmaps.data import distances as exact
from kdmaps.estimators.graph_fit import GraphFit, fit_graph
from kdmaps.exceptions import ArgumentError, Undetermined
from kdmaps.forms.neighbors import NeighborBasis, NeighborForm, Neighbors
from kdmaps.spectrum.graph import find_components, graph_spectrum
from kdmaps.utils.threads import one_blas_thread, slices
from kdmaps.utils.types import RandomStateLike
from kdmaps.utils.validation import check_positive_integer, seed_of

__all__ = ["diffmap", "fate_probabilities", "loadings", "project", "pseudotime", "terminal_states"]

#: Modes of the part of the graph that contains the root, for the distance from the root.
PSEUDOTIME_MODES = 10
#: Steps of the walk over which pseudotime is averaged before its maxima are found.
SMOOTHING_STEPS = 3
#: Neighbours in the space of the modes, by which branches are connected.
BRANCH_NEIGHBORS = 10
#: Levels of pseudotime at which branches are separated.
LEVELS = 60
#: A branch ends in a terminal state if pseudotime rises by this along it, as a share of its range.
SHORTEST_BRANCH = 0.1
#: Share of the connected cells in the set that stands for a terminal state.
TERMINAL_SHARE = 0.01
#: Tolerance of probabilities.
TOLERANCE = 1e-8
#: Edges whose lengths are computed at once.
EDGES = 2**15
#: Cells whose gradients are averaged for the loadings.
GRADIENT_CELLS = 2_000


class _Graph(NamedTuple):
    """The weights of the graph of cells, and the connected part of each."""

    weights: sparse.csr_array
    parts: np.ndarray  # -1 for cells in groups that are too small
    n_neighbors: int


@one_blas_thread()
def diffmap(
    adata: Any,
    n_comps: int = 15,
    *,
    use_rep: str = "X_pca",
    n_pcs: int | None = None,
    n_neighbors: int = 30,
    random_state: RandomStateLike = 0,
) -> str:
    """Compute a diffusion map of cells, in place of `scanpy.tl.diffmap`; `scanpy.pp.neighbors` is not needed.

    Parameters
    ----------
    adata : AnnData
        With principal components in `obsm`. Views become copies, as in scanpy; of an object backed by a file only
        `obsm` is read.
    n_comps : int, default=15
        Number of components, including the constant one.
    use_rep : str, default="X_pca"
        Key of `obsm`; "X" for the values themselves, if they are dense.
    n_pcs : int, optional
        Use only the first columns.
    n_neighbors : int, default=30
        Number of neighbours. No width has to be chosen.
    random_state : int, RandomState instance or None, default=0

    Returns
    -------
    notes : str
        One sentence: how many components are stable, and which cells form components of their own. It is also in
        `adata.uns["kdmaps"]["notes"]`.
    """
    _check_anndata("adata", adata)
    check_positive_integer("n_comps", n_comps)
    if n_comps < 2:
        raise ArgumentError("n_comps={count} has the constant only; give 2 or more.", count=n_comps)
    X = _coordinates(adata, use_rep, n_pcs)
    check_positive_integer("n_neighbors", n_neighbors)
    if not 3 <= n_neighbors < len(X) or n_comps >= len(X):
        raise ArgumentError(
            "n_comps={comps} and n_neighbors={neighbors} must be less than the number of cells, {cells}, and "
            "n_neighbors at least 3.",
            comps=n_comps,
            neighbors=n_neighbors,
            cells=len(X),
        )
    found = fit_graph(X, n_comps - 1, n_neighbors, seed_of(random_state))
    basis: Any = found.fit.basis
    _write_components(adata, basis.values, basis.eigenvalues)
    adata.obsm["X_neighbor_means"] = basis.form.means.points
    adata.obsm["neighbor_widths"] = np.column_stack([basis.form.rows.widths, basis.form.means.widths])
    adata.obsp["kdmaps_connectivities"] = sparse.csr_matrix(found.graph)
    adata.obsp["kdmaps_distances"] = _edge_lengths(adata.obsp["kdmaps_connectivities"], X)
    notes = _notes(found, adata)
    adata.uns["kdmaps"] = {
        "use_rep": use_rep,
        "n_dims": X.shape[1],
        "n_neighbors": n_neighbors,
        "shares": basis.form.shares,
        # For functions of scanpy with neighbors_key="kdmaps".
        "connectivities_key": "kdmaps_connectivities",
        "distances_key": "kdmaps_distances",
        "params": {"n_neighbors": n_neighbors, "method": "kdmaps", "use_rep": use_rep},
        "notes": notes,
    }
    names = np.array([*map(str, range(found.labels.max() + 1)), "apart"], dtype=object)
    if "diffmap_component" in adata.obs:
        del adata.obs["diffmap_component"]
    if np.any(found.labels != 0):
        adata.obs["diffmap_component"] = names[found.labels]
        adata.obs["diffmap_component"] = adata.obs["diffmap_component"].astype("category")
    return notes


@one_blas_thread()
def project(new: Any, reference: Any) -> None:
    """Evaluate the components of reference cells at new cells: `new.obsm["X_diffmap"]`.

    Parameters
    ----------
    new : AnnData
        Its `obsm[use_rep]` must be in the principal components of the reference, for example
        `(new[:, reference.var_names].X - reference.X.mean(0)) @ reference.varm["PCs"]` for normalised counts.
    reference : AnnData
        After `diffmap`.
    """
    _check_anndata("new", new)
    settings = _settings(reference)
    basis = _basis(reference)
    X = _coordinates(new, settings["use_rep"], None)
    if X.shape[1] < settings["n_dims"]:
        raise ArgumentError(
            "new.obsm[{key!r}] has {given} columns, but the reference has {expected}; use the same principal "
            "components for both.",
            key=settings["use_rep"],
            given=X.shape[1],
            expected=settings["n_dims"],
        )
    X = X[:, : settings["n_dims"]]
    values = np.vstack([basis.features(X[part]) for part in slices(len(X), basis.chunk_rows)])
    _write_components(new, values, basis.eigenvalues, len(basis.values))


@one_blas_thread()
def pseudotime(adata: Any, root: Any) -> None:
    """Compute pseudotime as the diffusion distance from a root cell: `obs["dpt_pseudotime"]`.

    It is the distance in the first ten modes of the connected part of the graph that contains the root, multiplied by
    λ/(1 - λ) (Haghverdi et al. 2016, without the constant mode), so that cells elsewhere do not change it; their
    pseudotime is infinite, as in scanpy. `uns["iroot"]` is set too.

    Parameters
    ----------
    adata : AnnData
        After `diffmap`.
    root : str or int
        Name or number of the cell.
    """
    graph = _graph(adata)
    iroot = _number_of(adata, root)
    part = graph.parts[iroot]
    if part < 0:
        raise ArgumentError(
            "root={root!r} lies in a group of fewer than {neighbors} cells, far from all others; give another root.",
            root=root,
            neighbors=graph.n_neighbors,
        )
    members = np.flatnonzero(graph.parts == part)
    positions = _positions(graph.weights[members][:, members])
    distances = np.linalg.norm(positions - positions[np.searchsorted(members, iroot)], axis=1)
    times = np.full(adata.n_obs, np.inf)
    times[members] = distances / distances.max()
    adata.obs["dpt_pseudotime"] = times
    adata.uns["iroot"] = iroot


@one_blas_thread()
def terminal_states(adata: Any) -> list[str]:
    """Find the ends of branches: maxima of pseudotime that differ by more than a tenth of its range from their branch.

    Parameters
    ----------
    adata : AnnData
        After `pseudotime`.

    Returns
    -------
    cells : list of str
        Names of the cells with the largest pseudotime of each branch. `obs["terminal_states"]` has a category for each
        of these, named after the cell, with the cells next to it; others are missing.
    """
    graph = _graph(adata)
    times = _times(adata)
    members = np.flatnonzero(np.isfinite(times))
    positions = _positions(graph.weights[members][:, members])
    k = min(BRANCH_NEIGHBORS, len(members) - 1)
    near = sparse.csr_array(exact.neighbors(positions, k).kneighbors_graph())
    near = sparse.csr_array(near.maximum(near.T))
    smooth = times[members]
    for _ in range(SMOOTHING_STEPS):
        smooth = (near @ smooth + smooth) / (near.sum(axis=1) + 1)
    size = max(graph.n_neighbors, int(TERMINAL_SHARE * len(members)))
    ends = _branch_ends(near, smooth, graph.n_neighbors)
    names = np.full(adata.n_obs, None, dtype=object)
    cells = []
    for end, branch in ends:
        name = str(adata.obs_names[members[end]])
        last = branch[np.argsort(-smooth[branch], kind="stable")[:size]]
        names[members[last]] = name
        cells.append(name)
    adata.obs["terminal_states"] = names
    adata.obs["terminal_states"] = adata.obs["terminal_states"].astype("category")
    return cells


@one_blas_thread()
def fate_probabilities(adata: Any, terminal: str = "terminal_states") -> None:
    """Compute the probability that a walk between neighbours reaches each terminal state first.

    The probabilities are in `obsm["fate_probabilities"]`, a data frame with a column for each state; missing for cells
    that are not connected to any state.

    Parameters
    ----------
    adata : AnnData
        After `diffmap`.
    terminal : str, default="terminal_states"
        Column of `obs` with the terminal state of each cell, missing for all other cells: from `terminal_states`, or
        known types.
    """
    import pandas as pd

    graph = _graph(adata)
    if terminal not in adata.obs:
        raise ArgumentError(
            "obs has no column {name!r}; call kdmaps.scanpy.terminal_states(adata), or give a column with the terminal "
            "state of each cell, missing for all others.",
            name=terminal,
        )
    states = pd.Categorical(adata.obs[terminal]).remove_unused_categories()
    if len(states.categories) < 2:
        raise ArgumentError(
            "obs[{name!r}] has {count} terminal state(s); probabilities need two or more.",
            name=terminal,
            count=len(states.categories),
        )
    codes = np.asarray(states.codes)
    if (codes >= 0).all():
        raise ArgumentError(
            "obs[{name!r}] has a terminal state for every cell; leave it missing for the cells whose fate is unknown.",
            name=terminal,
        )
    probabilities = _absorption(graph.weights, codes, len(states.categories))
    names = [str(name) for name in states.categories]
    adata.obsm["fate_probabilities"] = pd.DataFrame(probabilities, index=adata.obs_names, columns=names)


@one_blas_thread()
def loadings(adata: Any) -> None:
    """Compute how components change with the expression of genes: `varm["diffmap_loadings"]`.

    The loading of a gene is the gradient of a component, averaged over cells, in the direction of the gene: mean
    gradient along the principal components times `varm["PCs"]`. Genes with large positive values increase along the
    component. For a component that rises and falls again with a gene, both parts cancel.

    Parameters
    ----------
    adata : AnnData
        After `diffmap`, with `varm["PCs"]` of `scanpy.pp.pca`.
    """
    settings = _settings(adata)
    if "PCs" not in adata.varm:
        raise ArgumentError('varm has no "PCs"; compute principal components with scanpy.pp.pca(adata).')
    axes = np.asarray(adata.varm["PCs"], dtype=np.float64)
    if axes.shape[1] < settings["n_dims"]:
        raise ArgumentError(
            'varm["PCs"] has {given} columns, but the components were computed from {expected}.',
            given=axes.shape[1],
            expected=settings["n_dims"],
        )
    basis = _basis(adata)
    X = basis.form.rows.points
    some = X[:: -(-len(X) // GRADIENT_CELLS)]
    r = basis.n_features
    slopes = np.zeros((r, X.shape[1]))
    for part in slices(len(some), basis.chunk_rows):
        slopes += basis.gradient(some[part], np.eye(r)).sum(axis=0)
    of_genes = np.zeros((adata.n_vars, r + 1))
    of_genes[:, 1:] = axes[:, : settings["n_dims"]] @ (slopes / len(some)).T
    adata.varm["diffmap_loadings"] = of_genes


# --- reading and writing ----------------------------------------------------------------------------------------------
def _check_anndata(name: str, adata: Any) -> None:
    if not (hasattr(adata, "obsm") and hasattr(adata, "n_obs")):
        raise ArgumentError(
            "{name} must be an AnnData object, got {kind}; for arrays use kdmaps.NeighborDiffusionMap.",
            name=name,
            kind=type(adata).__name__,
        )


def _coordinates(adata: Any, use_rep: str, n_pcs: int | None) -> np.ndarray:
    """Return the coordinates of cells as finite floats."""
    if use_rep == "X":
        values = adata.X
    elif use_rep in adata.obsm:
        values = adata.obsm[use_rep]
    else:
        raise ArgumentError(
            "obsm has no {key!r}; compute principal components with scanpy.pp.pca(adata), or give use_rep. "
            "Available: {keys}.",
            key=use_rep,
            keys=", ".join(adata.obsm) or "nothing",
        )
    if sparse.issparse(values) or type(values).__name__.endswith("Dataset"):
        raise ArgumentError(
            "{key} is sparse or on disk; distances between counts are noise. Compute principal components with "
            "scanpy.pp.pca(adata), and leave out use_rep.",
            key=use_rep,
        )
    X = np.asarray(values, dtype=np.float64)
    if n_pcs is not None:
        check_positive_integer("n_pcs", n_pcs)
        if n_pcs > X.shape[1]:
            raise ArgumentError("n_pcs={n} exceeds the {d} columns of {key}.", n=n_pcs, d=X.shape[1], key=use_rep)
        X = X[:, :n_pcs]
    bad = np.flatnonzero(~np.isfinite(X).all(axis=1))
    if bad.size:
        raise ArgumentError(
            "{key} has NaN or infinity for {count} cell(s), such as {cell} (row {row}); leave them out: "
            "adata[np.isfinite(adata.obsm[{key!r}]).all(axis=1)].",
            key=use_rep,
            count=bad.size,
            cell=adata.obs_names[bad[0]],
            row=bad[0],
        )
    return np.ascontiguousarray(X)


def _write_components(adata: Any, values: np.ndarray, eigenvalues: np.ndarray, n_cells: int | None = None) -> None:
    """Write the components, in the normalisation of scanpy: the squares over all cells of the fit add up to 1."""
    scale = np.sqrt(len(values) if n_cells is None else n_cells)
    adata.obsm["X_diffmap"] = np.column_stack([np.ones(len(values)), values]) / scale
    adata.uns["diffmap_evals"] = np.concatenate([[1.0], eigenvalues])


def _edge_lengths(weights: sparse.csr_matrix, X: np.ndarray) -> sparse.csr_matrix:
    """Return the distances between cells that the graph connects, which scanpy.tl.paga reads."""
    first = np.repeat(np.arange(len(X)), np.diff(weights.indptr))
    lengths = np.empty(weights.nnz)
    for part in slices(weights.nnz, EDGES):
        lengths[part] = np.linalg.norm(X[first[part]] - X[weights.indices[part]], axis=1)
    return sparse.csr_matrix((lengths, weights.indices, weights.indptr), shape=weights.shape)


def _notes(found: GraphFit, adata: Any) -> str:
    """Describe stability and components in one sentence."""
    total = len(found.fit.modes.quotients)
    stable = f"The first {found.n_stable} of {total} components after the constant are stable"
    if found.n_stable == total:
        stable = f"All {total} components after the constant are stable"
    elif found.n_stable == 0:
        stable = "No component is stable"
    limit = rules.UNSTABLE_SPAN.limit
    sentence = f"{stable} (halves of the cells agree by {limit:g} or more on their span)"
    sizes = np.bincount(found.labels[found.labels >= 0])
    if len(sizes) > 1:
        sentence += (
            f"; the graph has {len(sizes)} unconnected parts, of {', '.join(f'{size:,}' for size in sizes)} cells, "
            f"which components 2 to {len(sizes)} separate (obs['diffmap_component'])"
        )
    apart = np.flatnonzero(found.labels < 0)
    if apart.size:
        first = ", ".join(str(name) for name in adata.obs_names[apart[:3]])
        sentence += f"; {apart.size} cell(s) in small groups far from all others, such as {first}, may be errors"
    return f"{sentence}."


def _settings(adata: Any) -> dict[str, Any]:
    _check_anndata("adata", adata)
    if "kdmaps" not in adata.uns or "X_diffmap" not in adata.obsm:
        raise ArgumentError("The object has no diffusion map of kdmaps; call kdmaps.scanpy.diffmap(adata) first.")
    return dict(adata.uns["kdmaps"])


def _basis(adata: Any) -> NeighborBasis:
    """Return the components as functions of the coordinates; of a subset of the cells, those of the subset."""
    settings = _settings(adata)
    X = _coordinates(adata, settings["use_rep"], int(settings["n_dims"]))
    k = int(settings["n_neighbors"])
    widths = np.asarray(adata.obsm["neighbor_widths"])
    rows = Neighbors(X, widths[:, 0], k)
    means = Neighbors(np.asarray(adata.obsm["X_neighbor_means"]), widths[:, 1], k)
    components = np.asarray(adata.obsm["X_diffmap"])
    values = components[:, 1:] / components[0, 0]
    eigenvalues = np.asarray(adata.uns["diffmap_evals"])[1:]
    return NeighborBasis(NeighborForm(rows, means, np.asarray(settings["shares"])), values, eigenvalues)


def _graph(adata: Any) -> _Graph:
    settings = _settings(adata)
    weights = sparse.csr_array(adata.obsp["kdmaps_connectivities"])
    k = int(settings["n_neighbors"])
    return _Graph(weights, find_components(weights, min(k, adata.n_obs)), k)


def _number_of(adata: Any, root: Any) -> int:
    """Return the number of a cell given by name or number."""
    if isinstance(root, str):
        rows = np.flatnonzero(np.asarray(adata.obs_names) == root)
        if rows.size != 1:
            what = "is not the name of a cell" if rows.size == 0 else f"is the name of {rows.size} cells"
            raise ArgumentError(
                "root={root!r} {what}; give a name from adata.obs_names (adata.obs_names_make_unique() if names "
                "repeat), or a number.",
                root=root,
                what=what,
            )
        return int(rows[0])
    if isinstance(root, bool) or not isinstance(root, int | np.integer) or not 0 <= root < adata.n_obs:
        raise ArgumentError(
            "root must be the name or the number of a cell, from 0 to {last}, got {root!r}.",
            last=adata.n_obs - 1,
            root=root,
        )
    return int(root)


def _times(adata: Any) -> np.ndarray:
    if "dpt_pseudotime" not in adata.obs:
        raise ArgumentError("obs has no pseudotime; call kdmaps.scanpy.pseudotime(adata, root) first.")
    return np.asarray(adata.obs["dpt_pseudotime"], dtype=np.float64)


# --- computation ------------------------------------------------------------------------------------------------------
def _positions(weights: sparse.csr_array) -> np.ndarray:
    """Return coordinates in which the Euclidean distance is the diffusion distance over all times."""
    n_modes = min(PSEUDOTIME_MODES, weights.shape[0] - 2)
    spectrum = graph_spectrum(weights, np.zeros(weights.shape[0], dtype=int), n_modes, 0)
    return spectrum.values * (spectrum.eigenvalues / (1 - spectrum.eigenvalues))


def _branch_ends(graph: sparse.csr_array, times: np.ndarray, smallest: int) -> list[tuple[int, np.ndarray]]:
    """Return the last node of each branch, and the nodes that are later than its meeting with another branch.

    Branches are the connected parts of the nodes later than some time. From late to early times they grow and meet; a
    branch ends when it meets one with later nodes, and is left out if it is short.
    """
    shortest = SHORTEST_BRANCH * np.ptp(times)
    branches: dict[int, np.ndarray] = {}
    ended: dict[int, np.ndarray] = {}
    complete: set[int] = set()  # branches that have met another one
    for level in np.linspace(times.max(), times.min(), LEVELS + 1)[1:]:
        later = np.flatnonzero(times >= level)
        count, labels = connected_components(graph[later][:, later], directed=False)
        grown = {}
        for part in range(count):
            nodes = later[labels == part]
            inside = np.intersect1d(np.fromiter(branches, dtype=int), nodes)
            by_time = inside[np.argsort(-times[inside], kind="stable")].tolist()
            last = by_time[0] if by_time else int(nodes[np.argmax(times[nodes])])
            for end in by_time[1:]:
                if times[end] - level >= shortest and len(branches[end]) >= smallest:
                    ended[end] = branches[end]
                    complete.add(last)
            grown[last] = branches[last] if last in complete else nodes
        branches = grown
    last = max(branches, key=lambda end: float(times[end]))
    return [(last, branches[last]), *sorted(ended.items(), key=lambda found: -times[found[0]])]


def _absorption(weights: sparse.csr_array, codes: np.ndarray, n_states: int) -> np.ndarray:
    """Return the probability of each node to reach each state first; codes are -1 for nodes of no state."""
    probabilities = np.full((len(codes), n_states), np.nan)
    absorbed = codes >= 0
    probabilities[absorbed] = np.eye(n_states)[codes[absorbed]]
    _, parts = connected_components(weights, directed=False)
    connected = np.isin(parts, parts[absorbed])
    free = np.flatnonzero(connected & ~absorbed)
    ends = np.flatnonzero(absorbed)
    degrees = np.asarray(weights.sum(axis=1)).ravel()[free]
    inside = weights[free][:, free]
    scaling = 1 / np.sqrt(degrees)
    symmetric = sparse.diags_array(scaling) @ inside @ sparse.diags_array(scaling)
    system = LinearOperator(symmetric.shape, matvec=lambda v: v - symmetric @ v, dtype=np.float64)
    sources = weights[free][:, ends] @ probabilities[ends]
    for state in range(n_states):
        solution, failed = cg(system, scaling * sources[:, state], rtol=TOLERANCE, maxiter=20 * len(free))
        if failed:
            raise Undetermined(
                "Probabilities did not converge: terminal state {state} is hardly connected to the other cells.",
                state=state + 1,
            )
        probabilities[free, state] = np.clip(scaling * solution, 0, 1)
    probabilities[free] /= probabilities[free].sum(axis=1, keepdims=True)
    return probabilities
