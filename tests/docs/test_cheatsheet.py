"""Calls of the cheat sheet exist, with their arguments, in Python and on the command line."""

import ast
import inspect
import re
import shlex
from functools import reduce
from pathlib import Path

import pytest
import typer

import kdmaps
from kdmaps.cli import app

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cheatsheet.md").read_text()
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")]
PYTHON = [code for row in ROWS for code in re.findall("`([^`]+)`", row[1])]
COMMANDS = [code for row in ROWS for code in re.findall("`(kdmaps [^`]+)`", row[2])]
MODELS = {"m": kdmaps.AdaptiveDiffusionMap, "c": kdmaps.AdaptiveCommittor, "k": kdmaps.dynamics.Koopman}


def find(node):
    """The object that an expression names, or None if it is not part of kdmaps."""
    names = ast.unparse(node).split(".")
    if names[0] in MODELS:
        return reduce(getattr, names[1:], MODELS[names[0]])
    if names[0] == "kdmaps":
        return reduce(getattr, names[1:], kdmaps)
    return getattr(kdmaps, names[0], None) or getattr(kdmaps.plotting, names[0], None)


@pytest.mark.parametrize("code", PYTHON)
def test_python_calls_exist(code):
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call):
            function = node.func
            if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Call):  # Estimator(…).fit(…)
                found = getattr(find(function.value.func), function.attr)
                arguments = [None, *node.args]
            else:
                found = find(function)
                method = isinstance(function, ast.Attribute) and ast.unparse(function.value) in MODELS
                arguments = [None] * method + node.args
            assert found is not None, code
            if not any(isinstance(argument, ast.Constant) and argument.value is ... for argument in arguments):
                inspect.signature(found).bind(*arguments, **{word.arg: None for word in node.keywords})


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_and_options_exist(command):
    _, name, *words = shlex.split(command)
    parameters = typer.main.get_command(app).commands[name].params
    known = {option for parameter in parameters for option in (*parameter.opts, *parameter.secondary_opts)}
    assert [word for word in words if word.startswith("--") and word not in known] == []


def test_the_page_is_read():
    assert len(PYTHON) > 30
    assert len(COMMANDS) > 20
