"""What a page says of a model with a lag: whether the lag is long enough, and the modes along the trajectory."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from kdmaps.data.correlation import trajectories_of
from kdmaps.data.sources import ArraySource
from kdmaps.dynamics import Validation, validate
from kdmaps.report._energy import energy_figure, energy_rows
from kdmaps.report._figures import SIZE, svg
from kdmaps.report.text import implied_table, lag_sentences
from kdmaps.summary import FitSummary
from kdmaps.utils.warn import muted

#: Frames of the series at most, in a row.
SERIES_FRAMES = 20_000
#: Modes whose series are drawn.
SERIES_MODES = 4


def lag_tests(model: Any, X: np.ndarray, groups: Any, weight: Any) -> Validation | None:
    """Return the tests of a model's lag, where there are any."""
    with suppress(ValueError), muted():  # no lag, a direction of time, too few frames; the page tells what fails
        return validate(model, ArraySource(X), groups=groups, sample_weight=weight)
    return None


def dynamics_of(
    model: Any, summary: FitSummary, X: np.ndarray, groups: Any, weight: Any, tests: Validation | None
) -> dict[str, Any]:
    """Return words, a table and figures of a model with a lag; an empty dict for a model of samples."""
    from markupsafe import Markup

    if summary.lag is None:
        return {}
    unit = summary.unit
    rows, some = _series_rows(groups, len(X)), energy_rows(len(X))
    with muted():  # frames of the fit
        series, values = (np.asarray(model.transform(ArraySource(np.asarray(X[part])))) for part in (rows, some))
    weight = None if weight is None else np.asarray(weight)[some]
    figures = {
        **({} if tests is None else _tests(tests, unit)),
        **_choice(summary),
        "series": _series(model, series, unit),
        "energy": energy_figure(values, weight),
    }
    titles, table = ([], []) if tests is None else implied_table(tests, unit)
    return {
        "reasons": lag_sentences(summary, tests),
        "columns": titles,
        "rows": table,
        "figures": {name: Markup(text) for name, text in figures.items()},
        "frames": len(rows),
        "all": len(rows) == len(X),
    }


def _series_rows(groups: Any, n: int) -> np.ndarray:
    """Return the beginning of the longest trajectory."""
    return max(trajectories_of(groups, n), key=len)[:SERIES_FRAMES]


def _labelled(what: str, unit: str | None) -> str:
    return what if unit is None else f"{what} ({unit})"


def _tests(tests: Validation, unit: str | None) -> dict[str, str]:
    """Draw implied time scales and the Chapman–Kolmogorov test."""
    from kdmaps import plotting

    found = {
        "implied": svg(
            partial(_implied, tests.implied, unit), "Implied time scales over the lag, with intervals", "implied"
        )
    }
    test = tests.chapman
    if test is None:
        return found
    r = test.predicted.shape[1]
    columns = min(r, 2)
    n_rows = -(-r // columns)

    def draw(axes: np.ndarray) -> None:
        for ax in axes.flat[r:]:
            ax.remove()
        plotting.plot_chapman_kolmogorov(test, axes.flat[:r])
        for ax in axes.flat[:r]:
            ax.set_xlabel("")
        for ax in axes.flat[max(r - columns, 0) : r]:
            ax.set_xlabel(_labelled("time", unit))
        for ax in axes[:, 1:].flat[: r // 2]:
            ax.set_ylabel("")

    text = "Chapman–Kolmogorov test: predicted and estimated autocorrelation of every mode"
    height = SIZE[1] if n_rows == 1 else 1.75 * n_rows + 0.4
    found["chapman"] = svg(draw, text, "chapman", shape=(n_rows, columns), size=(SIZE[0], height))
    return found


def _implied(result: Any, unit: str | None, ax: Any) -> None:
    from kdmaps import plotting

    plotting.plot_implied_timescales(result, ax=ax)
    ax.set(xlabel=_labelled("lag", unit), ylabel=_labelled("time scale", unit))


def _choice(summary: FitSummary) -> dict[str, str]:
    """Draw what decided about the lag, if it was to be chosen."""
    if summary.lag_choice is None:
        return {}
    text = "Implied time scales of a cheap model over the lag, which decided about the lag"
    return {"choice": svg(partial(_implied, summary.lag_choice, summary.unit), text, "choice")}


def _series(model: Any, series: np.ndarray, unit: str | None) -> str:
    """Draw the slowest modes against time, the lines as an image: they have thousands of points."""
    from kdmaps import plotting

    r = min(series.shape[1], SERIES_MODES)

    def draw(axes: np.ndarray) -> None:
        plotting.plot_modes_in_time(series[:, :r], time_step=model.modes_.clock.time_step, axes=axes[:, 0])
        for ax in axes[:, 0]:
            ax.lines[0].set_rasterized(True)
        for ax in axes[:-1, 0]:
            ax.tick_params(labelbottom=False)
        axes[-1, 0].set_xlabel(_labelled("time", unit))

    return svg(draw, "Modes against time", "series", shape=(r, 1), size=(SIZE[0], 0.5 + 1.1 * r))
