"""`kdmaps fit`."""

from __future__ import annotations

import shlex
import sys
import warnings
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.console import Console
from sklearn.model_selection import GroupKFold

from kdmaps.cli._app import app
from kdmaps.cli._models import mode_names, print_warning, table_of
from kdmaps.cli._options import KERNEL, OUTPUT, TRAJECTORY, HelpAllOption, in_options, require
from kdmaps.cli._reading import Files, Samples, with_files
from kdmaps.data import TABLE_FORMATS, make_writer
from kdmaps.data.check import find_time
from kdmaps.data.correlation import order_of
from kdmaps.diagnostics.independence import IndependentModes, independent_modes
from kdmaps.diagnostics.resampling import MIN_RESAMPLES
from kdmaps.dynamics import Validation, validate
from kdmaps.estimators.adaptive import AdaptiveDiffusionMap
from kdmaps.estimators.kernel_map import KernelDiffusionMap
from kdmaps.estimators.model_files import write_model
from kdmaps.estimators.search import KernelSearchCV
from kdmaps.exceptions import DataWarning
from kdmaps.kernels import FAMILIES
from kdmaps.report import render_report
from kdmaps.report.text import implied_table, lag_sentences
from kdmaps.selection.folds import BLOCKS, FOLDS, blocks_of
from kdmaps.selection.plan import RATES
from kdmaps.summary import describe_independence, summarise
from kdmaps.uncertainty import Uncertainty, bootstrap
from kdmaps.utils.files import check_writable, replacing
from kdmaps.utils.progress import reporting, stage

#: Basis functions of `--basis`.
BASES = ("auto", "fourier", "landmarks")


@app.command()
@with_files()
def fit(
    files: Files,
    lag: Annotated[
        str | None,
        typer.Option(
            metavar="N|auto",
            help="Rows are a trajectory: use pairs N rows apart.",
            rich_help_panel=TRAJECTORY,
        ),
    ] = None,
    time_step: Annotated[
        float | None,
        typer.Option(min=0, metavar="T", help="Time between rows, with --lag.", rich_help_panel=TRAJECTORY),
    ] = None,
    unit: Annotated[
        str | None, typer.Option(metavar="UNIT", help="Unit of the time step, such as ps.", rich_help_panel=TRAJECTORY)
    ] = None,
    ordered: Annotated[
        bool | None,
        typer.Option(
            help="Without --lag: whether rows are in the order of time; folds are then blocks. (default: noticed)",
            rich_help_panel=TRAJECTORY,
            hidden=True,
        ),
    ] = None,
    keep_columns: Annotated[
        bool,
        typer.Option(
            "--keep-columns",
            help="Fit a column even if it looks like a time or an index.",
            rich_help_panel=KERNEL,
            hidden=True,
        ),
    ] = False,
    modes: Annotated[int, typer.Option(min=1, metavar="N", help="Number of modes.", rich_help_panel=KERNEL)] = 4,
    kernel: Annotated[
        str, typer.Option(help=f"auto, {', '.join(FAMILIES)}.", rich_help_panel=KERNEL, hidden=True)
    ] = "auto",
    bandwidth: Annotated[
        float | None,
        typer.Option(min=0, help="Bandwidth of the kernel. (default: searched)", rich_help_panel=KERNEL, hidden=True),
    ] = None,
    regularization: Annotated[
        float | None,
        typer.Option(
            "--lambda", min=0, help="Regularization λ. (default: searched)", rich_help_panel=KERNEL, hidden=True
        ),
    ] = None,
    basis: Annotated[
        str,
        typer.Option(
            help=f"Basis functions: {', '.join(BASES)}; only fourier is for PLUMED.",
            rich_help_panel=KERNEL,
            hidden=True,
        ),
    ] = "auto",
    features: Annotated[
        int, typer.Option(min=2, help="Number of basis functions.", rich_help_panel=KERNEL, hidden=True)
    ] = 300,
    rates: Annotated[
        str,
        typer.Option(
            help=f"Samples that rates are read from: {' (all) or '.join(RATES)} (held-out).",
            rich_help_panel=KERNEL,
            hidden=True,
        ),
    ] = "ritz",
    independent: Annotated[
        bool,
        typer.Option(
            "--independent",
            help="Tell modes that are new coordinates from functions of earlier modes.",
            rich_help_panel=KERNEL,
            hidden=True,
        ),
    ] = False,
    seed: Annotated[
        int,
        typer.Option(min=0, help="Seed; the same seed gives the same results.", rich_help_panel=KERNEL, hidden=True),
    ] = 0,
    resamples: Annotated[
        int,
        typer.Option(
            min=0,
            help="Resamples of the block bootstrap for the error bars: 0 for none, else 20 or more.",
            rich_help_panel=OUTPUT,
            hidden=True,
        ),
    ] = 200,
    out: Annotated[
        Path, typer.Option(file_okay=False, metavar="DIR", help="Directory of the results.", rich_help_panel=OUTPUT)
    ] = Path("kdmaps-fit"),
    table_format: Annotated[
        str,
        typer.Option(
            "--table", help=f"Format of the modes: {', '.join(TABLE_FORMATS)}.", rich_help_panel=OUTPUT, hidden=True
        ),
    ] = "csv",
    help_all: HelpAllOption = False,
) -> None:
    """Find the slow modes of samples, and write model.npz, the modes and report.html."""
    require(table_format in TABLE_FORMATS, "--table", f"{table_format!r} is none of {', '.join(TABLE_FORMATS)}.")
    require(kernel in ("auto", *FAMILIES), "--kernel", f"{kernel!r} is none of auto, {', '.join(FAMILIES)}.")
    require(basis in BASES, "--basis", f"{basis!r} is none of {', '.join(BASES)}.")
    require(rates in RATES, "--rates", f"{rates!r} is none of {', '.join(RATES)}.")
    require(bandwidth != 0, "--bandwidth", "give a positive number, or leave it out to have it searched.")
    require(regularization != 0, "--lambda", "give a positive number, or leave it out to have it searched.")
    _check_time(lag, time_step, unit)
    require(
        lag is None or files.weights is None,
        "--lag",
        "frames of a biased simulation follow one another as the bias wants, and --weights cannot mend that. Leave out "
        "--lag: with --weights, time scales come from the samples. (Runs without a bias that begin out of equilibrium: "
        "fit with lag and sample_weight in Python.)",
    )
    require(resamples == 0 or resamples >= MIN_RESAMPLES, "--resamples", f"give 0, or {MIN_RESAMPLES} or more.")
    write_modes = make_writer(f".{table_format}")  # which may need a package that is missing
    check_writable("--out", out)
    files = replace(files, timed=lag is not None)
    samples = files.read()
    console = Console()
    console.print(f"{files.name}, {samples.describe()}", highlight=False, soft_wrap=True, markup=False)
    _check_modes(modes, features, len(samples.X))
    time = None if keep_columns else find_time(samples.X, samples.group, samples.names)
    if time is not None:
        raise ValueError(f"{time} If it is a coordinate all the same, add --keep-columns.")
    step, unit = _step(samples, time_step, files.stride, unit)
    settings = {
        "n_features": features,
        "diffusion": samples.diffusion,
        "rates": rates,
        "cv": _folds(samples, ordered) if lag is None else "auto",
        "random_state": seed,
        "lag": _lag(lag),
        "time_step": 1.0 if lag is None else step,
        **({} if basis == "auto" else {"basis": basis}),
    }
    estimator = _estimator(modes, kernel, bandwidth, regularization, settings)
    with reporting(True):
        findings = _find(console, estimator, samples, resamples, seed, independent)
    _print(console, estimator, findings, unit)
    page = _page(estimator, files, samples, findings, unit)
    paths = [out / name for name in ("model.npz", f"modes.{table_format}", "report.html")]
    out.mkdir(parents=True, exist_ok=True)
    with replacing(*paths) as (model_file, modes_file, report_file):
        write_model(estimator, model_file, unit)
        write_modes(modes_file, findings.modes, mode_names(modes), samples.places)
        report_file.write(page.encode())
    console.print(f"Written: {', '.join(map(str, paths))}", highlight=False, soft_wrap=True)


def _check_modes(modes: int, features: int, n_samples: int) -> None:
    """Refuse more modes than the samples or the features can have."""
    require(
        modes < n_samples,
        "--modes",
        f"{n_samples} samples cannot show {modes} modes; each one needs hundreds. Ask for a few (--modes 4).",
    )
    require(
        modes <= features,
        "--modes",
        f"{modes} modes need as many features, here {features}; ask for fewer, or increase --features.",
    )


def _check_time(lag: str | None, time_step: float | None, unit: str | None) -> None:
    """Raise an error for a time step or a unit that no trajectory has."""
    require(time_step is None or 0 < time_step < np.inf, "--time-step", "give a positive number.")
    require(lag is not None or time_step is None, "--time-step", "time needs a trajectory: add --lag.")
    require(
        lag is not None or unit is None,
        "--unit",
        "time scales of samples are in units of length²/D; a unit of time is that of a trajectory, with --lag.",
    )


class _Findings(NamedTuple):
    """Modes at the samples, error bars, tests of a lag, which modes are new coordinates; warnings of data and modes."""

    modes: np.ndarray
    uncertainty: Uncertainty | None
    tests: Validation | None
    independence: IndependentModes | None
    of_data: list[str]
    of_modes: list[str]


def _find(
    console: Console, estimator: Any, samples: Samples, resamples: int, seed: int, independent: bool
) -> _Findings:
    """Fit the estimator, and resample for error bars; what the data check finds is shown before the fit."""
    uncertainty, source = None, samples.source
    told: dict[str, type[Warning]] = {}

    def hear(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, UserWarning) and str(message) not in told:
            told[str(message)] = category
            if issubclass(category, DataWarning):
                print_warning(console, str(message))

    for note in samples.notes:
        hear(note, DataWarning)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = hear
        beside: dict[str, Any] = {"sample_weight": samples.weight, "groups": samples.group}
        estimator.fit(source, **beside)
        if resamples:
            with stage("error bars", True):
                uncertainty = bootstrap(estimator, source, **beside, n_resamples=resamples, random_state=seed)
        modes = np.asarray(estimator.transform(source))
        tests = None
        with suppress(ValueError), stage("tests of the lag", estimator.lag_ is not None):  # no lag, or too few frames
            tests = validate(estimator, source, **beside)
    choice = getattr(estimator, "lag_choice_", None)
    if choice is not None and tests is not None:  # the fitted model is judged, not the cheap one that chose the lag
        told.pop(str(choice.why_not_flat), None)
    data = [text for text, category in told.items() if issubclass(category, DataWarning)]
    new = independent_modes(modes, sample_weight=samples.weight, random_state=seed) if independent else None
    return _Findings(modes, uncertainty, tests, new, data, [text for text in told if text not in data])


def _page(estimator: Any, files: Files, samples: Samples, findings: _Findings, unit: str | None) -> str:
    """Render report.html."""
    return render_report(
        estimator,
        samples.X,
        sample_weight=samples.weight,
        groups=samples.group,
        uncertainty=findings.uncertainty,
        unit=unit,
        validation=findings.tests,
        independence=findings.independence,
        notes=[*findings.of_data, *findings.of_modes],
        title=files.name,
        feature_names=samples.names,
        command=shlex.join(["kdmaps", *sys.argv[1:]]),
        reading=files.program(),
        draw=samples.drawn or None,
    )


def _lag(text: str | None) -> int | str | None:
    """Return the lag that an option gives."""
    if text is None or text == "auto":
        return text
    require(text.isdecimal() and int(text) > 0, "--lag", f"{text!r} is neither auto nor a positive number of rows.")
    return int(text)


def _step(samples: Samples, given: float | None, stride: int, unit: str | None) -> tuple[float, str | None]:
    """Return the time between the rows that are used, and its unit: those given, or those of a trajectory file."""
    if given is None and samples.time_step is not None:
        return samples.time_step, "ps" if unit is None else unit
    return (1.0 if given is None else given) * stride, unit


def _folds(samples: Samples, ordered: bool | None) -> Any:
    """Keep samples that depend on one another, by time or by trajectory, on the same side of a split."""
    if samples.group is not None:
        count = len(np.unique(samples.group))
        if count < 2:
            raise ValueError("--groups names one group only; held-out groups need two or more. Leave it out.")
        return GroupKFold(min(BLOCKS, count))
    if ordered is None:
        ordered = samples.ordered or None
    return "auto" if ordered is None else blocks_of(order_of(samples.X), len(samples.X)) if ordered else FOLDS


def _estimator(
    n_modes: int, kernel: str, bandwidth: float | None, regularization: float | None, settings: dict[str, Any]
) -> Any:
    """Return the estimator that searches for everything that was not given."""
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


def _print(console: Console, estimator: Any, findings: _Findings, unit: str | None) -> None:
    summary = summarise(estimator, unit=unit, intervals=findings.uncertainty, tests=findings.tests)
    console.print(table_of(summary.columns, summary.rows))
    console.print(in_options(summary.time_unit), highlight=False, soft_wrap=True, markup=False)
    if findings.tests is not None:
        console.print(table_of(*implied_table(findings.tests, unit)))
    if summary.lag is not None:
        for reason in lag_sentences(summary, findings.tests):
            if reason not in findings.of_modes:  # said once, as a warning
                console.print(f"  {reason}", highlight=False, soft_wrap=True, markup=False)
    console.print(f"Chosen: {summary.chosen}", highlight=False, soft_wrap=True, markup=False)
    for reason in summary.reasons:
        console.print(f"  {reason}", highlight=False, soft_wrap=True, markup=False)
    if findings.independence is not None:
        console.print(
            f"  {describe_independence(findings.independence)}", highlight=False, soft_wrap=True, markup=False
        )
    for warning in findings.of_modes:
        print_warning(console, warning)
