"""Work in a separate process that is killed, or finds the disk full, at a given point."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
import warnings
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.faults._work import WORK

#: Seconds after which work is considered to hang.
PATIENCE = 120.0
#: Calls that open, rename, link or remove files.
CALLS = ("open", "os.rename", "os.link", "os.remove")
SERVER = get_context("forkserver")
SERVER.set_forkserver_preload(["benchmarks.faults._ready"])


class Fault(NamedTuple):
    """Point at which a process fails.

    "moment": killed after so many seconds; "call": at its n-th call of `CALLS` in the folder; "byte": when a file would
    have more than n bytes; "full": as "byte", but the write is an error, as on a full disk; "none".
    """

    kind: str
    at: float = 0.0


NO_FAULT = Fault("none")


class Ending(NamedTuple):
    """How a process ended."""

    killed: bool
    error: str  # type and text of the exception, or empty
    calls: int  # of CALLS in the folder
    seconds: float


def run(name: str, folder: Path, seed: int, fault: Fault = NO_FAULT) -> Ending:
    """Do the work `name` in a new process, with a fault."""
    ours, theirs = SERVER.Pipe(duplex=False)
    process = SERVER.Process(target=_child, args=(theirs, name, folder, seed, fault))
    start = time.perf_counter()
    process.start()
    theirs.close()
    process.join(fault.at if fault.kind == "moment" else PATIENCE)
    seconds = time.perf_counter() - start
    hangs = process.is_alive() and fault.kind != "moment"
    process.kill()
    process.join()
    if hangs:
        raise TimeoutError(f"{name} with {fault} hangs.")
    killed = process.exitcode in (-signal.SIGKILL, -signal.SIGXFSZ)
    try:
        error, calls = ours.recv()
    except EOFError:
        error, calls = "", 0
    return Ending(killed, error, calls, seconds)


def _child(answer: Connection, name: str, folder: Path, seed: int, fault: Fault) -> None:
    calls = 0

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal calls
        if event in CALLS and str(folder) in os.path.abspath(str(arguments[0])):
            calls += 1
            if fault.kind == "call" and calls == fault.at:
                os.kill(os.getpid(), signal.SIGKILL)

    warnings.simplefilter("ignore")
    sys.addaudithook(count)
    if fault.kind in ("byte", "full"):
        # The kernel ends the process in the middle of a file; Python ignores the signal, and has an error instead.
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL if fault.kind == "byte" else signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(fault.at), resource.RLIM_INFINITY))
    error = ""
    try:
        WORK[name].run(folder, seed)
    except Exception as caught:
        error = f"{type(caught).__name__}: {caught}"
    answer.send((error, calls))
