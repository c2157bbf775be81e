"""Ablation of the losses (tab:ablation).

"SubOnly", "EigOnly" and "VMKL" (the paper's "Combined") learn five Gaussians at 60 landmarks. The paper prints one
seed.
"""

from __future__ import annotations

from kdmaps.experiments.paper._experiment import Comparison
from kdmaps.experiments.paper.vmkl_vs_cv import TRIED

METHODS = ("Uniform+Nyström", "SubOnly", "EigOnly", "VMKL", "CV+RFF")
PRINTED = {
    "DW1D": (0.630, 0.711, 0.474, 0.736, 0.736),
    "OU2D α=16": (0.513, 0.538, 0.949, 0.523, 0.961),
    "Circle": (0.761, 0.747, 0.500, 0.777, 0.757),
}

experiment = Comparison(
    title="What each loss does",
    methods=METHODS,
    problems=("dw1d", "ou2d-16", "circle"),
    few=("ou2d-16",),
    printed={(p, m): (v, None) for p, line in PRINTED.items() for m, v in zip(METHODS, line, strict=True)},
    tried=TRIED,
)
