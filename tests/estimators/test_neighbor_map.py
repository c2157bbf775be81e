"""AdaptiveDiffusionMap(energy="neighbors"): modes of a graph of neighbours, with all that an estimator does."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import kdmaps
from kdmaps import AdaptiveDiffusionMap, NeighborDiffusionMap
from kdmaps.data import as_source
from kdmaps.estimators.archive import read_archive, write_archive
from kdmaps.estimators.model_files import read_header
from kdmaps.exceptions import ArgumentError, DataWarning, NotApplicable, Undetermined, UnreliableModesWarning
from kdmaps.metrics import subspace_r2


def arc(n, seed, noise=0.02, columns=5):
    """Return points of half a circle in several noisy columns, and their positions."""
    rng = np.random.default_rng(seed)
    angle = np.sort(rng.uniform(0, np.pi, n))
    points = np.zeros((n, columns))
    points[:, :2] = np.column_stack([np.cos(angle), np.sin(angle)])
    return points + noise * rng.standard_normal(points.shape), angle


X, ANGLE = arc(400, 0)
NEW, NEW_ANGLE = arc(200, 1)


def make(**parameters):
    settings = {"n_components": 2, "energy": "neighbors", "n_neighbors": 20, "random_state": 0, **parameters}
    return AdaptiveDiffusionMap(**settings)


@pytest.fixture(scope="module")
def model():
    return make().fit(X)


def test_the_first_mode_is_monotonic_along_an_arc(model):
    phi = model.transform(X)[:, 0]
    correlation = np.corrcoef(phi, np.cos(ANGLE))[0, 1]
    assert abs(correlation) > 0.98  # the mode of a uniform interval is a cosine


def test_new_points_have_the_values_of_rows_nearby(model):
    """A regression of the modes on the position, with rows of the fit only, predicts new points."""
    features = [np.cos(k * angle) for angle in (ANGLE, NEW_ANGLE) for k in range(8)]
    known, new = np.column_stack(features[:8]), np.column_stack(features[8:])
    coefficients = np.linalg.lstsq(known, model.transform(X))[0]
    residual = model.transform(NEW) - new @ coefficients
    assert (residual.var(axis=0) < 0.01).all()


def test_the_estimator_has_the_modes_of_the_general_one(model):
    alone = NeighborDiffusionMap(2, n_neighbors=20, random_state=0).fit(X)
    np.testing.assert_array_equal(alone.transform(NEW), model.transform(NEW))
    np.testing.assert_array_equal(alone.rates_, model.rates_)


def test_fit_transform_and_transform_agree():
    np.testing.assert_array_equal(make().fit_transform(X), make().fit(X).transform(X))


def test_seeds_do_not_change_the_modes(model):
    other = make(random_state=7).fit(X)
    np.testing.assert_allclose(other.transform(NEW), model.transform(NEW), atol=1e-6)


def test_rates_are_the_complement_of_the_eigenvalues(model):
    np.testing.assert_allclose(model.rates_, 1 - model.eigenvalues_)
    assert model.lag_ is None
    assert model.kernel_ is None


def test_a_component_far_away_leaves_the_modes_of_the_others_unchanged(model):
    far = np.random.default_rng(2).standard_normal((60, 5)) * 0.05 + 100
    both = make(n_components=3).fit(np.vstack([X, far]))
    assert both.components_of_rows_.tolist() == [0] * 400 + [1] * 60
    assert np.isinf(both.timescales_[0])
    values = both.transform(X)
    assert np.ptp(values[:, 0]) < 1e-9
    assert subspace_r2(values[:, 1:], model.transform(X)) > 0.999


def test_rows_far_from_all_others_are_named_and_have_the_values_of_the_nearest():
    far = np.random.default_rng(2).standard_normal((6, 5)) * 0.01 + 50
    with pytest.warns(UnreliableModesWarning) as caught:
        found = make().fit(np.vstack([X, far]))
    (check,) = [warning.message.check for warning in caught]
    assert check.code == "small-groups"
    assert check.where == tuple(range(400, 406))
    assert (found.components_of_rows_[400:] == -1).all()
    values = found.transform(np.vstack([X, far]))
    assert np.isin(values[400:], values[:400]).all()


def test_five_single_far_rows_change_little(model):
    far = 100 * np.eye(5)  # farther from one another than from the arc
    found = make().fit(np.vstack([X, far]))
    assert subspace_r2(found.transform(X), model.transform(X)) > 0.99


def test_unstable_modes_are_named():
    noise = np.random.default_rng(0).standard_normal((150, 20))
    with pytest.warns(UnreliableModesWarning) as caught:
        found = make(n_components=4).fit(noise)
    assert [warning.message.check.code for warning in caught] == ["unstable-span"]
    assert found.suggested_n_components_ < 4
    assert found.fold_agreement_ < 0.5


def test_structure_is_stable():
    assert make(n_components=6).fit(X).fold_agreement_ > 0.8


def test_components_appear_in_the_report(tmp_path):
    far = np.random.default_rng(2).standard_normal((60, 5)) * 0.05 + 100
    rows = np.vstack([X, far])
    both = make(n_components=3).fit(rows)
    assert "∞" in kdmaps.report.render_report(both, rows) or "inf" in kdmaps.report.render_report(both, rows)
    both.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(kdmaps.load(tmp_path / "model.npz").rates_, both.rates_)


def test_a_column_that_counts_rows_is_named():
    with pytest.warns(DataWarning, match="look like a time or an index"):
        make().fit(np.column_stack([X, np.arange(len(X))]))


def test_stored_models_are_the_same(model, tmp_path):
    model.save(tmp_path / "model.npz")
    loaded = kdmaps.load(tmp_path / "model.npz")
    assert isinstance(loaded, NeighborDiffusionMap)
    np.testing.assert_array_equal(loaded.transform(NEW), model.transform(NEW))
    np.testing.assert_array_equal(loaded.gradient(NEW), model.gradient(NEW))
    np.testing.assert_array_equal(loaded.components_of_rows_, model.components_of_rows_)
    assert loaded.n_neighbors == 20
    assert loaded.fold_agreement_ == model.fold_agreement_
    assert loaded.suggested_n_components_ == model.suggested_n_components_
    loaded.save(tmp_path / "again.npz")
    assert read_header(tmp_path / "again.npz") == read_header(tmp_path / "model.npz")
    stored, again = (read_archive(tmp_path / name) for name in ("model.npz", "again.npz"))
    for name in stored.keys() - {"header", "digest"}:
        np.testing.assert_array_equal(again[name], stored[name])
    assert loaded.checks.outcomes == model.checks.outcomes


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("graph.values", lambda a: a[:-1], "expected"),
        ("graph.eigenvalues", lambda a: a * np.nan, "NaN"),
        ("graph.eigenvalues", lambda a: -a, "positive"),
        ("graph.row_widths", lambda a: a * 0, "positive"),
        ("graph.rows", lambda a: a[:15], "expected"),
        ("graph.means", lambda a: None, "missing"),
    ],
)
def test_damaged_files_are_refused(model, tmp_path, name, change, message):
    model.save(tmp_path / "model.npz")
    arrays = read_archive(tmp_path / "model.npz")
    del arrays["digest"]
    changed = change(arrays.pop(name))
    if changed is not None:
        arrays[name] = changed
    with open(tmp_path / "bad.npz", "wb") as file:
        write_archive(file, arrays)
    with pytest.raises(ValueError, match=message):
        kdmaps.load(tmp_path / "bad.npz")


def test_single_precision_rows_and_data_frames():
    table = pd.DataFrame(X.astype(np.float32), columns=list("abcde"))
    found = make().fit(table)
    assert found.feature_names_in_.tolist() == list("abcde")
    assert found.transform(table).dtype == np.float32
    with pytest.raises(ValueError, match="feature names"):
        found.transform(table[list("edcba")])


def test_lists_of_arrays_are_joined(model):
    joined = make().fit([X[:150], X[150:]])
    np.testing.assert_array_equal(joined.transform(X), model.transform(X))


def test_the_report_says_that_rates_have_no_unit(model):
    page = kdmaps.report.render_report(model, X)
    assert "no unit of time" in page
    assert "length²/D" not in page


def test_a_notebook_shows_the_graph(model):
    assert "graph of 20 neighbours of 400 rows" in model._repr_html_()


def test_states_and_relevance(model):
    assert kdmaps.relevance(model, X).overall[:2].sum() > 0.9
    assert kdmaps.dynamics.coarse_states(model.transform(X), 2).populations.size == 2


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"lag": 1}, "lag"),
        ({"diffusion": 2.0}, "diffusion"),
        ({"time_step": 1.0}, "time_step"),
        ({"reversible": False}, "reversible"),
        ({"standardize": True}, "standardize"),
        ({"isolated": "drop"}, "isolated"),
        ({"diffusion": np.ones(5)}, "diffusion"),
        ({"search": kdmaps.KernelSearchCV()}, "search"),
    ],
)
def test_settings_without_a_meaning_are_refused(parameters, named):
    with pytest.raises(NotApplicable, match=named):
        make(**parameters).fit(X)


def test_weights_groups_and_streams_are_refused():
    with pytest.raises(NotApplicable, match="sample_weight"):
        make().fit(X, sample_weight=np.ones(len(X)))
    with pytest.raises(NotApplicable, match="groups"):
        make().fit(X, groups=np.zeros(len(X)))
    with pytest.raises(NotApplicable, match="in memory"):
        make().fit(as_source(lambda: iter([X])))


def test_bad_arguments_name_the_remedy():
    for parameters, expected in (({"n_neighbors": 400}, "n_neighbors=400"), ({"n_neighbors": 2}, "at least 3")):
        with pytest.raises(ArgumentError, match=expected):
            make(**parameters).fit(X)
    with pytest.raises(ArgumentError, match="n_components=40"):
        make(n_components=40).fit(X[:40])
    with pytest.raises(Undetermined, match="determines"):
        make(n_components=30).fit(np.random.default_rng(0).standard_normal((40, 30)))
    with pytest.raises(ArgumentError, match="copies of one another"):
        make().fit(np.ones((50, 2)))
    with pytest.raises(ValueError, match="energy must be one of"):
        make(energy="graph").fit(X)
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="row"):
            make().fit(np.where(np.arange(len(X))[:, None] == 3, bad, X))
    with pytest.raises(ValueError, match="features"):
        make().fit(X).transform(X[:, :3])


def test_scores_and_error_bars_are_refused(model):
    with pytest.raises(NotApplicable, match="no score"):
        model.score(X)
    with pytest.raises(NotApplicable, match="no error bars"):
        kdmaps.uncertainty.bootstrap(model, X)


def test_it_can_be_cloned(model):
    assert clone(model).get_params()["energy"] == "neighbors"
