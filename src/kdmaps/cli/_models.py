"""`kdmaps transform`, `inspect`, `compare`, `states` and `forecast`: stored models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import kdmaps
from kdmaps.cli._app import app, print_note, print_table, print_warnings, say
from kdmaps.cli._options import (
    OUTPUT,
    TABLE_FORMATS,
    TRAJECTORY,
    Files,
    ForceOption,
    ModelArgument,
    check_outputs,
    existing,
    option,
    require,
    split_names,
    with_files,
)
from kdmaps.utils.numbers import rounded
from kdmaps.utils.progress import reporting, stage

if TYPE_CHECKING:
    import numpy as np

    from kdmaps.checks import Check
    from kdmaps.data import ArraySource, Source, Table
    from kdmaps.dynamics import CoarseStates, Metastability, PassageTimes
    from kdmaps.estimators.transformer import ModeTransformer

#: Rows differ from the samples of the fit if the mean of a mode exceeds this number of standard deviations.
FAR = 0.25
#: Lags that are forecast by default.
LAGS = (1, 2, 5, 10, 20, 50)
#: Formats whose columns have names.
NAMED_FORMATS = ("csv", "parquet", "npz")


@app.command()
@with_files("weights", "groups", "diffusion", "draw")
def transform(
    model: ModelArgument,
    files: Files,
    out: Annotated[
        Path | None,
        option(
            OUTPUT, "File of the modes, or of q: .csv, .parquet, .npy or .npz. (default: modes.csv or committor.csv)"
        ),
    ] = None,
    reference: Annotated[
        Path | None, option(TRAJECTORY, "Trajectory of the fit, or the first of several.", exists=True, dir_okay=False)
    ] = None,
    force: ForceOption = False,
) -> None:
    """Evaluate the modes or the committor of a stored model at new samples."""
    if out is not None:
        _require_table(out, force)
    import numpy as np

    from kdmaps.cli._reading import open_files, places_of

    fitted = kdmaps.load(model)
    q = is_committor(fitted)
    if out is None:
        out = Path("committor.csv" if q else "modes.csv")
        _require_table(out, force)
    table = open_files(files, reference)
    if files.topology is not None and "atoms" in files.descriptor and reference is None:
        note = (
            f"atoms are superposed on the first frame of {files.data[0]}. If the model was fitted to another "
            "trajectory, give it with --reference; otherwise the coordinates differ from the fit."
        )
        print_note(note, error=True)
    samples = select_columns(fitted, table, files)
    out.parent.mkdir(parents=True, exist_ok=True)
    if out.suffix.lower() == ".npy" and not q:  # written in chunks, however large
        modes = fitted.transform(samples, out=out)
    else:
        rows = kdmaps.data.ArraySource(kdmaps.data.gather(samples))  # rows far from the fit are found in arrays only
        modes = np.asarray(fitted.predict(rows))[:, None] if q else fitted.transform(rows)
        names = ["q"] if q else list(fitted.get_feature_names_out())
        write_table(out, modes, names, places_of(files, table, len(modes)))
    say(f"{len(modes)} samples, {'q' if q else f'{modes.shape[1]} modes'}: {out}")


@app.command()
def inspect(model: ModelArgument) -> None:
    """Show time scales or rates, kernel, columns, checks and library versions of a stored model."""
    from kdmaps.estimators.model_files import read_header

    header, fitted = read_header(model), kdmaps.load(model)
    show = _inspect_committor if is_committor(fitted) else _inspect_modes
    kernel = show(fitted, header)
    names = header["feature_names_in"]
    say(f"Kernel: {kernel}")
    say(f"Columns: {header['n_features_in']}" + (f": {', '.join(names)}" if names else ""))
    print_table(*fitted.checks.cells())
    say("Made with: " + ", ".join(f"{name} {version}" for name, version in header["libraries"].items()))
    print_warnings(fitted.checks)


def _inspect_modes(fitted: Any, header: dict[str, Any]) -> str:
    """Print the time scales; return the kernel."""
    from kdmaps.summary import summarise

    summary = summarise(fitted, unit=header.get("unit"))
    say(f"{header['class']}, {summary.n_samples} samples: {summary.checks.headline()}")
    print_table(summary.columns, summary.rows)
    say(summary.time_unit)
    return summary.chosen


def _inspect_committor(fitted: Any, header: dict[str, Any]) -> str:
    """Print flux and rates; return the kernel."""
    from kdmaps.estimators.committor import quantity_rows
    from kdmaps.report.committor import chosen_kernel

    say(f"{header['class']}: {fitted.checks.headline()}")
    print_table(("", "value", "95 % interval"), quantity_rows(fitted))
    return chosen_kernel(fitted)


def is_committor(fitted: Any) -> bool:
    """Return whether a model is a committor."""
    return isinstance(fitted, kdmaps.AdaptiveCommittor)


def load_modes(path: Path) -> Any:
    """Read a model with modes; a committor is an error."""
    fitted = kdmaps.load(path)
    if is_committor(fitted):
        raise ValueError(f"{path} is a committor, but this command needs modes; make a model with kdmaps fit.")
    return fitted


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(metavar="A", callback=existing, help="A model.", show_default=False)],
    second: Annotated[
        Path,
        typer.Argument(metavar="B", callback=existing, help="Another model of the same columns.", show_default=False),
    ],
) -> None:
    """Compare two models: time scales, correlations of modes, and angles between the mode spaces.

    Modes are compared at the samples that both model files contain.
    """
    import numpy as np

    from kdmaps.estimators.model_files import read_header
    from kdmaps.summary import summarise

    a, b = load_modes(first), load_modes(second)
    points = _common_points(first, a, second, b)
    ours, theirs = (np.asarray(model.transform(kdmaps.data.ArraySource(points))) for model in (a, b))
    r = min(ours.shape[1], theirs.shape[1])
    correlations = kdmaps.metrics.correlation_table(ours, theirs)
    angles = np.degrees(kdmaps.metrics.principal_angles(ours[:, :r], theirs[:, :r]))
    for name, path, model in (("A", first, a), ("B", second, b)):
        summary = summarise(model, unit=read_header(path).get("unit"))
        say(f"{name}: {path}, {summary.chosen}")
        say(f"   {summary.time_unit}")
    rows = []
    for k in range(r):
        near = int(correlations[k].argmax())
        nearest = f"{correlations[k, near]:.3f} (mode {near + 1})"
        times = a.timescales_[k], b.timescales_[k]
        rows.append((str(k + 1), rounded(times[0]), rounded(times[1]), f"{times[1] / times[0]:.3g}",
                     f"{correlations[k, k]:.3f}", nearest, f"{angles[k]:.1f}°"))  # fmt: skip
    print_table(("mode", "time scale A", "time scale B", "B/A", "|corr|", "nearest mode of B", "principal angle"), rows)
    agreement = kdmaps.metrics.subspace_r2(ours[:, :r], theirs[:, :r])
    say(
        f"Agreement of the spaces of the first {r} modes: SubR² = {agreement:.4f} (1 means identical), at "
        f"{len(points)} samples of both fits."
    )
    if (a.lag_ is None) != (b.lag_ is None):
        say("One model is of a trajectory, the other of unordered samples: their time scales have different units.")


def _common_points(first: Path, a: Any, second: Path, b: Any) -> np.ndarray:
    """Return samples of both fits."""
    import numpy as np

    if a.n_features_in_ != b.n_features_in_:
        raise ValueError(
            f"{first} was fitted to {a.n_features_in_} columns and {second} to {b.n_features_in_}; only models of the "
            "same columns can be compared. Compare tables of modes with kdmaps.metrics.principal_angles."
        )
    names = [list(getattr(model, "feature_names_in_", [])) for model in (a, b)]
    if all(names) and names[0] != names[1]:
        raise ValueError(f"{first} was fitted to {', '.join(names[0])}, but {second} to {', '.join(names[1])}.")
    kept = [model.support_.samples for model in (a, b) if model.support_ is not None]
    if not kept:
        raise ValueError(f"{first} and {second} were written by an old version and contain no samples; fit again.")
    return np.concatenate(kept)


def _require_table(path: Path, force: bool, formats: tuple[str, ...] = TABLE_FORMATS) -> None:
    """Raise an error, before the work, unless a table can be written to a file of this name."""
    ending, endings = path.suffix.lower(), ", ".join(f".{name}" for name in formats)
    require(ending[1:] in formats, "--out", f"{path}: unknown ending {path.suffix!r}; use one of {endings}.")
    kdmaps.data.make_writer(ending)  # may need a package that is missing
    check_outputs(force, path)


def write_table(out: Path, values: np.ndarray, names: list[str], places: dict[str, Any]) -> None:
    """Write a table in the format of its ending, completely or not at all; `places` are its first columns."""
    from kdmaps.utils.files import replacing

    out.parent.mkdir(parents=True, exist_ok=True)
    with replacing(out) as (file,):
        kdmaps.data.make_writer(out.suffix.lower())(file, values, names, places)


def select_columns(fitted: Any, table: Table, files: Files) -> Source:
    """Select the columns that the model was fitted to: as given, or else by name, or else all."""
    from kdmaps.cli._reading import with_angles

    names = getattr(fitted, "feature_names_in_", None)
    if files.columns is None and names is not None and table.names is not None:
        made = {f"{f}({name})": name for name in split_names(files.angles) for f in ("cos", "sin")}
        names = list(dict.fromkeys(made.get(name, name) for name in names))
        missing = [name for name in names if name not in (*table.names, *table.extras)]
        if missing:
            raise ValueError(
                f"Columns of the fit are missing here: {', '.join(missing)}. Give the --descriptor, --angles "
                "and --columns of the fit, or rename columns."
            )
        return with_angles(files, table.select(names))
    samples = with_angles(files, table.select(files.columns, leave_out=files.left_out))
    if samples.n_features != fitted.n_features_in_:
        raise ValueError(
            f"The model was fitted to {fitted.n_features_in_} columns, but here are {samples.n_features}; select them "
            "with --columns."
        )
    samples.feature_names = None  # selected columns may have other names
    return samples


@app.command()
@with_files("diffusion", "draw")
def states(
    model: ModelArgument,
    files: Files,
    number: Annotated[
        int | None,
        option(OUTPUT, "Number of states. (default: as many as are separated)", "--states", min=2, metavar="N"),
    ] = None,
    passage_times: Annotated[
        bool,
        option(
            OUTPUT,
            "Print mean first passage times between the cores of states, and how metastable states are on held-out "
            "rows. The model needs a lag, and rows the time step of the fit.",
            "--passage-times",
        ),
    ] = False,
    later: Annotated[
        Path | None,
        option(
            TRAJECTORY,
            "Positions of the same particles, row by row, at the second time of a model fitted with --no-reversible: "
            "find coherent sets.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    out: Annotated[Path, option(OUTPUT, "State of each row: .csv, .parquet or .npz.", metavar="FILE")] = Path(
        "states.csv"
    ),
    force: ForceOption = False,
) -> None:
    """Assign samples to metastable states (clusters of the slow modes), or particles to coherent sets."""
    _require_table(out, force, NAMED_FORMATS)
    require(files.groups is None or passage_times, "--groups", "trajectories matter to --passage-times only.")
    biased = passage_times and files.weights is not None
    require(not biased, "--passage-times", "pairs of biased frames show the biased dynamics.")
    require(later is None or not passage_times, "--passage-times", "coherent sets (--later) have none.")
    import numpy as np

    from kdmaps.cli._reading import open_files, places_of, row_names, weights_of
    from kdmaps.estimators.model_files import read_header
    from kdmaps.report.text import TYPICAL, state_sentences, state_table

    fitted = load_modes(model)
    r = len(fitted.timescales_)
    n_states = kdmaps.dynamics.suggest_states(fitted) if number is None else number
    require(n_states <= 2**r, "--states", f"{r} mode(s) distinguish at most {2**r} states, not {n_states}.")
    timed = fitted.lag_ is not None or not passage_times
    require(timed, "--passage-times", "this model was fitted without --lag; fit one with --lag.")
    table = open_files(files)
    rows = _rows(fitted, table, files)
    weight, places = weights_of(files, table, len(rows.array)), places_of(files, table, len(rows.array))
    if later is not None:
        second = _rows(fitted, open_files(replace(files, data=[later])), files)
        sets = kdmaps.dynamics.coherent_sets(fitted, rows, second, n_states, sample_weight=weight)
        shown = [[f"{value:.4g}" for value in (row["set"], *list(row.values())[2:])] for row in sets.table()]
        print_table(["set", "share at first", "share later", "share that stays"], shown)
        first, last = sets.labels.T
        _write_states(out, sets.states.memberships[: len(first)], places, first, later=last + 1)
        return
    modes = np.asarray(fitted.transform(rows))
    found = kdmaps.dynamics.coarse_states(modes, n_states, sample_weight=weight, apart=fitted.rare_states(rows))
    passages = _passages(fitted, read_header(model), table, files, rows, found) if passage_times else None
    print_table(*state_table(found, found.representatives(rows.array, TYPICAL), row_names(files, places)))
    for sentence in (*_other_distribution(fitted, modes, weight), *state_sentences(found, fitted.rates_)):
        say(sentence)
    if passages is not None:
        _show_passages(*passages, fitted.modes_.clock.time_step, read_header(model).get("unit"))
    _write_states(out, found.memberships, places, found.labels)


def _write_states(out: Path, memberships: np.ndarray, places: dict[str, Any], labels: np.ndarray, **more: Any) -> None:
    """Write the state of each row, counted from 1, and its memberships."""
    names = [f"membership{k + 1}" for k in range(memberships.shape[1])]
    write_table(out, memberships, names, {**places, "state": labels + 1, **more})
    say(f"Written: {out}")


def _rows(fitted: Any, table: Table, files: Files) -> ArraySource:
    """Read the columns of the fit, without their names."""
    return kdmaps.data.ArraySource(kdmaps.data.gather(select_columns(fitted, table, files)))


def _passages(
    fitted: ModeTransformer,
    header: dict[str, Any],
    table: Table,
    files: Files,
    rows: ArraySource,
    found: CoarseStates,
) -> tuple[PassageTimes, Metastability]:
    """Return passage times between states and their metastability; raise unless rows are frames."""
    from kdmaps.checks import Checks, muted
    from kdmaps.cli._reading import groups_of, time_step_of

    groups = groups_of(files, table, len(rows.array))
    same_step = _same_step(fitted, header, files, time_step_of(files, table, groups))
    given: dict[str, Any] = {"groups": groups, "random_state": 0}
    with muted():
        times = kdmaps.dynamics.mean_first_passage_times(fitted, rows, found, **given)
        shares = kdmaps.dynamics.metastability(fitted, rows, found, **given)
    return replace(times, checks=Checks([same_step, *times.checks])), shares


def _same_step(fitted: Any, header: dict[str, Any], files: Files, step: float | None) -> Check:
    """Check the time between rows, or else the stride, against the fit."""
    from kdmaps.data.pairs import compare_steps

    fitted_step = float(fitted.modes_.clock.time_step)
    if step is None:
        step = fitted_step * files.stride / header.get("stride", files.stride)
    return compare_steps(step, fitted_step)


def _show_passages(times: PassageTimes, shares: Metastability, step: float, unit: str | None) -> None:
    """Print a table with one line for each initial state, a table of held-out shares, and the warnings."""
    unit = unit or ("rows" if step == 1 else "the unit of the time step")
    say(f"States on held-out rows ({shares.confidence:.0%} intervals), and the share that stays for one lag:")
    print_table(*shares.cells())
    shown = [", ".join(rounded(t) for t in part) for part in (shares.timescales, shares.mode_timescales)]
    say(f"Time scales of the Markov model of the states: {shown[0]}; of the modes: {shown[1]} ({unit}).")
    say(
        f"Mean first passage times between the cores of states, in {unit} ({times.confidence:.0%} intervals), for rows "
        f"{step:g} apart as in the fit:"
    )
    print_table(*times.cells())
    missing = [str(k + 1) for k in range(len(shares.populations)) if k not in times.labels]
    if missing:
        print_note(f"no row is in the core of state {', '.join(missing)}; use fewer --states.")
    print_warnings(times.checks)


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


@app.command()
@with_files("diffusion", "draw", "weights")
def forecast(
    model: ModelArgument,
    files: Files,
    time: Annotated[
        str | None,
        option(
            TRAJECTORY,
            "Times to forecast, multiples of the lag, as in 0.5,1,2. (default: 1 to 50 lags)",
            metavar="TIMES",
        ),
    ] = None,
    values: Annotated[
        str | None, option(OUTPUT, "Columns to forecast. (default: the columns of the fit)", metavar="NAMES")
    ] = None,
    out: Annotated[Path, option(OUTPUT, "Forecasts: .csv, .parquet or .npz.", metavar="FILE")] = Path("forecast.csv"),
    force: ForceOption = False,
) -> None:
    """Forecast columns from the last row of each trajectory, with error bars and the horizon."""
    _require_table(out, force, NAMED_FORMATS)
    import numpy as np

    from kdmaps.checks import Checks, muted
    from kdmaps.cli._reading import groups_of, open_files, time_step_of
    from kdmaps.data.correlation import trajectories_of
    from kdmaps.estimators.model_files import read_header
    from kdmaps.summary import with_unit

    fitted = load_modes(model)
    require(fitted.lag_ is not None, "MODEL", "this model was fitted without --lag; fit one with --lag.")
    try:
        known = None if time is None else sorted({float(part) for part in time.split(",")})
    except ValueError:
        raise typer.BadParameter(f"{time!r} is not a list of numbers such as 0.5,1,2.", param_hint="--time") from None
    times = [k * fitted.modes_.clock.duration for k in LAGS] if known is None else known
    table = open_files(files)
    samples = select_columns(fitted, table, files)
    X, names = kdmaps.data.gather(samples), samples.feature_names or list(getattr(fitted, "feature_names_in_", []))
    groups = groups_of(files, table, len(X))
    header = read_header(model)
    same_step = _same_step(fitted, header, files, time_step_of(files, table, groups))
    observed, names = (X, names) if values is None else (kdmaps.data.gather(table.select(values)), split_names(values))
    names = list(names) if len(names) == observed.shape[1] else [f"x{j + 1}" for j in range(observed.shape[1])]
    last = np.array([rows[-1] for rows in trajectories_of(groups, len(X))])
    with muted(), reporting(True), stage("forecasts of held-out blocks", True):
        rows, at = kdmaps.data.ArraySource(X), kdmaps.data.ArraySource(X[last])
        found = kdmaps.dynamics.forecast(fitted, rows, observed, times, at, groups=groups)
    unit = header.get("unit") or ("rows" if fitted.modes_.clock.time_step == 1 else None)
    titles, shown = found.cells()
    one = len(last) == 1  # forecasts of several trajectories are in the file only
    for row, own, errors in zip(shown, found.values[:, 0], found.errors[:, 0], strict=True):
        row[1:1] = [f"{value:.4g} ± {error:.2g}" for value, error in zip(own, errors, strict=True)] if one else []
    after = [title.replace("/", " / ") for title in titles[1:]]
    print_table([with_unit("time", unit), *(names if one else []), *after], shown)
    say(found.outcome)
    print_warnings(Checks([same_step, *found.checks]))
    columns = [name for each in names for name in (each, f"{each}_error")]
    numbers = np.stack([found.values, found.errors], axis=-1).reshape(len(times) * len(last), -1)
    places: dict[str, Any] = {"time": np.repeat(found.times, len(last)), "row": np.tile(last, len(times))}
    write_table(out, numbers, columns, places)
    say(f"Written: {out}")
