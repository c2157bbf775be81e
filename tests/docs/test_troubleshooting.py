"""Each warning of the library has a section in docs/troubleshooting.md, found by a few words of its message."""

import ast
import json
import re
from functools import cache
from pathlib import Path

import pytest
from kdmaps.utils.warn import section, warn, without_link

import kdmaps
from kdmaps.diagnostics.trust import CHECKS

ROOT = Path(__file__).resolve().parents[2]
SECTIONS = ROOT / "src" / "kdmaps" / "utils" / "sections.json"
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()


def template(node):
    """The text of a literal, with an ellipsis for each part that is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(template(part) or "…" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return f"{template(node.left) or '…'}{template(node.right) or '…'}"
    return None


def literals_of_warnings(source):
    """Templates of texts given to `warn`, to classes of warnings, and to findings of the data check."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Finding" and template(node.args[2]):
            yield " ".join(template(part) or "…" for part in node.args[2:4])  # finding and remedy
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "data.finding":  # about columns
            yield "Column(s) … of X " + " ".join(template(part) or "…" for part in node.args[2:4])
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func).endswith(("warn", "Warning")):
            yield template(node.args[0])


@cache
def warnings_of_the_library():
    found = [("trust.py", re.sub("{.*?}", "…", text)) for *_, text in CHECKS.values()]
    for path in sorted((ROOT / "src" / "kdmaps").rglob("*.py")):
        found += [(path.name, text) for text in literals_of_warnings(path.read_text()) if text is not None]
    return found


def explained():
    """Anchor → a few words of the message, from sections `(anchor)=`, heading, quotation."""
    pattern = r"^\((warning-[\w-]+)\)=\n### .+\n\n> (.+)\n\n(?=\S)"
    return dict(re.findall(pattern, PAGE, re.MULTILINE))


@pytest.mark.parametrize(("file", "text"), warnings_of_the_library())
def test_a_warning_has_a_section(file, text):
    found = [anchor for anchor, words in explained().items() if words in text]
    assert len(found) == 1, (
        f"{file} warns: {text!r}. docs/troubleshooting.md needs one section for it: a line (warning-…)=, a heading "
        f"### …, a quotation of a few words of the message (> …), and the remedy. Found: {found}"
    )


def test_every_section_explains_a_warning():
    texts = [text for _, text in warnings_of_the_library()]
    stale = {anchor: words for anchor, words in explained().items() if not any(words in text for text in texts)}
    assert not stale, "these quotations (> …) occur in no warning"
    assert explained().keys() == set(re.findall(r"^\((warning-[\w-]+)\)=$", PAGE, re.MULTILINE))


def test_the_package_has_the_sections_of_the_page():
    """To update: `python tests/docs/test_troubleshooting.py`."""
    assert json.loads(SECTIONS.read_text()) == {words: anchor for anchor, words in explained().items()}


def test_a_warning_has_a_link_to_its_section():
    with pytest.warns(kdmaps.exceptions.UnreliableModesWarning, match="not positive definite") as caught:
        warn(kdmaps.exceptions.UnreliableModesWarning("L is not positive definite in floating point."))
    assert str(caught[0].message).endswith("troubleshooting.md#warning-jitter)")
    assert without_link(str(caught[0].message)) == "L is not positive definite in floating point."
    assert without_link("Anything (else)") == "Anything (else)"
    assert section("Of 9 rows the samples form only 3 blocks.").partition("#")[2] in explained()


def test_warnings_are_found_in_source_code():
    source = (
        "import warnings\n"
        "def f(n):\n    warnings.warn(f'only {n} left', UserWarning)\n"
        "def check(self):\n    return Check(UserWarning('bad'))\n"
        "def warn(check):\n    warnings.warn(check.warning)\n"
        "def outlier(row):\n    return Finding('outlier', (row,), f'Row {row} is far.', 'Drop it.')\n"
    )
    assert set(literals_of_warnings(source)) == {"only … left", "bad", "Row … is far. Drop it.", None}
    assert len(warnings_of_the_library()) > 15  # as many as there were when this was written


if __name__ == "__main__":
    SECTIONS.write_text(
        json.dumps({words: anchor for anchor, words in explained().items()}, ensure_ascii=False, indent=1) + "\n"
    )
