"""`kdmaps fit`."""

from __future__ import annotations

import shlex
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.console import Console
from sklearn.model_selection import GroupKFold

from kdmaps.analysis.uncertainty import MIN_RESAMPLES, Uncertainty, bootstrap
from kdmaps.cli._app import app
from kdmaps.cli._models import describe, mode_names, texts_of, timescale_table
from kdmaps.cli._options import (
    ArrayOption,
    ColumnsOption,
    DataArgument,
    DescriptorOption,
    HeaderOption,
    StrideOption,
    TopologyOption,
)
from kdmaps.cli._reading import Files, Samples
from kdmaps.data import TABLE_FORMATS, make_writer
from kdmaps.estimators.adaptive import AdaptiveDiffusionMap
from kdmaps.estimators.kernel_map import KernelDiffusionMap
from kdmaps.estimators.search import KernelSearchCV
from kdmaps.kernels import FAMILIES
from kdmaps.output.model_files import write_model
from kdmaps.output.report import render_report
from kdmaps.output.words import chosen, reasons, time_unit
from kdmaps.selection.folds import BlockedKFold
from kdmaps.selection.plan import RATES
from kdmaps.utils.files import check_writable, replacing

#: Folds of consecutive samples, or of groups.
BLOCK_FOLDS = 5


@app.command()
def fit(
    data: DataArgument,
    columns: ColumnsOption = None,
    stride: StrideOption = 1,
    array: ArrayOption = None,
    header: HeaderOption = None,
    weights: Annotated[str | None, typer.Option(help="Weights of the samples: a column, or a file with one.")] = None,
    groups: Annotated[
        str | None,
        typer.Option(help="Trajectory of each sample: a column, or a file with one. (default: each file is one)"),
    ] = None,
    ordered: Annotated[
        bool | None,
        typer.Option(
            help="Whether rows are in the order of time; folds are then blocks. (default: only for trajectories)"
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
        str, typer.Option(help=f"Samples that rates are read from: {' (all) or '.join(RATES)} (held-out).")
    ] = "ritz",
    resamples: Annotated[
        int,
        typer.Option(min=0, help="Resamples of the block bootstrap for the error bars: 0 for none, else 20 or more."),
    ] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Seed; the same seed gives the same results.")] = 0,
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
    write_modes = make_writer(f".{table_format}")  # which may need a package that is missing
    check_writable("--out", out)
    files = Files(data, columns, stride, array, header, weights, groups, diffusion, topology, descriptor)
    samples = files.read()
    settings = {
        "n_features": features,
        "diffusion": samples.diffusion,
        "rates": rates,
        "cv": _folds(samples.group, samples.ordered if ordered is None else ordered),
        "random_state": seed,
    }
    estimator = _estimator(modes, kernel, bandwidth, regularization, settings)
    console = Console()
    console.print(f"{describe(data)}, {samples.describe()}", highlight=False, soft_wrap=True, markup=False)
    findings = _find(estimator, samples, resamples, seed)
    _print(console, estimator, findings)
    page = _page(estimator, files, samples, findings)
    paths = [out / name for name in ("model.npz", f"modes.{table_format}", "report.html")]
    out.mkdir(parents=True, exist_ok=True)
    with replacing(*paths) as (model_file, modes_file, report_file):
        write_model(estimator, model_file)
        write_modes(modes_file, findings.modes, mode_names(modes), samples.places)
        report_file.write(page.encode())
    console.print(f"Written: {', '.join(map(str, paths))}", highlight=False, soft_wrap=True)


class _Findings(NamedTuple):
    """The modes at the samples, error bars, and what was warned of on the way."""

    modes: np.ndarray
    uncertainty: Uncertainty | None
    warnings: list[str]


def _find(estimator: Any, samples: Samples, resamples: int, seed: int) -> _Findings:
    """Fit the estimator, and resample for error bars."""
    uncertainty = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        samples.warn_of_time()
        beside: dict[str, Any] = {"sample_weight": samples.weight, "groups": samples.group}
        estimator.fit(samples.X, **beside)
        if resamples:
            with Console(stderr=True).status("error bars"):
                uncertainty = bootstrap(estimator, samples.X, **beside, n_resamples=resamples, random_state=seed)
    told = list(dict.fromkeys([*samples.notes, *texts_of(caught)]))
    modes = np.asarray(estimator.transform(samples.X))
    if samples.names is not None:
        for model in (estimator, getattr(estimator, "best_estimator_", estimator)):
            model.feature_names_in_ = np.array(samples.names, dtype=object)
    return _Findings(modes, uncertainty, told)


def _page(estimator: Any, files: Files, samples: Samples, findings: _Findings) -> str:
    """Render report.html."""
    return render_report(
        estimator,
        samples.X,
        sample_weight=samples.weight,
        groups=samples.group,
        uncertainty=findings.uncertainty,
        notes=findings.warnings,
        title=describe(files.data),
        feature_names=samples.names,
        command=shlex.join(["kdmaps", *sys.argv[1:]]),
        reading=files.program(),
    )


def _require(condition: bool, option: str, message: str) -> None:
    if not condition:
        raise typer.BadParameter(message, param_hint=option)


def _folds(groups: np.ndarray | None, ordered: bool) -> Any:
    """Keep samples that depend on one another, by time or by trajectory, on the same side of a split."""
    if groups is not None:
        count = len(np.unique(groups))
        if count < 2:
            raise ValueError("--groups names one group only; held-out groups need two or more. Leave it out.")
        return GroupKFold(min(BLOCK_FOLDS, count))
    return BlockedKFold(BLOCK_FOLDS) if ordered else 3


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


def _print(console: Console, estimator: Any, findings: _Findings) -> None:
    console.print(timescale_table(estimator, findings.uncertainty))
    console.print(time_unit(estimator), highlight=False, soft_wrap=True)
    console.print(f"Chosen: {chosen(estimator)}", highlight=False, soft_wrap=True, markup=False)
    for reason in reasons(estimator):
        console.print(f"  {reason}", highlight=False, soft_wrap=True, markup=False)
    for warning in findings.warnings:
        console.print(f"Warning: {warning}", style="yellow", highlight=False, soft_wrap=True, markup=False)
