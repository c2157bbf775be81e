"""The HTML page of a fit, and that of the rounds of a loop."""

from kdmaps.report._rounds import render_rounds, write_rounds
from kdmaps.report._write import render_report, write_report

__all__ = ["render_report", "render_rounds", "write_report", "write_rounds"]
