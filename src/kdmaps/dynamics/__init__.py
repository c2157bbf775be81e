"""Analysis of trajectories: lags and their tests, coarse states, committors, passage times, diffusion constants."""

from kdmaps.dynamics._coherent import CoherentSets, coherent_sets
from kdmaps.dynamics._diffusion import ClockComparison, LagComparison, compare_clocks, compare_with_trajectory
from kdmaps.dynamics._equilibrium import equilibrium_weights
from kdmaps.dynamics._forecast import forecast
from kdmaps.dynamics._koopman import Koopman, KoopmanTrust, koopman
from kdmaps.dynamics._metastability import Metastability, metastability
from kdmaps.dynamics._passage import Committor, PassageTimes, committor, mean_first_passage_times
from kdmaps.dynamics._rates import RateMatrix, rate_matrix
from kdmaps.dynamics._states import CoarseStates, coarse_states, suggest_states
from kdmaps.dynamics._timescales import implied_timescales
from kdmaps.dynamics._validation import ChapmanKolmogorov, Validation, chapman_kolmogorov, validate
from kdmaps.estimators.forecast import Forecast
from kdmaps.selection.lag import ImpliedTimescales, LagChoice, choose_lag

__all__ = [
    "ChapmanKolmogorov",
    "ClockComparison",
    "CoarseStates",
    "CoherentSets",
    "Committor",
    "Forecast",
    "ImpliedTimescales",
    "Koopman",
    "KoopmanTrust",
    "LagChoice",
    "LagComparison",
    "Metastability",
    "PassageTimes",
    "RateMatrix",
    "Validation",
    "chapman_kolmogorov",
    "choose_lag",
    "coarse_states",
    "coherent_sets",
    "committor",
    "compare_clocks",
    "compare_with_trajectory",
    "equilibrium_weights",
    "forecast",
    "implied_timescales",
    "koopman",
    "mean_first_passage_times",
    "metastability",
    "rate_matrix",
    "suggest_states",
    "validate",
]
