"""`make demo` uses an existing installation."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_demo_does_not_change_an_installation(tmp_path):
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    command = tmp_path / ".venv" / "bin" / "kdmaps"
    command.parent.mkdir(parents=True)
    command.write_text("#!/bin/sh\necho ran $1\n")
    command.chmod(0o755)
    done = subprocess.run(["make", "demo"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "ran demo" in done.stdout
    assert "pip" not in done.stdout + done.stderr
    assert [path.name for path in (tmp_path / ".venv").rglob("*")] == ["bin", "kdmaps"]
