"""Everything that is known about fitted modes at their samples: each part is computed once, when it is asked for."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.checks import Check, Checks, muted
from kdmaps.data import ArraySource, Source, gather
from kdmaps.data.inputs import join_trajectories
from kdmaps.diagnostics.relevance import Relevance, relevance
from kdmaps.dynamics import (
    CoarseStates,
    Koopman,
    PassageTimes,
    Validation,
    coarse_states,
    koopman,
    mean_first_passage_times,
    suggest_states,
    validate,
)
from kdmaps.estimators.arguments import model_and_samples, same_samples_check
from kdmaps.estimators.transformer import ModeTransformer
from kdmaps.exceptions import ArgumentError, NotApplicable, Undetermined
from kdmaps.uncertainty import Uncertainty, bootstrap
from kdmaps.utils.threads import one_blas_thread
from kdmaps.utils.types import SamplesLike

T = TypeVar("T")
#: Largest number of samples, at equal distances, from which states are found.
STATE_SAMPLES = 10_000
#: Longer trajectories have no passage times, which should not take longer than the fit.
PASSAGE_FRAMES = 100_000


class Analysis:
    """Error bars, tests, states, passage times, relevance and checks of a fitted model at its samples.

    Parameters
    ----------
    model : fitted estimator
        With modes. Of a pipeline, its steps before the model are applied to X.
    X : array-like of shape (n_samples, d), list of such arrays, path of a file
        The samples of the fit.
    sample_weight, groups : array-like of shape (n_samples,), optional
        As given to `fit`.
    n_resamples : int, default=200
        Resamples of the block bootstrap; with 0 there are no error bars.
    random_state : int, default=0
    uncertainty : kdmaps.uncertainty.Uncertainty, optional
        Error bars, if they are known already.
    validation : kdmaps.dynamics.Validation, optional
        Tests of the lag, if they are known already.
    koopman : kdmaps.dynamics.Koopman, optional
        Eigenvalues of a driven system, if they are known already.
    checks : iterable of kdmaps.checks.Check, optional
        Further checks of the samples, for example of the files that they were read from.
    progress : bool, default=False

    Attributes
    ----------
    model, X, sample_weight, groups
        As given, X as an array.
    checks : kdmaps.checks.Checks
        All checks: of the fit, of the samples and of every part.

    Examples
    --------
    >>> import kdmaps
    >>> X = kdmaps.problems.load("dw1d").sample(1000, random_state=0)
    >>> m = kdmaps.KernelDiffusionMap(n_components=1, random_state=0).fit(X)
    >>> a = kdmaps.Analysis(m, X)
    >>> len(a.states.populations)
    2
    >>> a.checks.failed
    []
    """

    def __init__(
        self,
        model: ModeTransformer,
        X: SamplesLike,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        n_resamples: int = 200,
        random_state: int = 0,
        uncertainty: Uncertainty | None = None,
        validation: Validation | None = None,
        koopman: Koopman | None = None,
        checks: Iterable[Check] = (),
        progress: bool = False,
    ):
        model, X = model_and_samples(model, X, ModeTransformer)
        X, groups, _ = join_trajectories(X, groups, sample_weight)
        X = gather(X) if isinstance(X, Source) else np.asarray(X)
        if X.ndim != 2 or X.shape[1] != model.n_features_in_:
            raise ArgumentError(
                "X has shape {shape}; pass the samples, with {columns} columns.",
                shape=X.shape,
                columns=model.n_features_in_,
            )
        for name, values in {"sample_weight": sample_weight, "groups": groups}.items():
            if values is not None and np.shape(values) != (len(X),):
                raise ArgumentError(
                    "{name} has shape {shape}; pass one for each of the {count} samples.",
                    name=name,
                    shape=np.shape(values),
                    count=len(X),
                )
        self.model = model
        self.X: np.ndarray = X
        self.sample_weight = None if sample_weight is None else np.asarray(sample_weight)
        self.groups = groups
        self.n_resamples = n_resamples
        self.random_state = random_state
        self.progress = progress
        self._given: dict[str, Any] = {"uncertainty": uncertainty, "validation": validation, "koopman": koopman}
        self._more_checks = tuple(checks)

    @property
    def source(self) -> ArraySource:
        """The samples, without names of columns."""
        return ArraySource(self.X)

    @property
    def directed(self) -> bool:
        """Whether the model was fitted with `reversible=False`."""
        return self.model.right_modes_ is not None

    def modes_at(self, rows: Any) -> np.ndarray:
        """Return the modes at some samples, of which the fit has warned if necessary."""
        with muted():
            return np.asarray(self.model.transform(ArraySource(np.asarray(self.X[rows]))))

    @cached_property
    def modes(self) -> np.ndarray:
        """The modes at all samples; (n_samples, r)."""
        return self.modes_at(slice(None))

    @cached_property
    def uncertainty(self) -> Uncertainty | None:
        """Error bars by the block bootstrap; None for a driven system, whose eigenvalues have their own."""
        if self._given["uncertainty"] is not None:
            return self._given["uncertainty"]
        if self.n_resamples == 0 or self.directed:
            return None
        settings = {"n_resamples": self.n_resamples, "random_state": self.random_state, "progress": self.progress}
        return _if_determined(bootstrap, self.model, self.source, **self._weights, **settings)

    @cached_property
    def koopman(self) -> Koopman | None:
        """Eigenvalues of the Koopman operator of a model fitted with `reversible=False`."""
        if self._given["koopman"] is not None:
            return self._given["koopman"]
        if not self.directed:
            return None
        # Intervals of eigenvalues cost little; tests on held-out frames need all frames.
        settings = {"n_resamples": self.n_resamples or 200, "random_state": self.random_state}
        return _if_determined(koopman, self.model, self.source, **self._weights, **settings)

    @cached_property
    def validation(self) -> Validation | None:
        """Tests of the lag; None without a lag, and for eigenvalues, which are tested after several lags."""
        if self._given["validation"] is not None:
            return self._given["validation"]
        if self.koopman is not None or self.model.lag_ is None:
            return None
        return _if_determined(validate, self.model, self.source, **self._weights)

    @cached_property
    def state_rows(self) -> np.ndarray:
        """Rows of the samples from which states are found, at equal distances."""
        return np.arange(0, len(self.X), -(-len(self.X) // STATE_SAMPLES))

    @cached_property
    def states(self) -> CoarseStates | None:
        """Coarse states of the `state_rows`; None for driven systems, and if there are none."""
        if self.directed:
            return None
        rows = self.state_rows
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        settings = {"sample_weight": weight, "apart": self.apart_at(rows)}
        return _if_determined(coarse_states, self.modes[rows], suggest_states(self.model), **settings)

    @one_blas_thread()
    def apart_at(self, rows: Any) -> np.ndarray | None:
        """Return the detached group of some samples, -1 for none; None if there are no such groups."""
        if not self.model.rare_groups_:
            return None
        return self.model.rare_states(ArraySource(np.asarray(self.X[rows])))

    @one_blas_thread()
    def state_labels(self, rows: Any) -> np.ndarray:
        """Return the state of some samples, if there are states."""
        assert self.states is not None
        labels = self.states.memberships_at(self.modes_at(rows)).argmax(axis=1)
        apart = self.apart_at(rows)
        if apart is None:
            return np.asarray(labels)
        first = len(self.states.populations) - self.states.n_apart
        return np.where(apart >= 0, first + apart, labels)

    @cached_property
    def passages(self) -> PassageTimes | None:
        """Passage times between the cores of the states; None without a lag, or with too few transitions."""
        if self.model.lag_ is None or self.states is None or len(self.X) > PASSAGE_FRAMES:
            return None
        # The cores of the states of some frames, at all frames.
        memberships = self.states.memberships_at(self.modes)
        states = replace(self.states, memberships=memberships, labels=memberships.argmax(axis=1))
        settings = {"groups": self.groups, "random_state": self.random_state}
        return _if_determined(mean_first_passage_times, self.model, self.source, states, **settings)

    @cached_property
    def relevance(self) -> Relevance:
        """Dependence of the modes on the inputs."""
        known: Relevance | None = getattr(self.model, "relevance_details_", None)
        if known is not None:
            return known
        with muted():
            return relevance(self.model, self.source, self.sample_weight)

    @cached_property
    def checks(self) -> Checks:
        """All checks of the fit, of the samples and of every part."""
        parts = (self.uncertainty, self.validation, self.koopman, self.states, self.passages)
        of_parts = [check for part in parts if part is not None for check in part.checks]
        same_samples = same_samples_check(self.model.support_, self.X)
        return Checks([*self._more_checks, *self.model.checks_, same_samples, *of_parts])

    @property
    def doubtful(self) -> np.ndarray:
        """True for modes that fail a check of their own; (r,)."""
        failed = np.zeros(len(self.model.timescales_), dtype=bool)
        if self.model.trust_ is not None:
            failed |= ~self.model.trust_.ok
        return failed if self.validation is None else failed | self.validation.doubtful

    @property
    def _weights(self) -> dict[str, Any]:
        return {"sample_weight": self.sample_weight, "groups": self.groups}

    def __repr__(self) -> str:
        return f"Analysis of {len(self.X)} samples: {self.checks.headline()}"


def _if_determined(function: Callable[..., T], *args: Any, **settings: Any) -> T | None:
    """Call a function whose result keeps its checks; None if it has no meaning, or the samples do not determine it."""
    try:
        with muted():
            return function(*args, **settings)
    except (NotApplicable, Undetermined):
        return None
