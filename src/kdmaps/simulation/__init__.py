"""Modes and simulations: weights of biased samples, modes as collective variables."""

from kdmaps.data.findings import effective_sample_size
from kdmaps.simulation.export import as_jax, jax_program, plumed_input
from kdmaps.simulation.forces import KolmogorovBias, ModeBias, openmm_cv, openmm_walls
from kdmaps.simulation.inputs import AlignedPositions, Distance, Torsion, descriptors, jacobians
from kdmaps.simulation.weights import boltzmann_weights, metadynamics_weights, umbrella_weights

__all__ = [
    "AlignedPositions",
    "Distance",
    "KolmogorovBias",
    "ModeBias",
    "Torsion",
    "as_jax",
    "boltzmann_weights",
    "descriptors",
    "effective_sample_size",
    "jacobians",
    "jax_program",
    "metadynamics_weights",
    "openmm_cv",
    "openmm_walls",
    "plumed_input",
    "umbrella_weights",
]
