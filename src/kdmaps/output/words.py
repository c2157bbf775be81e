"""A fitted estimator in words and numbers: what the command line, the report and notebooks show of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kdmaps.exceptions import UnresolvedModesWarning
from kdmaps.selection.result import MIN_AGREEMENT
from kdmaps.spectrum.pencil import MAX_CONDITION, MAX_SAMPLING_ERROR

#: What each of `kdmaps.selection.rules.SCORINGS` is, in a sentence that says "judged by ...".
SCORING_WORDS = {
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
    own = "a score of the user's own"
    scoring = SCORING_WORDS[search.scoring] if isinstance(search.scoring, str) else own
    found = [
        f"{len(results['score'])} candidates were judged by {scoring}; the chosen one scores "
        f"{search.best_score_:.4g} ± {results['standard_error'][best]:.2g} (standard error)."
    ]
    margin = search.certainty_["margin_in_standard_errors"]
    if margin < 0:
        found.append(
            f"A candidate with another kernel scores {-search.certainty_['margin']:.2g} more, {-margin:.1f} standard "
            "errors of the difference: too little to go beyond the grid for it."
        )
    elif np.isfinite(margin):
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
    kept = "was kept" if refinement.preferred else "was dropped: held-out samples do not prefer it"
    return [
        f"A bandwidth for each coordinate {kept}. It changed the held-out score by "
        f"{refinement.score_difference:+.3g} ± {refinement.difference_standard_error:.2g}, and the agreement of the "
        f"folds from {refinement.agreement_before:.3f} to {refinement.agreement_after:.3f}."
    ]


class Check(NamedTuple):
    """A number that tells how far to trust modes, and from where on it should be trusted."""

    what: str
    value: str
    limit: str
    passed: bool


def checks_of(estimator: Any) -> list[Check]:
    """What can spoil modes, in numbers: rounding, too few samples, a cut between modes that belong together."""
    modes, search = estimator.modes_, search_of(estimator)
    condition, gap, r = modes.condition_number, modes.gap, len(modes.eigenvalues)
    if search is None:
        error, worst = float(modes.sampling_error.max()), int(np.argmax(modes.sampling_error)) + 1
        samples = Check(
            f"relative sampling error of eigenvalue {worst}, √(effective rank/n)",
            f"{error:.3g}",
            f"at most {MAX_SAMPLING_ERROR:g}",
            error <= MAX_SAMPLING_ERROR,
        )
    else:  # measured, not estimated
        agreement = float(search.cv_results_["fold_agreement"][search.best_index_])
        samples = Check(
            "agreement of the folds on the modes, mean squared cosine",
            f"{agreement:.3f}",
            f"at least {MIN_AGREEMENT:g}",
            agreement >= MIN_AGREEMENT,
        )
    return [
        Check(
            "condition number of L+λR", f"{condition:.2g}", f"at most {MAX_CONDITION:.0g}", condition <= MAX_CONDITION
        ),
        samples,
        Check(
            f"gap behind the last mode, μ{r}/μ{r + 1}",
            f"{gap:.4g}",
            f"at least {1 + modes.resolution:.4g} with {modes.effective_count:.6g} effective samples",
            gap >= 1 + modes.resolution,
        ),
    ]


def complaints_of(estimator: Any) -> list[str]:
    """Reasons not to trust the modes."""
    found = estimator.modes_.complaints()
    if search_of(estimator) is not None:
        # The estimate of what the samples resolve is for fits without folds; there the folds have measured it.
        found = [complaint for complaint in found if not isinstance(complaint, UnresolvedModesWarning)]
    return list(map(str, found))


def timescale_intervals(uncertainty: Any, n_modes: int) -> np.ndarray | None:
    """The intervals of an `Uncertainty` for this many modes, of shape (r, 2); None stays None."""
    if uncertainty is None:
        return None
    intervals = np.asarray(uncertainty.timescale_intervals, dtype=np.float64)
    if intervals.shape != (n_modes, 2):
        raise ValueError(f"uncertainty is that of {len(intervals)} modes, but the model has {n_modes}.")
    return intervals


def timescale_columns(uncertainty: Any = None) -> tuple[str, ...]:
    """Titles of the columns of `timescale_rows`."""
    if uncertainty is None:
        return ("mode", "time scale", "rate")
    return ("mode", "time scale", f"{uncertainty.confidence:.0%} interval", "rate", "may turn by")


def timescale_rows(estimator: Any, uncertainty: Any = None) -> list[tuple[str, ...]]:
    """One row of text per mode: number, time scale, rate; with an uncertainty, its interval and angle too."""
    intervals = timescale_intervals(uncertainty, len(estimator.timescales_))
    rows: list[tuple[str, ...]] = []
    for k, (time, rate) in enumerate(zip(estimator.timescales_, estimator.rates_, strict=True)):
        row: tuple[str, ...] = (str(k + 1), f"{time:.4g}", f"{rate:.4g}")
        if intervals is not None:
            low, high = intervals[k]
            angle = np.degrees(uncertainty.mode_angles[k])
            row = (*row[:2], f"{low:.4g} – {high:.4g}", row[2], f"{angle:.0f}°")
        rows.append(row)
    return rows
