"""The command `kdmaps`, also as `python -m kdmaps`."""

import sys
from importlib.util import find_spec

#: Packages of the extra `cli`; commands need all of them, because they draw and write reports.
NEEDED = ("typer", "rich", "matplotlib", "jinja2")


def main() -> None:
    """Run the command line, or print how to install missing packages."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        print(f"The command line needs {', '.join(missing)}: pip install 'kdmaps[cli]'", file=sys.stderr)
        raise SystemExit(2)
    from kdmaps.cli import app

    app(prog_name="kdmaps")


if __name__ == "__main__":
    main()
