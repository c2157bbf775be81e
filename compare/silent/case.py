"""A case of the table: how it is run and what comes out."""

import re
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

import kdmaps
from kdmaps import problems

SMALL = {"families": ["gaussian"], "bandwidths": [1.0], "max_extensions": 0, "n_features": 40, "random_state": 0}
MARK = "⚠"
#: From best to worst: the number is correct; it is wrong and reported; it is wrong without a warning.
OUTCOMES = ("correct", "reported", "silent")


class Case(NamedTuple):
    """A function, a pattern of the warning or error that reports the problem, the file with its test, and variants."""

    run: Callable[..., tuple[str, bool]]
    message: str
    test: str
    variants: tuple[Any, ...]

    @property
    def what(self) -> str:
        """Return the docstring in one line."""
        return " ".join((self.run.__doc__ or "").split()).rstrip(".")


CASES: dict[int, Case] = {}


def case(number: int, message: str, test: str, variants: Iterable[Any] = ()) -> Callable:
    """Register a function as a case; called with each variant, it returns its result and whether this is correct."""

    def added(run: Callable[..., tuple[str, bool]]) -> Callable:
        CASES[number] = Case(run, message, test, tuple(variants))
        return run

    return added


def run_case(row: Case) -> dict[str, str]:
    """Return the results and messages of all variants of a case, and the outcome of the worst."""
    results, messages, outcomes = [], [], []
    for variant in [(v,) for v in row.variants] or [()]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result, correct = row.run(*variant)
            except ValueError as error:
                result, correct = "refused", False
                caught.append(warnings.WarningMessage(error, UserWarning, "", 0))
        found = [match[0] for w in caught if row.message and (match := re.search(row.message, str(w.message)))]
        messages += found[:1]
        outcomes.append("correct" if correct else "reported" if found else "silent")
        results.append(f"{result} {MARK}".strip() if found else result)
    quoted = " ".join(f"“{message}”" for message in dict.fromkeys(messages))
    return {"result": "; ".join(results), "message": quoted, "outcome": max(outcomes, key=OUTCOMES.index)}


def numbers(values: Iterable[float]) -> str:
    """Return numbers as text, with two digits."""
    return ", ".join(f"{value:.2g}" for value in values)


def close(value: float, exact: float, factor: float = 2.0) -> bool:
    """Return whether a rate is within a factor of the exact one."""
    return bool(exact / factor < value < exact * factor)


def dw() -> np.ndarray:
    """Return 600 samples of a double well, whose rates are 0.79 and 3.55."""
    return problems.load("dw1d").sample(600, random_state=0)


def intervals(model: Any, X: np.ndarray, n: int = 50, **more: Any) -> np.ndarray:
    """Return 95 % intervals of the rates."""
    return kdmaps.uncertainty.bootstrap(model, X, n_resamples=n, random_state=0, **more).rate_intervals
