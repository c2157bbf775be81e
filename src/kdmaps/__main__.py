"""The command `kdmaps`, also as `python -m kdmaps`."""

import sys
from importlib.util import find_spec

#: What the extra `cli` installs; commands draw and write reports, so they need all of it.
NEEDED = ("typer", "rich", "matplotlib", "jinja2")


def main() -> None:
    """Run the command line, or say how to install what it needs."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        print(f"The command line needs {', '.join(missing)}: pip install 'kdmaps[cli]'", file=sys.stderr)
        raise SystemExit(2)
    from kdmaps.cli import app

    app(prog_name="kdmaps")


if __name__ == "__main__":
    main()
