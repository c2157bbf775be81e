"""The examples on committors run within seconds, and their committed results support their READMEs."""

import json
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from test_bias_examples import EXAMPLES, example, run  # noqa: F401

from pages import states
from shared import known_warning

LOOPS = {0: "loop.json", 11: "loop_seed11.json", 12: "loop_seed12.json"}
LOOP, ALANINE = EXAMPLES / "committor_loop", EXAMPLES / "committor_alanine"
RESULTS = EXAMPLES.parent / "results" / "committor"


@pytest.fixture
def alanine(example):  # noqa: F811
    """Return the module of the example, and frames with all values of φ that are made by rotations about N-Cα."""
    pytest.importorskip("openmm")
    module = example(ALANINE / "run.py")
    molecule = module["Molecule"]()
    yield module, molecule
    for name in ("histogram", "sampling"):
        sys.modules.pop(name, None)


def rotated(molecule, n):
    """Return frames with uniform φ, by rotations of the atoms before N about the bond from N to Cα, and small noise."""
    rng = np.random.default_rng(0)
    start = np.asarray(molecule.positions)
    moved = [i for name, i in molecule.number.items() if name.startswith("ACE") or name == "ALA-H"]
    origin = start[molecule.number["ALA-N"]]
    axis = start[molecule.number["ALA-CA"]] - origin
    axis /= np.linalg.norm(axis)
    frames = np.repeat(start[None], n, axis=0)
    angles, arms = 2 * np.pi * rng.random(n)[:, None, None], start[moved] - origin
    along = (arms @ axis)[:, None] * axis  # Rodrigues' formula
    frames[:, moved] = origin + along + np.cos(angles) * (arms - along) + np.sin(angles) * np.cross(axis, arms)
    return frames + 0.002 * rng.standard_normal(frames.shape)


@pytest.mark.slow
@known_warning()
@pytest.mark.filterwarnings("ignore::kdmaps.exceptions.DataWarning", "ignore:invalid value")  # few frames and shots
def test_committor_of_alanine_dipeptide_from_few_frames(alanine, monkeypatch, tmp_path):
    module, molecule = alanine
    frames = rotated(molecule, 300)
    monkeypatch.setitem(module["main"].__globals__, "biased_frames", lambda *_: (frames, np.ones(len(frames))))
    monkeypatch.setitem(module["main"].__globals__, "draw", lambda *_: None)
    run(module, monkeypatch, "--quick", "--shots", 2, "--out", tmp_path)
    found = json.loads((tmp_path / "results.json").read_text())
    assert set(found["fits"]) == {"plain", "backbone", "torsions"}
    assert found["best"] != "plain"  # its energy has another unit
    assert len(found["fractions"]) == 10
    assert found["rate of the long run (1/ns)"] == pytest.approx(0.165, abs=5e-4)  # as in the README
    again = module["fitted"](tmp_path, molecule, "plain", None, None, None)[0]  # from its file
    assert again.flux_ == found["fits"]["plain"]["flux"]


def test_diffusion_of_torsions(alanine):
    """In coordinates √m x, it is the Gram matrix of the gradients after projection along the bonds that are fixed."""
    module, molecule = alanine
    inputs, frame, system = module["columns"](molecule, "backbone"), rotated(molecule, 1)[0], molecule.system()
    mass = np.array([system.getParticleMass(i)._value for i in range(system.getNumParticles())])
    pairs = np.array([system.getConstraintParameters(k)[:2] for k in range(system.getNumConstraints())])

    def function(x):
        bonds = np.linalg.norm(x[pairs[:, 0]] - x[pairs[:, 1]], axis=1)
        return np.concatenate([module["descriptors"](inputs, x[None])[0], bonds])

    steps = 1e-6 / np.sqrt(mass)[:, None, None, None] * np.eye(frame.size).reshape(*frame.shape, *frame.shape)
    slopes = [(function(frame + step) - function(frame - step)) / 2e-6 for step in steps.reshape(-1, *frame.shape)]
    torsions, bonds = np.split(np.array(slopes), [4], axis=1)
    free = torsions - bonds @ np.linalg.lstsq(bonds, torsions)[0]
    expected = module["KT"] * free.T @ free  # the friction is 1/ps
    assert_allclose(module["diffusion"](molecule, inputs, frame[None])[0], expected, rtol=1e-5, atol=1e-6)


def test_shots_end_in_the_set_where_they_start(alanine):
    module, molecule = alanine
    frames = rotated(molecule, 300)
    phi = module["phi_of"](molecule, frames)
    for side, centre in ((0, -90), (1, 60)):
        frame = frames[np.argmin(abs(phi - centre))]  # 15 degrees from the edge, and 25 steps of 2 fs until the test
        found = module["shots"](molecule, frame, 3, 0)
        assert np.mean(found["ends"] == side) > 0.5
        assert found["velocities"].shape == (3, 22, 3)
        assert np.all(found["steps"][found["ends"] == side] % 25 == 0)


def test_rows_near_the_transition_state(alanine):
    module, _ = alanine
    q = np.array([0.1, 0.45, 0.5, 0.55, 0.5, 0.9])
    rows = module["chosen_rows"](q, np.array([9.0, 1, 0, 3, 5, 9]), np.array([-1, -1, -1, -1, 0, 1]), 400, 0)
    assert_allclose(np.bincount(rows, minlength=6), [0, 100, 0, 300, 0, 0], atol=1)


def test_readme_of_alanine_dipeptide_matches_the_results():
    found = json.loads((RESULTS / "alanine.json").read_text())
    text = (ALANINE / "README.md").read_text()
    own = found["comparison"][found["best"]]
    assert own["mean"] == pytest.approx(0.42, abs=0.0051)
    assert states(text, "on average", ".42", f"{own['spread']:.2f}"[1:])
    for name in ("backbone", "torsions"):
        assert f"{found['fits'][name]['held-out']:.4f}"[1:] in text
    assert f"{found['rate from shots (1/ns)']:.3f}"[1:] in text
    assert f"{found['rate of the long run (1/ns)']:.3f}"[1:] in text


@pytest.mark.slow
@known_warning()
def test_a_short_round_of_the_loop(example, monkeypatch, tmp_path):  # noqa: F811
    module = example(LOOP / "from_basins.py")
    monkeypatch.setitem(module["simulate"].__globals__, "FRAMES", 600)
    arguments = ("--steps", 4000, "--rounds", 1, "--out", tmp_path)
    run(module, monkeypatch, *arguments)
    found = json.loads((tmp_path / "results.json").read_text())
    assert found["rounds"][0]["between"] == 0
    assert not found["settled"]
    assert len(found["rounds"]) == 2
    assert (tmp_path / "rounds.png").exists()
    files = sorted(tmp_path.glob("round_*.npz"))
    times = [file.stat().st_mtime_ns for file in files]
    run(module, monkeypatch, *arguments)  # finished rounds are read
    assert [file.stat().st_mtime_ns for file in files] == times
    again = json.loads((tmp_path / "results.json").read_text())
    assert [row["flux"] for row in again["rounds"]] == [row["flux"] for row in found["rounds"]]


def test_readme_of_the_loop_matches_the_results():
    runs = {seed: json.loads((RESULTS / name).read_text()) for seed, name in LOOPS.items()}
    text = (LOOP / "README.md").read_text()
    for k, row in enumerate(runs[0]["rounds"]):
        interval = "{:.2f} – {:.2f}".format(*row["interval"]) if row["ok"] else "flagged"
        error = f"{row['error']:.3f}"[1:]
        assert f"| {k or 'start'} | {row['flux']:.2f} ({interval}) | {error} | {row['between']:,} |" in text
    for run_ in runs.values():
        assert run_["settled"]
        assert run_["rounds"][-1]["flux"] == pytest.approx(1, abs=0.12)
    for seed in (11, 12):
        last = runs[seed]["rounds"][-1]
        assert states(text, f"{last['flux']:.2f}", f"{last['error']:.3f}"[1:])
