"""What an experiment is: settings, `run`, `table` and `figure`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

from matplotlib.figure import Figure

from kdmaps.experiments._runner import Row
from kdmaps.experiments.paper._printed import Printed
from kdmaps.experiments.paper._protocol import measure
from kdmaps.experiments.paper._show import Table, comparison, dots

#: Performs `function(**arguments)`: at once, or from rows that are there already.
Call = Callable[..., Row]


def now(function: Callable[..., Row], **arguments: Any) -> Row:
    """Perform a measurement at once."""
    return function(**arguments)


class Experiment(Protocol):
    """One table or figure of the paper; its fields are the settings.

    `run` makes every measurement through `call(function, **arguments)`, so that whoever runs many experiments can share
    and store what they measure; it returns the rows as they come.
    """

    title: str

    def quick(self) -> Self:
        """The same with a part of the problems."""
        ...

    def run(self, seed: int, call: Call = now) -> list[Row]:
        """The rows of one seed."""
        ...

    def table(self, rows: Sequence[Row]) -> Table:
        """Rows as a table."""
        ...

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Rows as a figure."""
        ...


@dataclass(frozen=True)
class Comparison:
    """Methods of the paper, and kdmaps, on some problems.

    Parameters
    ----------
    title : str
    methods, problems : sequence of str
        Of `METHODS` and `kdmaps.problems`.
    printed : mapping
        (label of the problem, method) to the printed mean and standard deviation.
    few : sequence of str
        Problems of a quick run.
    tried : mapping
        (label of the problem, method) to what was tried where the protocol misses the printed cell.
    """

    title: str
    methods: Sequence[str]
    problems: Sequence[str]
    printed: Printed
    few: Sequence[str] = ()
    tried: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def quick(self) -> Self:
        return replace(self, problems=self.few)

    def run(self, seed: int, call: Call = now) -> list[Row]:
        """One row per problem and method."""
        return [
            call(measure, method=method, problem=problem, seed=seed)
            for problem in self.problems
            for method in (*self.methods, "kdmaps")
        ]

    def table(self, rows: Sequence[Row]) -> Table:
        """Printed | paper protocol | kdmaps."""
        return comparison(rows, self.printed, self.methods, self.tried)

    def figure(self, rows: Sequence[Row]) -> Figure:
        """The same as dots."""
        return dots(rows, self.printed, self.methods, self.title)
