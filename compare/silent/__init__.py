"""Cases in which 0.1.0 was wrong without a warning, for compare/silently_wrong.py; they run with both versions."""

from silent import data, files, state, statistics, threads
from silent.case import CASES, run_case

__all__ = ["CASES", "data", "files", "run_case", "state", "statistics", "threads"]
