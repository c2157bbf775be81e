"""Exported modes computed by PLUMED (compare/plumed_driver.py), compared with `transform` and `gradient`."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kdmaps.simulation import plumed_input
from kdmaps.simulation.inputs import Columns
from shared import known

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = json.loads((ROOT / "tests" / "references" / "plumed.json").read_text())


@pytest.fixture(scope="module")
def compare():
    sys.path.insert(0, str(ROOT / "compare"))
    import plumed_driver

    yield plumed_driver
    sys.path.remove(str(ROOT / "compare"))


@pytest.mark.parametrize("name", REFERENCE["cases"])
@known("transition-samples", "mismatch")
def test_plumed_computes_the_mode_and_its_gradient(compare, name):
    inputs, case = compare.INPUTS[name], REFERENCE["cases"][name]
    model, positions = compare.fit(inputs), compare.frames(compare.COMPARED)
    columns = Columns(inputs)
    X = columns.values(positions)
    slopes = [columns.pull(x, row, g) for x, row, g in zip(positions, X, model.gradient(X)[:, 1], strict=True)]
    # The model is fitted again here, which amplifies the rounding of sums by its condition number.
    assert_allclose(case["values"], model.transform(X)[:, 1], atol=1e-6)
    assert_allclose(case["forces"], -np.array(slopes), atol=1e-6 * np.abs(slopes).max())
    assert len(case["values"]) == 20
    # The reference was computed before torsions had NOPBC, on frames without a box, for which it has no effect.
    torsion = re.compile(r"(TORSION ATOMS=[\d,]+)$")
    expected = [words(torsion.sub(r"\1 NOPBC", line)) for line in case["text"]]
    assert [words(line) for line in plumed_input(model, inputs, mode=1).splitlines()] == expected


def words(line):
    """A line without its numbers, to compare actions."""
    return [word.partition("=")[0] for word in line.split()]
