"""Every documented name of version 0.1.0 still exists, or the changelog has its new name."""

import importlib
import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "compare" / "release_0_1_0.py"
OLD = json.loads((ROOT / "tests" / "references" / "names_0_1_0.json").read_text())
#: Sections of the changelog about names that are gone.
SECTIONS = ("### Coming from 0.1.0 or 0.2.0.dev0", "### Removed")


@pytest.fixture(scope="module")
def described():
    spec = importlib.util.spec_from_file_location("release_0_1_0", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.described


@pytest.fixture(scope="module")
def table():
    text = (ROOT / "CHANGELOG.md").read_text()
    return "".join(text.partition(section)[2].partition("\n##")[0] for section in SECTIONS)


def missing(name, described):
    """Yield the name if it is gone, else its parameters and members that are gone."""
    module, _, attribute = name.rpartition(".")
    try:
        value = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError):
        yield attribute
        return
    now = described(value)
    for kind, old in OLD[name].items():
        yield from (each for each in old if each not in now[kind])


@pytest.mark.parametrize("name", OLD)
def test_lost_names_are_in_the_changelog(name, described, table):
    lost = [each for each in missing(name, described) if not re.search(rf"(?<!\w){each}(?!\w)", table)]
    assert lost == []


def test_new_names_of_the_table_exist(table):
    """Dotted names in the second column of the table can be imported."""
    rows = [line.split(" | ")[1] for line in table.splitlines() if line.startswith("| `")]
    found = re.findall(r"`(kdmaps\.[\w.]*\w)", "".join(rows))
    assert len(found) >= 10
    for name in found:
        module, _, attribute = name.rpartition(".")
        if attribute != "NAME":
            assert hasattr(importlib.import_module(module), attribute), name
