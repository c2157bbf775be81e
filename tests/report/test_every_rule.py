"""No failed check is lost on its way to a page or a terminal, whatever its rule.

`python tests/report/test_every_rule.py` writes the checks of GOLDEN to tests/references/checks_of_pages.json. Read the
difference before it is committed: every line is what users are told about a fit.
"""

import copy
import json
import re
import string
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import kdmaps
from kdmaps.checks import RULES, Check, Checks, Outcome, Severity, Side
from kdmaps.cli._app import MOST_WARNINGS, print_warnings
from kdmaps.estimators.arguments import same_samples_check
from kdmaps.language import CLI, PYTHON
from kdmaps.report import _fit_sections, render_committor, render_report
from shared import ignoring

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]

REFERENCES = Path(__file__).resolve().parents[1] / "references" / "checks_of_pages.json"
X = kdmaps.problems.load("dw1d").sample(400, random_state=0)


# --- checks of any rule ---------------------------------------------------------------------------------------------
def words_of(rule):
    """A value for every word of the templates of a rule, of the kind that its format needs."""
    words = {}
    known = {*CLI.words, "value", "limit", "mode", "modes", "numbers", "s", "where", "fewer", "by"}
    texts = (rule.message, rule.remedy, rule.option_remedy, rule.undecided, rule.undecided_remedy, rule.what)
    for template in (*texts, rule.bound, rule.headline):
        for _, name, form, _ in string.Formatter().parse(template):
            if name and name not in known:
                words[name] = 3 if form else words.get(name, f"<{name}>")
            for _, inner, _, _ in string.Formatter().parse(form or ""):
                if inner and inner not in known:
                    words[inner] = 3
    return words


def sides(rule):
    """Numbers on every wrong side of the limit of a rule, with the limit."""
    limit = rule.limit or 5.0
    if rule.side is Side.LEAST:
        return {"too small": limit / 2}
    if rule.side is Side.MOST:
        return {"too large": 2 * limit + 1}
    return {"too small": rule.least - 1, "too large": rule.limit + 1}


def within(rule):
    """A number within the limit of a rule."""
    limit = rule.limit or 5.0
    if rule.side is Side.INSIDE:
        return (rule.least + rule.limit) / 2
    return 2 * limit if rule.side is Side.LEAST else limit / 2


def check_of(rule, value):
    """A check with this number; of rules that need it, with an interval around it."""
    interval = (value, value) if rule.decided < np.inf else None
    limit = None if rule.limit else 5.0
    return Check(rule, value, limit, where=("a",), words=words_of(rule), interval=interval)


FAILING = [
    pytest.param(check_of(rule, value), side, id=f"{rule.code}-{side.replace(' ', '-')}")
    for rule in RULES.values()
    for side, value in sides(rule).items()
]


# --- pages ------------------------------------------------------------------------------------------------------------
class Page(HTMLParser):
    """The headline, the items of lists, and the cells and mark of every row of the table of checks."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.items, self.headline, self.text = [], [], "", ""
        self._section = self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "section":
            self._section = attributes.get("id", "")
        if tag == "tr" and self._section == "checks":
            self.rows.append((attributes.get("class") == "broken", []))
        if tag == "td" and self._section == "checks":
            self.rows[-1][1].append("")
        if tag == "li":
            self.items.append("")
        self._inside = "headline" if attributes.get("class", "").startswith("verdict") else tag

    def handle_endtag(self, tag):
        self._inside = "li" if tag in ("code", "span") and self._inside != "headline" else ""

    def handle_data(self, data):
        if self._inside in ("style", "script"):
            return
        self.text += data
        if self._inside == "headline":
            self.headline += data
        elif self._inside == "td" and self._section == "checks":
            self.rows[-1][1][-1] += data
        elif self.items:
            self.items[-1] += data

    def row(self, what):
        return next((marked, cells) for marked, cells in self.rows if cells and cells[0] == what)


def without_nan(text):
    return re.search(r"\bnan\b", text, re.IGNORECASE) is None


@pytest.fixture(scope="module")
def model():
    return kdmaps.KernelDiffusionMap(1, bandwidth=1.0, regularization=1e-3, n_features=60, random_state=0).fit(X)


@pytest.fixture
def only_checks(monkeypatch):
    """Leave out all sections but the table of checks, which the headline and the warnings do not depend on."""
    monkeypatch.setattr("kdmaps.report._page.SECTIONS", (_fit_sections.checks,))


def page_of(model, *checks, **more):
    return Page(render_report(model, X, checks=checks, **more))


def test_the_model_of_these_tests_passes_all_checks(model):
    page = Page(render_report(model, X))
    assert "all checks passed" in page.headline
    assert not any(marked for marked, _ in page.rows)


@pytest.mark.usefixtures("only_checks")
@pytest.mark.parametrize(("check", "side"), FAILING)
def test_a_failed_check_is_on_the_page(check, side, model):
    page = page_of(model, check)
    assert any(check.message() in item for item in page.items)
    assert without_nan(page.text)
    if check.rule.severity is Severity.NOTE:
        assert "all checks passed" in page.headline
        return
    marked, cells = page.row(check.what)
    assert marked
    assert cells == [check.what, check.shown, check.bound, side]
    assert sum(marked for marked, _ in page.rows) == 1
    assert "all checks passed" not in page.text
    if check.rule.severity is Severity.ERROR:
        assert page.headline.startswith("Not reliable: ")
    else:
        assert "1 of " in page.headline


@pytest.mark.usefixtures("only_checks")
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_modes_of_a_failed_check_are_named(rule, model):
    """One number for each mode, of which the second fails."""
    if rule.decided < np.inf:
        pytest.skip("has intervals")
    wrong = next(iter(sides(rule).values()))
    page = page_of(model, check_of(rule, np.array([within(rule), wrong])))
    assert without_nan(page.text)
    if "{modes}" in rule.message:
        assert any("mode 2" in item for item in page.items)


@pytest.mark.usefixtures("only_checks")
def test_a_page_of_checks_that_all_pass_says_so(model):
    page = page_of(model, *(check_of(rule, within(rule)) for rule in RULES.values()))
    assert "all checks passed" in page.headline
    assert not any(marked for marked, _ in page.rows)
    assert {cells[3] for _, cells in page.rows if cells} == {"passed"}
    counted = [rule for rule in RULES.values() if rule.severity is not Severity.NOTE]
    assert {rule.code for rule in counted} <= {check.code for check in kdmaps.Analysis(
        model, X, n_resamples=0, checks=[check_of(rule, within(rule)) for rule in RULES.values()]
    ).checks}  # fmt: skip


@pytest.mark.usefixtures("only_checks")
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_an_undecided_check_is_not_passed(rule, model):
    interval = (-1.0, 1.0) if rule.decided < np.inf else None
    check = Check(rule, np.nan, words=words_of(rule), interval=interval)
    assert check.outcome is Outcome.UNKNOWN
    page = page_of(model, check)
    assert without_nan(page.text)
    if rule.severity is not Severity.NOTE:
        assert "undecided" in page.headline
        assert "all checks passed" not in page.text
    assert any(check.message() in item for item in page.items) == bool(rule.undecided)


@pytest.mark.usefixtures("only_checks")
def test_two_failed_checks_of_one_code_are_both_shown(model):
    checks = [Check(RULES["constant-columns"], 1, where=(name,)) for name in ("first", "second")]
    page = page_of(model, *checks)
    assert "2 of " in page.headline
    for check in checks:
        assert any(check.message() in item for item in page.items)


@pytest.mark.usefixtures("only_checks")
@pytest.mark.parametrize("check", [pytest.param(one.values[0], id=one.id) for one in FAILING])
def test_the_page_of_a_command_names_options(check, model):
    page = page_of(model, check, command="kdmaps fit x.npy")
    assert any(check.message(CLI) in item for item in page.items)
    assert page.text.count(check.message(PYTHON)) == page.text.count(check.message(CLI)) or "--" in check.say(CLI)


@pytest.mark.parametrize("value", [0.5, np.nan, np.inf, -np.inf, np.array([1.0, np.nan, np.inf])], ids=str)
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_stored_check_is_the_same(rule, value):
    check = Check(rule, value, np.inf, ("a", 3), words_of(rule))
    stored = json.loads(json.dumps(check.to_dict(), allow_nan=False))
    again = Check.from_dict(stored)
    np.testing.assert_array_equal(again.value, check.value)
    assert (again.limit, again.where, again.outcome) == (check.limit, check.where, check.outcome)
    assert again.say() == check.say()


# --- parts of a page --------------------------------------------------------------------------------------------------
FAILED = check_of(RULES["few-blocks"], 3.0)


@pytest.fixture(scope="module")
def trajectory():
    return kdmaps.problems.load("dw1d").simulate(3000, dt=0.2, random_state=0)[0]


@pytest.fixture(scope="module")
def lagged(trajectory):
    settings = {"lag": 1, "time_step": 0.2, "bandwidth": 1.0, "regularization": 1e-4, "n_features": 60}
    return kdmaps.KernelDiffusionMap(1, random_state=0, **settings).fit(trajectory)


@pytest.fixture(scope="module")
def driven(trajectory):
    settings = {"lag": 1, "time_step": 0.2, "bandwidth": 1.0, "regularization": 1e-4, "n_features": 60}
    return kdmaps.KernelDiffusionMap(1, reversible=False, random_state=0, **settings).fit(trajectory)


@pytest.mark.usefixtures("only_checks")
@pytest.mark.parametrize("part", ["fit", "uncertainty", "validation", "states", "passages", "koopman"])
def test_a_failed_check_of_a_part_is_in_the_headline(part, lagged, driven, trajectory, monkeypatch):
    model = driven if part == "koopman" else lagged
    analysis = kdmaps.Analysis(model, trajectory, n_resamples=20)
    before = analysis.checks
    assert FAILED.code not in [check.code for check in before.failed]
    given = {"uncertainty": analysis.uncertainty} if part == "uncertainty" else {}
    if part == "fit":
        model = copy.copy(model)
        model.checks_ = Checks([*model.checks_, FAILED])
    else:
        # Every result of this class has the failed check.
        result = getattr(analysis, part)
        checks = Checks([*result.checks, FAILED])
        monkeypatch.setattr(type(result), "checks", property(lambda _: checks, lambda *_: None), raising=False)
    page = Page(render_report(model, trajectory, **given))
    assert any(FAILED.message() in item for item in page.items)
    assert f"{len(before.failed) + 1} of " in page.headline
    assert page.row(FAILED.what)[0]


# --- the command line -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(20))
def test_a_terminal_counts_what_it_does_not_print(seed, capsys):
    rng = np.random.default_rng(seed)
    drawn = [one.values[0] for one in FAILING if rng.random() < 0.1]
    checks = Checks(drawn)
    print_warnings(checks, Path("report.html"))
    lines = capsys.readouterr().out.replace("\n", " ")
    shown = [check for check in checks.warnings if check.say(CLI) in lines]
    assert shown == checks.warnings[:MOST_WARNINGS]
    more = re.search(r"(\d+) more in report.html", lines)
    assert len(shown) + int(more[1] if more else 0) == len(checks.warnings)
    severe = [check.rule.severity is Severity.ERROR for check in checks.warnings]
    assert severe == sorted(severe, reverse=True)  # most harmful first


def test_what_is_not_printed_is_explained_by_what_is():
    """A failed check without a warning of its own has a cause that warns."""
    for rule in RULES.values():
        cause = check_of(rule, next(iter(sides(rule).values())))
        for code in rule.explains:
            effect = check_of(RULES[code], next(iter(sides(RULES[code]).values())))
            checks = Checks([cause, effect])
            assert len(checks.failed) == 2
            assert checks.warnings == [cause]


# --- committors -------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def committor():
    return fit_committor()[0]


@pytest.mark.parametrize("side", range(4))
def test_failed_checks_are_on_the_page_of_a_committor(side, committor):
    model, samples = committor, committor_samples()
    injected = [one.values[0] for one in FAILING][side::4]
    page = Page(render_committor(model, samples, checks=injected))
    checks = Checks([*injected, *model.checks_])
    for check in checks.warnings:
        assert any(check.message() in item for item in page.items)
    for check in checks.failed:
        marked, cells = page.row(check.what)
        assert marked
        assert cells[3] in ("too small", "too large")
    assert "all checks passed" not in page.text
    assert without_nan(page.text)


# --- golden list ------------------------------------------------------------------------------------------------------
def committor_samples(n=400):
    return kdmaps.problems.load("dw1d").sample(n, random_state=1)


def fit_committor(samples=None, left=-0.9, right=0.9):
    samples = committor_samples() if samples is None else samples
    sets = (samples[:, 0] < left, samples[:, 0] > right)
    return kdmaps.AdaptiveCommittor(n_features=40, n_resamples=50, random_state=0).fit(samples, sets), samples


def map_of(samples, n=1, weight=None, **settings):
    """A model with a given kernel and its samples, as `Analysis` takes them."""
    options = {"bandwidth": 1.0, "regularization": 1e-3, "n_features": 60, "random_state": 0} | settings
    model = kdmaps.KernelDiffusionMap(n, **options).fit(samples, sample_weight=weight)
    return model, samples, {"sample_weight": weight}


def search_of(samples, n=1, **settings):
    options = {"families": ["gaussian", "matern52"], "bandwidths": 4, "regularizations": [1e-3, 1e-2]}
    options |= {"n_features": 40, "random_state": 0} | settings
    return kdmaps.KernelSearchCV(n, **options).fit(samples), samples, {}


def with_outlier():
    samples = X.copy()
    samples[7] = 40.0
    return samples


def plane(n=400):
    return kdmaps.problems.load("ou2d-4").sample(n, random_state=0)


def heavy():
    return np.where(np.arange(400) < 4, 1e4, 1.0)


def path(n, step=0.2, seed=0):
    return kdmaps.problems.load("dw1d").simulate(n, dt=step, random_state=seed)[0]


def rotation(n, turn=0.3, decay=0.95, noise=0.3):
    """A linear process that turns by an angle and contracts in every step."""
    rng = np.random.default_rng(0)
    step = decay * np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    states = np.zeros((n, 2))
    for k in range(1, n):
        states[k] = step @ states[k - 1] + noise * rng.standard_normal(2)
    return states


LAGGED = {"lag": 1, "time_step": 0.2, "regularization": 1e-4}
TURNING = {"lag": 1, "reversible": False, "bandwidth": 3.0, "regularization": 1e-6}
GOLDEN = {
    "double well": lambda: map_of(X),
    "double well, search": lambda: search_of(X),
    "one Gaussian well, search": lambda: search_of(plane(), 2),
    "forty samples": lambda: map_of(plane(40), 4),
    "strong regularization": lambda: map_of(X, regularization=30.0),
    "one isolated row": lambda: map_of(with_outlier()),
    "columns in different units": lambda: map_of(plane() * [1, 5000], bandwidth=5000.0),
    "column of times": lambda: map_of(np.column_stack([X[:, 0], np.arange(400.0)]), bandwidth=50.0),
    "rounded column": lambda: map_of(np.column_stack([X[:, 0], np.round(plane()[:, 1])])),
    "four rows with nearly all of the weight": lambda: map_of(X, weight=heavy()),
    "trajectory": lambda: map_of(path(3000), **LAGGED),
    "short trajectory, automatic lag": lambda: map_of(path(150), **{**LAGGED, "lag": "auto"}),
    "committor": fit_committor,
    "committor of few samples": lambda: fit_committor(committor_samples(60)),
    "committor of sets that touch": lambda: fit_committor(left=-0.05, right=0.05),
    "driven": lambda: map_of(rotation(4000), 2, **TURNING),
    "driven, fitted as reversible": lambda: map_of(rotation(4000), 2, **{**TURNING, "reversible": True}),
    "driven, short": lambda: map_of(rotation(150), 6, **TURNING),
}


def golden(name):
    """Codes and outcomes of all checks of a page, and whether its headline says that all of them passed."""
    with ignoring(*RULES):
        model, samples, *given = GOLDEN[name]()
        weight = given[0].get("sample_weight") if given else None
        if isinstance(model, kdmaps.AdaptiveCommittor):
            page = Page(render_committor(model, samples))
            checks = Checks([*model.checks_, same_samples_check(model.support_, samples)])
        else:
            uncertainty = kdmaps.Analysis(model, samples, sample_weight=weight, n_resamples=20).uncertainty
            page = Page(render_report(model, samples, sample_weight=weight, uncertainty=uncertainty))
            checks = kdmaps.Analysis(model, samples, sample_weight=weight, n_resamples=20).checks
    return page, checks


@pytest.mark.parametrize("name", GOLDEN)
def test_checks_of_a_page_are_as_they_were(name):
    page, checks = golden(name)
    expected = json.loads(REFERENCES.read_text())[name]
    assert [list(outcome) for outcome in checks.outcomes] == expected
    assert sorted(cells[0] for _, cells in page.rows if cells) == sorted(check.what for check in checks.counted)
    assert sum(marked for marked, _ in page.rows) == len(checks.failed)
    assert ("all checks passed" in page.headline) == (not checks.failed and not checks.unknown)
    assert without_nan(page.text)
    for check in checks.warnings:
        assert any(check.message() in item for item in page.items)


def write_golden():
    """Write the codes and outcomes of all pages, one line for each page."""
    lines = [f"{json.dumps(name)}: {json.dumps(golden(name)[1].outcomes)}" for name in GOLDEN]
    REFERENCES.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    write_golden()
