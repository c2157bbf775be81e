"""Warnings that point at the user's line of code, wherever in kdmaps they are issued."""

import json
import re
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import metadata, resources

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
    """Issue a warning at the nearest caller outside kdmaps and scikit-learn, with a link to its section."""
    if getattr(_local, "muted", False):
        return
    if link := section(str(message)):
        text = f"{message} ({link})"
        message = text if isinstance(message, str) else type(message)(text)
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def section(message: str) -> str:
    """Return the address of the section of the documentation about a warning, or "" if there is none."""
    anchor = next((anchor for words, anchor in _sections() if words.search(message)), None)
    return "" if anchor is None else f"{_page()}#{anchor}"


def without_link(message: str) -> str:
    """Return a warning without the address of its section."""
    return message.removesuffix(f" ({section(message)})")


@cache
def _sections() -> list[tuple[re.Pattern[str], str]]:
    """Return words of each warning, and the anchor of its section; … is any text."""
    stored = json.loads(resources.files("kdmaps.utils").joinpath("sections.json").read_text("utf-8"))
    return [(re.compile(re.escape(words).replace("…", ".*?"), re.DOTALL), anchor) for words, anchor in stored.items()]


@cache
def _page() -> str:
    """Return the address of the page: on the web if the package has one, otherwise in the repository."""
    for entry in metadata.metadata("kdmaps").get_all("Project-URL") or ():
        name, _, address = entry.partition(", ")
        if name == "Documentation" and "example.org" not in address:
            return f"{address}/troubleshooting.html"
    return "docs/troubleshooting.md"
