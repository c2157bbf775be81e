"""The command line. Commands import what is slow to import when they run, so that `--help` and errors come at once."""

# Each module adds its commands to app.
from kdmaps.cli import _check, _committor, _demo, _export, _fit, _models  # noqa: F401
from kdmaps.cli._app import Command, app

for _info in app.registered_commands:
    _info.cls = Command

__all__ = ["app"]
