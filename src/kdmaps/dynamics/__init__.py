"""Analysis of modes along trajectories: lags, tests of Markov's property, passages, both clocks, coarse states."""

from kdmaps.dynamics._chapman import ChapmanKolmogorov, chapman_kolmogorov
from kdmaps.dynamics._clocks import ClockComparison, compare_clocks
from kdmaps.dynamics._lagged import LagComparison, compare_with_trajectory
from kdmaps.dynamics._passage import Committor, PassageTimes, committor, mean_first_passage_times
from kdmaps.dynamics._states import CoarseStates, coarse_states, suggest_states
from kdmaps.dynamics._timescales import implied_timescales
from kdmaps.dynamics._validation import Validation, validate
from kdmaps.selection.lag import ImpliedTimescales, LagChoice, choose_lag

__all__ = [
    "ChapmanKolmogorov",
    "ClockComparison",
    "CoarseStates",
    "Committor",
    "ImpliedTimescales",
    "LagChoice",
    "LagComparison",
    "PassageTimes",
    "Validation",
    "chapman_kolmogorov",
    "choose_lag",
    "coarse_states",
    "committor",
    "compare_clocks",
    "compare_with_trajectory",
    "implied_timescales",
    "mean_first_passage_times",
    "suggest_states",
    "validate",
]
