"""Shared code of the experiments: default fits, goals, Rayleigh–Ritz in the span of given functions, error plots."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy import linalg

from experiments._runner import Row
from kdmaps.estimators.adaptive import AdaptiveDiffusionMap
from kdmaps.exceptions import UnreliableModesWarning
from kdmaps.problems import Problem


def fit_default(
    X: np.ndarray,
    n_components: int,
    random_state: int,
    sample_weight: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    **settings: Any,
) -> tuple[AdaptiveDiffusionMap, Row]:
    """Fit the default estimator; return it and a row of its rates, choices, warnings and seconds."""
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = AdaptiveDiffusionMap(n_components, random_state=random_state, **settings)
        model.fit(X, sample_weight=sample_weight, groups=groups)
    seconds = time.perf_counter() - start
    doubts = [str(w.message) for w in caught if issubclass(w.category, UnreliableModesWarning)]
    return model, {
        "rates": np.sort(model.rates_).tolist(),
        "kernel": repr(model.kernel_),
        "basis": type(model.basis_).__name__,
        "regularization": float(model.best_estimator_.regularization),
        "warnings": list(dict.fromkeys(doubts)),
        "seconds": round(seconds, 3),
    }


def mark(met: bool | np.bool_) -> str:
    """Return the mark of a goal that is met or missed; docs/benchmarks.md lists the missed ones."""
    return "✓" if met else "✗"


def at_least(value: float, goal: float | None, form: str = ".3f") -> str:
    """Return a cell of a table: the value, and whether it reaches its goal, if any."""
    return format(value, form) if goal is None else f"{value:{form}} {mark(value >= goal)}"


def at_most(value: float, goal: float | None, form: str = ".3f") -> str:
    """Return a cell of a table: the value, and whether it keeps its limit, if any."""
    return format(value, form) if goal is None else f"{value:{form}} {mark(value <= goal)}"


def ritz(values: np.ndarray, gradients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rates, ascending, and combinations of the slowest functions in the span of these, by Rayleigh–Ritz.

    Values and gradients of the functions at samples have the shapes (n, r) and (n, r, d), rates and combinations (r,)
    and (r, r).
    """
    energy = np.einsum("nkd,nld->kl", gradients, gradients) / len(values)
    rates, combinations = linalg.eigh(energy, np.atleast_2d(np.cov(values, rowvar=False, bias=True)))
    return rates, combinations


def slowest(system: Problem, X: np.ndarray, count: int, step: float = 1e-4) -> np.ndarray:
    """Return the slowest functions on the samples in the span of the first exact eigenfunctions, at X; (n, r)."""
    values = system.eigenfunctions(X, count)
    shifts = step * np.eye(X.shape[1])
    slopes = [(system.eigenfunctions(X + e, count) - system.eigenfunctions(X - e, count)) / (2 * step) for e in shifts]
    return values @ ritz(values, np.stack(slopes, axis=2))[1][:, : system.n_modes]


def error_dots(
    series: Mapping[str, list[Row]],
    by: Sequence[str],
    title: str,
    colours: Mapping[str, str] | None = None,
    size: tuple[float, float] = (10, 4),
) -> Figure:
    """Plot the error 1 - SubR² of every row, one colour per series, one place per value of the keys `by`."""
    places = list(dict.fromkeys(tuple(row[key] for key in by) for rows in series.values() for row in rows))
    figure = Figure(figsize=size, layout="constrained")
    ax = figure.subplots()
    for number, (label, rows) in enumerate(series.items()):
        shift = 0.7 * ((number + 0.5) / len(series) - 0.5)
        at = [places.index(tuple(row[key] for key in by)) + shift for row in rows]
        style: dict[str, Any] = {
            "color": (colours or {}).get(label, f"C{number}"),
            "ms": 5,
            "alpha": 0.7,
            "mec": "none",
        }
        ax.plot(at, [1 - row["r2"] for row in rows], "o", label=label, **style)
    ax.set(yscale="log", ylabel="error 1 - SubR² (true slow modes)", title=title)
    ax.set_xticks(range(len(places)), [", ".join(map(str, place)) for place in places], rotation=30, ha="right")
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure
