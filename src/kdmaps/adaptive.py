"""AdaptiveDiffusionMap: the default answer."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from kdmaps.diffusion import Factor
from kdmaps.estimator import ModeTransformer, adopt, all_or_nothing, checked_tensor, checked_weight
from kdmaps.folds import make_splits
from kdmaps.grid import REGULARIZATIONS
from kdmaps.kernels import FAMILIES
from kdmaps.search import KernelSearchCV


class AdaptiveDiffusionMap(ModeTransformer):
    """Slow modes from samples, with everything chosen automatically.

    The kernel family, its bandwidth and the regularization are searched by cross-validation (`KernelSearchCV`) on at
    most `max_search_samples` samples; the best candidate is then fitted on all samples.

    Parameters
    ----------
    n_components : int, default=4
        Number r of modes.
    random_state : int, RandomState instance or None, default=None
    families, regularizations, scoring, cv, basis, n_features, diffusion, n_jobs, checkpoint, progress :
        As in `KernelSearchCV`.
    max_search_samples : int, default=5000
        Larger data are searched on a random subsample of this size.

    Attributes
    ----------
    search_ : KernelSearchCV
        The search, with its landscape.
    best_params_ : dict
        The chosen arguments of `KernelDiffusionMap`.
    best_estimator_ : KernelDiffusionMap
        Fitted on all samples.
    timescales_, rates_, eigenvalues_, coefficients_, kernel_, basis_, modes_ :
        Those of `best_estimator_`.

    Examples
    --------
    >>> import kdmaps
    >>> X = kdmaps.problems.load("dw1d").sample(300, random_state=0)
    >>> modes = kdmaps.AdaptiveDiffusionMap(n_components=2, random_state=0).fit_transform(X)
    """

    def __init__(
        self,
        n_components=4,
        random_state=None,
        *,
        families=tuple(FAMILIES),
        regularizations=REGULARIZATIONS,
        scoring="timescale",
        cv=3,
        basis="fourier",
        n_features=300,
        diffusion=None,
        n_jobs=None,
        max_search_samples=5000,
        checkpoint=None,
        progress=False,
    ):
        self.n_components = n_components
        self.random_state = random_state
        self.families = families
        self.regularizations = regularizations
        self.scoring = scoring
        self.cv = cv
        self.basis = basis
        self.n_features = n_features
        self.diffusion = diffusion
        self.n_jobs = n_jobs
        self.max_search_samples = max_search_samples
        self.checkpoint = checkpoint
        self.progress = progress

    def fit(self, X, y=None, sample_weight=None, groups=None):
        """Choose the kernel and fit the modes.

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
        groups : array-like of shape (n_samples,), optional
            For a `cv` that needs them.

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            X = self._validated(X, reset=True)
            weight = checked_weight(sample_weight, X)
            checked_tensor(self.diffusion, X)
            rng = check_random_state(self.random_state)
            shared = self.get_params(deep=False)
            most = shared.pop("max_search_samples")
            if not isinstance(most, int | np.integer) or most < 2:
                raise ValueError(f"max_search_samples must be a whole number of at least 2, got {most!r}.")
            seed = rng.randint(2**31) if self.checkpoint is None or self.random_state is not None else None
            search = KernelSearchCV(**{**shared, "random_state": seed})
            if len(X) <= most:
                self.search_ = search.fit(X, sample_weight=weight, groups=groups)
                self.best_estimator_ = self.search_.best_estimator_
            else:
                rows = np.sort(rng.choice(len(X), most, replace=False))
                search.set_params(
                    diffusion=_rows_of(self.diffusion, rows), cv=_splits_of(self.cv, X, groups, rows, self.n_components)
                )
                self.search_ = search.fit(X[rows], sample_weight=None if weight is None else weight[rows])
                best = clone(self.search_.best_estimator_).set_params(diffusion=self.diffusion)
                self.best_estimator_ = best.fit(X, sample_weight=weight)
            self.best_params_ = self.search_.best_params_
            adopt(self, self.best_estimator_)
        return self


def _splits_of(cv, X: np.ndarray, groups, rows: np.ndarray, n_components: int):
    """What a splitter does to all samples, seen on `rows` of them: its blocks, gaps and groups keep their meaning."""
    if cv is None or isinstance(cv, Integral):
        return cv
    position = np.full(len(X), -1)
    position[rows] = np.arange(len(rows))
    splits = make_splits(cv, X, groups, n_components, 0)
    return [tuple(position[part][position[part] >= 0] for part in split) for split in splits]


def _rows_of(diffusion, rows: np.ndarray):
    """The entries of a diffusion tensor that belong to `rows`; a constant or a callable is the same for all."""
    if isinstance(diffusion, Factor):
        return Factor(diffusion.array[rows])
    if diffusion is None or callable(diffusion) or np.ndim(diffusion) != 3:
        return diffusion
    return np.asarray(diffusion)[rows]
