"""Frames of trajectories in principal coordinates, and the blocks that candidates are tested on."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from sklearn.utils.extmath import randomized_svd

from kdmaps.data.correlation import trajectories_of

#: Directions with a smaller part of the largest deviation are rounding errors.
ROUNDING = 1e-11
#: Multiplications of an exact singular value decomposition, beyond which only the leading directions are computed.
EXACT_COST = 5e9
#: Most coordinates of large data.
MOST_COORDINATES = 120
#: Most frames on which candidates are compared; of more, stretches at equal distances are taken.
MOST_FRAMES = 10_000
#: Number of these stretches.
STRETCHES = 10
#: Number of blocks that are held out.
BLOCKS = 5
#: From this number on, whole trajectories are held out instead of blocks.
MANY_TRAJECTORIES = 3
#: Numbers of lags after which forecasts are tested.
STEPS = (1, 2, 5, 10, 20, 50)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Principal coordinates z = (x - origin)V/scale of the samples, largest variance first."""

    origin: np.ndarray  #: (d,): the mean.
    scale: float  #: Root mean square distance from the mean.
    directions: np.ndarray  #: V, (d, k), with orthonormal columns.

    def at(self, X: np.ndarray) -> np.ndarray:
        """Return the coordinates of points; (n, k)."""
        return ((X - self.origin) / self.scale) @ self.directions

    def back(self, Z: np.ndarray) -> np.ndarray:
        """Return the points with these first coordinates, and 0 for the others; (n, d)."""
        return self.origin + self.scale * (Z @ self.directions[:, : Z.shape[-1]].T)

    def first(self, k: int) -> Self:
        """Return the first k coordinates only."""
        return type(self)(self.origin, self.scale, np.ascontiguousarray(self.directions[:, :k]))


def principal_coordinates(X: np.ndarray) -> tuple[Coordinates, np.ndarray]:
    """Return the coordinates that the samples X determine, and their values at X."""
    origin = X.mean(axis=0)
    centred = X - origin
    scale = float(np.sqrt(np.mean(np.sum(centred**2, axis=1))))
    scale = scale if scale > 0 else 1.0
    centred /= scale
    n, d = X.shape
    if float(n) * d * min(n, d) <= EXACT_COST:
        _, deviations, rows = np.linalg.svd(centred, full_matrices=False)
    else:
        most = min(n, d, MOST_COORDINATES)
        _, deviations, rows = randomized_svd(centred, most, n_iter=4, random_state=0)
    kept = deviations > ROUNDING * deviations[0]
    directions = np.ascontiguousarray(rows[kept].T)
    return Coordinates(origin, scale, directions), centred @ directions


@dataclass(frozen=True, eq=False)
class Frames:
    """Frames of trajectories, one after another, in principal coordinates."""

    coordinates: Coordinates
    values: np.ndarray  #: Z, (n, k).
    owner: np.ndarray  #: (n,): the trajectory of each frame.
    lag: int  #: In frames.
    #: R, (k, m): ZR are the columns that are new in each frame. Columns that copy another one a frame earlier, as
    #: delays do, can be forecast without any dynamics.
    targets: np.ndarray
    n_delays: int  #: Copies of each new column, itself included.
    weight: np.ndarray  #: (n,): of the pairs that begin at each frame.

    @classmethod
    def of(cls, X: np.ndarray, groups: Any, lag: int, weight: np.ndarray | None = None) -> Self:
        """Return the frames of X, sorted by trajectory."""
        trajectories = trajectories_of(groups, len(X))
        rows = np.concatenate(trajectories)
        owner = np.repeat(np.arange(len(trajectories)), [len(part) for part in trajectories])
        frames = np.asarray(X, dtype=np.float64)[rows]
        coordinates, values = principal_coordinates(frames)
        new = new_columns(frames, owner)
        every = len(new) == frames.shape[1]
        targets = np.eye(values.shape[1]) if every else np.ascontiguousarray(coordinates.directions[new].T)
        weight = np.ones(len(rows)) if weight is None else np.asarray(weight, dtype=np.float64)[rows]
        return cls(coordinates, values, owner, lag, targets, round(frames.shape[1] / len(new)), weight)

    @property
    def n_coordinates(self) -> int:
        """Number of coordinates."""
        return self.values.shape[1]

    @cached_property
    def starts(self) -> np.ndarray:
        """Rows of the first frames of all pairs."""
        return self.within(np.arange(len(self.owner)), 1)

    def within(self, rows: np.ndarray, steps: int) -> np.ndarray:
        """Return those of the rows whose trajectory goes on for so many lags."""
        later = rows + steps * self.lag
        inside = later < len(self.owner)
        rows, later = rows[inside], later[inside]
        return rows[self.owner[rows] == self.owner[later]]

    @cached_property
    def block(self) -> np.ndarray:
        """(n,): the block of each frame, a stretch of frames or several whole trajectories."""
        n_trajectories = int(self.owner[-1]) + 1
        if n_trajectories >= MANY_TRAJECTORIES:
            return self.owner % min(BLOCKS, n_trajectories)
        n = len(self.owner)
        return np.arange(n) * BLOCKS // n

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return int(self.block.max()) + 1

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """Numbers of lags after which forecasts are tested: up to half of a block, or of a typical trajectory."""
        lengths = np.bincount(self.owner)
        length = np.median(lengths) if len(lengths) >= MANY_TRAJECTORIES else len(self.owner) / BLOCKS
        longest = max(1, int(length) // (2 * self.lag))
        return tuple(h for h in STEPS if h <= longest)

    @cached_property
    def variance(self) -> float:
        """Variance of the new columns."""
        return float((self.values @ self.targets).var(axis=0).sum())

    @cached_property
    def change(self) -> float:
        """Root mean square change of the new columns in one lag."""
        moved = (self.values[self.starts + self.lag] - self.values[self.starts]) @ self.targets
        return float(np.sqrt(np.mean(np.sum(moved**2, axis=1))))

    def thinned(self) -> Self:
        """Return stretches of the frames if there are many, each of them a trajectory."""
        n = len(self.owner)
        if n <= MOST_FRAMES:
            return self
        length = MOST_FRAMES // STRETCHES
        first = np.linspace(0, n - length, STRETCHES).astype(int)
        rows = (first[:, None] + np.arange(length)).ravel()
        stretch = np.repeat(np.arange(STRETCHES), length)
        _, owner = np.unique(np.column_stack([stretch, self.owner[rows]]), axis=0, return_inverse=True)
        settings = (self.lag, self.targets, self.n_delays, self.weight[rows])
        return type(self)(self.coordinates, self.values[rows], owner.ravel(), *settings)


def new_columns(X: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """Return the columns that do not copy another column of the frame before."""
    d = X.shape[1]
    starts = np.flatnonzero(owner[1:] == owner[:-1])
    if not len(starts) or d == 1:
        return np.arange(d)
    before = {X[starts, column].tobytes(): column for column in range(d)}
    source = [before.get(X[starts + 1, column].tobytes(), column) for column in range(d)]
    new = np.flatnonzero(np.array(source) == np.arange(d))
    return new if len(new) else np.arange(d)
