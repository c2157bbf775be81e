"""Warnings that point at the user's line of code, and their collection in results."""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import wraps
from itertools import chain
from typing import Any, ParamSpec, TypeVar, cast

from kdmaps.checks.check import Check, Checks

P = ParamSpec("P")
T = TypeVar("T")
#: Packages whose frames lie between the user's call and the warning.
_OURS = ("kdmaps", "sklearn", "joblib", "contextlib")
_muted: ContextVar[bool] = ContextVar("muted", default=False)
_collectors: ContextVar[tuple[list[Check], ...]] = ContextVar("collectors", default=())


@contextmanager
def muted() -> Iterator[None]:
    """Within this context, kdmaps issues no warnings in this thread, and adds none to collections outside of it."""
    silence, collectors = _muted.set(True), _collectors.set(())
    try:
        yield
    finally:
        _muted.reset(silence)
        _collectors.reset(collectors)


@contextmanager
def collected() -> Iterator[list[Check]]:
    """Collect all checks that are made within this context, passed or not, also where warnings are muted around it."""
    checks: list[Check] = []
    token = _collectors.set((*_collectors.get(), checks))
    try:
        yield checks
    finally:
        _collectors.reset(token)


def recorded(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function: its result, a dataclass with a field `checks`, keeps the checks made within it."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        with collected() as checks:
            result: Any = function(*args, **kwargs)
        return cast(T, replace(result, checks=Checks([*result.checks, *checks])))

    return call


def warn(check: Check) -> None:
    """Record a check for the result in the making; if it failed, warn at the nearest caller outside kdmaps.

    A check that another one explains, which failed before in the same call, is recorded without a warning.
    """
    collectors = _collectors.get()
    earlier = chain.from_iterable(collectors)
    explained = any(check.code in other.rule.explains for other in earlier if other.warns)
    for collector in collectors:
        collector.append(check)
    if not check.warns or explained or _muted.get():
        return
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
        frame, level = frame.f_back, level + 1
    warnings.warn(check.as_warning(), stacklevel=level)


def warn_of(checks: Iterable[Check | None]) -> None:
    """Record each check, and warn of those that failed; None is a check that does not apply."""
    for check in checks:
        if check is not None:
            warn(check)
