"""The free energy along modes: of the frames of a trajectory, and of samples with weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from kdmaps.data.sources import ArraySource
from kdmaps.report._figures import svg
from kdmaps.utils.warn import muted

#: Samples of the free energy at most, taken at equal distances.
ENERGY_SAMPLES = 50_000
#: Cells along the slowest mode of weighted samples: few, since few of these lie on a barrier.
WEIGHTED_CELLS = 25


def energy_rows(n_samples: int) -> np.ndarray:
    """Return the rows that a free energy is made of."""
    return np.arange(0, n_samples, -(-n_samples // ENERGY_SAMPLES))


def weighted_energy(model: Any, lag: int | None, X: np.ndarray, weight: Any) -> Any | None:
    """Draw the unbiased free energy along the slowest mode; None for samples without weights, or with a lag.

    Along one mode, because there the curve is complete, barriers too, which are why samples have weights.
    """
    from markupsafe import Markup

    if weight is None or lag is not None:
        return None
    rows = energy_rows(len(X))
    with muted():  # samples of the fit
        values = np.asarray(model.transform(ArraySource(np.asarray(X[rows]))))
    return Markup(energy_figure(values[:, :1], np.asarray(weight)[rows], WEIGHTED_CELLS))


def energy_figure(values: np.ndarray, weight: np.ndarray | None, bins: int = 50) -> str:
    """Draw the free energy along the first two modes, or the only one."""
    from kdmaps import plotting

    def draw(ax: Any) -> None:
        plotting.plot_free_energy(values, sample_weight=weight, bins=bins, ax=ax)
        for part in ax.collections:
            part.set_rasterized(True)

    along = "the first two modes" if values.shape[1] > 1 else "mode 1"
    return svg(draw, f"Free energy along {along}, in units of kT", "energy")
