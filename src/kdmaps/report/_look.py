"""The first thing that a page shows: what the modes look like over coordinates that the reader knows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from kdmaps.data import ArraySource
from kdmaps.dynamics import coarse_states, suggest_states
from kdmaps.report._figures import svg
from kdmaps.report.text import state_sentences, state_table
from kdmaps.utils.frames import column_names
from kdmaps.utils.warn import muted

#: Samples of the figures, taken at random; of the states, at equal distances.
DRAWN_SAMPLES, STATE_SAMPLES = 5_000, 10_000
#: Modes that are drawn side by side.
DRAWN_MODES = 4
#: Inches of the figure of one mode.
LOOK_SIZE = (4.2, 3.2)
#: Typical rows of each state.
TYPICAL = 3


def checked_draw(draw: Any, n_samples: int) -> dict[str, np.ndarray]:
    """Return columns to draw over, by name."""
    if draw is None:
        return {}
    names = column_names(draw)
    if names is not None or isinstance(draw, Mapping):
        columns = {str(name): np.asarray(draw[name]) for name in (draw if names is None else names)}
    else:
        values = np.asarray(draw)
        values = values[:, None] if values.ndim == 1 else values
        columns = {f"drawn {j + 1}": column for j, column in enumerate(values.T)}
    for name, column in columns.items():
        if column.shape != (n_samples,) or column.dtype.kind not in "fiub":
            raise ValueError(f"draw: column {name} must hold one number for each of the {n_samples} samples.")
    return columns


def coordinates_of(model: Any, X: np.ndarray, names: list[str], drawn: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the coordinates that modes are drawn over: one or two of those given, else the most relevant inputs."""
    if drawn:
        return dict([*drawn.items()][:2])
    known = getattr(model, "relevance_", None)
    order = np.arange(len(names)) if known is None else np.argsort(-np.asarray(known), kind="stable")
    return {names[j]: X[:, j] for j in sorted(order[:2])}


def look_of(model: Any, X: np.ndarray, coordinates: dict[str, np.ndarray], titles: list[str]) -> dict[str, Any]:
    """Draw every mode over the coordinates."""
    from markupsafe import Markup

    from kdmaps import plotting

    rows = np.arange(len(X))
    if len(X) > DRAWN_SAMPLES:
        rows = np.sort(np.random.default_rng(0).choice(len(X), DRAWN_SAMPLES, replace=False))
    values, (names, points) = _modes(model, X[rows]), (list(coordinates), _columns(coordinates, rows))
    r = min(values.shape[1], DRAWN_MODES)

    def draw(ax: Any, k: int) -> None:
        plotting.plot_modes(values[:, [k]], points, axes=[ax], titles=titles[k : k + 1])
        _label(ax, names)

    figures = [
        Markup(svg(partial(draw, k=k), f"Mode {k + 1} over {' and '.join(names)}", f"look{k}", size=LOOK_SIZE))
        for k in range(r)
    ]
    return {"figures": figures, "coordinates": " and ".join(names), "modes": values.shape[1]}


def _label(ax: Any, names: list[str]) -> None:
    """Name the axes; points become an image: there are thousands."""
    ax.set_xlabel(names[0])
    if len(names) > 1:
        ax.set_ylabel(names[1])
    for part in (*ax.collections, *ax.lines[1:]):
        part.set_rasterized(True)


def states_of(model: Any, X: np.ndarray, coordinates: dict[str, np.ndarray], weight: Any) -> dict[str, Any]:
    """Return coarse states in words, a table with typical rows, and a figure; empty where there are none."""
    from markupsafe import Markup

    from kdmaps import plotting

    if getattr(model, "right_modes_", None) is not None:  # the direction of time matters: no states in equilibrium
        return {}
    rows = np.arange(0, len(X), -(-len(X) // STATE_SAMPLES))
    try:
        weights = None if weight is None else np.asarray(weight)[rows]
        found = coarse_states(_modes(model, X[rows]), suggest_states(model), sample_weight=weights)
    except ValueError:  # modes that are constant on the samples
        return {}
    typical = found.representatives(np.asarray(X[rows]), TYPICAL)
    typical = np.where(typical < 0, -1, rows[typical])
    titles, table = state_table(found, typical)
    for k, row in enumerate(table):
        row += [f"{values[typical[k, 0]]:.4g}" for values in coordinates.values()]
    points, names = _columns(coordinates, rows), list(coordinates)

    def draw(ax: Any) -> None:
        plotting.plot_states(found, points, ax=ax)
        _label(ax, names)

    return {
        "columns": [*titles, *(f"{name} of the first" for name in names)],
        "rows": table,
        "words": state_sentences(found, model.rates_),
        "figure": Markup(svg(draw, f"Samples of every state over {' and '.join(names)}", "states")),
    }


def _modes(model: Any, X: np.ndarray) -> np.ndarray:
    with muted():  # samples of the fit
        return np.asarray(model.transform(ArraySource(np.asarray(X))))


def _columns(coordinates: dict[str, np.ndarray], rows: np.ndarray) -> np.ndarray:
    return np.column_stack([values[rows] for values in coordinates.values()])
