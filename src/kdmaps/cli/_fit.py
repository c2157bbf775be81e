"""`kdmaps fit`."""

from __future__ import annotations

import math
import re
import shlex
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import kdmaps
from kdmaps.cli._app import app, print_table, print_warning, say
from kdmaps.cli._options import (
    BASES,
    FAMILIES,
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
    in_options,
    option,
    rare,
    require,
    require_one_of,
    with_files,
)
from kdmaps.exceptions import DataWarning
from kdmaps.utils.progress import reporting, stage
from kdmaps.utils.warn import without_link

if TYPE_CHECKING:
    import numpy as np

    from kdmaps.cli._reading import Samples
    from kdmaps.diagnostics.independence import IndependentModes
    from kdmaps.dynamics import Koopman, Validation
    from kdmaps.uncertainty import Uncertainty

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
    time_step: Annotated[float | None, option(TRAJECTORY, "Time between rows, with --lag.", min=0, metavar="T")] = None,
    unit: Annotated[str | None, option(TRAJECTORY, "Unit of the time step, such as ps.", metavar="UNIT")] = None,
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
    basis: BasisOption = "auto",
    features: Annotated[
        str, rare(KERNEL, "Number of basis functions; auto: more than 300 if that raises the score.", metavar="N|auto")
    ] = "300",
    rates: Annotated[
        str, rare(KERNEL, f"Samples that rates come from: {RATES[0]} (all) or {RATES[1]} (held-out).")
    ] = "ritz",
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
    for name, value in (("--bandwidth", bandwidth), ("--lambda", regularization)):
        require(value != 0, name, "give a positive number, or omit it to search for one.")
    require(resamples == 0 or resamples >= MIN_RESAMPLES, "--resamples", f"give 0, or {MIN_RESAMPLES} or more.")
    n_features = _features(features, searched=None in (bandwidth, regularization) or kernel == "auto")
    _check_time(lag, time_step, unit, files)
    require(not driven or lag is not None, "--no-reversible", "oscillations need a trajectory: add --lag.")
    require(not structures or files.topology is not None, "--structures", "frames need a trajectory: add --topology.")
    from kdmaps.cli._reading import read_samples, reading_program
    from kdmaps.estimators.model_files import write_model
    from kdmaps.utils.files import replacing

    write_modes = kdmaps.data.make_writer(f".{table_format}")  # may need a package that is missing
    paths = [out / name for name in ("model.npz", f"modes.{table_format}", "report.html")]
    check_outputs(force, *paths)
    samples = read_samples(files, timed=lag is not None)
    say(f"{files.name}, {samples.describe()}")
    _check_samples(samples, modes, n_features, keep_columns)
    if lag is None and samples.diffusion is None:
        _note_scales(samples)
    step = (1.0 if time_step is None else time_step) * files.stride
    if time_step is None and samples.time_step is not None:  # between the rows that are used, of a trajectory file
        step, unit = float(f"{samples.time_step:.8g}"), samples.time_unit if unit is None else unit
    settings = {
        "n_features": n_features,
        "diffusion": samples.diffusion,
        "cv": _folds(samples, ordered) if lag is None else "auto",
        "random_state": seed,
        "lag": _lag(lag, step, unit),
        "time_step": None if lag is None else step,
        **({"reversible": False} if driven else {}),
        **({} if basis == "auto" else {"basis": basis}),
        **({} if rates == "ritz" else {"rates": rates}),
    }
    estimator = _estimator(modes, kernel, bandwidth, regularization, settings)
    findings = _find(estimator, samples, resamples, seed, independent)
    _show(estimator, samples, findings, unit, details)
    with reporting(True), stage("report", True):
        page = kdmaps.report.render_report(
            estimator,
            samples.X,
            sample_weight=samples.weight,
            groups=samples.group,
            uncertainty=findings.uncertainty,
            unit=unit,
            validation=findings.tests,
            koopman=findings.spectrum,
            independence=findings.independence,
            warnings=[*findings.of_data, *findings.of_modes],
            notes=notes,
            title=files.name,
            feature_names=samples.names,
            command=shlex.join(["kdmaps", *sys.argv[1:]]),
            reading=reading_program(files),
            draw=_by_residue(samples.drawn, findings.modes) or None,
        )
    out.mkdir(parents=True, exist_ok=True)
    with replacing(*paths) as (model_file, modes_file, report_file):
        write_model(estimator, model_file, unit, samples.inputs)
        write_modes(modes_file, findings.modes, list(estimator.get_feature_names_out()), samples.places)
        report_file.write(page.encode())
    if structures:
        paths += _write_structures(estimator, files, samples, findings, out)
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


def _write_structures(estimator: Any, files: Files, samples: Samples, findings: _Findings, out: Path) -> list[Path]:
    """Write typical frames of each state to PDB files, and print which frames they are."""
    from kdmaps.cli._reading import row_names
    from kdmaps.data.formats.trajectories import write_frames
    from kdmaps.report import text

    found = text.find_states(estimator, findings.modes, samples.weight)
    if found is None:
        print_warning("The modes define no states, so there are no structures.")
        return []
    named, places, paths = row_names(files, samples.places), samples.places, list[Path]()
    for k, chosen in enumerate(found.representatives(samples.X, text.TYPICAL)):
        rows = [int(row) for row in chosen if row >= 0]
        if rows:
            paths.append(out / f"state{k + 1}.pdb")
            of = [(files.data[places["file"][i] if "file" in places else 0], int(places["row"][i])) for i in rows]
            write_frames(paths[-1], Path(str(files.topology)), of)
            say(f"Typical frames of state {k + 1}: {', '.join(named[i] for i in rows)}")
    return paths


def _check_time(lag: str | None, time_step: float | None, unit: str | None, files: Files) -> None:
    """Raise an error for options of time that contradict each other."""
    known = lag is None or lag == "auto" or re.fullmatch(LAG, lag)
    require(bool(known), "--lag", f"{lag!r} is neither auto nor a positive number of rows, nor a time such as 10ps.")
    require(time_step is None or 0 < time_step < math.inf, "--time-step", "give a positive number.")
    require(lag is not None or time_step is None, "--time-step", "a time step needs a trajectory: add --lag.")
    require(
        lag is not None or unit is None,
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
    from kdmaps.data.check import find_time

    n_samples = len(samples.X)
    count = f"{n_samples} samples are" if n_samples > 1 else "1 sample is"
    require(
        modes < n_samples,
        "--modes",
        f"{count} too few for {modes} modes; each needs hundreds. Use more samples or fewer modes.",
    )
    require(
        isinstance(features, str) or modes <= features,
        "--modes",
        f"{modes} modes need as many features, here {features}; use fewer, or increase --features.",
    )
    if not keep_columns and (time := find_time(samples.X, samples.group, samples.names)):
        others = [name for name in samples.names or () if name not in time.where]
        few = 0 < len(others) <= MAX_OTHERS
        remedy = f"Fit the others with --columns {','.join(others)}." if few else time.remedy
        raise ValueError(f"{time.found} {remedy} To fit it as a coordinate, add --keep-columns.")


def _note_scales(samples: Samples) -> None:
    """Print a note about columns of different scales, which only `check_data` reports otherwise."""
    import numpy as np

    from kdmaps.data.findings import NOTED_SCALES, CheckedRows, scales

    rows = CheckedRows(samples.X, np.arange(len(samples.X)), None, samples.group, samples.names)
    found = scales(rows, NOTED_SCALES)
    if found is not None and found.severity == "note":  # others are warnings of the fit
        say(f"Note: {in_options(str(found))}")


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


class _Findings(NamedTuple):
    """Modes at the samples, error bars, tests of the lag, eigenvalues, new coordinates; warnings."""

    modes: np.ndarray
    uncertainty: Uncertainty | None
    tests: Validation | None
    spectrum: Koopman | None
    independence: IndependentModes | None
    of_data: list[str]
    of_modes: list[str]


def _find(estimator: Any, samples: Samples, resamples: int, seed: int, independent: bool) -> _Findings:
    """Fit the estimator and resample for error bars; findings of the data check are printed before the fit."""
    import numpy as np

    uncertainty, tests, spectrum, source = None, None, None, samples.source
    raised: dict[str, type[Warning]] = {}

    def record(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        text = without_link(str(message))
        if issubclass(category, UserWarning) and text not in raised:
            raised[text] = category
            if issubclass(category, DataWarning):
                print_warning(text)

    for note in samples.notes:
        record(note, DataWarning)
    given: dict[str, Any] = {"sample_weight": samples.weight, "groups": samples.group}
    with reporting(True), warnings.catch_warnings(action="always"):
        warnings.showwarning = record
        estimator.fit(source, **given)
        if resamples:
            bars: dict[str, Any] = {"n_resamples": resamples, "random_state": seed, **given}
            if estimator.right_modes_ is None:
                uncertainty = kdmaps.uncertainty.bootstrap(estimator, source, progress=True, **bars)
            else:
                with stage("error bars", True):
                    spectrum = kdmaps.dynamics.koopman(estimator, source, **bars)
        modes = np.asarray(estimator.transform(source))
        if spectrum is None:  # else its eigenvalues are tested after several lags; singular functions need not be slow
            with suppress(ValueError), stage("tests of the lag", estimator.lag_ is not None):  # no lag, or few frames
                tests = kdmaps.dynamics.validate(estimator, source, **given)
    choice = estimator.lag_choice_
    if choice is not None and tests is not None:  # the tests of the fitted model replace the scan
        raised.pop(str(choice.why_not_flat), None)
    data = [text for text, category in raised.items() if issubclass(category, DataWarning)]
    new = kdmaps.independent_modes(modes, sample_weight=samples.weight, random_state=seed) if independent else None
    return _Findings(modes, uncertainty, tests, spectrum, new, data, [text for text in raised if text not in data])


def _show(estimator: Any, samples: Samples, findings: _Findings, unit: str | None, details: bool) -> None:
    """Print the verdict, the time scales and a few lines; with details, how lag and kernel were chosen."""
    from kdmaps.report import text
    from kdmaps.summary import describe_independence, list_relevant, summarise

    summary = summarise(estimator, unit=unit, uncertainty=findings.uncertainty, tests=findings.tests)
    some = slice(None, None, -(-len(findings.modes) // text.STATE_SAMPLES))
    weight = None if samples.weight is None else samples.weight[some]
    states = text.find_states(estimator, findings.modes[some], weight)
    warned = [*findings.of_data, *findings.of_modes]
    spectrum = findings.spectrum
    process = "" if spectrum is None else spectrum.slowest(unit)
    say(summary.verdict(text.count_states(states), len(warned), process), "bold yellow" if warned else "bold green")
    if spectrum is not None:
        print_table(*spectrum.cells())
        say("Eigenvalues of the Koopman operator, one line for each conjugate pair.")
    if spectrum is None or details:  # singular functions are the slow modes only of a reversible system
        print_table(summary.columns, summary.rows)
    say(in_options(summary.time_unit))
    of_lag = [] if summary.lag is None or spectrum is not None else text.lag_sentences(summary, findings.tests)
    if details:
        if findings.tests is not None:
            print_table(*text.implied_table(findings.tests, unit))
            say(f"  {text.implied_sentence(estimator)}")
        for sentence in (*of_lag, f"Chosen: {summary.chosen}", *summary.reasons):
            if sentence not in findings.of_modes:  # printed as a warning below
                say(f"  {sentence}")
    else:
        say(f"{summary.short_reason} (--details for the reasons)")
        if of_lag and of_lag[-1] not in findings.of_modes:
            say(of_lag[-1])
        elif summary.relevance is not None and len(summary.relevance.names) > 1:
            say(f"Mode 1 depends on {list_relevant(summary.relevance, 0)}.")
    if findings.independence is not None:
        say(describe_independence(findings.independence))
    for warning in findings.of_modes:
        print_warning(warning)


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
