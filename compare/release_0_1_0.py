"""Fits of version 0.1.0 at fixed settings, for tests/estimators/test_same_numbers.py to compare with, and its names.

`tests/release/test_migration.py` compares the names with the table of the changelog; `--names` writes them alone.

The source of that version comes from the history of this repository; run this script in a clone.
"""

import importlib
import inspect
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import warnings
from io import BytesIO
from pathlib import Path

COMMIT = "05c35dd"
ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "tests" / "references" / "release_0_1_0.json"
NAMES = OUT.with_name("names_0_1_0.json")
PROBLEMS = ("dw1d", "ou2d-4", "ou10d", "circle", "mdlike-20", "triplewell2d")
GRID = {"families": ["gaussian", "matern52"], "bandwidths": [2.0, 4.0, 8.0], "regularizations": [1e-3, 1e-2]}
#: Estimator and arguments of every fit.
FITS = {
    "fourier": ("KernelDiffusionMap", {}),
    "landmarks": ("KernelDiffusionMap", {"basis": "landmarks", "n_features": 60}),
    "search": ("KernelSearchCV", {**GRID, "max_extensions": 0}),
}


def extract(folder: str, commit: str = COMMIT) -> None:
    """Write the source of version 0.1.0, or of another commit, to folder/src, and its reference to folder/docs."""
    command = ["git", "archive", commit, "src", "docs/api.rst"]
    archive = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as members:
        members.extractall(folder, filter="data")


def fit(problem: str, name: str, random_state: int) -> tuple[object, list[float], list[list[float]]]:
    """Return the fitted estimator, its rates in ascending order and their modes at five samples."""
    import kdmaps

    X = kdmaps.problems.load(problem).sample(500, random_state=1)
    cls, arguments = FITS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = getattr(kdmaps, cls)(n_components=3, random_state=random_state, **arguments).fit(X)
    order = model.rates_.argsort(kind="stable")
    return model, model.rates_[order].tolist(), model.transform(X[:5])[:, order].tolist()


def described(value: object) -> dict[str, list[str]]:
    """Return the parameters of a function or class, and the public methods and properties that a class defines."""
    if isinstance(value, type) and issubclass(value, Warning):
        return {}
    parameters = list(inspect.signature(value).parameters) if callable(value) else []
    members = []
    if inspect.isclass(value):
        members = [n for base in value.__mro__ if base.__module__.startswith("kdmaps") for n in vars(base)]
    return {"parameters": parameters, "members": sorted({n for n in members if n[0] != "_" and n[-1] != "_"})}


def names(page: str) -> None:
    """Write all names of the reference, with their parameters and members."""
    sys.path.insert(0, str(ROOT / "docs" / "_ext"))
    from mirror import reference_names

    found = {}
    for name in sorted(reference_names(Path(page))):
        module, _, attribute = name.rpartition(".")
        found[name] = described(getattr(importlib.import_module(module), attribute))
    NAMES.write_text(json.dumps(found, indent=1) + "\n")


def main() -> None:
    """Write the fits; the seed that the old version drew for its frequencies and folds is stored with each."""
    found = {}
    for problem in PROBLEMS:
        for name in FITS:
            model, rates, modes = fit(problem, name, 0)
            seed = int(getattr(model, "best_estimator_", model).random_state)
            found[f"{problem}/{name}"] = {"seed": seed, "rates": rates, "modes": modes}
            print(problem, name, rates, flush=True)
    OUT.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    if "--inside" in sys.argv:
        names(sys.argv[2])
        if "--names" not in sys.argv:
            main()
    else:
        with tempfile.TemporaryDirectory() as folder:
            extract(folder)
            environment = {**os.environ, "PYTHONPATH": f"{folder}/src"}
            command = [sys.executable, __file__, "--inside", f"{folder}/docs/api.rst", *sys.argv[1:]]
            subprocess.run(command, env=environment, check=True)
