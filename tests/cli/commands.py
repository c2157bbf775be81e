"""Running the command line within the tests."""

from typer.testing import CliRunner

from kdmaps.cli import app


def run(*arguments):
    # Wide enough that rich neither wraps nor shortens anything.
    result = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "300", "NO_COLOR": "1"})
    assert "Traceback" not in result.output
    return result
