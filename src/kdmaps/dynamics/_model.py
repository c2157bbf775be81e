"""Fitted models along trajectories."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from kdmaps.data.inputs import join_trajectories
from kdmaps.diagnostics.projection import Projection, project
from kdmaps.estimators.transformer import ModeTransformer, checked_source
from kdmaps.utils.types import SamplesLike
from kdmaps.utils.validation import checked_weight


def project_model(
    model: ModeTransformer,
    X: SamplesLike,
    groups: ArrayLike | None,
    sample_weight: ArrayLike | None = None,
    n_functions: int | None = None,
) -> Projection:
    """Evaluate the leading functions of a model with a lag at all frames; `n_functions` as in `project`."""
    _check_lag(model)
    fitted: Any = getattr(model, "best_estimator_", model)
    X, groups, _ = join_trajectories(X, groups)
    source = checked_source(fitted, X)
    return project(
        fitted.basis_,
        fitted.moments_,
        fitted.modes_,
        fitted.regularization,
        source,
        groups,
        checked_weight(sample_weight, source),
        n_functions=n_functions,
        memory_limit=getattr(fitted, "memory_limit", None),
    )


def _check_lag(model: ModeTransformer) -> None:
    """Raise unless a model was fitted to pairs of frames."""
    check_is_fitted(model)
    if hasattr(model, "named_steps"):
        raise ValueError(
            f"model is a {type(model).__name__}; give its last step, and the frames as the steps before it make them: "
            "(pipeline[-1], pipeline[:-1].transform(X), ...)."
        )
    modes = getattr(model, "modes_", None)
    if modes is None or modes.clock.lag is None:
        raise ValueError(
            f"model ({type(model).__name__}) was fitted without a lag: its time scales are not those of a trajectory. "
            "Fit it with lag=1 (in frames) and time_step."
        )


def check_reversible(model: ModeTransformer) -> None:
    """Raise for a model of pairs whose direction in time matters."""
    if getattr(model, "right_modes_", None) is not None:
        raise ValueError(
            "model was fitted with reversible=False; time scales over several lags, and both clocks, are those of a "
            "system in equilibrium. Fit it with reversible=True."
        )
