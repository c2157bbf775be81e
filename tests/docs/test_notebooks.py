"""Notebooks made from tutorials: the code and the outputs of the pages, which other tests run and compare."""

import base64
import json
import re
from pathlib import Path

import pytest
from test_pages import python_blocks

TUTORIALS = Path(__file__).resolve().parents[2] / "docs" / "tutorials"


@pytest.fixture
def notebooks(monkeypatch):
    monkeypatch.syspath_prepend(str(TUTORIALS.parent / "_ext"))
    import notebooks

    return notebooks


def test_notebooks_have_the_code_and_outputs_of_the_pages(notebooks, tmp_path):
    notebooks.write(TUTORIALS, tmp_path)
    assert len(list(tmp_path.iterdir())) == len(notebooks.PAGES) == 4
    for name in notebooks.PAGES:
        content = json.loads((tmp_path / f"{name}.ipynb").read_text())
        assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
        code = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
        page = TUTORIALS / f"{name}.md"
        assert [cell["source"] + "\n" for cell in code] == [block for _, block in python_blocks(page)]
        outputs = "".join(output["text"] for cell in code for output in cell["outputs"])
        assert outputs
        assert all(line in page.read_text() for line in outputs.splitlines())
        assert len({cell["id"] for cell in content["cells"]}) == len(content["cells"])


def test_text_of_notebooks_stands_alone(notebooks):
    for name in notebooks.PAGES:
        pictures = 0
        for cell in notebooks.notebook(TUTORIALS / f"{name}.md")["cells"]:
            if cell["cell_type"] == "code":
                continue
            links = re.findall(r"\]\(([^)]+)\)", cell["source"])
            assert all(link.startswith(("http", "attachment:")) for link in links)
            assert not re.search(r"\{\w+\}`", cell["source"])
            for link in (link for link in links if link.startswith("attachment:")):
                picture = cell["attachments"][link.removeprefix("attachment:")]["image/png"]
                assert base64.b64decode(picture).startswith(b"\x89PNG")
                pictures += 1
        assert pictures
