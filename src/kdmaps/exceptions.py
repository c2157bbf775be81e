"""Warnings and errors of kdmaps.

A warning carries the `kdmaps.checks.Check` that failed, as `check`: its code names the section of the documentation. An
error is a `ValueError`; its class says whether an argument is wrong, a question does not apply to a model, or the data
do not determine the answer.
"""

from typing import Any, Protocol

from kdmaps.language import PYTHON, Language


class Sayable(Protocol):
    """A failed check, as warnings use it."""

    def say(self, language: Language = PYTHON) -> str:
        """Return the message."""
        ...

    @property
    def link(self) -> str:
        """The address of the section of the documentation."""
        ...


class CheckWarning(UserWarning):
    """A failed check."""

    def __init__(self, check: Sayable):
        super().__init__(f"{check.say()} ({check.link})")
        self.check = check

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return type(self), (self.check,)


class UnreliableModesWarning(CheckWarning):
    """The modes or time scales are finite but possibly wrong; check them before use."""


class UnresolvedModesWarning(UnreliableModesWarning):
    """A fit without folds has modes that are determined by noise or regularization, by an estimate."""


class DataWarning(CheckWarning):
    """The data have a probable mistake, such as a constant column."""


class KdmapsError(ValueError):
    """An error whose message is a template, said in the language of its reader; `words` fill it in."""

    def __init__(self, template: str, **words: Any):
        super().__init__(PYTHON.render(template, words))
        self.template, self.words = template, words

    def say(self, language: Language = PYTHON) -> str:
        """Return the message for readers of Python or of the command line."""
        return language.render(self.template, self.words)

    def __reduce__(self) -> Any:
        return _rebuilt, (type(self), self.template, self.words)


class ArgumentError(KdmapsError):
    """An argument is wrong, in itself or together with others."""


class MemoryLimitError(ArgumentError):
    """`memory_limit` is too small for a number of features."""


class UnreadableFile(ArgumentError):
    """A file has no table of numbers; the message names the file and the line."""


class NotApplicable(KdmapsError):
    """The question has no meaning for this model, such as passage times of a model without a lag."""


class Undetermined(KdmapsError):
    """The data do not determine the answer; more data might."""


def _rebuilt(cls: type[KdmapsError], template: str, words: dict[str, Any]) -> KdmapsError:
    return cls(template, **words)
