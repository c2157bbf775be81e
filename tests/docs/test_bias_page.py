"""The how-to of biases says what was measured."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
METHODS = ("python", "table", "expression")
COSTS = json.loads((ROOT / "results" / "time_per_step" / "costs.json").read_text())["microseconds"]


def test_times_are_those_of_the_results():
    page = (ROOT / "docs" / "howto" / "bias.md").read_text()
    found = {}
    for name in ("2 torsions", "10 distances", "30 aligned coordinates"):
        cells = re.search(rf"^\| {name} \|(.*)\|$", page, re.MULTILINE)[1].split("|")
        found |= {f"{name}, fourier, {how}": cell.strip() for how, cell in zip(METHODS, cells, strict=True)}
    measured = {name: f"{COSTS[name]:.0f}" if name in COSTS else "" for name in found}
    assert found == measured
    assert f"a step takes {COSTS['no bias']:.0f}; {COSTS['trivial']:.0f} with" in page
