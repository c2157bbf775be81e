"""Digests of values and functions, by which a later call knows whether it is about the same ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

#: Bytes of an array that are read at once: it may be mapped from a file.
BLOCK_BYTES = 2**24


def content_digest(*values: Any) -> str:
    """Return a digest of the content of values: numbers, text, arrays, containers, functions, plain objects.

    A function is its code, defaults, closure and the global values of its own module that it names; functions of other
    modules that it calls count with their code alone. Two values of equal content have the same digest.

    Raises
    ------
    ValueError
        For an object whose content cannot be known, such as an open file.
    """
    digest = _Digest()
    for value in values:
        digest.add(value)
    return digest.sha.hexdigest()


class _Digest:
    """A digest to which values are added, each of them once."""

    def __init__(self) -> None:
        self.sha = hashlib.sha256()
        self._within: list[int] = []  # what is being added: a recursive function names itself
        self._module: str | None = None  # of the function whose globals count

    def _say(self, *words: Any) -> None:
        self.sha.update(repr(words).encode())  # a repr has its own quotes: no two sequences of words look alike

    def add(self, value: Any) -> None:
        if id(value) in self._within:
            self._say("again", self._within.index(id(value)))
            return
        self._within.append(id(value))
        try:
            self._add(value)
        finally:
            self._within.pop()

    def _add(self, value: Any) -> None:
        if value is None or value is Ellipsis or isinstance(value, bool | int | float | complex | str | bytes):
            self._say(type(value).__name__, value)
        elif isinstance(value, np.ndarray | np.generic):
            self._add_array(np.asarray(value))
        elif isinstance(value, tuple | list):
            self._say("sequence", len(value))
            self._add_all(value)
        elif isinstance(value, dict):
            self._say("dict", len(value))
            self._add_all(part for item in value.items() for part in item)
        elif isinstance(value, set | frozenset):
            self._say("set", sorted(content_digest(part) for part in value))
        elif isinstance(value, np.random.RandomState):
            self._add(value.get_state())
        elif isinstance(value, type):
            self._add_class(value, followed=value.__module__ == self._module)
        elif isinstance(value, ModuleType | BuiltinFunctionType | np.ufunc | np.dtype):
            self._say("known by its name", getattr(value, "__module__", ""), getattr(value, "__qualname__", str(value)))
        elif not self._add_function(value):
            self._add_object(value)

    def _add_all(self, values: Iterable[Any]) -> None:
        for value in values:
            self.add(value)

    def _add_array(self, array: np.ndarray) -> None:
        if array.dtype.hasobject:
            self._say("array", array.shape)
            self._add_all(array.ravel().tolist())
            return
        self._say("array", array.dtype.str, array.shape)
        rows = max(1, BLOCK_BYTES // max(1, array[:1].nbytes)) if array.ndim else 1
        for begin in range(0, len(array) if array.ndim else 1, rows):
            self.sha.update(np.ascontiguousarray(array[begin : begin + rows] if array.ndim else array).tobytes())

    def _add_function(self, value: Any) -> bool:
        """Add a function, or what is made of one; return whether it is one."""
        if isinstance(value, CodeType):
            self._say("code", value.co_code, value.co_names, value.co_varnames, value.co_freevars, value.co_flags)
            self._add_all(value.co_consts)
        elif isinstance(value, FunctionType):
            self._say("function", value.__qualname__)
            self._add_all([value.__code__, value.__defaults__, value.__kwdefaults__])
            self._add_all(_cell(cell) for cell in value.__closure__ or ())
            self._add_globals(value)
        elif isinstance(value, partial):
            self._say("partial")
            self._add_all([value.func, value.args, value.keywords])
        elif isinstance(value, MethodType):
            self._say("method")
            self._add_all([value.__func__, value.__self__])
        else:
            return False
        return True

    def _add_globals(self, function: FunctionType) -> None:
        """Add the global values that a function names: those of the outermost function's module alone."""
        if self._module not in (None, function.__module__):
            return
        before, self._module = self._module, function.__module__
        for name in sorted(_names(function.__code__) & function.__globals__.keys()):
            self._say("global", name)
            self.add(function.__globals__[name])
        self._module = before

    def _add_class(self, kind: type, followed: bool) -> None:
        """Add a class by its name, and with its functions if they are to be followed."""
        self._say("class", kind.__module__, kind.__qualname__)
        for base in kind.__mro__ if followed else ():
            self._add_all(value for value in vars(base).values() if isinstance(value, FunctionType))

    def _add_object(self, value: Any) -> None:
        """Add an object by its class and its plain data; what can be called, with the functions that it runs."""
        self._add_class(type(value), followed=callable(value))
        if hasattr(value, "to_dict"):  # kernels, data frames
            self.add(value.to_dict())
        elif is_dataclass(value):
            self._add_all(getattr(value, field.name) for field in fields(value))
        elif hasattr(value, "__dict__"):
            self.add(vars(value))
        else:
            raise ValueError(f"the content of {value!r} cannot be known.")


def _cell(cell: Any) -> Any:
    """Return what a closure holds; a name that is not bound yet holds nothing."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _names(code: CodeType) -> set[str]:
    """Return the names that a function, and the functions in it, may look up in their module."""
    return set(code.co_names).union(*(_names(part) for part in code.co_consts if isinstance(part, CodeType)))
