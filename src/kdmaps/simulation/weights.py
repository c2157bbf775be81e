"""Weights that reweight samples of a biased simulation to the unbiased system."""

from __future__ import annotations

from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.data.findings import effective_sample_size, is_dominated
from kdmaps.exceptions import DataWarning
from kdmaps.utils.warn import warn


def boltzmann_weights(bias_energy: ArrayLike, kT: float) -> np.ndarray:
    """Return the weights e^{U/kT}, scaled to mean 1, of samples simulated with a bias U added to the energy V.

    Samples of e^{-(V+U)/kT} with these weights represent e^{-V/kT}; pass them to `fit` as `sample_weight`. A simulation
    at another temperature is a bias too: samples of e^{-V/kT'} represent e^{-V/kT} with U = V (kT/kT' - 1).

    Parameters
    ----------
    bias_energy : array-like of shape (n_samples,)
        U at the samples, in the units of `kT`; an additive constant has no effect.
    kT : float
        Temperature times Boltzmann's constant.

    Returns
    -------
    weights : ndarray of shape (n_samples,)

    Warns
    -----
    DataWarning
        If a few samples carry nearly all of the weight.

    Examples
    --------
    >>> import numpy as np
    >>> from kdmaps.simulation import boltzmann_weights
    >>> boltzmann_weights([0.0, np.log(3.0)], kT=1.0)
    array([0.5, 1.5])
    """
    energy = np.asarray(bias_energy, dtype=np.float64)
    if energy.ndim != 1 or energy.size == 0 or not np.isfinite(energy).all():
        raise ValueError(f"bias_energy must hold one finite energy per sample, got an array of shape {energy.shape}.")
    if not isinstance(kT, Real) or not 0 < float(kT) < np.inf:
        raise ValueError(f"kT must be a positive number in the units of bias_energy, got {kT!r}.")
    weights = np.exp((energy - energy.max()) / float(kT))
    weights /= weights.mean()
    n, effective = len(weights), effective_sample_size(weights)
    if is_dominated(n, effective):
        warn(
            f"The weights leave {effective:.1f} effective samples of {n}: a few samples dominate the result. Check the "
            "units of bias_energy and kT, discard the time in which the bias was still growing, or sample longer.",
            DataWarning,
        )
    return weights
