"""BLAS has one thread while a public function computes, and its former number of threads afterwards."""

import inspect
import types

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import kdmaps
from kdmaps.bases import FourierBasis, LandmarkBasis
from shared import known_finding, known_warning

#: Short paths that depend on the rows nearby, and few features.
pytestmark = [known_warning(), known_finding()]

#: Modules whose public functions compute something.
MODULES = ("baselines", "dynamics", "generators", "metrics", "report", "uncertainty")
#: Public functions and methods that compute nothing that takes time, or call others that are limited.
FREE = {
    *("load", "save", "relevance_at", "modes_at"),
    *("for_problem", "split", "get_n_splits"),
    "rayleigh_residuals",
    "drift",
    "suggest_states",
    "memberships_at",
    "milestones",
    "to_deeptime",
    *("table", "cells", "slowest", "warnings", "checks"),
    *("get_feature_names_out", "get_metadata_routing", "get_params", "set_params", "set_output"),
    *("fit_transform", "set_fit_request", "set_score_request", "set_transform_request", "set_predict_request"),
    *("set_partial_fit_request", "set_inverse_transform_request"),
}


def public_functions():
    """Public functions, and methods of public classes, with their names."""
    objects = [getattr(kdmaps, name) for name in dir(kdmaps)]
    for name in MODULES:
        module = getattr(kdmaps, name)
        everything = [getattr(module, attribute) for attribute in dir(module) if not attribute.startswith("_")]
        objects += [one for one in everything if getattr(one, "__module__", "").startswith(module.__name__)]
    for one in objects:
        if inspect.isclass(one):
            for name, method in inspect.getmembers(one, inspect.isfunction):
                if not name.startswith("_"):
                    yield f"{one.__name__}.{name}", method
        elif isinstance(one, types.FunctionType):
            yield one.__name__, one


def is_limited(function):
    """Whether some wrapper of a function is the decorator of `contextlib`."""
    while function is not None:
        if function.__code__.co_filename.endswith("contextlib.py"):
            return True
        function = getattr(function, "__wrapped__", None)
    return False


def test_every_public_function_is_limited():
    functions = dict(public_functions())
    unlimited = {name for name, function in functions.items() if not is_limited(function)}
    assert len(functions) > 60
    assert {name for name in unlimited if name.split(".")[-1] not in FREE} == set()


def blas():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def probed(method, seen):
    def probe(*arguments, **options):
        seen.update(blas())
        return method(*arguments, **options)

    return probe


@pytest.fixture
def numbers(monkeypatch):
    """Numbers of BLAS threads whenever a basis is evaluated; outside of kdmaps it has two."""
    seen = set()
    for basis in (FourierBasis, LandmarkBasis):
        for name in ("features", "combine", "step"):
            monkeypatch.setattr(basis, name, probed(getattr(basis, name), seen))
    with threadpool_limits(2, user_api="blas"):
        if blas() != {2}:
            pytest.skip("this BLAS has one thread")
        yield seen


@pytest.fixture(scope="module")
def path():
    return kdmaps.problems.load("dw1d").trajectory(2000, 0.1, random_state=0)


@pytest.fixture(scope="module")
def model(path):
    return kdmaps.KernelDiffusionMap(2, lag=1, time_step=0.1, n_features=40, random_state=0).fit(path)


@pytest.fixture(scope="module")
def driven(path):
    settings = {"lag": 1, "time_step": 0.1, "reversible": False, "n_features": 40, "random_state": 0}
    return kdmaps.KernelDiffusionMap(2, **settings).fit(path)


def labels(path):
    return np.where(path[:, 0] < -0.8, 0, np.where(path[:, 0] > 0.8, 1, -1))


COMMANDS = {
    "fit": lambda m, d, X: kdmaps.KernelDiffusionMap(2, n_features=40, random_state=0).fit(X).transform(X),
    "landmarks": lambda m, d, X: kdmaps.KernelDiffusionMap(2, basis="landmarks", n_features=40).fit(X).transform(X),
    "transform": lambda m, d, X: m.transform(X),
    "expectation": lambda m, d, X: m.predict_expectation(X, X[:, 0], 0.5),
    "committor": lambda m, d, X: kdmaps.AdaptiveCommittor(n_features=30, random_state=0).fit(X[:300], labels(X[:300])),
    "passages": lambda m, d, X: kdmaps.dynamics.mean_first_passage_times(m, X, labels(X)),
    "implied time scales": lambda m, d, X: kdmaps.dynamics.implied_timescales(m, X, [1, 2]),
    "validation": lambda m, d, X: kdmaps.dynamics.validate(m, X),
    "forecast": lambda m, d, X: kdmaps.dynamics.forecast(m, X, X[:, 0], [0.1, 0.2]),
    "koopman": lambda m, d, X: kdmaps.dynamics.koopman(d, X),
    "bootstrap": lambda m, d, X: kdmaps.uncertainty.bootstrap(m, X, n_resamples=20),
    "report": lambda m, d, X: kdmaps.report.render_report(m, X),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_one_blas_thread_in_each_command(numbers, model, driven, path, command):
    COMMANDS[command](model, driven, path)
    assert numbers == {1}
    assert blas() == {2}


@pytest.mark.usefixtures("numbers")
def test_an_error_of_a_user_restores_the_number(path):
    def diffusion(x):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        kdmaps.KernelDiffusionMap(2, n_features=40, diffusion=diffusion).fit(path)
    assert blas() == {2}


class TestNumberOfJobs:
    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_a_committor_does_not_depend_on_it(self, monkeypatch, path, n_jobs):
        monkeypatch.setattr("kdmaps.utils.threads.n_threads", lambda: n_jobs)
        monkeypatch.setattr("kdmaps.data.sources.ArraySource.n_callers", n_jobs)
        X = np.column_stack([path[:400], path[400:800]])
        options = {"n_features": 30, "n_resamples": 50, "random_state": 0}
        both = [kdmaps.AdaptiveCommittor(**options).fit(X, labels(X))]
        monkeypatch.setattr("kdmaps.data.sources.ArraySource.n_callers", 1)
        both.append(kdmaps.AdaptiveCommittor(**options).fit(X, labels(X)))
        assert both[0].rate_ == both[1].rate_
        assert [one["score"] for one in both[0].candidates_] == [one["score"] for one in both[1].candidates_]

    @pytest.mark.parametrize(("shape", "expected"), [((1999, 99), 1), ((2000, 2), 4), ((300, 100), 4)])
    def test_small_samples_are_searched_in_one_thread(self, monkeypatch, shape, expected):
        monkeypatch.setattr("kdmaps.data.sources.n_threads", lambda: 4)
        assert kdmaps.data.ArraySource(np.zeros(shape)).n_callers == expected

    @pytest.mark.parametrize("estimator", [kdmaps.AdaptiveCommittor, kdmaps.KernelDiffusionMap])
    def test_it_limits_the_threads(self, monkeypatch, path, estimator):
        monkeypatch.setattr("kdmaps.utils.threads.ThreadPoolExecutor", None)  # an error if a pool is made
        y = (labels(path[:300]),) if estimator is kdmaps.AdaptiveCommittor else ()
        estimator(n_features=30, random_state=0, n_jobs=1).fit(path[:300], *y)
