"""The two languages of messages: for readers of Python programs and of the command line.

A message is a template. In it, `{n_components}` is the name of an argument and `{n_components:4}` its setting: in
Python `n_components` and `n_components=4`, on the command line `--modes` and `--modes 4`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Argument:
    """An argument of a function, or the option that sets it."""

    name: str
    setting: str  #: Template of a setting, with `{}` for the value.
    quoted: bool = False  #: Whether words among the values have quotes.
    values: Mapping[str, str] = field(default_factory=dict)  #: Settings that do not follow the template.

    def __format__(self, value: str) -> str:
        if not value:
            return self.name
        if value in self.values:
            return self.values[value]
        text = self.quoted and value.isidentifier() and value not in ("True", "False", "None")
        return self.setting.format(repr(value) if text else value)


#: Arguments of Python, and the options that set them.
OPTIONS = {
    "n_components": "--modes",
    "n_features": "--features",
    "random_state": "--seed",
    "sample_weight": "--weights",
    "time_step": "--time-step",
    "lag": "--lag",
    "diffusion": "--diffusion",
    "groups": "--groups",
    "regularization": "--lambda",
    "bandwidth": "--bandwidth",
    "basis": "--basis",
    "standardize": "--standardize",
    "rates": "--rates",
    "isolated": "--isolated",
    "cv": "--ordered",
    "array": "--array",
    "header": "--header",
    "stride": "--stride",
    "time": "--time",
    "degrees": "--degrees",
    "reversible": "--no-reversible",
    "bursts": "--bursts",
    "burst_start": "--burst-start",
    "burst_weight": "--burst-weights",
}
#: Settings on the command line that are not an option and its value.
SPECIAL: dict[str, dict[str, str]] = {
    "standardize": {"True": "--standardize"},
    "degrees": {"True": "--degrees"},
    "reversible": {"False": "--no-reversible", "True": "no --no-reversible"},
    "cv": {"3": "--no-ordered", "kdmaps.BlockedKFold(5)": "--ordered"},
    "header": {"False": "--no-header"},
}


@dataclass(frozen=True)
class Language:
    """Words for the reader of a message."""

    name: str
    words: Mapping[str, Argument]

    def render(self, template: str, words: Mapping[str, Any]) -> str:
        """Fill in a template; words that are phrases themselves are said in this language."""
        said = {name: value.say(self) if hasattr(value, "say") else value for name, value in words.items()}
        return template.format_map({**self.words, **said})


@dataclass(frozen=True)
class Either:
    """A word of a template that readers of Python and of the command line need in different forms."""

    python: str
    cli: str

    def say(self, language: Language) -> str:
        """Return the form for the reader."""
        return self.cli if language.name == "cli" else self.python


@dataclass(frozen=True)
class Name:
    """The name of an argument, as a word of a template."""

    argument: str

    def say(self, language: Language) -> str:
        """Return the argument, or its option."""
        return format(language.words.get(self.argument, self.argument))


_NAMES = (*OPTIONS, *(name for name in SPECIAL if name not in OPTIONS))
PYTHON = Language("python", {name: Argument(name, f"{name}={{}}", quoted=True) for name in _NAMES})
CLI = Language(
    "cli",
    {
        name: Argument(option, f"{option} {{}}", values=SPECIAL.get(name, {}))
        for name, option in ((name, OPTIONS.get(name, name)) for name in _NAMES)
    },
)
