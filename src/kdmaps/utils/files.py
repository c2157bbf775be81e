"""Files that appear whole or not at all, and files of JSON lines to which finished work is appended."""

import errno
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO
from uuid import uuid4

from kdmaps.utils.types import PathLike

#: Error numbers of a full disk, an exhausted quota and a file-size limit.
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def as_path(name: str, path: Any) -> Path:
    """Return `path` as a Path; `name` is the argument that holds it."""
    try:
        return Path(path)
    except TypeError:
        raise ValueError(f"{name} must be the name of a file, got {path!r}.") from None


def check_writable(option: str, directory: Path) -> None:
    """Raise unless files can be created in `directory`, which need not exist yet; nothing is left behind."""
    missing = [place for place in (directory, *directory.parents) if not place.exists()]
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=directory):
            pass
    except OSError as error:
        why = f"no file can be written in {directory} ({error.strerror})"
        raise ValueError(f"{option}: {why}; choose another directory.") from error
    finally:
        for place in missing:
            with suppress(OSError):  # never made, or no longer empty
                place.rmdir()


@contextmanager
def naming_full_disk(*paths: Path) -> Iterator[None]:
    """Add the names of the files to the error of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        names = ", ".join(map(str, paths))
        what = f"{error.strerror}: {names} could not be written. Free some space, or choose another directory"
        raise OSError(error.errno, what) from error


@contextmanager
def replacing(*paths: PathLike) -> Iterator[list[BinaryIO]]:
    """Binary files to write, which get their names only when the block ends without an exception.

    None is renamed before all of them are safely on the disk: after a failure, none of them is new.
    """
    targets = [Path(path) for path in paths]
    for target in targets:
        if target.is_dir():
            raise IsADirectoryError(f"{target} is a directory; give the name of a file.")
        if not target.parent.is_dir():
            raise FileNotFoundError(f"Directory {target.parent} does not exist; create it first.")
    temporary = [path.with_name(f".{uuid4().hex}.tmp") for path in targets]
    try:
        with naming_full_disk(*targets), ExitStack() as stack:
            files: list[BinaryIO] = [stack.enter_context(open(path, "xb")) for path in temporary]
            yield files
            for file in files:
                file.flush()
                os.fsync(file.fileno())
        for path, target in zip(temporary, targets, strict=True):
            os.replace(path, target)
    except BaseException:  # Ctrl-C too
        for path in temporary:
            path.unlink(missing_ok=True)
        raise


def write_text(path: PathLike, text: str) -> None:
    """Write text in UTF-8, whatever the locale, to a file that appears whole or not at all."""
    with replacing(path) as (file,):
        file.write(text.encode())


def create(path: Path, content: bytes) -> bool:
    """Write a new file, whole; return False if the file exists by now, for instance from another process."""
    if path.exists():
        return False
    temporary = path.with_name(f".{uuid4().hex}.tmp")
    try:
        with naming_full_disk(path):
            temporary.write_bytes(content)
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        except OSError:  # a file system without links
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return True


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file of JSON lines, without lines that a kill cut off; none if it does not exist."""
    found = []
    for line in path.read_text("utf-8", errors="replace").splitlines() if path.exists() else []:
        try:
            record = json.loads(line)
        except (json.JSONDecodeError, RecursionError):
            continue
        if isinstance(record, dict):
            found.append(record)
    return found


def append_line(path: Path, record: dict[str, Any]) -> None:
    """Append a record on a new line, also after a line that was cut off."""
    with naming_full_disk(path), path.open("ab") as file:
        file.write(f"\n{json.dumps(record)}".encode())


def sealed(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with its checksum, from which `is_intact` detects changes."""
    return {**record, "checksum": _checksum(record)}


def is_intact(record: dict[str, Any]) -> bool:
    """Return whether a record is unchanged since `sealed` made it."""
    return record.get("checksum") == _checksum({key: value for key, value in record.items() if key != "checksum"})


def _checksum(record: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:32]
