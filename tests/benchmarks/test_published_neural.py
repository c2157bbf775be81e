"""What docs/benchmarks.md says of networks is what the committed rows say."""

from pathlib import Path

from benchmarks.neural.__main__ import TRAINING, load
from benchmarks.neural._tables import first, means, page

FOLDER = Path(__file__).resolve().parents[2] / "results" / "neural"
ROWS = load(FOLDER / "rows.jsonl")


def usual(n):
    return [row for row in ROWS if row["n"] == n and row["training"] == TRAINING]


def test_the_page_is_that_of_the_rows():
    assert (FOLDER / "table.md").read_text() == page(ROWS, load(FOLDER / "tuning.jsonl"))


def test_who_is_first_with_few_samples():
    winners = first(usual(500), lagged=False)
    others = {problem: peer for problem, peer in winners.items() if peer != "kdmaps"}
    assert len(winners) == 7
    assert others == {"ou2d-4": "NeuralEF", "muller-brown": "Deep Ritz"}
    assert set(first(usual(500), lagged=True).values()) == {"kdmaps, lag"}
    found = means(usual(500))
    assert [round(found[peer, "ou2d-4"], 3) for peer in ("NeuralEF", "kdmaps")] == [0.954, 0.95]
    assert [round(found[peer, "muller-brown"], 2) for peer in ("Deep Ritz", "kdmaps")] == [0.59, 0.57]


def test_who_is_first_with_more():
    assert set(first(usual(5000), lagged=False).values()) == {"kdmaps"}
    assert first(usual(5000), lagged=True) == {
        "ou10d": "VAMPnet", "triplewell2d": "kdmaps, lag", "triplewell2d+48": "kdmaps, lag",
    }  # fmt: skip
    found = means(usual(5000))
    assert [round(found[peer, "ou10d"], 3) for peer in ("VAMPnet", "kdmaps, lag")] == [0.959, 0.956]
    seconds = means(usual(5000), "seconds")
    assert 2.5 < seconds["kdmaps, lag", "ou10d"] / seconds["VAMPnet", "ou10d"] < 3.5
    assert abs(found["NeuralEF", "triplewell2d"] - found["kdmaps", "triplewell2d"]) < 1e-4


def test_more_training_helps_one_network_of_five():
    pairs = {}
    for row in ROWS:
        if (row["n"], row["problem"], row["seed"]) == (500, "ou2d-4", 0) and not row["peer"].startswith("kdmaps"):
            pairs.setdefault(row["peer"], {})[row["training"]] = row["subr2"]
    gains = [found[max(found)] - found[min(found)] for found in pairs.values()]
    assert len(gains) == 5
    assert (sum(gain > 1e-3 for gain in gains), sum(gain < -1e-3 for gain in gains)) == (1, 2)
