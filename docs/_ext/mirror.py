"""Copy results, worked examples and gallery scripts from the repository into the documentation.

The tables of `results/` become pages. Missing directories are skipped.
"""

from __future__ import annotations

import ast
import re
import shutil
from pathlib import Path

#: Files that are copied from a directory.
SUFFIXES = (".md", ".png")


def mirror(root: Path, out: Path) -> None:
    """Copy pages and figures from the repository at `root` to `out`, as pages of the documentation."""
    for kind in ("results", "examples"):
        _clear(out / kind)
        for folder in sorted((root / kind).iterdir()):
            if folder.is_dir():
                _copy_pages(folder, out / kind / folder.name)
    _clear(out / "paper")  # a separate chapter
    if (out / "results" / "paper").is_dir():
        (out / "results" / "paper").rename(out / "paper")
    _clear(out / "lists")
    (out / "results" / "silent" / "table.md").rename(out / "lists" / "silent.md")  # docs/pitfalls.md shows it
    for folder in sorted((out / "results").iterdir()):
        for page in folder.glob("*.md"):
            if not page.read_text().startswith("# "):
                page.write_text(_introduction(root, folder) + page.read_text())
    for kind in ("results", "examples", "paper"):
        _write_list(out, kind)
    (out / "lists" / "benchmarks.md").write_text(_scripts(root / "benchmarks"))
    for name, table in missed_goals(root / "results").items():
        (out / "lists" / f"missed_{name}.md").write_text(_unbroken(table))
    source = out / "gallery_source"
    source.mkdir(parents=True, exist_ok=True)
    for script in [root / "examples" / "GALLERY_HEADER.rst", *(root / "examples").glob("plot_*.py")]:
        _copy(script, source / script.name)
    for stale in source.iterdir():
        if not (root / "examples" / stale.name).exists():
            stale.unlink()
    names = reference_names(root / "docs" / "api.rst")
    for page in (out / "api").glob("*.rst"):
        if page.stem not in names:
            page.unlink()


def reference_names(page: Path) -> set[str]:
    """Return the full names in the tables of the reference."""
    names, module = set(), ""
    for line in page.read_text().splitlines():
        if match := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = match[1]
        elif match := re.match(r"   (\w[\w.]*)$", line):
            names.add(f"{module}.{match[1]}")
    return names


def _write_list(out: Path, kind: str) -> None:
    """Return a table of contents for a page to include."""
    first = ("index", "README", "table")  # the others follow by name
    pages = sorted((out / kind).rglob("*.md"), key=lambda page: (page.parent, page.stem not in first, page.stem))
    names = "".join(f"/{page.relative_to(out.parent).with_suffix('')}\n" for page in pages)
    (out / "lists" / f"{kind}.md").write_text(
        f"```{{toctree}}\n:maxdepth: 1\n\n{names}```\n" if pages else "Nothing has been computed yet.\n"
    )


def _scripts(folder: Path) -> str:
    """Return a table of the benchmarks and their docstrings."""
    rows = ["| script | measures |", "|---|---|"]
    for path in sorted([*folder.glob("[a-z]*.py"), *folder.glob("[a-z]*/__init__.py")]):
        doc = ast.get_docstring(ast.parse(path.read_text())) or ""
        name = path.parent.name if path.stem == "__init__" else path.stem
        rows.append(f"| `benchmarks.{name}` | {doc.splitlines()[0] if doc else ''} |")
    return "\n".join(rows) + "\n"


def missed_goals(results: Path) -> dict[str, str]:
    """Collect, for each directory of results, the rows of its tables that miss a goal: ✗, or "no" under "met"."""
    found = {}
    for page in sorted(results.glob("*/table.md")):
        tables = []
        for block in re.findall(r"(?:^\|.*\n)+", page.read_text(), re.MULTILINE):
            header, line, *rows = block.splitlines()
            names = [cell.strip() for cell in header.strip("|").split("|")]
            met = names.index("met") if "met" in names else None
            missed = [
                row
                for row in rows
                if "✗" in row or (met is not None and row.strip("|").split("|")[met].strip() == "no")
            ]
            if missed:
                tables.append("\n".join([header, line, *missed]) + "\n")
        found[page.parent.name] = "\n".join(tables) or "No goal is missed at present.\n"
    return found


def _clear(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)


def _copy(source: Path, target: Path) -> None:
    """Copy unless the file is unchanged, so that an example with an old date is not run again."""
    if not target.exists() or target.read_bytes() != source.read_bytes():
        shutil.copy(source, target)


def _copy_pages(folder: Path, out: Path) -> None:
    for path in sorted(folder.rglob("*")):
        if path.suffix in SUFFIXES:
            target = out / path.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    for page in out.rglob("*.md"):
        page.write_text(_unbroken(_unlinked(page)))


def _unlinked(page: Path) -> str:
    """Return the text of a page; links to files outside the documentation become plain text."""

    def plain(match: re.Match) -> str:
        label, target = match.groups()
        known = target.startswith(("http", "#")) or (page.parent / target.split("#")[0]).exists()
        return match[0] if known else f"`{label.strip('`')}`"

    return re.sub(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)", plain, page.read_text())


def _unbroken(text: str) -> str:
    """Keep the numbers of one cell of a table, such as 0.1 ± 0.2, on one line."""
    cells = re.compile(r"(?<=[\d.]) (?=[-\d±])|(?<=±) (?=\d)")
    return "".join(
        cells.sub("\N{NO-BREAK SPACE}", line) if line.startswith("|") else line for line in text.splitlines(True)
    )


def _introduction(root: Path, folder: Path) -> str:
    """Return the title, docstring, command and figures of an experiment, for a page that is a bare table."""
    pictures = "".join(f"![{picture.stem}]({picture.name})\n\n" for picture in sorted(folder.glob("*.png")))
    experiment = root / "experiments" / folder.name
    for source, command in (
        (experiment / "__init__.py", f"experiments.{folder.name}"),
        (experiment.with_suffix(".py"), f"experiments.{folder.name}"),
        (root / "benchmarks" / folder.name / "__init__.py", f"benchmarks.{folder.name}"),
        (root / "benchmarks" / f"{folder.name}.py", f"benchmarks.{folder.name}"),
        (root / "benchmarks" / f"bench_{folder.name}.py", f"benchmarks.bench_{folder.name}"),
    ):
        if source.is_file():
            doc = ast.get_docstring(ast.parse(source.read_text())) or folder.name
            title, _, text = doc.partition("\n")
            made = f"Made by `python -m {command}`; the files are in `results/{folder.name}`."
            return f"# {title.rstrip('.')}\n\n{text.strip()}\n\n{made}\n\n{pictures}"
    return f"# {folder.name.replace('_', ' ').capitalize()}\n\n{pictures}"
