"""CONTRIBUTING.md names paths, targets and packages that exist, in the order of imports."""

import re
from pathlib import Path

from test_import_order import ORDER

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
QUOTED = re.findall(r"`([^`\s]+)`", TEXT)


def test_paths_exist():
    paths = [name for name in QUOTED if re.fullmatch(r"[\w./]+(/|\.py|\.md|\.toml|\.cff|\.yaml)", name)]
    assert len(paths) > 40
    folders = [ROOT, ROOT / "src" / "kdmaps", ROOT / "experiments" / "paper", *(ROOT / "src" / "kdmaps").rglob("*/")]
    assert [path for path in paths if not any((folder / path).exists() for folder in folders)] == []


def test_targets_exist():
    (targets,) = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = {*re.findall(r"^make ([\w-]+)", TEXT, re.MULTILINE), *re.findall(r"`make ([\w-]+)", TEXT)}
    assert named <= set(targets.split())


def test_table_of_packages_is_in_the_order_of_imports():
    cells = re.findall(r"^\| (`.*?`) \| ", TEXT, re.MULTILINE)
    packages = [name.rstrip("/") for cell in cells for name in re.findall(r"`(.+?)`", cell)]
    assert packages == [name for name in ORDER if name not in ("exceptions", "__main__")]
