"""Trajectories of molecules: descriptors, broken molecules, wrong topologies, times, objects of mdtraj."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation

import kdmaps
from commands import GIVEN, run
from kdmaps.data import check_data, gather, open_table
from kdmaps.data.inputs import as_source
from shared import known

mdtraj = pytest.importorskip("mdtraj")
pytestmark = known("scales", "unaligned-atoms", "unresolved", "ridge", "no-gap", "independent-samples")

#: A chain of carbon atoms, 0.15 nm apart; residues of four atoms named as a peptide, so that dihedrals are found.
NAMES = ("N", "CA", "C", "CB")
BONDS = (("N", "CA"), ("CA", "C"), ("CA", "CB"))


def peptide(n_frames=60, n_residues=6, seed=0):
    """Return frames of a noisy peptide backbone, 2 ps apart, that translates and rotates."""
    topology = mdtraj.Topology()
    chain, rng = topology.add_chain(), np.random.default_rng(seed)
    positions, before = [], None
    for r in range(n_residues):
        residue = topology.add_residue("ALA", chain)
        atoms = {name: topology.add_atom(name, mdtraj.element.get_by_symbol(name[0]), residue) for name in NAMES}
        for a, b in BONDS:
            topology.add_bond(atoms[a], atoms[b])
        if before is not None:
            topology.add_bond(before, atoms["N"])
        before = atoms["C"]
        places = np.array([[0, 0, 0], [0.13, 0.06, 0], [0.25, 0, 0.05], [0.13, 0.15, 0.1]])
        positions += list(places + np.array([0.36 * r, 0.1 * (r % 2), 0.03 * r]))
    xyz = np.array(positions) + 0.01 * rng.standard_normal((n_frames, len(positions), 3)).cumsum(axis=0) / 8
    turns = Rotation.random(n_frames, random_state=seed).as_matrix()
    xyz = xyz @ turns + rng.standard_normal((n_frames, 1, 3))
    return mdtraj.Trajectory(xyz, topology, time=100.0 + 2 * np.arange(n_frames))


def in_box(trajectory, length=3.0):
    """Return the trajectory in a periodic box, with every atom inside of it."""
    boxed = trajectory[:]
    boxed.unitcell_lengths, boxed.unitcell_angles = np.full((len(boxed), 3), length), np.full((len(boxed), 3), 90.0)
    boxed.xyz = np.mod(boxed.xyz, length)
    return boxed


@pytest.fixture
def files(tmp_path):
    trajectory = peptide()
    trajectory[0].save_pdb(str(tmp_path / "top.pdb"))
    trajectory.save_xtc(str(tmp_path / "run.xtc"))
    return tmp_path


def read(files, descriptor, name="run.xtc"):
    table = open_table(files / name, topology=files / "top.pdb", descriptor=descriptor)
    return table, gather(table.select())


def test_descriptors(files):
    """Columns against mdtraj's own functions."""
    frames = mdtraj.load(str(files / "run.xtc"), top=str(files / "top.pdb"))
    kinds = {"phi": mdtraj.compute_phi, "psi": mdtraj.compute_psi, "omega": mdtraj.compute_omega}
    for kind, compute in kinds.items():
        table, X = read(files, f"dihedrals:{kind}")
        quartets, angles = compute(frames)
        assert_allclose(X[:, ::2], np.cos(angles), atol=1e-5)
        assert_allclose(X[:, 1::2], np.sin(angles), atol=1e-5)
        assert table.inputs[::2] == [f"torsion:{'-'.join(map(str, atoms))}" for atoms in quartets]
    table, X = read(files, "distances:name CA")
    alphas = frames.topology.select("name CA")
    pairs = [(i, j) for n, i in enumerate(alphas) for j in alphas[n + 1 :]]
    assert_allclose(X, mdtraj.compute_distances(frames, pairs), atol=1e-6)
    assert table.inputs[0] == f"distance:{alphas[0]}-{alphas[1]}"
    assert_allclose(read(files, "contacts")[1], mdtraj.compute_contacts(frames, scheme="closest-heavy")[0], atol=1e-6)
    _, X = read(files, "atoms:name CA")
    superposed = frames.superpose(frames, 0, atom_indices=alphas).xyz[:, alphas]
    assert_allclose(X, (superposed - superposed.mean(axis=1, keepdims=True)).reshape(len(frames), -1), atol=1e-5)
    both = read(files, "dihedrals+distances:name CA")[1]
    assert_allclose(both, np.hstack([read(files, "dihedrals")[1], read(files, "distances:name CA")[1]]))


@pytest.mark.parametrize(
    ("descriptor", "message"),
    [
        ("nonsense", "descriptor must be one of heavy-atoms"),
        ("dihedrals:zeta", "not 'zeta'"),
        ("dihedrals:chi2", "the topology has none"),
        ("distances:name CA or", "mdtraj does not understand the selection"),
        ("atoms:resid 0 and name CA", "a superposition needs three"),
        ("dihedrals:phi+dihedrals:phi,psi", "a column twice"),
    ],
)
def test_bad_descriptors(files, descriptor, message):
    with pytest.raises(ValueError, match=message):
        read(files, descriptor)
    options = ("--topology", files / "top.pdb", "--descriptor", descriptor)
    result = run("fit", files / "run.xtc", *options, *GIVEN, "--out", files / "out")
    assert result.exit_code == 2
    assert not (files / "out").exists()


def test_molecules_split_across_the_box(files):
    """Whole molecules are restored, because the box is known: the same columns as without the box."""
    known = read(files, "heavy-atoms")[1]
    in_box(peptide()).save_xtc(str(files / "split.xtc"))
    assert_allclose(read(files, "heavy-atoms", "split.xtc")[1], known, atol=2e-3)  # twice the precision of XTC
    boxed = in_box(peptide())
    boxed.unitcell_vectors = None
    boxed.save_dcd(str(files / "split.dcd"))
    with pytest.raises(ValueError, match=r"split.dcd: in frame \d+ the bond .* nm long"):
        read(files, "dihedrals", "split.dcd")
    for given in (boxed, [peptide(), boxed], lambda: iter([peptide(), boxed])):
        with pytest.raises(ValueError, match="nm long"):
            kdmaps.KernelDiffusionMap(1, lag=1, n_features=20).fit(given)


def test_molecules_do_not_jump_across_the_box():
    """A whole molecule is not moved by the box when its first atom crosses a side."""
    frames = peptide()
    frames.superpose(frames)
    frames.xyz -= frames.xyz[:, [0]].mean(axis=0)  # the first atom on a corner of the box
    expected = frames.xyz.reshape(len(frames), -1)
    found = gather(as_source(in_box(frames)))
    assert_allclose(found - found[0], expected - expected[0], atol=1e-5)  # single precision


def test_topology_in_another_order(files):
    frames = peptide()
    frames.xyz = frames.xyz[:, np.random.default_rng(0).permutation(frames.n_atoms)]
    frames.save_xtc(str(files / "other.xtc"))
    with pytest.raises(ValueError, match=r"other.xtc: in frame 0 .* another order"):
        read(files, "dihedrals", "other.xtc")


def test_unaligned_coordinates_are_named():
    raw = peptide(200)
    names = [check.code for check in check_data(raw).failed]
    assert names[0] == "unaligned-atoms"
    assert "unaligned-atoms" not in [check.code for check in check_data(raw[:].superpose(raw)).failed]
    assert "unaligned-atoms" in [check.code for check in check_data(raw.xyz.reshape(len(raw), -1)).failed]


@pytest.mark.parametrize("seed", range(5))
def test_other_columns_are_not_atoms(seed):
    rng = np.random.default_rng(seed)
    turns = rng.uniform(-np.pi, np.pi, (300, 9))
    for X in (
        rng.standard_normal((300, 15)),
        rng.standard_normal((300, 1)) + 0.1 * rng.standard_normal((300, 15)),
        rng.standard_normal((300, 3)) @ rng.standard_normal((3, 18)) + 0.1 * rng.standard_normal((300, 18)),
        np.hstack([np.cos(turns), np.sin(turns)]),
        rng.standard_normal((300, 18)) * np.r_[1, 1, 1, np.full(15, 0.02)],  # principal components, which turn
    ):
        assert "unaligned-atoms" not in [check.code for check in check_data(X).failed]


def test_times_of_mdtraj_objects():
    """Time scales are in ps: twice as many as frames, for one trajectory and for a list."""
    one, other = (peptide(seed=seed) for seed in (0, 1))
    settings = {"lag": 1, "bandwidth": 2.0, "n_features": 20, "random_state": 0}
    arrays = [part.xyz.reshape(len(part), -1) for part in (one, other)]
    for objects, rows in ((one, arrays[0]), ([one, other], arrays), (iter([one]), arrays[0])):
        model = kdmaps.KernelDiffusionMap(1, **settings).fit(objects)
        plain = kdmaps.KernelDiffusionMap(1, **settings).fit(rows)
        factor = 1 if hasattr(objects, "__next__") else 2  # chunks of a stream have no common clock
        assert_allclose(model.timescales_, factor * plain.timescales_, rtol=1e-6)
    model = kdmaps.KernelDiffusionMap(1, **settings).fit([one, other])
    assert [part.shape for part in model.transform([one, other])] == [(60, 1), (60, 1)]
    assert "120" in kdmaps.report.render_report(model, [one, other])  # frames of both
    late = other[:]
    late.time = 3.0 * np.arange(60)
    with pytest.raises(ValueError, match="equal time steps"):
        kdmaps.KernelDiffusionMap(1, **settings).fit([one, late])


def test_readers_are_quiet(files, capfd):
    peptide().save_dcd(str(files / "run.dcd"))
    capfd.readouterr()
    read(files, "dihedrals", "run.dcd")
    assert capfd.readouterr().out == ""


def fit_command(files, *options, expect=0):
    result = run("fit", files / "run.xtc", "--topology", files / "top.pdb", *GIVEN, *options, "--out", files / "out")
    assert result.exit_code == expect, result.output
    return result


@pytest.mark.parametrize("lag", ["4ps", "0.004ns", "4000 fs", "2"])
def test_lag_as_a_time(files, lag):
    """Frames are 2 ps apart."""
    fit_command(files, "--descriptor", "dihedrals", "--lag", lag, "--resamples", 0)
    assert kdmaps.load(files / "out" / "model.npz").lag_ == 2


@pytest.mark.parametrize(("lag", "words"), [("3ps", "1.5 rows of 2 ps"), ("0ps", "0 rows"), ("4kg", "neither auto")])
def test_lags_that_are_not_times(files, lag, words):
    assert words in fit_command(files, "--lag", lag, expect=2).output


def test_a_time_needs_a_time_step(tmp_path):
    np.save(tmp_path / "a.npy", kdmaps.problems.load("dw1d").simulate(300, dt=0.1, random_state=0)[0])
    result = run("fit", tmp_path / "a.npy", "--lag", "4ps", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "--time-step and --unit" in result.output


def test_structures(files):
    """PDB files hold the frames that are named, up to the superposition and three decimals of an ångström."""
    peptide(seed=1).save_xtc(str(files / "other.xtc"))
    result = fit_command(files, files / "other.xtc", "--lag", 1, "--structures", "--resamples", 0)
    lines = [line for line in result.output.splitlines() if line.startswith("Typical frames of state")]
    assert lines
    for line in lines:
        state, _, named = line.removeprefix("Typical frames of state ").partition(": ")
        frames = [name.split(":") for name in named.split(", ")]
        written = mdtraj.load(str(files / "out" / f"state{state}.pdb"))
        assert len(written) == len(frames)
        for one, (file, row) in zip(written, frames, strict=True):
            known = mdtraj.load_frame(str(files / file), int(row), top=str(files / "top.pdb"))
            assert mdtraj.rmsd(one, known)[0] < 3e-3  # nm; single precision of mdtraj, frames near the origin
    assert "--topology" in run("fit", files / "top.pdb", "--structures").output


def test_export_without_retyping_atoms(files):
    fit_command(files, "--descriptor", "dihedrals:phi,psi", "--lag", 1, "--basis", "fourier", "--resamples", 0)
    model = files / "out" / "model.npz"
    table, _ = read(files, "dihedrals:phi,psi")
    inputs = ",".join(dict.fromkeys(table.inputs))
    for to in ("openmm", "plumed"):
        if to == "openmm":
            pytest.importorskip("openmm")
        texts = []
        for options in ((), ("--inputs", inputs)):
            result = run("export", model, "--to", to, *options, "--out", files / "cv")
            assert result.exit_code == 0, result.output
            texts.append((files / "cv").read_text())
        assert texts[0] == texts[1]
    fit_command(files, "--descriptor", "contacts", "--lag", 1, "--resamples", 0)
    assert "OpenMM needs the atoms" in run("export", model, "--to", "openmm").output


def test_draw_phi_and_psi(files):
    """The command of the tutorial, with several residues: their dihedrals in pairs."""
    fit_command(files, "--lag", 1, "--draw", "phi,psi", "--resamples", 0)
    page = (files / "out" / "report.html").read_text()
    frames = mdtraj.load(str(files / "run.xtc"), top=str(files / "top.pdb"))
    residues = [frames.topology.atom(atoms[1]).residue for atoms in mdtraj.compute_phi(frames)[0]]
    assert all(f"phi {residue}" in page for residue in residues)


def test_axes_are_torsions(files):
    fit_command(files, "--descriptor", "dihedrals", "--lag", 1, "--resamples", 0)
    page = (files / "out" / "report.html").read_text()
    assert '"phi ALA' in page
