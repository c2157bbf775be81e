"""Numbers and files do not depend on the locale, the time zone and the clock."""

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import kdmaps
from shared import GRID

ROOT = Path(__file__).resolve().parents[2]
#: Fits a file of decimal numbers, and writes all kinds of files; prints their digests.
PROGRAM = """
import hashlib, json, locale, os, sys, warnings
from pathlib import Path
import numpy as np
warnings.simplefilter("ignore")
try:
    locale.setlocale(locale.LC_ALL, "")
except locale.Error:
    pass
import kdmaps
from kdmaps.__main__ import main
from kdmaps.utils.files import write_text
sys.argv = ["kdmaps", "fit", "data.csv", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    assert not end.code
model = kdmaps.load("out/model.npz")
model.transform("data.csv", out="modes.npy")
write_text("table.md", "\\u03c3 = 0.5\\n")
print(locale.localeconv()["decimal_point"])
print(json.dumps({p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(Path().rglob("*.*"))}))
"""
#: 1 March 2026, UTC: the same date in all time zones, and a month whose name depends on the language.
MARCH = "1772366400"
OPTIONS = "--modes 2 --features 30 --kernel gaussian --bandwidth 3 --lambda 0.001 --resamples 20 --out out"


def files_in(folder, **environment):
    """The decimal point, and the digests of the files that PROGRAM writes with these environment variables."""
    samples = kdmaps.problems.load("ou2d-4").sample(80, random_state=0)
    lines = ["grün,x", *(",".join(map(repr, row)) for row in samples.tolist())]
    folder.mkdir()
    (folder / "data.csv").write_text("\n".join(lines), encoding="utf-8")
    keep = {key: value for key, value in os.environ.items() if not key.startswith(("LC_", "LANG", "PYTHONUTF8"))}
    paths = os.pathsep.join([str(ROOT / "src"), *sys.path])
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, *OPTIONS.split()],
        cwd=folder,
        env={**keep, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "SOURCE_DATE_EPOCH": MARCH, **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    assert result.returncode == 0, result.stderr
    *_, point, found = result.stdout.splitlines()
    return point, json.loads(found)


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    return files_in(tmp_path_factory.mktemp("usual") / "here", LC_ALL="C.UTF-8", TZ="UTC")


@pytest.mark.slow
def test_encoding_without_umlauts(usual, tmp_path):
    """Neither UTF-8 nor a locale that Python replaces by UTF-8, except for standard output."""
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONIOENCODING": "utf-8"}
    assert files_in(tmp_path / "here", **plain, TZ="Asia/Tokyo")[1] == usual[1]


@pytest.mark.slow
def test_decimal_comma_and_time_zone(usual, tmp_path):
    locales = tmp_path / "locales"
    locales.mkdir()
    made = ["localedef", "-i", "de_DE", "-f", "UTF-8", str(locales / "de_DE.UTF-8")]
    try:
        subprocess.run(made, capture_output=True, check=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("cannot make a German locale")
    point, found = files_in(tmp_path / "here", LOCPATH=str(locales), LC_ALL="de_DE.UTF-8", TZ="America/St_Johns")
    assert point == ","
    assert found == usual[1]


@pytest.mark.parametrize("clock", ["backwards", "jumps"])
def test_clock_changes(clock, X, tmp_path, monkeypatch):
    """Files and results do not depend on the time of day."""
    settings = {"n_components": 2, **GRID, "n_features": 30, "random_state": 0, "n_jobs": 1}
    digests = []
    for name in ("usual", "set"):
        with monkeypatch.context() as context:
            if name == "set":
                ticks = iter(range(10**6))
                step = -3600.0 if clock == "backwards" else 1e8
                context.setattr(time, "time", lambda ticks=ticks, step=step: 1.7e9 + step * next(ticks))
            search = kdmaps.KernelSearchCV(**settings, checkpoint=tmp_path / f"{name}.jsonl").fit(X)
            search.save(tmp_path / f"{name}.npz")
        digests.append(hashlib.sha256((tmp_path / f"{name}.npz").read_bytes()).hexdigest())
    assert digests[0] == digests[1]
    assert (search.cv_results_["mean_fit_time"] >= 0).all()
