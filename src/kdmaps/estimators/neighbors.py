"""NeighborDiffusionMap: modes of a graph of neighbours, for data without a clock or physics."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.checks import Check, warn
from kdmaps.data.check import time_check
from kdmaps.data.inputs import join_trajectories
from kdmaps.data.sources import ArraySource, Source
from kdmaps.estimators.graph_fit import fit_graph
from kdmaps.estimators.transformer import ModeTransformer, read_samples
from kdmaps.exceptions import ArgumentError, NotApplicable
from kdmaps.forms.tangent import DiffusionLike
from kdmaps.utils.threads import one_blas_thread
from kdmaps.utils.types import RandomStateLike, SamplesLike
from kdmaps.utils.validation import check_positive_integer, seed_of

#: The smallest number of neighbours: local widths are distances to neighbour k/3.
FEWEST_NEIGHBORS = 3


@dataclass(eq=False, repr=False)
class NeighborDiffusionMap(ModeTransformer):
    """Slowest modes of a random walk between neighbours, for data without a clock or physics.

    The energy of a mode φ is the mean squared difference between neighbours, E Σ_j w_ij |φ(x_i) - φ(x_j)|², in place of
    the mean squared gradient: an empty gap costs what its neighbours across it cost, and the noise of single rows is
    averaged over neighbours. Rows are neighbours if one is among the k nearest of the other, with the weight
    w_ij = exp(-|x_i - x_j|²/(s_i s_j)), s_i the distance to neighbour k/3; half of the weight is among the rows, half
    among their neighbour means.

    `AdaptiveDiffusionMap(energy="neighbors")` is the same.

    Parameters
    ----------
    n_components : int, default=4
        Number r of modes, the constant not counted.
    n_neighbors : int, default=30
        Number k of neighbours of each row.
    random_state : int, RandomState instance or None, default=None
        Seed of the start of the eigenvalue iteration, and of the halves of the rows that test stability.
    n_jobs : int or None, default=-1
        Number of threads; -1 is one per core, None is 1.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        λ of the random walk, 1 - `rates_`.
    rates_, timescales_ : ndarray of shape (n_components,)
        1 - λ, per step of the walk, and its inverse: without a unit of time. Infinite time scales belong to
        indicators of components.
    components_of_rows_ : ndarray of shape (n_samples,)
        Component of the graph of each row, 0 for the largest; -1 for rows in groups of fewer than k rows, which have
        the values of the nearest other row. Mode c - 1 or one before it is the indicator of component c.
    fold_agreement_ : float
        Mean squared cosine between the spans of the modes of two halves of the rows.
    suggested_n_components_ : int
        The largest number of modes on whose span the halves agree (at least 0.6).
    graph_ : sparse array of shape (n_samples, n_samples)
        The weights. Not part of a stored model.
    basis_, modes_, coefficients_, moments_, support_ :
        As in `KernelDiffusionMap`.

    See Also
    --------
    kdmaps.scanpy : The same for single-cell data in AnnData.

    Examples
    --------
    >>> import kdmaps
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> m = kdmaps.NeighborDiffusionMap(n_components=2, random_state=0).fit(scale(load_wine().data))
    >>> m.transform(scale(load_wine().data)).shape
    (178, 2)
    """

    n_components: int = 4
    _: KW_ONLY
    n_neighbors: int = 30
    random_state: RandomStateLike = None
    n_jobs: int | None = -1

    def _fit(self, X: SamplesLike, sample_weight: ArrayLike | None, groups: ArrayLike | None) -> list[Check]:
        check_positive_integer("n_components", self.n_components)
        check_positive_integer("n_neighbors", self.n_neighbors)
        _refuse_weights(sample_weight, groups)
        X, _, _ = join_trajectories(X)
        source, columns = read_samples(self, X)
        rows = _rows_in_memory(source)
        self._check_size(len(rows))
        warn(time_check(rows, None, columns.names))  # type: ignore[arg-type]
        found = fit_graph(rows, self.n_components, self.n_neighbors, seed_of(self.random_state))
        self._publish(columns, found.fit, **found.attributes())
        return found.checks

    def _check_size(self, n_samples: int) -> None:
        if self.n_neighbors < FEWEST_NEIGHBORS:
            raise ArgumentError(
                "{n_neighbors:{number}} is too small: give at least {fewest}.",
                number=self.n_neighbors,
                fewest=FEWEST_NEIGHBORS,
            )
        if self.n_neighbors >= n_samples:
            raise ArgumentError(
                "{n_neighbors:{number}} needs more than the {n_samples} samples of X; use more samples or fewer "
                "neighbours.",
                number=self.n_neighbors,
                n_samples=n_samples,
            )
        if self.n_components >= n_samples - 1:
            raise ArgumentError(
                "{n_components:{count}} needs more than the {n_samples} samples of X; use more samples or fewer modes.",
                count=self.n_components,
                n_samples=n_samples,
            )

    @one_blas_thread()
    def score(self, X: SamplesLike, y: Any = None, sample_weight: ArrayLike | None = None, **options: Any) -> float:
        """Raise an error: the time scales of a graph of neighbours are no score at other samples."""
        raise NotApplicable(
            "A model with {energy:neighbors} has no score: its time scales depend on the number of samples and of "
            "neighbours. Compare models by what they are used for, or use the default energy."
        )

    def _own_diffusion(self) -> DiffusionLike:
        return None


def _rows_in_memory(source: Source) -> np.ndarray:
    """Return all rows of an array; other sources are refused."""
    if isinstance(source, ArraySource):
        return np.asarray(source.array, dtype=np.float64)
    raise NotApplicable(
        "{energy:neighbors} needs all samples in memory, because every row is compared with all others. Give an array "
        "(for example of kdmaps.data.gather), or use the default energy, which reads files, streams and Dask data in "
        "parts."
    )


def _refuse_weights(sample_weight: ArrayLike | None, groups: ArrayLike | None) -> None:
    if sample_weight is not None:
        raise NotApplicable(
            "{energy:neighbors} takes no {sample_weight}: local widths and neighbour means adapt to the density of the "
            "rows, and weights would not correct it. Leave it out, or use the default energy."
        )
    if groups is not None:
        raise NotApplicable(
            "{energy:neighbors} takes no groups: there are no folds, and neighbours do not depend on them. Leave them "
            "out."
        )


def make_neighbor_map(estimator: Any) -> NeighborDiffusionMap:
    """Return the estimator that `AdaptiveDiffusionMap(energy="neighbors")` stands for; other settings are refused."""
    unused = {"lag": None, "time_step": None, "reversible": True}
    unused |= {"diffusion": None, "search": None, "standardize": False}
    given = [name for name, default in unused.items() if getattr(estimator, name) is not default]
    if estimator.isolated != "separate":
        given.append("isolated")
    if given:
        raise NotApplicable(
            "{energy:neighbors} takes no {names}: neighbours in space have no clock, no diffusion constants and no "
            "kernel to search for, and columns are used as they are (sklearn.preprocessing.scale divides them by their "
            "standard deviations). Leave {it} out, or use the default energy.",
            names=", ".join(given),
            it="it" if len(given) == 1 else "them",
        )
    return NeighborDiffusionMap(
        estimator.n_components,
        n_neighbors=estimator.n_neighbors,
        random_state=estimator.random_state,
        n_jobs=estimator.n_jobs,
    )
