"""Ablation of the losses (tab:ablation).

"SubOnly", "EigOnly" and "VMKL" (the paper's "Combined") learn five Gaussians at 60 landmarks. The paper prints results
of one seed.
"""

from __future__ import annotations

from experiments.paper import _printed
from experiments.paper._experiment import Comparison
from experiments.paper.vmkl_vs_cv import TRIED

METHODS = ("Uniform+Nyström", "SubOnly", "EigOnly", "VMKL", "CV+RFF")

experiment: Comparison = Comparison(
    title="What each loss does",
    methods=METHODS,
    problems=("dw1d", "ou2d-16", "circle"),
    few=("ou2d-16",),
    printed=_printed.ABLATION,
    tried=TRIED,
)
