"""Every missed goal in results/ is listed on the page of benchmarks, with a reason."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "benchmarks.md").read_text()


@pytest.fixture
def mirror(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    import mirror

    return mirror


def test_every_missed_goal_is_listed_and_explained(mirror):
    for name, table in mirror.missed_goals(ROOT / "results").items():
        shown = re.search(
            rf"^```{{include}} generated/lists/missed_{name}\.md\n```\n\n\*?\w.{{100,}}", PAGE, re.MULTILINE
        )
        assert shown or table.startswith("No goal"), f"explain in docs/benchmarks.md why results/{name} misses a goal"


def test_missed_rows_are_found(mirror, tmp_path):
    for name, text in {
        "signs": "Words.\n\n| a | goal |\n|---|---|\n| x | 1 ✓ |\n| y | 2 ✗ |\n\n| b |\n|---|\n| z |\n",
        "words": "| n | met | no |\n|---|---|---|\n| 1 | yes | no |\n| 2 | no | yes |\n| 3 | | no |\n",
        "fine": "| a |\n|---|\n| ✓ |\n",
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "table.md").write_text(text)
    assert mirror.missed_goals(tmp_path) == {
        "signs": "| a | goal |\n|---|---|\n| y | 2 ✗ |\n",
        "words": "| n | met | no |\n|---|---|---|\n| 2 | no | yes |\n",
        "fine": "No goal is missed at present.\n",
    }
