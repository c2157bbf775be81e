"""Data frames of pandas and polars and tables of pyarrow as input, as output and in messages."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kdmaps
from commands import given
from kdmaps.data import angles, check_data
from kdmaps.exceptions import UnreliableModesWarning

X = kdmaps.problems.load("ou2d-4").sample(120, random_state=0)
NAMES = ["left", "right"]
ARRAY = given().fit(X).transform(X)


def made(library, values=X, names=NAMES):
    """A frame of a library, or an array."""
    if library == "numpy":
        return values
    if library == "pandas":
        return pd.DataFrame(values, columns=names)
    if library == "polars":
        return pytest.importorskip("polars").DataFrame(values, schema=names)
    return pytest.importorskip("pyarrow").table(dict(zip(names, values.T, strict=True)))


@pytest.fixture(params=["pandas", "polars", "pyarrow"])
def library(request):
    made(request.param)  # or skip
    return request.param


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # in particular about missing feature names
        warnings.simplefilter("ignore", UnreliableModesWarning)  # of 120 samples
        yield


@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_frames_as_input_and_output(library, output):
    made(output.replace("default", "numpy"))  # or skip
    frame = made(library)
    model = given().set_output(transform=output).fit(frame)
    assert list(model.feature_names_in_) == NAMES
    modes = model.transform(frame)
    assert_allclose(np.asarray(modes), ARRAY, rtol=0, atol=1e-12)  # rounding depends on the memory layout
    parts = model.transform([made(library, X[:50]), made(library, X[50:])])
    assert [len(part) for part in parts] == [50, 70]
    assert_allclose(np.vstack([np.asarray(part) for part in parts]), ARRAY, rtol=0, atol=1e-12)
    if output != "default":
        assert type(modes) is type(parts[0]) is type(made(output))
        assert list(parts[1].columns) == list(modes.columns) == ["mode1", "mode2"]
    assert model.gradient(frame).shape == (120, 2, 2)


def test_list_of_frames_is_several_trajectories(library):
    parts = [made(library, X[:50]), made(library, X[50:])]
    expected = given(lag=1).fit([X[:50], X[50:]]).timescales_
    assert_allclose(given(lag=1).fit(parts).timescales_, expected, rtol=1e-9)
    other = made(library, X[50:], ["left", "other"])
    with pytest.raises(ValueError, match="have different columns"):
        given().fit([parts[0], other])


def test_pipeline_of_frames_does_not_warn():
    for output in ("pandas", "default"):
        pipe = make_pipeline(StandardScaler(), given(), StandardScaler()).set_output(transform=output)
        frame = made("pandas")
        pipe.fit(frame)
        pipe.transform(frame)
    pipe = make_pipeline(StandardScaler(), given()).set_output(transform="pandas").fit(frame)
    pipe.score(frame)
    assert list(pipe.transform(frame)) == ["mode1", "mode2"]


def test_results_keep_the_names_of_columns(library):
    frame = made(library)
    model = given().fit(frame)
    assert list(kdmaps.relevance(model, frame).names) == NAMES
    turned = angles(frame, ["right"])
    assert type(turned) is type(frame)
    assert_array_equal(np.asarray(turned), np.column_stack([X[:, 0], np.cos(X[:, 1]), np.sin(X[:, 1])]))
    assert model.fit(turned).feature_names_in_.tolist() == ["left", "cos(right)", "sin(right)"]
    axes = kdmaps.plotting.plot_modes(ARRAY, frame)
    assert (axes[0].get_xlabel(), axes[0].get_ylabel()) == tuple(NAMES)


def test_messages_name_columns(library):
    bad = X.copy()
    bad[7, 1] = np.nan
    for call in (given().fit, given().fit(made(library)).transform):
        with pytest.raises(ValueError, match=r"NaN in row\(s\) 7 .*column\(s\) right;") as error:
            call(made(library, bad))
        assert "HistGradientBoosting" not in str(error.value)
    constant = np.column_stack([X, np.ones(120)])
    (failed,) = check_data(made(library, constant, [*NAMES, "still"])).failed
    assert (failed.code, failed.where) == ("constant-columns", ("still",))


def test_messages_name_columns_of_text():
    with pytest.raises(ValueError, match=r"column\(s\) kind, name\."):
        given().fit(made("pandas").assign(kind="a", name="b"))
    one = made("pandas").astype({"right": object})
    one.loc[7, "right"] = "oops"
    with pytest.raises(ValueError, match=r"row\(s\) 7 of right"):
        given().fit(one)


def test_remedy_for_a_frame_works():
    remedy = "X[np.isfinite(X).all(axis=1)]"
    for value in (np.nan, np.inf):
        bad = made("pandas")
        bad.loc[7, "right"] = value
        with pytest.raises(ValueError, match=re.escape(f"repair these samples: {remedy}.")):
            given().fit(bad)
        repaired = eval(remedy, {"X": bad, "np": np})
        assert list(repaired.index) == [row for row in range(120) if row != 7]


def test_messages_name_columns_of_files(tmp_path):
    pytest.importorskip("pyarrow")
    bad = made("pandas")
    bad.loc[7, "right"] = np.inf
    bad.to_parquet(tmp_path / "bad.parquet")
    with pytest.raises(ValueError, match=r"infinity in row\(s\) 7 .*column\(s\) right"):
        given().fit(tmp_path / "bad.parquet")
    (tmp_path / "bad.csv").write_text("left,right\n1,2\n3,\n")
    with pytest.raises(ValueError, match="line 3: column right is empty"):
        given().fit(tmp_path / "bad.csv")
