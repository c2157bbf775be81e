"""Times in the how-to on biases, against the measurements."""

import json
import re
from pathlib import Path

from pages import states

ROOT = Path(__file__).resolve().parents[2]
METHODS = ("python", "table", "expression")
COSTS = json.loads((ROOT / "results" / "time_per_step" / "costs.json").read_text())["microseconds"]


def test_times_match_the_results():
    page = (ROOT / "docs" / "howto" / "bias.md").read_text()
    found = {}
    for name in ("2 torsions", "10 distances", "30 aligned coordinates"):
        cells = re.search(rf"^\| {name} \|(.*)\|$", page, re.MULTILINE)[1].split("|")
        found |= {f"{name}, fourier, {how}": cell.strip() for how, cell in zip(METHODS, cells, strict=True)}
    measured = {name: both(name) if name in COSTS["CPU"] else "" for name in found}
    assert found == measured
    assert states(page, "without a bias", both("no bias"), both("trivial"))
    assert COSTS["Reference"]["no bias"] < COSTS["CPU"]["no bias"] / 3  # "less than a third of the time"


def both(name):
    return " / ".join(f"{COSTS[platform][name]:.0f}" for platform in ("CPU", "Reference"))
