"""`kdmaps states`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from kdmaps.cli._app import app
from kdmaps.cli._models import matching, print_warning, table_of
from kdmaps.cli._options import OUTPUT, HelpAllOption, ModelArgument, require
from kdmaps.cli._reading import Files, places_of, texts_of, with_files
from kdmaps.data import ArraySource, Table, gather, make_writer
from kdmaps.dynamics import (
    CoarseStates,
    PassageTimes,
    coarse_states,
    mean_first_passage_times,
    suggest_states,
)
from kdmaps.estimators.model_files import load, read_header
from kdmaps.estimators.transformer import ModeTransformer
from kdmaps.report.text import state_sentences, state_table
from kdmaps.utils.files import check_writable, replacing

#: Means of modes, in standard deviations, from which rows are said to follow another law than the samples of the fit.
FAR = 0.25


@app.command()
@with_files("diffusion", "draw")
def states(
    model: ModelArgument,
    files: Files,
    number: Annotated[
        int | None,
        typer.Option(
            "--states", min=2, metavar="N", help="Number of states; else by the largest gap.", rich_help_panel=OUTPUT
        ),
    ] = None,
    passage_times: Annotated[
        bool,
        typer.Option(
            "--passage-times",
            help="Mean times from the core of each state to the others, too: of a model with a lag, and rows as far "
            "apart in time as those of the fit.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="State of each row: .csv, .parquet or .npz.", rich_help_panel=OUTPUT)
    ] = Path("states.csv"),
    help_all: HelpAllOption = False,
) -> None:
    """Assign samples to metastable states (PCCA+ of the slow modes), and show populations and typical rows."""
    write = make_writer(out.suffix.lower())
    require(out.suffix.lower() != ".npy", "--out", "a .npy file has no columns; use .csv, .parquet or .npz.")
    check_writable("--out", out.parent)
    fitted = load(model)
    r = len(fitted.timescales_)
    n_states = suggest_states(fitted) if number is None else number
    require(n_states <= r + 1, "--states", f"{n_states} states need {n_states - 1} modes; the model has {r}.")
    if passage_times:
        require(fitted.lag is not None, "--passage-times", "the model knows no time; fit one with --lag.")
        require(files.weights is None, "--passage-times", "pairs of biased frames show the biased dynamics.")
    require(files.groups is None or passage_times, "--groups", "trajectories matter to --passage-times only.")
    table = files.open()
    X = gather(matching(fitted, table, files))
    weight = files.weights_of(table, len(X))
    modes = np.asarray(fitted.transform(ArraySource(X)))
    found = coarse_states(modes, n_states, sample_weight=weight)
    places = places_of(table, len(X), files.stride)
    passages = _passages(fitted, table, files, X, found) if passage_times else None
    console = Console()
    # Of several files, the number of the file and the row in it.
    named = [":".join(map(str, place)) for place in zip(*places.values(), strict=True)]
    console.print(table_of(*state_table(found, found.representatives(X, 3), named)))
    for sentence in (*_foreign(fitted, modes, weight), *state_sentences(found, fitted.rates_)):
        console.print(sentence, highlight=False, soft_wrap=True)
    if passages is not None:
        _show_passages(console, *passages, fitted, n_states, read_header(model).get("unit"))
    if table.lengths:
        console.print("Typical rows are named by file and row, as in the file of states.", highlight=False)
    out.parent.mkdir(parents=True, exist_ok=True)
    names = [f"membership{k + 1}" for k in range(n_states)]
    with replacing(out) as (file,):
        write(file, found.memberships, names, {**places, "state": found.labels + 1})
    console.print(f"Written: {out}", highlight=False, soft_wrap=True)


def _passages(
    fitted: ModeTransformer, table: Table, files: Files, X: np.ndarray, found: CoarseStates
) -> tuple[PassageTimes, list[str]]:
    """Return the times between states, and what there is to warn of; refuse rows that are no frames at equal steps."""
    groups = files.groups_of(table, len(X))
    files.step_of(table, groups)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        times = mean_first_passage_times(fitted, ArraySource(X), found, groups=groups, random_state=0)
    return times, texts_of(caught)


def _show_passages(
    console: Console, times: PassageTimes, notes: list[str], fitted: ModeTransformer, n_states: int, unit: str | None
) -> None:
    """Print a table with one line for each state in which paths begin, and the warnings."""
    unit = unit or ("rows" if fitted.time_step == 1 else "the unit of --time-step")
    console.print(
        f"Mean first passage times between the cores of states, in {unit} ({times.confidence:.0%} intervals); rows are "
        f"taken to be {fitted.time_step:g} apart, as in the fit:",
        highlight=False,
        soft_wrap=True,
        markup=False,
    )

    def cell(i: int, j: int) -> str:
        low, high = times.intervals[i, j]
        return "" if i == j else f"{times.times[i, j]:.4g} ({low:.3g}…{high:.3g})"

    names, numbers = [str(label + 1) for label in times.labels], range(len(times.labels))
    rows = [[names[i], *(cell(i, j) for j in numbers)] for i in numbers]
    console.print(table_of(["from state", *(f"to {name}" for name in names)], rows))
    missing = [str(k + 1) for k in range(n_states) if k not in times.labels]
    if missing:
        notes = [*notes, f"no row is in the core of state {', '.join(missing)}; use fewer --states."]
    for note in notes:
        print_warning(console, note)


def _foreign(fitted: ModeTransformer, modes: np.ndarray, weight: np.ndarray | None) -> tuple[str, ...]:
    """Return a sentence if rows follow another law than the samples of the fit, over which modes have the mean 0."""
    if weight is None and fitted.moments_.weighted:
        return (
            "The samples of the fit had weights, these rows have none: populations are those of these rows. If they "
            "come from a biased simulation, give --weights.",
        )
    mean = np.average(modes, axis=0, weights=weight)
    worst = int(np.argmax(np.abs(mean)))
    if abs(mean[worst]) <= FAR:
        return ()
    return (
        f"These rows are not distributed as the samples of the fit: the mean of mode {worst + 1} is {mean[worst]:.2f} "
        "here, and was 0. Populations are those of these rows.",
    )
