"""`kdmaps fit`."""

from __future__ import annotations

import shlex
import sys
import warnings
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from sklearn.model_selection import GroupKFold

from kdmaps.analysis.uncertainty import MIN_RESAMPLES, Uncertainty, bootstrap
from kdmaps.cli._app import app
from kdmaps.cli._models import describe, mode_names, places_of, shorten, timescale_table, units
from kdmaps.cli._options import ArrayOption, ColumnsOption, DataArgument, DescriptorOption, StrideOption, TopologyOption
from kdmaps.data import TABLE_FORMATS, gather, make_writer, open_tables, read_column
from kdmaps.estimators.adaptive import AdaptiveDiffusionMap
from kdmaps.estimators.kernel_map import RATES, KernelDiffusionMap
from kdmaps.estimators.search import KernelSearchCV
from kdmaps.exceptions import DataWarning, UnreliableModesWarning
from kdmaps.forms.diffusion import DiffusionTensor
from kdmaps.kernels import FAMILIES
from kdmaps.output.model_files import write_model
from kdmaps.output.report import render_report
from kdmaps.output.words import chosen, reasons
from kdmaps.selection.folds import BlockedKFold
from kdmaps.utils.files import check_writable, replacing

#: Folds of consecutive samples, or of groups.
BLOCK_FOLDS = 5
#: Fewer samples than this are a stride that is too long, and tell nothing of the order of rows.
MIN_SAMPLES = 10
#: Rows that tell a time from a coordinate.
LOOKED_AT = 10_000


@app.command()
def fit(
    data: DataArgument,
    columns: ColumnsOption = None,
    stride: StrideOption = 1,
    array: ArrayOption = None,
    weights: Annotated[str | None, typer.Option(help="Weights of the samples: a column, or a file of one.")] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            help="Which trajectory a sample belongs to: a column, or a file of one. (default: each file is one)"
        ),
    ] = None,
    ordered: Annotated[
        bool | None,
        typer.Option(
            help="Whether rows are in the order of time; folds are then blocks. (default: for trajectories only)"
        ),
    ] = None,
    modes: Annotated[int, typer.Option(min=1, help="Number of modes.")] = 4,
    kernel: Annotated[str, typer.Option(help=f"auto, {', '.join(FAMILIES)}.")] = "auto",
    bandwidth: Annotated[float | None, typer.Option(min=0, help="Bandwidth of the kernel. (default: searched)")] = None,
    regularization: Annotated[
        float | None, typer.Option("--lambda", min=0, help="Regularization λ. (default: searched)")
    ] = None,
    features: Annotated[int, typer.Option(min=2, help="Number of basis functions.")] = 300,
    diffusion: Annotated[
        str | None,
        typer.Option(
            help="Diffusion tensor: a number, a diagonal as in 1,0.5, tangent, or a .npy file of one matrix or one per "
            "row. (default: identity)"
        ),
    ] = None,
    rates: Annotated[
        str, typer.Option(help=f"Where rates are read: {' or '.join(RATES)} (held-out samples).")
    ] = "ritz",
    resamples: Annotated[
        int,
        typer.Option(
            min=0, help="Resamples of the block bootstrap behind the error bars: 0 for none, else 20 or more."
        ),
    ] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same answer.")] = 0,
    out: Annotated[Path, typer.Option(file_okay=False, help="Directory of the results.")] = Path("kdmaps-fit"),
    table_format: Annotated[
        str, typer.Option("--table", help=f"Format of the modes: {', '.join(TABLE_FORMATS)}.")
    ] = "csv",
    topology: TopologyOption = None,
    descriptor: DescriptorOption = "heavy-atoms",
) -> None:
    """Find the slow modes of samples, and write model.npz, the modes and report.html."""
    _require(table_format in TABLE_FORMATS, "--table", f"{table_format!r} is none of {', '.join(TABLE_FORMATS)}.")
    _require(kernel in ("auto", *FAMILIES), "--kernel", f"{kernel!r} is none of auto, {', '.join(FAMILIES)}.")
    _require(rates in RATES, "--rates", f"{rates!r} is none of {', '.join(RATES)}.")
    _require(bandwidth != 0, "--bandwidth", "give a positive number, or leave it out to have it searched.")
    _require(regularization != 0, "--lambda", "give a positive number, or leave it out to have it searched.")
    _require(modes <= features, "--modes", f"{modes} modes need as many features; increase --features.")
    _require(resamples == 0 or resamples >= MIN_RESAMPLES, "--resamples", f"give 0, or {MIN_RESAMPLES} or more.")
    write_modes = make_writer(f".{table_format}")
    check_writable("--out", out)
    table = open_tables(data, array=array, stride=stride, topology=topology, descriptor=descriptor)
    roles = {"--weights": weights, "--groups": groups}
    samples = table.select(columns, leave_out=[where for where in roles.values() if where is not None])
    beside = {name: None if where is None else read_column(where, table, name, stride) for name, where in roles.items()}
    X = gather(samples)
    for name, column in beside.items():
        if column is not None and len(column) != len(X):
            raise ValueError(f"{name}: {roles[name]} has {len(column)} rows, but {describe(data)} has {len(X)}.")
    if stride > 1 and len(X) < MIN_SAMPLES:
        raise ValueError(f"--stride {stride} leaves {len(X)} samples; take a smaller one.")
    places = places_of(table, len(X), stride)
    weight, group = beside["--weights"], beside["--groups"]
    if group is not None:
        group = group.astype(str) if group.dtype.kind == "O" else group
        places["group"] = group
    elif table.lengths:
        group = np.asarray(places["file"])
    if weight is not None and (weight.dtype.kind not in "fiub" or np.any(weight < 0)):
        raise ValueError(f"--weights: {weights} has entries that are no weights; they must be numbers, 0 or more.")
    settings = {
        "n_features": features,
        "diffusion": _diffusion(diffusion, stride, *X.shape),
        "rates": rates,
        "cv": _folds(group, table.ordered if ordered is None else ordered),
        "random_state": seed,
    }
    estimator = _estimator(modes, kernel, bandwidth, regularization, settings)

    console = Console()
    known = samples.feature_names
    shown = shorten(known) if known else f"{X.shape[1]} columns" if X.shape[1] > 1 else "1 column"
    heading = f"{describe(data)}, {len(X)} samples of {shown}"
    console.print(heading, highlight=False, soft_wrap=True, markup=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _warn_of_time(X if group is None else X[: _first_run(group)], known)
        _fit_or_stop(estimator, X, weight, group)
        uncertainty = None
        if resamples:
            with Console(stderr=True).status("error bars"):
                uncertainty = bootstrap(
                    estimator, X, sample_weight=weight, groups=group, n_resamples=resamples, random_state=seed
                )
    complaints = list(dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, UserWarning)))
    values = np.asarray(estimator.transform(X))
    if known is not None:
        for model in (estimator, getattr(estimator, "best_estimator_", estimator)):
            model.feature_names_in_ = np.array(known, dtype=object)
    _print(console, estimator, uncertainty, complaints)

    names = ("model.npz", f"modes.{table_format}", "report.html")
    page = render_report(
        estimator,
        X,
        sample_weight=weight,
        groups=group,
        uncertainty=uncertainty,
        notes=complaints,
        title=describe(data),
        feature_names=known,
        command=shlex.join(["kdmaps", *sys.argv[1:]]),
        reading=_reading(
            data,
            stride,
            {"array": array, **({} if topology is None else {"topology": str(topology), "descriptor": descriptor})},
            columns,
            {"sample_weight": weights, "groups": groups},
            diffusion,
        ),
    )
    out.mkdir(parents=True, exist_ok=True)
    with replacing(*(out / name for name in names)) as (model_file, modes_file, report_file):
        write_model(estimator, model_file)
        write_modes(modes_file, values, mode_names(values.shape[1]), places)
        report_file.write(page.encode())
    console.print(f"Written: {', '.join(str(out / name) for name in names)}", highlight=False, soft_wrap=True)


def _require(condition: bool, option: str, message: str) -> None:
    if not condition:
        raise typer.BadParameter(message, param_hint=option)


def _folds(groups: np.ndarray | None, ordered: bool) -> Any:
    """Samples that know of one another, by time or by trajectory, belong on the same side of a split."""
    if groups is not None:
        count = len(np.unique(groups))
        if count < 2:
            raise ValueError("--groups names one group only; held-out groups need two or more. Leave it out.")
        return GroupKFold(min(BLOCK_FOLDS, count))
    return BlockedKFold(BLOCK_FOLDS) if ordered else 3


def _diffusion(text: str | None, stride: int, n_samples: int, n_columns: int) -> Any:
    """The diffusion tensor that an option describes; a tensor per row of the file is thinned as the rows are."""
    if text in (None, "tangent"):
        return text
    try:
        if text.endswith(".npy"):
            array = np.load(text, mmap_mode="r", allow_pickle=False)
            value = array[::stride] if array.ndim == 3 else array
        else:
            numbers = [float(part) for part in text.split(",")]
            value = numbers if len(numbers) > 1 else numbers[0]
        DiffusionTensor(value, n_columns).check_rows(n_samples)
    except (OSError, EOFError, ValueError) as error:
        words = get_close_matches(text, ["tangent"])
        reason = f"did you mean {words[0]}?" if words else error
        raise ValueError(
            f"--diffusion {text}: {reason} Give a number, one number per column as in 1,0.5, tangent, or a .npy file "
            f"of shape ({n_columns}, {n_columns}) or (rows, {n_columns}, {n_columns})."
        ) from error
    return value


def _reading(
    data: list[Path],
    stride: int,
    options: dict[str, str | None],
    columns: str | None,
    beside: dict[str, str | None],
    diffusion: str | None,
) -> str:
    """Lines of Python that read what this command has read: the samples, what is given beside them, and a tensor."""

    def call(function: str, *arguments: str | list[str], **keywords: Any) -> str:
        given = (f"{name}={value!r}" for name, value in keywords.items() if value not in (None, 1, []))
        return f"{function}({', '.join([*map(repr, arguments), *given])})"

    roles = {name: where for name, where in beside.items() if where is not None}
    samples = call("table.select", columns=columns, leave_out=[*roles.values()])
    opening = "open_table" if len(data) == 1 else "open_tables"
    paths = str(data[0]) if len(data) == 1 else [*map(str, data)]
    lines = [
        f"from kdmaps.data import gather, {opening}{', read_column' if roles else ''}",
        f"table = {call(opening, paths, stride=stride, **options)}",
        f"X = gather({samples})",
        *(f"{name} = read_column({where!r}, table, {name!r}, {stride})" for name, where in roles.items()),
    ]
    by_file = len(data) > 1 and "groups" not in roles
    if by_file or str(diffusion).endswith(".npy"):
        lines.append("import numpy as np")
    if by_file:
        lines.append(f"groups = np.repeat(np.arange({len(data)}), table.lengths)[::{stride}]")
    if str(diffusion).endswith(".npy"):
        lines += [f"diffusion = np.load({diffusion!r}, mmap_mode='r')"]
        if stride > 1:
            lines.append(f"diffusion = diffusion[::{stride}] if diffusion.ndim == 3 else diffusion")
    return "\n".join(lines)


def _estimator(n_modes: int, kernel: str, bandwidth, regularization, settings: dict[str, Any]) -> Any:
    """What searches for everything that was not given."""
    if kernel != "auto" and bandwidth is not None and regularization is not None:
        return KernelDiffusionMap(
            n_modes, kernel=kernel, bandwidth=bandwidth, regularization=regularization, **settings
        )
    if kernel != "auto":
        settings["families"] = (kernel,)
    if regularization is not None:
        settings["regularizations"] = (regularization,)
    if bandwidth is None:
        return AdaptiveDiffusionMap(n_modes, progress=True, **settings)
    return KernelSearchCV(n_modes, bandwidths=[bandwidth], progress=True, **settings)


def _fit_or_stop(estimator: Any, X: np.ndarray, weight: np.ndarray | None, groups: np.ndarray | None) -> None:
    # After Ctrl-C the library fits the best candidate so far to all samples; a command was stopped.
    warnings.filterwarnings("error", "Interrupted: the search ends")
    try:
        estimator.fit(X, sample_weight=weight, groups=groups)
    except UnreliableModesWarning:
        raise KeyboardInterrupt from None


def _first_run(group: np.ndarray) -> int:
    """How many samples at the beginning belong to the same group."""
    other = np.flatnonzero(group[:LOOKED_AT] != group[0])
    return int(other[0]) if other.size else len(group)


def _warn_of_time(X: np.ndarray, names: list[str] | None) -> None:
    """Warn of columns that only rise or only fall along the first rows of a trajectory."""
    steps = np.diff(np.asarray(X[:LOOKED_AT], dtype=np.float64), axis=0)
    if X.shape[1] < 2 or len(steps) < MIN_SAMPLES:
        return
    monotone = np.flatnonzero((steps > 0).all(axis=0) | (steps < 0).all(axis=0))
    if monotone.size:
        named = shorten([names[j] if names else str(j) for j in monotone])
        warnings.warn(
            f"Column {named} only rises, or only falls, from row to "
            "row, as a time or an index does. If it is no coordinate, choose the others with --columns.",
            DataWarning,
            stacklevel=2,
        )


def _print(console: Console, estimator: Any, uncertainty: Uncertainty | None, complaints: list[str]) -> None:
    console.print(timescale_table(estimator, uncertainty))
    console.print(units(estimator), highlight=False, soft_wrap=True)
    console.print(f"Chosen: {chosen(estimator)}", highlight=False, soft_wrap=True, markup=False)
    for reason in reasons(estimator):
        console.print(f"  {reason}", highlight=False, soft_wrap=True, markup=False)
    for complaint in complaints:
        console.print(f"Warning: {complaint}", style="yellow", highlight=False, soft_wrap=True, markup=False)
