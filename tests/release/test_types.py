"""How much of the public interface a type checker knows: never less than before."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Share of the public names whose types are known. Most others are estimators: scikit-learn, their base, has no types.
KNOWN = 0.965


@pytest.mark.slow
def test_public_types_are_known():
    """To see what is not: `.venv/bin/basedpyright --verifytypes kdmaps --ignoreexternal`."""
    pytest.importorskip("basedpyright")
    command = [sys.executable, "-m", "basedpyright", "--verifytypes", "kdmaps", "--ignoreexternal", "--outputjson"]
    command += ["--pythonpath", sys.executable]
    paths = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    share = json.loads(done.stdout)["typeCompleteness"]["completenessScore"]
    assert share >= KNOWN, "annotate what is new and public"
    assert share < KNOWN + 0.01, "better than before: raise KNOWN"


def test_the_wheel_says_that_it_has_types():
    assert (ROOT / "src" / "kdmaps" / "py.typed").is_file()
