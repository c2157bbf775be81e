"""`kdmaps states`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from kdmaps.cli._app import app, print_table, print_warning, say
from kdmaps.cli._models import require_table, select_columns
from kdmaps.cli._options import OUTPUT, Files, HelpAllOption, ModelArgument, option, require, with_files

if TYPE_CHECKING:
    import numpy as np

    from kdmaps.data import Table
    from kdmaps.dynamics import CoarseStates, PassageTimes
    from kdmaps.estimators.transformer import ModeTransformer

#: Rows differ from the samples of the fit if the mean of a mode exceeds this number of standard deviations.
FAR = 0.25


@app.command()
@with_files("diffusion", "draw")
def states(
    model: ModelArgument,
    files: Files,
    number: Annotated[
        int | None, option(OUTPUT, "Number of states. (default: by the largest gap)", "--states", min=2, metavar="N")
    ] = None,
    passage_times: Annotated[
        bool,
        option(
            OUTPUT,
            "Print mean first passage times between the cores of states. The model needs a lag, and rows the time "
            "step of the fit.",
            "--passage-times",
        ),
    ] = False,
    out: Annotated[Path, option(OUTPUT, "State of each row: .csv, .parquet or .npz.", metavar="FILE")] = Path(
        "states.csv"
    ),
    help_all: HelpAllOption = False,
) -> None:
    """Assign samples to metastable states (PCCA+ of the slow modes); show populations and typical rows."""
    require_table(out, ("csv", "parquet", "npz"))  # .npy files have no columns
    require(files.groups is None or passage_times, "--groups", "trajectories matter to --passage-times only.")
    require(
        files.weights is None or not passage_times,
        "--passage-times",
        "pairs of biased frames show the biased dynamics.",
    )
    import numpy as np

    from kdmaps.cli._reading import open_files, places_of, weights_of
    from kdmaps.data import ArraySource, gather, make_writer
    from kdmaps.dynamics import coarse_states, suggest_states
    from kdmaps.estimators.kernel_map import load
    from kdmaps.estimators.model_files import read_header
    from kdmaps.report.text import state_sentences, state_table
    from kdmaps.utils.files import check_writable, replacing

    write = make_writer(out.suffix.lower())
    check_writable("--out", out.parent)
    fitted = load(model)
    r = len(fitted.timescales_)
    n_states = suggest_states(fitted) if number is None else number
    require(n_states <= r + 1, "--states", f"{n_states} states need {n_states - 1} modes; the model has {r}.")
    timed = fitted.lag_ is not None or not passage_times
    require(timed, "--passage-times", "this model was fitted without --lag; fit one with --lag.")
    table = open_files(files)
    X = gather(select_columns(fitted, table, files))
    weight = weights_of(files, table, len(X))
    modes = np.asarray(fitted.transform(ArraySource(X)))
    found = coarse_states(modes, n_states, sample_weight=weight)
    places = places_of(files, table, len(X))
    passages = _passages(fitted, table, files, X, found) if passage_times else None
    # With several files, the number of the file and the row in it.
    named = [":".join(map(str, place)) for place in zip(*places.values(), strict=True)]
    print_table(*state_table(found, found.representatives(X, 3), named))
    for sentence in (*_other_distribution(fitted, modes, weight), *state_sentences(found, fitted.rates_)):
        say(sentence)
    if passages is not None:
        _show_passages(*passages, fitted, n_states, read_header(model).get("unit"))
    if table.lengths:
        say("Typical rows are named by file and row, as in the file of states.")
    out.parent.mkdir(parents=True, exist_ok=True)
    names = [f"membership{k + 1}" for k in range(n_states)]
    with replacing(out) as (file,):
        write(file, found.memberships, names, {**places, "state": found.labels + 1})
    say(f"Written: {out}")


def _passages(
    fitted: ModeTransformer, table: Table, files: Files, X: np.ndarray, found: CoarseStates
) -> tuple[PassageTimes, list[str]]:
    """Return passage times between states and warnings; raise unless rows are frames at equal steps."""
    from kdmaps.cli._reading import groups_of, messages, time_step_of
    from kdmaps.data import ArraySource
    from kdmaps.dynamics import mean_first_passage_times

    groups = groups_of(files, table, len(X))
    time_step_of(files, table, groups)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        times = mean_first_passage_times(fitted, ArraySource(X), found, groups=groups, random_state=0)
    return times, messages(caught)


def _show_passages(
    times: PassageTimes, notes: list[str], fitted: ModeTransformer, n_states: int, unit: str | None
) -> None:
    """Print a table with one line for each initial state, and the warnings."""
    step = fitted.modes_.clock.time_step
    unit = unit or ("rows" if step == 1 else "the unit of --time-step")
    say(
        f"Mean first passage times between the cores of states, in {unit} ({times.confidence:.0%} intervals), for rows "
        f"{step:g} apart as in the fit:"
    )

    def cell(i: int, j: int) -> str:
        low, high = times.intervals[i, j]
        return "" if i == j else f"{times.times[i, j]:.4g} ({low:.3g}…{high:.3g})"

    names, numbers = [str(label + 1) for label in times.labels], range(len(times.labels))
    rows = [[names[i], *(cell(i, j) for j in numbers)] for i in numbers]
    print_table(["from state", *(f"to {name}" for name in names)], rows)
    missing = [str(k + 1) for k in range(n_states) if k not in times.labels]
    if missing:
        notes = [*notes, f"no row is in the core of state {', '.join(missing)}; use fewer --states."]
    for note in notes:
        print_warning(note)


def _other_distribution(fitted: ModeTransformer, modes: np.ndarray, weight: np.ndarray | None) -> tuple[str, ...]:
    """Return a sentence if rows are distributed differently from the samples of the fit, where modes have mean 0."""
    import numpy as np

    if weight is None and fitted.moments_.weighted:
        return (
            "The model was fitted with weights, but these rows have none: populations refer to the unweighted rows. If "
            "they come from a biased simulation, give --weights.",
        )
    mean = np.average(modes, axis=0, weights=weight)
    worst = int(np.argmax(np.abs(mean)))
    if abs(mean[worst]) <= FAR:
        return ()
    return (
        f"These rows are not distributed as the samples of the fit: the mean of mode {worst + 1} is {mean[worst]:.2f} "
        "instead of 0. Populations refer to these rows.",
    )
