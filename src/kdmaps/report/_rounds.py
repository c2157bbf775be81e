"""The page of a loop of simulation and fit: what every round found."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from kdmaps.estimators.model_files import library_versions
from kdmaps.plotting import plot_modes
from kdmaps.report._figures import svg
from kdmaps.report._write import template_of
from kdmaps.simulation import Loop
from kdmaps.utils.files import replacing
from kdmaps.utils.optional import optional
from kdmaps.utils.types import PathLike
from kdmaps.utils.warn import muted

#: Frames of a round that are drawn, and bins of where they lie along the guide.
SHOWN, BINS = 1500, 40


def write_rounds(loop: Loop, path: PathLike, **options: Any) -> None:
    """Write a self-contained HTML page about the finished rounds of a `kdmaps.simulation.Loop`.

    Parameters
    ----------
    loop : Loop
    path : path-like
        An existing file is replaced, by a whole one or not at all.
    **options
        As in `render_rounds`.
    """
    page = render_rounds(loop, **options)
    with replacing(path) as (file,):
        file.write(page.encode())


def render_rounds(loop: Loop, *, names: Sequence[str] | None = None, coordinates: Sequence[int] = (0, 1)) -> str:
    """Return the page that `write_rounds` writes.

    Parameters
    ----------
    loop : Loop
    names : sequence of str, optional
        Names of the columns of X.
    coordinates : sequence of one or two int, default=(0, 1)
        Columns of X over which frames are drawn.
    """
    from markupsafe import Markup

    optional("jinja2", "report", "Reports")
    optional("matplotlib", "report", "Reports")
    if not loop.rounds:
        raise ValueError("The loop has no finished round to show; call run() first.")
    numbers = range(len(loop.rounds))
    parts = [_some(loop.describe(loop.frames(number))) for number in numbers]
    places = _Places(parts, coordinates, names)
    return template_of("rounds.html").render(
        style=(files("kdmaps.report") / "page.css").read_text(encoding="utf-8"),
        versions=library_versions(),
        title="Rounds of simulation and fit",
        facts=_facts(loop),
        columns=_columns(loop),
        rows=[_row(loop, number) for number in numbers],
        history=Markup(svg(lambda axes: _draw_history(loop, axes[0]), "Rates and free energy by round", "history",
                           shape=(1, 2), size=(8.6, 2.9))),
        rounds=[
            {
                "number": number,
                "warnings": loop.rounds[number]["warnings"],
                "figure": Markup(_figure(loop, number, parts[number], places)),
            }
            for number in numbers
        ],
    )  # fmt: skip


def _some(X: np.ndarray) -> np.ndarray:
    return X[np.linspace(0, len(X) - 1, min(len(X), SHOWN)).astype(int)]


def _facts(loop: Loop) -> list[tuple[str, str]]:
    last = loop.rounds[-1]
    return [
        ("rounds", str(len(loop.rounds))),
        ("state", "settled" if loop.settled else "not settled"),
        ("frames that count", f"{last['n_frames']:,}"),
        ("effective frames", f"{last['n_effective']:,.0f}"),
        ("slowest rate", f"{last['rates'][0]:.4g}"),
        ("rarer side of mode 1", f"{last['free_energy'] / loop.kT:.3g} kT"),
    ]


def _columns(loop: Loop) -> list[str]:
    rates = [f"rate {k + 1}" for k in range(len(loop.rounds[-1]["rates"]))]
    return ["round", *rates, "free energy (kT)", "bias (kT)", "new region", "change of modes", "effective frames",
            "warnings", "settled"]  # fmt: skip


def _row(loop: Loop, number: int) -> list[str]:
    one = loop.rounds[number]
    return [
        str(number),
        *(f"{rate:.4g}" for rate in one["rates"]),
        f"{one['free_energy'] / loop.kT:.2f}",
        f"{one['height'] / loop.kT:.1f}",
        f"{one['outside']:.1%}",
        f"{one['modes']:.3f}",
        f"{one['n_effective']:,.0f} of {one['n_frames']:,}",
        str(len(one["warnings"])) if one["warnings"] else "–",
        "yes" if one["settled"] else "no",
    ]


def _draw_history(loop: Loop, axes: Sequence[Any]) -> None:
    """Draw the rates, and the free energy and the height of the bias, over the rounds."""
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


def _figure(loop: Loop, number: int, X: np.ndarray, places: _Places) -> str:
    """Draw the modes of a round at its frames, and the free energy along the mode that guides the next bias."""
    model, bias = loop.model(number), loop.bias(number + 1)
    assert bias is not None  # only the first round has none
    with muted():
        modes = model.transform(X)
    titles = [f"mode {k + 1}, rate {rate:.3g}" for k, rate in enumerate(model.rates_)]

    def draw(axes: np.ndarray) -> None:
        plot_modes(modes, X, coordinates=places.columns, axes=axes[0, :-1], titles=titles, point_size=3)
        for ax in axes[0, :-1]:
            places.label(ax)
            for points in ax.collections:
                points.set_rasterized(True)
        ax = axes[0, -1]
        energy = -bias.energies / (1 - 1 / loop.bias_factor) / loop.kT
        density, edges = np.histogram(bias.values(X), BINS, (bias.places[0], bias.places[-1]))
        ax.stairs(density / density.max() * max(1.0, 0.4 * np.ptp(energy)), edges, fill=True, color="#e6e6e6")
        ax.plot(bias.places, energy - energy.min(), color="tab:blue")
        ax.set(title="free energy", xlabel="guide of the next bias", ylabel="kT; frames (grey)")

    shape = 1, len(titles) + 1
    return svg(
        draw, f"Modes and free energy of round {number}", f"round{number}", shape=shape, size=(2.9 * shape[1], 2.7)
    )


class _Places:
    """The columns over which frames are drawn, with the same limits in all rounds."""

    def __init__(self, parts: Sequence[np.ndarray], columns: Sequence[int], names: Sequence[str] | None):
        self.columns = tuple(columns)[: parts[0].shape[1]]
        low, high = (f([f(part[:, self.columns], axis=0) for part in parts], axis=0) for f in (np.min, np.max))
        self.low, self.high = low - 0.05 * (high - low), high + 0.05 * (high - low)
        self.names = names

    def label(self, ax: Any) -> None:
        for axis, place in zip("xy", range(len(self.columns)), strict=False):
            ax.set(**{f"{axis}lim": (self.low[place], self.high[place])})
            if self.names is not None:
                ax.set(**{f"{axis}label": self.names[self.columns[place]]})
