"""The HTML page of a fit."""

from kdmaps.output.report._dynamics import lag_tests
from kdmaps.output.report._write import render_report, write_report

__all__ = ["lag_tests", "render_report", "write_report"]
