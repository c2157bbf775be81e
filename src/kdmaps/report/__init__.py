"""The HTML report of a fit."""

from kdmaps.report._page import render_analysis, render_report, write_report
from kdmaps.report.committor import render_committor

__all__ = ["render_analysis", "render_committor", "render_report", "write_report"]
