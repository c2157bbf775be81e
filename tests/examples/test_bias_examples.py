"""The examples that bias simulations run within seconds, and their committed results support their READMEs."""

import json
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from pages import states
from shared import known_warning

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MULLER_BROWN, ALANINE = EXAMPLES / "bias_muller_brown", EXAMPLES / "bias_alanine"


@pytest.fixture
def example(monkeypatch):
    """Import a module of an example by its path."""

    def load(path):
        monkeypatch.syspath_prepend(str(path.parent))
        return runpy.run_path(str(path), run_name="example")

    yield load
    for name in ("molecule", "report", "alanine", "simulate", "loop", "page"):
        sys.modules.pop(name, None)


def run(module, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["run.py", *map(str, arguments)])
    module["main"]()


@pytest.mark.slow
@known_warning()
def test_two_short_rounds_of_muller_brown(example, monkeypatch, tmp_path):
    module = example(MULLER_BROWN / "run.py")
    module["simulator"].__globals__.update(FRAMES=1000, LANDMARKS=60)
    run(module, monkeypatch, "--time", 5, "--rounds", 2, "--out", tmp_path)
    found = json.loads((tmp_path / "results.json").read_text())
    assert found["rounds"] == 2
    assert_allclose(found["exact rates"], [1.2474e-4, 0.35596], rtol=1e-4)
    assert (tmp_path / "rounds.html").exists()
    assert (tmp_path / "rounds.png").exists()


@pytest.mark.slow
@known_warning()
@pytest.mark.filterwarnings("ignore::kdmaps.exceptions.DataWarning")  # twenty frames
def test_alanine_dipeptide_for_some_picoseconds(example, monkeypatch, tmp_path):
    pytest.importorskip("openmm")
    module = example(ALANINE / "run.py")
    run(module, monkeypatch, "--ns", 0.02, "--out", tmp_path)
    assert list(json.loads((tmp_path / "results.json").read_text())["runs"]) == ["round_1", "round_2", "reference"]
    frames = [np.load(tmp_path / f"{name}.npz")["frames"] for name in ("round_1", "reference")]
    assert frames[0].shape == (20, 22, 3)
    assert not np.allclose(frames[0], frames[1])
    # After an interruption, a finished run is read from its file.
    assert_allclose(module["kept"](tmp_path / "round_1.npz", make=None)["frames"], frames[0])


def test_crossings_and_free_energy_of_a_known_path(example):
    pytest.importorskip("openmm")
    report = example(ALANINE / "report.py")
    phi = np.array([-80, 0, 60, 10, 60, 150, -100, 5, -90, 70.0])  # only from core to core: at 2, 6 and 9
    assert report["crossings"](phi) == 3
    angle = np.radians(np.tile([-80, -80, -80, 60], 100))
    X = np.column_stack([np.cos(angle), np.sin(angle), np.ones(400), np.zeros(400)])
    value, error = report["free_energy"](X, np.tile([1.0, 1.0, 1.0, 3.0], 100))
    assert value == pytest.approx(0, abs=1e-12)  # as much weight on either side, in every block
    assert error == pytest.approx(0, abs=1e-12)
    assert report["free_energy"](X[::4], np.ones(100)) == (None, None)


def test_the_readme_of_alanine_dipeptide_matches_the_results(example):
    pytest.importorskip("openmm")
    report = example(ALANINE / "report.py")
    short, long = (json.loads((ALANINE / f"results_seed{seed}.json").read_text()) for seed in (0, 1))
    text = (ALANINE / "README.md").read_text()
    assert (ALANINE / "results.md").read_text() == report["table"]([short, long])
    assert (short["settings"]["nanoseconds"], long["settings"]["nanoseconds"]) == (1, 5)
    for runs in (short["runs"], long["runs"]):
        energies = [f"{one['free energy (kT)']:.2f} ± {one['error (kT)']:.2f}" for one in runs.values()]
        assert states(text, "kT", *energies)
    first, second, reference = (long["runs"][name] for name in report["NAMES"])
    assert states(text, "5 ns", first["crossings"], second["crossings"], 5, reference["crossings"])
    for one in (first, second):  # the goal is 1 kT
        assert abs(one["free energy (kT)"] - reference["free energy (kT)"]) < 0.25
    slow, fast = zip(*(one["time scales (1/D)"] for one in (first, second, reference)), strict=True)
    assert states(text, "first mode", *(f"{t:.0f}" for t in slow), *(f"{t:.1f}" for t in fast))
    minutes = sum(one["CPU seconds"] for one in long["runs"].values()) / 60
    assert states(text, "CPU time", f"{minutes:.0f}")


@pytest.mark.parametrize("seed", [10, 11, 12, 13, 14])
def test_the_readme_of_muller_brown_matches_the_results(seed):
    found = json.loads((MULLER_BROWN / f"results_seed{seed}.json").read_text())
    ratios, energy = np.divide(found["rates"], found["exact rates"]), found["free energy (kT)"]
    assert found["settled"]
    assert np.all(abs(ratios - 1) <= 0.2)
    assert abs(energy - found["exact free energy (kT)"]) <= 0.3
    assert 1.04 <= round(ratios[0], 2) <= 1.19
    row = f"| `--seed {seed}` | {ratios[0]:.2f} | {ratios[1]:.2f} | {energy:.2f} kT | {found['rounds']} |"
    assert row in (MULLER_BROWN / "README.md").read_text()
