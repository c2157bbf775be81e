"""`kdmaps fit`."""

from __future__ import annotations

import math
import re
import shlex
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import kdmaps
from kdmaps.cli._app import app, print_check, print_note, print_table, print_warnings, say
from kdmaps.cli._bursts import BurstFiles, BurstsOption, BurstWeightsOption, StartOption
from kdmaps.cli._options import (
    BASES,
    ENERGIES,
    FAMILIES,
    ISOLATED,
    KERNEL,
    MIN_RESAMPLES,
    OUTPUT,
    RATES,
    TABLE_FORMATS,
    TRAJECTORY,
    BasisOption,
    Files,
    ForceOption,
    OutOption,
    SeedOption,
    TableOption,
    check_outputs,
    option,
    rare,
    require,
    require_one_of,
    with_files,
)
from kdmaps.exceptions import CheckWarning
from kdmaps.language import CLI
from kdmaps.utils.progress import reporting, stage

if TYPE_CHECKING:
    import numpy as np

    from kdmaps.analysis import Analysis
    from kdmaps.cli._reading import Samples
    from kdmaps.diagnostics.independence import IndependentModes

#: A lag in rows, or in a unit of time; powers of ten of the units in seconds.
TIME_UNITS = {"fs": -15, "ps": -12, "ns": -9, "us": -6, "ms": -3, "s": 0}
#: An error about a column that is a time lists the others up to this number.
MAX_OTHERS = 8
LAG = rf"0*([1-9]\d*)|(\d+\.?\d*) *({'|'.join(TIME_UNITS)})"
#: Kernels of `--kernel`.
KERNELS = ("auto", *FAMILIES)


@app.command()
@with_files()
def fit(
    files: Files,
    lag: Annotated[
        str | None,
        option(TRAJECTORY, "Trajectory: rows or time between pairs.", metavar="N|10ps|auto"),
    ] = None,
    time_step: Annotated[
        float | None, option(TRAJECTORY, "Time between rows (--lag), or of --bursts.", min=0, metavar="T")
    ] = None,
    unit: Annotated[str | None, option(TRAJECTORY, "Unit of the time step, such as ps.", metavar="UNIT")] = None,
    bursts: BurstsOption = None,
    burst_start: StartOption = None,
    burst_weights: BurstWeightsOption = None,
    driven: Annotated[
        bool,
        option(TRAJECTORY, "Driven systems: periods and decay rates.", "--no-reversible"),
    ] = False,
    ordered: Annotated[
        bool | None,
        rare(
            TRAJECTORY,
            "Without --lag: whether rows are in temporal order, so that folds are blocks. (default: detected)",
        ),
    ] = None,
    keep_columns: Annotated[
        bool, rare(KERNEL, "Fit columns that look like a time or an index too.", "--keep-columns")
    ] = False,
    modes: Annotated[int, option(KERNEL, "Number of modes.", min=1, metavar="N")] = 4,
    kernel: Annotated[str, rare(KERNEL, f"{', '.join(KERNELS)}.")] = "auto",
    bandwidth: Annotated[float | None, rare(KERNEL, "Bandwidth of the kernel. (default: searched)", min=0)] = None,
    regularization: Annotated[
        float | None, rare(KERNEL, "Regularization λ. (default: searched)", "--lambda", min=0)
    ] = None,
    standardize: Annotated[
        bool,
        option(KERNEL, "Standardize columns of different units.", "--standardize"),
    ] = False,
    energy: Annotated[
        str,
        option(KERNEL, "gradients, or neighbors (no physics).", metavar="NAME", show_default=False),
    ] = "gradients",
    neighbors: Annotated[int, rare(KERNEL, "Neighbours of each row, with --energy neighbors.", min=3)] = 30,
    basis: BasisOption = "auto",
    features: Annotated[
        str, rare(KERNEL, "Number of basis functions; auto: more than 300 if that raises the score.", metavar="N|auto")
    ] = "300",
    rates: Annotated[
        str, rare(KERNEL, f"Samples that rates come from: {RATES[0]} (all) or {RATES[1]} (held-out).")
    ] = "ritz",
    isolated: Annotated[
        str,
        rare(KERNEL, "A few rows behind an empty gap: separate (states of their own), keep (in the fit) or drop."),
    ] = "separate",
    independent: Annotated[
        bool,
        rare(KERNEL, "Distinguish modes that are new coordinates from functions of earlier modes.", "--independent"),
    ] = False,
    seed: SeedOption = 0,
    resamples: Annotated[
        int,
        rare(
            OUTPUT,
            f"Resamples of the block bootstrap for the error bars: 0 for none, else {MIN_RESAMPLES} or more.",
            min=0,
        ),
    ] = 200,
    out: OutOption = Path("kdmaps-fit"),
    structures: Annotated[
        bool, option(OUTPUT, "Write typical frames of each state as PDB files.", "--structures")
    ] = False,
    force: ForceOption = False,
    details: Annotated[bool, option(OUTPUT, "Print how lag and kernel were chosen.", "--details")] = False,
    notes: Annotated[str, rare(OUTPUT, "Text for the readers of the report.", metavar="TEXT")] = "",
    table_format: TableOption = "csv",
) -> None:
    """Find the slow modes of samples; write model.npz, the modes and report.html."""
    require_one_of(TABLE_FORMATS, "--table", table_format)
    require_one_of(KERNELS, "--kernel", kernel)
    require_one_of(BASES, "--basis", basis)
    require_one_of(RATES, "--rates", rates)
    require_one_of(ISOLATED, "--isolated", isolated)
    require_one_of(ENERGIES, "--energy", energy)
    by_neighbors = energy == "neighbors"
    if by_neighbors:
        omitted = {"--kernel": kernel == "auto", "--bandwidth": bandwidth is None, "--lambda": regularization is None}
        omitted |= {"--basis": basis == "auto", "--features": features == "300", "--rates": rates == "ritz"}
        omitted |= {"--lag": lag is None, "--weights": files.weights is None, "--diffusion": files.diffusion is None}
        omitted |= {"--ordered": ordered is None, "--standardize": not standardize}
        omitted |= {"--isolated": isolated == "separate"}
        for name, unused in omitted.items():
            require(unused, name, "has no meaning with --energy neighbors; omit it.")
    require(by_neighbors or neighbors == 30, "--neighbors", "add --energy neighbors.")
    for name, value in (("--bandwidth", bandwidth), ("--lambda", regularization)):
        require(value != 0, name, "give a positive number, or omit it to search for one.")
    require(resamples == 0 or resamples >= MIN_RESAMPLES, "--resamples", f"give 0, or {MIN_RESAMPLES} or more.")
    n_features = _features(features, searched=None in (bandwidth, regularization) or kernel == "auto")
    burst_files = BurstFiles(bursts, burst_start, burst_weights)
    burst_files.check(lag)
    _check_time(lag, time_step, unit, files, bursts is not None)
    searched = kernel == "auto" or bandwidth is None or regularization is None
    require(
        searched or not standardize, "--standardize", "this needs a search; omit --kernel, --bandwidth or --lambda."
    )
    both = standardize and files.diffusion is not None
    require(not both, "--standardize", "--diffusion sets the units of the columns itself; omit one of them.")
    require(not driven or lag is not None, "--no-reversible", "oscillations need a trajectory: add --lag.")
    require(not structures or files.topology is not None, "--structures", "frames need a trajectory: add --topology.")
    from kdmaps.cli._reading import read_samples, reading_program
    from kdmaps.data.pairs import compare_steps
    from kdmaps.estimators.model_files import write_model
    from kdmaps.report import render_analysis
    from kdmaps.utils.files import replacing

    write_modes = kdmaps.data.make_writer(f".{table_format}")  # may need a package that is missing
    paths = [out / name for name in ("model.npz", f"modes.{table_format}", "report.html")]
    check_outputs(force, *paths)
    samples = read_samples(files, timed=lag is not None)
    say(f"{files.name}, {samples.describe()}")
    _check_samples(samples, modes, n_features, keep_columns)
    step = (1.0 if time_step is None else time_step) * files.stride
    if time_step is None and samples.time_step is not None:  # between the rows that are used, of a trajectory file
        step, unit = float(f"{samples.time_step:.8g}"), samples.time_unit if unit is None else unit
    runs, burst_step, burst_unit = burst_files.read(files, time_step)
    if burst_step is not None and runs:
        step = burst_step
        unit = burst_unit if unit is None and time_step is None else unit
    settings = {
        "n_features": n_features,
        "diffusion": samples.diffusion,
        "cv": _folds(samples, ordered) if lag is None else "auto",
        "random_state": seed,
        "lag": _lag(lag, step, unit),
        "time_step": step if runs or lag is not None else None,
        **({"reversible": False} if driven else {}),
        **({} if basis == "auto" else {"basis": basis}),
        **({} if rates == "ritz" else {"rates": rates}),
        **({"standardize": True} if standardize else {}),
        **({} if isolated == "separate" else {"isolated": isolated}),
    }
    estimator = _estimator(modes, kernel, bandwidth, regularization, settings)
    if by_neighbors:
        estimator = kdmaps.AdaptiveDiffusionMap(modes, energy=energy, n_neighbors=neighbors, random_state=seed)
        samples = replace(samples, group=None)  # neighbours do not depend on groups
        resamples = 0  # a graph has no error bars
    if time_step is not None and samples.time_step is not None:
        samples = replace(samples, checks=(*samples.checks, compare_steps(samples.time_step, step)))
    analysis = _analyse(estimator, samples, resamples, seed, runs)
    new = None
    if independent:
        new = kdmaps.independent_modes(analysis.modes, sample_weight=samples.weight, random_state=seed)
    _show(analysis, new, unit, details, out / "report.html")
    with reporting(True), stage("report", True):
        page = render_analysis(
            analysis,
            samples.names,
            independence=new,
            unit=unit,
            notes=notes,
            title=files.name,
            command=shlex.join(["kdmaps", *sys.argv[1:]]),
            reading=reading_program(files),
            draw=_by_residue(samples.drawn, analysis.modes) or None,
        )
    out.mkdir(parents=True, exist_ok=True)
    with replacing(*paths) as (model_file, modes_file, report_file):
        write_model(estimator, model_file, unit, samples.inputs, files.stride)
        write_modes(modes_file, analysis.modes, list(estimator.get_feature_names_out()), samples.places)
        report_file.write(page.encode())
    if structures:
        paths += _write_structures(analysis, files, samples, out)
    say(f"Written: {', '.join(map(str, paths))}")


def _lag(text: str | None, step: float, unit: str | None) -> int | str | None:
    """Return the lag in rows that an option gives as a number of rows or as a time."""
    if text is None or text == "auto":
        return text
    rows, value, of_lag = re.fullmatch(LAG, text).groups()  # type: ignore[union-attr]
    if rows:
        return int(rows)
    require(unit in TIME_UNITS, "--lag", f"{text} needs the time between rows: give --time-step and --unit, or rows.")
    frames = float(value) * 10.0 ** (TIME_UNITS[of_lag] - TIME_UNITS[str(unit)]) / step
    require(
        round(frames) > 0 and abs(frames - round(frames)) < 1e-3 * frames,
        "--lag",
        f"{text} is {frames:.4g} rows of {step:g} {unit}; give a multiple of the time between rows.",
    )
    return round(frames)


def _write_structures(analysis: Analysis, files: Files, samples: Samples, out: Path) -> list[Path]:
    """Write typical frames of each state to PDB files, and print which frames they are."""
    from kdmaps.cli._reading import row_names
    from kdmaps.data.formats.trajectories import write_frames
    from kdmaps.report.text import TYPICAL

    states, rows = analysis.states, analysis.state_rows
    if states is None:
        print_note("The modes define no states, so there are no structures.")
        return []
    names, places, paths = row_names(files, samples.places), samples.places, list[Path]()
    for k, typical in enumerate(states.representatives(samples.X[rows], TYPICAL)):
        chosen = [int(rows[place]) for place in typical if place >= 0]
        if chosen:
            paths.append(out / f"state{k + 1}.pdb")
            frames = [(files.data[places["file"][i] if "file" in places else 0], int(places["row"][i])) for i in chosen]
            write_frames(paths[-1], Path(str(files.topology)), frames)
            say(f"Typical frames of state {k + 1}: {', '.join(names[i] for i in chosen)}")
    return paths


def _check_time(lag: str | None, time_step: float | None, unit: str | None, files: Files, bursts: bool) -> None:
    """Raise an error for options of time that contradict each other."""
    known = lag is None or lag == "auto" or re.fullmatch(LAG, lag)
    require(bool(known), "--lag", f"{lag!r} is neither auto nor a positive number of rows, nor a time such as 10ps.")
    require(time_step is None or 0 < time_step < math.inf, "--time-step", "give a positive number.")
    timed = lag is not None or bursts
    require(timed or time_step is None, "--time-step", "a time step needs a trajectory: add --lag.")
    require(
        timed or unit is None,
        "--unit",
        "without a trajectory, time scales are in units of length²/D; give a unit only with --lag.",
    )
    require(
        lag is None or files.weights is None,
        "--lag",
        "weights do not correct the biased dynamics between frames. Omit --lag: with --weights, time scales come from "
        "the samples. (For unbiased runs that start out of equilibrium, use lag and sample_weight in Python.)",
    )


def _features(text: str, searched: bool) -> int | str:
    """Return the number of features that an option gives."""
    if text == "auto":
        require(searched, "--features", "auto needs a search; give a number, or omit --kernel or --lambda.")
        return text
    known = text.isdecimal() and int(text) >= 2
    require(known, "--features", f"{text!r} is neither auto nor a number of at least 2.")
    return int(text)


def _check_samples(samples: Samples, modes: int, features: int | str, keep_columns: bool) -> None:
    """Raise an error for more modes than the samples or the features determine, and for a column that is a time."""
    from kdmaps.data.check import time_check
    from kdmaps.data.sources import too_few

    if modes >= len(samples.X):
        raise too_few("row(s)", samples.X.shape, modes)
    require(
        isinstance(features, str) or modes <= features,
        "--modes",
        f"{modes} modes need as many features, here {features}; use fewer, or increase --features.",
    )
    time = time_check(samples.X, samples.group, samples.names)
    if time.warns and not keep_columns:
        others = [name for name in samples.names or () if name not in time.where]
        few = 0 < len(others) <= MAX_OTHERS
        remedy = f"Fit the others with --columns {','.join(others)}." if few else time.remedy(CLI)
        raise ValueError(f"{time.message(CLI)} {remedy} To fit it as a coordinate, add --keep-columns.")


def _folds(samples: Samples, ordered: bool | None) -> Any:
    """Return folds that keep samples of one trajectory, or of one stretch of time, together."""
    import numpy as np
    from sklearn.model_selection import GroupKFold

    from kdmaps.data.correlation import order_of
    from kdmaps.selection.folds import BLOCKS, FOLDS, blocks_of

    if samples.group is not None:
        count = len(np.unique(samples.group))
        if count < 2:
            raise ValueError("--groups has only one group; held-out groups need two or more. Omit it.")
        return GroupKFold(min(BLOCKS, count))
    if ordered is None:
        ordered = samples.ordered or None
    return "auto" if ordered is None else blocks_of(order_of(samples.X), len(samples.X)) if ordered else FOLDS


def _estimator(
    n_modes: int, kernel: str, bandwidth: float | None, regularization: float | None, settings: dict[str, Any]
) -> Any:
    """Return the estimator that searches for everything that was not given."""
    if kernel != "auto" and bandwidth is not None and regularization is not None:
        return kdmaps.KernelDiffusionMap(
            n_modes, kernel=kernel, bandwidth=bandwidth, regularization=regularization, **settings
        )
    of_search: dict[str, Any] = {} if kernel == "auto" else {"families": (kernel,)}
    if regularization is not None:
        of_search["regularizations"] = (regularization,)
    if bandwidth is not None:
        return kdmaps.KernelSearchCV(n_modes, bandwidths=[bandwidth], progress=True, **of_search, **settings)
    own = kdmaps.AdaptiveDiffusionMap._get_param_names()
    of_search |= {name: settings.pop(name) for name in set(settings) - set(own)}
    search = kdmaps.KernelSearchCV(**of_search) if of_search else None
    return kdmaps.AdaptiveDiffusionMap(n_modes, progress=True, search=search, **settings)


def _analyse(estimator: Any, samples: Samples, resamples: int, seed: int, bursts: dict[str, Any]) -> Analysis:
    """Fit the estimator, with error bars and tests; mistakes that leave the fit without meaning are printed at once."""
    from kdmaps.analysis import Analysis
    from kdmaps.checks import Check, Severity

    def show_errors(message: Warning | str, *_: Any, **__: Any) -> None:
        check = message.check if isinstance(message, CheckWarning) else None
        if isinstance(check, Check) and check.rule.severity is Severity.ERROR:
            print_check(check, error=True)

    given: dict[str, Any] = {"sample_weight": samples.weight, "groups": samples.group}
    with reporting(True):
        with warnings.catch_warnings(action="always", category=CheckWarning):
            warnings.showwarning = show_errors
            estimator.fit(samples.source, **given, **bursts)
        settings: dict[str, Any] = {"n_resamples": resamples, "random_state": seed, "progress": True}
        analysis = Analysis(estimator, samples.source, checks=samples.checks, **given, **settings)
        if analysis.directed:
            with stage("error bars", True):
                _ = analysis.koopman
        _ = analysis.uncertainty
        with stage("tests of the lag", estimator.lag_ is not None):
            _ = analysis.checks
    return analysis


def _show(analysis: Analysis, new: IndependentModes | None, unit: str | None, details: bool, page: Path) -> None:
    """Print the verdict, the time scales and a few lines; with details, how lag and kernel were chosen."""
    from kdmaps.checks import Severity
    from kdmaps.report import text
    from kdmaps.summary import describe_independence, list_relevant, summarise

    checks, spectrum, tests = analysis.checks, analysis.koopman, analysis.validation
    summary = summarise(
        analysis.model, unit=unit, uncertainty=analysis.uncertainty, checks=checks, doubtful=analysis.doubtful
    )
    process = "" if spectrum is None else spectrum.slowest(unit)
    verdict = summary.verdict(text.count_states(analysis.states), process, CLI)
    say(verdict, "bold yellow" if checks.warnings else "bold green")
    if spectrum is not None:
        print_table(*spectrum.cells())
        say("Eigenvalues of the Koopman operator, one line for each conjugate pair.")
    if spectrum is None or details:  # singular functions are the slow modes only of a reversible system
        print_table(summary.columns, summary.rows)
    say(summary.time_unit)
    of_lag = [] if summary.lag is None or spectrum is not None else text.lag_sentences(summary, tests)
    if details:
        if tests is not None:
            print_table(*text.implied_table(tests, unit))
            say(f"  {text.implied_sentence(analysis.model)}")
        notes = [note.say(CLI) for note in checks.notes]
        for sentence in (*of_lag, f"Chosen: {summary.chosen}", *summary.reasons, *notes):
            say(f"  {sentence}")
    else:
        say(f"{summary.short_reason} (--details for the reasons)")
        if of_lag:
            say(of_lag[-1])
        elif summary.relevance is not None and len(summary.relevance.names) > 1:
            say(f"Mode 1 depends on {list_relevant(summary.relevance, 0)}.")
    if new is not None:
        say(describe_independence(new))
    # Mistakes that leave the fit without meaning were printed while it ran.
    early = [check for check in analysis.model.checks_ if check.rule.severity is Severity.ERROR]
    print_warnings(checks, page, printed=early)


def _by_residue(drawn: dict[str, np.ndarray], modes: np.ndarray) -> dict[str, np.ndarray]:
    """Return dihedrals with the residue first whose angles explain most of mode 1; other columns stay in front."""
    import numpy as np

    residues: dict[str, list[str]] = {}
    for name in drawn:
        residues.setdefault(name.partition(" ")[2], []).append(name)

    def unexplained(residue: str) -> float:
        if not residue:
            return -1.0
        angles = np.column_stack([drawn[name] for name in residues[residue]])
        waves = np.column_stack([np.ones(len(modes)), np.cos(angles), np.sin(angles)])
        found = np.linalg.lstsq(waves, modes[:, 0])[0]  # it returns no residuals if an angle is constant
        return float(np.sum((modes[:, 0] - waves @ found) ** 2))

    return {name: drawn[name] for residue in sorted(residues, key=unexplained) for name in residues[residue]}
