"""Tests that need a missing package are skipped by `make check` and fail in `make test`."""

import re
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

import optional_packages

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())


def reviewed(outcome, longrepr="", error=None):
    report = SimpleNamespace(
        failed=outcome == "failed", skipped=outcome == "skipped", outcome=outcome, longrepr=longrepr
    )
    return optional_packages._review(report, error, "test.py").outcome


@pytest.fixture
def without_jax(monkeypatch):
    monkeypatch.setattr(optional_packages, "MISSING", {"jax"})


def import_error(name):
    """The error of kdmaps.utils.optional, which has the original error as its cause."""
    error = ImportError("kernels are learned with an optional package")
    error.__cause__ = ModuleNotFoundError(f"No module named {name!r}", name=name)
    return error


def test_missing_package_is_a_skip(without_jax, monkeypatch):
    monkeypatch.setattr(optional_packages, "REQUIRED", False)
    assert reviewed("failed", error=import_error("jax.numpy")) == "skipped"
    assert reviewed("failed", error=import_error("kdmaps.nothing")) == "failed"
    assert reviewed("failed", error=AssertionError()) == "failed"
    assert reviewed("skipped", "could not import 'jax'") == "skipped"


def test_missing_package_is_a_failure_where_all_are_required(without_jax, monkeypatch):
    monkeypatch.setattr(optional_packages, "REQUIRED", True)
    assert reviewed("failed", error=import_error("jax.numpy")) == "failed"
    assert reviewed("skipped", "Skipped: could not import 'jax': No module named 'jax'") == "failed"
    assert reviewed("skipped", "Skipped: could not import 'torch': No module named 'torch'") == "skipped"


def test_every_extra_is_in_the_list():
    extras = PROJECT["project"]["optional-dependencies"]
    names = {re.match(r"\w+", each)[0] for extra in extras.values() for each in extra}
    # The minimum has the extra cli; `make cells` has anndata, in an environment of its own.
    assert names - {"kdmaps", "matplotlib", "jinja2", "typer", "rich", "anndata"} <= set(optional_packages.OPTIONAL)
