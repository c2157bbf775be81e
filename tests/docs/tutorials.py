"""Run the code of the tutorials and store its figures in docs/images: `python tests/docs/tutorials.py`."""

import os
import re
import shutil
import tempfile
from pathlib import Path

import matplotlib

DOCS = Path(__file__).resolve().parents[2] / "docs"


def main():
    matplotlib.use("Agg")
    for page in sorted((DOCS / "tutorials").glob("*.md")):
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            names = {"__name__": page.stem}
            for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
                exec(compile(block, str(page), "exec"), names)
            for picture in Path(folder).glob("*.png"):
                shutil.copy(picture, DOCS / "images" / f"tutorial_{page.stem}_{picture.stem}.png")
            os.chdir(DOCS)


if __name__ == "__main__":
    main()
