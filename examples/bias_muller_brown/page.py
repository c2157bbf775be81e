"""HTML page of a loop of simulations and fits: rates, free energy, modes and warnings of every round."""

import base64
import io
import warnings
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from kdmaps.plotting import plot_modes
from kdmaps.utils.files import replacing

#: Number of frames drawn for each round, and number of bins along the guide.
SHOWN, BINS = 1500, 40

PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>Rounds of simulation and fit</title>
<style>
body {{ font: 15px sans-serif; max-width: 70em; margin: 2em auto; }}
td, th {{ padding: 0.2em 0.8em; text-align: right; }}
li {{ color: #a33; }}
img {{ max-width: 100%; }}
</style></head>
<body>
<h1>Rounds of simulation and fit</h1>
<p>{state} after {count} rounds.</p>
{history}
<table>
{table}
</table>
<p>Free energy of the rarer side of the slowest mode; height of the bias of the round; share of its frames outside the
samples of the previous guide; 1 − R² with the modes of the previous round.</p>
{rounds}
</body>
</html>
"""


def write_page(
    loop: Any, path: str | Path, names: Sequence[str] | None = None, coordinates: Sequence[int] = (0, 1)
) -> None:
    """Write a self-contained page about the finished rounds of a loop.

    Parameters
    ----------
    loop : Loop
    path : path
    names : sequence of str, optional
        Names of the columns of X.
    coordinates : sequence of one or two int, default=(0, 1)
        Columns of X over which frames are drawn.
    """
    if not loop.rounds:
        raise ValueError("The loop does not have a finished round; call run() first.")
    numbers = range(len(loop.rounds))
    parts = [_some(loop.describe(loop.frames(number))) for number in numbers]
    columns = tuple(coordinates)[: parts[0].shape[1]]
    labels = None if names is None else [names[j] for j in columns]
    low, high = (f([f(part[:, columns], axis=0) for part in parts], axis=0) for f in (np.min, np.max))
    limits = np.transpose([low - 0.05 * (high - low), high + 0.05 * (high - low)])
    rows = [_cells("th", _header(loop)), *(_cells("td", _row(loop, number)) for number in numbers)]
    page = PAGE.format(
        state="Settled" if loop.settled else "Not settled",
        count=len(loop.rounds),
        history=_history(loop),
        table="\n".join(rows),
        rounds="\n".join(_round(loop, number, parts[number], columns, labels, limits) for number in numbers),
    )
    with replacing(path) as (file,):
        file.write(page.encode())


def _some(X: np.ndarray) -> np.ndarray:
    return X[np.linspace(0, len(X) - 1, min(len(X), SHOWN)).astype(int)]


def _cells(tag: str, values: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{value}</{tag}>" for value in values) + "</tr>"


def _header(loop: Any) -> list[str]:
    rates = [f"rate {k + 1}" for k in range(len(loop.rounds[-1]["rates"]))]
    quantities = ["free energy (kT)", "bias (kT)", "outside", "change of modes", "effective frames", "settled"]
    return ["round", *rates, *quantities]


def _row(loop: Any, number: int) -> list[str]:
    one = loop.rounds[number]
    return [
        str(number),
        *(f"{rate:.4g}" for rate in one["rates"]),
        f"{one['free_energy'] / loop.kT:.2f}",
        f"{one['height'] / loop.kT:.1f}",
        f"{one['outside']:.1%}",
        f"{one['modes']:.3f}",
        f"{one['n_effective']:,.0f} of {one['n_frames']:,}",
        "yes" if one["settled"] else "no",
    ]


def _image(figure: Any, title: str) -> str:
    """Return a figure as an image inside the page."""
    buffer = io.BytesIO()
    figure.tight_layout()
    figure.savefig(buffer, format="png", dpi=90)
    plt.close(figure)
    return f'<img alt="{title}" src="data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}">'


def _history(loop: Any) -> str:
    """Draw the rates, the free energy and the height of the bias over the rounds."""
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 2.9))
    numbers = range(len(loop.rounds))
    for k, rates in enumerate(np.transpose([one["rates"] for one in loop.rounds])):
        axes[0].semilogy(numbers, rates, "o-", markersize=3, label=f"rate {k + 1}")
    for name, label in (("free_energy", "free energy"), ("height", "height of the bias")):
        axes[1].plot(numbers, [one[name] / loop.kT for one in loop.rounds], "o-", markersize=3, label=label)
    axes[0].set(xlabel="round", ylabel="rate")
    axes[1].set(xlabel="round", ylabel="kT")
    for ax in axes:
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.legend(frameon=False, fontsize=8)
    return _image(figure, "Rates and free energy by round")


def _round(
    loop: Any, number: int, X: np.ndarray, columns: tuple[int, ...], labels: Sequence[str] | None, limits: np.ndarray
) -> str:
    """Return the section of a round: warnings, modes at its frames, and free energy along the next guide."""
    model, bias = loop.model(number), loop.bias(number + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        modes = model.transform(X)
    titles = [f"mode {k + 1}, rate {rate:.3g}" for k, rate in enumerate(model.rates_)]
    figure, axes = plt.subplots(1, len(titles) + 1, figsize=(2.9 * (len(titles) + 1), 2.7), squeeze=False)
    plot_modes(modes, X, coordinates=columns, axes=axes[0, :-1], titles=titles, point_size=3)
    for ax in axes[0, :-1]:
        for axis, place in zip("xy", range(len(columns)), strict=False):
            ax.set(**{f"{axis}lim": limits[place]})
            if labels is not None:
                ax.set(**{f"{axis}label": labels[place]})
    ax = axes[0, -1]
    energy = -bias.energies / (1 - 1 / loop.bias_factor) / loop.kT
    density, edges = np.histogram(bias.values(X), BINS, (bias.places[0], bias.places[-1]))
    ax.stairs(density / density.max() * max(1.0, 0.4 * np.ptp(energy)), edges, fill=True, color="#e6e6e6")
    ax.plot(bias.places, energy - energy.min(), color="tab:blue")
    ax.set(title="free energy", xlabel="guide of the next bias", ylabel="kT; frames (grey)")
    image = _image(figure, f"Modes and free energy of round {number}")
    found = "".join(f"<li>{escape(warning)}</li>" for warning in loop.rounds[number]["warnings"])
    return f"<h2>Round {number}</h2>\n<ul>{found}</ul>\n{image}"
