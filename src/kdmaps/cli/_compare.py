"""`kdmaps compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from kdmaps.cli._app import app
from kdmaps.cli._models import table_of
from kdmaps.data import ArraySource
from kdmaps.estimators.model_files import load, read_header
from kdmaps.metrics import correlation_table, principal_angles, subspace_r2
from kdmaps.summary import summarise


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(metavar="A", help="A model.", show_default=False)],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another model of the same columns.", show_default=False)],
) -> None:
    """Compare two models: time scales, correlations of modes, and angles between the spaces of modes.

    Modes are compared at the samples that both model files keep.
    """
    a, b = load(first), load(second)
    points = _points(first, a, second, b)
    ours, theirs = (np.asarray(model.transform(ArraySource(points))) for model in (a, b))
    r = min(ours.shape[1], theirs.shape[1])
    correlations = np.abs(correlation_table(ours, theirs))
    angles = np.degrees(principal_angles(ours[:, :r], theirs[:, :r]))
    console = Console()
    for name, path, model in (("A", first, a), ("B", second, b)):
        summary = summarise(model, unit=read_header(path).get("unit"))
        console.print(f"{name}: {path}, {summary.chosen}", highlight=False, soft_wrap=True, markup=False)
        console.print(f"   {summary.time_unit}", highlight=False, soft_wrap=True, markup=False)
    rows = []
    for k in range(r):
        near = int(correlations[k].argmax())
        nearest = f"{correlations[k, near]:.3f} (mode {near + 1})"
        times = a.timescales_[k], b.timescales_[k]
        rows.append((str(k + 1), f"{times[0]:.4g}", f"{times[1]:.4g}", f"{times[1] / times[0]:.3g}",
                     f"{correlations[k, k]:.3f}", nearest, f"{angles[k]:.1f}°"))  # fmt: skip
    titles = ("mode", "time scale A", "time scale B", "B/A", "|correlation|", "nearest mode of B", "principal angle")
    console.print(table_of(titles, rows))
    console.print(
        f"The spaces of the first {r} modes share {subspace_r2(ours[:, :r], theirs[:, :r]):.4f} of each other "
        f"(SubR², 1 is the same space), at {len(points)} samples of both fits.",
        highlight=False,
        soft_wrap=True,
    )
    if (a.lag_ is None) != (b.lag_ is None):
        console.print(
            "One model is of a trajectory and one of samples without order: their time scales have different units.",
            highlight=False,
            soft_wrap=True,
        )


def _points(first: Path, a: Any, second: Path, b: Any) -> np.ndarray:
    """Return samples of both fits."""
    if a.n_features_in_ != b.n_features_in_:
        raise ValueError(
            f"{first} was fitted to {a.n_features_in_} columns and {second} to {b.n_features_in_}; models of the same "
            "columns can be compared. For others compare their tables of modes by kdmaps.metrics.principal_angles."
        )
    names = [list(getattr(model, "feature_names_in_", [])) for model in (a, b)]
    if all(names) and names[0] != names[1]:
        raise ValueError(f"{first} was fitted to {', '.join(names[0])}, but {second} to {', '.join(names[1])}.")
    kept = [model.support_.samples for model in (a, b) if model.support_ is not None]
    if not kept:
        raise ValueError(f"{first} and {second} were written by an old version and keep no samples; fit again.")
    return np.concatenate(kept)
