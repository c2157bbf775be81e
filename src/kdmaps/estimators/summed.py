"""Parameters that the sums over samples depend on, and whether they are still those of the fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import PredefinedSplit

from kdmaps.forms.diffusion import is_per_sample
from kdmaps.forms.tangent import DiffusionLike
from kdmaps.utils.content import content_digest

#: They hold for all samples of a fit.
SUMMED = {"kernel", "bandwidth", "n_kernels", "bandwidth_range", "diffusion", "lag", "reversible"}
SUMMED |= {"basis", "n_features", "sampling", "landmarks", "dtype"}


def summed_parameters(estimator: Any) -> dict[str, str]:
    """Return digests of the parameters that the sums over samples depend on."""
    found = {}
    for name in SUMMED & set(estimator._get_param_names()):
        value = getattr(estimator, name)
        try:
            found[name] = content_digest(value)
        except (ValueError, RecursionError):  # known as this object alone
            found[name] = f"{type(value)} {id(value)}"
    return found


def changed_parameters(estimator: Any) -> list[str]:
    """Return the parameters that the sums over the samples of the fit depend on, and that were changed since."""
    now = summed_parameters(estimator)
    return sorted(name for name, digest in getattr(estimator, "_summed", {}).items() if now[name] != digest)


def check_more_samples(estimator: Any, given: set[str]) -> None:
    """Raise a ValueError if samples cannot be added to those of the fit; parameters `given` with them may differ."""
    if changed := [name for name in changed_parameters(estimator) if name not in given]:
        raise ValueError(
            f"{', '.join(changed)} changed after the first samples were summed, whose sums depend on it; set it back, "
            "or fit all samples again."
        )
    cv = estimator.cv
    rows_given = isinstance(cv, PredefinedSplit) or (np.iterable(cv) and not isinstance(cv, str))
    if estimator.rates == "cross-fitted" and rows_given:
        raise ValueError(
            "cv is a list of rows, and belongs to the samples of fit; pass a splitter, with groups where it needs "
            "them, or rates='ritz'."
        )


def own_diffusion(estimator: Any) -> DiffusionLike:
    """Return the estimator's diffusion tensor, for samples that may be others than those of `fit`."""
    if is_per_sample(estimator.diffusion):
        raise ValueError(
            "diffusion was given per sample, and belongs to the samples of fit; pass the tensors at these samples as "
            "diffusion=…, or give the estimator a callable."
        )
    if "diffusion" in changed_parameters(estimator):
        raise ValueError(
            "diffusion is not that of the fit any more; pass that of these samples as diffusion=…, or fit again."
        )
    return estimator.diffusion
