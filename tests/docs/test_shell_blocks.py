"""Commands in the README and in pages exist, with all options; commands that read files are run."""

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer

import kdmaps
from commands import run
from kdmaps.cli import app
from shared import topology

pytestmark = pytest.mark.usefixtures("undrawn")

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").rglob("*.md")) if "generated" not in page.parts)]
#: Options that avoid a search. Options on the page take precedence.
QUICK = ("--features 20", "--resamples 0", "--kernel gaussian", "--bandwidth 3", "--lambda 0.01")
RUN = ("fit", "committor", "forecast", "transform", "inspect", "states", "compare", "export")


def commands(page):
    """Lines `kdmaps …` of the code blocks of a page, split into words."""
    blocks = re.findall(r"^```(?:sh|text)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("kdmaps ")]
    return [shlex.split(line, comments=True)[1:] for line in lines if "…" not in line]


COMMANDS = {page.stem: commands(page) for page in PAGES if commands(page)}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Files with the names used in pages."""
    pytest.importorskip("pyarrow")
    mdtraj = pytest.importorskip("mdtraj")
    monkeypatch.chdir(tmp_path)
    n, rng = 400, np.random.default_rng(0)
    X = rng.standard_normal((n, 3)) * [2.0, 1.0, 0.5]
    np.save("samples.npy", X)
    path = kdmaps.problems.load("ou2d-4").trajectory(n, 0.1, substeps=1, random_state=0)
    for name in ("frames.npy", "dihedrals.npy"):
        np.save(name, path)
    timed = pd.DataFrame(path, columns=["x", "y"]).assign(time=(0.1 * np.arange(n)).round(1))
    timed.to_csv("run.csv", index=False)
    for number, part in enumerate(np.array_split(X, 3), start=1):
        np.save(f"run{number}.npy", part)
    np.save("tensors.npy", rng.uniform(0.5, 1, (n, 3, 1)) * np.eye(3))
    np.save("cloud.npy", kdmaps.problems.load("sphere-3").sample(n, random_state=0))
    np.savetxt("colvar.dat", np.c_[X, rng.uniform(size=n)], header="! FIELDS time phi psi weight")
    frame = pd.DataFrame(X, columns=["x", "y", "z"])
    frame.to_csv("samples.csv", index=False)
    frame.to_csv("more.csv", index=False)
    later = frame + 0.1 * rng.standard_normal((n, 3))
    pd.concat([frame, later]).assign(particle=np.tile(np.arange(n), 2)).to_csv("particles.csv", index=False)
    frame.to_csv("first.csv", index=False)
    later.to_csv("second.csv", index=False)
    frame.assign(trajectory=np.arange(n) // 80).to_parquet("samples.parquet")
    frames = mdtraj.Trajectory(rng.standard_normal((n, 9, 3)), topology(3, ("N", "CA", "C")))
    frames.save("run.xtc")
    for number, part in enumerate((frames[: n // 2], frames[n // 2 :]), start=1):
        part.save(f"run{number}.xtc")
    frames.save("run3.xtc")
    for name in ("molecule", "ala3"):
        frames[0].save(f"{name}.pdb")
    return tmp_path


@pytest.mark.parametrize("page", COMMANDS)
def test_every_option_exists(page, folder):
    group = typer.main.get_command(app)
    for name, *words in COMMANDS[page]:
        for model in (Path(word) for word in words if word.endswith(".npz")):
            model.parent.mkdir(exist_ok=True)
            model.touch()
        context = group.make_context("kdmaps", [name, *words])
        group.get_command(context, name).make_context(name, list(words), parent=context)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in COMMANDS if any(words[0] in RUN for words in COMMANDS[page])])
def test_commands_that_read_files_run(page, folder):
    for name, *words in COMMANDS[page]:
        if name not in RUN:
            continue
        quick = {"fit": QUICK, "committor": QUICK[:1]}.get(name, ())
        more = [word for option in quick for word in option.split() if option.split()[0] not in words]
        result = run(name, *words, *more)
        assert result.exit_code == 0, (name, words, result.output)


def test_commands_are_found_in_pages():
    assert ["fit", "samples.npy", "--modes", "2", "--out", "result"] in COMMANDS["command_line"]
    assert ["transform", "result/model.npz", "more.csv"] in COMMANDS["README"]
    group = typer.main.get_command(app)
    with pytest.raises(Exception, match=r"No such option:? '?--mode"):
        group.get_command(None, "fit").make_context("fit", ["samples.npy", "--mode", "2"])
