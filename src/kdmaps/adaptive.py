"""AdaptiveDiffusionMap: the default answer."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from kdmaps.bandwidths import median_distance
from kdmaps.diffusion import Factor
from kdmaps.estimator import ModeTransformer, adopt, all_or_nothing, checked_tensor, checked_weight
from kdmaps.folds import FoldMoments, make_splits
from kdmaps.grid import REGULARIZATIONS
from kdmaps.kernels import FAMILIES
from kdmaps.learn import WITNESSES, Refinement, refine
from kdmaps.search import KernelSearchCV

#: Refined bandwidths stay above this many median distances: in narrower ones, modes jump between samples.
NARROWEST = 3.0


class AdaptiveDiffusionMap(ModeTransformer):
    """Slow modes from samples, with everything chosen automatically.

    The kernel family, its bandwidth and the regularization are searched by cross-validation (`KernelSearchCV`) on at
    most `max_search_samples` samples. Then every coordinate gets a bandwidth of its own, by gradient ascent of the same
    held-out score (`kdmaps.learn.refine`); this is kept only if the score rises by more than the standard error of the
    difference, and other folds and frequencies confirm it. The result is fitted on all samples.

    Parameters
    ----------
    n_components : int, default=4
        Number r of modes.
    random_state : int, RandomState instance or None, default=None
    families, regularizations, scoring, cv, basis, n_features, diffusion, n_jobs, checkpoint, progress :
        As in `KernelSearchCV`.
    max_search_samples : int, default=5000
        Larger data are searched, and the kernel refined, on a random subsample of this size.
    refine : bool, default=True
        Whether to refine the kernel that the search found (Fourier features only).
    objective : str or mapping, default="heldout"
        What the refinement minimises: the score of the search, or an objective of the paper (`kdmaps.learn.PRESETS`).

    Attributes
    ----------
    search_ : KernelSearchCV
        The search, with its landscape.
    refinement_ : kdmaps.learn.Refinement or None
        What the refinement found; `refinement_.significant` tells whether it was kept.
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
        refine=True,
        objective="heldout",
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
        self.refine = refine
        self.objective = objective
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
            checked_tensor(self.diffusion, X, weight)
            rng = check_random_state(self.random_state)
            rows = self._search_rows(len(X), rng)
            seed = rng.randint(2**31) if self.checkpoint is None or self.random_state is not None else None
            part, part_weight = X[rows], None if weight is None else weight[rows]
            self.search_ = self._search(seed, X, groups, rows).fit(part, sample_weight=part_weight)
            chosen = self.search_.best_estimator_
            self.best_params_ = dict(self.search_.best_params_)
            wanted = self.refine and self.basis == "fourier" and not self.search_.interrupted_
            self.refinement_ = self._refined(part, part_weight) if wanted else None
            if self.refinement_ is not None and self.refinement_.significant:
                regularization = self.refinement_.regularization
                self.best_params_ = {"kernel": self.refinement_.kernel, "regularization": regularization}
            if len(rows) < len(X) or self.best_params_ != self.search_.best_params_:
                chosen = clone(chosen).set_params(diffusion=self.diffusion, **self.best_params_)
                chosen.fit(X, sample_weight=weight)
            self.best_estimator_ = chosen
            adopt(self, chosen)
        return self

    def _search_rows(self, n_samples: int, rng: np.random.RandomState) -> np.ndarray:
        most = self.max_search_samples
        if not isinstance(most, int | np.integer) or most < 2:
            raise ValueError(f"max_search_samples must be a whole number of at least 2, got {most!r}.")
        if n_samples <= most:
            return np.arange(n_samples)
        return np.sort(rng.choice(n_samples, most, replace=False))

    def _search(self, seed: int | None, X: np.ndarray, groups, rows: np.ndarray) -> KernelSearchCV:
        settings = self.get_params(deep=False)
        for name in ("max_search_samples", "refine", "objective"):
            del settings[name]
        settings.update(
            random_state=seed,
            diffusion=_rows_of(self.diffusion, rows),
            cv=_splits_of(self.cv, X, groups, rows, self.n_components),
        )
        return KernelSearchCV(**settings)

    def _refined(self, X: np.ndarray, weight: np.ndarray | None) -> Refinement:
        found = self.search_.best_estimator_
        return refine(
            np.asarray(X, dtype=np.float64),
            found.kernel_,
            found.regularization,
            folds=self.search_.folds_,
            n_components=self.n_components,
            sample_weight=weight,
            diffusion=checked_tensor(found.diffusion, X, weight, spaces=found.tangents_, keep=True),
            n_features=self.n_features,
            random_state=found.random_state,
            objective=self.objective,
            narrowest=NARROWEST * median_distance(X, weight, found.random_state),
            check_folds=self._check_folds(X, found.random_state),
            progress=self.progress,
        )

    def _check_folds(self, X: np.ndarray, seed: int) -> list[FoldMoments] | None:
        """Other draws of random folds; None where `cv` leaves nothing to draw."""
        if self.cv is not None and not isinstance(self.cv, Integral):
            return None
        rng = check_random_state(seed)
        draws = [make_splits(self.cv, X, None, self.n_components, rng.randint(2**31)) for _ in range(WITNESSES)]
        return [FoldMoments(splits, len(X)) for splits in draws]


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
