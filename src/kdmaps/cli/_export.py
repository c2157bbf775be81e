"""`kdmaps export`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import kdmaps
from kdmaps.cli._app import app, print_note, say
from kdmaps.cli._models import is_committor
from kdmaps.cli._options import ForceOption, ModelArgument, check_outputs, require, require_one_of, split_names
from kdmaps.exceptions import NotApplicable

if TYPE_CHECKING:
    from kdmaps.simulation.inputs import Input

#: Programs, and the usual endings of their files.
TARGETS = {"plumed": ".dat", "openmm": ".xml", "jax": ".py"}
#: Kinds of `--inputs`, with their numbers of atoms.
INPUTS = {"torsion": 4, "distance": 2}


@app.command()
def export(
    model: ModelArgument,
    to: Annotated[str, typer.Option(help=f"Program: {', '.join(TARGETS)}.", show_default=False)],
    mode: Annotated[int, typer.Option(min=1, help="Number of the mode; 1 is the slowest.")] = 1,
    inputs: Annotated[
        str | None,
        typer.Option(
            help="Definition of the columns, with atoms counted from 0: torsion:4-6-8-14,distance:1-5. A torsion "
            "stands for two columns, its cosine and sine. (default: as in the fit of a trajectory)"
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(help="PLUMED labels of the columns, instead of --inputs. (default: the names of the columns)"),
    ] = None,
    logit: Annotated[
        bool, typer.Option("--logit", help="Of a committor, write log(q/(1-q)) too (OpenMM: instead of q).")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="The file. (default: mode1 or committor, with .dat, .xml or .py)")
    ] = None,
    force: ForceOption = False,
) -> None:
    """Write a mode or a committor as a collective variable: PLUMED input, OpenMM force (XML), Python module for JAX."""
    require_one_of(tuple(TARGETS), "--to", to)
    from kdmaps.estimators.model_files import read_header
    from kdmaps.utils.files import write_text

    stored = [] if inputs or labels else list(map(str, read_header(model).get("inputs", ())))
    require(to != "openmm" or bool(inputs or stored), "--inputs", "OpenMM needs the atoms, as in torsion:4-6-8-14.")
    columns = [_input(text) for text in split_names(inputs) or stored]
    fitted = kdmaps.load(model)
    r = fitted.coefficients_.shape[1]
    require(mode <= r, "--mode", f"the model has {r} mode(s).")
    q = is_committor(fitted)
    require(q or not logit, "--logit", "this model has modes; only committors have a logit.")
    require(to != "jax" or not logit, "--logit", "JAX programs compute q; apply jax.scipy.special.logit to it.")
    path = Path(f"committor{TARGETS[to]}" if q else f"mode{mode}{TARGETS[to]}") if out is None else out
    check_outputs(force, path)
    notes: list[str] = []
    if stored and to != "jax":
        notes.append("Atoms are counted as in the topology of the fit; with other atoms (hydrogens), give --inputs.")
    if to == "plumed":
        label = "q" if q else f"mode{mode}"
        text = kdmaps.simulation.plumed_input(fitted, columns or _labels(fitted, labels), mode - 1, label, logit=logit)
    elif to == "jax":
        text = kdmaps.simulation.jax_program(fitted, mode - 1)
    else:
        text = _openmm(fitted, mode - 1, columns, notes, logit)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)
    say(f"Written: {path}")
    what = "q is" if q else "modes are"
    notes.append(f"Far from the samples of the fit, {what} arbitrary: restrain simulations to their vicinity.")
    for note in notes:
        print_note(note)


def _input(text: str) -> Input:
    """Return the input that a text such as torsion:4-6-8-14 describes."""
    kind, _, atoms = text.partition(":")
    numbers = atoms.split("-")
    known = len(numbers) == INPUTS.get(kind) and all(re.fullmatch(r"\d+", number) for number in numbers)
    require(known, "--inputs", f"{text!r} is neither torsion:i-j-k-l nor distance:i-j, with atoms counted from 0.")
    places = tuple(map(int, numbers))
    return kdmaps.simulation.Torsion(places) if kind == "torsion" else kdmaps.simulation.Distance(*places)


def _labels(fitted: Any, given: str | None) -> list[str]:
    """Return PLUMED labels of the columns."""
    if given is not None:
        return split_names(given)
    names = getattr(fitted, "feature_names_in_", [])
    require(len(names) > 0, "--labels", "the model lacks column names; give PLUMED labels, or the atoms with --inputs.")
    return [re.sub(r"[^A-Za-z0-9_.]+", "_", str(name)).strip("_") for name in names]


def _openmm(fitted: Any, mode: int, columns: list[Input], notes: list[str], logit: bool) -> str:
    """Return an OpenMM force as XML: a table of one or two torsions, or else an expression."""
    from kdmaps.utils.optional import optional

    openmm = optional("openmm", "openmm", "Modes as OpenMM forces")
    try:
        force = kdmaps.simulation.openmm_cv(fitted, mode, columns, method="table", logit=logit)
    except NotApplicable:
        force = kdmaps.simulation.openmm_cv(fitted, mode, columns, method="expression", outside="free", logit=logit)
        notes.append("The force is an expression that is not flat outside the samples; add simulation.openmm_walls.")
    return str(openmm.XmlSerializer.serialize(force))
