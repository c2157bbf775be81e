"""Text files: headers, index columns, and labels that a spreadsheet would execute."""

import csv
import io

import numpy as np
import pandas as pd
import pytest

import kdmaps
from commands import GIVEN, run
from kdmaps.checks import RULES
from kdmaps.data import gather, make_writer, open_table, open_tables
from kdmaps.data.formats import text
from shared import expects, known

X = np.random.default_rng(0).standard_normal((60, 10))
NUMBERS = "numbered-columns"


@pytest.mark.parametrize("name", ["φ", "ψ", "é", "mode é", "一"])
def test_any_letter_can_be_written_and_read(name, tmp_path):
    with open(tmp_path / "f.csv", "wb") as file:
        make_writer(".csv")(file, X[:, :2], [name, "x"], {"état": np.array(["α", "β", "一"] * 20)})
    frame = pd.read_csv(tmp_path / "f.csv", encoding="utf-8")
    assert list(frame.columns) == ["état", name, "x"]
    assert frame["état"].tolist() == ["α", "β", "一"] * 20
    np.testing.assert_allclose(frame[name], X[:, 0])
    np.testing.assert_allclose(gather(open_table(tmp_path / "f.csv").select([name])), X[:, :1])


# --- names ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("width", [1, 2, 3, 10])
@pytest.mark.parametrize(("ending", "mark"), [("csv", ","), ("tsv", "\t"), ("csv", ";"), ("txt", " ")])
@pytest.mark.parametrize("first", [0, 1])
def test_numbers_of_columns_are_a_header(width, ending, mark, first, tmp_path):
    path = tmp_path / f"f.{ending}"
    frame = pd.DataFrame(X[:, :width], columns=range(first, first + width))
    frame.to_csv(path, index=False, sep=mark)
    with expects(NUMBERS):
        table = open_table(path)
    np.testing.assert_array_equal(gather(table.select()), X[:, :width])
    assert table.labels == [str(name) for name in frame.columns]
    with expects(NUMBERS):
        np.testing.assert_array_equal(
            kdmaps.data.as_source(path).sample(None, np.random.RandomState(0)).X, X[:, :width]
        )


@pytest.mark.parametrize("columns", [range(3), list("abc")], ids=["numbers", "names"])
def test_index_is_left_out(columns, tmp_path):
    pd.DataFrame(X[:, :3], columns=columns).to_csv(tmp_path / "f.csv")
    numbered = [NUMBERS] if columns == range(3) else []
    with expects(*numbered, "index-column"):
        table = open_table(tmp_path / "f.csv")
    np.testing.assert_array_equal(gather(table.select()), X[:, :3])
    assert table.labels == [str(name) for name in columns]


def test_numbers_and_names(tmp_path):
    """A data frame of numbered columns with additional columns of weights and labels."""
    frame = pd.DataFrame(X[:, :3]).assign(weight=0.5, run="a")
    frame.to_csv(tmp_path / "f.csv", index=False)
    with expects(NUMBERS):
        table = open_table(tmp_path / "f.csv")
    assert table.names == ["0", "1", "2", "weight"]
    np.testing.assert_array_equal(gather(table.select(leave_out=["weight"])), X[:, :3])
    assert set(table.column("run")) == {"a"}


@pytest.mark.parametrize(
    "lines",
    [
        "0,1\n1,0\n0,0",  # two columns of integers may start like this
        "0\n0\n1",
        "0.0,1.0,2.0\n0.5,0.5,0.5",  # names of columns are not written like this
        "1,0,2\n0.5,0.5,0.5",
        "2,3,4\n0.5,0.5,0.5",
        "0,1,2",  # no samples below it
    ],
)
def test_integers_that_are_a_sample(lines, tmp_path):
    (tmp_path / "f.csv").write_text(lines + "\n")
    table = open_table(tmp_path / "f.csv")
    np.testing.assert_array_equal(
        gather(table.select()), [[*map(float, line.split(","))] for line in lines.split("\n")]
    )


def test_header_given(tmp_path):
    (tmp_path / "f.csv").write_text("0,1,2\n0.5,0.5,0.5\n")
    assert gather(open_table(tmp_path / "f.csv", header=False).select()).shape == (2, 3)
    table = open_tables([tmp_path / "f.csv"] * 2, header=True)
    assert gather(table.select()).shape == (2, 3)
    (tmp_path / "g.csv").write_text("0.1,0.2\n0.5,0.5\n")
    assert open_table(tmp_path / "g.csv", header=True).names == ["0.1", "0.2"]
    np.save(tmp_path / "f.npy", X)
    with pytest.raises(ValueError, match="header=True: only text"):
        open_table(tmp_path / "f.npy", header=True)


@known("numbered-columns")
def test_command_reports_the_header(tmp_path):
    path, out = tmp_path / "f.csv", tmp_path / "out"
    pd.DataFrame(X[:, :2]).to_csv(path, index=False)
    result = run("fit", path, *GIVEN, "--resamples", 0, "--out", out)
    assert result.exit_code == 0, result.output
    assert "60 samples of 2 columns" in result.output
    assert RULES[NUMBERS].anchor in result.output
    assert RULES[NUMBERS].anchor in (out / "report.html").read_text()
    result = run("transform", out / "model.npz", path, "--out", tmp_path / "modes.npy")
    assert RULES[NUMBERS].anchor in result.stderr
    assert len(np.load(tmp_path / "modes.npy")) == 60
    result = run("fit", path, *GIVEN, "--no-header", "--resamples", 0, "--out", out)
    assert "61 samples of 2 columns" in result.output
    assert RULES[NUMBERS].anchor not in result.output
    assert "header=False" in (out / "report.html").read_text()


def test_endless_line(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "MAX_LINE", 1000)
    (tmp_path / "f.csv").write_text("1," * 1000)
    with pytest.raises(ValueError, match=r"f\.csv .*line 1 is longer than 1000"):
        open_table(tmp_path / "f.csv")


# --- labels -----------------------------------------------------------------------------------------------------------
LABELS = ["=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", "\r=1", " =1+1", '=HYPERLINK("x","y")', "-1.5", "+3", "1e-3", "a-b"]


def test_labels_are_not_executed():
    """Labels that look like formulas get an apostrophe; numbers and other labels are unchanged."""
    file = io.BytesIO()
    make_writer(".csv")(file, np.zeros((len(LABELS), 1)), ["mode1"], {"group": np.array(LABELS), "=2": np.arange(12)})
    names, *rows = csv.reader(io.StringIO(file.getvalue().decode(), newline=""))
    assert names == ["group", "'=2", "mode1"]
    assert [row[0] for row in rows] == [f"'{label}" for label in LABELS[:8]] + LABELS[8:]
    assert [row[1:] for row in rows] == [[str(number), "0"] for number in range(12)]


def test_groups_are_not_executed(tmp_path):
    groups = np.repeat(["=1+1", "b", "c"], 20)
    pd.DataFrame(X[:, :2], columns=["x", "y"]).assign(run=groups).to_csv(tmp_path / "f.csv", index=False)
    result = run("fit", tmp_path / "f.csv", *GIVEN, "--groups", "run", "--resamples", 0, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    rows = list(csv.reader((tmp_path / "out" / "modes.csv").open()))
    assert [row[1] for row in rows[1:]] == ["'=1+1"] * 20 + ["b"] * 20 + ["c"] * 20


def test_integers_below_the_names_of_plumed(tmp_path):
    """A first row of 1, 2, 3 is a sample if PLUMED's comment has the names."""
    path = tmp_path / "COLVAR.dat"
    path.write_text("#! FIELDS time x y\n1 2 3\n2 3 4\n4 5 6\n")
    np.testing.assert_array_equal(gather(open_table(path).select("x,y")), [[2, 3], [3, 4], [5, 6]])
    path.write_text(path.read_text() + "#! FIELDS time y x\n5 6 7\n")
    with pytest.raises(ValueError, match="second line") as error:
        gather(open_table(path).select("x,y"))
    assert str(error.value).count(str(path)) == 1
