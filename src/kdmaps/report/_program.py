"""Program that repeats the fit of a page, and fingerprint of the samples."""

import ast
import hashlib
import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import clone

from kdmaps.data import ArraySource
from kdmaps.forms.diffusion import Factor


def show_argument(value: Any) -> str:
    """Write an argument on one line, arrays by their shape."""
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}"
    if isinstance(value, Factor):
        return f"factor of shape {value.array.shape}"
    return textwrap.shorten(repr(value), 200, placeholder=" …")


def program(model: Any, given: dict[str, str], reading: str | None) -> str:
    """Write a program that repeats the fit; arguments that cannot be written as code are names in it."""
    parameters = model.get_params(deep=False)
    named = {name: value for name, value in parameters.items() if not _is_code(value)}
    changes: dict[str, Any] = {name: _Name(name) for name in named}
    if "progress" in parameters:
        changes["progress"] = False
    plain = clone(model).set_params(**changes)
    written = [value for name, value in parameters.items() if name not in named]
    classes = {type(model), *_classes_in(written)}
    imports = {f"from {_public_module(c)} import {c.__name__}" for c in classes if c.__module__ != "builtins"}
    if reading is None:
        needed = [f"# {name}: the given {show_argument(value)}" for name, value in named.items()]
        needed += [f"# {name}: as given to fit, {text}" for name, text in given.items()]
    else:
        lines = reading.splitlines()
        imports |= {line for line in lines if line.startswith(("from ", "import "))}
        needed = [line for line in lines if line not in imports]
    arguments = ", ".join(["X", *(f"{name}={name}" for name in given)])
    made = f"model = {plain.__repr__(N_CHAR_MAX=10**6)}"
    return "\n".join([*sorted(imports), "", *needed, made, f"model.fit({arguments})"])


def _classes_in(value: Any) -> Iterator[type]:
    """Yield the class of an argument, and of the kernels or other objects in it."""
    inside = value if isinstance(value, list | tuple) else getattr(value, "kernels", ())
    yield type(value)
    for item in inside:
        yield from _classes_in(item)


def _is_code(value: Any) -> bool:
    """Return whether evaluating the representation of an argument, with its classes imported, reproduces it."""
    try:
        tree = ast.parse(repr(value), mode="eval")
    except SyntaxError:
        return False
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return names <= {c.__name__ for c in _classes_in(value)} and not isinstance(value, np.ndarray)


class _Name(str):
    """A string represented without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def _public_module(cls: type) -> str:
    """Return the module that users import a class from: kdmaps itself, or else its module up to the private part."""
    import kdmaps

    return "kdmaps" if getattr(kdmaps, cls.__name__, None) is cls else cls.__module__.partition("._")[0]


def fingerprint(X: np.ndarray) -> str:
    """Return the SHA-256 of the samples as 64-bit floats, row by row."""
    digest, source = hashlib.sha256(), ArraySource(X, checked=True)  # reads a mapped file in parts
    for part in source.parts(2**16):
        digest.update(np.ascontiguousarray(source.read(part)[1], dtype="<f8").tobytes())
    return digest.hexdigest()
