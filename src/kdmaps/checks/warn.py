"""Warnings that point at the user's line of code, and their collection in results."""

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from kdmaps.checks.check import Check

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
    """Collect all checks that are warned of within this context, also where warnings are muted around it."""
    found: list[Check] = []
    token = _collectors.set((*_collectors.get(), found))
    try:
        yield found
    finally:
        _collectors.reset(token)


def warn(check: Check) -> None:
    """Warn of a failed check at the nearest caller outside kdmaps and scikit-learn; one that passed does nothing.

    A check that another one explains, which failed before in the same call, is collected without a warning.
    """
    if not check.warns:
        return
    explained = any(check.code in other.rule.explains for found in _collectors.get() for other in found)
    for found in _collectors.get():
        found.append(check)
    if _muted.get() or explained:
        return
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
        frame, level = frame.f_back, level + 1
    warnings.warn(check.as_warning(), stacklevel=level)


def warn_of(checks: Iterable[Check]) -> None:
    """Warn of each check that failed."""
    for check in checks:
        warn(check)
