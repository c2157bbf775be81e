"""Every warning of the library has an anchor and an explanation in docs/troubleshooting.md, and nothing else has."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()


def template(node):
    """The text of a literal, with an ellipsis for each part that is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(template(part) if isinstance(part, ast.Constant) else "…" for part in node.values)
    return None


def literals_of_warnings(source):
    """Templates of what a module warns of: texts given to `warn`, to classes of warnings, and to findings in data."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Finding":
            yield " ".join(template(part) for part in node.args[2:4])  # what was found, and the remedy
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("warn", "Warning")):
            yield template(node.args[0])


@cache
def warnings_of_the_library():
    found = []
    for path in sorted((ROOT / "src" / "kdmaps").rglob("*.py")):
        found += [(path.name, text) for text in literals_of_warnings(path.read_text()) if text is not None]
    return found


def explained():
    """Anchor → quoted message, from sections `(anchor)=`, heading, quotation."""
    pattern = r"^\((warning-[\w-]+)\)=\n### .+\n\n((?:^> .*\n)+)\n(?=\S)"
    return {
        anchor: re.sub(r"\s+", " ", quote.replace("> ", " ")).strip()
        for anchor, quote in re.findall(pattern, PAGE, re.MULTILINE)
    }


@pytest.mark.parametrize(("file", "text"), warnings_of_the_library())
def test_a_warning_has_an_anchor(file, text):
    assert text in explained().values(), (
        f"{file} warns: {text!r}. Explain it in docs/troubleshooting.md: a line (warning-…)=, a heading ### …, the "
        "message as a quotation with … for what is filled in, and the remedy."
    )


def test_no_explanation_is_stale():
    assert set(explained().values()) <= {text for _, text in warnings_of_the_library()}


def test_the_scan_sees_warnings_that_are_given_and_that_are_made():
    source = (
        "import warnings\n"
        "def f(n):\n    warnings.warn(f'only {n} left', UserWarning)\n"
        "def check(self):\n    return Check(UserWarning('bad'))\n"
        "def warn(check):\n    warnings.warn(check.warning)\n"
        "def outlier(row):\n    return Finding('outlier', (row,), f'Row {row} is far.', 'Drop it.')\n"
    )
    assert set(literals_of_warnings(source)) == {"only … left", "bad", "Row … is far. Drop it.", None}
    assert len(warnings_of_the_library()) > 15  # as many as there were when this was written
