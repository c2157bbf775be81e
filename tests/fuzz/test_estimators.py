"""Any parameters with any data, in any order of calls, give finite modes or an error that names an argument.

A failed call leaves the estimator unchanged, and a repeated fit gives identical results.
"""

import re
import tempfile
import warnings
from pathlib import Path

import hypothesis.strategies as st
import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from outcomes import TIMES, count
from scipy import sparse
from sklearn.base import clone

import kdmaps
from kdmaps import KernelDiffusionMap, KernelSearchCV
from kdmaps.kernels import Gaussian, Laplacian, Matern

pytestmark = pytest.mark.slow

#: Values of parameters, valid ones first. Few features, for thousands of fits.
VALUES = {
    "n_components": [1, 2, 3, 40, 0, -1, 1.5, "two", None],
    "kernel": [
        "gaussian",
        "laplacian",
        "matern12",
        "rq2",
        Gaussian(1.0),
        Matern(2.5, 1.0),
        Laplacian([1.0, 2.0]),
        "sinc",
        None,
    ],
    "bandwidth": ["median", 1.0, 3.0, 1e-3, 1e6, [1.0, 2.0], 1e-300, 1e300, 0, -1.0, np.nan, "scott", None, []],
    "regularization": [1e-2, 1e-4, 1.0, 1e-300, 1e300, 0, np.inf, "small", None],
    "basis": ["fourier", "random-phase", "landmarks", "full", "splines", None],
    "n_features": [12, 6, 30, 1, 0, 2.5, "many"],
    "sampling": ["sobol", "iid", "orthogonal", "halton"],
    "landmarks": ["kmeans", "uniform", "best", [[0.0, 0.0]], None],
    "center": [True, False, None],
    "diffusion": [
        None,
        2.0,
        [1.0, 2.0],
        "tangent",
        np.eye(2),
        0.0,
        -1.0,
        np.nan,
        "fast",
        lambda x: x,
        lambda x: np.ones(len(x)),
    ],
    "lag": [None, 1, 3, "auto", 0, -1, 1.5, 10**9, "long"],
    "time_step": [1.0, 0.1, 1e-300, 1e300, 0, -1, np.nan, "ps"],
    "reversible": [True, False, None],
    "rates": ["ritz", "cross-fitted", "other"],
    "cv": ["auto", 3, 2, 1, 10**6, "five", None],
    "dtype": ["float64", "float32", "int8", "nonsense"],
    "memory_limit": [None, 1, 1e-9, 0, -1, "much"],
    "random_state": [0, 1],
}
SEARCHED = {
    "families": [["gaussian"], ["gaussian", "rq2"], [], "gaussian", ["sinc"], None],
    "bandwidths": [2, [1.0, 3.0], [0.0], [], -1, "many", [np.nan]],
    "regularizations": [[1e-2], [1e-3, 1.0], [], [0.0], "some", None],
    "max_extensions": [0, 1, -1, "no"],
    "scoring": ["timescale", "no such score", None],
}
ESTIMATORS = {
    "one kernel": (KernelDiffusionMap, {"n_components": 2, "n_features": 12, "random_state": 0}, {}),
    "search": (
        KernelSearchCV,
        {"n_components": 2, "n_features": 12, "random_state": 0, "families": ["gaussian"], "bandwidths": 2}
        | {"regularizations": [1e-2], "max_extensions": 0, "n_jobs": 1},
        SEARCHED,
    ),
}
#: Words of which an error message must contain one.
ARGUMENTS = {*VALUES, *SEARCHED, "X", "x", "sample_weight", "groups", "Sample weights", "n_kernels", "bandwidth_range"}
ARGUMENTS |= {"not fitted", "feature names", "Chunk", "samples", "max_search_samples", "scoring"}
NAMED = re.compile(r"|".join(rf"\b{re.escape(name)}\b" for name in ARGUMENTS))


def values_of(options):
    """Draw the first values, which are valid, more often than others."""
    return st.one_of(st.sampled_from(options[:3]), st.sampled_from(options))


@st.composite
def tables(draw):
    """Samples of any kind in any container."""
    n = draw(st.sampled_from([40] * 6 + [60, 25, 3, 2, 1, 0]))
    d = draw(st.sampled_from([2] * 6 + [1, 3]))
    rng = np.random.default_rng(draw(st.integers(0, 3)))
    X = rng.standard_normal((n, d))
    with np.errstate(all="ignore"):
        for spoil in draw(st.one_of(st.just([]), st.lists(st.sampled_from([*SPOILS]), max_size=2))):
            X = SPOILS[spoil](X)
        return draw(st.sampled_from([np.asarray] * 15 + [*CONTAINERS.values()]))(X)


def changed(X, place, value):
    X = X.copy()
    if X.size:
        X[place] = value
    return X


SPOILS = {
    "constant column": lambda X: changed(X, (slice(None), 0), 1.0),
    "duplicates": lambda X: np.repeat(X[: len(X) // 10 + 1], 10, axis=0)[: len(X)],
    "all equal": np.ones_like,
    "far": lambda X: changed(X, (0, 0), 1e300),
    "farther than single precision": lambda X: changed(X, (0, 0), 1e39),
    "outlier": lambda X: changed(X, (0, 0), 1e8),
    "tiny": lambda X: X * 1e-300,
    "subnormal": lambda X: X * 1e-310,
    "huge": lambda X: X * 1e150,
    "large": lambda X: X * 1e10,
    "offset": lambda X: X + 1e12,
    "NaN": lambda X: changed(X, (-1, -1), np.nan),
    "infinity": lambda X: changed(X, (-1, -1), np.inf),
    "correlated": lambda X: np.cumsum(X, axis=0),
    "dependent columns": lambda X: X @ np.ones((X.shape[1], X.shape[1])),
}
CONTAINERS = {
    "array": lambda X: X,
    "single": lambda X: np.clip(X, -3e38, 3e38).astype(np.float32),
    "columns first": np.asfortranarray,
    "backwards": lambda X: X[::-1, ::-1],
    "integers": lambda X: np.nan_to_num(np.clip(3 * X, -9, 9)).astype(int),
    "booleans": lambda X: X > 0,
    "objects": lambda X: X.astype(object),
    "complex": lambda X: X + 0j,
    "words": lambda X: X.astype(str),
    "lists": lambda X: X.tolist(),
    "frame": lambda X: pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])]),
    "sparse": sparse.csr_array,
    "one dimension": lambda X: X[:, 0],
    "trajectories": lambda X: [X[: len(X) // 2], X[len(X) // 2 :]],
    "stream": lambda X: lambda: iter([X[: len(X) // 2], X[len(X) // 2 :]]),
    "nothing": lambda X: None,
}


def weights_and_groups(draw, X):
    """Weights and groups, or none, which may not match X."""
    parts = X if isinstance(X, list) and X and hasattr(X[0], "shape") else [X]
    n = sum(part.shape[0] if hasattr(part, "shape") else len(part) if isinstance(part, list) else 40 for part in parts)
    weights = [None, None, None, np.ones(n), np.linspace(0, 1, n), np.zeros(n), np.full(n, 1e300), np.full(n, 1e-300)]
    weights += [np.full(n, np.nan), -np.ones(n), np.ones(n + 1), ["a"] * n]
    groups = [None, None, None, np.arange(n) // 10, np.arange(n + 1), np.zeros(n), ["a"] * n]
    if draw(st.booleans()):
        return {}
    chosen = {"sample_weight": draw(st.sampled_from(weights)), "groups": draw(st.sampled_from(groups))}
    return {name: value for name, value in chosen.items() if value is not None}


def fingerprint(model):
    """A digest of all attributes of a model, with functions replaced by their names."""
    plain = {name: repr(value) if callable(value) else value for name, value in vars(model).items()}
    return joblib.hash(plain)


class Calls(RuleBasedStateMachine):
    """An estimator, and calls of it in any order."""

    @initialize(name=st.sampled_from([*ESTIMATORS]), data=st.data())
    def make(self, name, data):
        cls, valid, others = ESTIMATORS[name]
        self.pool = {key: VALUES[key] for key in VALUES if key in cls._get_param_names()} | others
        self.name, self.model, self.valid = name, cls(**valid), cls(**valid).get_params()
        if data.draw(st.booleans()):
            self.attempt("fit", lambda: self.model.fit(np.random.default_rng(9).standard_normal((60, 2))))
        for key in data.draw(st.lists(st.sampled_from([*self.pool]), max_size=2, unique=True)):
            self.model.set_params(**{key: data.draw(values_of(self.pool[key]))})

    def attempt(self, what, call):
        """Make a call; return its result, or None after an allowed error."""
        before = fingerprint(self.model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                result, said = call(), None
            except (ValueError, TypeError) as error:
                result, said = None, repr(error)
        if said is not None:
            assert NAMED.search(said), said
            assert fingerprint(self.model) == before
        count(f"{what}, {self.name}", "error" if said else "as written" if what == "save and load" else "finite")
        return result

    @rule(X=tables(), data=st.data())
    def fit(self, X, data):
        given = weights_and_groups(data.draw, X)
        if self.attempt("fit", lambda: self.model.fit(X, **given)) is None:
            self.model.set_params(**self.valid)  # for the calls that follow
        else:
            assert_finite(self.model)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                again = clone(self.model).fit(X, **given)
            np.testing.assert_array_equal(again.rates_, self.model.rates_)
            np.testing.assert_array_equal(again.coefficients_, self.model.coefficients_)

    @precondition(lambda self: hasattr(self.model, "partial_fit"))
    @rule(X=tables(), data=st.data())
    def partial_fit(self, X, data):
        given = weights_and_groups(data.draw, X)
        if self.attempt("partial_fit", lambda: self.model.partial_fit(X, **given)) is not None:
            assert_finite(self.model)

    @rule(data=st.data())
    def set_params(self, data):
        key = data.draw(st.sampled_from([*self.pool]))
        self.model.set_params(**{key: data.draw(values_of(self.pool[key]))})

    @rule()
    def save_and_load(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.npz"
            if self.attempt("save and load", lambda: self.model.save(path) or True):
                same = kdmaps.load(path)
                np.testing.assert_array_equal(same.rates_, self.model.rates_)
                np.testing.assert_array_equal(same.coefficients_, self.model.coefficients_)

    @rule(X=tables())
    def transform(self, X):
        modes = self.attempt("transform", lambda: self.model.transform(X))
        if modes is not None:
            assert all(np.isfinite(part).all() for part in (modes if isinstance(modes, list) else [modes]))

    @rule(X=tables())
    def score(self, X):
        score = self.attempt("score", lambda: self.model.score(X))
        assert score is None or np.isfinite(score)


def assert_finite(model):
    assert np.isfinite(model.coefficients_).all()
    assert np.isfinite(model.eigenvalues_).all()
    assert not np.isnan(model.timescales_).any()


def test_any_calls():
    run_state_machine_as_test(
        Calls,
        settings=settings(
            max_examples=25 * TIMES,
            stateful_step_count=8,
            deadline=None,
            derandomize=TIMES == 1,
            database=None,
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=True,
        ),
    )
