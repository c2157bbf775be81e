"""The Python code of the documentation and of the README runs, page by page."""

import re
from pathlib import Path

import matplotlib
import pytest
from session import TUTORIALS, session
from test_quickstart import differences

from shared import known

ROOT = Path(__file__).resolve().parents[2]
matplotlib.use("Agg")
#: The quick start is tested with a wheel; the first page shows the code of the README.
TESTED_ELSEWHERE = ("quickstart", "index")
PAGES = [
    page
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if page.stem not in TESTED_ELSEWHERE and "generated" not in page.parts and "```python" in page.read_text()
]


def python_blocks(page):
    """Code blocks of a page with their line numbers, which appear in errors."""
    text = page.read_text()
    for match in re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield text[: match.start(1)].count("\n"), match[1]


@pytest.mark.slow
@known("drift")  # of the molecule, by 2.4 standard errors
@known("independent-samples", "few-blocks", "correlation-time")  # 6 ns
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_of_a_page_runs_and_prints_what_the_page_shows(page, tmp_path, monkeypatch):
    if page.stem == "molecule":
        pytest.importorskip("mdtraj")
    if page.stem == "cells":  # in the environment of `make cells`
        pytest.importorskip("anndata")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")  # as in a clone
    text = page.read_text()
    for block, shown, output in session(text, ("python",)):
        place = f"{page.name}, line {text[: block.start()].count(chr(10)) + 1}: the output is now\n{output}"
        assert shown or not output or page not in TUTORIALS, place
        if shown:
            assert not differences(output, shown[2]), f"{place}\nIf intended: python tests/docs/session.py --update"


def test_the_first_page_shows_the_code_of_the_readme():
    (_, block), *_ = python_blocks(ROOT / "docs" / "index.md")
    assert block in [code for _, code in python_blocks(ROOT / "README.md")]


def test_there_are_pages_with_code():
    assert {"README", "big_data", "dynamics", "manifolds"} <= {page.stem for page in PAGES}
