"""Checks that all estimators share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from kdmaps.diffusion import Factor
from kdmaps.exceptions import DataWarning


@contextmanager
def all_or_nothing(estimator) -> Iterator[None]:
    """Give the estimator back as it was if its fit fails."""
    before = vars(estimator).copy()
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def checked_time(time) -> float:
    """`time` as a non-negative float."""
    if not isinstance(time, Real) or not 0 <= float(time) < np.inf:
        raise ValueError(f"time must be a non-negative number, got {time!r}.")
    return float(time)


def checked_weight(sample_weight, X) -> np.ndarray | None:
    """`sample_weight` as floats, one per sample, not negative, not all zero; None stays None.

    X is an array or a Source; where a stream does not know its length yet, its moments are checked against it later.
    """
    if sample_weight is None:
        return None
    n = np.size(sample_weight) if X.shape[0] is None else X.shape[0]
    rows = np.broadcast_to(0.0, (n, 1))
    weight = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
    if not weight.sum() > 0:
        raise ValueError("sample_weight must hold at least one positive weight.")
    return weight


def check_samples(X: np.ndarray, n_components: int, names=None) -> None:
    """Raise if X has too few samples, and warn of columns that are constant."""
    if X.shape[0] <= n_components:
        raise ValueError(
            f"X has {X.shape[0]} sample(s) (of positive weight) but n_components={n_components} modes need "
            f"at least {n_components + 1}; give more samples or ask for fewer modes."
        )
    constant = np.flatnonzero(np.ptp(X, axis=0) == 0)
    if constant.size and constant.size < X.shape[1]:
        shown = constant if names is None else names[constant]
        warnings.warn(
            f"Column(s) {', '.join(map(str, shown))} of X are constant and say nothing about the modes; drop them.",
            DataWarning,
            stacklevel=5,
        )


def tensors_of(diffusion, rows: np.ndarray):
    """The entries of a diffusion tensor that belong to `rows`; a constant or a callable is the same for all."""
    if isinstance(diffusion, Factor):
        return Factor(diffusion.array[rows])
    if diffusion is None or callable(diffusion) or np.ndim(diffusion) != 3:
        return diffusion
    return np.asarray(diffusion)[rows]
