"""Fixtures shared by several test folders. Data and helper functions are in shared.py and commands.py."""

import os
import sys

import hypothesis
import pytest

import kdmaps
import optional_packages

# Programs of JAX run once or twice here: compiling them takes longer than running them ever will.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

# Figures are drawn without a screen.
os.environ["MPLBACKEND"] = "Agg"

# No deadline: a correct result must not fail on a busy machine.
hypothesis.settings.register_profile("unhurried", deadline=None)
hypothesis.settings.load_profile("unhurried")


#: Examples in docstrings, which cannot carry a mark, that take longer than half a second.
SLOW_EXAMPLES = {
    "kdmaps.dynamics._validation.chapman_kolmogorov",
    "kdmaps.dynamics._passage.committor",
    "kdmaps.dynamics._passage.rate_matrix",
    "kdmaps.dynamics._passage.mean_first_passage_times",
    "kdmaps.uncertainty.bootstrap",
    "kdmaps.estimators.adaptive.AdaptiveDiffusionMap",
    "kdmaps.estimators.committor.AdaptiveCommittor",
    "kdmaps.estimators.search.KernelSearchCV",
    "kdmaps.estimators.variational.VariationalKernelMap",
    "kdmaps.simulation.export.as_jax",
}


def pytest_configure(config):
    config.pluginmanager.register(optional_packages)  # examples in docstrings too


def pytest_collection_modifyitems(items):
    for item in items:
        if item.name in SLOW_EXAMPLES:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def X():
    """200 samples in two columns, read-only because they are shared. Modules that need others define their own X."""
    samples = kdmaps.problems.load("ou2d-4").sample(200, random_state=0)
    samples.flags.writeable = False
    return samples


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def undrawn(monkeypatch):
    """Leave figures of reports empty: laying them out takes most of the time of `kdmaps fit` with small samples.

    For tests of what a command computes, says and writes; tests/report looks at the figures.
    """
    from matplotlib.figure import Figure

    draw = Figure.savefig

    def savefig(self, target, *args, **options):
        if options.get("format") == "svg":
            target.write('<svg viewBox="0 0 1 1"></svg>')
        else:
            draw(self, target, *args, **options)

    monkeypatch.setattr(Figure, "savefig", savefig)
