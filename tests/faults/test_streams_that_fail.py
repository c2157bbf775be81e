"""Errors while a stream is read are raised, and leave the estimator unchanged."""

import os
import pickle
from contextlib import suppress

import numpy as np
import pytest

import kdmaps
from shared import GRID

SETTINGS = {"n_features": 30, "random_state": 0}
ESTIMATORS = {
    "one kernel": lambda: kdmaps.KernelDiffusionMap(2, **SETTINGS),
    "landmarks": lambda: kdmaps.KernelDiffusionMap(2, basis="landmarks", **SETTINGS),
    "lag": lambda: kdmaps.KernelDiffusionMap(2, lag=1, **SETTINGS),
    "search": lambda: kdmaps.KernelSearchCV(2, **GRID, **SETTINGS),
}
pytestmark = pytest.mark.filterwarnings("ignore::kdmaps.exceptions.UnreliableModesWarning")


class Broken:
    """Chunks of X; reading fails at row `at` in pass number `run`."""

    def __init__(self, X, at, run):
        self.X, self.at, self.run, self.runs, self.failed = X, at, run, 0, False

    def __call__(self):
        self.runs += 1
        return self._chunks(self.runs)

    def _chunks(self, run):
        for start in range(0, len(self.X), 40):
            if (start, run) == (self.at, self.run):
                self.failed = True
                raise OSError(5, "Input/output error", "disk")
            yield self.X[start : start + 40]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_failure_in_any_pass_of_a_fit(name, X):
    make, whole = ESTIMATORS[name], Broken(X, None, None)
    model = make().fit(whole)
    assert whole.runs > 1
    for run in range(1, 1 + whole.runs):
        for at in (0, 120):
            broken, tried = Broken(X, at, run), pickle.loads(pickle.dumps(model))
            before = pickle.dumps(vars(tried))
            tried.n_features_in_ = 99  # corrected only by a successful fit
            with suppress(OSError):
                tried.fit(broken)
            # Some passes read only the first chunk; all others must fail.
            assert (tried.n_features_in_ == 99) == broken.failed
            tried.n_features_in_ = 2
            assert pickle.dumps(vars(tried)) == before or not broken.failed


def test_failure_in_transform_and_score(X, tmp_path):
    model = ESTIMATORS["one kernel"]().fit(X)
    out = tmp_path / "modes.npy"
    model.transform(X, out=out)
    content = out.read_bytes()
    for call in (lambda x: model.transform(x, out=out), model.transform, model.score, model.partial_fit):
        before = {name: pickle.dumps(value) for name, value in vars(model).items()}
        with pytest.raises(OSError, match="Input/output error"):
            call(iter(Broken(X, 120, 1)()))
        assert {name: pickle.dumps(value) for name, value in vars(model).items()} == before
    assert out.read_bytes() == content
    assert os.listdir(tmp_path) == ["modes.npy"]


def test_fit_after_a_failure(X):
    model, whole = (ESTIMATORS["one kernel"]() for _ in range(2))
    with pytest.raises(OSError, match="Input/output error"):
        model.fit(Broken(X, 120, 2))
    np.testing.assert_array_equal(model.fit(X).transform(X), whole.fit(X).transform(X))
