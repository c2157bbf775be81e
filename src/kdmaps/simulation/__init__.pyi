"""Public names of kdmaps.simulation, imported when they are first used."""

from .export import as_jax as as_jax
from .export import jax_program as jax_program
from .export import plumed_input as plumed_input
from .forces import KolmogorovBias as KolmogorovBias
from .forces import ModeBias as ModeBias
from .forces import openmm_cv as openmm_cv
from .forces import openmm_walls as openmm_walls
from .inputs import AlignedPositions as AlignedPositions
from .inputs import Distance as Distance
from .inputs import Torsion as Torsion
from .inputs import descriptors as descriptors
from .inputs import jacobians as jacobians
from .swarms import swarm_weights as swarm_weights
from .weights import boltzmann_weights as boltzmann_weights
from .weights import effective_sample_size as effective_sample_size
from .weights import metadynamics_weights as metadynamics_weights
from .weights import umbrella_weights as umbrella_weights
