"""Arguments of functions that take a fitted model and samples: pipelines and swapped arguments."""

from typing import Any

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from kdmaps.exceptions import ArgumentError


def model_and_samples(model: Any, X: Any, kind: type | tuple[type, ...] = BaseEstimator) -> tuple[Any, Any]:
    """Return a fitted model and its samples: of a pipeline, its last step and the samples after the other steps.

    Raises
    ------
    ArgumentError
        If the arguments are swapped, or `model` is not of this `kind`.
    """
    if isinstance(model, Pipeline):
        check_is_fitted(model)
        steps = model[:-1]
        X = X if X is None or not len(steps) else steps.transform(X)
        model = model[-1]
    if isinstance(model, kind):
        check_is_fitted(model)
        return model, X
    if kind is BaseEstimator and hasattr(model, "modes_"):  # anything with modes
        return model, X
    refuse_swapped(X)
    raise ArgumentError(
        "model must be a fitted estimator of kdmaps, got {what}. Call fit first, and pass the model before the "
        "samples.",
        what=type(model).__name__,
    )


def refuse_swapped(X: Any) -> None:
    """Raise an error for an estimator in place of samples."""
    if isinstance(X, BaseEstimator):
        raise ArgumentError("The arguments are swapped: pass the model first and the samples second, (model, X).")
