"""What the server imports that forks the processes to be killed, so that each of them begins with its work at once."""

import warnings

import kdmaps
from benchmarks.faults._work import X, make_search

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    kdmaps.report.render_report(make_search(0).fit(X), X)  # loads what is compiled, and the libraries of the report
