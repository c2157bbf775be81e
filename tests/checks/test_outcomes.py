"""Checks as values: outcomes from numbers, plain data and back, messages for two readers, and their collection."""

import json
import string
from dataclasses import dataclass, field
from string import Formatter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdmaps.checks import (
    RULES,
    Check,
    Checks,
    Outcome,
    Phrase,
    Rule,
    Severity,
    Side,
    collected,
    muted,
    or_fewer,
    recorded,
    rules,
    warn,
)
from kdmaps.checks.check import PHRASES
from kdmaps.language import CLI, PYTHON
from kdmaps.utils.threads import map_ordered, map_reduce, map_unordered
from shared import codes, expects

LEAST = Rule("least", "a number", "too small", side=Side.LEAST, limit=2.0)
MOST = Rule("most", "a number", "too large", side=Side.MOST, limit=2.0)
INSIDE = Rule("inside", "a number", "outside", side=Side.INSIDE, least=-1.0, limit=2.0, decided=10.0)


# --- outcomes ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("rule", "value", "outcome", "judged"),
    [
        (LEAST, 2.0, "passed", ""),
        (LEAST, 1.999, "failed", "too small"),
        (MOST, 2.0, "passed", ""),
        (MOST, 2.001, "failed", "too large"),
        (MOST, np.inf, "failed", "too large"),
        (INSIDE, -1.0, "passed", ""),
        (INSIDE, -1.001, "failed", "too small"),
        (INSIDE, 2.001, "failed", "too large"),
        (LEAST, np.nan, "unknown", "unknown"),
        (MOST, np.nan, "unknown", "unknown"),
        (MOST, np.array([1.0, np.nan]), "passed", ""),
        (MOST, np.array([1.0, 3.0, np.nan]), "failed", "too large"),
        (MOST, np.array([np.nan, np.nan]), "unknown", "unknown"),
        (LEAST, np.array([5.0, 1.0]), "failed", "too small"),
    ],
)
def test_outcome_of_a_number(rule, value, outcome, judged):
    check = Check(rule, value)
    assert check.outcome is Outcome(outcome)
    assert check.passed == (outcome == "passed")
    assert check.judged == judged


def test_the_limit_of_a_check_replaces_that_of_its_rule():
    assert Check(MOST, 3.0, limit=4.0).passed
    assert not Check(LEAST, 3.0, limit=4.0).passed
    assert Check(LEAST, 3.0, limit=4.0).bound == "at least 4"


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        (-0.5, 1.0, "passed"),
        (-3.0, 4.0, "passed"),
        (3.0, 4.0, "failed"),
        (-4.0, -2.0, "failed"),
        (0.0, 11.0, "unknown"),
    ],
)
def test_an_interval_decides(low, high, outcome):
    """It fails if it lies beyond the limits, passes if it is short, and decides nothing otherwise."""
    check = Check(INSIDE, (low + high) / 2, interval=(np.array(low), np.array(high)))
    assert check.outcome is Outcome(outcome)


def test_the_worst_of_several_modes_is_named():
    check = Check(MOST, np.array([1.0, 5.0, 3.0]))
    assert (check.worst, check.filled["mode"], check.filled["numbers"]) == (1, 2, "2, 3")
    assert check.failed.tolist() == [False, True, True]
    assert Check(LEAST, np.array([np.nan, 1.5, 1.0])).worst == 2


# --- plain data -------------------------------------------------------------------------------------------------------
numbers = st.floats(width=32)
names = st.text(string.ascii_letters, min_size=1, max_size=5)
words = st.dictionaries(names, st.text(max_size=5) | st.integers(0, 9) | st.just(np.inf))


@given(
    st.sampled_from(sorted(RULES)),
    numbers | st.lists(numbers, min_size=1, max_size=4).map(np.array),
    st.none() | st.floats(-10, 10) | st.just(np.inf),
    st.lists(st.integers(0, 9) | st.text(max_size=3), max_size=3),
    words,
    st.none() | st.tuples(st.floats(-5, 0), st.floats(0, 5)),
)
def test_plain_data_make_the_same_check(code, value, limit, where, words, interval):
    words = {**words, "fewer": or_fewer(2)}
    check = Check(RULES[code], value, limit, tuple(where), words, interval)
    again = Check.from_dict(json.loads(json.dumps(check.to_dict(), allow_nan=False)))
    assert again is not None
    np.testing.assert_array_equal(again.value, check.value)
    assert (again.rule, again.limit, again.where) == (check.rule, check.limit, check.where)
    assert dict(again.words) == dict(check.words)
    assert again.outcome is check.outcome
    assert again.to_dict() == check.to_dict()


def test_checks_of_other_versions_are_left_out():
    stored = Check(rules.OUTLIERS, 1).to_dict()
    assert Check.from_dict({**stored, "code": "a-rule-of-tomorrow"}) is None
    unknown = {"phrase": "a phrase of tomorrow", "words": {}}
    again = Check.from_dict({**stored, "words": {"rows": unknown}})
    assert again is not None
    assert again.words["rows"] == Phrase("")


# --- messages ---------------------------------------------------------------------------------------------------------
def fields(*templates):
    """Return the names that templates use, and whether each has a format."""
    parsed = [part[1:3] for template in templates for part in Formatter().parse(template) if part[1] is not None]
    inner = [part[1:3] for _, spec in parsed for part in Formatter().parse(spec) if part[1] is not None]
    return {name: spec for name, spec in [*parsed, *inner] if name not in PYTHON.words}


#: What all messages may use without words of their maker.
FILLED = set(Check(MOST, 1.0).filled)


def example(rule: Rule, unknown: bool = False) -> Check:
    """Return a check that fails, or is unknown, with a word for each name of its templates."""
    texts = (rule.message, rule.remedy, rule.option_remedy, rule.undecided, rule.undecided_remedy, rule.headline)
    named = fields(*texts, rule.bound, rule.what)
    made = {name: 7 if spec else "seven" for name, spec in named.items() if name not in FILLED}
    beyond = rule.limit - 1 if rule.side is Side.LEAST else rule.limit + 1
    return Check(rule, np.nan if unknown else beyond, where=("x",), words=made)


@pytest.mark.parametrize("code", RULES)
@pytest.mark.parametrize("language", [PYTHON, CLI], ids=["python", "cli"])
def test_every_rule_is_said_to_its_reader(code, language):
    check = example(RULES[code])
    assert check.outcome is Outcome.FAILED
    said = check.say(language)
    assert said
    assert "{" not in said
    assert "nan" not in said.split()
    assert check.what
    assert check.bound
    if RULES[code].severity is Severity.ERROR:
        assert Checks([check]).verdict("1.0", language).startswith("Not reliable: ")
    if RULES[code].undecided:
        assert example(RULES[code], unknown=True).say(language) != said


@pytest.mark.parametrize("name", PHRASES)
def test_every_phrase_is_said(name):
    phrase = Phrase(name, {name: "seven" for name in fields(PHRASES[name])})
    assert phrase.say(PYTHON)
    assert "{" not in phrase.say(CLI)


def test_the_same_remedy_in_two_languages():
    words = {"large": "p", "small": "T", "ratio": "2000", "rescale": Phrase("standardize")}
    check = Check(rules.SCALES, 2000.0, where=("p", "T"), words=words)
    assert "standardize=True" in check.remedy(PYTHON)
    assert "--standardize" in check.remedy(CLI)
    assert "--" not in check.remedy(PYTHON)


def test_words_of_users_are_not_rewritten():
    check = Check(rules.NUMBERED_COLUMNS, 1, words={"path": "lag=5 n_components.csv", "shown": "0, 1"})
    for language in (PYTHON, CLI):
        assert "lag=5 n_components.csv" in check.say(language)


def test_anchors_are_the_codes():
    assert all(rule.anchor == f"warning-{code}" for code, rule in RULES.items())
    assert Check(rules.SCALES, 2.0).link.endswith("#warning-scales")


def test_explained_codes_exist():
    for rule in RULES.values():
        assert rule.explains <= set(RULES)
        assert rule.code not in rule.explains


# --- collections ------------------------------------------------------------------------------------------------------
def heavy(value=1.0):
    return Check(rules.VARIANCE_SAMPLES, value, words={"row": 3, "share": 0.9})


def carried(value=1.0):
    return Check(rules.ENERGY_SAMPLES, value, words={"how": "in a longer trajectory"})


def test_one_cause_is_one_warning():
    with expects("variance-samples"), collected() as found:
        warn(heavy())
        warn(carried())
    assert [check.code for check in found] == ["variance-samples", "energy-samples"]
    with expects("energy-samples"), collected():
        warn(heavy(50.0))  # passes, and explains nothing
        warn(carried())
    checks = Checks([carried(), heavy()])
    assert {check.code for check in checks.failed} == {"energy-samples", "variance-samples"}
    assert [check.code for check in checks.warnings] == ["variance-samples"]


def test_a_failed_check_replaces_a_passed_one_with_its_code():
    assert [check.value for check in Checks([heavy(50.0), heavy(1.0), heavy(2.0)])] == [1.0]
    assert [check.value for check in Checks([heavy(1.0), heavy(50.0)])] == [1.0]


def test_outcome_in_the_headline():
    assert Checks([heavy(50.0)]).headline() == "all checks passed"
    assert Checks([heavy(50.0), carried()]).headline() == "1 of 2 checks failed"
    assert "undecided" in Checks([heavy(np.nan)]).headline()
    note = Check(rules.SURFACE, 1, words={"dimension": 1, "columns": 2})
    assert Checks([note]).headline() == "all checks passed"
    assert Checks([note]).notes == [note]


def test_muted_checks_are_neither_issued_nor_recorded_outside():
    with expects(), collected() as outer:
        with muted(), collected() as inner:
            warn(heavy())
        with muted():
            warn(carried())
    assert [check.code for check in inner] == ["variance-samples"]
    assert outer == []


@dataclass(frozen=True)
class Result:
    number: int
    checks: Checks = field(default_factory=Checks)


def test_a_recorded_function_returns_its_checks():
    @recorded
    def count(number: int) -> Result:
        warn(heavy())
        return Result(number, Checks([carried(50.0)]))

    with expects("variance-samples"), collected() as outer:
        result = count(3)
    assert result.number == 3
    assert result.checks.outcomes == [("energy-samples", "passed"), ("variance-samples", "failed")]
    assert [check.code for check in outer] == ["variance-samples"]


# --- threads ----------------------------------------------------------------------------------------------------------
def check_in_worker(number):
    warn(heavy())
    return number


def in_order():
    return list(map_ordered(range(3), check_in_worker))


def as_finished():
    return list(map_unordered(range(3), check_in_worker, 2))


def summed():
    return map_reduce(range(3), list, lambda state, number: state.append(check_in_worker(number)))


@pytest.mark.parametrize("run", [in_order, as_finished, summed])
@pytest.mark.parametrize("threads", [1, 2])
def test_checks_of_workers_reach_the_result(run, threads, monkeypatch):
    monkeypatch.setattr("kdmaps.utils.threads.n_threads", lambda: threads)
    with expects("variance-samples") as record, collected() as found:
        run()
    assert [check.code for check in found] == ["variance-samples"] * 3
    assert set(codes(record)) == {"variance-samples"}
    with expects(), muted():  # also in the threads
        run()
