"""Public names that are imported when they are first used: `import kdmaps` alone takes milliseconds."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any


def attach(package: str, stub: Path) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package whose public names a stub file imports.

    Parameters
    ----------
    package : str
        Name of the package.
    stub : Path
        A `.pyi` file that consists of `from module import name as name`: type checkers read the names there too. A
        module of another folder can also be imported by its short name, as `from kdmaps.metrics import subspace_r2`.
    """
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    where = {
        alias.name: node.module
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for alias in node.names
    }
    folder = stub.parent
    modules = {
        name: f"{module}.{name}"
        for name, module in where.items()
        if (place := folder.joinpath(*module.split(".")[1:], name)).is_dir() or place.with_suffix(".py").is_file()
    }
    sys.meta_path[:] = [finder for finder in sys.meta_path if getattr(finder, "package", None) != package]  # a reload
    sys.meta_path.append(_ShortNames(package, {f"{package}.{name}": module for name, module in modules.items()}))

    def load(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if name in modules:
            value: Any = import_module(modules[name])
        else:
            value = getattr(import_module(where[name]), name)
        setattr(sys.modules[package], name, value)  # the next use finds it at once
        return value

    return load, lambda: sorted({*vars(sys.modules[package]), *where}), sorted(where)


class _ShortNames(MetaPathFinder):
    """Finds modules under their short names."""

    def __init__(self, package: str, modules: dict[str, str]):
        self.package, self._modules = package, modules

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        module = self._modules.get(fullname)
        return None if module is None else spec_from_loader(fullname, _Alias(module))


class _Alias(Loader):
    """Gives a module that has another name."""

    def __init__(self, module: str):
        self._name = module

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has put that of the short name in its place
