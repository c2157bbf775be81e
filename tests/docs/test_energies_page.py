"""The tables of docs/howto/energies.md are those of results/energies and results/cells."""

from pathlib import Path

from pages import states

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "howto" / "energies.md").read_text()


def tables(path):
    """Tables of a file of results, as text."""
    parts = (ROOT / "results" / path).read_text().strip().split("\n\n")
    return [part.strip() for part in parts if part.startswith("|")]


def test_tables_are_the_results():
    assert tables("energies/table.md")[0] in PAGE
    assert tables("cells/table.md")[0] in PAGE


def test_numbers_of_the_text():
    lines = tables("cells/table.md")[1].splitlines()
    cells = {tuple(line.split(" | ")[:2]): line.split(" | ") for line in lines}
    kdmaps, scanpy, palantir = 2, 4, 6
    knn, _, stability, projection = range(4)

    def value(name, seed, method, measure):
        return f"{float(cells[f'| {name}', seed][method].strip('| ').split(' / ')[measure]):.2f}"

    sets = (("tree", "101"), ("digits", "100"))
    accuracies = [value(*where, method, knn) for method in (kdmaps, scanpy) for where in sets]
    assert states(PAGE, "kNN on two components", "two", *("101", *accuracies[:2], 30, *accuracies[2:]))
    walks = [value("random walks", "100", method, stability) for method in (kdmaps, scanpy, palantir)]
    assert states(PAGE, "Stability", "100", walks[0], 30, *walks[1:])
    sets = (("digits", "100"), ("types", "101"), ("wine", "100"))
    misses = [value(*where, kdmaps, projection) for where in sets]
    assert states(PAGE, "Projection", "0.04", misses[0], "101", *misses[1:])
