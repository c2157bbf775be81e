"""Public names of kdmaps.plotting, imported when they are first used."""

from ._free_energy import plot_committor as plot_committor
from ._free_energy import plot_flux_distribution as plot_flux_distribution
from ._free_energy import plot_free_energy as plot_free_energy
from ._free_energy import plot_free_energy_along_q as plot_free_energy_along_q
from ._modes import plot_chapman_kolmogorov as plot_chapman_kolmogorov
from ._modes import plot_coherent_sets as plot_coherent_sets
from ._modes import plot_implied_timescales as plot_implied_timescales
from ._modes import plot_independence as plot_independence
from ._modes import plot_koopman as plot_koopman
from ._modes import plot_modes as plot_modes
from ._modes import plot_modes_in_time as plot_modes_in_time
from ._modes import plot_phases as plot_phases
from ._modes import plot_states as plot_states
from ._results import plot_history as plot_history
from ._results import plot_landscape as plot_landscape
from ._results import plot_regularization_map as plot_regularization_map
from ._results import plot_relevance as plot_relevance
from ._results import plot_timescales as plot_timescales
