"""Figures. Every function draws on Axes and returns them; matplotlib is imported only when one is called."""

from kdmaps.plotting._committor import plot_committor, plot_flux_distribution, plot_free_energy_along_q
from kdmaps.plotting._free_energy import plot_free_energy
from kdmaps.plotting._koopman import plot_coherent_sets, plot_koopman, plot_phases
from kdmaps.plotting._modes import (
    plot_chapman_kolmogorov,
    plot_embedding,
    plot_implied_timescales,
    plot_independence,
    plot_lag_comparison,
    plot_modes,
    plot_modes_in_time,
    plot_states,
)
from kdmaps.plotting._results import (
    plot_certificates,
    plot_history,
    plot_landscape,
    plot_regularization_map,
    plot_relevance,
    plot_residuals,
    plot_timescales,
)

__all__ = [
    "plot_certificates",
    "plot_chapman_kolmogorov",
    "plot_coherent_sets",
    "plot_committor",
    "plot_embedding",
    "plot_flux_distribution",
    "plot_free_energy",
    "plot_free_energy_along_q",
    "plot_history",
    "plot_implied_timescales",
    "plot_independence",
    "plot_koopman",
    "plot_lag_comparison",
    "plot_landscape",
    "plot_modes",
    "plot_modes_in_time",
    "plot_phases",
    "plot_regularization_map",
    "plot_relevance",
    "plot_residuals",
    "plot_states",
    "plot_timescales",
]
