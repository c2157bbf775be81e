"""The loop of examples/bias_muller_brown: rounds are stored, resumed after a kill, and end when nothing changes."""

import json
import os
import re
import shutil
import signal
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from shared import wide_map

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "bias_muller_brown"


def module(name):
    spec = spec_from_file_location(f"bias_muller_brown_{name}", EXAMPLE / f"{name}.py")
    loaded = module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


Loop, spread = (getattr(module("loop"), name) for name in ("Loop", "spread"))
write_page = module("page").write_page
posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes that end by signals of POSIX")


def sampled(bias, starts, seed):
    """Draw 400 points of e^{-x²/2 - U} by importance resampling of a wide uniform law."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-4, 4, (8000, 1))
    p = np.exp(-(x[:, 0] ** 2) / 2 - (0 if bias is None else bias.energy(x)))
    return x[rng.choice(len(x), 400, p=p / p.sum(), replace=False)]


def fit(X, weight):
    return wide_map(1).fit(X, sample_weight=weight)


def loop(directory, simulate=sampled, fit=fit, **options):
    return Loop(directory, simulate, fit, kT=1.0, n_starts=10, **options)


def test_rounds_find_the_rate_and_settle(tmp_path):
    done = loop(tmp_path).run(max_rounds=8)
    assert done.settled
    assert len(done.rounds) < 8
    # Var of the rate of N(0, 1) from n frames is about 2/n: with 1,600 frames and their weights, 0.05.
    assert done.rounds[-1]["rates"][0] == pytest.approx(1, abs=0.15)
    _, X, weight = done.weighted()
    assert np.average(X[:, 0] ** 2, weights=weight) == pytest.approx(1, abs=0.15)
    assert done.frames(len(done.rounds) - 1).std() > 1.2  # the bias widens what is sampled
    assert_allclose(done.model().rates_, done.rounds[-1]["rates"])


def ends(process):
    """Run a function in a new process; return the signal that ended it, 0 if none did."""
    if (child := os.fork()) == 0:
        process()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def fatal(*_):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return loop(tmp_path_factory.mktemp("whole")).run(max_rounds=3)


@pytest.fixture
def begun(whole, tmp_path):
    """A directory with the files of the first round only."""
    (begun := tmp_path / "begun").mkdir()
    for path in whole.directory.glob("round_000.*"):
        shutil.copy(path, begun)
    return begun


@posix
@pytest.mark.parametrize("kill", ["simulate", "fit"])
def test_resumes_a_killed_round_with_the_same_result(whole, begun, kill):
    assert ends(lambda: loop(begun, **{kill: fatal}).run(max_rounds=3)) == -signal.SIGKILL
    assert not (begun / "round_001.json").exists()
    assert (begun / "round_001.npz").exists() == (kill == "fit")
    simulated = []

    def simulate(bias, starts, seed):
        simulated.append(seed)
        return sampled(bias, starts, seed)

    resumed = loop(begun, simulate)
    assert len(resumed.rounds) == 1
    resumed.run(max_rounds=3)
    assert len(simulated) == (1 if kill == "fit" else 2)  # complete frames are reused
    assert json.dumps(resumed.rounds) == json.dumps(whole.rounds)


def broken_off(directory, number):
    """Run the second round in a process that ends 10 bytes into its `number`-th file, or at its `number`-th rename."""
    import resource

    count = 0

    def look(event, arguments):
        nonlocal count
        writes = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if (writes or event == "os.rename") and str(directory) in str(arguments[0]):
            count += 1
            if count == number and writes:
                resource.setrlimit(resource.RLIMIT_FSIZE, (10, resource.RLIM_INFINITY))
            elif count == number:
                fatal()

    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    sys.addaudithook(look)
    loop(directory).run(max_rounds=2)


@posix
@pytest.mark.slow
def test_resumes_after_a_kill_in_any_file(whole, begun, tmp_path):
    endings = []
    for number in range(1, 100):
        shutil.copytree(begun, directory := tmp_path / str(number))
        endings.append(ends(lambda directory=directory, number=number: broken_off(directory, number)))
        if endings[-1] == 0:
            break
        assert json.dumps(loop(directory).run(max_rounds=2).rounds) == json.dumps(whole.rounds[:2]), number
    assert endings[-1] == 0
    # Frames, two models, the bias and the summary are opened and renamed.
    assert min(endings.count(-signal.SIGXFSZ), endings.count(-signal.SIGKILL)) >= 5


def test_spread_prefers_distant_rows():
    """Given a thousand rows in one place and eleven on a line, rows of the line come first, its ends before others."""
    line = np.column_stack([np.linspace(0, 10, 11), np.zeros(11)])
    X = np.vstack([np.full((1000, 2), 0.001), line])
    chosen = X[spread(X, 12)]
    assert_allclose(chosen[:3, 0], [0.001, 10, 5])
    assert_allclose(np.sort(chosen[:11, 0]), [0.001, *range(1, 11)])
    assert len(spread(line, 100)) == 11  # no row twice


def test_cached_weights_agree_with_a_new_loop(tmp_path):
    first = loop(tmp_path).run(max_rounds=3)
    for number in (2, 0, 2):
        for ours, theirs in zip(first.weighted(number), loop(tmp_path).weighted(number), strict=True):
            assert_allclose(ours, theirs)


def test_finished_loop_does_not_simulate(tmp_path):
    first = loop(tmp_path).run(max_rounds=2)

    def simulate(bias, starts, seed):
        raise AssertionError("simulated again")

    assert loop(tmp_path, simulate).run(max_rounds=2).rounds == first.rounds


def test_invalid_arguments(tmp_path):
    with pytest.raises(ValueError, match="kT must be"):
        Loop(tmp_path, sampled, fit, kT=0.0)
    with pytest.raises(ValueError, match=r"memory must be .* got 0"):
        loop(tmp_path, memory=0)
    with pytest.raises(ValueError, match="n_even must be"):
        loop(tmp_path, n_even=2.5)
    with pytest.raises(ValueError, match="simulate must return finite frames"):
        loop(tmp_path, lambda *_: np.array([[np.nan]])).run(1)
    with pytest.raises(ValueError, match="finished round"):
        write_page(loop(tmp_path), tmp_path / "page.html")


def test_page_shows_every_round(tmp_path):
    def simulate(bias, starts, seed):
        return np.random.default_rng(seed).standard_normal((300, 2)) * [1.0, 0.5]

    done = Loop(tmp_path, simulate, fit, kT=2.0, n_starts=5, n_even=200).run(max_rounds=2)
    done.rounds[1]["warnings"] = ["rates <may> be wrong"]
    write_page(done, tmp_path / "page.html", names=["angle", "<b>ond"])
    page = (tmp_path / "page.html").read_text()
    rows = re.findall(r"<tr>(.*?)</tr>", page)
    for number, one in enumerate(done.rounds):
        cells = re.findall(r"<td>(.*?)</td>", rows[1 + number])
        numbers = [f"{one['rates'][0]:.4g}", f"{one['free_energy'] / 2:.2f}", f"{one['height'] / 2:.1f}"]
        assert cells[:4] == [str(number), *numbers]
        assert f"Modes and free energy of round {number}" in page
    assert "rates &lt;may&gt; be wrong" in page
    assert "<b>ond" not in page
    assert not re.search(r'(?:src|href)="(?!data:|#)', page)  # needs no other file
    write_page(done, tmp_path / "page.html", coordinates=[1])
