"""The Müller–Brown potential: two rare transitions, sampled independently or with a bias that fills the wells."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.problems.base import Array, RandomState, check_count, check_points
from kdmaps.problems.finite_volume import sample_box
from kdmaps.problems.langevin import Langevin2D

HEIGHTS = 0.15 * np.array([-200.0, -100.0, -170.0, 15.0])
CENTRES = np.array([[1, 0], [0, 0.5], [-0.5, 1.5], [-1, 1]])
# Each exponent is a quadratic form, dᵀ Q d with d = x - centre.
FORMS = np.array([[[-1, 0], [0, -10]], [[-1, 0], [0, -10]], [[-6.5, 5.5], [5.5, -6.5]], [[0.7, 0.3], [0.3, 0.7]]])


class MullerBrown(Langevin2D):
    """The Müller–Brown potential times 0.15, at temperature 1 and with D = 0.1: dX = -0.1 ∇V dt + √0.2 dW.

    V = 0.15 Σ_i A_i e^{a_i u² + b_i uv + c_i v²} with u = x - x_i, v = y - y_i and four terms (K. Müller and L. D.
    Brown, Theor. Chim. Acta 53, 75 (1979)). Its wells are -22.0 deep at (-0.56, 1.44), -16.2 at (0.62, 0.03) and -12.1
    at (-0.05, 0.47), with saddles at -6.1 and -10.8 between them. The last two wells hold a fraction 0.0033 of the law,
    the last one 0.00013.

    The slowest rates are 1.2474e-4 (exchange with the deepest well) and 0.35596 (between the other two). They are those
    of D = 0.1: an estimator needs ``diffusion=0.1``. The next modes, up to rate 3.4, belong to a plateau around
    (-1.8, 1.8), 26 above the minimum, which no sample reaches; hence `n_modes` is 2. The third rate is 0.6746 in the
    plane, and larger if the plateau is cut off by reflecting sides: 1.24 on (-1.7, 1.3) × (-0.5, 2.2).

    Trajectories need a `dt` of about 1e-3: the stiffest direction relaxes at rate 61.
    """

    fill_level: float
    bias_factor: float

    name = "muller-brown"
    n_modes = 2
    sampling_cells = 512
    # Of the bias: the tempered filling reaches up to this level just above the highest saddle, …
    fill_level, bias_factor = -6.0, 6.0
    # … and is limited to this height, which leaves about 40 % of the frames effective.
    fill_height: float = 12.0

    def __init__(self) -> None:
        super().__init__(_potential, _gradient, ((-3.1, 1.4), (-1.1, 3.1)), cells=80, diffusion=0.1)

    def bias(self, X: ArrayLike) -> Array:
        """Evaluate the static bias U that `biased_sample` adds to V.

        U = -log(e^{-u} + e^{-12}) with u = (1 - 1/6) max(-6 - V, 0): the bias of well-tempered metadynamics with bias
        factor 6, filled up to the highest saddle and smoothly limited to 12.

        Parameters
        ----------
        X : array-like of shape (n, 2)
            Points.

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._bias(check_points(X, self.dim))

    def biased_sample(self, n_samples: int, random_state: RandomState = None) -> tuple[Array, Array]:
        """Draw independent points with density ∝ e^{-(V+U)} and their weights for the stationary law e^{-V}.

        About 2.5 % of the points lie near the highest saddle, and the effective sample size is 0.4 `n_samples`.

        Parameters
        ----------
        n_samples : int
            Number of points.
        random_state : int, numpy.random.Generator or None
            Seed or generator.

        Returns
        -------
        X : ndarray of shape (n_samples, 2)
            The points.
        weights : ndarray of shape (n_samples,)
            e^U at the points, scaled to mean 1.
        """
        n, rng = check_count(n_samples, "n_samples"), np.random.default_rng(random_state)
        X = sample_box(lambda Y: self.potential(Y) + self._bias(Y), self.domain, self.sampling_cells, n, rng)
        weights = np.exp(self._bias(X))
        return X, weights / weights.mean()

    def _bias(self, X: Array) -> Array:
        filling = (1 - 1 / self.bias_factor) * np.maximum(self.fill_level - self.potential(X), 0)
        return -np.logaddexp(-filling, -self.fill_height)


def _terms(X: Array) -> tuple[Array, Array]:
    """Return Q_i (x - x_i), shape (n, 4, 2), and the four terms of V, shape (n, 4)."""
    offset = X[:, None, :] - CENTRES
    image = np.einsum("ide,nie->nid", FORMS, offset)
    return image, HEIGHTS * np.exp(np.sum(offset * image, axis=2))


def _potential(X: Array) -> Array:
    return _terms(X)[1].sum(axis=1)


def _gradient(X: Array) -> Array:
    image, terms = _terms(X)
    return 2 * np.einsum("ni,nid->nd", terms, image)
