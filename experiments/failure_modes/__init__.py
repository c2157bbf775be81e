"""Which of the paper's failure modes occur, and which disappear if the constant is removed?

The Discussion of the paper states where gradient descent drives the bandwidth σ under each training loss. Here each
loss is computed over a grid of σ with fixed frequencies: uncentred (as in the paper), centred, and with the held-out
score (`heldout`, centred) instead. The three main losses are also minimised by descent. A loss fails if its minimum is
at an edge of [0.05, 500] median distances, or if the modes at its minimum are not the slow ones.

    python -m experiments.failure_modes --quick
"""

from experiments.failure_modes._claims import CLAIMS, Landscape, minima
from experiments.failure_modes._figure import figure
from experiments.failure_modes._laboratory import Laboratory, Settings, run
from experiments.failure_modes._tables import table

__all__ = ["CLAIMS", "Laboratory", "Landscape", "Settings", "figure", "minima", "run", "table"]
