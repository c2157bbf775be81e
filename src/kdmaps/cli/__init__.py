"""The command line: one module for each command or two."""

from kdmaps.cli import _bench, _check, _demo, _fit, _models, _reproduce  # noqa: F401 - each adds its commands to app
from kdmaps.cli._app import app

__all__ = ["app"]
