"""Write the first section of docs/benchmarks.md, its figure, and the table of paper.md: `python docs/_ext/readme.py`.

All numbers come from files under results/ and examples/.
"""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "docs" / "benchmarks.md"
FIGURE = ROOT / "docs" / "images" / "benchmarks.png"
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


def accuracy() -> dict[str, list[float]]:
    """Return the mean SubR² of each method of the figure on the systems of the paper, with the true slow modes."""
    rows = summary()
    return {problem: [float(rows[problem, name]["r2_mean"]) for name in METHODS] for problem in systems(rows)}


def own_reference() -> list[float]:
    """Return the mean SubR² of the paper's method with the paper's reference, for each system."""
    rows = summary()
    return [float(rows[problem, METHODS[0]]["paper_r2_mean"]) for problem in systems(rows)]


def summary() -> dict[tuple[str, str], dict[str, str]]:
    """Return the lines of results/paper/summary.csv by problem and method."""
    with (ROOT / "results" / "paper" / "summary.csv").open() as file:
        return {(row["problem"], row["method"]): row for row in csv.DictReader(file) if row["n_samples"] == N_SAMPLES}


def systems(rows: dict[tuple[str, str], dict[str, str]]) -> list[str]:
    """Return the problems that the default was fitted to."""
    return list(dict.fromkeys(problem for problem, method in rows if method == "kdmaps"))


def dimensions() -> dict[str, dict[int, float]]:
    """Return the mean errors with 1,000 samples in several dimensions: of kdmaps, and of the best graph in each."""
    text = (ROOT / "results" / "dimension" / "table.md").read_text().partition("Mean error")[2]
    header, *lines = (line.strip("|").split("|") for line in re.findall(r"^\|.*(?:d=|→).*$", text, re.MULTILINE))
    columns = [int(cell.strip().removeprefix("d=")) for cell in header[1:]]
    rows = {line[0].strip(): [float(cell.rpartition("→")[2]) for cell in line[1:]] for line in lines}
    graphs = [row for name, row in rows.items() if not name.startswith("kdmaps")]
    best = [min(values) for values in zip(*graphs, strict=True)]
    return {
        "best graph": dict(zip(columns, best, strict=True)),
        "kdmaps": dict(zip(columns, rows["kdmaps, default"], strict=True)),
    }


def costs() -> dict[int, float]:
    """Return the seconds of processor time of a default fit in ten dimensions, for each number of samples."""
    rows = read_table(ROOT / "results" / "cost_default" / "table.md")
    sizes = [(*row["N × d"].split(" × "), row) for row in rows if row["options"] == "default"]
    found = {int(n.replace(",", "")): float(row["seconds"]) for n, d, row in sizes if d == "10"}
    return dict(sorted(found.items()))


def findings() -> list[str]:
    """Return the three findings of the figure."""
    paper, own = zip(*accuracy().values(), strict=True)
    printed = own_reference()
    errors, seconds = dimensions(), costs()
    low, high = min(errors["kdmaps"]), max(errors["kdmaps"])
    ratio = {d: errors["best graph"][d] / errors["kdmaps"][d] for d in (low, high)}
    sizes = list(seconds)
    return [
        "![Errors on the systems of the paper, errors over the dimension, and seconds over the number of "
        "samples](images/benchmarks.png){.wide}",
        "",
        f"- **Accurate.** With {N_SAMPLES} samples of each of the {len(own)} systems of the paper, SubR² (the "
        f"fraction of the "
        f"learned modes in the span of the exact slow modes, 1 is best) is {min(own):.3f} to {max(own):.3f}. With "
        f"the paper's "
        f"own protocol it is {min(paper):.3f} to {max(paper):.3f} with the same reference, and {min(printed):.3f} to "
        f"{max(printed):.3f} with the reference of the paper.",
        "- **In many dimensions.** With 1,000 samples, the error of the default is smaller than the error of the best "
        f"graph method by a factor of {ratio[low]:.1f} in {low} dimensions and {ratio[high]:.0f} in {high}. Each graph "
        "has the bandwidth that is best for the exact answer.",
        f"- **Fast.** Processor time of a default fit, selection included, grows from {seconds[sizes[0]]:.1f} "
        f"seconds for "
        f"{sizes[0]:,} samples in ten dimensions to {seconds[sizes[-1]]:.0f} seconds for {sizes[-1]:,}.",
        "",
    ]


def draw() -> None:
    """Draw the figure of the three findings."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(10, 3.3), layout="constrained", width_ratios=(1.25, 1, 1))
    scores = accuracy()
    rows = range(len(scores))
    colours = {"other": "tab:grey", "kdmaps": "tab:blue"}
    for k, (label, colour) in enumerate((("paper's protocol", colours["other"]), ("kdmaps", colours["kdmaps"]))):
        axes[0].plot([1 - values[k] for values in scores.values()], rows, "o", color=colour, label=label)
    for y, values in enumerate(scores.values()):
        axes[0].plot([1 - value for value in values], [y, y], color="lightgrey", zorder=0)
    axes[0].set(xscale="log", xlabel="error 1 - SubR²", title=f"systems of the paper, {N_SAMPLES} samples")
    axes[0].set_yticks(rows, scores)
    axes[0].set_ylim(len(scores) + 0.5, -0.7)  # space for the legend below
    for (label, errors), colour in zip(dimensions().items(), colours.values(), strict=True):
        axes[1].plot(list(errors), list(errors.values()), "o-", color=colour, label=label)
    axes[1].set(xscale="log", yscale="log", xlabel="dimension", ylabel="error 1 - SubR²", title="1,000 samples")
    axes[1].set_xticks(list(errors), errors)
    axes[1].minorticks_off()
    seconds = costs()
    axes[2].plot(list(seconds), list(seconds.values()), "o-", color=colours["kdmaps"])
    axes[2].set(
        xscale="log", xlabel="samples", ylabel="seconds of one core", title="default fit, 10 dimensions", ylim=0
    )
    axes[0].legend(fontsize="small", frameon=False, loc="lower center", ncols=2)
    axes[1].legend(fontsize="small", frameon=False)
    figure.savefig(FIGURE, dpi=110)


def results() -> str:
    """Return the first section of the page."""
    table = [f"| system | {' | '.join(METHODS)} |", "|---|" + "---:|" * len(METHODS)]
    table += [f"| {name} | {' | '.join(f'{value:.3f}' for value in values)} |" for name, values in accuracy().items()]
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
            *findings(),
            "## The systems of the paper",
            "",
            f"Mean SubR² over seeds for {N_SAMPLES} samples: the paper's method with its own protocol (CV+RFF), "
            f"and the "
            "default `AdaptiveDiffusionMap` on the same samples. The systems are Ornstein–Uhlenbeck processes (`ou…`: "
            "linear drift, in 2 and 3 dimensions), double wells (`dw…`), a noisy circle, and a double well with "
            "additional "
            "fast coordinates (`mdlike-…`). The paper uses [a different reference](generated/paper/findings.md), "
            "ordered by "
            "polynomial degree.",
            "",
            *table,
            "",
            "Spectra of spheres from 10,000 samples, with tangent energy and cross-fitted rates: relative errors, with "
            f"published values in parentheses: {sphere}.",
            "",
            "## Alanine dipeptide",
            "",
            *trajectory_table(),
            "",
            "From static frames: correlation of eigenvectors 1 and 2 of the Markov state model with the nearest "
            "mode and, "
            f"in parentheses, with the span of four modes: {molecule}. In units of length²/D the time scales of the "
            "two modes of heavy atoms differ by a factor of about two, and in one of five random states they mix; with "
            "a trajectory they are distinct.",
            "",
        ]
    )


def trajectory_table() -> list[str]:
    """Return the table of trajectory.md, without the settings of the other methods."""
    return [
        "20,000 frames every 5 ps: |correlation| of modes 1 and 2 with the same modes of a Markov state model of seven "
        "times as many frames (in parentheses, of the nearest mode), and time scales. The time scales of that "
        "model are "
        "227 ps (162–337) and 8.7 ps. "
        "[Settings of the other methods](generated/examples/alanine_dipeptide/trajectory.md). "
        "Seconds were measured on a machine shared with other work, under different loads; do not compare them.",
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
    """Return docs/benchmarks.md with the updated section."""
    return _between(BENCHMARKS.read_text(), BEGIN, END, results())


def updated_paper() -> str:
    """Return paper.md with the updated table."""
    return _between(PAPER.read_text(), PAPER_BEGIN, PAPER_END, paper_table())


def _between(text: str, begin: str, end: str, new: str) -> str:
    return text[: text.index(begin) + len(begin)] + new + text[text.index(end) :]


if __name__ == "__main__":
    BENCHMARKS.write_text(updated())
    draw()
    PAPER.write_text(updated_paper())
