"""Interface of an experiment: settings, `run`, `table` and `figure`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

from matplotlib.figure import Figure

from experiments._runner import Row
from experiments.paper._printed import Printed
from experiments.paper._protocol import measure
from experiments.paper._show import Table, comparison, dots

#: Return the row of `function(**arguments)`, by calling it or from stored rows.
Call = Callable[..., Row]


def now(function: Callable[..., Row], **arguments: Any) -> Row:
    """Make a measurement immediately."""
    return function(**arguments)


class Experiment(Protocol):
    """One table or figure of the paper; its fields are the settings.

    `run` makes every measurement through `call(function, **arguments)`, so that measurements can be stored and shared
    between experiments; it returns their rows.
    """

    title: str

    def quick(self) -> Self:
        """Return the experiment with fewer problems."""
        ...

    def run(self, seed: int, call: Call = now) -> list[Row]:
        """Return the rows of one seed."""
        ...

    def table(self, rows: Sequence[Row]) -> Table:
        """Return the rows as a table."""
        ...

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Return the rows as a figure."""
        ...


@dataclass(frozen=True)
class Comparison:
    """Compare methods of the paper with kdmaps on several problems.

    Parameters
    ----------
    title : str
    methods, problems : sequence of str
        Names from `METHODS` and `kdmaps.problems`.
    printed : mapping
        Printed mean and standard deviation by (label of the problem, method).
    few : sequence of str
        Problems of a quick run.
    tried : mapping
        Remark by (label of the problem, method) for printed cells that the protocol does not reproduce.
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
        """Return one row per problem and method."""
        return [
            call(measure, method=method, problem=problem, seed=seed)
            for problem in self.problems
            for method in (*self.methods, "kdmaps")
        ]

    def table(self, rows: Sequence[Row]) -> Table:
        """Tabulate printed | paper protocol | kdmaps."""
        return comparison(rows, self.printed, self.methods, self.tried)

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Plot the same as dots."""
        return dots(rows, self.printed, self.methods, self.title)
