"""List missing steps before a tag is pushed: `make release-check TAG=v1.2.3`.

Packages read `__version__`; CITATION.cff and the recipe repeat it. A version in development ends with .devN and is
undated, under the heading "[Unreleased] – X.Y.Z" of the changelog; a release has its date in the heading of the
changelog and in CITATION.cff.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACEHOLDER = "example.org/kdmaps"
#: Files with addresses.
ADDRESSED = ("pyproject.toml", "CITATION.cff", "SECURITY.md", "recipe/recipe.yaml", ".github/ISSUE_TEMPLATE/config.yml")


def found(root, name, pattern):
    """The first group of a pattern in a file, or None."""
    match = re.search(pattern, (root / name).read_text(encoding="utf-8"), re.MULTILINE)
    return match and match[1]


def disagreements(root):
    """Yield files that do not follow the rule for versions."""
    version = found(root, "src/kdmaps/__init__.py", r'^__version__ = "(.+)"$')
    for name, pattern in (("CITATION.cff", r"^version: (.+)$"), ("recipe/recipe.yaml", r'^  version: "(.+)"$')):
        if found(root, name, pattern) != version:
            yield f"{name}: the version must be {version}, as in src/kdmaps/__init__.py"
    date = found(root, "CITATION.cff", r"^date-released: (\d{4}-\d\d-\d\d)$")
    if ".dev" in version:
        heading = f"[Unreleased] – {version.partition('.dev')[0]}"
        if date is not None:
            yield f"CITATION.cff: {version} is not released; remove date-released"
    else:
        heading = f"{version} – {date}"
        if date is None:
            yield f"CITATION.cff: add the line `date-released: YYYY-MM-DD` for {version}"
    if found(root, "CHANGELOG.md", r"^## (.+)$") != heading:
        yield f"CHANGELOG.md: the first heading must be `## {heading}`"


def missing(root, tag):
    """Yield values that a maintainer has to fill in before `tag` is pushed."""
    version = found(root, "src/kdmaps/__init__.py", r'^__version__ = "(.+)"$')
    if tag != f"v{version}":
        yield f"src/kdmaps/__init__.py: __version__ is {version}, the tag is {tag or 'missing (TAG=vX.Y.Z)'}"
    yield from disagreements(root)
    for name in ADDRESSED:
        for number, line in enumerate((root / name).read_text(encoding="utf-8").splitlines(), start=1):
            if PLACEHOLDER in line:
                yield f"{name}:{number}: replace the placeholder: {line.strip()}"


if __name__ == "__main__":
    left = list(missing(ROOT, sys.argv[1] if len(sys.argv) > 1 else ""))
    print("\n".join(["Before the tag is pushed:", *(f"- {each}" for each in left)] if left else ["Ready."]))
    sys.exit(bool(left))
