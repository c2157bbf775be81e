"""Digests of values and functions, to find out whether a later call has the same arguments."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from kdmaps.utils.frames import column_names

#: Bytes of an array that are read at a time: it may be mapped from a file.
BLOCK_BYTES = 2**24


def content_digest(*values: Any) -> str:
    """Return a digest of the content of values: numbers, text, arrays, containers, functions, plain objects.

    A function counts with its code, defaults, closure and the global values of its module that it names; functions of
    other modules that it calls count with their code alone.
    """
    digest = _Digest()
    for value in values:
        digest.add(value)
    return digest.sha.hexdigest()


class _Digest:
    """A digest to which values are added."""

    def __init__(self) -> None:
        self.sha = hashlib.sha256()
        self._within: list[int] = []  # values that contain this one: a recursive function names itself
        self._module: str | None = None  # of the function whose globals count

    def add(self, value: Any) -> None:
        if id(value) in self._within:
            self._update("again", self._within.index(id(value)))
            return
        self._within.append(id(value))
        label, parts = self._parts(value)
        self._update(*label)
        for part in parts:
            self.add(part)
        self._within.pop()

    def _update(self, *label: Any) -> None:
        self.sha.update(repr(label).encode())  # a repr is quoted, so that different labels stay different

    def _parts(self, value: Any) -> tuple[tuple[Any, ...], Iterable[Any]]:
        """Return a plain label of a value, and the values that it is made of."""
        if value is None or value is Ellipsis or isinstance(value, bool | int | float | complex | str | bytes):
            return (type(value).__name__, value), ()
        if hasattr(value, "__array__") and not isinstance(value, type):  # arrays and numbers of numpy, data frames
            return self._array_parts(np.asarray(value), column_names(value))
        if isinstance(value, tuple | list):
            return ("sequence", len(value)), value
        if isinstance(value, dict):
            return ("dict", len(value)), (part for item in value.items() for part in item)
        if isinstance(value, set | frozenset):
            return ("set", sorted(content_digest(part) for part in value)), ()
        if isinstance(value, np.random.RandomState):
            return ("generator",), value.get_state()
        if isinstance(value, ModuleType | BuiltinFunctionType | np.ufunc | np.dtype):
            return ("name", getattr(value, "__module__", ""), getattr(value, "__qualname__", str(value))), ()
        if isinstance(value, type):
            return _class_parts(value, followed=value.__module__ == self._module)
        if isinstance(value, CodeType):
            names = value.co_names, value.co_varnames, value.co_freevars
            return ("code", value.co_code, *names, value.co_flags), value.co_consts
        if isinstance(value, FunctionType):
            return ("function", value.__qualname__), self._function_parts(value)
        if isinstance(value, partial):
            return ("partial",), (value.func, value.args, value.keywords)
        if isinstance(value, MethodType):
            return ("method",), (value.__func__, value.__self__)
        if not hasattr(value, "__dict__"):
            raise ValueError(f"the content of {value!r} is not accessible.")
        own = type(value).__module__.partition(".")[0] == __name__.partition(".")[0]  # code that does not change
        label, functions = _class_parts(type(value), followed=callable(value) and not own)
        plain = is_dataclass(value)  # whose other attributes are cached results
        data = {f.name: getattr(value, f.name) for f in fields(value)} if plain else vars(value)
        return label, (*functions, data)

    def _array_parts(self, array: np.ndarray, columns: list[str] | None) -> tuple[tuple[Any, ...], Iterable[Any]]:
        label = ("array", array.dtype.str, array.shape, columns)
        if array.dtype.hasobject:
            return label, array.ravel().tolist()
        self._update(*label)
        rows = np.atleast_1d(array)
        size = max(1, BLOCK_BYTES // max(1, rows[:1].nbytes))
        for begin in range(0, len(rows), size):
            self.sha.update(np.ascontiguousarray(rows[begin : begin + size]).view(np.uint8).data)
        return ("end",), ()

    def _function_parts(self, function: FunctionType) -> Iterator[Any]:
        """Yield code, defaults and closure, and the named globals of the outermost function's module."""
        yield from (function.__code__, function.__defaults__, function.__kwdefaults__)
        yield from map(_cell, function.__closure__ or ())
        if self._module not in (None, function.__module__):
            return
        before, self._module = self._module, function.__module__
        for name in sorted(_names(function.__code__) & function.__globals__.keys()):
            yield from (name, function.__globals__[name])
        self._module = before


def _class_parts(kind: type, followed: bool) -> tuple[tuple[Any, ...], list[Any]]:
    """Return the name of a class, and its functions if they are followed."""
    found = [value for base in kind.__mro__ for value in vars(base).values() if isinstance(value, FunctionType)]
    return ("class", kind.__module__, kind.__qualname__), found if followed else []


def _cell(cell: Any) -> Any:
    """Return the content of a closure's cell, None for a name that is not bound yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _names(code: CodeType) -> set[str]:
    """Return the names that a function, and the functions in it, may look up in their module."""
    return set(code.co_names).union(*(_names(part) for part in code.co_consts if isinstance(part, CodeType)))
