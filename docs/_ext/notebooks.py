"""Convert tutorials to notebooks: code with the outputs of the page, and text with the figures of the page."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

#: Tutorials that can be downloaded as notebooks.
PAGES = ("trajectory", "biased", "oscillating", "molecule")
CODE = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)]+\.png)\)")


def notebook(page: Path) -> dict:
    """Return a page as a notebook of format 4.5."""
    text, cells, end = page.read_text(), [], 0
    for match in CODE.finditer(text):
        cells.append(_text(text[end : match.start()], page.parent))
        cells.append(_code(match[1], match[2]))
        end = match.end()
    cells.append(_text(text[end:], page.parent))
    cells = [cell | {"id": f"cell{k}"} for k, cell in enumerate(cells) if cell["source"]]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _code(code: str, output: str | None) -> dict:
    outputs = [{"output_type": "stream", "name": "stdout", "text": output}] if output else []
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": outputs,
        "source": code.rstrip("\n"),
    }


def _text(text: str, folder: Path) -> dict:
    """Return Markdown without roles and links of the documentation, with figures as attachments."""
    attachments = {}

    def attach(match: re.Match) -> str:
        picture = folder / match[2]
        attachments[picture.name] = {"image/png": base64.b64encode(picture.read_bytes()).decode()}
        return f"![{match[1]}](attachment:{picture.name})"

    text = re.sub(r" It is also a \{download\}`[^`]*`\.", "", text)
    text = re.sub(r"\{\w+\}`([^`<]+?)(?: <[^`]*)?`", r"`\1`", text)
    text = IMAGE.sub(attach, text)
    text = re.sub(r"(?<!!)\[([^\]]+)\]\((?!http|attachment:)[^)]+\)", r"\1", text)
    cell = {"cell_type": "markdown", "metadata": {}, "source": text.strip()}
    return cell | ({"attachments": attachments} if attachments else {})


def write(tutorials: Path, out: Path) -> None:
    """Write the notebooks."""
    out.mkdir(parents=True, exist_ok=True)
    for name in PAGES:
        content = json.dumps(notebook(tutorials / f"{name}.md"), ensure_ascii=False, indent=1) + "\n"
        (out / f"{name}.ipynb").write_text(content)
