"""Options of bursts, and their files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from glob import glob
from pathlib import Path
from typing import Annotated, Any

from kdmaps.cli._options import TRAJECTORY, Files, option, rare, require

BurstsOption = Annotated[
    str | None,
    option(TRAJECTORY, "Short unbiased runs, for real times.", metavar="PATTERN"),
]
StartOption = Annotated[
    Path | None,
    rare(
        TRAJECTORY,
        "Rows of the samples, counted from 0, at which bursts start, or the file of kdmaps.dynamics.where_to_start.",
        "--burst-start",
        metavar="FILE",
    ),
]
BurstWeightsOption = Annotated[
    Path | None, rare(TRAJECTORY, "Weights of the starts, one per burst.", "--burst-weights", metavar="FILE")
]


@dataclass(frozen=True)
class BurstFiles:
    """The options of bursts."""

    pattern: str | None
    start: Path | None
    weights: Path | None

    def check(self, lag: Any = None) -> None:
        """Raise an error for options that contradict each other."""
        given = self.pattern is not None
        require(given or self.start is None, "--burst-start", "starts need runs: add --bursts.")
        require(given or self.weights is None, "--burst-weights", "weights of starts need runs: add --bursts.")
        require(not given or lag is None, "--bursts", "pairs of frames have a clock of their own: omit --lag.")
        require(
            not given or self.start is not None or self.weights is not None,
            "--bursts",
            "give the rows at which bursts start with --burst-start, or their weights with --burst-weights.",
        )

    def read(self, files: Files, time_step: float | None) -> tuple[dict[str, Any], float | None, str | None]:
        """Return the arguments of `fit`, the time between frames, and the unit of times in the files."""
        if self.pattern is None:
            return {}, time_step, None
        paths = [Path(name) for name in sorted(glob(self.pattern))]
        require(bool(paths), "--bursts", f"no file has a name like {self.pattern}.")
        runs, steps, units = zip(*(_run(files, path) for path in paths), strict=True)
        known = {f"{step:.6g}" for step in steps if step is not None}
        listed = " and every ".join(sorted(known))
        require(len(known) < 2, "--bursts", f"files have frames every {listed}; all need one time step.")
        step = steps[0] if time_step is None else time_step
        require(step is not None, "--time-step", "give the time between the frames of --bursts.")
        given = {"bursts": list(runs), "burst_start": self._starts(), "burst_weight": self._weights()}
        return given, step, units[0]

    def _starts(self) -> Any:
        """Return rows, or the result of `where_to_start`."""
        import numpy as np

        from kdmaps.clocks.weights import Starts

        if self.start is None:
            return None
        if self.start.suffix == ".npz":
            return Starts.load(self.start)
        rows = _numbers("--burst-start", self.start)
        require(bool(np.all(rows == np.floor(rows))), "--burst-start", "rows are whole numbers, counted from 0.")
        return rows.astype(int)

    def _weights(self) -> Any:
        return None if self.weights is None else _numbers("--burst-weights", self.weights)


def _run(files: Files, path: Path) -> tuple[Any, float | None, str | None]:
    """Return the frames of one file with the columns of the samples, their time step and its unit."""
    from kdmaps.cli._reading import open_files, time_step_of, with_angles
    from kdmaps.data import gather

    own = replace(files, data=[path], groups=None, weights=None, stride=1)
    table = open_files(own, reference=files.data[0] if files.topology is not None else None)
    present = [name for name in files.left_out if name in table.labels]
    frames = gather(with_angles(own, table.select(own.columns, leave_out=present)))
    return frames, time_step_of(own, table, None), table.time_unit or None


def _numbers(name: str, path: Path) -> Any:
    """Return the only column of a file."""
    from kdmaps.data import as_source, gather

    require(path.exists(), name, f"{path} does not exist.")
    table = gather(as_source(path))
    require(table.shape[1] == 1, name, f"{path} has {table.shape[1]} columns; give one number for each burst.")
    return table[:, 0]
