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
    measured = {name: both(name) if name in COSTS["CPU"] else "" for name in found}
    assert found == measured
    assert f"a step takes {both('no bias')}; {both('trivial')} with" in page
    assert "less than a third of the time" in page
    assert COSTS["Reference"]["no bias"] < COSTS["CPU"]["no bias"] / 3


def both(name):
    return " / ".join(f"{COSTS[platform][name]:.0f}" for platform in ("CPU", "Reference"))
