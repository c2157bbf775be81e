"""AdaptiveDiffusionMap: the default answer."""

from __future__ import annotations

import warnings
from numbers import Integral

import numpy as np
from sklearn.base import clone

from kdmaps.data import Source
from kdmaps.data.distances import median_distance
from kdmaps.estimators.search import KernelSearchCV
from kdmaps.estimators.transformer import ModeTransformer, adopt
from kdmaps.exceptions import UnresolvedModesWarning
from kdmaps.forms.diffusion import tensors_of
from kdmaps.forms.tangent import checked_tensor
from kdmaps.kernels import FAMILIES, Gaussian, Kernel
from kdmaps.learn import Refinement, make_objective, refine
from kdmaps.selection.folds import splits_of
from kdmaps.selection.sweep import checkpoint_seed, search_seed
from kdmaps.utils.validation import all_or_nothing, checked_random_state, checked_weight

#: The refinement starts from a Gaussian at least this wide, in median distances. Roughness and narrowness are what one
#: bandwidth needs to serve all coordinates; with a bandwidth for each, a stiff kernel does better in the tails.
START_WIDTH = 2.5
#: Refined bandwidths stay above this many median distances: in narrower ones, modes jump between samples.
NARROWEST = 3.0


class AdaptiveDiffusionMap(ModeTransformer):
    """Slow modes from samples, with everything chosen automatically.

    The kernel family, its bandwidth and the regularization are searched by cross-validation (`KernelSearchCV`) on at
    most `max_search_samples` samples. Then every coordinate gets a bandwidth of its own, by gradient ascent of the same
    held-out score (`kdmaps.learn.refine`) from the best wide Gaussian of the search. This replaces the choice of the
    search only if its score is higher by more than the standard error of the difference, or not lower by more than that
    while the folds agree better on the modes. The result is fitted on all samples.

    Parameters
    ----------
    n_components : int, default=4
        Number r of modes.
    random_state : int, RandomState instance or None, default=None
    families, regularizations, scoring, cv, basis, n_features, diffusion, rates, n_jobs, checkpoint, progress :
        As in `KernelSearchCV`.
    max_search_samples : int, default=5000
        Larger data are searched, and the kernel refined, on a random subsample of this size.
    refine : bool, default=True
        Whether to refine (Fourier features, more than one coordinate and the default `scoring` only).
    objective : str or mapping, default="heldout"
        What the refinement minimises: the score of the search, or an objective of the paper (`kdmaps.learn.PRESETS`).

    dtype, engine, memory_limit :
        As in `KernelDiffusionMap`; the refinement is in float64 always.

    Attributes
    ----------
    search_ : KernelSearchCV
        The search, with its landscape.
    refinement_ : kdmaps.learn.Refinement or None
        What the refinement found; `refinement_.preferred` tells whether it was kept.
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
        regularizations="auto",
        scoring="timescale",
        cv=3,
        basis="fourier",
        n_features=300,
        diffusion=None,
        rates="ritz",
        n_jobs=None,
        max_search_samples=5000,
        refine=True,
        objective="heldout",
        dtype="float64",
        engine=None,
        memory_limit=None,
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
        self.rates = rates
        self.n_jobs = n_jobs
        self.max_search_samples = max_search_samples
        self.refine = refine
        self.objective = objective
        self.dtype = dtype
        self.engine = engine
        self.memory_limit = memory_limit
        self.checkpoint = checkpoint
        self.progress = progress

    def fit(self, X, y=None, sample_weight=None, groups=None):
        """Choose the kernel and fit the modes.

        Parameters
        ----------
        X : array-like of shape (n_samples, d), path, stream of chunks
            Anything that `kdmaps.data.as_source` takes.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
        groups : array-like of shape (n_samples,), optional
            For a `cv` that needs them.

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            source = self._source(X, reset=True, fitting=True)
            weight = checked_weight(sample_weight, source)
            make_objective(self.objective, self.n_components)  # what the search does not use is checked before it
            resumed = self.random_state is None and checkpoint_seed(self.checkpoint) is not None
            seed = None if resumed else checked_random_state(self.random_state).randint(2**31)
            # The seed that a checkpoint remembers draws the same samples when the search is resumed.
            rng = np.random.RandomState(search_seed(seed, self.checkpoint))
            part = source.sample(self._most(), rng, weight)
            self.search_ = self._search(seed, source, groups, part.rows).fit(part.X, sample_weight=part.weight)
            chosen = self.search_.best_estimator_
            self.best_params_ = dict(self.search_.best_params_)
            possible = self.basis == "fourier" and part.X.shape[1] > 1
            # What is refined by one score is not judged by another.
            wanted = self.refine and possible and self.scoring == "timescale" and not self.search_.interrupted_
            self.refinement_ = self._refined(part.X, part.weight) if wanted else None
            if self.refinement_ is not None and self.refinement_.preferred:
                regularization = self.refinement_.regularization
                self.best_params_ = {"kernel": self.refinement_.kernel, "regularization": regularization}
            if len(part.rows) != source.n_samples or self.best_params_ != self.search_.best_params_:
                chosen = clone(chosen).set_params(diffusion=self.diffusion, cv=self.cv, **self.best_params_)
                with warnings.catch_warnings():  # as in the search, whose folds have measured it
                    warnings.simplefilter("ignore", UnresolvedModesWarning)
                    chosen.fit(source, sample_weight=weight, groups=groups)
            self.best_estimator_ = chosen
            adopt(self, chosen)
        return self

    def _most(self) -> int:
        most = self.max_search_samples
        if not isinstance(most, Integral) or most < 2:
            raise ValueError(f"max_search_samples must be a whole number of at least 2, got {most!r}.")
        return int(most)

    def _search(self, seed: int | None, source: Source, groups, rows: np.ndarray) -> KernelSearchCV:
        settings = self.get_params(deep=False)
        for name in ("max_search_samples", "refine", "objective"):
            del settings[name]
        settings.update(
            random_state=seed,
            diffusion=tensors_of(self.diffusion, rows, source.n_samples),
            cv=splits_of(self.cv, source, groups, rows, self.n_components),
        )
        return KernelSearchCV(**settings)

    def _refined(self, X: np.ndarray, weight: np.ndarray | None) -> Refinement:
        found = self.search_.best_estimator_
        median = median_distance(X, weight, found.random_state)
        return refine(
            np.asarray(X, dtype=np.float64),
            *self._start(START_WIDTH * median),
            folds=self.search_.folds_,
            rival=(found.kernel_, found.regularization),
            n_components=self.n_components,
            sample_weight=weight,
            diffusion=checked_tensor(found.diffusion, X, weight, spaces=found.tangents_, keep=True),
            n_features=self.n_features,
            random_state=found.random_state,
            objective=self.objective,
            narrowest=NARROWEST * median,
            progress=self.progress,
        )

    def _start(self, width: float) -> tuple[Kernel, float]:
        """Kernel and λ of the best Gaussian at least that wide; of the search's choice, if there is none."""
        tried = self.search_.cv_results_
        wide = (tried["param_family"] == "gaussian") & (tried["param_bandwidth"] >= width)
        score = np.where(wide, tried["score"], -np.inf)
        best = int(np.argmax(score))
        if score[best] == -np.inf:
            return self.search_.kernel_, self.search_.best_estimator_.regularization
        return Gaussian(tried["param_bandwidth"][best]), tried["param_regularization"][best]
