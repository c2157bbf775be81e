"""Work that is killed or fills the disk: files are complete, and a second run gives the same bytes.

`python -m benchmarks.faults` repeats this a hundred times (results/faults).
"""

import random
import signal
import sys

import pytest

pytest.importorskip("resource")  # of POSIX
pytest.importorskip("typer")

from benchmarks.faults._plan import KILLS, Trials
from benchmarks.faults._process import NO_FAULT, Fault, run
from benchmarks.faults._work import WORK

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs signals and limits of Linux")
NOTHING_WRONG = {"half-written": 0, "lost": 0, "unequal": 0, "unclear": 0, "left behind": 0}


@pytest.mark.slow
@pytest.mark.parametrize("name", WORK)
def test_killed_and_disk_full(name, tmp_path):
    rng, trials = random.Random(name), Trials(name, tmp_path)
    for number, kind in enumerate((*KILLS, "full")):
        fault = trials.fault(kind, rng)
        found = trials.attempt(number, fault)
        assert {what: found[what] for what in NOTHING_WRONG} == NOTHING_WRONG, fault
        assert found["interrupted"] or kind == "moment", fault


@pytest.mark.slow
def test_plan_detects_a_file_written_in_place(tmp_path, monkeypatch):
    """The plan must detect a kill while a file is written in place."""
    monkeypatch.setattr("benchmarks.faults._plan.run", in_place)
    trials = Trials("fit and save", tmp_path)
    found = trials.attempt(0, Fault("byte", trials.longest // 2))
    assert found["half-written"] == 1
    assert found["unequal"] == 0


def in_place(name, folder, seed, fault=NO_FAULT):
    """As `run`, with a model file that is truncated at the byte of the fault."""
    ending = run(name, folder, seed)
    if fault.kind == "byte":
        path = folder / "model.npz"
        path.write_bytes(path.read_bytes()[: int(fault.at)])
        return ending._replace(killed=True)
    return ending


def test_process_ends_at_the_given_byte(tmp_path):
    assert run("rows of an experiment", tmp_path, 0, Fault("byte", 100)).killed
    assert (tmp_path / "rows.jsonl").stat().st_size <= 100
    assert signal.getsignal(signal.SIGXFSZ) == signal.SIG_IGN  # unchanged in this process
