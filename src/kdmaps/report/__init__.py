"""The HTML report of a fit."""

from kdmaps.report._page import render_report, write_report

__all__ = ["render_report", "write_report"]
