"""Run commands in tests, with the fit that most tests use."""

import re

from typer.testing import CliRunner

import kdmaps
from kdmaps.cli import app

#: Options of `kdmaps fit` that give everything, so that nothing is searched.
GIVEN = ("--modes", 2, "--features", 40, "--kernel", "gaussian", "--bandwidth", 3, "--lambda", 0.001)

#: Commands with `--force`.
WRITING = ("fit", "transform", "states", "committor", "export", "forecast")


def run(*arguments, force=True):
    """Run `kdmaps` in this process, on a terminal so wide that rich neither wraps nor shortens anything.

    By default commands replace earlier results, and a fit prints all details.
    """
    more = ("--force",) if force and arguments[0] in WRITING else ()
    more += ("--details",) if force and arguments[0] == "fit" else ()
    words = [str(a) for a in (*arguments, *more)]
    result = CliRunner().invoke(app, words, env={"COLUMNS": "300", "NO_COLOR": "1"})
    assert "Traceback" not in result.output
    return result


def warned(text):
    """Return the codes of the warnings on a terminal or a page, in their order, from the links to their sections."""
    codes = re.findall(r"#warning-([\w-]+)\)", text)
    return list(dict.fromkeys(codes))


def given(**parameters):
    """Return the estimator that `kdmaps fit` makes of GIVEN."""
    settings = {"n_features": 40, "regularization": 0.001, "random_state": 0, **parameters}
    return kdmaps.KernelDiffusionMap(2, kernel="gaussian", bandwidth=3.0, **settings)
