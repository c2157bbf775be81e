"""kdmaps.scanpy with AnnData objects: fields, projection, pseudotime, fates, genes, and bad input."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import kdmaps
import kdmaps.scanpy as ks
from experiments import simulated_cells
from kdmaps.exceptions import ArgumentError
from kdmaps.metrics import subspace_r2

ad = pytest.importorskip("anndata")

#: The trunk 0 with the branches 1 and 2.
TREE = simulated_cells.tree(1, [-1, 0, 0], 600)
CELLS, GENES = TREE["X"].shape[0], 30


def make(X=TREE["X"], **fields):
    counts = sparse.csr_matrix(np.random.default_rng(0).poisson(1.0, (len(X), GENES)).astype(np.float32))
    adata = ad.AnnData(counts, obsm={"X_pca": np.array(X)}, **fields)
    adata.obs_names = [f"cell{i}" for i in range(len(X))]
    adata.obs["branch"] = pd.Categorical(TREE["y"].astype(str)[: len(X)]) if len(X) <= CELLS else "0"
    return adata


@pytest.fixture(scope="module")
def fitted():
    adata = make()
    ks.diffmap(adata, 11)
    ks.pseudotime(adata, TREE["root"])
    return adata


def test_fields_are_those_of_scanpy(fitted):
    X, values = fitted.obsm["X_diffmap"], fitted.uns["diffmap_evals"]
    assert X.shape == (CELLS, 11)
    assert np.ptp(X[:, 0]) == 0
    assert values[0] == 1
    assert (np.diff(values) <= 0).all()
    np.testing.assert_allclose((X**2).sum(axis=0), 1, rtol=0.3)  # weighted by degrees: exactly 1
    model = kdmaps.NeighborDiffusionMap(10, random_state=0).fit(TREE["X"])
    np.testing.assert_allclose(X[:, 1:] / X[0, 0], model.transform(TREE["X"]), atol=1e-9)


def test_distances_belong_to_the_edges_of_the_graph(fitted):
    graph, lengths = fitted.obsp["kdmaps_connectivities"].toarray(), fitted.obsp["kdmaps_distances"].toarray()
    X = TREE["X"]
    exact = np.linalg.norm(X[:, None] - X, axis=2)
    np.testing.assert_allclose(lengths, np.where(graph > 0, exact, 0), atol=1e-9)


def test_functions_of_scanpy_read_the_graph_and_the_map(fitted):
    sc = pytest.importorskip("scanpy")
    adata = fitted.copy()
    sc.tl.paga(adata, groups="branch", neighbors_key="kdmaps")
    connected = adata.uns["paga"]["connectivities"].toarray()
    assert connected[1, 2] < min(connected[0, 1], connected[0, 2])  # the branches meet at the end of the trunk
    assert sc.pl.diffmap(adata, color="branch", show=False) is not None
    sc.tl.dpt(adata, neighbors_key="kdmaps")
    times = [object.obs["dpt_pseudotime"] for object in (adata, fitted)]
    assert times[0].corr(times[1], method="spearman") > 0.9


def test_functions_of_palantir_read_fates_and_map(fitted):
    palantir = pytest.importorskip("palantir")
    ks.terminal_states(fitted)
    ks.fate_probabilities(fitted)
    adata = fitted.copy()
    space = palantir.utils.determine_multiscale_space(
        adata, eigval_key="diffmap_evals", eigvec_key="X_diffmap", n_eigs=5
    )
    assert space.shape == (CELLS, 4)
    keys = {"pseudo_time_key": "dpt_pseudotime", "fate_prob_key": "fate_probabilities"}
    masks = palantir.presults.select_branch_cells(adata, **keys, save_as_df=False)
    assert masks.sum(axis=0).min() > 50


def test_notes_say_how_many_components_are_stable(fitted):
    notes = ks.diffmap(make(), 5)
    assert notes.startswith("All 4 components after the constant are stable")
    assert "unconnected" not in notes


def test_new_cells_are_projected_like_new_rows(fitted):
    reference = make(TREE["X"][:500])
    ks.diffmap(reference, 6)
    new = make(TREE["X"][500:])
    ks.project(new, reference)
    model = kdmaps.NeighborDiffusionMap(5, random_state=0).fit(TREE["X"][:500])
    np.testing.assert_allclose(new.obsm["X_diffmap"][:, 1:] * np.sqrt(500), model.transform(TREE["X"][500:]), atol=1e-9)
    np.testing.assert_array_equal(new.uns["diffmap_evals"], reference.uns["diffmap_evals"])
    itself = make(TREE["X"][:500])
    ks.project(itself, reference)
    np.testing.assert_allclose(itself.obsm["X_diffmap"], reference.obsm["X_diffmap"], atol=1e-12)


def test_pseudotime_follows_the_true_time(fitted):
    times = fitted.obs["dpt_pseudotime"]
    assert times.iloc[TREE["root"]] == 0
    assert times.max() == 1
    assert times.corr(pd.Series(TREE["t"], index=fitted.obs_names), method="spearman") > 0.9
    assert fitted.uns["iroot"] == TREE["root"]


def test_a_type_far_away_does_not_change_pseudotime(fitted):
    far = np.random.default_rng(0).standard_normal((80, 50)) + 1000
    both = make(np.vstack([TREE["X"], far]))
    notes = ks.diffmap(both, 11)
    assert "2 unconnected parts, of 600, 80 cells" in notes
    assert both.obs["diffmap_component"].tolist() == ["0"] * CELLS + ["1"] * 80
    ks.pseudotime(both, TREE["root"])
    times = both.obs["dpt_pseudotime"].to_numpy()
    # The weights of the graph of neighbour means are relative to all cells.
    np.testing.assert_allclose(times[:CELLS], fitted.obs["dpt_pseudotime"], atol=2e-3)
    assert np.isinf(times[CELLS:]).all()


def test_terminal_states_are_the_ends_of_the_branches(fitted):
    cells = ks.terminal_states(fitted)
    branches = [TREE["y"][fitted.obs_names.get_loc(cell)] for cell in cells]
    assert sorted(branches) == [1, 2]
    states = fitted.obs["terminal_states"]
    assert set(states.cat.categories) == set(cells)
    assert states.notna().sum() == 60  # 30 cells for each state


def test_fates_are_the_branches(fitted):
    cells = ks.terminal_states(fitted)
    ks.fate_probabilities(fitted)
    found = fitted.obsm["fate_probabilities"]
    np.testing.assert_allclose(found.sum(axis=1), 1)
    first = TREE["y"][fitted.obs_names.get_loc(cells[0])]
    assert found.loc[(TREE["y"] == first) & (TREE["t"] > 1.3), cells[0]].mean() > 0.8
    assert found.loc[(TREE["y"] == 3 - first) & (TREE["t"] > 1.3), cells[0]].mean() < 0.2
    trunk = found.loc[TREE["t"] < 0.5, cells[0]]
    assert trunk.std() < 0.1


def test_fate_probabilities_solve_the_equations_of_absorption(fitted):
    """Outside the states a probability is the mean over neighbours, weighted by the graph."""
    ks.terminal_states(fitted)
    ks.fate_probabilities(fitted)
    W = sparse.csr_array(fitted.obsp["kdmaps_connectivities"]).toarray()
    P = W / W.sum(axis=1, keepdims=True)
    q = fitted.obsm["fate_probabilities"].to_numpy()
    free = fitted.obs["terminal_states"].isna().to_numpy()
    states = fitted.obs["terminal_states"].cat.codes.to_numpy()
    exact = np.linalg.solve(np.eye(free.sum()) - P[np.ix_(free, free)], P[free][:, ~free] @ np.eye(2)[states[~free]])
    np.testing.assert_allclose(q[free], exact, atol=1e-5)
    np.testing.assert_array_equal(q[~free], np.eye(2)[states[~free]])


def test_types_of_the_user_can_be_terminal(fitted):
    ends = pd.Series(TREE["y"].astype(str), index=fitted.obs_names).where(TREE["t"] > 1.9)
    fitted.obs["ends"] = pd.Categorical(ends)
    ks.fate_probabilities(fitted, "ends")
    assert list(fitted.obsm["fate_probabilities"].columns) == ["1", "2"]


def test_loadings_find_the_genes_of_a_component():
    """Cells along a line in the plane of two components; gene 0 is the direction of the line, gene 1 is across it."""
    rng = np.random.default_rng(0)
    along = rng.uniform(0, 10, 500)
    X = np.column_stack([along, rng.normal(0, 0.3, 500)])
    adata = make(X, varm={"PCs": np.eye(GENES, 2)})
    ks.diffmap(adata, 3)
    ks.loadings(adata)
    found = adata.varm["diffmap_loadings"]
    assert found.shape == (GENES, 3)
    assert (found[:, 0] == 0).all()
    assert abs(found[1, 1]) < 0.1 * abs(found[0, 1])
    assert (found[2:] == 0).all()
    component = adata.obsm["X_diffmap"][:, 1] / adata.obsm["X_diffmap"][0, 0]
    assert np.sign(found[0, 1]) == np.sign(np.corrcoef(component, along)[0, 1])


def test_results_survive_a_file(fitted, tmp_path):
    fitted.write_h5ad(tmp_path / "cells.h5ad")
    for backed in (None, "r"):
        again = ad.read_h5ad(tmp_path / "cells.h5ad", backed=backed)
        new = make(TREE["X"][:50] + 0.01)
        ks.project(new, again)
        expected = make(TREE["X"][:50] + 0.01)
        ks.project(expected, fitted)
        np.testing.assert_array_equal(new.obsm["X_diffmap"], expected.obsm["X_diffmap"])
        ks.diffmap(again, 5)
        ks.pseudotime(again, "cell3")


@pytest.mark.filterwarnings("ignore:Setting element")
def test_views_become_copies(fitted):
    original = make()
    view = original[:400]
    ks.diffmap(view, 5)
    assert view.obsm["X_diffmap"].shape == (400, 5)
    assert "X_diffmap" not in original.obsm


def test_a_subset_of_a_map_can_be_used(fitted):
    some = fitted[::2].copy()
    new = make(TREE["X"][1::2])
    ks.project(new, some)
    assert subspace_r2(new.obsm["X_diffmap"][:, 1:4], fitted.obsm["X_diffmap"][1::2, 1:4]) > 0.9
    ks.pseudotime(some, 0)


def test_repeated_calls_replace_results():
    far = np.random.default_rng(0).standard_normal((80, 50)) + 1000
    adata = make(np.vstack([TREE["X"], far]))
    ks.diffmap(adata, 5)
    assert "diffmap_component" in adata.obs
    adata.obsm["X_pca"] = np.vstack([TREE["X"], TREE["X"][:80] + 0.1])
    ks.diffmap(adata, 5)
    assert "diffmap_component" not in adata.obs


def test_bad_input_names_the_remedy(fitted):
    adata = make()
    cases = [
        (lambda: ks.diffmap(adata, use_rep="X_harmony"), "Available: X_pca"),
        (lambda: ks.diffmap(adata, use_rep="X"), "scanpy.pp.pca"),
        (lambda: ks.diffmap(adata, n_pcs=60), "n_pcs=60 exceeds the 50"),
        (lambda: ks.diffmap(adata, 1), "give 2 or more"),
        (lambda: ks.diffmap(adata, n_neighbors=600), "less than the number of cells, 600"),
        (lambda: ks.diffmap(TREE["X"]), "must be an AnnData object"),
        (lambda: ks.pseudotime(adata, 0), "diffmap\\(adata\\) first"),
        (lambda: ks.project(adata, adata), "diffmap\\(adata\\) first"),
        (lambda: ks.pseudotime(fitted, "no cell"), "is not the name of a cell"),
        (lambda: ks.pseudotime(fitted, 600), "from 0 to 599"),
        (lambda: ks.pseudotime(fitted, True), "from 0 to 599"),
        (lambda: ks.fate_probabilities(fitted, "nothing"), "no column 'nothing'"),
        (lambda: ks.fate_probabilities(fitted, "branch"), "for every cell"),
        (lambda: ks.loadings(fitted), "PCs"),
        (lambda: ks.project(make(TREE["X"][:, :9]), fitted), "has 9 columns"),
    ]
    for call, message in cases:
        with pytest.raises(ArgumentError, match=message):
            call()


def test_terminal_states_need_pseudotime():
    adata = make()
    ks.diffmap(adata, 5)
    with pytest.raises(ArgumentError, match="pseudotime\\(adata, root\\) first"):
        ks.terminal_states(adata)


def test_missing_values_and_duplicate_names():
    X = TREE["X"].copy()
    X[7, 3] = np.nan
    with pytest.raises(ArgumentError, match="cell7"):
        ks.diffmap(make(X))
    adata = make()
    adata.obs_names = ["same"] * CELLS
    ks.diffmap(adata, 5)
    with pytest.raises(ArgumentError, match="is the name of 600 cells"):
        ks.pseudotime(adata, "same")
    ks.pseudotime(adata, 0)


def test_one_terminal_state_is_too_few(fitted):
    fitted.obs["one"] = pd.Categorical([*["a"] * 5, *[None] * (CELLS - 5)])
    with pytest.raises(ArgumentError, match="need two or more"):
        ks.fate_probabilities(fitted, "one")
