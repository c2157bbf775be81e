"""The data and published numbers of examples/ala3 belong together, and one command analyses the raw trajectories."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from commands import run
from kdmaps.data import open_tables

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "ala3"
RUNS = [EXAMPLE / f"run{number}.xtc" for number in (1, 2, 3)]


@pytest.fixture
def script(monkeypatch):
    """Import a script of the example, whose name other examples use too."""
    monkeypatch.syspath_prepend(str(EXAMPLE))

    def load(name):
        spec = importlib.util.spec_from_file_location(f"ala3_{name}", EXAMPLE / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def test_the_readme_shows_the_results(script):
    analyse = script("analyse")
    results, markov = (json.loads((EXAMPLE / f"{name}.json").read_text()) for name in ("results", "markov"))
    assert analyse.table(results, markov) in (EXAMPLE / "README.md").read_text()


def test_torsions_belong_to_the_trajectories():
    pytest.importorskip("mdtraj")
    table = open_tables(RUNS, topology=EXAMPLE / "ala3.pdb", descriptor="dihedrals")
    X = table.select()
    rows = np.concatenate([X.read(part)[1] for part in X.parts(1000)])
    with np.load(EXAMPLE / "torsions.npz") as stored:
        angles = np.concatenate([stored[name] for name in sorted(stored)])
    assert_allclose(rows[:, ::2], np.cos(angles), atol=1e-5)
    assert_allclose(rows[:, 1::2], np.sin(angles), atol=1e-5)
    assert sum(path.stat().st_size for path in EXAMPLE.iterdir()) < 3e6


def test_modes_agree_with_the_markov_model():
    """The published correlations: both eigenvectors lie in the space of the modes, from any coordinates."""
    fits = json.loads((EXAMPLE / "results.json").read_text())["fits"]
    assert min(value for row in fits.values() for value in row["correlations"]) > 0.95


def test_one_command(tmp_path):
    pytest.importorskip("mdtraj")
    fixed = ("--kernel", "gaussian", "--bandwidth", 3, "--lambda", 1e-6, "--features", 100, "--resamples", 0)
    options = ("--topology", EXAMPLE / "ala3.pdb", "--descriptor", "dihedrals", "--lag", "5ps", "--modes", 2)
    result = run("fit", *RUNS, *options, *fixed, "--structures", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "pairs of frames 5 ps (5 frames) apart" in result.output
    assert (tmp_path / "out" / "state1.pdb").exists()


def test_the_extended_chain(script):
    """Bond lengths, trans peptide bonds and L residues: (N - CA)·((C - CA)×(CB - CA)) is positive."""
    pytest.importorskip("openmm")
    topology, positions = script("simulate").build()
    xyz = np.array(positions._value)
    for a, b in topology.bonds():
        assert 0.12 < np.linalg.norm(xyz[a.index] - xyz[b.index]) < 0.155
    assert topology.getNumBonds() == 19
    for residue in topology.residues():
        atoms = {atom.name: xyz[atom.index] for atom in residue.atoms()}
        if residue.name == "ALA":
            arms = [atoms[name] - atoms["CA"] for name in ("N", "C", "CB")]
            assert arms[0] @ np.cross(arms[1], arms[2]) > 0
