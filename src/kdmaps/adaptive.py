"""AdaptiveDiffusionMap: the default answer."""

from __future__ import annotations

import numpy as np
from sklearn.utils import check_random_state

from kdmaps.diffusion import Factor
from kdmaps.estimator import ModeTransformer, checked_weight
from kdmaps.kernels import FAMILIES
from kdmaps.search import REGULARIZATIONS, KernelSearchCV


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
        X = self._validated(X, reset=True)
        weight = checked_weight(sample_weight, X)
        rng = check_random_state(self.random_state)
        seed = rng.randint(2**31)
        shared = self.get_params(deep=False)
        del shared["max_search_samples"]
        search = KernelSearchCV(**{**shared, "random_state": seed})
        rows = np.arange(len(X))
        if len(X) > self.max_search_samples:
            # In order, so that blocks of a trajectory stay blocks.
            rows = np.sort(rng.choice(len(X), self.max_search_samples, replace=False))
            search.diffusion = _rows_of(self.diffusion, rows)
        self.search_ = search.fit(
            X[rows],
            sample_weight=None if weight is None else weight[rows],
            groups=None if groups is None else np.asarray(groups)[rows],
        )
        self.best_params_ = self.search_.best_params_
        self.best_estimator_ = self.search_.best_estimator_
        if len(X) > self.max_search_samples:
            self.best_estimator_.set_params(diffusion=self.diffusion).fit(X, sample_weight=weight)
        self._set_modes(self.best_estimator_.basis_, self.best_estimator_.modes_)
        return self


def _rows_of(diffusion, rows: np.ndarray):
    """The entries of a diffusion tensor that belong to `rows`; a constant or a callable is the same for all."""
    if isinstance(diffusion, Factor):
        return Factor(diffusion.array[rows])
    if diffusion is None or callable(diffusion) or np.ndim(diffusion) != 3:
        return diffusion
    return np.asarray(diffusion)[rows]
