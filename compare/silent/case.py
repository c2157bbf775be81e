"""A row of the table: how it is run, heard and judged."""

import re
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

import kdmaps
from kdmaps import problems

SMALL = {"families": ["gaussian"], "bandwidths": [1.0], "max_extensions": 0, "n_features": 40, "random_state": 0}
MARK = "⚠"
#: From best to worst: the number is right; it is wrong, and this is said; it is wrong without a word.
VERDICTS = ("right", "said", "open")


class Case(NamedTuple):
    """What is done, the words that tell of it, the test of it, and the variants to run it with."""

    run: Callable[..., tuple[str, bool]]
    said: str
    test: str
    variants: tuple[Any, ...]

    @property
    def what(self) -> str:
        """Return the docstring in one line."""
        return " ".join((self.run.__doc__ or "").split()).rstrip(".")


CASES: dict[int, Case] = {}


def case(number: int, said: str, test: str, variants: Iterable[Any] = ()) -> Callable:
    """Make a function a row; it gets each variant, if any, and returns its number and whether this is right."""

    def added(run: Callable[..., tuple[str, bool]]) -> Callable:
        CASES[number] = Case(run, said, test, tuple(variants))
        return run

    return added


def judge(row: Case) -> dict[str, str]:
    """Return what all variants of a case gave and said, and the verdict on the worst: "right", "said" or "open"."""
    texts, words, verdicts = [], [], []
    for variant in [(v,) for v in row.variants] or [()]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                text, right = row.run(*variant)
            except ValueError as error:
                text, right = "refused", False
                caught.append(warnings.WarningMessage(error, UserWarning, "", 0))
        heard = [match[0] for w in caught if (match := re.search(row.said, str(w.message)))]
        words += heard[:1]
        verdicts.append("right" if right else "said" if heard else "open")
        texts.append(f"{text} {MARK}".strip() if heard else text)
    worst = max(verdicts, key=VERDICTS.index)
    gave, told = "; ".join(texts), " ".join(f"“{text}”" for text in dict.fromkeys(words))
    return {"gave": gave, "said": told, "verdict": worst}


def numbers(values: Iterable[float]) -> str:
    """Return numbers as text, with two digits."""
    return ", ".join(f"{value:.2g}" for value in values)


def close(value: float, exact: float, factor: float = 2.0) -> bool:
    """Tell whether a rate is within a factor of the exact one."""
    return bool(exact / factor < value < exact * factor)


def dw() -> np.ndarray:
    """Return 600 samples of a double well, whose rates are 0.79 and 3.55."""
    return problems.load("dw1d").sample(600, random_state=0)


def intervals(model: Any, X: np.ndarray, n: int = 50, **beside: Any) -> np.ndarray:
    """Return 95 % intervals of the rates."""
    return kdmaps.uncertainty.bootstrap(model, X, n_resamples=n, random_state=0, **beside).rate_intervals
