"""VMKL against cross-validation (tab:vmkl-vs-cv).

Five Gaussians at 60 landmarks whose weights and bandwidths minimise the combined objective. The paper prints one seed;
its optimiser, step sizes and weights of the terms are not stated, so that these cells can only be tried.
"""

from __future__ import annotations

from kdmaps.experiments.paper._experiment import Comparison
from kdmaps.experiments.paper.main_results import SIX, UNKNOWN_POTENTIAL

METHODS = ("VMKL", "CV+RFF", "Uniform+Nyström")
PRINTED = {
    "DW1D": (0.736, 0.736, 0.629),
    "Asymm. DW": (0.728, 0.734, 0.606),
    "OU2D α=4": (0.881, 0.997, 0.626),
    "OU2D α=16": (0.523, 0.961, 0.513),
    "OU3D": (0.717, 0.988, 0.561),
    "Circle": (0.777, 0.758, 0.760),
}
#: What was tried where cells of a single seed are missed, here and in the ablation.
TRIED = {
    **{
        (problem, method): UNKNOWN_POTENTIAL
        for problem in ("DW1D", "Asymm. DW")
        for method in ("CV+RFF", "Uniform+Nyström")
    },
    ("OU2D α=16", "Uniform+Nyström"): "One seed; the mean that the main results print is met.",
    **{
        (problem, method): "Weights of the terms, optimiser and start are not stated; here they are those of "
        "VariationalKernelMap. The losses over all bandwidths are in the laboratory of failure modes."
        for problem in PRINTED
        for method in ("VMKL", "SubOnly", "EigOnly")
    },
}

experiment = Comparison(
    title="Learning by gradients against cross-validation",
    methods=METHODS,
    problems=SIX,
    few=("dw1d", "ou2d-4"),
    printed={(p, m): (v, None) for p, line in PRINTED.items() for m, v in zip(METHODS, line, strict=True)},
    tried=TRIED,
)
