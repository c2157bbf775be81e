"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO
from uuid import uuid4

from kdmaps.utils.types import PathLike

#: Numbers of the errors of a disk, a quota or a limit that has no room.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def as_path(name: str, path: Any) -> Path:
    """`path` as a Path; `name` is the argument that holds it."""
    try:
        return Path(path)
    except TypeError:
        raise ValueError(f"{name} must be the name of a file, got {path!r}.") from None


def check_writable(option: str, directory: Path) -> None:
    """Raise unless files can be made in `directory`, or in what it would be; nothing is left behind."""
    missing = [place for place in (directory, *directory.parents) if not place.exists()]
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise ValueError(
            f"{option}: no file can be written in {directory} ({error.strerror}); choose another place."
        ) from error
    finally:
        for place in missing:
            with suppress(OSError):  # never made, or no longer empty
                place.rmdir()


@contextmanager
def naming_full_disk(*paths: Path) -> Iterator[None]:
    """Name the files in the error of a disk, a quota or a limit that has no room for them, which names none."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        names = ", ".join(map(str, paths))
        raise OSError(
            error.errno, f"{error.strerror}: {names} could not be written. Make room, or choose another place"
        ) from error


@contextmanager
def replacing(*paths: PathLike) -> Iterator[list[BinaryIO]]:
    """Binary files to write, which get their names only when the block ends without an exception.

    Until then each has a temporary name in its directory, and what had its name before is untouched. None is renamed
    before all of them are safely on the disk: after a failure, none of them is new.
    """
    targets = [Path(path) for path in paths]
    for target in targets:
        if target.is_dir():
            raise IsADirectoryError(f"{target} is a directory; give the name of a file.")
        if not target.parent.is_dir():
            raise FileNotFoundError(f"There is no directory {target.parent}; create it first.")
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
    """Write a new file, whole; return False, and leave it, if there is one by now, such as that of another process."""
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
