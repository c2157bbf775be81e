"""The reference lists every public name, and the gallery shows every plot."""

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "kdmaps",
    "kdmaps.baselines",
    "kdmaps.certificates",
    "kdmaps.checks",
    "kdmaps.data",
    "kdmaps.dynamics",
    "kdmaps.kernels",
    "kdmaps.language",
    "kdmaps.learn",
    "kdmaps.plotting",
    "kdmaps.problems",
    "kdmaps.report",
    "kdmaps.scanpy",
    "kdmaps.simulation",
)
#: Packages whose functions and classes have an example in their docstrings.
SHOWN = (
    "kdmaps",
    "kdmaps.baselines",
    "kdmaps.dynamics",
    "kdmaps.kernels",
    "kdmaps.metrics",
    "kdmaps.simulation",
    "kdmaps.uncertainty",
)
#: Results of functions that have an example, and their parts.
RESULTS = {
    "ChapmanKolmogorov",
    "CoarseStates",
    "CoherentSets",
    "Committor",
    "ImpliedTimescales",
    "Kernel",
    "Koopman",
    "KoopmanTrust",
    "LagChoice",
    "LagComparison",
    "Metastability",
    "PassageTimes",
    "RateMatrix",
    "Uncertainty",
    "Validation",
    "kernel_from_dict",
}


@pytest.fixture
def listed(monkeypatch):
    """Full names in the tables of docs/api.rst."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    import mirror

    return mirror.reference_names(ROOT / "docs" / "api.rst")


def public(package):
    module = importlib.import_module(package)
    names = getattr(module, "__all__", None) or [
        name for name, value in vars(module).items() if getattr(value, "__module__", "") == package and name[0] != "_"
    ]
    return {f"{package}.{name}": getattr(module, name) for name in names}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_in_the_reference(package, listed):
    parts = (name.rpartition(".") for name in listed)
    objects = {id(getattr(importlib.import_module(module), name, None)) for module, _, name in parts}
    missing = [name for name, value in public(package).items() if callable(value) and id(value) not in objects]
    assert missing == []


def test_every_name_of_the_reference_exists(listed):
    for name in listed:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name


@pytest.mark.parametrize("package", SHOWN)
def test_public_objects_have_an_example(package):
    without = [
        name
        for name, value in public(package).items()
        if callable(value) and name.rpartition(".")[2] not in RESULTS and ">>> " not in (value.__doc__ or "")
    ]
    assert without == []


def test_every_plot_is_in_the_gallery():
    tree = ast.parse((ROOT / "examples" / "plot_pictures.py").read_text())
    called = {node.func.attr for node in ast.walk(tree) if isinstance(node, ast.Call) and hasattr(node.func, "attr")}
    assert set(importlib.import_module("kdmaps.plotting").__all__) <= called
