"""A toy model of molecular dynamics: a few slow double wells among many fast vibrations."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.problems.base import Array, check_count, check_points, check_positive
from kdmaps.problems.langevin import double_well
from kdmaps.problems.ornstein_uhlenbeck import OrnsteinUhlenbeck
from kdmaps.problems.product import Product


class MDLike(Product):
    """Slow coordinates in V = (x² - 1)²/4 and fast Gaussian coordinates of rate 1/variance, all independent.

    Slow coordinates are simulated by Euler–Maruyama, fast ones by their exact transition.

    Parameters
    ----------
    n_slow : int
        Number of double-well coordinates, which come first.
    n_fast : int
        Number of Gaussian coordinates.
    fast_variance : float
        Their stationary variance.
    """

    n_slow: int
    n_modes: int

    name = "mdlike"

    def __init__(self, n_slow: int = 2, n_fast: int = 8, fast_variance: float = 0.04) -> None:
        self.n_slow = self.n_modes = check_count(n_slow, "n_slow")
        fast_rate = 1 / check_positive(fast_variance, "fast_variance")
        # One object for all slow coordinates: it is solved once, and their rates are identical to the last bit.
        well = double_well()
        super().__init__([well] * n_slow + [OrnsteinUhlenbeck([fast_rate] * check_count(n_fast, "n_fast"))])

    def paper_reference(self, X: ArrayLike) -> Array:
        """Evaluate the paper's reference tanh(3 x_j) of the slow coordinates, which are not eigenfunctions.

        Parameters
        ----------
        X : array-like of shape (n, dim)
            Points.

        Returns
        -------
        ndarray of shape (n, n_slow)
        """
        return np.tanh(3 * check_points(X, self.dim)[:, : self.n_slow])
