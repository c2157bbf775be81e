"""Samples of the linked interactive figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from kdmaps.report._subject import Subject
from kdmaps.summary import with_unit

#: Largest number of columns that the axes offer.
MAX_COLUMNS = 30


def explorer(subject: Subject) -> dict[str, Any]:
    """Return rows, columns, states and times of the samples, and the columns that each figure shows first."""
    rows, states = subject.random_rows(subject.max_points), subject.states
    points, modes, axes = np.asarray(subject.X[rows]), subject.modes_at(rows), list(subject.coordinates())
    names, summary, r = subject.names, subject.summary, modes.shape[1]
    drawn = subject.drawn or subject.coordinates()  # angles of torsions are not columns
    kept = [j for j, name in enumerate(names) if name not in drawn]
    kept = sorted(sorted(kept, key=lambda j: names[j] not in axes)[:MAX_COLUMNS])
    columns = [*modes.T, *(values[rows] for values in drawn.values()), *(points[:, j] for j in kept)]
    labels = [*(f"mode {k + 1}" for k in range(r)), *drawn, *(names[j] for j in kept)]
    first = [r + labels[r:].index(name) for name in axes]
    plane = [0, 1] if r > 1 else [first[0], 0]
    time = None
    if summary.lag is not None:
        time = len(labels)
        labels.append(with_unit("time", summary.unit))
        columns.append(rows * summary.time_step)
    return {
        "rows": rows.tolist(),
        "names": labels,
        "modes": r,
        "values": [[float(f"{value:.{8 if j == time else 4}g}") for value in c] for j, c in enumerate(columns)],
        "total": len(subject.X),
        "states": None if states is None else states.memberships_at(modes).argmax(axis=1).tolist(),
        "panels": [plane, *([first] if len(first) == 2 else []), *([] if time is None else [[time, 0]])],
        "time": time,
        "inputs": {r + len(drawn) + place: j for place, j in enumerate(kept)},  # columns of X
    }
