"""Warnings that point at the user's own line, whichever estimator or helper found the reason."""

from __future__ import annotations

import sys
import warnings

#: Packages whose frames lie between a user's call and the place that warns.
_OURS = ("kdmaps", "sklearn", "joblib", "contextlib")


def warn(message: str | Warning, category: type[Warning] | None = None) -> None:
    """Issue a warning at the nearest caller outside kdmaps and scikit-learn."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
