"""`kdmaps transform` and `kdmaps inspect`: stored models."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table as RichTable

from kdmaps._files import replacing
from kdmaps.cli._app import app
from kdmaps.cli._options import ArrayOption, ColumnsOption, DescriptorOption, StrideOption, TopologyOption
from kdmaps.io import load, read_header
from kdmaps.summary import chosen, timescale_columns, timescale_rows
from kdmaps.tables import Table, make_writer, read_table

ModelArgument = Annotated[Path, typer.Argument(help="A model that `kdmaps fit` or `save` wrote.", show_default=False)]


@app.command()
def transform(
    model: ModelArgument,
    data: Annotated[Path, typer.Argument(help="Samples, in any format that `fit` reads.", show_default=False)],
    out: Annotated[Path, typer.Option(help="File of the modes: .csv, .parquet, .npy or .npz.")] = Path("modes.csv"),
    columns: ColumnsOption = None,
    stride: StrideOption = 1,
    array: ArrayOption = None,
    topology: TopologyOption = None,
    descriptor: DescriptorOption = "heavy-atoms",
) -> None:
    """Evaluate the modes of a stored model at new samples."""
    write = make_writer(out.suffix.lower())
    fitted = load(model)
    table = read_table(data, array=array, stride=stride, topology=topology, descriptor=descriptor)
    values = matching(fitted, table, columns).values
    out.parent.mkdir(parents=True, exist_ok=True)
    if out.suffix.lower() == ".npy":  # of any size
        modes = modes_of(fitted, values, out)
    else:
        modes = modes_of(fitted, values)
        with replacing(out) as (file,):
            write(file, modes, mode_names(modes.shape[1]))
    Console().print(f"{len(modes)} samples, {modes.shape[1]} modes: {out}", highlight=False, soft_wrap=True)


@app.command()
def inspect(model: ModelArgument) -> None:
    """Show what a stored model is: kernel, time scales, columns, and the versions it was made with."""
    header, fitted = read_header(model), load(model)
    console = Console()
    console.print(f"{header['class']}, {fitted.moments_.count} samples", highlight=False)
    table = RichTable()
    for title in timescale_columns():
        table.add_column(title, justify="right")
    for row in timescale_rows(fitted):
        table.add_row(*row)
    console.print(table)
    names = header["feature_names_in"]
    lines = {
        "Kernel": chosen(fitted),
        "Columns": f"{header['n_features_in']}" + (f": {', '.join(names)}" if names else ""),
        "Gap behind the last mode": f"{fitted.modes_.gap:.3g}",
        "Made with": ", ".join(f"{name} {version}" for name, version in header["libraries"].items()),
    }
    for label, text in lines.items():
        console.print(f"{label}: {text}", highlight=False, soft_wrap=True, markup=False)
    for complaint in fitted.modes_.complaints():
        console.print(f"Warning: {complaint}", highlight=False, soft_wrap=True, markup=False)


def matching(fitted: Any, table: Table, columns: str | None) -> Table:
    """The columns that the model was fitted to: those asked for, else those of the same names, else all."""
    names = getattr(fitted, "feature_names_in_", None)
    if columns is None and names is not None and table.names is not None:
        missing = [name for name in names if table.column(name) is None]
        if missing:
            raise ValueError(
                f"The model was fitted to columns that are missing here: {', '.join(missing)}. Rename columns, or say "
                "with --columns which ones to take."
            )
        parts = [table.select(name).values for name in names]
        return Table(np.hstack(parts), list(names))
    chosen_columns = table.select(columns)
    if chosen_columns.values.shape[1] != fitted.n_features_in_:
        raise ValueError(
            f"The model was fitted to {fitted.n_features_in_} columns, but here are {chosen_columns.values.shape[1]}; "
            "choose them with --columns."
        )
    return chosen_columns


def modes_of(fitted: Any, values: np.ndarray, out: Path | None = None) -> np.ndarray:
    """Modes at the rows of an array whose columns have been checked; written to `out` chunk by chunk if given."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        return np.asarray(fitted.transform(values, out=out))


def mode_names(n: int) -> list[str]:
    """Names of the columns of a table of modes."""
    return [f"mode{k + 1}" for k in range(n)]
