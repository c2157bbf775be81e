"""Shared code of the experiments on the default estimator: one fit with what it says of itself, and goals."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from experiments._runner import Row
from kdmaps.estimators.adaptive import AdaptiveDiffusionMap
from kdmaps.exceptions import UnreliableModesWarning


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
    """Return the sign of a goal that is met or missed, as docs/benchmarks.md collects it."""
    return "✓" if met else "✗"


def at_least(value: float, goal: float | None, form: str = ".3f") -> str:
    """Return a cell of a table: the value, and whether it reaches its goal, if it has one."""
    return format(value, form) if goal is None else f"{value:{form}} {mark(value >= goal)}"


def at_most(value: float, goal: float | None, form: str = ".3f") -> str:
    """Return a cell of a table: the value, and whether it keeps its limit, if it has one."""
    return format(value, form) if goal is None else f"{value:{form}} {mark(value <= goal)}"
