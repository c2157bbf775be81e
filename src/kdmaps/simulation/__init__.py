"""Using modes with simulations: weights of biased samples, modes as collective variables."""

from kdmaps.data.findings import effective_sample_size
from kdmaps.simulation.export import as_jax, plumed_input
from kdmaps.simulation.weights import boltzmann_weights

__all__ = ["as_jax", "boltzmann_weights", "effective_sample_size", "plumed_input"]
