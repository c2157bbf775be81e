"""Unequal time steps, missing rows and rows out of order are errors with a lag, wherever the times come from."""

import numpy as np
import pandas as pd
import pytest

import kdmaps
from commands import run
from kdmaps.data import open_table, split_at_gaps
from shared import known

PATH = kdmaps.problems.load("dw1d").simulate(600, dt=0.1, random_state=0)[0]
FRAME = pd.DataFrame(np.column_stack([PATH, PATH**2]), columns=["x", "y"])
KEPT = np.delete(np.arange(600), [200, 201, 202])
MODEL = kdmaps.KernelDiffusionMap(1, lag=1, bandwidth=2.0, n_features=30, random_state=0)
pytestmark = known("outliers", "no-memory")


def write(path, kind):
    """Write x and y with a column of times, three rows of which are missing."""
    table = FRAME.assign(time=0.1 * np.arange(600)).iloc[KEPT]
    if kind == "colvar":
        text = table[["time", "x", "y"]].to_csv(sep=" ", index=False, header=False)
        path.write_text(f"#! FIELDS time x y\n#! SET min_x -pi\n{text}")
    elif kind == "parquet":
        table.to_parquet(path)
    elif kind == "npz":
        np.savez(path, X=table[["x", "y"]], time_ps=table["time"])
    else:
        table.to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    ("name", "kind"), [("a.csv", "csv"), ("COLVAR.dat", "colvar"), ("a.parquet", "parquet"), ("a.npz", "npz")]
)
def test_time_column_with_missing_rows(tmp_path, name, kind):
    file = write(tmp_path / name, kind)
    columns = None if kind == "npz" else "x,y"
    with pytest.raises(ValueError, match=r"equal time steps: row 200 comes 0.4 after row 199"):
        MODEL.fit(open_table(file).select(columns))
    options = () if columns is None else ("--columns", columns)
    result = run("fit", file, *options, "--lag", 1, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "equal time steps" in result.output


def test_time_column_gives_the_time_step(tmp_path):
    """Time scales are in the unit of the column: ten times as many as in rows, here 0.1 apart."""
    FRAME.assign(time=0.1 * np.arange(600)).to_csv(tmp_path / "a.csv", index=False)
    model = kdmaps.KernelDiffusionMap(**MODEL.get_params()).fit(open_table(tmp_path / "a.csv").select("x,y"))
    plain = kdmaps.KernelDiffusionMap(**MODEL.get_params()).fit(FRAME)
    np.testing.assert_allclose(model.timescales_, 0.1 * plain.timescales_, rtol=1e-9)


@pytest.mark.parametrize(("freq", "seconds"), [("2min", 120.0), ("MS", 86400 * 18231 / 599)])
def test_column_of_dates(tmp_path, freq, seconds):
    """Dates give seconds; 600 months from 1950-01-01 to 1999-12-01 are 18,231 days."""
    dated = FRAME.assign(time=pd.date_range("1950-01-01", periods=600, freq=freq))
    dated.to_csv(tmp_path / "a.csv", index=False)
    dated.to_parquet(tmp_path / "a.parquet")
    plain = kdmaps.KernelDiffusionMap(**MODEL.get_params()).fit(FRAME)
    for name in ("a.csv", "a.parquet"):
        model = kdmaps.KernelDiffusionMap(**MODEL.get_params()).fit(open_table(tmp_path / name).select("x,y"))
        np.testing.assert_allclose(model.timescales_, seconds * plain.timescales_, rtol=1e-9)
    dated.iloc[KEPT].to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ValueError, match="not at equal time steps"):
        MODEL.fit(open_table(tmp_path / "a.csv").select("x,y"))
    dated.assign(time="noon").to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ValueError, match="neither numbers nor dates"):
        MODEL.fit(open_table(tmp_path / "a.csv").select("x,y"))


@pytest.mark.parametrize("order", [("time", "y", "x"), ("time", "x", "z")])
def test_second_fields_line(tmp_path, order):
    """PLUMED appends to COLVAR after a restart, possibly with other columns."""
    text = FRAME.assign(time=range(600))[["time", "x", "y"]].to_csv(sep=" ", index=False, header=False)
    lines = text.splitlines()
    file = tmp_path / "COLVAR.dat"
    file.write_text("\n".join(["#! FIELDS time x y", *lines[:300], f"#! FIELDS {' '.join(order)}", *lines[300:]]))
    with pytest.raises(ValueError, match="second line #! FIELDS"):
        MODEL.fit(open_table(file).select("x,y"))
    file.write_text("\n".join(["#! FIELDS time x y", *lines[:300], "#! FIELDS time x y", *lines[300:]]))
    MODEL.fit(open_table(file).select("x,y"))


def test_constants_below_the_names(tmp_path):
    """Three columns below `#! SET min_phi -pi`, which are not called SET, min_phi and -pi."""
    file = tmp_path / "COLVAR.dat"
    file.write_text("#! FIELDS time phi psi\n#! SET min_phi -pi\n0 1.5 2.5\n1 2.5 3.5\n")
    assert open_table(file).names == ["time", "phi", "psi"]


INDEXES = {
    "dates": pd.date_range("2000-01-01", periods=600, freq="min")[KEPT],
    "durations": pd.timedelta_range(0, periods=600, freq="s")[KEPT],
    "periods": pd.period_range("2000-01", periods=600, freq="M")[KEPT],
    "months": pd.date_range("1950-01", periods=600, freq="MS")[KEPT],
    "working days": pd.date_range("1950-01", periods=600, freq="B")[KEPT],
    "row numbers": pd.RangeIndex(600)[KEPT],
    "joined": pd.Index(np.concatenate([np.arange(300), np.arange(297)])),
}


@pytest.mark.parametrize("kind", INDEXES)
def test_index_with_missing_rows(kind):
    frame = FRAME.iloc[KEPT].set_index(INDEXES[kind])
    fitted = kdmaps.KernelDiffusionMap(**MODEL.get_params()).fit(frame.to_numpy())
    for call in (
        MODEL.fit,
        kdmaps.KernelSearchCV(1, lag="auto").fit,
        fitted.score,
        lambda X: kdmaps.dynamics.implied_timescales(fitted, X, [1, 2]),
    ):
        with pytest.raises(ValueError, match=r"not at equal time steps: .*split_at_gaps") as raised:
            call(frame)
        if kind in ("dates", "durations"):
            assert f"row 200 comes {'0:04:00' if kind == 'dates' else '0:00:04'} after row 199" in str(raised.value)
    MODEL.fit(frame, groups=np.arange(len(frame)) >= (300 if kind == "joined" else 200))
    pieces = split_at_gaps(frame)
    assert len(pieces) == 2
    MODEL.fit(pieces)


@pytest.mark.parametrize(
    "index",
    [
        pd.date_range("1950-01", periods=600, freq="MS"),  # months differ in length
        pd.date_range("1950-01", periods=600, freq="B"),
        pd.RangeIndex(0, 6000, 10),
        pd.Index(np.random.default_rng(0).permutation(600)),  # labels without an order
        pd.Index([f"row {i}" for i in range(600)]),
        pd.Index(np.arange(600) / 7),
    ],
    ids=["months", "business days", "stride", "labels", "text", "fractions"],
)
def test_regular_index(index):
    frame = FRAME.set_index(index)
    MODEL.fit(frame)
    assert len(split_at_gaps(frame)) == 1


def test_split_at_gaps():
    """Rows that cannot be used, steps that are too long, and lists, cut by hand."""
    X = np.arange(40.0).reshape(20, 2)
    masked = np.ma.array(X, mask=np.arange(40).reshape(20, 2) == 9)  # row 4
    X = X.copy()
    X[10, 1] = np.nan
    times = np.r_[0:15, 20:25]
    for given, clock, bounds in (
        (X, None, [(0, 10), (11, 20)]),
        (X, times, [(0, 10), (11, 15), (15, 20)]),
        (masked, None, [(0, 4), (5, 20)]),
    ):
        pieces = split_at_gaps(given, clock)
        assert [(piece[0, 0] / 2, piece[-1, 0] / 2 + 1) for piece in pieces] == bounds
        assert not any(isinstance(piece, np.ma.MaskedArray) for piece in pieces)
    assert [len(piece) for piece in split_at_gaps([X, X[:5]], [times, np.arange(5)])] == [10, 4, 5, 5]
    with pytest.raises(ValueError, match="times must have one entry for each of 20 frames"):
        split_at_gaps(X, [1.0])


def test_missing_values_in_a_trajectory():
    """Dropped rows would be joined across the gap, and the remedy in the message must not do that."""
    broken = FRAME.to_numpy().copy()
    broken[300] = np.nan
    with pytest.raises(ValueError, match=r"NaN in row\(s\) 300 .*lag.*split_at_gaps\(X\)"):
        MODEL.fit(broken)
    assert MODEL.fit(split_at_gaps(broken)).moments_.count == 600 - 1 - 2


@pytest.mark.parametrize("cls", [kdmaps.KernelDiffusionMap, kdmaps.AdaptiveDiffusionMap])
def test_automatic_lag_of_rows_without_order(tmp_path, cls):
    shuffled = np.random.default_rng(1).permutation(FRAME.to_numpy())
    with pytest.raises(ValueError, match=r"lag=.auto.*temporal order"):
        cls(2, lag="auto", random_state=0).fit(shuffled)
    np.save(tmp_path / "a.npy", shuffled)
    result = run("fit", tmp_path / "a.npy", "--lag", "auto", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "temporal order" in result.output
    assert not (tmp_path / "out").exists()
