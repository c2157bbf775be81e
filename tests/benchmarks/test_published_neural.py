"""Numbers of docs/benchmarks.md about networks, against the committed rows."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.neural.__main__ import TRAINING, load
from benchmarks.neural._methods import OURS, PEERS
from benchmarks.neural._page import first, limits, means, page, usual
from pages import read_page, states

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "results" / "neural"
ROWS = load(FOLDER / "rows.jsonl")
SIZES = (500, 5_000, 100_000)
TEXT = read_page("benchmarks.md", "Kernels and networks")


def rounded(values):
    """Three digits, as in the text."""
    return [f"{value:.3f}" for value in values]


def subr2(n, problem, *peers):
    """Means of SubR², as in the text."""
    found = means(usual(ROWS, n), "subr2")
    return rounded(found[peer, problem] for peer in peers)


def test_table_matches_the_rows():
    assert (FOLDER / "table.md").read_text() == page(ROWS, load(FOLDER / "tuning.jsonl"))


def test_all_methods_have_the_same_samples():
    cases = {}
    for n in SIZES:
        seeds = {}
        for row in usual(ROWS, n):
            seeds.setdefault((row["peer"], row["problem"]), []).append(row["seed"])
        # The same seeds, each once, for every method and problem.
        assert len({tuple(sorted(found)) for found in seeds.values()}) == 1
        problems = {problem for _, problem in seeds}
        assert len(seeds) == len(PEERS) * len(problems)
        cases[n] = len(next(iter(seeds.values()))), len(problems)
    assert states(TEXT, "seeds", *(number for n in SIZES for number in (*cases[n], n)))
    assert not any("error" in row for row in ROWS)


def test_time_limits_and_times_of_kdmaps():
    assert limits(ROWS) == TRAINING == {500: 3.0, 5_000: 3.0, 100_000: 15.0}
    for peer in OURS:
        ranges = []
        for n in SIZES:
            taken = [value for (who, _), value in means(usual(ROWS, n), "seconds").items() if who == peer]
            ranges += [round(min(taken)), round(max(taken))]
        assert states(TEXT, "seconds", *ranges)


@pytest.mark.parametrize("lagged", [False, True])
def test_number_of_problems_where_kdmaps_is_first(lagged):
    stated = []
    for n in SIZES:
        ours = [peer in OURS for peer in first(usual(ROWS, n), lagged).values()]
        stated += [len(ours), n] if all(ours) else [sum(ours), len(ours), n]
    assert states(TEXT, "with a lag" if lagged else "default of kdmaps", *stated)
    assert lagged or states(read_page("beyond.md", "Graph Laplacians and neural methods"), "default", *stated[:2])


def test_where_a_network_is_first():
    won = {
        (n, problem): peer
        for n in SIZES
        for lagged in (False, True)
        for problem, peer in first(usual(ROWS, n), lagged).items()
        if peer not in OURS
    }
    # The text mentions all of them.
    assert won == {
        (5_000, "ou2d-4"): "VAMPnet",
        (500, "muller-brown"): "VAMPnet",
        (5_000, "muller-brown"): "Deep Ritz",
    }
    assert states(TEXT, "same", *set(subr2(500, "muller-brown", "VAMPnet", "kdmaps, lag")))
    assert states(TEXT, "ou2d-4", *subr2(5_000, "ou2d-4", "VAMPnet", "kdmaps, lag"), *single(5_000, "ou2d-4")[:2])


def single(n, problem):
    """Return SubR² of kdmaps with a lag, of each seed, ascending."""
    mine = [row["subr2"] for row in usual(ROWS, n) if (row["problem"], row["peer"]) == (problem, "kdmaps, lag")]
    return rounded(sorted(mine))


def best_two(problem):
    """Return the two largest means of 500 samples."""
    found = means(usual(ROWS, 500)).items()
    return sorted(mean for (peer, p), mean in found if p == problem and not PEERS[peer].lagged)[:-3:-1]


def test_the_largest_lead_is_in_ten_dimensions():
    leads = {problem: np.subtract(*best_two(problem)) for problem in first(usual(ROWS, 500), False)}
    assert max(leads, key=leads.get) == "ou10d"
    assert states(TEXT, "ou10d", 500, *rounded(best_two("ou10d")))


def test_networks_gain_from_samples():
    gains = [subr2(n, "ou10d", peer)[0] for peer in ("NeuralEF", "kdmaps") for n in (500, 100_000)]
    assert states(TEXT, "NeuralEF", *gains)
    # Within .001 with 5,000 samples of the triple well.
    found = means(usual(ROWS, 5_000))
    assert abs(found["NeuralEF", "triplewell2d"] - found["kdmaps", "triplewell2d"]) < 1e-3
    assert states(TEXT, "VAMPnets", 48, *(subr2(n, "triplewell2d+48", "VAMPnet")[0] for n in (500, 100_000)))


def test_order_on_muller_brown_depends_on_the_seed():
    assert states(TEXT, "muller-brown", *subr2(5_000, "muller-brown", "kdmaps", "Deep Ritz"))
    mine = {(row["peer"], row["seed"]): row for row in usual(ROWS, 100_000) if row["problem"] == "muller-brown"}
    each = [mine[peer, seed]["subr2"] for peer in ("kdmaps", "Deep Ritz") for seed in (0, 1, 2)]
    assert states(TEXT, "muller-brown", *rounded(best_two("muller-brown")), *rounded(each))
    assert 65 < max(mine["kdmaps", seed]["rate_error"] for seed in (0, 1, 2)) < 75  # "seventy"


def patience(n, problem):
    """Return SubR² of networks on one sample, with the usual training and with five times as much."""
    pairs = {}
    for row in ROWS:
        if (row["n"], row["problem"], row["seed"]) == (n, problem, 0) and row["peer"] not in OURS:
            pairs.setdefault(row["peer"], {})[row["training"]] = row["subr2"]
    return {peer: (found[min(found)], found[max(found)]) for peer, found in pairs.items()}


def test_more_training_helps_one_network_of_five():
    gains = [more - usually for usually, more in patience(500, "ou2d-4").values()]
    assert len(gains) == 5
    assert (sum(gain > 1e-3 for gain in gains), sum(gain < -1e-3 for gain in gains)) == (1, 2)
    found = patience(5_000, "ou10d")
    gain = rounded(found.pop("NeuralEF"))
    assert states(TEXT, "NeuralEF", *gain, f"{max(more - usually for usually, more in found.values()):.2f}")
