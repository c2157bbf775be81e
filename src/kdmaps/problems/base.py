"""Base classes of test problems, and checks of their arguments."""

from abc import ABC, abstractmethod
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kdmaps.utils.notebook import card
from kdmaps.utils.numbers import rounded
from kdmaps.utils.validation import check_positive_integer, check_positive_number

Array: TypeAlias = NDArray[np.float64]
RandomState: TypeAlias = int | np.random.Generator | None


def check_points(X: ArrayLike, dim: int, name: str = "X") -> Array:
    """Return `X` as a finite float64 array of shape (n, dim), or raise a ValueError."""
    points = np.asarray(X, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != dim:
        raise ValueError(f"{name} must have shape (n, {dim}), got {points.shape}; pass one point in each row.")
    if not np.isfinite(points).all():
        raise ValueError(f"{name} contains NaN or infinity; remove those rows.")
    return points


class Problem(ABC):
    """A stationary reversible diffusion with known slow modes.

    G is the generator of dX = -D∇V dt + √(2D) dW, with stationary law π ∝ exp(-V), or of the Brownian motion √(2D) dW
    on a manifold. Mode k = 1, 2, … solves -G φ_k = rate_k φ_k, in ascending order of rate and with multiplicity; the
    constant (rate 0) is not counted. Rates are proportional to D, and estimators with ``diffusion=problem.diffusion``
    estimate them from samples; most problems have D = 1, the default of estimators.
    """

    name: str = "problem"  #: Name under which the problem is registered.
    dim: int  #: Number of coordinates of a point.
    n_modes: int = 4  #: Number of modes computed in the benchmarks.
    diffusion: float = 1.0  #: The diffusion constant D.
    cluster_tolerance: float = 1e-9  #: Relative difference of rates within a degenerate cluster.

    def __repr__(self) -> str:
        return f"{self.name}: {self.dim} coordinate{'s' if self.dim > 1 else ''}, diffusion constant {self.diffusion:g}"

    def _repr_html_(self) -> str:
        rates = self.rates(self.n_modes)
        rows = [[str(k + 1), rounded(1 / rate), rounded(rate)] for k, rate in enumerate(rates)]
        return card(repr(self), ("mode", "exact time scale", "exact rate"), rows)

    def sample(self, n_samples: int, random_state: RandomState = None) -> Array:
        """Draw independent points from the stationary law; shape (n_samples, dim).

        Parameters
        ----------
        n_samples : int
        random_state : int, numpy.random.Generator or None
        """
        return self._sample(check_positive_integer("n_samples", n_samples), np.random.default_rng(random_state))

    def rates(self, k: int) -> Array:
        """Return the `k` smallest non-zero eigenvalues of -G, ascending, with multiplicity; shape (k,)."""
        return self._rates(check_positive_integer("k", k))

    def eigenfunctions(self, X: ArrayLike, k: int) -> Array:
        """Evaluate the first `k` exact modes, of mean 0 and variance 1 under π; shape (n, k).

        Parameters
        ----------
        X : array-like of shape (n, dim)
        k : int
            Number of modes.
        """
        return self._eigenfunctions(check_points(X, self.dim), check_positive_integer("k", k))

    def reference(self, X: ArrayLike, r: int) -> Array:
        """Evaluate the first r modes and all further modes of the last degenerate cluster, in columns.

        Parameters
        ----------
        X : array-like of shape (n, dim)
        r : int
            Number of modes to be compared with the reference.
        """
        k = 2 * check_positive_integer("r", r)
        while True:
            rates = self._rates(k)
            last = rates[r - 1] * (1 + self.cluster_tolerance)
            if rates[-1] > last:
                return self.eigenfunctions(X, int(np.searchsorted(rates, last, side="right")))
            k *= 2

    def simulate(
        self,
        n_steps: int,
        dt: float,
        n_trajectories: int = 1,
        x0: ArrayLike | None = None,
        random_state: RandomState = None,
    ) -> Array:
        """Simulate independent trajectories; shape (n_trajectories, n_steps, dim), the start included.

        Parameters
        ----------
        n_steps : int
            Number of frames.
        dt : float
            Time between frames, and the time step of the scheme (each class states its scheme).
        n_trajectories : int
        x0 : array-like of shape (dim,) or (n_trajectories, dim), optional
            Starting points; drawn from the stationary law by default.
        random_state : int, numpy.random.Generator or None
        """
        n_steps = check_positive_integer("n_steps", n_steps)
        n_trajectories = check_positive_integer("n_trajectories", n_trajectories)
        dt = check_positive_number("dt", dt)
        rng = np.random.default_rng(random_state)
        if x0 is None:
            start = self._sample(n_trajectories, rng)
        else:
            start = check_points(np.atleast_2d(np.asarray(x0, dtype=np.float64)), self.dim, "x0")
            if len(start) not in (1, n_trajectories):
                raise ValueError(f"x0 has {len(start)} rows; pass one, or n_trajectories={n_trajectories} of them.")
            start = np.broadcast_to(start, (n_trajectories, self.dim))
        return self._trajectories(start, n_steps, dt, rng)

    def trajectory(
        self, n_frames: int, time_step: float, *, substeps: int = 10, random_state: RandomState = None
    ) -> Array:
        """Simulate one stationary trajectory with frames `time_step` apart; shape (n_frames, dim).

        Parameters
        ----------
        n_frames : int
        time_step : float
            Time between frames.
        substeps : int, default=10
            Steps of the scheme between two frames. The relative error of time scales is about the length of a step
            divided by the fastest time scale; problems with an exact propagator need 1.
        random_state : int, numpy.random.Generator or None
        """
        n_frames, substeps = check_positive_integer("n_frames", n_frames), check_positive_integer("substeps", substeps)
        step = check_positive_number("time_step", time_step) / substeps
        return self.simulate(substeps * (n_frames - 1) + 1, step, random_state=random_state)[0, ::substeps].copy()

    @abstractmethod
    def _sample(self, n: int, rng: np.random.Generator) -> Array: ...

    @abstractmethod
    def _rates(self, k: int) -> Array: ...

    @abstractmethod
    def _eigenfunctions(self, X: Array, k: int) -> Array: ...

    @abstractmethod
    def _trajectories(self, start: Array, n_steps: int, dt: float, rng: np.random.Generator) -> Array: ...


class Markov(Problem):
    """A problem whose trajectories are simulated step by step."""

    def _trajectories(self, start: Array, n_steps: int, dt: float, rng: np.random.Generator) -> Array:
        frames = np.empty((n_steps, *start.shape))
        frames[0] = start
        with np.errstate(over="ignore", invalid="ignore"):
            for step in range(1, n_steps):
                frames[step] = self._step(frames[step - 1], dt, rng)
        if not np.isfinite(frames[-1]).all():
            raise ValueError(f"The trajectory diverged: dt={dt} is too large for the drift; pass a smaller dt.")
        return np.ascontiguousarray(frames.transpose(1, 0, 2))

    @abstractmethod
    def _step(self, x: Array, dt: float, rng: np.random.Generator) -> Array: ...


class Diffusion(Markov):
    """A problem in R^d with a drift.

    Trajectories are simulated by Euler–Maruyama, X ← X - D∇V dt + √(2D dt) ξ, of weak order dt.
    """

    def drift(self, X: ArrayLike) -> Array:
        """Evaluate the drift -D∇V at points X of shape (n, dim); the result has the same shape."""
        return self._drift(check_points(X, self.dim))

    @abstractmethod
    def _drift(self, X: Array) -> Array: ...

    def _step(self, x: Array, dt: float, rng: np.random.Generator) -> Array:
        return x + self._drift(x) * dt + np.sqrt(2 * self.diffusion * dt) * rng.standard_normal(x.shape)
