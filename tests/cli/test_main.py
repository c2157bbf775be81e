"""`python -m kdmaps`, its imports, and messages for missing extras."""

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


def test_module_is_the_command(tmp_path):
    assert python("-m", "kdmaps", "--version").stdout == f"kdmaps {kdmaps.__version__}\n"
    failed = python("-m", "kdmaps", "inspect", str(tmp_path / "nothing.npz"))
    assert failed.returncode == 2
    assert "does not exist" in failed.stderr
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
def test_missing_packages(start, names):
    done = without(names, start)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == f"The command line needs {', '.join(names)}: pip install 'kdmaps[cli]'\n"


#: Makes imports of optional packages fail, and records them.
REFUSE = f"""
import sys
asked = set()
class Refuse:
    def find_spec(name, path, target=None):
        if name in {OPTIONAL!r}:
            asked.add(name)
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Refuse)
"""


def test_library_imports_nothing_optional():
    light = python("-c", "import sys, kdmaps; print(*sys.modules)").stdout.split()
    assert not {"numpy", "sklearn", "numba", *OPTIONAL} & set(light)
    everything = "import kdmaps; [getattr(kdmaps, name) for name in kdmaps.__all__]; import kdmaps.plotting"
    done = python("-c", f"{REFUSE}{everything}; print(*sys.modules); print(*asked)")
    assert done.returncode == 0
    imported, asked = (set(line.split()) for line in done.stdout.split("\n")[:2])
    assert {"kdmaps.plotting", "kdmaps.estimators.adaptive"} <= imported
    # scikit-learn imports rich if it is installed.
    assert asked <= {"rich"}


def test_missing_packages_of_figures_and_reports():
    script = """
import sys
import kdmaps
X = kdmaps.problems.load("ou2d-4").sample(100, random_state=0)
m = kdmaps.KernelDiffusionMap(1, n_features=20, random_state=0).fit(X)
def refused(name, call, *arguments):
    sys.modules[name] = None
    try:
        call(*arguments)
    except ImportError as error:
        print(error)
    del sys.modules[name]
refused("matplotlib", kdmaps.plotting.plot_modes, X, X)
refused("matplotlib", kdmaps.plotting.plot_timescales, m)
refused("matplotlib", kdmaps.report.render_report, m, X)
refused("jinja2", kdmaps.report.render_report, m, X)
"""
    done = python("-c", script)
    assert done.stdout.splitlines() == [
        "Figures need matplotlib, which is not installed: pip install 'kdmaps[plot]'.",
        "Figures need matplotlib, which is not installed: pip install 'kdmaps[plot]'.",
        "Reports need matplotlib, which is not installed: pip install 'kdmaps[report]'.",
        "Reports need jinja2, which is not installed: pip install 'kdmaps[report]'.",
    ], done.stderr
