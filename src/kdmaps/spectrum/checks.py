"""Checks of modes: a number and its limit each, for warnings and for tables."""

from __future__ import annotations

from dataclasses import dataclass

from kdmaps.exceptions import UnreliableModesWarning

#: Folds whose mode spaces have a mean squared cosine below this disagree.
MIN_AGREEMENT = 0.8


@dataclass(frozen=True)
class Check:
    """A number that measures the reliability of modes, and its limit."""

    what: str  #: Name of the number.
    value: str  #: The formatted number.
    limit: str  #: Its limit, such as "at most 0.5".
    warning: UnreliableModesWarning | None  #: The problem and its remedy; None if the number is within its limit.
    estimate: bool = False  #: True for an estimate that cross-validation replaces by a measurement.

    @property
    def passed(self) -> bool:
        """True if the number is within its limit."""
        return self.warning is None


def or_fewer(before: int) -> str:
    """Return the remedy "fewer modes" if `before`, the number of modes before the first that fails, is positive."""
    return f" or fewer n_components (at most {before})" if before > 0 else ""


def agreement_check(agreement: float, suggested: int | None = None) -> Check:
    """Check whether the modes of different folds span the same space; `suggested` modes agree better."""
    better = "" if suggested is None else f" (suggested: {suggested})"
    warning = UnreliableModesWarning(
        f"The folds disagree on the mode space (mean squared cosine {agreement:.2f}): use more samples or another "
        f"n_components{better}."
    )
    what, limit = "agreement of the folds on the modes, mean squared cosine", f"at least {MIN_AGREEMENT:g}"
    return Check(what, f"{agreement:.3f}", limit, None if agreement >= MIN_AGREEMENT else warning)
