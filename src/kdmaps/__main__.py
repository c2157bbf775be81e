"""`python -m kdmaps` is the command `kdmaps`."""

from kdmaps.cli import app

app(prog_name="kdmaps")
