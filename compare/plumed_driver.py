"""Values and forces of exported modes by PLUMED itself, for tests/simulation/test_plumed.py to compare with.

It needs an executable `plumed` (or the one named by KDMAPS_PLUMED) with the modules colvar, function and bias, and does
nothing without. Modes of alanine dipeptide, from two torsions alone and with two distances, are written as PLUMED input
and run by `plumed driver` on twenty frames of ten heavy atoms; BIASVALUE makes the mode the energy, so that the forces
are the slopes of the mode with respect to all positions.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import kdmaps
from kdmaps.simulation import Distance, Torsion, descriptors, plumed_input

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "tests" / "references" / "plumed.json"
sys.path.insert(0, str(ROOT / "examples" / "alanine_dipeptide"))
from alanine import DIHEDRALS, load  # noqa: E402

TORSIONS = [Torsion(DIHEDRALS["phi"]), Torsion(DIHEDRALS["psi"])]
INPUTS = {"torsions": TORSIONS, "torsions and distances": [*TORSIONS, Distance(0, 9), Distance(8, 2)]}
#: Every FIT-th frame is fitted, every COMPARED-th frame is compared.
FIT, COMPARED = 20, 1000


def frames(every):
    """Return positions of the heavy atoms, (n, 10, 3) in nm."""
    return load()["xyz_aligned"][::every].astype(np.float64)


def fit(inputs):
    """Return a small model of alanine dipeptide."""
    model = kdmaps.KernelDiffusionMap(2, n_features=40, bandwidth=2.0, regularization=1e-3, random_state=0)
    return model.fit(descriptors(inputs, frames(FIT)))


def drive(executable, text, positions):
    """Return the values of the mode by `plumed driver`, and the forces of the energy that it is."""
    with tempfile.TemporaryDirectory() as folder:
        lines = [f"{len(positions[0])}\n0 0 0\n" + _atoms(frame) for frame in positions]
        Path(folder, "frames.xyz").write_text("".join(lines))
        Path(folder, "plumed.dat").write_text(
            text + "energy: BIASVALUE ARG=mode\nPRINT ARG=mode FILE=values FMT=%.16g\n"
        )
        command = [executable, "driver", "--plumed", "plumed.dat", "--ixyz", "frames.xyz", "--length-units", "nm"]
        command += ["--dump-forces", "forces", "--dump-forces-fmt", "%.16g"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        values = np.loadtxt(Path(folder, "values"))[:, 1]
        dumped = Path(folder, "forces").read_text().splitlines()
    size = len(positions[0]) + 2
    blocks = [dumped[start + 2 : start + size] for start in range(0, len(dumped), size)]
    return values, np.array([[line.split()[1:] for line in block] for block in blocks], dtype=float)


def _atoms(frame):
    return "".join("X " + " ".join(f"{x:.17g}" for x in atom) + "\n" for atom in frame)


def main():
    """Write the reference file."""
    executable = os.environ.get("KDMAPS_PLUMED") or shutil.which("plumed")
    if executable is None:
        print("No executable `plumed` was found; the reference file is not changed.")
        return
    version = subprocess.run([executable, "info", "--long-version"], check=True, capture_output=True, text=True)
    found = {"versions": {"plumed": version.stdout.strip()}, "cases": {}}
    positions = frames(COMPARED)
    for name, inputs in INPUTS.items():
        text = plumed_input(fit(inputs), inputs, mode=1)
        values, forces = drive(executable, text, positions)
        case = {"values": values.tolist(), "forces": forces.round(12).tolist(), "text": text.splitlines()}
        found["cases"][name] = case
    REFERENCE.write_text(json.dumps(found, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
