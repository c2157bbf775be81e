"""A static bias along a mode that fills the wells of the free energy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline
from scipy.ndimage import gaussian_filter1d

from kdmaps.estimators.transformer import ModeTransformer
from kdmaps.simulation.fields import ModeField
from kdmaps.simulation.forces import openmm_cv
from kdmaps.simulation.inputs import Input
from kdmaps.simulation.weights import checked_kT
from kdmaps.utils.optional import optional
from kdmaps.utils.validation import checked_weight

#: Number of bins of the free energy along a mode, and minimum number of frames in a reliable bin.
BINS, LEAST_FRAMES = 60, 5


class ModeBias:
    """A static bias U(x) = u(φ(x)) along one mode, constant far from the samples of the fit.

    Parameters
    ----------
    model : fitted estimator
    mode : int
        Index of the mode; 0 is the slowest.
    places, energies : array-like of shape (n,)
        Values of the mode in ascending order, and u there; splines in between, constant beyond.

    Examples
    --------
    >>> import kdmaps
    >>> X = kdmaps.problems.load("dw1d").sample(500, random_state=0)
    >>> model = kdmaps.KernelDiffusionMap(n_components=1, random_state=0).fit(X)
    >>> bias = kdmaps.simulation.ModeBias(model, 0, [-1.0, 0.0, 1.0], [0.0, 2.0, 0.0])
    >>> bias.energy(X).shape, bias.gradient(X).shape
    ((500,), (500, 1))
    """

    model: ModeTransformer
    mode: int
    places: np.ndarray
    energies: np.ndarray

    def __init__(self, model: ModeTransformer, mode: int, places: ArrayLike, energies: ArrayLike):
        self.model, self.mode = model, mode
        self.places, self.energies = (np.asarray(values, dtype=np.float64) for values in (places, energies))
        self._field = ModeField(model, mode, flat=True)
        self._spline = CubicSpline(self.places, self.energies, bc_type="natural")  # as in tables of OpenMM

    @classmethod
    def filling(
        cls,
        model: ModeTransformer,
        mode: int,
        X: np.ndarray,
        sample_weight: ArrayLike | None,
        kT: float,
        bias_factor: float = 8.0,
    ) -> ModeBias:
        """Return the bias u = (1 - 1/γ)(F_max - F), which fills wells as converged metadynamics does.

        F = -kT log of the weighted density of the mode at X; F_max is its largest value in bins with enough frames.

        Parameters
        ----------
        model : fitted estimator
        mode : int
            Index of the mode; 0 is the slowest.
        X : ndarray of shape (n_frames, d)
            Frames in the columns of the model.
        sample_weight : array-like of shape (n_frames,), optional
            Weights that reweight X to the unbiased system.
        kT : float
            Temperature times Boltzmann's constant.
        bias_factor : float, default=8
            γ; the bias reduces the free energy to F/γ.
        """
        weight = checked_weight(sample_weight, X)
        values = ModeField(model, mode, flat=True).values(np.asarray(X, dtype=np.float64))
        edges = np.linspace(values.min(), values.max(), BINS + 1)
        known = np.histogram(values, edges)[0] >= LEAST_FRAMES
        density = gaussian_filter1d(np.histogram(values, edges, weights=weight)[0].astype(float), 1.0)
        energy = -checked_kT(kT) * np.log(np.maximum(density, np.finfo(float).tiny))
        top = energy[known].max()
        energy = gaussian_filter1d(np.where(known, np.minimum(energy, top), top), 1.0)
        return cls(model, mode, (edges[1:] + edges[:-1]) / 2, (1 - 1 / bias_factor) * (top - energy))

    @property
    def height(self) -> float:
        """Difference between the largest and the smallest bias energy."""
        return float(np.ptp(self.energies))

    def values(self, X: np.ndarray) -> np.ndarray:
        """Return the mode at rows of X, continued flat far from the samples; shape (n,)."""
        return self._field.values(np.asarray(X, dtype=np.float64))

    def energy(self, X: np.ndarray) -> np.ndarray:
        """Return U at rows of X, shape (n,)."""
        return np.asarray(self._spline(np.clip(self.values(X), self.places[0], self.places[-1])))

    def gradient(self, X: np.ndarray) -> np.ndarray:
        """Return ∇U at rows of X, shape (n, d)."""
        values, slopes = zip(*map(self._field, np.asarray(X, dtype=np.float64)), strict=True)
        clipped = np.clip(values, self.places[0], self.places[-1])
        return np.where(clipped == values, self._spline(clipped, 1), 0.0)[:, None] * np.array(slopes)

    def force(self, inputs: Sequence[Input], system: Any = None, method: str = "auto") -> Any:
        """Return the bias as an OpenMM force to add to a system.

        Parameters
        ----------
        inputs : sequence of Torsion, Distance and AlignedPositions
            Definition of the columns of the samples.
        system, method :
            As in `openmm_cv`.
        """
        openmm = optional("openmm", "openmm", "Biases as forces of a simulation")
        low, high = float(self.places[0]), float(self.places[-1])
        force = openmm.CustomCVForce(f"bias(min(max(mode, {low!r}), {high!r}))")
        force.addCollectiveVariable("mode", openmm_cv(self.model, self.mode, inputs, system=system, method=method))
        places = np.linspace(low, high, len(self.places))  # OpenMM needs an even grid
        table = openmm.Continuous1DFunction(self._spline(places).tolist(), low, high)
        force.addTabulatedFunction("bias", table)
        force.setName(f"bias along mode {self.mode + 1}, {self.height:.3g} kJ/mol high")
        return force
