"""Checks of data, fits and results: one table of rules, and values whose outcome is computed from numbers."""

from kdmaps.checks import rules
from kdmaps.checks.check import (
    RULES,
    Check,
    Checks,
    Outcome,
    Phrase,
    Rule,
    Severity,
    Side,
    Subject,
    list_items,
    or_fewer,
)
from kdmaps.checks.warn import collected, muted, recorded, warn, warn_of

__all__ = [
    "RULES",
    "Check",
    "Checks",
    "Outcome",
    "Phrase",
    "Rule",
    "Severity",
    "Side",
    "Subject",
    "collected",
    "list_items",
    "muted",
    "or_fewer",
    "recorded",
    "rules",
    "warn",
    "warn_of",
]
