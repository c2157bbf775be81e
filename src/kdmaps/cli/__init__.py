"""The command line: one module for each command or two."""

# Each adds its commands to app.
from kdmaps.cli import _check, _compare, _demo, _export, _fit, _models, _states  # noqa: F401
from kdmaps.cli._app import app

__all__ = ["app"]
