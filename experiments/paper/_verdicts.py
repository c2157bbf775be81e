"""Is a printed number within sampling error, and is the conclusion from two of them the same?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

#: A difference is sampling error up to so many of its standard errors.
STANDARD_ERRORS = 2.0
#: Level of the test that takes the few seeds into account: with three, it allows up to 4.3 standard errors.
LEVEL = 0.05
#: Differences of SubR² below this one are none.
SMALL = 0.02
#: Numbers are printed with three digits.
ROUNDING = 0.0005
#: Ratios of errors are the same up to this factor.
SAME_RATIO = 1.5
#: Numbers that are printed with a standard deviation are means of three seeds.
SEEDS_WITH_DEVIATION = 3


@dataclass(frozen=True)
class Difference:
    """A difference, its standard error, and the degrees of freedom of the latter."""

    value: float
    error: float
    freedom: float = np.inf

    @property
    def within(self) -> bool:
        """True if it is sampling error."""
        return self.in_errors <= STANDARD_ERRORS

    @property
    def passes(self) -> bool:
        """True if Student's t distribution does not exclude it."""
        return self.in_errors <= float(stats.t.ppf(1 - LEVEL / 2, self.freedom))

    @property
    def sign(self) -> int:
        """-1, 0 or 1; 0 within sampling error, and for small differences."""
        return 0 if self.within or abs(self.value) < SMALL else int(np.sign(self.value))

    @property
    def in_errors(self) -> float:
        """The absolute value in standard errors."""
        return abs(self.value) / self.error


def difference(found: np.ndarray, mean: float, deviation: float | None, seeds: int) -> Difference:
    """Return the mean of `found` minus a printed number, with the spreads of both (Welch's test).

    A number without a standard deviation is a single draw, with the spread that is found here.
    """
    n = len(found)
    variance = float(np.var(found, ddof=1)) if n > 1 else 0.0
    if deviation is None:
        error = np.sqrt(variance * (1 + 1 / n) + ROUNDING**2)
        return Difference(float(np.mean(found) - mean), float(error), max(n - 1, 1))
    parts = np.array([variance / n, deviation**2 / seeds])
    total = float(parts.sum()) + ROUNDING**2
    freedom = total**2 / max(parts[0] ** 2 / max(n - 1, 1) + parts[1] ** 2 / (seeds - 1), 1e-30)
    return Difference(float(np.mean(found) - mean), float(np.sqrt(total)), float(freedom))


def conclusion(printed: float, found: Difference, printed_ratio: float, found_ratio: float) -> str:
    """Compare the printed and the found difference between a method and its baseline, and the ratios of errors."""
    sign = 0 if abs(printed) < SMALL else int(np.sign(printed))
    if sign == found.sign == 0:
        return "same: no difference"
    if sign == found.sign:
        close = 1 / SAME_RATIO <= found_ratio / printed_ratio <= SAME_RATIO
        return "same" if close else "same sign, other size"
    if found.sign == 0:
        return "no difference here"
    if sign == 0:
        return "a difference here"
    return "reversed"
