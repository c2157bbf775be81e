"""Variational kernel learning: kernels that minimise an objective of the modes that they lead to.

Nothing here imports JAX before learning starts.
"""

from kdmaps.learn._objective import PRESETS, TERMS, make_objective
from kdmaps.learn._refine import Refinement, refine
from kdmaps.learn._selection import soft_selection

__all__ = ["PRESETS", "TERMS", "Refinement", "make_objective", "refine", "soft_selection"]
