"""A check: a rule, the number that was found, and what follows from both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from importlib import metadata
from typing import Any, overload

import numpy as np

from kdmaps.exceptions import CheckWarning, DataWarning, UnreliableModesWarning, UnresolvedModesWarning
from kdmaps.language import CLI, PYTHON, Language
from kdmaps.utils.numbers import rounded


class Side(Enum):
    """Which side of its limit a number must be on."""

    LEAST = "at least"
    MOST = "at most"
    INSIDE = "between"


class Outcome(Enum):
    """What follows from a number and its limit."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Severity(Enum):
    """How much a failed check matters."""

    NOTE = "note"  #: Worth knowing, but no mistake: it is shown, and never counted.
    WARNING = "warning"
    ERROR = "error"  #: The result has no meaning: the headline says so.


class Subject(Enum):
    """What a failed check warns of; the class of its warning."""

    DATA = "data"
    MODES = "modes"
    ESTIMATE = "estimate"  #: Of modes, by an estimate that folds replace by a measurement.


_CATEGORIES: dict[Subject, type[CheckWarning]] = {
    Subject.DATA: DataWarning,
    Subject.MODES: UnreliableModesWarning,
    Subject.ESTIMATE: UnresolvedModesWarning,
}


@dataclass(frozen=True)
class Rule:
    """What is checked, its limit, and what to say if a number is beyond it.

    Texts are templates (`kdmaps.language`). They may use the words of a check, and `value`, `limit`, and for numbers
    of modes `mode` (the worst), `modes` (all that fail), `s` (of a verb of one mode) and `by` (a factor).
    """

    code: str  #: Name of the check, and of its section in the documentation.
    what: str  #: Description of the number.
    message: str  #: What is wrong, and its consequence.
    remedy: str = ""  #: What to do in Python.
    option_remedy: str = ""  #: What to do on the command line, if not the same in other words.
    undecided: str = ""  #: What to say if the number is unknown; "" for nothing.
    undecided_remedy: str = ""
    side: Side = Side.MOST
    limit: float = 0.0
    least: float = -np.inf  #: The other end of a range.
    reason: str = ""  #: Why the limit is what it is.
    subject: Subject = Subject.MODES
    severity: Severity = Severity.WARNING
    form: str = ".3g"  #: How the number is written in tables.
    bound: str = ""  #: How the limit is written in tables; by default "at least 14".
    decided: float = np.inf  #: An interval that is not within this distance of 0 decides nothing.
    headline: str = ""  #: In the headline of a result without meaning.
    explains: frozenset[str] = frozenset()  #: Codes of checks that fail for the same cause.

    @property
    def name(self) -> str:
        """The code in words."""
        return self.code.replace("-", " ")

    @property
    def anchor(self) -> str:
        """The section of the page *Troubleshooting*."""
        return f"warning-{self.code}"


#: Every rule by its code; `kdmaps.checks.rules` fills it.
RULES: dict[str, Rule] = {}
#: Parts of messages that a check may need or not, by name.
PHRASES: dict[str, str] = {}


@dataclass(frozen=True)
class Phrase:
    """A part of a message, by its name in `PHRASES`."""

    name: str
    words: Mapping[str, Any] = field(default_factory=dict)

    def say(self, language: Language = PYTHON) -> str:
        """Return the text for the reader."""
        return language.render(PHRASES[self.name], self.words) if self.name else ""


@dataclass(frozen=True, eq=False)
class Check:
    """A number, or one for each mode, compared with the limit of a rule."""

    rule: Rule
    value: Any = np.nan  #: A number or an array; NaN if it is unknown.
    limit: Any = None  #: In place of the limit of the rule.
    where: tuple[Any, ...] = ()  #: Columns or rows.
    words: Mapping[str, Any] = field(default_factory=dict)  #: For the templates of the rule.
    interval: tuple[Any, Any] | None = None  #: Ends of the interval of the value; then it decides.

    @property
    def code(self) -> str:
        """Name of the check."""
        return self.rule.code

    @property
    def name(self) -> str:
        """The code in words."""
        return self.rule.name

    @property
    def bounds(self) -> tuple[Any, Any]:
        """Smallest and largest allowed value."""
        limit = self.rule.limit if self.limit is None else self.limit
        if self.rule.side is Side.INSIDE:
            return self.rule.least, limit
        return (limit, np.inf) if self.rule.side is Side.LEAST else (-np.inf, limit)

    @property
    def failed(self) -> np.ndarray:
        """True where the number is beyond its limit, one for each mode if there is one for each."""
        low, high = self.bounds
        first, last = (self.value, self.value) if self.interval is None else self.interval
        with np.errstate(invalid="ignore"):
            return np.asarray((np.asarray(last) < low) | (np.asarray(first) > high))

    @property
    def known(self) -> bool:
        """Whether the number, or its interval, decides."""
        if self.interval is None:
            return not np.isnan(self.value).all()
        return bool(np.all(np.abs(self.interval) < self.rule.decided))

    @property
    def outcome(self) -> Outcome:
        """Passed, failed or unknown."""
        if self.failed.any():
            return Outcome.FAILED
        return Outcome.PASSED if self.known else Outcome.UNKNOWN

    @property
    def passed(self) -> bool:
        """True if the number is within its limit."""
        return self.outcome is Outcome.PASSED

    @property
    def warns(self) -> bool:
        """Whether to warn: the check has failed, or its rule has words for an unknown outcome; never of a note."""
        outcome = self.outcome
        said = outcome is Outcome.FAILED or (outcome is Outcome.UNKNOWN and bool(self.rule.undecided))
        return said and self.rule.severity is not Severity.NOTE

    @property
    def worst(self) -> int:
        """Index of the number that is farthest beyond its limit, or nearest to it."""
        values, (low, high) = np.atleast_1d(np.asarray(self.value, dtype=float)).ravel(), self.bounds
        if self.interval is None:
            beyond = np.maximum(low - values, values - high)
        else:
            first, last = (np.atleast_1d(np.asarray(end, dtype=float)).ravel() for end in self.interval)
            beyond = np.maximum(low - last, first - high) if self.failed.any() else np.maximum(last, -first)
        return 0 if np.isnan(beyond).all() else int(np.nanargmax(beyond))

    @property
    def filled(self) -> dict[str, Any]:
        """Words of all templates."""
        values = np.atleast_1d(np.asarray(self.value, dtype=float)).ravel()
        value, failed = float(values[self.worst]), np.atleast_1d(self.failed).ravel()
        limit = self.rule.limit if self.limit is None else self.limit
        first = int(np.argmax(failed)) if failed.any() else 0
        found = {
            "value": value,
            "limit": limit,
            "mode": self.worst + 1,
            "modes": name_modes(failed),
            "numbers": ", ".join(str(k + 1) for k in np.flatnonzero(failed)),
            "s": "s" if failed.sum() == 1 else "",
            "where": list_items(self.where),
            "fewer": or_fewer(first),  # modes before the first that fails
        }
        if self.rule.side is Side.MOST and np.ndim(limit) == 0:
            # The factor between two rates is infinite if one of them is 0.
            of_limit = f"by a factor of {value:.2g} (limit {limit:g})"
            found["by"] = of_limit if value < np.inf else f"by more than {limit:g} times"
        return {**found, **self.words}

    def message(self, language: Language = PYTHON) -> str:
        """Return what is wrong, in the language of the reader; "" if nothing is."""
        templates = {Outcome.FAILED: self.rule.message, Outcome.UNKNOWN: self.rule.undecided, Outcome.PASSED: ""}
        return language.render(templates[self.outcome], self.filled)

    def remedy(self, language: Language = PYTHON) -> str:
        """Return what to do, in the language of the reader."""
        rule = self.rule
        remedy = (rule.option_remedy if language is CLI else "") or rule.remedy
        templates = {Outcome.FAILED: remedy, Outcome.UNKNOWN: rule.undecided_remedy, Outcome.PASSED: ""}
        return language.render(templates[self.outcome], self.filled)

    def say(self, language: Language = PYTHON) -> str:
        """Return the message and the remedy."""
        return f"{self.message(language)} {self.remedy(language)}".strip()

    def __str__(self) -> str:
        return self.say()

    def __repr__(self) -> str:
        return f"Check({self.code}: {self.shown}, {self.bound}; {self.outcome.value})"

    @property
    def what(self) -> str:
        """Description of the number, of the worst mode if there are several."""
        what = self.rule.what
        of_modes = bool(np.ndim(self.value)) and self.interval is None and "{mode}" not in what
        return PYTHON.render(f"{what}, mode {{mode}}" if of_modes else what, self.filled)

    @property
    def shown(self) -> str:
        """The number as text."""
        value = self.filled["value"]
        if np.isnan(value):
            return "unknown"
        if np.isinf(value):
            return "∞" if value > 0 else "−∞"
        return rounded(value, 3) if self.rule.form == ".3g" else format(value, self.rule.form)

    @property
    def bound(self) -> str:
        """The limit as text."""
        if self.rule.bound:
            return PYTHON.render(self.rule.bound, self.filled)
        if self.rule.side is Side.INSIDE:
            low, high = self.bounds
            return f"between {low:g} and {high:g}"
        limit = self.rule.limit if self.limit is None else self.limit
        if self.rule.side is Side.MOST and np.ndim(limit) == 0 and limit == 0:
            return "none"
        return f"{self.rule.side.value} {self.filled['limit']:g}"

    @property
    def judged(self) -> str:
        """Whether the number is too large or too small, in words; "" if it passes."""
        outcome = self.outcome
        if outcome is not Outcome.FAILED:
            return "" if outcome is Outcome.PASSED else "unknown"
        low, _ = self.bounds
        return "too small" if self.filled["value"] < low else "too large"

    @property
    def link(self) -> str:
        """The address of the section of the documentation."""
        return f"{_page()}#{self.rule.anchor}"

    @property
    def category(self) -> type[CheckWarning]:
        """The class of the warning."""
        return _CATEGORIES[self.rule.subject]

    def as_warning(self) -> CheckWarning:
        """Return the warning about a failed check."""
        return self.category(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, from which `from_dict` makes the same check."""
        plain = {"code": self.code, "value": _plain(self.value), "where": _plain(self.where)}
        plain |= {"words": {name: _plain(word) for name, word in self.words.items()}}
        optional = {"limit": self.limit, "interval": self.interval}
        return plain | {name: _plain(one) for name, one in optional.items() if one is not None}

    @staticmethod
    def from_dict(stored: Mapping[str, Any]) -> Check | None:
        """Return the check of plain data; None for a rule that this version does not have."""
        rule = RULES.get(stored["code"])
        if rule is None:
            return None
        words = {name: _restored(word) for name, word in stored.get("words", {}).items()}
        interval = stored.get("interval")
        return Check(
            rule,
            np.array(_restored(stored["value"]), dtype=float)[()],
            _restored(stored.get("limit")),
            tuple(_restored(stored.get("where", []))),
            words,
            None if interval is None else (np.array(_restored(interval[0])), np.array(_restored(interval[1]))),
        )


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it, which knows neither NaN nor infinity."""
    if isinstance(value, Phrase):
        return {"phrase": value.name, "words": {name: _plain(word) for name, word in value.words.items()}}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return {"number": str(value)}
    return value


def _restored(stored: Any) -> Any:
    """Invert `_plain`, but for tuples and arrays, which are lists."""
    if isinstance(stored, list):
        return [_restored(item) for item in stored]
    if not isinstance(stored, dict):
        return stored
    if "number" in stored:
        return float(stored["number"])
    known = stored.get("phrase", "") in PHRASES
    return Phrase(stored["phrase"], {k: _restored(v) for k, v in stored["words"].items()}) if known else Phrase("")


class Checks(Sequence[Check]):
    """Checks of a result, in the order of their causes; of several with one code, the first."""

    def __init__(self, found: Iterable[Check] = ()):
        by_code: dict[tuple[str, tuple[Any, ...]], Check] = {}
        for check in found:
            key = check.code, check.where
            if key not in by_code or (check.warns and not by_code[key].warns):
                by_code[key] = check
        order = {code: place for place, code in enumerate(RULES)}
        self._all = sorted(by_code.values(), key=lambda check: order[check.code])

    @overload
    def __getitem__(self, place: int) -> Check: ...
    @overload
    def __getitem__(self, place: slice) -> list[Check]: ...
    def __getitem__(self, place: int | slice) -> Check | list[Check]:
        return self._all[place]

    def __len__(self) -> int:
        return len(self._all)

    def __add__(self, others: Iterable[Check]) -> Checks:
        return Checks([*self._all, *others])

    @property
    def failed(self) -> list[Check]:
        """Checks that failed, those without which the result has no meaning first; notes are not among them."""
        found = [check for check in self.counted if check.outcome is Outcome.FAILED]
        return sorted(found, key=lambda check: check.rule.severity is not Severity.ERROR)

    @property
    def warnings(self) -> list[Check]:
        """What readers must know: failed and undecided checks that no other failed check explains, worst first."""
        said = [*self.failed, *(check for check in self.unknown if check.warns)]
        explained = set().union(*(check.rule.explains for check in said))
        return [check for check in said if check.code not in explained]

    @property
    def notes(self) -> list[Check]:
        """Findings that are no mistakes."""
        is_note = (check for check in self._all if check.rule.severity is Severity.NOTE)
        return [check for check in is_note if check.outcome is Outcome.FAILED]

    @property
    def counted(self) -> list[Check]:
        """All checks except notes."""
        return [check for check in self._all if check.rule.severity is not Severity.NOTE]

    @property
    def unknown(self) -> list[Check]:
        """Checks that the data do not decide."""
        return [check for check in self.counted if check.outcome is Outcome.UNKNOWN]

    @property
    def outcomes(self) -> list[tuple[str, str]]:
        """Code and outcome of each."""
        return [(check.code, check.outcome.value) for check in self._all]

    def verdict(self, result: str, language: Language = PYTHON) -> str:
        """Return a result, or why it has no meaning, and the outcome of all checks in one line."""
        worst = self.meaningless
        if worst is None:
            return f"{result}; {self.headline()}."
        reason = language.render(worst.rule.headline, worst.filled)
        return f"Not reliable: {reason}. {worst.remedy(language)}"

    def headline(self) -> str:
        """Return the outcome of all in a few words."""
        failed, unknown, count = self.failed, self.unknown, len(self.counted)
        if failed:
            return f"{len(failed)} of {count} checks failed"
        return f"none of {count} checks failed, {len(unknown)} undecided" if unknown else "all checks passed"

    @property
    def meaningless(self) -> Check | None:
        """The first failed check without which the result has no meaning; None if there is none."""
        return next((check for check in self.failed if check.rule.severity is Severity.ERROR), None)

    def table(self) -> list[dict[str, Any]]:
        """Return one row of plain data per check, for example for `pandas.DataFrame`."""
        return [
            {"code": c.code, "check": c.what, "value": c.shown, "limit": c.bound, "outcome": c.outcome.value}
            for c in self._all
        ]

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return titles and rows of a table as text; the outcome of a failed check is its direction."""
        rows = [[c.what, c.shown, c.bound, c.judged or c.outcome.value] for c in self._all]
        return ["check", "value", "limit", "outcome"], rows

    def __iter__(self) -> Iterator[Check]:
        return iter(self._all)

    def __repr__(self) -> str:
        shown = [*self.failed, *self.unknown, *self.notes]
        return "\n".join([f"Checks: {self.headline()}", *(f"  {check!r}" for check in shown)])


#: Number of columns and of rows listed in a message.
MOST_NAMED, MOST_ROWS = 8, 5


def name_modes(failed: np.ndarray) -> str:
    """Name modes: "mode 1", "modes 1 and 3"."""
    numbers = [str(k + 1) for k in np.flatnonzero(failed)]
    text = ", ".join(numbers[:-1]) + " and " + numbers[-1] if len(numbers) > 1 else "".join(numbers)
    return f"mode{'s' if len(numbers) > 1 else ''} {text}"


def list_items(where: Sequence[Any], most: int = MOST_NAMED) -> str:
    """Join names of columns or numbers of rows, with an ellipsis after the first few."""
    return ", ".join(map(str, where[:most])) + (f", … ({len(where)} in all)" if len(where) > most else "")


def or_fewer(before: int) -> Phrase:
    """Return the remedy "fewer modes" if `before`, the number of modes before the first that fails, is positive."""
    return Phrase("or fewer", {"before": before}) if before > 0 else Phrase("")


@cache
def _page() -> str:
    """Return the address of the page: on the web if the package has one, otherwise in the repository."""
    for entry in metadata.metadata("kdmaps").get_all("Project-URL") or ():
        name, _, address = entry.partition(", ")
        if name == "Documentation" and "example.org" not in address:
            return f"{address}/troubleshooting.html"
    return "docs/troubleshooting.md"
