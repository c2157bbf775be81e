"""Run the commands and the Python code of a page in order, in the current directory, with this interpreter.

`python tests/docs/session.py [PAGE]` prints a list of [line, output, output on the page] as JSON, by default of
docs/quickstart.md. `python tests/docs/session.py --update [PAGE…]` writes the outputs to the pages (by
default, the quick start and the tutorials) and the figures of tutorials to docs/images.
"""

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "quickstart.md"
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
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
        exec(compile(code, "page", "exec"), names)
    return printed.getvalue()


def session(text, kinds=("sh", "python")):
    """Yield each block of code, its output block (None if there is none) and its output.

    An output block follows its code immediately. The first block of shell commands, the installation, is skipped.
    """
    blocks = list(BLOCK.finditer(text))
    names = {"__name__": "page"}
    install = next((block for block in blocks if block[1] == "sh"), None)
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        if block[1] not in kinds or block is install:
            continue
        shown = following if following and following[1] == "text" else None
        if shown and text[block.end() : shown.start()].strip():
            shown = None
        output = run(block[1], block[2], names).strip()
        yield block, shown, "".join(f"{line.rstrip()}\n" for line in output.splitlines())


def update(page):
    """Write the outputs, and the figures of a tutorial."""
    kinds = ("python",) if page in TUTORIALS else ("sh", "python")
    text = page.read_text()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("examples").symlink_to(ROOT / "examples")
        for block, shown, output in reversed(list(session(text, kinds))):
            if shown:
                text = text[: shown.start(2)] + output + text[shown.end(2) :]
            elif output and page in TUTORIALS:
                text = f"{text[: block.end()]}\n\n```text\n{output}```{text[block.end() :]}"
        for picture in Path(folder).glob("*.png") if page in TUTORIALS else ():
            shutil.copy(picture, ROOT / "docs" / "images" / f"tutorial_{page.stem}_{picture.stem}.png")
    page.write_text(text)


def main():
    import matplotlib

    matplotlib.use("Agg")
    pages = [Path(name).resolve() for name in sys.argv[1:] if name != "--update"]
    if "--update" in sys.argv:
        for page in pages or [PAGE, *TUTORIALS]:
            update(page)
    else:
        text = (pages or [PAGE])[0].read_text()
        found = [
            [text[: shown.start()].count("\n") + 1, output, shown[2]] for _, shown, output in session(text) if shown
        ]
        print(json.dumps(found))


if __name__ == "__main__":
    main()
