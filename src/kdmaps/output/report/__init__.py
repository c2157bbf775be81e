"""The HTML page of a fit."""

from kdmaps.output.report._write import render_report, write_report

__all__ = ["render_report", "write_report"]
