"""What docs/benchmarks.md says of networks is what the committed rows say."""

import re
from pathlib import Path

import numpy as np
import pytest
from benchmarks.neural.__main__ import TRAINING, load
from benchmarks.neural._peers import OURS, PEERS
from benchmarks.neural._tables import first, limits, means, page, usual

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "results" / "neural"
ROWS = load(FOLDER / "rows.jsonl")
SIZES = (500, 5_000, 100_000)
NUMBERS = ("none", "one", "two", "three", "four", "five", "six", "seven")
TEXT = (ROOT / "docs" / "benchmarks.md").read_text().split("## Kernels and networks")[1].split("\n## ")[0]


def figures(pattern):
    """Return the decimals in the one place of the text that a pattern with groups finds."""
    (found,) = re.findall(pattern, TEXT)
    return [float(figure) for figure in found]


def rounded(n, problem, *peers, name="subr2"):
    """Return means to three digits, as the text has them."""
    found = means(usual(ROWS, n), name)
    return [round(found[peer, problem], 3) for peer in peers]


def test_the_page_is_that_of_the_rows():
    assert (FOLDER / "table.md").read_text() == page(ROWS, load(FOLDER / "tuning.jsonl"))


def test_all_methods_have_seen_the_samples_that_the_text_names():
    cases = {}
    for n in SIZES:
        seeds = {}
        for row in usual(ROWS, n):
            seeds.setdefault((row["peer"], row["problem"]), []).append(row["seed"])
        # The same seeds, each once, for every method and problem.
        assert len({tuple(sorted(found)) for found in seeds.values()}) == 1
        problems = {problem for _, problem in seeds}
        assert len(seeds) == len(PEERS) * len(problems)
        cases[n] = NUMBERS[len(next(iter(seeds.values())))], NUMBERS[len(problems)]
    few, more, most = (cases[n] for n in SIZES)
    assert (
        f"{few[0].capitalize()} seeds of {few[1]} problems with 500 samples, {more[0]} of {more[1]} with 5,000 and "
        f"{most[0]} of {most[1]} with 100,000" in TEXT
    )
    assert not any("error" in row for row in ROWS)


def test_limits_and_what_kdmaps_takes():
    assert limits(ROWS) == TRAINING == {500: 3.0, 5_000: 3.0, 100_000: 15.0}
    for peer, words in zip(OURS, ("takes", "with a lag"), strict=True):
        stated = figures(rf"{words} (\d+) to (\d+), (\d+) to (\d+) and (\d+) to (\d+) seconds")
        for n, low, high in zip(SIZES, stated[::2], stated[1::2], strict=True):
            taken = [value for (who, _), value in means(usual(ROWS, n), "seconds").items() if who == peer]
            assert (round(min(taken)), round(max(taken))) == (low, high)


@pytest.mark.parametrize("lagged", [False, True])
def test_who_is_first(lagged):
    counts = []
    for n in SIZES:
        winners = first(usual(ROWS, n), lagged)
        ours = [peer in OURS for peer in winners.values()]
        counts.append(f"{'all' if all(ours) else NUMBERS[sum(ours)] + ' of'} {NUMBERS[len(ours)]}")
    few, more, most = counts
    who = "kdmaps with a lag" if lagged else "The default of kdmaps"
    assert f"{who} is first on {few} problems with 500, {more} with 5,000 and {most} with 100,000" in TEXT
    assert lagged or f"first on {few} problems with 500 samples" in (ROOT / "docs" / "beyond.md").read_text()


def test_where_a_network_is_first():
    won = {
        (n, problem): peer
        for n in SIZES
        for lagged in (False, True)
        for problem, peer in first(usual(ROWS, n), lagged).items()
        if peer not in OURS
    }
    # All are in the text; another one would have to be.
    assert won == {(5_000, "ou2d-4"): "VAMPnet"}
    stated = figures(r"pairs of ou2d-4 \((\.\d+) against (\.\d+)\)")
    assert stated == rounded(5_000, "ou2d-4", "VAMPnet", "kdmaps, lag")
    assert figures(r"kdmaps has (\.\d+) once and (\.\d+) or more otherwise") == single(5_000, "ou2d-4")[:2]


def single(n, problem):
    """Return SubR² of kdmaps with a lag, of each seed, ascending."""
    mine = [row["subr2"] for row in usual(ROWS, n) if (row["problem"], row["peer"]) == (problem, "kdmaps, lag")]
    return [round(value, 3) for value in sorted(mine)]


def best_two(problem):
    """Return the two largest means of 500 samples."""
    found = means(usual(ROWS, 500)).items()
    return sorted((round(mean, 3) for (peer, p), mean in found if p == problem and not PEERS[peer].lagged))[:-3:-1]


def test_the_largest_lead_is_in_ten_dimensions():
    leads = {problem: np.subtract(*best_two(problem)) for problem in first(usual(ROWS, 500), False)}
    assert max(leads, key=leads.get) == "ou10d"
    assert figures(r"500 samples of ou10d give it (\.\d+) against (\.\d+)") == best_two("ou10d")


def test_networks_gain_from_samples():
    stated = figures(r"ou10d, from (\.\d+) to (\.\d+) with 100,000 \(kdmaps: (\.\d+) to (\.\d+)\)")
    assert stated == [*rounded(500, "ou10d", "NeuralEF"), *rounded(100_000, "ou10d", "NeuralEF"),
                      *rounded(500, "ou10d", "kdmaps"), *rounded(100_000, "ou10d", "kdmaps")]  # fmt: skip
    # "Within .001", with 5,000 samples of the triple well.
    found = means(usual(ROWS, 5_000))
    assert abs(found["NeuralEF", "triplewell2d"] - found["kdmaps", "triplewell2d"]) < 1e-3
    stated = figures(r"among 48 idle coordinates from (\.\d+) to (\.\d+)")
    assert stated == [*rounded(500, "triplewell2d+48", "VAMPnet"), *rounded(100_000, "triplewell2d+48", "VAMPnet")]


def test_muller_brown_is_decided_by_seeds():
    stated = figures(r"with 5,000 kdmaps has (\.\d+), Deep Ritz (\.\d+)")
    assert stated == rounded(5_000, "muller-brown", "kdmaps", "Deep Ritz")
    stated = figures(r"kdmaps has (\.\d+), (\.\d+) and (\.\d+), Deep Ritz (\.\d+), (\.\d+) and (\.\d+)")
    mine = {(row["peer"], row["seed"]): row for row in usual(ROWS, 100_000) if row["problem"] == "muller-brown"}
    assert stated == [round(mine[peer, seed]["subr2"], 3) for peer in ("kdmaps", "Deep Ritz") for seed in (0, 1, 2)]
    assert 45 < max(mine["kdmaps", seed]["rate_error"] for seed in (0, 1, 2)) < 50  # "nearly fiftyfold"
    assert figures(r"with 500 samples the best mean is (\.\d+), the next (\.\d+)") == best_two("muller-brown")


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
    assert figures(r"NeuralEF rises by it from (\.\d+) to (\.\d+), the others by") == [
        round(value, 3) for value in found.pop("NeuralEF")
    ]
    assert round(max(more - usually for usually, more in found.values()), 2) == 0.02
