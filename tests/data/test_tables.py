"""Reading and writing tables of samples in each format."""

import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest

import kdmaps
from kdmaps.data import Table, as_source, gather, make_writer, open_table, read_column
from kdmaps.data.files import FORMATS, Format
from shared import topology

X = np.random.default_rng(0).standard_normal((7, 3))
WEIGHT = np.arange(7.0)
RUN = np.array(["a", "a", "b", "b", "b", "c", "c"])


def values(table, columns=None):
    return gather(table.select(columns))


def write_text(path, delimiter=",", header="x,y,z,w,run", labels=True):
    rows = [
        delimiter.join([*map(repr, map(float, row)), repr(float(w)), *([run] if labels else [])])
        for row, w, run in zip(X, WEIGHT, RUN, strict=True)
    ]
    path.write_text("\n".join([*([header] if header else []), *rows]) + "\n")
    return path


@pytest.mark.parametrize(
    ("name", "delimiter", "header"),
    [
        ("t.csv", ",", "x,y,z,w,run"),
        ("t.csv", ";", '"x";y;z;w;run'),
        ("t.tsv", "\t", "x\ty\tz\tw\trun"),
        ("t.txt", " ", "x y z w run"),
        ("COLVAR.dat", " ", "#! FIELDS x y z w run"),
        ("t.csv", ",", "\ufeff# made by hand\n# x,y,z,w,run"),
    ],
)
def test_text_with_names(name, delimiter, header, tmp_path):
    table = open_table(write_text(tmp_path / name, delimiter, header))
    assert table.names == ["x", "y", "z", "w"]
    np.testing.assert_array_equal(values(table), np.c_[X, WEIGHT])
    np.testing.assert_array_equal(table.column("run"), RUN)


def test_text_without_names(tmp_path):
    table = open_table(write_text(tmp_path / "t.csv", header=None, labels=False))
    assert table.names is None
    np.testing.assert_array_equal(values(table), np.c_[X, WEIGHT])
    labelled = open_table(write_text(tmp_path / "u.csv", header=None))
    np.testing.assert_array_equal(labelled.column("4"), RUN)
    np.testing.assert_array_equal(values(labelled, "0:3"), X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_arrays(dtype, tmp_path):
    numbers = (10 * X).astype(dtype)
    np.save(tmp_path / "t.npy", numbers)
    np.savez(tmp_path / "t.npz", X=numbers, w=WEIGHT, run=RUN, other=np.zeros((2, 2)))
    for name in ("t.npy", "t.npz"):
        table = open_table(tmp_path / name)
        assert values(table).dtype == (np.float64 if dtype == np.int32 and name == "t.npz" else dtype)
        np.testing.assert_array_equal(values(table), numbers)
    np.testing.assert_array_equal(read_column("run", table, "--groups"), RUN)
    for columns in (None, "1:"):  # mapped, not copied
        assert values(open_table(tmp_path / "t.npy", stride=2), columns).filename == tmp_path / "t.npy"
    np.testing.assert_array_equal(values(open_table(tmp_path / "t.npy", stride=2), "2,0"), numbers[::2, [2, 0]])


def test_archives_of_several_arrays(tmp_path):
    frames = np.arange(42.0).reshape(7, 2, 3)
    np.savez(tmp_path / "t.npz", xyz=frames, more=X, phi=WEIGHT, psi=-WEIGHT)
    table = open_table(tmp_path / "t.npz", array="xyz")
    np.testing.assert_array_equal(values(table), frames.reshape(7, 6))
    np.savez(tmp_path / "columns_first.npz", X=np.asfortranarray(X), frames=np.asfortranarray(frames))
    for name, rows in (("X", X), ("frames", frames.reshape(7, 6))):
        np.testing.assert_array_equal(values(open_table(tmp_path / "columns_first.npz", array=name)), rows)
    np.testing.assert_array_equal(values(open_table(tmp_path / "t.npz"), "phi,psi"), np.c_[WEIGHT, -WEIGHT])
    with pytest.raises(ValueError, match=r"array 'nothing', but xyz \(7, 2, 3\)"):
        open_table(tmp_path / "t.npz", array="nothing")
    with pytest.raises(ValueError, match=r"No column is left.*: xyz, more"):
        open_table(tmp_path / "t.npz").select()
    np.savez(tmp_path / "columns.npz", phi=WEIGHT, psi=-WEIGHT, run=RUN)
    only = open_table(tmp_path / "columns.npz")
    assert only.names == ["phi", "psi"]
    np.testing.assert_array_equal(values(only), np.c_[WEIGHT, -WEIGHT])
    np.savez(tmp_path / "two.npz", a=X, b=X)
    with pytest.raises(ValueError, match=r"a \(7, 3\), b \(7, 3\); choose"):
        open_table(tmp_path / "two.npz")


def test_parquet_and_zarr(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    zarr = pytest.importorskip("zarr")
    pandas.DataFrame({"x": X[:, 0], "run": RUN, "n": np.arange(7)}).to_parquet(tmp_path / "t.parquet")
    table = open_table(tmp_path / "t.parquet")
    assert table.names == ["x", "n"]
    np.testing.assert_array_equal(values(table), np.c_[X[:, 0], np.arange(7)])
    np.testing.assert_array_equal(table.column("run"), RUN)
    zarr.save_array(str(tmp_path / "t.zarr"), X)
    np.testing.assert_array_equal(values(open_table(tmp_path / "t.zarr", stride=2)), X[::2])
    zarr.save_group(str(tmp_path / "g.zarr"), X=X, w=WEIGHT)
    np.testing.assert_array_equal(read_column("w", open_table(tmp_path / "g.zarr"), "--weights"), WEIGHT)


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npy", ".npz"])
def test_write_and_read(ending, tmp_path):
    with open(tmp_path / f"modes{ending}", "wb") as file:
        make_writer(ending)(file, X, ["mode1", "mode2", "mode3"], {})
    table = open_table(tmp_path / f"modes{ending}")
    np.testing.assert_allclose(values(table), X, rtol=1e-9 if ending == ".csv" else 0)  # text has ten digits
    assert table.names == (["mode1", "mode2", "mode3"] if ending in (".csv", ".parquet") else None)


def test_register_a_format(tmp_path, monkeypatch):
    def open_bytes(path):
        return Table.from_blocks(1, lambda: iter([np.frombuffer(path.read_bytes(), np.uint8)[:, None]]))

    def write_bytes(file, values, names, extras):
        file.write(values.astype(np.uint8).tobytes())

    monkeypatch.setitem(FORMATS, ".bytes", Format(open_bytes, write_bytes))
    with open(tmp_path / "t.bytes", "wb") as file:
        make_writer(".bytes")(file, WEIGHT[:, None], ["w"], {})
    np.testing.assert_array_equal(gather(as_source(tmp_path / "t.bytes"))[:, 0], WEIGHT)


# --- choice of columns ------------------------------------------------------------------------------------------------
ALL = np.c_[X, WEIGHT]
PLAIN = Table(4, lambda columns: iter([ALL[:5, columns], ALL[5:, columns]]), n_samples=7)
NAMED = replace(PLAIN, names=["x", "y", "z", "1"], extras={"run": lambda: iter([RUN[:2, None], RUN[2:, None]])})


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("x,z", [0, 2]),
        (" z , x ", [2, 0]),
        ("1", [3]),
        ("0:2", [0, 1]),
        ("2:", [2, 3]),
        (":-1", [0, 1, 2]),
        ("0,y", [0, 1]),
    ],
)
def test_columns_of_a_named_table(columns, expected):
    found = NAMED.select(columns)
    np.testing.assert_array_equal(gather(found), ALL[:, expected])
    assert found.feature_names == [NAMED.names[j] for j in expected]


def test_columns_of_a_plain_table():
    np.testing.assert_array_equal(values(PLAIN, "3,0:2"), ALL[:, [3, 0, 1]])
    assert PLAIN.select("3,0:2").feature_names is None
    np.testing.assert_array_equal(gather(PLAIN.select(leave_out=["3"])), X)


@pytest.mark.parametrize("stride", [1, 2, 3, 4, 7, 9])
def test_stride(stride):
    np.testing.assert_array_equal(values(NAMED.every(stride)), ALL[::stride])
    np.testing.assert_array_equal(NAMED.every(stride).column("run"), RUN[::stride])
    assert NAMED.every(stride).n_samples == len(ALL[::stride])


@pytest.mark.parametrize("columns", ["q", "", "x,", "7", "5:9", "-1", "0:2:1", "a:b"])
def test_columns_that_do_not_exist(columns):
    with pytest.raises(ValueError, match=r"does not exist.* 0 to 3, named x, y, z, 1, run"):
        NAMED.select(columns)


def test_invalid_columns():
    with pytest.raises(ValueError, match="'run' is text"):
        NAMED.select("run")
    with pytest.raises(ValueError, match="a column twice"):
        NAMED.select("x,0:2")


def test_column_from_a_file(tmp_path):
    np.save(tmp_path / "w.npy", WEIGHT)
    np.testing.assert_array_equal(read_column(str(tmp_path / "w.npy"), PLAIN, "--weights"), WEIGHT)
    np.save(tmp_path / "two.npy", X[:, :2])
    with pytest.raises(ValueError, match=r"--weights: .*two.npy has 2 columns"):
        read_column(str(tmp_path / "two.npy"), PLAIN, "--weights")
    with pytest.raises(ValueError, match="--weights: 'w' is neither a column nor a file"):
        read_column("w", PLAIN, "--weights")


# --- bad files --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"x,y\n1,2\n3\n", r"t.csv, line 3: 1 columns instead of 2"),
        ("t.csv", b"# x\nx,y\n1,2\n\n# z\n3,4,5\n", "line 6: 3 columns instead of 2"),
        ("t.csv", b"x,y\n1,2,3\n", "line 2: 3 columns below 2 names"),
        ("t.csv", b"x,y\n1,2\n\n3,\n", r"line 4: column y is empty"),
        ("t.csv", b"x,y\n1,2\n3,abc\n", r"line 3: column y contains 'abc'"),
        ("t.csv", b"x;y\n1;2,5\n", "line 2: '2,5' has a decimal comma"),
        ("t.csv", b"1,5;2,5\n", "line 1: '1,5' has a decimal comma"),
        ("t.csv", b"x,y\na,b\n", r"No column is left.*Line 2 of .* is 'a', 'b'"),
        ("t.csv", b"x,x\n1,2\n", "two columns of the same name"),
        ("t.csv", b"", "no samples"),
        ("t.csv", b"# nothing\n", "no samples"),
        ("t.csv", b"x,y\n", "no samples"),
        ("t.npy", b"", "cannot be read as an array"),
        ("t.npy", b"x,y\n1,2\n", "cannot be read as an array"),
        ("t.npz", b"x,y\n1,2\n", "cannot be read as an archive"),
        ("t.parquet", b"x,y\n1,2\n", "cannot be read as Parquet"),
        ("t.xyz", b"1", r"'.xyz'; known are .csv"),
    ],
)
def test_bad_files(name, content, message, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        values(open_table(tmp_path / name))


def test_line_number_of_a_ragged_block(tmp_path, monkeypatch):
    monkeypatch.setattr("kdmaps.data.formats.base.BLOCK_BYTES", 2 * 8 * 2)  # two rows of two numbers
    (tmp_path / "t.csv").write_text("x,y\n" + 4 * "1,2\n" + 4 * "1,2,3\n")  # every block alone is a valid table
    with pytest.raises(ValueError, match="line 6: 3 columns instead of 2"):
        values(open_table(tmp_path / "t.csv"))


def test_array_of_three_dimensions(tmp_path):
    """It may be trajectories of frames or frames of atoms."""
    np.save(tmp_path / "t.npy", np.zeros((4, 7, 2)))
    remedy = r"t.npy .* shape \(4, 7, 2\).*np.repeat.* as groups"
    with pytest.raises(ValueError, match=remedy):
        open_table(tmp_path / "t.npy")
    with pytest.raises(ValueError, match=remedy):
        kdmaps.KernelDiffusionMap().fit(tmp_path / "t.npy")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("run*.npy", "quotes"),
        ("here", "here is a directory"),
        ("here.csv", r"here.csv cannot be read as text: .*directory"),
    ],
)
def test_paths_that_are_not_files(name, message, tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "here.csv").mkdir()
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        open_table(tmp_path / name)


def test_array_without_rows(tmp_path):
    np.save(tmp_path / "t.npy", np.empty((0, 3)))
    np.savez(tmp_path / "t.npz", X=np.empty((0, 3)))
    for name in ("t.npy", "t.npz"):
        with pytest.raises(ValueError, match="no samples"):
            open_table(tmp_path / name)


def test_reading_text_does_not_change_warning_filters(tmp_path):
    blocks = open_table(write_text(tmp_path / "t.csv")).blocks([0])
    before = list(warnings.filters)
    next(blocks)
    assert list(warnings.filters) == before


def test_pickles_are_not_read(tmp_path):
    np.save(tmp_path / "t.npy", np.array([{"a": 1}], dtype=object))
    np.savez(tmp_path / "t.npz", X=np.array([{"a": 1}], dtype=object))
    np.savez(tmp_path / "beside.npz", X=X, w=np.array([{"a": 1}] * 7))
    for name in ("t.npy", "t.npz", "beside.npz"):
        with pytest.raises(ValueError, match="Python objects"):
            open_table(tmp_path / name)


@pytest.mark.parametrize(
    ("module", "name", "extra"),
    [
        ("pyarrow.parquet", "t.parquet", "tables"),
        ("zarr", "t.zarr", "tables"),
        ("mdtraj", "t.xtc", "trajectories"),
    ],
)
def test_missing_package(module, name, extra, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / name).write_bytes(b"")
    remedy = rf"{module.partition('.')[0]}.*'kdmaps\[{extra}\]'"
    with pytest.raises(ImportError, match=remedy):
        open_table(tmp_path / name, topology="t.pdb" if extra == "trajectories" else None)
    if name == "t.parquet":  # before anything is written
        with pytest.raises(ImportError, match=remedy):
            make_writer(".parquet")


@pytest.mark.parametrize("ending", [".tsv", ".zarr", ".xyz"])
def test_formats_without_a_writer(ending):
    with pytest.raises(ValueError, match=rf"'{ending}'; known are .csv"):
        make_writer(ending)


# --- trajectories -----------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def peptide(tmp_path_factory):
    """A short rigid chain with hydrogens, translated and rotated in every frame."""
    mdtraj = pytest.importorskip("mdtraj")
    rng = np.random.default_rng(0)
    rigid = rng.standard_normal((12, 3))
    frames = []
    for _ in range(6):
        turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
        turn *= np.sign(np.linalg.det(turn))
        frames.append(rigid @ turn + rng.standard_normal(3))
    folder = tmp_path_factory.mktemp("peptide")
    trajectory = mdtraj.Trajectory(np.array(frames), topology(3, ("N", "CA", "C", "H")))
    trajectory.save(str(folder / "t.xtc"))
    trajectory[0].save(str(folder / "t.pdb"))
    return folder, rigid


def test_heavy_atoms_are_superposed(peptide):
    folder, rigid = peptide
    table = open_table(folder / "t.xtc", topology=folder / "t.pdb", stride=2)
    assert table.ordered
    found = values(table)
    assert found.shape == (3, 27)  # nine atoms that are not hydrogen
    assert table.names[:3] == ["x XXX1-N", "y XXX1-N", "z XXX1-N"]
    # A rigid body does not move after superposition; xtc rounds to 1e-3.
    np.testing.assert_allclose(found, found[[0]].repeat(3, axis=0), atol=3e-3)
    heavy = np.delete(rigid, [3, 7, 11], axis=0)
    found = found[1].reshape(9, 3)
    np.testing.assert_allclose(
        np.linalg.norm(found[:, None] - found, axis=2), np.linalg.norm(heavy[:, None] - heavy, axis=2), atol=3e-3
    )


def test_dihedrals(peptide):
    folder, rigid = peptide
    table = open_table(folder / "t.xtc", topology=folder / "t.pdb", descriptor="dihedrals")
    assert table.names[:2] == ["cos phi XXX2", "sin phi XXX2"]

    def dihedral(a, b, c, d):
        u, v, w = b - a, c - b, d - c
        return np.arctan2(np.linalg.norm(v) * (u @ np.cross(v, w)), np.cross(u, v) @ np.cross(v, w))

    phi = dihedral(*rigid[[2, 4, 5, 6]])  # C of the previous residue, then N, CA, C
    np.testing.assert_allclose(values(table, "0")[:, 0], np.cos(phi), atol=5e-3)
    np.testing.assert_allclose(values(table, "1")[:, 0], np.sin(phi), atol=5e-3)
    # With any descriptor, the angle itself is an extra column.
    for descriptor in ("dihedrals", "heavy-atoms"):
        table = open_table(folder / "t.xtc", topology=folder / "t.pdb", descriptor=descriptor, stride=2)
        np.testing.assert_allclose(table.column("phi XXX2"), np.full(3, phi), atol=5e-3)
        assert {"phi XXX2", "phi XXX3", "psi XXX1", "psi XXX2"} <= set(table.extras)


def test_topology_without_dihedrals(peptide, tmp_path):
    mdtraj, (folder, _) = pytest.importorskip("mdtraj"), peptide
    mdtraj.load(str(folder / "t.pdb")).atom_slice([0, 1]).save(str(tmp_path / "two.pdb"))
    with pytest.raises(ValueError, match=r"descriptor='dihedrals': the topology has none.*heavy-atoms"):
        open_table(tmp_path / "two.pdb", topology=tmp_path / "two.pdb", descriptor="dihedrals")


def test_options_that_do_not_apply(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"array=.* only .npz and .zarr"):
        open_table(tmp_path / "x.npy", array="Q")
    with pytest.raises(ValueError, match=r"descriptor must be .* got 'foo'"):
        open_table(tmp_path / "x.npy", descriptor="foo")
