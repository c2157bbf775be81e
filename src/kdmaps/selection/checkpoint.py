"""The checkpoint of a search: a file of finished candidates from which an interrupted search resumes."""

import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kdmaps.checks import Check, rules, warn
from kdmaps.selection.candidate import Candidate, Trial, plain_data
from kdmaps.utils.content import content_digest
from kdmaps.utils.files import append_line, as_path, create, is_intact, read_lines, sealed

#: Increase this when older versions can no longer read a checkpoint.
CHECKPOINT_FORMAT = 5


class Checkpoint:
    """Finished candidates in a file, which is read once; nothing is read or written if `path` is None.

    Every line has a checksum and names the search. A line that was changed, or that belongs to an earlier search,
    is ignored and its candidates are evaluated again, so the result is the same as without the file. Two
    processes may share a file: each adds whole lines.
    """

    def __init__(self, path: Any):
        self._path = None if path is None else as_path("checkpoint", path)
        self._header: dict[str, Any] = {}
        self._done: dict[str, list[Candidate]] = {}
        if self._path is not None:
            if not self._path.parent.is_dir() or self._path.is_dir():
                raise ValueError(f"checkpoint must be a file in an existing directory, got {str(self._path)!r}.")
            self._read(self._path)

    def _read(self, path: Path) -> None:
        self._header, *lines = read_lines(path) or [{}]
        if self._header.get("format") != CHECKPOINT_FORMAT:
            return
        own = self._header.get("checksum")
        sound = [line for line in lines if is_intact(line) and line.get("search") == own]
        self._done = {line["key"]: [Candidate.from_dict(c) for c in line["candidates"]] for line in sound}
        changed = len(lines) - len(sound)
        if changed:  # a resumed search has the same checks as one that was not interrupted
            warn(Check(rules.CHANGED_CHECKPOINT, changed, words={"count": len(lines), "path": str(path)}))

    @property
    def seed(self) -> int | None:
        """The seed of the search that the file belongs to, if there is one."""
        return self._header.get("seed")

    def begin(self, seed: int, fingerprint: Callable[[], str], scoring: Any) -> None:
        """Compare the file with this search, or start it; a callable `scoring` is identified by its content."""
        if self._path is None:
            return
        try:
            known = scoring if isinstance(scoring, str) else content_digest(scoring)
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"checkpoint cannot identify this scoring: {error} Give scoring a function whose defaults, closure and "
                "arguments are plain data."
            ) from error
        header = {"format": CHECKPOINT_FORMAT, "kdmaps": version("kdmaps"), "seed": seed}
        header = sealed({**header, "data": fingerprint(), "scoring": known})
        if self._path.exists() and not self._path.read_bytes().strip():
            self._path.unlink()
        if create(self._path, f"{json.dumps(header)}\n".encode()):
            self._header = header
            return
        if not self._header:  # another process has made it since
            self._read(self._path)
        if (found := self._header.get("format", CHECKPOINT_FORMAT)) != CHECKPOINT_FORMAT:
            raise ValueError(
                f"checkpoint {self._path} has format {found}, but this version of kdmaps reads format "
                f"{CHECKPOINT_FORMAT}; remove it or give another path."
            )
        if self._header != header:
            raise ValueError(
                f"checkpoint {self._path} belongs to other data, settings or scoring, or to another version of kdmaps "
                f"({self._header.get('kdmaps')}, this is {version('kdmaps')}), or was changed; remove it or give "
                "another path."
            )

    @staticmethod
    def _key(trial: Trial) -> str:
        return json.dumps(plain_data(trial), sort_keys=True)

    def finished(self, trial: Trial) -> list[Candidate] | None:
        """Return the candidates of a trial, if the file has them."""
        return self._done.get(self._key(trial)) if self._done else None

    def record(self, trial: Trial, found: list[Candidate]) -> None:
        """Append the candidates of a trial."""
        if self._path is not None:
            line = {"search": self._header["checksum"], "key": self._key(trial)}
            line["candidates"] = [candidate.to_dict() for candidate in found]
            append_line(self._path, sealed(line))
