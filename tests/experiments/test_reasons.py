"""Why the default is not first everywhere: the functions behind it, and what the pages say of the committed rows."""

from pathlib import Path

import numpy as np
import pytest
from experiments._runner import finished

import kdmaps
from experiments import _exact, reasons

ROOT = Path(__file__).resolve().parents[2]
ROWS = [row for rows in finished(ROOT / "results" / "reasons" / "rows.jsonl").values() for row in rows]
SAID = (ROOT / "docs" / "benchmarks.md").read_text()


def of(key, name):
    return [row for row in ROWS if row.get(key) == name]


def short(value, digits=3):
    return f"{value:.{digits}f}".removeprefix("0")


def test_exact_functions_of_the_cluster_alone_are_the_modes():
    """Four functions in the span of the five true ones, which is the reference."""
    system = kdmaps.problems.load("ou2d-4")
    X = system.sample(300, random_state=0)
    modes = _exact.slowest(system, X, 5)
    assert kdmaps.metrics.subspace_r2(modes, system.reference(X, 4)) == pytest.approx(1, abs=1e-8)
    assert modes.shape == (300, 4)


def test_between_classes_and_carriers():
    """One coordinate is the class, ±1; the other is 0 but for two of 100 images."""
    labels = np.repeat([0, 1], 50)
    spike = np.zeros(100)
    spike[[0, 99]] = 1, -1
    row = reasons._told_apart(np.stack([2.0 * labels - 1, spike], axis=1), labels)
    assert row["between"] == pytest.approx([1, 0.02])  # class means of ±1/50 against a variance of 2/100
    assert row["carried"] == pytest.approx([100, 2])
    assert row["right"] == [1, 1, 1]


def test_landmarks_that_have_seen_the_test_samples():
    centres = {name: of("centres", name) for name in reasons.CENTRES}
    means = {name: {key: np.mean([r[key] for r in rows]) for key in ("r2", "held out", "fresh", "exact")}
             for name, rows in centres.items()}  # fmt: skip
    seen, untested, other = means.values()
    assert f"their score Σ√t is {seen['held out']:.3f} there and {seen['fresh']:.3f} on fresh samples" in SAID
    assert f"no functions have more than {seen['exact']:.3f}" in SAID
    assert f"the score is {untested['held out']:.3f} held out and {untested['fresh']:.3f} on fresh samples" in SAID
    assert f"SubR² falls from {short(seen['r2'])} to {short(untested['r2'])}. With centres of other samples it is " \
           f"{short(other['r2'])}" in SAID  # fmt: skip
    assert all(row["held out"] > row["exact"] > row["fresh"] for row in centres["all samples"])
    assert sum(row["kernel"].startswith("Metric") for row in centres["all samples"]) == 1
    assert not any(row["kernel"].startswith("Metric") for name in reasons.CENTRES[1:] for row in centres[name])


def test_the_sample_that_misleads():
    one = [of("method", f"{count} exact functions")[1]["r2"] for count in (6, 8, 15)]
    assert f"have a SubR² of {short(one[0])}, {short(one[1])} and {short(one[2])}" in SAID
    half, twice = (np.mean([r["r2"] for r in of("method", f"SpectralEmbedding, width {w}")]) for w in (0.5, 2))
    assert f"With half that width its mean is {short(half)}, with twice the width {short(twice)}." in SAID


def test_digits_told_apart_by_two_coordinates():
    two = {name: np.mean([row["right"][0] for row in of("method", name)]) for name in reasons.DIGIT_METHODS}
    components, grid, _, default, graph, near = two.values()
    assert f"told {short(grid, 2)} apart by two modes, SpectralEmbedding {short(graph, 2)}" in SAID
    assert f"principal components ({short(components, 2)})" in SAID
    assert f"which chooses them and has {short(default)}" in SAID
    assert f"A graph of twelve neighbours has {short(near)} all the same" in SAID
