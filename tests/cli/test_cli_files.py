"""`kdmaps fit` and `transform` of several files, columns, and places of results."""

import html
import os
import re

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold

import kdmaps
from commands import GIVEN, given, run, warned
from kdmaps.data import gather, open_table, open_tables
from shared import known, topology

pytestmark = pytest.mark.usefixtures("undrawn")

X = kdmaps.problems.load("ou2d-4").sample(300, random_state=1)
PARTS = (X[:130], X[130:190], X[190:])
FILE = np.repeat(np.arange(3), [130, 60, 110])
ROW = np.concatenate([np.arange(len(part)) for part in PARTS])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number, part in enumerate(PARTS):
        np.save(f"{number}.npy", part)
        header, order = ("x,y,run", [0, 1]) if number else ("y,x,run", [1, 0])  # columns go by their names
        lines = [f"{a!r},{b!r},r{i // 40}" for i, (a, b) in enumerate(part[:, order].tolist())]
        (tmp_path / f"{number}.csv").write_text("\n".join([header, *lines]) + "\n")
    return tmp_path


def written(path, names="mode1,mode2"):
    return gather(open_table(path).select(names))


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["npy", "csv"])
def test_several_files_are_trajectories(ending):
    """As if they were one file, with a file of groups."""
    names = [f"{i}.{ending}" for i in range(3)]
    result = run("fit", *names, *GIVEN, "--columns", "0:2", "--rates", "cross-fitted", "--out", "out")
    assert result.exit_code == 0, result.output
    order = [0, 1] if ending == "npy" else [1, 0]
    model = given(rates="cross-fitted", cv=GroupKFold(3)).fit(X[:, order], groups=FILE)
    # Blocks of 300/50 samples would straddle the files if these were one trajectory.
    bars = kdmaps.uncertainty.bootstrap(model, X[:, order], groups=FILE, random_state=0)
    for k in range(2):
        assert "{:.4g} – {:.4g}".format(*bars.timescale_intervals[k]) in result.stdout
    assert f"0.{ending} and 2 more, 300 samples of {'2 columns' if ending == 'npy' else 'y, x'}\n" in result.stdout
    np.testing.assert_array_equal(written("out/modes.csv", "file,row"), np.c_[FILE, ROW])
    with open("out/report.html") as page:
        program = next(c for c in re.findall(r"<code>(.*?)</code>", html.unescape(page.read()), re.S) if "fit(" in c)
    again = {}
    exec(program, again)
    np.testing.assert_array_equal(again["model"].rates_, kdmaps.load("out/model.npz").rates_)
    np.testing.assert_allclose(written("out/modes.csv"), model.transform(X[:, order]), rtol=1e-9, atol=1e-12)


@known("variance-samples")
def test_stride_and_weights_refer_to_joined_rows():
    weight = np.random.default_rng(0).uniform(0.5, 1.5, 300)
    np.save("w.npy", weight)
    options = ("--weights", "w.npy", "--stride", 3, "--resamples", 0, "--table", "npz", "--out", "out")
    result = run("fit", "0.npy", "1.npy", "2.npy", *GIVEN, *options)
    assert result.exit_code == 0, result.output
    model = given().fit(X[::3], sample_weight=weight[::3])
    with np.load("out/modes.npz") as modes:
        np.testing.assert_array_equal(modes["modes"], model.transform(X[::3]))
        np.testing.assert_array_equal(modes["file"], FILE[::3])
        np.testing.assert_array_equal(modes["row"], ROW[::3])


@pytest.mark.slow
@pytest.mark.parametrize("table", ["csv", "parquet", "npz"])
def test_given_groups_replace_files_and_are_written(table):
    options = ("--groups", "run", "--stride", 2, "--resamples", 0, "--table", table, "--out", "out")
    result = run("fit", "1.csv", "2.csv", *GIVEN, *options)
    assert result.exit_code == 0, result.output
    labels = np.array([f"r{i // 40}" for i in ROW[130:]])[::2]
    found = open_table(f"out/modes.{table}")
    np.testing.assert_array_equal(found.column("group"), labels)
    np.testing.assert_array_equal(found.column("row"), ROW[130:][::2])


def test_labels_with_commas():
    lines = [f'{a!r},{b!r},"run ""{i % 2}"", a"' for i, (a, b) in enumerate(X.tolist())]
    with open("t.csv", "w") as file:
        file.write("\n".join(["x,y,run", *lines]) + "\n")
    assert run("fit", "t.csv", *GIVEN, "--groups", "run", "--resamples", 0, "--out", "out").exit_code == 0
    np.testing.assert_array_equal(
        open_table("out/modes.csv").column("group"), [f'run "{i % 2}", a' for i in range(300)]
    )


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz", "npy"])
def test_transform_writes_row_numbers(ending):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    given().fit(X).save("model.npz")
    result = run("transform", "model.npz", "0.npy", "2.npy", "--stride", 3, "--out", f"m.{ending}")
    assert result.exit_code == 0, result.output
    kept = np.flatnonzero(FILE != 1)[::3]
    modes = written(f"m.{ending}", "mode1,mode2" if ending in ("csv", "parquet") else None)
    np.testing.assert_allclose(modes, given().fit(X).transform(X[kept]), rtol=1e-9, atol=1e-12)
    if ending != "npy":
        table = open_table(f"m.{ending}")
        np.testing.assert_array_equal(
            np.c_[table.column("file"), table.column("row")], np.c_[FILE[kept] // 2, ROW[kept]]
        )


def test_files_are_read_in_blocks(monkeypatch):
    monkeypatch.setattr("kdmaps.data.formats.base.BLOCK_BYTES", 16 * 50)
    table = open_tables(["0.csv", "1.csv", "2.csv"], stride=2)
    source = table.select("x,y")
    assert max(len(block) for block in table.blocks([0, 1])) <= 25  # never a whole file
    np.testing.assert_array_equal(gather(source), X[::2])
    np.testing.assert_array_equal(table.column("run"), [f"r{i // 40}" for i in ROW[::2]])
    assert table.lengths == [130, 60, 110]


@pytest.fixture
def molecule():
    """A molecule of four atoms that bends, and the same frames turned and moved; in a.xtc, b.xtc and t.pdb."""
    mdtraj = pytest.importorskip("mdtraj")
    atoms = topology(1, ("N", "CA", "C", "O"))
    rng = np.random.default_rng(0)
    frames = rng.standard_normal((4, 3)) + 0.2 * rng.standard_normal((60, 4, 3))
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    turn *= np.sign(np.linalg.det(turn))
    for name, xyz in (("a.xtc", frames), ("b.xtc", frames[::-1] @ turn + 1)):
        mdtraj.Trajectory(xyz, atoms).save(name)
    mdtraj.Trajectory(frames[0], atoms).save("t.pdb")


def test_joined_trajectories_are_superposed_on_one_frame(molecule):
    found = gather(open_tables(["a.xtc", "b.xtc"], topology="t.pdb").select())
    np.testing.assert_allclose(found[60:], found[59::-1], atol=5e-3)  # xtc rounds to 1e-3


@known("no-gap")  # atoms that move at random have no slow mode
def test_transform_superposes_on_the_reference(molecule):
    atoms = gather(open_table("a.xtc", topology="t.pdb").select())
    fitted = given().fit(atoms)
    fitted.save("model.npz")
    command = ("transform", "model.npz", "b.xtc", "--topology", "t.pdb", "--out", "m.npy")
    result = run(*command, "--reference", "a.xtc")
    assert result.exit_code == 0
    assert "Warning" not in result.output
    # Gradients of modes of unit variance are about 1/0.2 here, in each of 12 coordinates.
    np.testing.assert_allclose(np.load("m.npy")[::-1], fitted.transform(atoms), atol=0.1)
    result = run(*command)
    assert "superposed on the first frame of b.xtc" in result.output
    assert np.abs(np.load("m.npy")[::-1] - fitted.transform(atoms)).max() > 0.2


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (["0.npy", "0.csv"], "0.csv has 2 columns with names, but 0.npy has 2 columns without names"),
        (["0.npy", "wide.npy"], "wide.npy has 3 columns without names, but 0.npy has 2 columns"),
        (["0.csv", "other.csv"], "other.csv and 0.csv differ in columns: y, z"),
        (["0.npy", "9.npy"], "9.npy does not exist"),
        (["?*.npy"], "Remove the quotes"),
        (["0.npy", "--stride", "50"], "--stride 50 leaves 3 samples"),
    ],
)
def test_incompatible_files(files, message):
    np.save("wide.npy", np.zeros((4, 3)))
    with open("other.csv", "w") as file:
        file.write("x,z,run\n1,2,a\n")
    result = run("fit", *files, *GIVEN)
    assert result.exit_code == 2
    assert message in result.stderr


# --- columns ----------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("sign", [1, -1])
def test_refuses_a_time_in_every_group(sign):
    time = sign * np.tile(np.arange(60.0), 5)  # which starts anew in every group
    np.savetxt("t.csv", np.c_[time, X, np.arange(300) // 60], delimiter=",", header="time,x,y,run", comments="")
    quick = (*GIVEN, "--resamples", 0, "--groups", "run", "--out", "out")
    result = run("fit", "t.csv", *quick)
    assert result.exit_code == 2
    assert "t.csv, 300 samples of time, x, y\n" in result.stdout
    warning = "Column(s) time of X"
    assert warning in result.stderr
    result = run("fit", "t.csv", *quick, "--keep-columns")
    assert "time-or-index" in warned(result.stderr)
    assert "Not reliable: column time" in result.stdout
    with open("out/report.html") as page:
        assert warning in page.read()
    result = run("fit", "t.csv", *quick, "--columns", "x,y")
    assert "t.csv, 300 samples of x, y\n" in result.stdout
    assert warning not in result.stdout


def test_many_columns_are_abbreviated():
    np.savetxt("t.csv", np.hstack(6 * [X]), delimiter=",", header=",".join(f"c{j}" for j in range(12)), comments="")
    result = run("fit", "t.csv", *GIVEN, "--resamples", 0, "--out", "out")
    assert "300 samples of c0, c1, c2, c3, c4, c5, c6, c7, … (12 in all)\n" in result.stdout


@pytest.mark.parametrize("option", [None, "0.5", "tangent"])
@pytest.mark.slow
def test_unit_of_time_scales(option):
    options = () if option is None else ("--diffusion", option)
    outputs = [run("fit", "0.npy", *GIVEN, *options, "--resamples", 0, "--out", "out").stdout]
    outputs.append(run("inspect", "out/model.npz").stdout)
    for output in outputs:
        assert ("length²/D" in output) == (option != "0.5")
        assert ("diffusion tensor" in output) == (option == "0.5")


# --- results ----------------------------------------------------------------------------------------------------------
def test_checks_the_output_directory_before_reading(monkeypatch, tmp_path):
    def unreachable(*_, **__):
        raise AssertionError("The data were read first.")

    monkeypatch.setattr("kdmaps.cli._reading.open_tables", unreachable)
    given().fit(X).save("m.npz")
    (tmp_path / "file").touch()
    for command in (("fit", "0.npy", "--out", "file/out"), ("transform", "m.npz", "0.npy", "--out", "file/out/m.csv")):
        result = run(*command)
        assert result.exit_code == 2
        assert "--out: no file can be written in file/out (" in result.stderr


def test_check_of_the_output_directory_leaves_nothing():
    before = sorted(os.listdir())
    result = run("fit", "0.npy", "--columns", "7", "--out", "new/deep/out")
    assert "column '7' does not exist" in result.stderr
    assert sorted(os.listdir()) == before


def test_order_of_commands():
    output = run("--help").stdout
    places = [output.index(f"│ {name} ") for name in ("fit", "transform", "inspect", "demo")]
    assert places == sorted(places)


def test_names_that_look_like_markup(folder):
    """Tags of Rich in names of files and columns are text: complete in the output, and no errors."""
    (folder / "m[").mkdir()
    name = "m[/x][bold].csv"
    np.savetxt(folder / name, X, delimiter=",", header="[bold]x,y[/bold]", comments="")
    for arguments, code, text in (
        (("fit", name, *GIVEN, "--out", "[red]out"), 0, "x][bold].csv"),
        (("inspect", "[red]out/model.npz"), 0, "[bold]x, y[/bold]"),
        (("check", name), 0, "x][bold].csv"),
        (("check", "m[/x][red].csv"), 2, "m[/x][red].csv"),
        (("fit", name, *GIVEN, "--columns", "[/z]", "--out", "none"), 2, "[/z]"),
    ):
        result = run(*arguments)
        assert result.exit_code == code, result.output
        assert text in result.output
