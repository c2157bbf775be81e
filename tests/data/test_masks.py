"""Masked values, swapped columns and shuffled labels are errors in every kind of input."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest

import kdmaps
from kdmaps.data import angles, check_data
from shared import known

X = kdmaps.problems.load("ou2d-4").sample(300, random_state=0)
MASKED = np.ma.array(X, mask=np.arange(600).reshape(300, 2) == 7)
MODEL = kdmaps.KernelDiffusionMap(1, bandwidth=3.0, n_features=30, random_state=0).fit(X)
LAGGED = kdmaps.KernelDiffusionMap(1, lag=1, bandwidth=3.0, n_features=30, random_state=0)
CALLS = {
    "fit": lambda given: kdmaps.KernelDiffusionMap(**MODEL.get_params()).fit(given),
    "search": lambda given: kdmaps.KernelSearchCV(1, families=["gaussian"], bandwidths=2, n_features=30).fit(given),
    "transform": lambda given: np.asarray(MODEL.transform(given)),
    "score": MODEL.score,
    "check": check_data,
    "extrapolates": MODEL.extrapolates,
}
INPUTS = {
    "array": MASKED,
    "list": [X, MASKED],
    "stream": lambda: iter([X, MASKED]),
    "dask": da.from_array(MASKED, chunks=(100, 2)),
}
pytestmark = known("outliers")


@pytest.mark.parametrize("given", INPUTS.values(), ids=INPUTS)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_masked_samples(call, given):
    with pytest.raises(ValueError, match=r"X has masked values; .*split_at_gaps"):
        call(given)


def test_other_masked_values():
    weight = np.ma.array(np.ones(300), mask=np.arange(300) == 3)
    for call in (MODEL.fit, MODEL.score):
        with pytest.raises(ValueError, match="sample_weight has masked values"):
            call(X, sample_weight=weight)
    with pytest.raises(ValueError, match="values has masked values"):
        MODEL.predict_expectation(X, weight, 1.0)
    with pytest.raises(ValueError, match="X has masked values"):
        angles(MASKED)
    MODEL.fit(np.ma.array(X), sample_weight=np.ma.array(np.ones(300)))  # nothing is masked


def test_stream_of_data_frames_with_swapped_columns():
    frame = pd.DataFrame(X, columns=["x", "y"])
    swapped = frame[["y", "x"]]
    model = kdmaps.KernelDiffusionMap(**MODEL.get_params()).fit(lambda: iter([frame, frame]))
    assert list(model.feature_names_in_) == ["x", "y"]
    with pytest.raises(ValueError, match="Chunk 1 of X has the columns y, x, but"):
        model.fit(lambda: iter([frame, swapped]))
    with pytest.raises(ValueError, match="columns y, x, but the feature names of fit were x, y"):
        model.transform(lambda: iter([swapped]))


def test_row_labels_in_another_order():
    """Everything with one entry per row is matched by position, so the same labels in another order are an error."""
    path = kdmaps.problems.load("dw1d").simulate(600, dt=0.1, random_state=0)[0]
    frame = pd.DataFrame(np.column_stack([path, path**2]), columns=["x", "y"])
    model = kdmaps.KernelDiffusionMap(**LAGGED.get_params()).fit(frame)
    left, right = frame["x"] < -0.8, frame["x"] > 0.8
    states = right.astype(int) - (~left & ~right)
    dynamics = kdmaps.dynamics

    def shuffled(column):
        return column.sample(frac=1, random_state=0)

    for name, call in {
        "values": lambda: model.predict_expectation(frame, shuffled(frame["x"]), 1.0),
        "states": lambda: dynamics.mean_first_passage_times(model, frame, shuffled(states)),
        "target": lambda: dynamics.committor(model, frame, left, shuffled(right)),
        "sample_weight": lambda: dynamics.chapman_kolmogorov(model, frame, sample_weight=shuffled(left + 1.0)),
        "y": lambda: kdmaps.AdaptiveCommittor().fit(frame, shuffled(states)),
        "groups": lambda: dynamics.validate(model, frame, groups=shuffled(frame["x"] > 99)),
    }.items():
        with pytest.raises(ValueError, match=rf"^{name} has the row labels of X in another order"):
            call()
    with pytest.raises(ValueError, match="states has the row labels"):  # in the second of two trajectories
        dynamics.mean_first_passage_times(model, [frame, frame], [states, shuffled(states)])
    assert np.isfinite(model.predict_expectation(frame, frame["x"], 1.0)).all()
