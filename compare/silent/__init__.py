"""Cases in which 0.1.0 was wrong without a word, for compare/silently_wrong.py; written for both versions."""

from silent import data, files, state, statistics, threads
from silent.case import CASES, judge

__all__ = ["CASES", "data", "files", "judge", "state", "statistics", "threads"]
