"""Variational kernel learning: kernels that minimise an objective of the modes that they lead to.

JAX is imported only where the objective has one of the paper's variational terms.
"""

from kdmaps.learn._refine import Refinement, refine
from kdmaps.learn._selection import soft_selection
from kdmaps.learn.objective import PRESETS, TERMS, make_objective

__all__ = ["PRESETS", "TERMS", "Refinement", "make_objective", "refine", "soft_selection"]
