"""Analysis of modes along trajectories: autocorrelations compared with the model's rates, coarse states."""

from kdmaps.analysis.dynamics._lagged import LagComparison, compare_with_trajectory
from kdmaps.analysis.dynamics._states import CoarseStates, coarse_states

__all__ = ["CoarseStates", "LagComparison", "coarse_states", "compare_with_trajectory"]
