"""`python -m kdmaps`, and what is said where an extra is not installed."""

import subprocess
import sys

import pytest

import kdmaps

pytestmark = pytest.mark.slow

OPTIONAL = ("matplotlib", "jinja2", "typer", "rich", "jax")


def python(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True)


def without(names, script):
    """Run a script where some packages cannot be imported."""
    return python("-c", f"import sys; sys.modules |= dict.fromkeys({names!r}); " + script)


def test_the_module_is_the_command(tmp_path):
    assert python("-m", "kdmaps", "--version").stdout == f"kdmaps {kdmaps.__version__}\n"
    failed = python("-m", "kdmaps", "inspect", str(tmp_path / "nothing.npz"))
    assert failed.returncode == 2
    assert "There is no model" in failed.stderr
    assert "Usage: kdmaps " in python("-m", "kdmaps", "fit", "--help").stdout  # not __main__.py


@pytest.mark.parametrize(
    ("start", "names"),
    [
        ("import runpy; runpy.run_module('kdmaps', run_name='__main__')", ("typer",)),
        ("from kdmaps.__main__ import main; main()", ("rich",)),  # as the console script does
        ("from kdmaps.__main__ import main; main()", ("matplotlib", "jinja2")),
    ],
    ids=["typer", "rich", "matplotlib and jinja2"],
)
def test_a_missing_package_is_one_line_that_names_the_extra(start, names):
    done = without(names, start)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == f"The command line needs {', '.join(names)}: pip install 'kdmaps[cli]'\n"


def test_the_library_imports_nothing_optional():
    light = python("-c", "import sys, kdmaps; print(*sys.modules)").stdout.split()
    assert not {"numpy", "sklearn", "numba", *OPTIONAL} & set(light)  # names are imported when they are used
    everything = "import sys, kdmaps; [getattr(kdmaps, name) for name in kdmaps.__all__]; import kdmaps.plotting"
    imported = python("-c", f"{everything}; print(*sys.modules)").stdout.split()
    assert {"kdmaps.plotting", "kdmaps.output.plotting", "kdmaps.estimators.adaptive"} <= set(imported)
    # scikit-learn itself imports rich where it is installed; kdmaps does without.
    assert not set(imported) & (set(OPTIONAL) - {"rich"})
    assert without(OPTIONAL, everything).returncode == 0


@pytest.mark.parametrize(
    ("names", "call", "message"),
    [
        (("matplotlib",), "kdmaps.plotting.plot_modes(X, X)", "Figures need matplotlib, which is not installed: "),
        (("matplotlib",), "kdmaps.plotting.plot_timescales(m)", "pip install 'kdmaps[plot]'"),
        (("matplotlib",), "kdmaps.report.render_report(m, X)", "pip install 'kdmaps[report]'"),
        (("jinja2",), "kdmaps.report.render_report(m, X)", "Reports need jinja2, which is not installed: "),
    ],
)
def test_pictures_and_reports_name_their_extra(names, call, message):
    data = "import kdmaps; X = kdmaps.problems.load('ou2d-4').sample(100, random_state=0)"
    fit = "m = kdmaps.KernelDiffusionMap(1, n_features=20, random_state=0).fit(X)"
    done = without(names, f"{data}; {fit}; {call}")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("ImportError: ")
    assert message in done.stderr.splitlines()[-1]
