"""Figures. Every function draws on Axes and returns them; matplotlib is imported only when one is called."""

from kdmaps.plotting._certificates import plot_certificates, plot_residuals
from kdmaps.plotting._dynamics import (
    plot_chapman_kolmogorov,
    plot_free_energy,
    plot_implied_timescales,
    plot_lag_comparison,
    plot_modes_in_time,
)
from kdmaps.plotting._independence import plot_independence
from kdmaps.plotting._learning import plot_history
from kdmaps.plotting._modes import plot_embedding, plot_modes
from kdmaps.plotting._relevance import plot_relevance
from kdmaps.plotting._search import plot_landscape, plot_regularization_map
from kdmaps.plotting._spectrum import plot_timescales
from kdmaps.plotting._states import plot_states

__all__ = [
    "plot_certificates",
    "plot_chapman_kolmogorov",
    "plot_embedding",
    "plot_free_energy",
    "plot_history",
    "plot_implied_timescales",
    "plot_independence",
    "plot_lag_comparison",
    "plot_landscape",
    "plot_modes",
    "plot_modes_in_time",
    "plot_regularization_map",
    "plot_relevance",
    "plot_residuals",
    "plot_states",
    "plot_timescales",
]
