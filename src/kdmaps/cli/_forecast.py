"""`kdmaps forecast`."""

from pathlib import Path
from typing import Annotated, Any

from kdmaps.cli._app import app, print_table, say
from kdmaps.cli._models import load_modes, require_table, select_columns, write_table
from kdmaps.cli._options import (
    OUTPUT,
    TRAJECTORY,
    Files,
    ForceOption,
    HelpAllOption,
    ModelArgument,
    check_outputs,
    option,
    require,
    split_names,
    with_files,
)

#: Lags that are forecast by default.
LAGS = (1, 2, 5, 10, 20, 50)


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
    help_all: HelpAllOption = False,
) -> None:
    """Forecast columns from the last row of each trajectory, with error bars and the horizon."""
    require_table(out, ("csv", "parquet", "npz"))
    import numpy as np

    from kdmaps.cli._reading import groups_of, open_files, time_step_of
    from kdmaps.data import ArraySource, gather, make_writer
    from kdmaps.data.correlation import trajectories_of
    from kdmaps.dynamics import forecast as forecast_observables
    from kdmaps.estimators.model_files import read_header
    from kdmaps.summary import with_unit
    from kdmaps.utils.progress import reporting, stage

    make_writer(out.suffix.lower())  # raises before the work if a package is missing
    check_outputs(force, out)
    fitted = load_modes(model)
    require(fitted.lag_ is not None, "MODEL", "this model was fitted without --lag; fit one with --lag.")
    times = _times(time, fitted.modes_.clock.duration)
    table = open_files(files)
    samples = select_columns(fitted, table, files)
    X, names = gather(samples), samples.feature_names or list(getattr(fitted, "feature_names_in_", []))
    groups = groups_of(files, table, len(X))
    time_step_of(files, table, groups)
    observed, names = (X, names) if values is None else (gather(table.select(values)), split_names(values))
    names = list(names) if len(names) == observed.shape[1] else [f"x{j + 1}" for j in range(observed.shape[1])]
    last = np.array([rows[-1] for rows in trajectories_of(groups, len(X))])
    with reporting(True), stage("forecasts of held-out blocks", True):
        found = forecast_observables(fitted, ArraySource(X), observed, times, at=ArraySource(X[last]), groups=groups)
    unit = read_header(model).get("unit") or ("rows" if fitted.modes_.clock.time_step == 1 else None)
    titles, rows = found.cells()
    one = len(last) == 1  # forecasts of several trajectories are in the file only
    shown = [[row[0], *(_cells(found, i) if one else []), *row[1:]] for i, row in enumerate(rows)]
    after = [title.replace("/", " / ") for title in titles[1:]]
    print_table([with_unit("time", unit), *(names if one else []), *after], shown)
    say(found.outcome)
    columns = [name for each in names for name in (each, f"{each}_error")]
    numbers = np.stack([found.values, found.errors], axis=-1).reshape(len(times) * len(last), -1)
    places: dict[str, Any] = {"time": np.repeat(found.times, len(last)), "row": np.tile(last, len(times))}
    write_table(out, numbers, columns, places)
    say(f"Written: {out}")


def _times(text: str | None, lag: float) -> list[float]:
    """Return ascending times: as given, or multiples of the lag."""
    if text is None:
        return [k * lag for k in LAGS]
    try:
        return sorted({float(part) for part in text.split(",")})
    except ValueError:
        require(False, "--time", f"{text!r} is not a list of numbers such as 0.5,1,2.")
        raise


def _cells(found: Any, i: int) -> list[str]:
    return [f"{value:.4g} ± {error:.2g}" for value, error in zip(found.values[i, 0], found.errors[i, 0], strict=True)]
