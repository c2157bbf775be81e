"""Bad input: a message with a remedy, and no partial result."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GroupKFold

import kdmaps
from kdmaps import Factor, KernelDiffusionMap, KernelSearchCV, VariationalKernelMap, problems
from kdmaps.baselines import DiffusionMap
from kdmaps.data import as_source
from kdmaps.exceptions import ArgumentError, DataWarning
from shared import adaptive, checks, expects, known

N = 60
X = np.random.default_rng(0).standard_normal((N, 2))


def spoiled(value):
    bad = X.copy()
    bad[7, 1] = value
    return bad


def indefinite(X):
    return np.broadcast_to([[1.0, 2.0], [2.0, 1.0]], (len(X), 2, 2))


# name: (arguments of the estimator, samples, arguments of fit, message)
CASES = {
    "NaN": ({}, spoiled(np.nan), {}, "contains NaN"),
    "infinity": ({}, spoiled(np.inf), {}, "contains infinity"),
    "minus infinity": ({}, spoiled(-np.inf), {}, "contains infinity"),
    "infinity in single precision": ({}, spoiled(np.inf).astype(np.float32), {}, "contains infinity"),
    "no samples": ({}, np.empty((0, 2)), {}, r"Found array with 0 sample\(s\)"),
    "no columns": ({}, np.empty((5, 0)), {}, r"Found array with 0 feature\(s\)"),
    "one dimension": ({}, X[:, 0], {}, "one dimension"),
    "three dimensions": ({}, X[None], {}, "dim 3"),
    "one sample": ({}, X[:1], {}, r"1 sample\(s\) .* too few for 2 mode"),
    "too few samples": ({"n_components": 4}, X[:4], {}, r"4 sample\(s\) .* too few for 4 mode"),
    "text": ({}, np.array([["a", "b"]] * 9, dtype=object), {}, "could not convert string to float"),
    "None in objects": ({}, np.array([[None, 1.0]] * 9, dtype=object), {}, "NaN"),
    "complex": ({}, X + 1j, {}, "Complex data not supported"),
    "all equal": ({}, np.ones((20, 3)), {}, "All samples of X are equal"),
    "all equal, bandwidth given": ({"bandwidth": 1.0}, np.ones((20, 3)), {}, "determine only 0 modes"),
    "all equal, landmarks": (
        {"bandwidth": 1.0, "basis": "landmarks"},
        np.ones((20, 3)),
        {},
        "exceeds the number of features|determine only",
    ),
    "duplicates": ({"n_components": 4}, np.repeat(X[:4], 10, axis=0), {}, "determine only 3 modes"),
    "duplicates, landmarks": (
        {"n_components": 4, "basis": "landmarks"},
        np.repeat(X[:4], 10, axis=0),
        {},
        "determine only 3 modes",
    ),
    "unknown kernel": ({"kernel": "sinc"}, X, {}, "Unknown kernel 'sinc'; choose one of gaussian, laplacian"),
    "kernel class": ({"kernel": 3.0}, X, {}, "Unknown kernel 3.0"),
    "unknown basis": ({"basis": "splines"}, X, {}, "Unknown basis 'splines'; choose one of fourier"),
    "unknown sampling": ({"sampling": "halton"}, X, {}, "sampling must be 'iid', 'orthogonal' or 'sobol'"),
    "unknown landmarks": ({"basis": "landmarks", "landmarks": "best"}, X, {}, "landmarks must be 'kmeans'"),
    "landmarks in words": (
        {"basis": "landmarks", "landmarks": ["a", "b"]},
        X,
        {},
        r"landmarks must be 'kmeans', 'uniform' or a finite array with 2 columns like X, got \['a', 'b'\]",
    ),
    "ragged landmarks": ({"basis": "landmarks", "landmarks": [[1, 2], [3]]}, X, {}, "landmarks must be 'kmeans'"),
    "landmarks elsewhere": ({"basis": "landmarks", "landmarks": np.ones((4, 5))}, X, {}, "2 columns like X"),
    "bandwidth zero": ({"bandwidth": 0}, X, {}, "bandwidth must be positive and finite, got 0"),
    "bandwidth negative": ({"bandwidth": -1.0}, X, {}, "bandwidth must be positive and finite"),
    "bandwidth NaN": ({"bandwidth": np.nan}, X, {}, "bandwidth must be positive and finite"),
    "bandwidth None": ({"bandwidth": None}, X, {}, "bandwidth must be positive and finite"),
    "bandwidth unknown": ({"bandwidth": "scott"}, X, {}, "bandwidth must be 'median', a number or one number per"),
    "bandwidths in words": ({"bandwidth": ["a", "b"]}, X, {}, "bandwidth must be a number or one number per coord"),
    "three bandwidths": ({"bandwidth": [1, 1, 1]}, X, {}, "bandwidth has 3 entries but X has 2 columns"),
    "one bandwidth": ({"bandwidth": [1.0]}, X, {}, "bandwidth has 1 entries but X has 2 columns"),
    "three bandwidths, landmarks": (
        {"bandwidth": [1, 1, 1], "basis": "landmarks"},
        X,
        {},
        "bandwidth has 3 entries but X has 2 columns",
    ),
    "negative weight": (
        {},
        X,
        {"sample_weight": np.r_[-1.0, np.ones(N - 1)]},
        "sample_weight contains negative numbers in row",
    ),
    "all weights zero": ({}, X, {"sample_weight": np.zeros(N)}, "Sample weights must contain|at least one positive"),
    "wrong number of weights": ({}, X, {"sample_weight": np.ones(N - 1)}, r"sample_weight has shape \(59,\)"),
    "a single weight": ({}, X, {"sample_weight": 2.0}, r"sample_weight has shape \(\)"),
    "too few groups": ({}, X, {"groups": np.zeros(4)}, "groups must hold one label"),
    "too many groups": ({}, X, {"groups": np.zeros(N + 1)}, "groups must hold one label"),
    "weights in words": ({}, X, {"sample_weight": ["a"] * N}, "sample_weight must be one number per sample, got"),
    "complex weights": ({}, X, {"sample_weight": np.full(N, 1j)}, "sample_weight must be one number per sample, got"),
    "NaN weight": ({}, X, {"sample_weight": np.r_[np.nan, np.ones(N - 1)]}, "contains NaN"),
    "infinite weight": ({}, X, {"sample_weight": np.r_[np.inf, np.ones(N - 1)]}, "contains infinity"),
    "too few positive weights": (
        {"n_components": 2},
        X,
        {"sample_weight": np.r_[1.0, 1.0, np.zeros(N - 2)]},
        r"2 sample\(s\) of X \(of positive weight\) are too few",
    ),
    "no modes": ({"n_components": 0}, X, {}, "n_components must be a positive integer, got 0"),
    "a mode and a half": ({"n_components": 1.5}, X, {}, "n_components must be a positive integer, got 1.5"),
    "minus one mode": ({"n_components": -1}, X, {}, "n_components must be a positive integer"),
    "more modes than features": (
        {"n_components": 20, "n_features": 8},
        X,
        {},
        "n_components=20 exceeds n_features=8.*ask for fewer modes",
    ),
    "no features": ({"n_features": 0}, X, {}, "n_features must be a positive integer, got 0"),
    "features in words": ({"n_features": "many"}, X, {}, "n_features must be a positive integer"),
    "no regularization": ({"regularization": 0}, X, {}, "regularization must be a positive number, got 0"),
    "negative regularization": ({"regularization": -1e-3}, X, {}, "regularization must be a positive number"),
    "NaN regularization": ({"regularization": np.nan}, X, {}, "regularization must be a positive number"),
    "infinite regularization": ({"regularization": np.inf}, X, {}, "regularization must be a positive number"),
    "regularization None": ({"regularization": None}, X, {}, "regularization must be a positive number"),
    "diffusion of wrong shape": ({"diffusion": np.ones(3)}, X, {}, r"diffusion of shape \(3,\) does not fit X with 2"),
    "diffusion per sample of wrong size": (
        {"diffusion": np.ones((N, 3, 3))},
        X,
        {},
        rf"diffusion per sample must have shape .*got \({N}, 3, 3\)",
    ),
    "wrong number of tensors": ({"diffusion": np.ones((5, 2, 2))}, X, {}, "diffusion holds 5 tensors but X has 60"),
    "wrong number of factors": (
        {"diffusion": Factor(np.ones((5, 2, 1)))},
        X,
        {},
        "diffusion holds 5 tensors but X has 60",
    ),
    "diffusion zero": ({"diffusion": 0.0}, X, {}, "positive semidefinite and not zero"),
    "diffusion negative": ({"diffusion": -1.0}, X, {}, "positive semidefinite and not zero"),
    "diffusion indefinite": ({"diffusion": [[1.0, 2.0], [2.0, 1.0]]}, X, {}, "positive semidefinite"),
    "diffusion not symmetric": ({"diffusion": [[1.0, 0.5], [0.0, 1.0]]}, X, {}, "finite symmetric matrix"),
    "diffusion NaN": ({"diffusion": [1.0, np.nan]}, X, {}, "finite symmetric matrix"),
    "diffusion in words": (
        {"diffusion": "fast"},
        X,
        {},
        "must be None, .tangent., a number, an array or a callable",
    ),
    "callable indefinite": ({"diffusion": indefinite}, X, {}, "positive semidefinite at every sample"),
    "callable not symmetric": (
        {"diffusion": lambda X: np.broadcast_to([[1.0, 0.5], [0.0, 1.0]], (len(X), 2, 2))},
        X,
        {},
        "symmetric at every sample",
    ),
    "callable negative": ({"diffusion": lambda X: -np.ones(len(X))}, X, {}, "holds negative values"),
    "callable NaN": ({"diffusion": lambda X: np.full(len(X), np.nan)}, X, {}, "diffusion holds NaN or infinity"),
    "callable of wrong shape": ({"diffusion": lambda X: np.ones(3)}, X, {}, r"diffusion per sample must have shape"),
    "callable gives a number": ({"diffusion": lambda X: 1.0}, X, {}, r"diffusion per sample must have shape"),
    "callable gives nothing": ({"diffusion": lambda X: None}, X, {}, r"diffusion per sample must have shape"),
    "tensors NaN": ({"diffusion": np.full((N, 2, 2), np.nan)}, X, {}, "diffusion holds NaN or infinity"),
}


@pytest.mark.parametrize("method", ["fit", "partial_fit", "fit_transform"])
@pytest.mark.parametrize("case", CASES)
def test_message(case, method):
    arguments, samples, fit_arguments, message = CASES[case]
    model = KernelDiffusionMap(**{"n_components": 2, "n_features": 40, "random_state": 0, **arguments})
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(samples, **fit_arguments)
    assert not hasattr(model, "coefficients_")
    assert [name for name in vars(model) if name.endswith("_")] == []


def test_sparse():
    with pytest.raises(TypeError, match="X is a sparse matrix"):
        KernelDiffusionMap(2).fit(sparse.csr_array(X))


def test_objects_that_are_numbers():
    one, two = (KernelDiffusionMap(2, n_features=20, random_state=0).fit(Z) for Z in (X, X.astype(object)))
    np.testing.assert_array_equal(one.transform(X), two.transform(X))


@known("discrete-columns")
def test_whole_numbers():
    Z = np.random.default_rng(1).integers(-5, 5, (N, 2))
    one, two = (KernelDiffusionMap(2, n_features=20, random_state=0).fit(S) for S in (Z, Z.astype(float)))
    np.testing.assert_allclose(one.rates_, two.rates_, rtol=1e-12)


ESTIMATORS = {
    "one kernel": KernelDiffusionMap(2, n_features=20, random_state=0),
    "search": KernelSearchCV(
        2, families=["gaussian"], bandwidths=2, regularizations=[1e-2], n_features=20, random_state=0
    ),
    "adaptive": adaptive(2, families=["gaussian"], regularizations=[1e-2], n_features=20, random_state=0),
    "variational": VariationalKernelMap(2, n_features=20, adam_steps=1, lbfgs_steps=1, random_state=0),
    "classical": DiffusionMap(2, random_state=0),
}
TABLE = "X must be a table of real numbers, one row per sample: "
# name: (samples, message)
SAMPLES = {
    "words": (np.array([["a", "b"]] * N), f"{TABLE}could not convert"),
    "objects": (np.array([[{}, 1.0]] * N, dtype=object), f"{TABLE}float"),
    "one dimension": (X[:, 0], "X must be .* one dimension"),
    "three dimensions": (X[None], f"{TABLE}Found array with dim 3"),
    "no samples": (X[:0], rf"{TABLE}Found array with 0 sample\(s\)"),
    "complex": (X + 1j, "Complex data not supported"),
    "ragged": ([[1.0, 2.0], [3.0]] * 30, f"{TABLE}setting an array element"),
    "nothing": (None, "X must be a table of real numbers"),
    "named fields": (np.zeros(N, dtype=[("x", float), ("y", float)]), "X is a structured array with the fields x, y"),
    "missing integers": (
        pd.DataFrame({"x": pd.array([None, *range(N - 1)], dtype="Int64"), "y": X[:, 1]}),
        r"X contains NaN in row\(s\) 0 ",
    ),
    "masked": (np.ma.masked_greater(X, 1.0), "X has masked values"),
    "dates": (np.datetime64("2020-01-01") + np.arange(2 * N).reshape(N, 2), "X holds dates or durations; divide"),
    "durations": (np.arange(2 * N).reshape(N, 2).astype("timedelta64[s]"), "X holds dates or durations; divide"),
    "huge": (1e200 * X, "Squared distances between samples of X overflow; give X in larger units"),
}


@pytest.mark.parametrize("case", SAMPLES)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_rejects_samples_that_are_not_numbers(name, case):
    samples, message = SAMPLES[case]
    with pytest.raises((TypeError, ValueError), match=message):
        clone(ESTIMATORS[name]).fit(samples)


@pytest.mark.parametrize("step", [np.timedelta64(1, "s"), pd.Timedelta("1s"), True, 0, "1"])
def test_rejects_time_steps_that_are_not_numbers(step):
    with pytest.raises(ValueError, match="time_step must be a positive number"):
        KernelDiffusionMap(1, lag=1, time_step=step).fit(X)


@pytest.mark.parametrize(
    ("samples", "message"),
    [(X[:, 0], "X must be .* one dimension. Reshape"), (spoiled(np.nan), r"NaN in row\(s\)")],
)
def test_samples_without_a_model(samples, message):
    with pytest.raises(ValueError, match=message):
        as_source(samples)


def test_a_mask_that_hides_nothing():
    model = clone(ESTIMATORS["one kernel"])
    np.testing.assert_array_equal(model.fit(np.ma.masked_greater(X, 99)).transform(X), model.fit(X).transform(X))


@pytest.mark.parametrize("groups", [np.zeros(N - 1), np.zeros((N, 2)), "a", 5], ids=str)
def test_groups(groups):
    with pytest.raises(ValueError, match="groups must hold one label"):
        clone(ESTIMATORS["search"]).set_params(cv=GroupKFold(3)).fit(X, groups=groups)


def test_groups_of_a_stream():
    with pytest.raises(ValueError, match="groups must hold one label for each of the 60"):
        KernelDiffusionMap(1).fit((part for part in np.array_split(X, 3)), groups=np.zeros(4))


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("random_state", ["x", 1.5, -1, np.random.default_rng(0)], ids=str)
def test_random_state(name, random_state):
    with pytest.raises(ValueError, match="random_state must be None, an integer from 0"):
        clone(ESTIMATORS[name]).set_params(random_state=random_state).fit(X)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (1.0, r"for each of the 60 samples of X, got shape \(\)"),
        (None, r"for each of the 60 samples of X, got shape \(\)"),
        (X[:5, 0], r"for each of the 60 samples of X, got shape \(5,\)"),
        (np.ones((N, 2, 2)), r"for each of the 60 samples of X, got shape \(60, 2, 2\)"),
        (["a"] * N, "values must be one number, or one row of numbers, for each of the 60 samples of X, got"),
        (X + 1j, "values must be one number, or one row of numbers, for each of the 60 samples of X, got"),
        (spoiled(np.nan), "values holds NaN or infinity; leave these samples out"),
    ],
)
def test_values_of_an_expectation(values, message):
    with pytest.raises(ValueError, match=message):
        clone(ESTIMATORS["one kernel"]).fit(X).predict_expectation(X, values, time=1.0)


def test_files_with_a_number_for_a_name():
    model = clone(ESTIMATORS["one kernel"]).fit(X)
    with pytest.raises(ValueError, match=r"out must be the name of a file, got 5"):
        model.transform(X, out=5)
    with pytest.raises(ValueError, match=r"path must be the name of a file, got 5"):
        model.save(5)


@pytest.mark.parametrize("n", [3, N + 1])
@pytest.mark.parametrize("make", [lambda n: np.ones((n, 2, 2)), lambda n: Factor(np.ones((n, 2, 1)))])
def test_number_of_tensors_for_a_search(make, n):
    with pytest.raises(ValueError, match=f"{n} tensors but X has {N} samples"):
        clone(ESTIMATORS["search"]).set_params(diffusion=make(n)).fit(X)


def test_an_objective_is_checked_before_the_search(monkeypatch):
    monkeypatch.setattr("kdmaps.estimators.search.search", lambda *_, **__: pytest.fail("searched first"))
    with pytest.raises(ValueError, match="Unknown objective 'x'"):
        clone(ESTIMATORS["adaptive"]).set_params(refine="x").fit(X)


@pytest.mark.parametrize("method", ["transform", "gradient", "score"])
class TestFitted:
    def model(self):
        return KernelDiffusionMap(2, n_features=20, random_state=0).fit(X)

    def test_not_fitted(self, method):
        with pytest.raises(ValueError, match="not fitted yet"):
            getattr(KernelDiffusionMap(2), method)(X)

    @pytest.mark.parametrize("columns", [1, 3])
    def test_wrong_dimension(self, method, columns):
        with pytest.raises(
            ValueError, match=f"X has {columns} features, but KernelDiffusionMap is expecting 2 features"
        ):
            getattr(self.model(), method)(np.ones((5, columns)))

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_not_finite(self, method, value):
        with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
            getattr(self.model(), method)(spoiled(value))

    def test_partial_fit_of_another_dimension(self, method):
        model = self.model()
        before = getattr(model, method)(X)
        with pytest.raises(ValueError, match="X has 3 features"):
            model.partial_fit(np.ones((5, 3)))
        np.testing.assert_array_equal(getattr(model, method)(X), before)


def test_score_needs_the_tensors_of_its_own_samples():
    model = KernelDiffusionMap(2, n_features=20, random_state=0, diffusion=np.broadcast_to(np.eye(2), (N, 2, 2))).fit(X)
    with pytest.raises(ValueError, match="60 tensors but X has 10 samples"):
        model.score(X[:10], diffusion=model.diffusion)


def test_constant_column():
    Z = np.insert(X, 1, 3.0, axis=1)
    with expects("constant-columns") as record:
        model = KernelDiffusionMap(2, n_features=40, bandwidth=2.0, basis="full", random_state=0).fit(Z)
    assert record[0].filename == __file__
    # It adds nothing to any distance, so the modes are those without it.
    without = KernelDiffusionMap(2, n_features=40, bandwidth=2.0, basis="full", random_state=0).fit(X)
    np.testing.assert_allclose(model.rates_, without.rates_, rtol=1e-6)


def test_constant_column_by_name():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x": X[:, 0], "fixed": 1.0, "y": X[:, 1]})
    with expects("constant-columns") as record:
        KernelDiffusionMap(2, n_features=40, random_state=0).fit(frame)
    assert checks(record)[0].where == ("fixed",)


def test_duplicates_are_no_reason_to_complain():
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        model = KernelDiffusionMap(2, n_features=40, random_state=0).fit(np.repeat(X, 3, axis=0))
    single = KernelDiffusionMap(2, n_features=40, random_state=0).fit(X)
    np.testing.assert_allclose(model.rates_, single.rates_, rtol=1e-7)


def test_samples_are_never_written_to():
    for basis in ("fourier", "random-phase", "landmarks", "full"):
        Z = X.copy()
        Z.flags.writeable = False
        weight = np.ones(N)
        weight.flags.writeable = False
        model = KernelDiffusionMap(2, n_features=20, basis=basis, random_state=0).fit(Z, sample_weight=weight)
        model.transform(Z)
        model.gradient(Z)
        model.score(Z, sample_weight=weight)
        np.testing.assert_array_equal(Z, X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"families": []}, "families must be a non-empty list"),
        ({"families": ["triangle"]}, "families holds 'triangle'; choose from gaussian"),
        ({"bandwidths": 0}, "bandwidths must be at least 1"),
        ({"bandwidths": [1.0, -1.0]}, "bandwidths must be positive"),
        ({"bandwidth_range": (3, 1)}, "bandwidth_range"),
        ({"regularizations": [0.0]}, "regularizations must be positive"),
        ({"scoring": "accuracy"}, "Unknown scoring"),
        ({"n_components": 0}, "n_components must be a positive integer"),
        ({"n_components": 60}, "determine 60 mode"),
        ({"n_components": 61}, "exceeds n_features"),
        ({"bandwidths": "median"}, "bandwidths must be 'auto'"),
        ({"regularizations": "small"}, "regularizations must be positive"),
        ({"families": None}, "families must be a non-empty list"),
        ({"scoring": ["timescale"]}, "Unknown scoring"),
        ({"bandwidth_range": 3}, "bandwidth_range"),
        ({"max_extensions": None}, "max_extensions"),
        ({"center": False}, "needs center=True"),
        ({"scoring": lambda fold: np.nan}, "finite score"),
        ({"cv": [(np.arange(100), np.arange(100))] * 2}, "must be disjoint"),
        ({"cv": 1}, r"cv must be from 2 folds to as many as X has samples \(n_samples=300\), got 1"),
        ({"cv": 301}, r"cv must be from 2 folds to as many as X has samples \(n_samples=300\), got 301"),
        ({"n_jobs": 0}, "n_jobs must be None or an integer of threads"),
        ({"n_jobs": "two"}, "n_jobs must be None or an integer of threads"),
        ({"checkpoint": 5}, "checkpoint must be the name of a file, got 5"),
        ({"families": 5}, "families must be a non-empty list"),
        ({"families": iter(["gaussian"])}, "families must be a non-empty list"),
        ({"bandwidth_range": ("a", "b")}, "bandwidth_range must be two positive numbers"),
        (
            {"cv": [(np.arange(150), np.arange(150, 400)), (np.arange(150, 300), np.arange(150))]},
            "cv gives row numbers",
        ),
    ],
)
def test_settings_of_a_search(change, message):
    X = problems.load("dw1d").sample(300, random_state=0)
    settings = {"n_components": 2, "families": ["gaussian"], "bandwidths": 2, "n_features": 60, "random_state": 0}
    with pytest.raises(ValueError, match=message):
        KernelSearchCV(**{**settings, **change}).fit(X)


def test_a_truth_value_is_no_number_of_modes():
    with pytest.raises(ValueError, match="n_components must be a positive integer, got True"):
        KernelDiffusionMap(True).fit(np.random.default_rng(0).standard_normal((40, 2)))


class CellsOfAnnData:
    """The attributes by which an AnnData object is recognised."""

    n_obs = 10
    shape = (10, 3)
    obsm: dict = {}  # noqa: RUF012


@pytest.mark.parametrize(
    "call",
    [
        lambda X: kdmaps.AdaptiveDiffusionMap().fit(X),
        lambda X: kdmaps.KernelDiffusionMap().fit(X),
        lambda X: kdmaps.NeighborDiffusionMap().fit(X),
        lambda X: kdmaps.AdaptiveCommittor().fit(X, np.zeros(10)),
        lambda X: kdmaps.VariationalKernelMap().fit(X),
        lambda X: kdmaps.AdaptiveDiffusionMap(lag=1).fit([X, X]),
        kdmaps.data.check_data,
        kdmaps.data.as_source,
    ],
)
def test_objects_of_cells_are_refused_with_the_call_to_use(call):
    with pytest.raises(ArgumentError, match=r"kdmaps\.scanpy\.diffmap"):
        call(CellsOfAnnData())
    with pytest.raises(TypeError, match="principal components"):
        call(sparse.csr_array(np.eye(10)))
