"""The quick start runs with a built wheel, in an environment without the source tree."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from itertools import zip_longest
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Rounding on another machine changes the last digits; a wrong number differs by more.
TOLERANCE = 0.05


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The interpreter of a new environment with the wheel.

    The dependencies of kdmaps are not installed again: a .pth file points to the packages of this interpreter. They
    come after the packages of the environment, and .pth files among them (of an editable kdmaps, say) have no effect.
    """
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, text=True)
    (wheel,) = folder.glob("kdmaps-*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "env")], check=True)
    python = folder / "env" / "bin" / "python"
    install = [*pip, "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, capture_output=True, text=True)
    ask = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip())
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    copy_machine_code(packages / "kdmaps")
    return python


def copy_machine_code(package):
    """Copy machine code, which numba compiles in half a minute, to the same sources installed elsewhere.

    numba identifies sources by date and size, so sources with machine code get the same dates.
    """
    own = ROOT / "src" / "kdmaps"
    for code in own.rglob("__pycache__/*.nb[ic]"):
        source = code.parents[1] / f"{code.name.partition('.')[0]}.py"
        if not source.exists():  # a module that has moved
            continue
        target = package / source.relative_to(own)
        shutil.copystat(source, target)
        target.with_name("__pycache__").mkdir(exist_ok=True)
        shutil.copy(code, target.with_name("__pycache__"))


def tokens(text):
    return re.findall(r"-?\d+\.?\d*|\w+|\S", text)


def same(found, expected):
    """Whether words are equal, and numbers up to the tolerance (and one unit of the last digit)."""
    try:
        number, target = float(found), float(expected)
    except ValueError:
        return found == expected
    digits = len(expected.partition(".")[2])
    return abs(number - target) <= TOLERANCE * abs(target) + 1.001 * 10.0**-digits


def differences(found, expected):
    """Words and numbers that differ, as pairs."""
    pairs = zip_longest(tokens(found), tokens(expected), fillvalue="")
    return [(one, other) for one, other in pairs if not same(one, other)]


@pytest.mark.slow
def test_outputs_match_the_page(installed, tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    location = subprocess.run(
        [installed, "-c", "import kdmaps; print(kdmaps.__file__)"],
        cwd=tmp_path,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert Path(location.stdout.strip()).is_relative_to(installed.parents[1])  # the wheel, not the source tree
    session = [installed, ROOT / "tests" / "docs" / "session.py"]
    done = subprocess.run(session, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    outputs = json.loads(done.stdout)
    assert len(outputs) >= 6
    for line, output, expected in outputs:
        now = f"docs/quickstart.md, line {line}: the output is now\n{output}"
        assert not differences(output, expected), f"{now}\nIf intended: python tests/docs/session.py --update"


def test_comparison_of_words_and_numbers():
    assert same("2.47", "2.473")
    assert not same("2.2", "2.473")
    assert not same("Gaussian", "Laplacian")
    assert tokens("t = 2.5 ± 0.1") == ["t", "=", "2.5", "±", "0.1"]
