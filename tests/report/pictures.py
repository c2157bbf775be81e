"""Writes the pictures of the report in the documentation: `python tests/report/pictures.py`. Needs Chromium."""

import io
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from chromium import Page, browser
from PIL import Image

import kdmaps

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
#: Width of the window in pixels, and columns that the picture is cut into.
WINDOWS = {"report_desktop": (1280, 1), "report_phone": (390, 3)}
#: Pixels. A page that is wider is shown smaller.
WIDEST = 900
KDMAPS = (sys.executable, "-m", "kdmaps")


def main():
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/samples.npy", kdmaps.problems.load("triplewell2d").sample(2000, random_state=0))
        subprocess.run([*KDMAPS, "fit", "samples.npy", "--modes", "2", "--out", "result"], cwd=folder, check=True)
        page = Page(browser(), f"{folder}/chromium")
        for name, (width, columns) in WINDOWS.items():
            page.open(Path(folder, "result", "report.html"), width)
            picture = in_columns(Image.open(io.BytesIO(page.picture())).convert("RGB"), columns)
            picture.thumbnail((WIDEST, picture.height), Image.Resampling.LANCZOS)
            # 256 colours, which is a third of the bytes; octrees keep the ends of colour bars, median cuts do not.
            picture.quantize(256, Image.Quantize.FASTOCTREE).save(IMAGES / f"{name}.png", optimize=True)
        page.close()


def in_columns(picture, n, space=16):
    """A tall picture cut into pieces, side by side."""
    width, height = picture.width, -(-picture.height // n)
    sheet = Image.new("RGB", (n * (width + space) - space, height), "white")
    for k in range(n):
        sheet.paste(
            picture.crop((0, k * height, width, min((k + 1) * height, picture.height))), (k * (width + space), 0)
        )
    return sheet


if __name__ == "__main__":
    main()
