"""The rooms of CONTRIBUTING.md: each imports only those before it, and no private name of another."""

import ast
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "kdmaps"
#: In the order of the flow. What stands in one tuple may import each other.
ORDER = [
    ("exceptions", "utils"),
    ("problems",),
    ("kernels",),
    ("data", "bases", "forms"),
    ("spectrum",),
    ("metrics", "diagnostics", "certificates", "generators"),
    ("selection",),
    ("learn",),
    ("words", "notebook"),
    ("estimators",),
    ("uncertainty", "dynamics", "simulation"),
    ("baselines",),
    ("lag_words", "state_words", "plotting", "report"),
    ("cli", "__main__"),
]


#: Where the short names of `kdmaps/__init__.pyi` are.
SHORT = {
    node.names[0].name: ".".join(filter(None, [node.module, node.names[0].name]))
    for node in ast.parse((PACKAGE / "__init__.pyi").read_text()).body
    if isinstance(node, ast.ImportFrom)
}


def place_of(module):
    """The place of a module in the order: that of the longest name that it begins with."""
    found = [(-1, len(ORDER))] + [
        (len(room), i) for i, rooms in enumerate(ORDER) for room in rooms if f"{module}.".startswith(f"{room}.")
    ]
    return max(found)[1]


@cache
def imports():
    return list(_imports())


def _imports():
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        if module == "__init__":
            continue
        tree = ast.parse(path.read_text())
        inside = {id(n) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for n in ast.walk(f)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kdmaps"):
                room = node.module.removeprefix("kdmaps").removeprefix(".")
                if not room:
                    yield from (
                        (module, SHORT.get(alias.name, alias.name), "", id(node) in inside) for alias in node.names
                    )
                    continue
                for alias in node.names:
                    yield module, room, alias.name, id(node) in inside


def test_every_folder_has_a_place():
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders <= {room for rooms in ORDER for room in rooms}
    assert len(folders) <= 16


@pytest.mark.parametrize("room", sorted({room for rooms in ORDER for room in rooms}))
def test_a_room_imports_only_those_before_it(room):
    wrong = [
        f"{module} imports {name} of {other}"
        for module, other, name, late in imports()
        if f"{module}.".startswith(f"{room}.") and not late
        if other != "__version__" and place_of(other) > place_of(module)
    ]
    assert wrong == []


def test_no_room_imports_a_private_name_of_another():
    def private(part):
        return part.startswith("_") and not part.startswith("__")

    wrong = [
        f"{module} imports {name} of {other}"
        for module, other, name, _ in imports()
        if any(map(private, [*other.split("."), name])) and module.split(".")[0] != other.split(".")[0]
    ]
    assert wrong == []
