"""An experiment: settings, `run`, `table` and `figure`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from matplotlib.figure import Figure

from experiments._runner import Row
from experiments.paper._printed import Printed
from experiments.paper._protocol import measure
from experiments.paper._show import Table, by_problem, comparison, dots

FIRST_SEED = 42  # the seed that the paper states

#: Return the row of `function(**arguments)`, by calling it or from stored rows.
Call = Callable[..., Row]


def now(function: Callable[..., Row], **arguments: Any) -> Row:
    """Make a measurement immediately."""
    return function(**arguments)


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper; its fields are the settings.

    `run` makes every measurement through `call(function, **arguments)`, so that measurements can be stored and shared
    between experiments; it returns their rows. By default these are the runs of all methods on all problems.

    Parameters
    ----------
    title, text : str
        Heading and paragraphs of the page.
    methods, problems : sequence of str
        Names from `METHODS` and `kdmaps.problems`.
    few : sequence of str
        Problems of a quick run; all of them by default.
    n_seeds : int or None
        Number of seeds, if it is not the number of the run: the paper has three.
    """

    title: str
    text: str
    methods: Sequence[str] = ()
    problems: Sequence[str] = ()
    few: Sequence[str] = ()
    n_seeds: int | None = field(default=None, kw_only=True)

    def quick(self) -> Self:
        """Return the experiment with fewer problems."""
        return replace(self, problems=self.few or self.problems)

    def run(self, seed: int, call: Call = now) -> list[Row]:
        """Return the rows of one seed."""
        return [call(measure, method=m, problem=p, seed=seed) for p in self.problems for m in self.methods]

    def table(self, rows: Sequence[Row]) -> Table:
        """Return the rows as a table."""
        raise NotImplementedError

    def figure(self, rows: Sequence[Row]) -> Figure | None:
        """Return the rows as a figure, if there is one."""
        return None


@dataclass(frozen=True)
class Comparison(Experiment):
    """Methods of the paper and, as the last one, kdmaps.

    Parameters
    ----------
    printed : mapping
        Printed mean and standard deviation by (case, method).
    tried : mapping
        Remark by (case, method) for printed cells that the protocol does not reproduce.
    by : callable
        Case of a row: the label of its problem by default.
    """

    printed: Printed = field(default_factory=dict)
    tried: Mapping[tuple[str, str], str] = field(default_factory=dict)
    by: Callable[[Row], str] = by_problem

    def table(self, rows: Sequence[Row]) -> Table:
        """Tabulate printed | paper protocol | kdmaps."""
        return comparison(rows, self.printed, self.methods[:-1], self.tried, self.by)

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Plot the same as dots."""
        return dots(rows, self.printed, self.methods[:-1], self.title, self.by)
