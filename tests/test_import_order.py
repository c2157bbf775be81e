"""Packages import only packages that come before them in ORDER, in every import statement."""

import ast
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "kdmaps"
#: Every package and top-level module, each after all that it may import.
ORDER = [
    "language",
    "exceptions",
    "utils",
    "checks",
    "problems",
    "kernels",
    "data",
    "bases",
    "forms",
    "spectrum",
    "metrics",
    "diagnostics",
    "clocks",
    "generators",
    "certificates",
    "selection",
    "propagation",
    "learn",
    "summary",
    "baselines",
    "estimators",
    "uncertainty",
    "dynamics",
    "analysis",
    "simulation",
    "plotting",
    "report",
    "cli",
    "__main__",
]


@cache
def public_names():
    """Return the module behind each name of `kdmaps/__init__.pyi`."""
    body = ast.parse((PACKAGE / "__init__.pyi").read_text()).body
    imported = [node for node in body if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module or alias.name for node in imported for alias in node.names}


def imported_by(tree):
    """Return (module, name) of every import from kdmaps: at the top, inside functions and for type checkers.

    With `import kdmaps`, every attribute of it counts as an import. The version has no module.
    """
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            if node.module == "kdmaps":
                found += [(public_names().get(alias.name, alias.name), alias.name) for alias in node.names]
            elif (node.module or "").startswith("kdmaps."):
                found += [(node.module.removeprefix("kdmaps."), alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [(alias.name.removeprefix("kdmaps."), "") for alias in node.names if alias.name[:7] == "kdmaps."]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "kdmaps":
            found.append((public_names().get(node.attr, node.attr), node.attr))
    return [(module, name) for module, name in found if module != "__version__"]


@cache
def all_imports():
    """Return (importing module, imported module, imported name) of the whole library."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        found += [(module, *imported) for imported in imported_by(ast.parse(path.read_text()))]
    return found


def package(module):
    return module.split(".")[0]


def test_every_package_has_one_place():
    modules = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert sorted(ORDER) == sorted(modules | packages)


@pytest.mark.parametrize("name", ORDER)
def test_imports_follow_the_order(name):
    wrong = [
        f"{module} imports {other}"
        for module, other, _ in all_imports()
        if package(module) == name and ORDER.index(package(other)) > ORDER.index(name)
    ]
    assert wrong == []


def test_no_private_name_of_another_package_is_imported():
    def private(part):
        return part.startswith("_") and not part.startswith("__")

    wrong = [
        f"{module} imports {name} of {other}"
        for module, other, name in all_imports()
        if any(map(private, [*other.split("."), name])) and package(module) != package(other)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "source",
    [
        "from kdmaps.dynamics import validate",
        "from kdmaps import dynamics",
        "import kdmaps.dynamics",
        "import kdmaps\nkdmaps.dynamics.validate()",
        "def late():\n    from kdmaps.dynamics import validate",
        "if TYPE_CHECKING:\n    from kdmaps.dynamics import Validation",
    ],
)
def test_every_kind_of_import_is_found(source):
    assert {package(module) for module, _ in imported_by(ast.parse(source))} == {"dynamics"}
