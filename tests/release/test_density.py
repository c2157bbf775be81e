"""Density of the code, which may only fall: expressions for each line of code, packed assignments, vague names.

Limits are in tests/references/density.json. If a change makes the code easier to read, lower them:

    python tests/release/test_density.py
"""

import ast
import json
import tokenize
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIMITS = ROOT / "tests" / "references" / "density.json"
#: Names that do not tell what a variable holds.
VAGUE = {"found", "known", "own", "part", "given", "shown", "rest", "sought"}
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}


@dataclass
class Density:
    """Numbers of a file or a folder."""

    code_lines: int = 0  #: Without docstrings, comments and blank lines.
    expressions: int = 0  #: Without annotations and docstrings.
    packed: int = 0  #: Assignments `a, b = x, y`.
    nested: int = 0  #: Comprehensions within comprehensions.
    vague: int = 0  #: Functions with vague names of variables.

    def __add__(self, other):
        mine, theirs = asdict(self), asdict(other)
        return Density(**{name: mine[name] + theirs[name] for name in mine})

    @property
    def limits(self):
        """The numbers that may only fall; density to two digits."""
        return {
            "expressions per code line": round(self.expressions / self.code_lines, 2),
            "packed assignments": self.packed,
            "nested comprehensions": self.nested,
            "functions with vague names": self.vague,
        }


def density(path):
    """Return the numbers of one file."""
    tree = ast.parse(path.read_text())
    skipped, docstring_rows = set(), set()
    result = Density()
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            annotation = getattr(node, name, None)
            if isinstance(annotation, ast.AST):
                skipped.update(id(inner) for inner in ast.walk(annotation))
        docstring = docstring_of(node)
        if docstring is not None:
            skipped.add(id(docstring.value))
            docstring_rows.update(range(docstring.lineno, docstring.end_lineno + 1))
        result.packed += is_packed(node)
        result.nested += isinstance(node, COMPREHENSIONS) and has_comprehension(node)
        result.vague += isinstance(node, ast.FunctionDef) and bool(VAGUE & assigned_names(node))
    result.expressions = sum(isinstance(node, ast.expr) and id(node) not in skipped for node in ast.walk(tree))
    result.code_lines = len(code_rows(path) - docstring_rows)
    return result


def docstring_of(node):
    """Return the first statement of a body if it is a constant."""
    body = getattr(node, "body", None)
    first = body[0] if isinstance(body, list) and body else None
    is_constant = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return first if is_constant else None


def is_packed(node):
    """Return whether a statement assigns several values to several names."""
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)


def has_comprehension(node):
    """Return whether there is a comprehension within a node."""
    inner = (inner for child in ast.iter_child_nodes(node) for inner in ast.walk(child))
    return any(isinstance(one, COMPREHENSIONS) for one in inner)


def assigned_names(function):
    """Return the names that a function assigns to."""
    names = (node for node in ast.walk(function) if isinstance(node, ast.Name))
    return {name.id for name in names if isinstance(name.ctx, ast.Store)}


def code_rows(path):
    """Return the numbers of lines with code."""
    rows = set()
    with open(path, encoding="utf-8") as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type not in NOT_CODE:
                rows.update(range(token.start[0], token.end[0] + 1))
    return rows


def folder_density(folder):
    """Return the numbers of all files of a folder."""
    return sum((density(path) for path in sorted((ROOT / folder).rglob("*.py"))), Density())


@pytest.mark.parametrize("folder", ["src", "tests"])
def test_code_does_not_become_denser(folder):
    limits = json.loads(LIMITS.read_text())[folder]
    measured = folder_density(folder).limits
    denser = {name: (value, limits[name]) for name, value in measured.items() if value > limits[name]}
    assert not denser, f"{folder}: {denser}"


def test_density_counts_what_it_says(tmp_path):
    path = tmp_path / "module.py"
    lines = ['"""Text."""', "", "def f(x: int) -> int:", "    a, b = x, 1", "    found = [[y for y in a] for a in b]"]
    path.write_text("\n".join(lines))
    measured = density(path)
    assert (measured.code_lines, measured.packed, measured.nested, measured.vague) == (3, 1, 1, 1)
    # The tuples a, b and x, 1 with four items; found, two comprehensions, y, y, a, a, b.
    assert measured.expressions == 6 + 8


if __name__ == "__main__":
    stored = {folder: folder_density(folder).limits for folder in ("src", "tests")}
    LIMITS.write_text(json.dumps(stored, indent=2) + "\n")
