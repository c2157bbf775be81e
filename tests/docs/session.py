"""Run the commands and the Python code of docs/quickstart.md in order, in the current directory, with this interpreter.

Print a list of [line, output, output on the page] as JSON. `python tests/docs/session.py --update` writes the outputs
to the page.
"""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "quickstart.md"
BLOCK = re.compile(r"^```(sh|python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(kind, code, names):
    """Return the output of a block."""
    if kind == "sh":
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", "-ec", code], env={**os.environ, "PATH": path, "COLUMNS": "100"}, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"{code}\nfailed with code {done.returncode}:\n{done.stderr}")
        return done.stdout
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "quickstart", "exec"), names)
    return printed.getvalue()


def session(text):
    """Yield each output block with the output of the code before it; the first block, the installation, is skipped."""
    names, output = {"__name__": "quickstart"}, ""
    for match in list(BLOCK.finditer(text))[1:]:
        if match[1] == "text":
            yield match, "".join(f"{line.rstrip()}\n" for line in output.strip().splitlines())
        else:
            output = run(match[1], match[2], names)


def main():
    import matplotlib

    matplotlib.use("Agg")
    text = PAGE.read_text()
    if "--update" in sys.argv:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            for match, output in reversed(list(session(text))):
                text = text[: match.start(2)] + output + text[match.end(2) :]
        PAGE.write_text(text)
    else:
        found = [[text[: match.start()].count("\n") + 1, output, match[2]] for match, output in session(text)]
        print(json.dumps(found))


if __name__ == "__main__":
    main()
