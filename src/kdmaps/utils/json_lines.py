"""Files of JSON lines to which finished work is appended: what a kill cuts off is one line, which is left out."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from kdmaps.utils.files import naming_full_disk


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file; none if it does not exist, and without lines that were cut off."""
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
    """Append a record; a line that was cut off before it stays apart."""
    with naming_full_disk(path), path.open("ab") as file:
        file.write(f"\n{json.dumps(record)}".encode())


def sealed(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with its checksum, by which `is_intact` notices a digit that was changed."""
    return {**record, "checksum": _checksum(record)}


def is_intact(record: dict[str, Any]) -> bool:
    """Return whether a record is as `sealed` made it."""
    return record.get("checksum") == _checksum({key: value for key, value in record.items() if key != "checksum"})


def _checksum(record: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:32]
