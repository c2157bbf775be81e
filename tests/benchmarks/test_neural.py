"""The comparison with neural methods: scores, tables, tasks, and what docs/benchmarks.md claims of the rows."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.neural import __main__ as command
from benchmarks.neural import _measure, _methods
from benchmarks.neural._methods import PEERS
from benchmarks.neural._page import first, means, page
from benchmarks.rivals import _measure as rivals_measure
from benchmarks.rivals._measure import draw
from benchmarks.rivals._page import failures_table
from kdmaps import problems

ROOT = Path(__file__).resolve().parents[2]


def row(peer, problem="ou2d-4", seed=0, subr2=0.9, n=500, training=3.0, **more):
    task = {"peer": peer, "problem": problem, "n": n, "seed": seed, "training": training, "learning_rate": 1e-3}
    return {**task, "subr2": subr2, "rate_error": 0.1, "seconds": 2.0, "peak_mb": 7.0, "packages": {"x": "1"}, **more}


def test_score_uses_new_samples_and_the_diffusion_constant():
    system = problems.OrnsteinUhlenbeck((1, 3), 0.1)
    data = draw(system, 300, 0, 2, lagged=False)
    new = system.sample(200, random_state=1)
    mixing = np.array([[1.0, 2.0], [0.5, -1.0]])

    def modes(X):
        return system.eigenfunctions(X, 2) @ mixing + 3

    found = _measure.score(system, data, modes, system.rates(2) / system.diffusion, False, new)
    assert found == {
        "rate_error": pytest.approx(0, abs=1e-12),
        "subr2": pytest.approx(1),
        "subr2_training": pytest.approx(1),
    }
    assert _measure.score(system, data, modes, 2 * system.rates(2), True, new)["rate_error"] == pytest.approx(1)
    with pytest.raises(ValueError, match="not finite"):
        _measure.score(system, data, lambda X: modes(X) * np.nan, None, False, new)


def test_slowest_functions_of_a_span_exclude_the_constant():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5000, 1))
    # 1, He1, He2 and their gradients, mixed; rates 1 and 2.
    values = np.hstack([np.ones_like(x), x, x**2 - 1])
    gradients = np.hstack([np.zeros_like(x), np.ones_like(x), 2 * x])
    mixing = rng.normal(size=(3, 3))
    values, gradients = values @ mixing, gradients @ mixing
    rates, coefficients = _methods.slowest(gradients.T @ gradients / 5000, np.cov(values.T, bias=True), 2)
    # Monte-Carlo error of fourth moments: about 3 % each, three times.
    np.testing.assert_allclose(rates, [1, 2], rtol=0.1)
    assert np.cov((values @ coefficients).T, bias=True) == pytest.approx(np.eye(2), abs=1e-6)


def test_failed_fit_is_a_row(monkeypatch):
    monkeypatch.setattr(_methods, "kdmaps_default", lambda data, rate, seconds: 1 / 0)
    (found,) = _measure.work("kdmaps", 50, ["dw1d"], [0], [None], 1.0)["rows"]
    assert found["error"] == "ZeroDivisionError: division by zero"
    assert (found["problem"], found["seed"]) == ("dw1d", 0)


def test_killed_process_is_a_row(monkeypatch):
    monkeypatch.setattr(_measure, "run_limited", lambda *limits, **task: {"error": "exit code 3", "limit": False})
    (found,) = _measure.measure("VAMPnet", 500, ["circle"], 3.0, seeds=[0])
    died = {"peer": "VAMPnet", "n": 500, "problem": "circle", "training": 3.0, "error": "exit code 3", "limit": False}
    assert found == died
    assert "| VAMPnet | 500 | circle | exit code 3 |" in failures_table([found], "peer")
    # A mean of the other seeds would hide it.
    assert ("VAMPnet", "circle") not in means([found, row("VAMPnet", "circle", seed=1)])


def test_most_accurate_method_of_samples_and_of_pairs():
    rows = [row("kdmaps", subr2=0.8), row("kdmaps", seed=1, subr2=1.0), row("NeuralEF", subr2=0.95),
            row("Deep Ritz", subr2=0.99), {**row("Deep Ritz", seed=1), "subr2": None},
            row("VAMPnet", subr2=0.7), row("kdmaps, lag", subr2=0.6)]  # fmt: skip
    assert means(rows)["kdmaps", "ou2d-4"] == pytest.approx(0.9)
    assert ("Deep Ritz", "ou2d-4") not in means(rows)  # it failed on a seed
    assert first(rows, lagged=False) == {"ou2d-4": "NeuralEF"}
    assert first(rows, lagged=True) == {"ou2d-4": "VAMPnet"}


def test_learning_rates_are_tuned_on_other_samples(monkeypatch, tmp_path):
    def tasks(function, tasks, path, *_, **__):
        (task,) = tasks
        assert task["seeds"] == [command.TUNING_SEED]
        return [row(task["peer"], learning_rate=rate, subr2=rate) for rate in task["learning_rates"]]

    monkeypatch.setattr(command, "run_tasks", tasks)
    plan = command.plan(["kdmaps", "NeuralEF"], [500], tmp_path)
    assert all(command.TUNING_SEED not in task["seeds"] for task in plan)
    rates = {task["peer"]: task["learning_rates"] for task in plan}
    assert rates == {"kdmaps": [None], "NeuralEF": [max(PEERS["NeuralEF"].learning_rates)]}


def test_added_seeds_do_not_change_finished_tasks(monkeypatch, tmp_path):
    def seeds(cases):
        monkeypatch.setattr(command, "CASES", cases)
        return [task["seeds"] for task in command.plan(["kdmaps"], [500], tmp_path)]

    before = (500, ("circle",), (0, 1))
    assert seeds((before,)) == [[0, 1]]
    assert seeds((before, (500, ("circle",), (2,)), (5000, ("circle",), (3,)))) == [[0, 1], [2]]


def test_no_sample_is_planned_twice():
    planned = [(n, name, seed) for n, names, seeds in command.CASES for name in names for seed in seeds]
    assert len(planned) == len(set(planned))


def test_long_simulations_go_step_by_step(monkeypatch):
    system = problems.load("triplewell2d")
    whole = draw(system, 50, 0, 2, lagged=True)
    monkeypatch.setattr(rivals_measure, "FRAMES", 0)
    found = draw(system, 50, 0, 2, lagged=True)
    assert found.lag == whole.lag
    # The same random numbers in the same order.
    np.testing.assert_array_equal(found.later, whole.later)


def test_page_from_rows():
    rows = [row("kdmaps", subr2=0.98, learning_rate=None), row("NeuralEF", subr2=0.95),
            row("NeuralEF", subr2=0.97, training=30.0), row("SpectralNet", rate_error=None),
            row("NeuralEF", subr2=0.99, n=5000, training=15.0)]  # fmt: skip
    tuning = [row("NeuralEF", learning_rate=rate, subr2=0.9 + rate) for rate in PEERS["NeuralEF"].learning_rates]
    text = page(rows, tuning)
    assert "| kdmaps | **0.9800 (0.980)** |" in text
    assert "## N=500, 1 seeds, at most 3 s of training" in text
    assert "## N=5,000, 1 seeds, at most 15 s of training" in text
    assert "| NeuralEF | **0.9900 (0.990)** |" in text
    assert "| NeuralEF | 0.9500 → 0.9700 |" in text
    assert "**0.01: 0.910**" in text
    assert "| NeuralEF | 2.0 (7) |" in text
    assert "| kdmaps | 0.1 |" in text  # rates
    assert "| SpectralNet | 0.1 |" not in text
