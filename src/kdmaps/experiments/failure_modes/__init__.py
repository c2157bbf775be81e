"""Which of the paper's failure modes are there, and which leave with the constant?

The Discussion of the paper says where gradient descent takes the bandwidth σ under each training loss. Here every loss
is computed over a grid of σ on one fixed draw of frequencies, uncentred (as in the paper), centred, and against the
held-out score (`heldout`, centred); the three main losses are also descended. A loss has failed where its minimum is at
an edge of [0.05, 500] medians of the distance, or where the modes at its minimum are not the slow ones.

    python -m kdmaps.experiments.failure_modes --quick
"""

from kdmaps.experiments.failure_modes._claims import CLAIMS, Landscape, minima
from kdmaps.experiments.failure_modes._figure import figure
from kdmaps.experiments.failure_modes._laboratory import Laboratory, Settings, run
from kdmaps.experiments.failure_modes._tables import table

__all__ = ["CLAIMS", "Laboratory", "Landscape", "Settings", "figure", "minima", "run", "table"]
