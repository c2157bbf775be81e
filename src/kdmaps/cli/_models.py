"""`kdmaps transform` and `kdmaps inspect`: stored models."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from kdmaps.cli._app import app
from kdmaps.cli._options import OUTPUT, TRAJECTORY, HelpAllOption, ModelArgument, in_options
from kdmaps.cli._reading import Files, places_of, split_names, texts_of, with_files
from kdmaps.data import Source, Table, make_writer
from kdmaps.estimators.model_files import load, read_header
from kdmaps.summary import summarise
from kdmaps.utils.files import check_writable, replacing


@app.command()
@with_files("weights", "groups", "diffusion", "draw")
def transform(
    model: ModelArgument,
    files: Files,
    out: Annotated[
        Path, typer.Option(help="File of the modes: .csv, .parquet, .npy or .npz.", rich_help_panel=OUTPUT)
    ] = Path("modes.csv"),
    reference: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="The trajectory of the fit, the first of several.",
            rich_help_panel=TRAJECTORY,
        ),
    ] = None,
    help_all: HelpAllOption = False,
) -> None:
    """Evaluate the modes of a stored model at new samples."""
    write = make_writer(out.suffix.lower())
    check_writable("--out", out.parent)
    fitted = load(model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = files.open(reference)
    notes = texts_of(caught)
    if files.topology is not None and files.descriptor == "heavy-atoms" and reference is None:
        notes.append(
            f"atoms are superposed on the first frame of {files.data[0]}. If the model was fitted to another "
            "trajectory, name that one with --reference; else the coordinates are not those of the fit."
        )
    for note in notes:
        Console(stderr=True).print(f"Warning: {note}", highlight=False, soft_wrap=True, markup=False)
    samples = matching(fitted, table, files)
    out.parent.mkdir(parents=True, exist_ok=True)
    if out.suffix.lower() == ".npy":  # of any size
        modes = fitted.transform(samples, out=out)
    else:
        modes = fitted.transform(samples)
        with replacing(out) as (file,):
            write(file, modes, mode_names(modes.shape[1]), places_of(table, len(modes), files.stride))
    Console().print(f"{len(modes)} samples, {modes.shape[1]} modes: {out}", highlight=False, soft_wrap=True)


@app.command()
def inspect(model: ModelArgument) -> None:
    """Show kernel, time scales, columns and checks of a stored model, and the versions it was made with."""
    header, fitted = read_header(model), load(model)
    console = Console()
    summary = summarise(fitted, unit=header.get("unit"))
    console.print(f"{header['class']}, {summary.n_samples} samples", highlight=False)
    console.print(table_of(summary.columns, summary.rows))
    console.print(in_options(summary.time_unit), highlight=False, soft_wrap=True, markup=False)
    names = header["feature_names_in"]
    lines = {
        "Kernel": summary.chosen,
        "Columns": f"{header['n_features_in']}" + (f": {', '.join(names)}" if names else ""),
        **{check.what[0].upper() + check.what[1:]: f"{check.value} ({check.limit})" for check in summary.checks},
        "Made with": ", ".join(f"{name} {version}" for name, version in header["libraries"].items()),
    }
    for label, text in lines.items():
        console.print(f"{label}: {text}", highlight=False, soft_wrap=True, markup=False)
    for warning in summary.warnings:
        console.print(f"Warning: {warning}", highlight=False, soft_wrap=True, markup=False)


def matching(fitted: Any, table: Table, files: Files) -> Source:
    """Select the columns that the model was fitted to: those given, else those of the same names, else all."""
    names = getattr(fitted, "feature_names_in_", None)
    if files.columns is None and names is not None and table.names is not None:
        if files.angles is not None:
            made = {f"{f}({name})": name for name in split_names(files.angles) for f in ("cos", "sin")}
            names = list(dict.fromkeys(made.get(name, name) for name in names))
        missing = [name for name in names if name not in (*table.names, *table.extras)]
        if missing:
            raise ValueError(
                f"The model was fitted to columns that are missing here: {', '.join(missing)}. Rename columns, or say "
                "with --columns which ones to take, and with --angles which of them are angles."
            )
        return files.with_angles(table.select(list(names)))
    samples = files.with_angles(table.select(files.columns, leave_out=files.left_out))
    if samples.n_features != fitted.n_features_in_:
        raise ValueError(
            f"The model was fitted to {fitted.n_features_in_} columns, but here are {samples.n_features}; choose them "
            "with --columns."
        )
    samples.feature_names = None  # columns that were chosen by hand may have other names
    return samples


def table_of(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> RichTable:
    """Return a table for the terminal."""
    table = RichTable()
    for title in titles:
        table.add_column(escape(title), justify="right")
    for row in rows:
        table.add_row(*row)
    return table


def mode_names(n: int) -> list[str]:
    """Return the names of the columns of a table of modes."""
    return [f"mode{k + 1}" for k in range(n)]


def print_warning(console: Console, text: str) -> None:
    """Print a warning."""
    console.print(f"Warning: {in_options(text)}", style="yellow", highlight=False, soft_wrap=True, markup=False)
