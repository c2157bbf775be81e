"""The comparison with rivals, on rivals that are made up: scoring, limits, failures, tables and goals."""

import numpy as np
import pytest

from benchmarks.rivals import __main__ as command
from benchmarks.rivals import _measure
from benchmarks.rivals import _methods as methods
from benchmarks.rivals._measure import draw, run_limited, score, work
from benchmarks.rivals._methods import Data, Found
from benchmarks.rivals._page import goals, load_rows, mean_accuracy, page, times_table
from kdmaps import metrics, problems

FAKES = """
import os, sys, time
import numpy as np
from benchmarks.rivals._methods import Found
from kdmaps import problems


def exact(data, wait):
    held = np.ones(8_000_000)  # 61 MiB
    time.sleep(wait)
    system = problems.load("dw1d")
    return Found(system.eigenfunctions(data.X, data.n_modes), 1.1 * system.rates(data.n_modes) * held[0])

def raises(data):
    raise ValueError("no such luck")

def sleeps(data):
    time.sleep(600)

def devours(data):
    return Found(np.ones((10**12, 4)))

def dies(data):
    print("last words", file=sys.stderr, flush=True)
    os._exit(3)
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    (tmp_path / "fakes.py").write_text(FAKES)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")

    def run(name, seconds=100, **options):
        return run_limited(
            seconds, 4, function=f"fakes:{name}", packages=["numpy"], options=options, lagged=False, problem="dw1d",
            n=200, seed=0, repeats=3,
        )  # fmt: skip

    return run


def row(rival, problem="a", n=500, seed=0, seconds=1.0, subr2=0.9, options=None, **more):
    task = {"rival": rival, "problem": problem, "n": n, "seed": seed, "options": options or {}}
    return {**task, "seconds": seconds, "peak_mb": 7.0, "subr2": subr2, "rate_error": None, "threads": 2, **more}


def failed(rival, message, limit, problem="a", n=500, seed=0):
    return {"rival": rival, "problem": problem, "n": n, "seed": seed, "options": {}, "error": message, "limit": limit}


def test_score_of_exact_and_of_missing_modes():
    system = problems.load("ou2d-4")
    data = draw(system, 300, 0, 4, lagged=False)
    rng = np.random.default_rng(0)
    exact = system.eigenfunctions(data.X, 4)
    good = score(system, data, Found(exact @ rng.normal(size=(4, 4)) + 5, 1.2 * system.rates(4)[::-1]))
    assert good["subr2"] == pytest.approx(1, abs=1e-10)
    assert good["rate_error"] == pytest.approx(0.2)

    # Three exact modes and one that is orthogonal to the whole reference: SubR² = 3/4.
    reference = system.reference(data.X, 4)
    known = np.linalg.qr(np.column_stack([np.ones(300), reference]))[0]
    noise = rng.normal(size=300)
    noise -= known @ (known.T @ noise)
    part = score(system, data, Found(np.column_stack([exact[:, :3], noise])))
    assert part == {"subr2": pytest.approx(0.75, abs=1e-10), "rate_error": None}


def test_score_rejects_a_wrong_number_of_modes():
    system = problems.load("dw1d")
    data = draw(system, 50, 0, 4, lagged=False)
    with pytest.raises(ValueError, match=r"shape \(50, 3\), expected \(50, 4\)"):
        score(system, data, Found(np.zeros((50, 3))))


@pytest.mark.slow
def test_a_run_measures_accuracy_time_and_memory(run):
    outcome = run("exact", wait=0.2)
    assert outcome["subr2"] == pytest.approx(1, abs=1e-10)
    assert outcome["rate_error"] == pytest.approx(0.1)
    assert outcome["runs"] == 3
    assert 0.2 <= outcome["seconds"] < 2
    # 61 MiB that the rival held, and what computing 200 exact modes takes.
    assert 61 <= outcome["peak_mb"] < 120
    assert outcome["packages"] == {"numpy": np.__version__}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "message", "limit"),
    [
        ("raises", "ValueError: no such luck", False),
        ("devours", "more than 4 GB", True),
        ("dies", "exit code 3: last words", False),
    ],
)
def test_failures_have_their_message(run, name, message, limit):
    outcome = run(name)
    assert message in outcome["error"]
    assert outcome["limit"] is limit


@pytest.mark.slow
def test_time_is_limited(run):
    assert run("sleeps", seconds=2) == {"error": "stopped after 2 s", "limit": True}


def test_rows_of_accuracy_do_not_depend_on_the_load(monkeypatch):
    monkeypatch.setattr(_measure, "run_limited", lambda seconds, gigabytes, **task: {"subr2": 0.5, "seconds": 9.0})
    (found,) = _measure.measure_accuracy(rival="klap", problem="dw1d", n=5, seed=0, seconds=1.0, gigabytes=1.0)
    assert found == {"rival": "klap", "problem": "dw1d", "n": 5, "seed": 0, "options": {}, "subr2": 0.5}


def test_a_missing_package_is_named():
    function = f"{methods.__name__}:kernel_pca"
    with pytest.raises(ModuleNotFoundError, match="no-such-rival"):
        work(function, ["no-such-rival"], {}, lagged=False, problem="dw1d", n=50, seed=0)


def test_later_positions_belong_to_the_samples():
    system = problems.load("ou2d-4")
    data = draw(system, 4000, 3, 4, lagged=True)
    np.testing.assert_array_equal(data.X, draw(system, 4000, 3, 4, lagged=False).X)
    assert data.lag == pytest.approx(0.5 / 4)
    for j, rate in enumerate((1, 4)):
        slope = data.X[:, j] @ data.later[:, j] / (data.X[:, j] @ data.X[:, j])
        decay = np.exp(-rate * data.lag)
        # Standard error of a regression slope, four times.
        assert abs(slope - decay) < 4 * np.sqrt((1 - decay**2) / 4000)


def test_conjugate_modes_become_real_ones():
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, 50))
    values = np.array([0.9, 0.5 + 0.1j, 0.5 - 0.1j])
    found = methods.real_modes(values, np.column_stack([c, a + 1j * b, a - 1j * b]))
    assert not np.iscomplexobj(found)
    assert metrics.subspace_r2(found, np.column_stack([a, b, c])) == pytest.approx(1, abs=1e-12)


@pytest.mark.filterwarnings("ignore:.*same time scale:kdmaps.exceptions.UnreliableModesWarning")
def test_textbook_finds_the_modes_of_one_fit():
    X = problems.load("ou10d").sample(300, random_state=0)
    data = Data(X, 3, 0)  # rates 1, 2, 2, then 3
    ours, theirs = methods.kdmaps_fit(data, n_features=60), methods.textbook(data, n_features=60)
    # Two orders of summation; λ=0.01 keeps the condition number of the pencil below 1e6.
    assert metrics.subspace_r2(ours.modes, theirs.modes) == pytest.approx(1, abs=1e-9)


def test_rival_over_the_limit_skips_larger_samples(tmp_path, monkeypatch):
    def measure(rival, problem, n, seed, seconds, gigabytes, options=None, n_modes=None):
        if rival == "klap" and problem == "dw1d" and n >= 1000:
            return [failed(rival, "stopped after 9 s", True, problem, n)]
        return [row(rival, problem, n)]

    monkeypatch.setattr(command, "measure", measure)
    limits = {"seconds": 9.0, "gigabytes": 1.0}
    path = tmp_path / "times.jsonl"
    rows = command.times(["klap", "klap, λ=0.01"], ["dw1d", "circle"], [500, 1000, 2000], limits, path)
    sizes = {p: [r["n"] for r in rows if r["problem"] == p] for p in ("dw1d", "circle")}
    assert sizes == {"dw1d": [500, 1000], "circle": [500, 1000, 2000]}
    assert {r["rival"] for r in rows} == {"klap"}  # its variant is measured for accuracy only
    assert times_table([r for r in rows if r["problem"] == "dw1d"] + [row("textbook", n=2000)]).splitlines()[-1] == (
        "| klap | 1 (7) | failed | – |"
    )
    assert len(load_rows(path)) == len(rows)


def test_goals_take_the_worst_comparison():
    one = "kdmaps, one fit"
    times = [
        row(one, "ou2d-4", 500, seconds=0.5), row("pyDiffMap", "ou2d-4", 500, seconds=2.0),
        row(one, "dw1d", 500, seconds=2.0), row("pyDiffMap", "dw1d", 500, seconds=1.0),
        row(one, "ou10d", 10_000, seconds=1.0, options={"n_features": 500}, n_modes=4),
        row("klap", "ou10d", 10_000, seconds=25.0, options={"n_features": 500}, n_modes=4),
        row("klap", "ou10d", 10_000, seconds=3.0), row(one, "ou10d", 10_000, seconds=1.0),
        failed("kooplearn", "stopped", True, "ou2d-4", 1000), row(one, "ou2d-4", 1000),
    ]  # fmt: skip
    accuracy = [
        *(row("kdmaps, search", "a", seed=s, subr2=v) for s, v in enumerate((0.9, 1.0))),
        *(row("klap", "a", seed=s, subr2=v) for s, v in enumerate((0.99, 0.97))),
        row("kdmaps, search", "b", subr2=0.8), row("klap", "b", subr2=0.7), failed("KernelPCA", "boom", False, "b"),
    ]  # fmt: skip
    found = {goal.text: goal for goal in goals(accuracy, times)}
    pydiffmap = found["one fit ≥ 1× as fast as pyDiffMap, every N"]
    assert pydiffmap.measured == "0.5× (dw1d, N=500), median 2.25×, 2 comparisons"
    assert pydiffmap.kept is False
    klap = found["one fit ≥ 20× as fast as klap, N=10,000, d=10, p=500"]
    assert (klap.measured, klap.kept) == ("25× (ou10d, N=10,000)", True)
    assert found["one fit ≥ 500× as fast as kooplearn, N=1,000"].kept is None
    search = found["kdmaps, search: more accurate than every rival on every problem"]
    assert (search.measured, search.kept) == ("first on 1 of 2; not on a: 0.9500, klap 0.9800", False)
    assert mean_accuracy([row("klap", seed=0), failed("klap", "boom", False, seed=1)]) == {}


def test_page_shows_means_failures_and_settings():
    accuracy = [
        row("kdmaps, search", subr2=0.9, rate_error=0.1, packages={"kdmaps": "9.9"}),
        row("kdmaps, search", seed=1, subr2=0.8, rate_error=0.3),
        row("klap", subr2=0.7), row("klap", seed=1, subr2=0.6),
        failed("deeptime", "ValueError: a | b\nsecond line", False), row("deeptime", seed=1),
    ]  # fmt: skip
    text = page(accuracy, [row("klap", seconds=0.123)])
    assert "| kdmaps, search | **0.8500 (0.800)** |" in text
    assert "| klap | 0.6500 (0.600) |" in text
    assert "| deeptime | failed |" in text
    assert "| kdmaps, search | 0.2 |" in text  # rates
    assert "| deeptime | 500 | a | ValueError: a \\| b second line |" in text
    assert "| kdmaps, search | kdmaps 9.9 | KernelSearchCV | defaults |" in text
    assert "| klap | 0.123 (7) |" in text
    assert "| deeptime | did not run |" in text


@pytest.mark.slow
def test_command_writes_page_and_figures(tmp_path, monkeypatch, capsys):
    for name in ("measure", "measure_accuracy"):
        monkeypatch.setattr(command, name, lambda rival, problem, n, seed, **_: [row(rival, problem, n, seed)])
    arguments = ["--rivals", "kdmaps, one fit", "pyDiffMap", "--problems", "dw1d", "--sizes", "500", "1000"]
    command.main(["all", *arguments, "--seeds", "2", "--out", str(tmp_path)])
    assert "1× (dw1d, N=500), median 1×, 2 comparisons" in capsys.readouterr().out
    assert (tmp_path / "table.md").read_text().startswith("# kdmaps and its rivals")
    assert {path.name for path in tmp_path.iterdir()} == {
        "accuracy.jsonl", "times.jsonl", "table.md", "time.png", "error.png",
    }  # fmt: skip
