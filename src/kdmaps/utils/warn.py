"""Warnings that point at the user's line of code, wherever in kdmaps they are issued."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

#: Packages whose frames lie between the user's call and the warning.
_OURS = ("kdmaps", "sklearn", "joblib", "contextlib")
_local = threading.local()


@contextmanager
def muted() -> Iterator[None]:
    """Within this context, kdmaps issues no warnings in this thread (filters of `warnings` apply to all threads)."""
    before, _local.muted = getattr(_local, "muted", False), True
    try:
        yield
    finally:
        _local.muted = before


def warn(message: str | Warning, category: type[Warning] | None = None) -> None:
    """Issue a warning at the nearest caller outside kdmaps and scikit-learn."""
    if getattr(_local, "muted", False):
        return
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
