"""Verdicts on printed cells, claims, and the page of sections."""

import csv
import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from experiments.paper import _sections, claims, questions
from experiments.paper._page import PAGES, Section, write_pages
from experiments.paper._printed import MAIN_RESULTS, SELECTED
from experiments.paper._show import Table
from experiments.paper._verdicts import Difference, conclusion, difference
from experiments.paper.cells import PROTOCOLS, SOURCES, Cell, task_of
from experiments.paper.variants import agreeing_pairs, agreeing_printed_pairs

ROOT = Path(__file__).parents[2]


# --- verdicts ---------------------------------------------------------------------------------------------------------
def test_difference_has_both_spreads():
    found = np.array([0.70, 0.72, 0.74])  # variance 0.0004
    gap = difference(found, 0.75, 0.03, 3)
    assert gap.value == pytest.approx(-0.03)
    assert gap.error == pytest.approx(np.sqrt(0.0004 / 3 + 0.0009 / 3), rel=1e-3)
    expected = stats.ttest_ind_from_stats(np.mean(found), 0.02, 3, 0.75, 0.03, 3, equal_var=False)
    assert 2 * stats.t.sf(gap.in_errors, gap.freedom) == pytest.approx(expected.pvalue, rel=2e-3)  # but for rounding
    assert gap.passes == (expected.pvalue > 0.05)
    assert gap.within
    single = difference(found, 0.75, None, 1)  # a single draw has the spread that is found
    assert single.error == pytest.approx(np.sqrt(0.0004 / 3 + 0.0004), rel=1e-3)
    assert single.freedom == 2


def test_large_spread_of_one_side_does_not_hide_a_difference_of_the_other():
    """The standard deviation alone would call 0.60 ± 0.10 and 0.80 ± 0.10 equal; of 25 seeds each they are not."""
    found = 0.6 + 0.1 * np.tile([-1.0, 1.0], 13)[:25]
    assert not difference(found, 0.8, 0.1, 25).within


def test_equal_numbers_are_within_rounding():
    assert difference(np.full(3, 0.7474), 0.747, 0.0, 3).within
    assert not difference(np.full(3, 0.75), 0.747, 0.0, 3).within


@pytest.mark.parametrize(
    ("printed", "found", "ratios", "word"),
    [
        (0.1, 0.1, (2.0, 2.5), "same"),
        (0.1, 0.1, (2.0, 9.0), "same sign, other size"),
        (0.1, 0.0, (2.0, 1.0), "no difference here"),
        (0.0, 0.1, (1.0, 2.0), "a difference here"),
        (0.1, -0.1, (2.0, 0.5), "reversed"),
        (0.001, -0.001, (1.0, 1.0), "same: no difference"),
    ],
)
def test_conclusions(printed, found, ratios, word):
    assert conclusion(printed, Difference(found, 0.005), *ratios) == word


def test_a_reversed_claim_is_not_agreement():
    """VarRFF ≥ CV+RFF as printed, and clearly below it here."""
    key = ("OU2D α=4", "VarRFF")
    assert SOURCES["tab:tier1"].cells[key] == (0.991, 0.008)
    found = dict.fromkeys(PROTOCOLS, np.array([0.90, 0.91, 0.92]))
    baseline = dict.fromkeys(PROTOCOLS, np.array([0.97, 0.981, 0.99]))
    cell = Cell("tab:tier1", *key, found, baseline)
    assert cell.conclusion("as stated")[2] == "a difference here"  # 0.991 against 0.977 is small
    assert not cell.difference("as stated").within


def test_tasks_of_cells():
    assert task_of("OU d=20, N=2000", "CV+RFF", "as stated") == {
        "method": "CV+RFF",
        "problem": "ou20d",
        "n_samples": 2000,
        "n_features": 400,
    }
    assert task_of("N = 100", "CV+RFF", "as stated")["n_samples"] == 100
    assert task_of("MD-like 2+8", "Gap-CV", "shared phases") == {
        "method": "Gap-CV, single precision",
        "problem": "mixtures-10",
    }


def test_every_printed_cell_has_a_task():
    assert sum(len(source.cells) for source in SOURCES.values()) == 76
    assert all(task_of(case, method, p) for s in SOURCES.values() for case, method in s.cells for p in PROTOCOLS)
    assert all(source.baseline in {method for _, method in source.cells} for source in SOURCES.values())


# --- families ---------------------------------------------------------------------------------------------------------
def test_printed_families_depend_on_the_dimension():
    assert agreeing_printed_pairs() == (5, 5)
    assert set(SELECTED) >= {case for case, _ in MAIN_RESULTS}


def test_pairs_of_runs_have_equal_dimension_and_seed():
    def run(problem, seed, family):
        landscape = [{"family": family, "bandwidth": 50.0, "score": 2.0}]
        return {"problem": problem, "seed": seed, "n_features": 300, "landscape": landscape}

    rows = [run("ou2d-4", 1, "rq2"), run("circle", 1, "rq2"), run("ou2d-16", 1, "rq5"), run("circle", 2, "rq2")]
    assert agreeing_pairs([*rows, run("dw1d", 1, "rq2")]) == (1, 3)


# --- claims -----------------------------------------------------------------------------------------------------------
def test_claims_name_missing_runs():
    (line,) = {
        tuple(line[2:]) for line in claims.EXPERIMENTS["claims"].table([]).lines if line[1].startswith("SubOnly")
    }
    assert line[1] == "–"
    assert "quick run" in line[0]


def test_claims_are_decided_by_the_committed_rows():
    experiment = claims.EXPERIMENTS["claims"]
    page = (ROOT / "results" / "paper" / "claims.md").read_text()
    assert all(claim.text in page for claim in claims.CLAIMS)
    assert "quick run leaves out" not in page
    assert experiment.n_seeds == 3


def test_ratios_of_printed_errors():
    """ "2×" is 10.5×, "18×" is 9.5×, "1.6×" is 2.6× (tables 1, 3 and 6)."""
    assert claims.printed_ratio(MAIN_RESULTS, "OU2D α=4", "Uniform+Nyström", "CV+RFF") == pytest.approx(10.5, abs=0.05)
    ablation = SOURCES["tab:ablation"].cells
    assert claims.printed_ratio(ablation, "OU2D α=16", "Uniform+Nyström", "EigOnly") == pytest.approx(9.5, abs=0.05)


# --- sections ---------------------------------------------------------------------------------------------------------
LABELS = _sections.read_labels()


def test_all_labels_of_the_source_are_listed_once():
    names = [item.label for item in LABELS]
    assert len(names) == len(set(names)) == 121
    text = (ROOT / "results" / "paper" / "sections.md").read_text()
    assert all(f"`{name}`" in text for name in names)


def test_numbers_are_those_of_a_reader():
    numbers = {item.label: item.number for item in LABELS}
    assert numbers["eq:kernel-mixture"] == "1"
    assert numbers["thm:cv-consistency"] == "3"
    assert numbers["prop:lipschitz-operators"] == "4.3"
    assert numbers["tab:tier1"] == "6"
    equations = [int(item.number) for item in LABELS if item.kind == "equation"]
    assert equations == sorted(equations)


@pytest.mark.parametrize("code", sorted({item.code for item in LABELS if item.code}))
def test_code_of_a_label_exists(code):
    module, _, name = code.partition(":")
    assert hasattr(import_module(module), name)


@pytest.mark.parametrize("test", sorted({item.test for item in LABELS if item.test}))
def test_test_of_a_label_exists(test):
    path, _, name = test.partition("::")
    assert f"def {name}(" in (ROOT / path).read_text()


def test_labels_with_code_have_a_test_and_a_verdict():
    assert all(bool(item.code) == bool(item.test) and item.verdict for item in LABELS)


def test_labels_file_is_plain():
    with _sections.LABELS.open(newline="") as file:
        assert next(csv.reader(file)) == ["label", "kind", "number", "subject", "code", "test", "verdict"]


# --- pages ------------------------------------------------------------------------------------------------------------
def test_sections_go_to_their_pages(tmp_path):
    names = ["main_results", "cells", "claims", "sections", "question_scores", "finding_phases", "corrections"]
    sections = [Section(name, f"Title of {name}", "Text.", Table(["a"], [["1"]])) for name in names]
    settings = {"seeds": [42], "quick": True, "versions": {"numpy": "2"}}
    written = write_pages(sections, settings, tmp_path)
    assert {path.name for path in written} == {*(f"{page.name}.md" for page in PAGES), "index.html"}
    assert "Title of corrections" in (tmp_path / "findings.md").read_text()
    assert "Title of question_scores" in (tmp_path / "questions.md").read_text()
    assert "Title of main_results" in (tmp_path / "index.md").read_text()


# --- questions --------------------------------------------------------------------------------------------------------
def test_reconstruction_is_the_explained_variance():
    rng = np.random.default_rng(0)
    modes = rng.standard_normal((300, 2))
    X = modes @ rng.standard_normal((2, 3)) + 1.0
    assert questions.reconstruction(modes[:200], modes[200:], X[:200], X[200:]) == pytest.approx(1)
    noise = rng.standard_normal((300, 3))
    assert questions.reconstruction(modes[:200], modes[200:], noise[:200], noise[200:]) == pytest.approx(0, abs=0.1)


def test_kernel_generator_finds_the_rates_of_an_ornstein_uhlenbeck_process():
    system = questions.load("ou2d-4")
    task = questions.Task(system, system.sample(400, 0), system.sample(500, 1), 2, 0)
    found = questions.kernel_generator(task)
    assert found["r2"] > 0.97
    assert found["rate_error"] < 0.15


def test_laplace_transform_finds_the_rates_of_an_ornstein_uhlenbeck_process():
    system = questions.load("ou2d-4")
    task = questions.Task(system, system.sample(2000, 0), system.sample(500, 1), 2, 0)
    found = questions.laplace_transform(task)
    assert found["r2"] > 0.95
    assert found["rate_error"] < 0.3  # the transform ends at a finite time


def test_stored_networks_have_the_same_samples():
    assert len(questions.network_scores("ou2d-4", "NeuralEF", {0, 1, 2}, ROOT / "results" / "neural")) == 3
    assert json.loads((ROOT / "results" / "paper" / "settings.json").read_text())["seeds"][0] == questions.FIRST_SEED
