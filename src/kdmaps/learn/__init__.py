"""Kernels that minimise an objective of their modes, found by gradients through the eigenproblem.

JAX is imported only for the paper's variational terms.
"""

from kdmaps.learn._refine import Refinement, refine
from kdmaps.learn.objectives import PRESETS, TERMS, make_objective

__all__ = ["PRESETS", "TERMS", "Refinement", "make_objective", "refine"]
