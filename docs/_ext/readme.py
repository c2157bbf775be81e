"""Write the tables of README.md and paper.md, from files under results/ and examples/: `python docs/_ext/readme.py`."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAPER = ROOT / "paper" / "paper.md"
BEGIN, END = "<!-- results: python docs/_ext/readme.py -->\n", "<!-- end of results -->\n"
PAPER_BEGIN, PAPER_END = "<!-- table: python docs/_ext/readme.py -->\n", "<!-- end of table -->\n"
#: Methods of results/paper/summary.csv that are shown, and the size of the samples.
METHODS, N_SAMPLES = ("CV+RFF", "kdmaps"), "500"


def read_table(path: Path) -> list[dict[str, str]]:
    """Return the rows of the first table of a Markdown file."""
    block = re.search(r"(^\|.*\n)+", path.read_text(), re.MULTILINE)
    assert block is not None, f"no table in {path}"
    lines = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in block[0].splitlines()]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[2:]]


def results() -> str:
    """Return the section of the README."""
    with (ROOT / "results" / "paper" / "summary.csv").open() as file:
        rows = {(row["problem"], row["method"]): row for row in csv.DictReader(file) if row["n_samples"] == N_SAMPLES}
    systems = dict.fromkeys(problem for problem, method in rows if method == "kdmaps")
    table = [f"| system | {' | '.join(METHODS)} |", "|---|" + "---:|" * len(METHODS)]
    for problem in systems:
        cells = [rows[problem, method] for method in METHODS]
        shown = [f"{float(row['r2_mean']):.3f}" for row in cells]
        table.append(f"| {problem} | {' | '.join(shown)} |")
    spheres = [
        row
        for row in read_table(ROOT / "results" / "sphere" / "table.md")
        if row["n"] == "10000" and row["energy"] == "tangent"
    ]
    sphere = ", ".join(f"{row['cross-fitted'].split(' ')[0]} for d={row['d']} ({row['published']})" for row in spheres)
    fits = json.loads((ROOT / "examples" / "alanine_dipeptide" / "results.json").read_text())["fits"]
    molecule = "; ".join(f"{_static(fit)} from {name}" for name, fit in fits.items())
    return "\n".join(
        [
            "SubR² is the fraction of the learned modes in the span of the exact slow modes (1 is best). The table has",
            f"means over seeds for {N_SAMPLES} samples (`results/paper`): the paper's method with its own protocol",
            "(CV+RFF), and the default `AdaptiveDiffusionMap` on the same samples. The systems are",
            "Ornstein–Uhlenbeck processes (`ou…`: linear drift, in 2 and 3 dimensions), double wells (`dw…`), a noisy",
            "circle, and a double well with additional fast coordinates (`mdlike-…`). The paper uses",
            "[a different reference](results/paper/findings.md), ordered by polynomial degree.",
            "",
            *table,
            "",
            "Spectra of spheres from 10,000 samples, with tangent energy and cross-fitted rates: relative errors, with",
            f"published values in parentheses: {sphere}.",
            "",
            *trajectory_table(),
            "",
            "Alanine dipeptide from static frames: correlation of eigenvectors 1 and 2 of a Markov state model with",
            "the nearest mode and, in parentheses, with the span of four modes:",
            f"{molecule}.",
            "In units of length²/D the two modes of heavy atoms have nearly the same time scale and mix;",
            "with a trajectory they are distinct.",
            "",
            "The spectra of spheres were computed with version 0.1.0.",
            "",
        ]
    )


def trajectory_table() -> list[str]:
    """Return the table of trajectory.md, without the settings of the other methods."""
    return [
        "Alanine dipeptide, 20,000 frames every 5 ps: |correlation| of modes 1 and 2 with the same modes of a Markov",
        "state model of seven times as many frames (in parentheses, of the nearest mode), and time scales. The time",
        "scales of that model are 227 ps (162–337) and 8.7 ps. [Settings of the other",
        "methods](examples/alanine_dipeptide/trajectory.md). Seconds were measured on a machine shared with other",
        "work, under different loads; do not compare them.",
        "",
        *trajectory_rows(),
    ]


def trajectory_rows() -> list[str]:
    """Return the lines of the table of trajectory.md."""
    path = ROOT / "examples" / "alanine_dipeptide" / "trajectory.md"
    return [line for line in path.read_text().splitlines() if line.startswith("|")]


def paper_table() -> str:
    """Return the table of paper.md: methods with time scales in ps; VAMP, which equals TICA here, is left out."""
    rows = [row for row in trajectory_rows() if "static" not in row and not row.startswith("| VAMP")]
    return "\n".join(["", *rows, "", ""])


def _static(fit: dict[str, Any]) -> str:
    """Return the correlations of a fit of static frames: of single modes, and of their span."""
    pairs = zip(fit["correlations"], fit["seeds"][0]["within_space"], strict=True)
    return " and ".join(f"{mode:.3f} ({span:.3f})" for mode, span in pairs)


def updated() -> str:
    """Return README.md with the updated section."""
    return _between(README.read_text(), BEGIN, END, results())


def updated_paper() -> str:
    """Return paper.md with the updated table."""
    return _between(PAPER.read_text(), PAPER_BEGIN, PAPER_END, paper_table())


def _between(text: str, begin: str, end: str, new: str) -> str:
    return text[: text.index(begin) + len(begin)] + new + text[text.index(end) :]


if __name__ == "__main__":
    README.write_text(updated())
    PAPER.write_text(updated_paper())
