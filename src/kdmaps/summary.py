"""A fitted estimator in words and numbers: what the command line, the report and notebooks show of it."""

from __future__ import annotations

from typing import Any

import numpy as np

#: What each scoring rule of a search is, in a sentence that says "judged by ...".
SCORINGS = {
    "timescale": "the time scales of their modes on held-out samples",
    "rayleigh": "the Rayleigh quotients of their modes on held-out samples",
    "eigsum": "the sum of their eigenvalues on held-out samples",
    "gap": "their spectral gap on held-out samples",
}


def search_of(estimator: Any) -> Any | None:
    """The search behind an estimator, or None if its kernel was not searched."""
    search = getattr(estimator, "search_", estimator)
    return search if hasattr(search, "cv_results_") else None


def chosen(estimator: Any) -> str:
    """Kernel, regularization and basis in one line."""
    lam = getattr(estimator, "regularization_", None)
    if lam is None:
        parameters = getattr(estimator, "best_params_", None) or estimator.get_params(deep=False)
        lam = parameters["regularization"]
    return f"{describe_kernel(estimator.kernel_)}, regularization {lam:.3g}, {estimator.basis_.n_features} features"


def describe_kernel(kernel: Any) -> str:
    """A kernel with its numbers rounded."""
    parts = [
        f"{name}={_rounded(value)}" for name, value in kernel.to_dict().items() if name not in ("family", "kernels")
    ]
    inner = getattr(kernel, "kernels", None)
    if inner is not None:
        parts.append("of " + ", ".join(describe_kernel(part) for part in inner))
    return f"{type(kernel).__name__}({', '.join(parts)})"


def _rounded(value: Any) -> str:
    numbers = np.atleast_1d(np.asarray(value, dtype=np.float64))
    shown = [f"{number:.4g}" for number in numbers[:8]] + (["…"] if len(numbers) > 8 else [])
    return shown[0] if np.ndim(value) == 0 else f"[{', '.join(shown)}]"


def reasons(estimator: Any) -> list[str]:
    """Why this kernel: one sentence for each step of the choice."""
    search = search_of(estimator)
    if search is not None:
        return _of_search(search) + _of_refinement(getattr(estimator, "refinement_", None))
    history = getattr(estimator, "history_", None)
    if history is not None:
        loss = history["loss"]
        return [
            f"The kernel was learned by gradient descent of the objective {estimator.objective!r}: from "
            f"{loss[0]:.4g} to {estimator.best_loss_:.4g} in {len(loss) - 1} steps."
        ]
    return ["The kernel was given."]


def _of_search(search: Any) -> list[str]:
    results, best = search.cv_results_, search.best_index_
    scoring = SCORINGS.get(search.scoring, "a score of the user's own") if isinstance(search.scoring, str) else ""
    found = [
        f"{len(results['score'])} candidates were judged by {scoring or 'a score of the user'}; the chosen one scores "
        f"{search.best_score_:.4g} ± {results['standard_error'][best]:.2g} (standard error)."
    ]
    margin = search.certainty_["margin_in_standard_errors"]
    if np.isfinite(margin):
        weight = "either would do" if margin < 1 else "a real difference" if margin > 2 else "a small difference"
        found.append(
            f"The best candidate with another kernel is {search.certainty_['margin']:.2g} behind, {margin:.1f} "
            f"standard errors of the difference: {weight}."
        )
    agreement = results["fold_agreement"][best]
    found.append(f"The mode spaces of the folds agree to a mean squared cosine of {agreement:.3f}.")
    found += [f"The grid was extended: {text}." for text in search.extensions_]
    suggested = search.suggested_n_components_
    if suggested is not None and suggested != search.n_components:
        found.append(f"The largest spectral gap that the folds agree on follows mode {suggested}.")
    return found


def _of_refinement(refinement: Any) -> list[str]:
    if refinement is None:
        return []
    kept = "was kept" if refinement.significant else "was dropped: it is not confirmed"
    return [
        f"A bandwidth for each coordinate {kept}. It changed the held-out score by {refinement.gain:+.3g} ± "
        f"{refinement.gain_standard_error:.2g}, and the agreement of other folds from "
        f"{refinement.agreement_before:.3f} to {refinement.agreement_after:.3f}."
    ]


def checked_intervals(intervals: Any, n_modes: int) -> np.ndarray | None:
    """Intervals of time scales as an array of shape (r, 2), lower and upper ends; None stays None."""
    if intervals is None:
        return None
    array = np.asarray(intervals, dtype=np.float64)
    if array.shape != (n_modes, 2) or not np.all(array[:, 0] <= array[:, 1]):
        raise ValueError(f"intervals must be {n_modes} pairs (lower, upper), got an array of shape {array.shape}.")
    return array


def timescale_rows(estimator: Any, intervals: Any = None) -> list[tuple[str, ...]]:
    """One row of text per mode: number, time scale, its interval (if given), rate."""
    ends = checked_intervals(intervals, len(estimator.timescales_))
    rows: list[tuple[str, ...]] = []
    for k, (time, rate) in enumerate(zip(estimator.timescales_, estimator.rates_, strict=True)):
        between = () if ends is None else (f"{ends[k, 0]:.4g} – {ends[k, 1]:.4g}",)
        rows.append((str(k + 1), f"{time:.4g}", *between, f"{rate:.4g}"))
    return rows


def timescale_columns(intervals: Any = None) -> tuple[str, ...]:
    """Titles of the columns of `timescale_rows`."""
    return ("mode", "time scale", *(() if intervals is None else ("95 % interval",)), "rate")
