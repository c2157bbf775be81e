"""Quote every rule of `kdmaps.checks` in docs/troubleshooting.md: `python docs/_ext/rules.py` updates the page.

A section begins with anchors `(warning-CODE)=` and a heading. The quotation below the heading is written from the table
of rules: message, remedy, number, limit and its reason. The text after it is written by hand.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from kdmaps.checks import RULES, Rule, Side
from kdmaps.language import CLI, PYTHON, Language

PAGE = Path(__file__).resolve().parents[1] / "troubleshooting.md"
ANCHOR = re.compile(r"^\(warning-(.+)\)=$", re.MULTILINE)
SECTION = re.compile(r"((?:^\(warning-[\w-]+\)=\n)+)(#+ .+\n)\n(?:>.*\n)*\n?", re.MULTILINE)
#: Words that a message has in some cases only.
OPTIONAL = dict.fromkeys(("s", "fewer", "weaker", "why", "suggested"), "")


class _Blank:
    """A word that depends on the data."""

    def __format__(self, form: str) -> str:
        return "…"


def quote(rule: Rule) -> str:
    """Return the quotation about a rule."""
    lines = [rule.message, rule.undecided]
    quoted = [f"*{_fill(rule, template, PYTHON)}*" for template in lines if template]
    remedy = _fill(rule, rule.remedy, PYTHON)
    if remedy.strip("…"):
        quoted.append(remedy)
    if rule.option_remedy:
        quoted.append(f"Command line: {_fill(rule, rule.option_remedy, CLI)}")
    quoted.append(f"Check `{rule.code}`: {_fill(rule, rule.what, PYTHON)}{_limit(rule)}. {rule.reason}".strip())
    return "".join(f"> {line}\n>\n" for line in quoted).removesuffix(">\n")


def updated(page: str) -> str:
    """Return the page with the quotations of all rules."""

    def section(match: re.Match[str]) -> str:
        codes = ANCHOR.findall(match[1])
        quotes = ">\n".join(quote(RULES[code]) for code in codes if code in RULES)
        return f"{match[1]}{match[2]}\n{quotes}\n"

    return SECTION.sub(section, page)


def _fill(rule: Rule, template: str, language: Language) -> str:
    """Fill in a template, with an ellipsis for each word that depends on the data."""
    words = defaultdict(_Blank, {**language.words, **OPTIONAL})
    if rule.limit:
        words["limit"] = rule.limit
    text = template.format_map(words)
    return re.sub(r"…(?: ?…)+", "…", text)


def _limit(rule: Rule) -> str:
    """Return the limit; an ellipsis if it depends on the data, "" if nothing of the kind is allowed."""
    if rule.bound:
        return f", {_fill(rule, rule.bound, PYTHON)}"
    if rule.side is Side.INSIDE:
        return f", between {rule.least:g} and {rule.limit:g}"
    if rule.limit:
        return f", {rule.side.value} {rule.limit:g}"
    return ", at least …" if rule.side is Side.LEAST else ""


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text()))
