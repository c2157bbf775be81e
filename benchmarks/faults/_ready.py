"""Imported by the server that forks the processes, so that each process starts its work immediately."""

import warnings

import kdmaps
from benchmarks.faults._work import X, make_search

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    kdmaps.report.render_report(make_search(0).fit(X), X)  # loads compiled code and the libraries of the report
