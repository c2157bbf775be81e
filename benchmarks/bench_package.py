"""Size of wheel and installation, processor time of an import, share of public names with types.

Run `python -m benchmarks.bench_package` from the root of the repository, in an environment with the dependency group
`test`. The installation of `pip install kdmaps` is estimated from this environment: the packages that kdmaps requires,
directly or not, without its extras, and their bytecode, which pip compiles.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from importlib.metadata import distribution
from pathlib import Path
from statistics import median

from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement

from benchmarks._show import at_least, at_most, make_table, show

ROOT = Path(__file__).resolve().parents[1]
IMPORT_GOAL, INSTALL_GOAL, TYPES_GOAL = 0.2, 450, 95  # seconds, MB, %


def wheel_bytes() -> int:
    """Size of the wheel."""
    with tempfile.TemporaryDirectory() as folder:
        (wheel,) = WheelBuilder(str(ROOT)).build(directory=folder)
        return Path(wheel).stat().st_size


def installed_bytes() -> tuple[dict[str, int], int]:
    """Size of every package that kdmaps requires without extras, and of kdmaps itself; and of all bytecode in them."""
    found: dict[str, int] = {}
    bytecode = 0
    names = ["kdmaps"]
    while names:
        name = re.sub(r"[-_.]+", "-", names.pop().lower())
        if name in found:
            continue
        package = distribution(name)
        requirements = [Requirement(each) for each in package.requires or ()]
        names += [each.name for each in requirements if each.marker is None or each.marker.evaluate({"extra": ""})]
        files = (ROOT / "src" / "kdmaps").rglob("*") if name == "kdmaps" else map(package.locate_file, package.files)
        # Code that numba has compiled in the source tree does not belong to a package.
        paths = [path for file in files if (path := Path(file)).is_file() and path.suffix not in {".nbi", ".nbc"}]
        found[name] = sum(path.stat().st_size for path in paths)
        bytecode += sum(path.stat().st_size for path in paths if path.suffix == ".pyc")
    return found, bytecode


def import_seconds(statement: str, repeats: int) -> float:
    """Median processor time of a statement in fresh processes, once the files are in the cache of the system."""
    code = f"import time; t = time.process_time(); {statement}; print(time.process_time() - t)"
    run = [sys.executable, "-c", code]
    times = [float(subprocess.run(run, check=True, capture_output=True, text=True).stdout) for _ in range(1 + repeats)]
    return median(times[1:])


def known_types() -> float:
    """Share of the public names with complete types, in percent."""
    command = [sys.executable, "-m", "basedpyright", "--verifytypes", "kdmaps", "--ignoreexternal", "--outputjson"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}  # an editable installation lacks py.typed
    command += ["--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    return 100 * json.loads(done.stdout)["typeCompleteness"]["completenessScore"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats, nothing is written")
    arguments = parser.parse_args()
    repeats = 1 if arguments.quick else 3
    title = f"The package, Python {sys.version_info.major}.{sys.version_info.minor}, {sys.platform}"
    table = make_table(title, "what", "measured", "goal")
    table.add_row("wheel", f"{wheel_bytes() / 1e6:.2f} MB", "")
    sizes, bytecode = installed_bytes()
    total = sum(sizes.values()) / 1e6
    table.add_row(
        f"installation: kdmaps and {len(sizes) - 1} packages", f"{total:.0f} MB", at_most(total, INSTALL_GOAL)
    )
    for name in sorted(sizes, key=sizes.__getitem__, reverse=True)[:4]:
        table.add_row(f"    {name} {distribution(name).version}", f"{sizes[name] / 1e6:.0f} MB", "")
    table.add_row("    bytecode of all, compiled by pip", f"{bytecode / 1e6:.0f} MB", "")
    seconds = import_seconds("import kdmaps", repeats)
    table.add_row("import kdmaps", f"{seconds:.2f} s", at_most(seconds, IMPORT_GOAL))
    seconds = import_seconds("import kdmaps; kdmaps.AdaptiveDiffusionMap", repeats)
    table.add_row("    with its first estimator", f"{seconds:.2f} s", "")
    base = import_seconds("import sklearn.base", repeats)
    table.add_row("    scikit-learn's base classes alone", f"{base:.2f} s", "")
    share = known_types()
    table.add_row("public names with known types", f"{share:.1f} %", at_least(share, TYPES_GOAL, " %"))
    show(table, None if arguments.quick else "package")


if __name__ == "__main__":
    main()
