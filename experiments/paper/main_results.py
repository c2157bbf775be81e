"""Main results (tab:main-results).

Six problems, N = 500, r = 4. The paper's cross-validation selects the kernel with the largest eigenvalue sum and scores
its modes with a reference ordered by polynomial degree; the last columns score the same modes, and those of kdmaps,
with the true slow modes.
"""

from __future__ import annotations

from experiments.paper import _printed
from experiments.paper._experiment import Comparison

METHODS = ("CV+RFF", "Uniform+RFF", "Uniform+Nyström")
SIX = ("ou2d-4", "ou2d-16", "ou3d", "dw1d", "dw1d-asym", "circle")

UNKNOWN_POTENTIAL = 'The paper does not state the potential; see "Which double well?" for those that were tried.'

experiment: Comparison = Comparison(
    title="Main results",
    methods=METHODS,
    problems=SIX,
    few=SIX,
    printed=_printed.MAIN_RESULTS,
    tried={(problem, method): UNKNOWN_POTENTIAL for problem in ("DW1D", "Asymm. DW") for method in METHODS},
)
