"""docs/troubleshooting.md has one section for each rule of `kdmaps.checks`, which quotes the rule."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import kdmaps
from kdmaps.checks import RULES, Check, rules, warn
from kdmaps.exceptions import UnreliableModesWarning

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGE = (DOCS / "troubleshooting.md").read_text()
ANCHORS = re.findall(r"^\((warning-[\w-]+)\)=$", PAGE, re.MULTILINE)
QUOTES = runpy.run_path(str(DOCS / "_ext" / "rules.py"), run_name="quotes")


def test_every_rule_has_one_section():
    """A new rule needs anchor, heading and a paragraph; then run `python docs/_ext/rules.py`."""
    assert sorted(ANCHORS) == sorted(rule.anchor for rule in RULES.values())


def test_messages_and_limits_come_from_the_table_of_rules():
    """To update: `python docs/_ext/rules.py`."""
    assert QUOTES["updated"](PAGE) == PAGE


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
def test_a_section_quotes_its_rule_and_adds_to_it(rule):
    heading = re.split(rf"^\({rule.anchor}\)=$", PAGE, flags=re.MULTILINE)[1]
    section = heading.partition("### ")[2].partition("\n(warning-")[0].partition("\n## ")[0]
    assert QUOTES["quote"](rule) in section
    by_hand = [line for line in section.splitlines()[1:] if line and not line.startswith(">")]
    assert by_hand


def test_a_quotation_that_was_changed_is_restored():
    changed = PAGE.replace("carry no information", "carry some information")
    assert changed != PAGE
    assert QUOTES["updated"](changed) == PAGE


def test_links_to_sections_exist():
    for page in [*DOCS.rglob("*.md"), *(ROOT / "results").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]:
        if "generated" not in page.parts:
            missing = set(re.findall(r"#(warning-[\w-]+)", page.read_text())) - set(ANCHORS)
            assert not missing, page


def test_a_warning_has_a_link_to_its_section():
    with pytest.warns(UnreliableModesWarning) as caught:
        warn(Check(rules.JITTER, 1e-12, words={"matrix": "L", "advice": ""}))
    assert caught[0].message.check.code == "jitter"
    assert str(caught[0].message).endswith("#warning-jitter)")


def test_the_page_names_classes_of_warnings():
    for rule in RULES.values():
        category = Check(rule, np.nan).category
        assert f"kdmaps.exceptions.{category.__name__}" in PAGE
        assert issubclass(category, kdmaps.exceptions.CheckWarning)
