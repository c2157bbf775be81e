"""`kdmaps committor`."""

from __future__ import annotations

import operator
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import kdmaps
from kdmaps.cli._app import app, print_table, print_warnings, say
from kdmaps.cli._bursts import BurstFiles, BurstsOption, BurstWeightsOption, StartOption
from kdmaps.cli._options import (
    BASES,
    DATA,
    KERNEL,
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
from kdmaps.language import CLI
from kdmaps.utils.progress import reporting

if TYPE_CHECKING:
    import numpy as np

    from kdmaps.cli._reading import Samples

#: How to write several conditions.
SYNTAX = "join conditions by commas, and write decimals with a point"
#: Comparisons of a condition, the longer ones first.
COMPARISONS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}


@app.command()
@with_files()
def committor(
    files: Files,
    source: Annotated[
        str, option(DATA, 'Conditions of set A, joined by commas, as in "phi<0,psi>1".', "--from", metavar="CONDITIONS")
    ],
    target: Annotated[str, option(DATA, "Conditions of set B.", "--to", metavar="CONDITIONS")],
    bursts: BurstsOption = None,
    time_step: Annotated[
        float | None, option(TRAJECTORY, "Time between the frames of --bursts.", min=0, metavar="T")
    ] = None,
    burst_start: StartOption = None,
    burst_weights: BurstWeightsOption = None,
    basis: BasisOption = "auto",
    features: Annotated[int, rare(KERNEL, "Number of basis functions.", min=2)] = 300,
    seed: SeedOption = 0,
    out: OutOption = Path("kdmaps-committor"),
    table_format: TableOption = "csv",
    force: ForceOption = False,
) -> None:
    """Find the committor and the rates between two sets; write model.npz, q at the samples and report.html."""
    require_one_of(TABLE_FORMATS, "--table", table_format)
    require_one_of(BASES, "--basis", basis)
    require(time_step is None or bursts is not None, "--time-step", "a time step belongs to runs: add --bursts.")
    require(time_step is None or time_step > 0, "--time-step", "give a positive number.")
    burst_files = BurstFiles(bursts, burst_start, burst_weights)
    burst_files.check()
    import numpy as np

    from kdmaps.checks import Checks, muted
    from kdmaps.cli._reading import read_samples
    from kdmaps.estimators.committor import quantity_rows
    from kdmaps.estimators.model_files import write_model
    from kdmaps.report.committor import chosen_kernel, render_committor, time_unit, verdict
    from kdmaps.utils.files import replacing

    write_values = kdmaps.data.make_writer(f".{table_format}")
    paths = [out / name for name in ("model.npz", f"committor.{table_format}", "report.html")]
    check_outputs(force, *paths)
    samples = read_samples(files)
    say(f"{files.name}, {samples.describe()}")
    masks = tuple(_mask(name, text, samples) for name, text in (("--from", source), ("--to", target)))
    runs, step, _ = burst_files.read(files, time_step)
    given = {"diffusion": samples.diffusion, "basis": basis, "n_features": features, "random_state": seed}
    model = kdmaps.AdaptiveCommittor(**given, time_step=step, progress=True)
    with muted(), reporting(True):
        model.fit(samples.source, masks, samples.weight, samples.group, **runs)
    checks = Checks([*samples.checks, *model.checks])
    say(verdict(model, checks, CLI), "bold yellow" if checks.warnings else "bold green")
    print_table(("", "value", "95 % interval"), quantity_rows(model))
    say(time_unit(model))
    say(f"Kernel: {chosen_kernel(model)}")
    say(f"{model.trust_.between} samples between the sets; {model.trust_.flux_samples:.0f} carry the flux.")
    print_warnings(checks, out / "report.html")
    page = render_committor(
        model, samples.X, sample_weight=samples.weight, names=samples.names, checks=checks,
        title=f"{files.name}: {source} → {target}", language=CLI,
    )  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    with replacing(*paths) as (model_file, values_file, report_file):
        write_model(model, model_file, inputs=samples.inputs)
        write_values(values_file, np.asarray(model.predict(samples.source))[:, None], ["q"], samples.places)
        report_file.write(page.encode())
    say(f"Written: {', '.join(map(str, paths))}")


def _mask(name: str, text: str, samples: Samples) -> np.ndarray:
    """Return the samples that meet all conditions of an option."""
    import numpy as np

    labels = samples.names or [str(j) for j in range(samples.X.shape[1])]
    known: dict[str, np.ndarray] = dict(samples.drawn) | dict(zip(labels, samples.X.T, strict=True))
    mask = np.ones(len(samples.X), dtype=bool)
    for part in text.split(","):
        found = re.fullmatch(r"\s*(.+?)\s*(<=|>=|<|>)\s*([-+0-9.eE]+)\s*", part)
        require(found is not None, name, f"{part!r} is not a condition such as x<0.5; {SYNTAX}.")
        assert found is not None
        column, comparison, number = found.groups()
        require(column in known, name, f"{column!r} is not a column; known are {', '.join(known)} (--draw adds more).")
        try:
            mask &= COMPARISONS[comparison](np.asarray(known[column], dtype=np.float64), float(number))
        except ValueError:
            require(False, name, f"{number!r} in {part!r} is not a number.")
    require(bool(mask.any()), name, f"no sample meets {text!r}; use wider conditions.")
    return mask
