"""Modes in the hands of people who simulate: weights of biased samples, trajectories, coarse states, exports."""

from kdmaps.dynamics._export import as_jax, plumed_input
from kdmaps.dynamics._lagged import LagComparison, compare_with_trajectory
from kdmaps.dynamics._states import CoarseStates, coarse_states
from kdmaps.dynamics._weights import boltzmann_weights, effective_sample_size

__all__ = [
    "CoarseStates",
    "LagComparison",
    "as_jax",
    "boltzmann_weights",
    "coarse_states",
    "compare_with_trajectory",
    "effective_sample_size",
    "plumed_input",
]
