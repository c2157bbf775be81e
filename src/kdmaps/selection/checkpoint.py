"""The checkpoint of a search: finished candidates in a file, from which an interrupted search goes on."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any

from kdmaps.selection.candidate import Candidate, Trial
from kdmaps.utils.files import as_path
from kdmaps.utils.json_lines import append_line, read_lines

#: Increase this when older versions can no longer read a checkpoint.
CHECKPOINT_FORMAT = 3


class Checkpoint:
    """Candidates that are finished already; nothing is read or written if `path` is None.

    Parameters
    ----------
    path : path-like or None
        A file in an existing directory; it is read once, here.
    """

    def __init__(self, path: Any):
        self._path = None if path is None else as_path("checkpoint", path)
        self._header: dict[str, Any] = {}
        self._done: dict[str, list[Candidate]] = {}
        if self._path is None:
            return
        if not self._path.parent.is_dir() or self._path.is_dir():
            raise ValueError(f"checkpoint must be a file in an existing directory, got {str(self._path)!r}.")
        lines = read_lines(self._path)
        if lines:
            self._header = lines[0]
            if self._header.get("format") == CHECKPOINT_FORMAT:
                finished = (line for line in lines[1:] if {"key", "candidates"} <= set(line))
                self._done = {line["key"]: [Candidate.from_dict(c) for c in line["candidates"]] for line in finished}

    @property
    def seed(self) -> int | None:
        """The seed of the search that the file belongs to, if there is one."""
        return self._header.get("seed")

    def begin(self, seed: int, fingerprint: str, scoring: str) -> None:
        """Compare the file with this search, or start it."""
        if self._path is None:
            return
        if not scoring or "<lambda>" in scoring:
            raise ValueError(
                "checkpoint cannot tell one lambda or partial from another; give scoring a named function."
            )
        header = {"format": CHECKPOINT_FORMAT, "kdmaps": version("kdmaps"), "seed": seed}
        header |= {"data": fingerprint, "scoring": scoring}
        if not self._path.exists() or not self._path.read_bytes().strip():
            self._path.write_text(json.dumps(header) + "\n")
        elif self._header != header:
            raise ValueError(
                f"checkpoint {self._path} belongs to other data, settings or scoring, or to another version of kdmaps "
                f"({self._header.get('kdmaps')}, this is {version('kdmaps')}); remove it or give another path."
            )

    @staticmethod
    def _key(trial: Trial) -> str:
        return json.dumps({**vars(trial), "kernel": trial.kernel.to_dict()}, sort_keys=True)

    def finished(self, trial: Trial) -> list[Candidate] | None:
        """Return the candidates of a trial, if the file has them."""
        return self._done.get(self._key(trial)) if self._done else None

    def record(self, trial: Trial, found: list[Candidate]) -> None:
        """Append the candidates of a trial."""
        if self._path is not None:
            line = {"key": self._key(trial), "candidates": [candidate.to_dict() for candidate in found]}
            append_line(self._path, line)
