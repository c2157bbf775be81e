"""A fitted estimator in words and numbers: what the command line, the report and notebooks show of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from kdmaps.forms.tangent import TangentDiffusion
from kdmaps.kernels import Metric
from kdmaps.selection.candidate import MIN_AGREEMENT
from kdmaps.selection.rules import chosen_scoring
from kdmaps.spectrum.checks import Check, agreement_check

#: What each of `kdmaps.selection.rules.SCORINGS` is, in a sentence that says "judged by ...".
SCORING_WORDS = {
    "timescale": "the time scales of their modes on held-out samples",
    "rayleigh": "the Rayleigh quotients of their modes on held-out samples",
    "eigsum": "the sum of their eigenvalues on held-out samples",
    "gap": "their spectral gap on held-out samples",
    "vamp1": "the autocorrelations of their modes after the lag on held-out blocks",
    "vamp2": "the squared autocorrelations of their modes after the lag on held-out blocks",
    "vampe": "the part of the transfer operator that their modes explain on held-out blocks",
}
#: What their scores are.
SCORE_WORDS = {
    "timescale": "the sum of the square roots of the {r} time scales on held-out samples, less one standard error. "
    "They exceed the true ones by sampling noise only, so that the largest are the best",
    "vamp1": "the sum of the {r} autocorrelations, at most {r}, less one standard error",
    "vamp2": "the sum of the {r} squared autocorrelations, at most {r}, less one standard error",
}
#: The same for a single mode.
SCORE_WORDS_OF_ONE = {
    "timescale": "the square root of the time scale on held-out samples, less one standard error. It exceeds the true "
    "one by sampling noise only, so that the largest is the best",
    "vamp1": "the autocorrelation, at most 1, less one standard error",
    "vamp2": "the squared autocorrelation, at most 1, less one standard error",
}
#: The sign before the number of a mode that is not to be trusted.
MARK = "⚠"
#: Inputs of a mode that are named by their relevance, and the smallest share for which one is: shares are known to 2 %.
MOST_RELEVANT, SMALLEST_SHARE = 3, 0.02


def search_of(estimator: Any) -> Any | None:
    """Return the search behind an estimator, or None if its kernel was not searched."""
    return estimator if hasattr(estimator, "cv_results_") else None


def kept_refinement(estimator: Any) -> Any | None:
    """Return the refinement that replaced the choice of the search, or None if there is none."""
    refinement = getattr(estimator, "refinement_", None)
    return refinement if refinement is not None and refinement.preferred else None


def agreement_of(estimator: Any) -> float | None:
    """Return how well the folds agree on the modes of the chosen kernel, or None for a fit without folds."""
    return getattr(estimator, "fold_agreement_", None)


def chosen(estimator: Any) -> str:
    """Describe kernel, regularization and basis in one line."""
    lam = getattr(estimator, "regularization_", None)
    if lam is None:
        parameters = getattr(estimator, "best_params_", None) or estimator.get_params(deep=False)
        lam = parameters["regularization"]
    return f"{describe_kernel(estimator.kernel_)}, regularization {lam:.3g}, {estimator.basis_.n_features} features"


def describe_kernel(kernel: Any) -> str:
    """Describe a kernel, with its numbers rounded; of a metric, how many directions count in it."""
    if isinstance(kernel, Metric):
        lengths = np.linalg.svd(kernel.root, compute_uv=False) ** 2
        count = lengths.sum() ** 2 / max(np.sum(lengths**2), np.finfo(float).tiny)  # of equal ones, their number
        metric = f"in a metric (about {count:.2g} of {len(lengths)} directions count)"
        return f"{describe_kernel(kernel.kernel)} {metric}"
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
    """Explain the choice of the kernel: three sentences, then one for each further step of it."""
    search = search_of(estimator)
    if search is not None:
        return [
            *_of_search(search),
            f"The mode spaces of different folds agree to a mean squared cosine of {agreement_of(estimator):.3f}. "
            f"(1 is the same space; a candidate below {MIN_AGREEMENT:g} comes last.)",
            *_of_metric(getattr(estimator, "kernel_", None)),
            *_of_refinement(getattr(estimator, "refinement_", None)),
            *(f"The grid was extended: {text}." for text in search.extensions_),
            *(f"The choice lies on an edge: {text}; look at the landscape." for text in search.edges_),
            *_of_suggestion(search),
            *_of_relevance(getattr(search, "relevance_details_", None)),
        ]
    history = getattr(estimator, "history_", None)
    if history is not None:
        loss = history["loss"]
        return [
            f"The kernel was learned by gradient descent of the objective {estimator.objective!r}: from "
            f"{loss[0]:.4g} to {estimator.best_loss_:.4g} in {len(loss) - 1} steps."
        ]
    return ["The kernel was given."]


def _of_search(search: Any) -> list[str]:
    """Say what was judged, by what and with which score, and by how much the best one is better than another kernel."""
    results, best = search.cv_results_, search.best_index_
    name = chosen_scoring(search.scoring, getattr(search, "lag_", None))
    named = isinstance(name, str)
    scoring = SCORING_WORDS[name] if named else "a score of the user's own"
    r = search.n_components
    score_words = SCORE_WORDS_OF_ONE if r == 1 else SCORE_WORDS
    meaning = f": {score_words[name].format(r=r)}" if named and name in score_words else ""
    found = [
        f"{len(results['params'])} candidates were judged by {scoring}; the best "
        f"one scores {search.best_selection_score_:.4g} ± {results['selection_error'][best]:.2g} (standard error)"
        f"{meaning}."
    ]
    margin = search.certainty_["margin_in_standard_errors"]
    if margin < 0 and getattr(search, "bandwidths", None) == "auto":
        found.append(
            f"Another finalist scores {-search.certainty_['margin']:.2g} more, {-margin:.1f} standard errors of the "
            "difference; it was passed over because rounding would spoil its modes, or because its metric is not "
            "clearly better."
        )
    elif margin < 0:
        found.append(
            f"A candidate beyond the initial grid scores {-search.certainty_['margin']:.2g} more, {-margin:.1f} "
            "standard errors of the difference. The search leaves the grid only if the highest score beyond it is "
            "better by more than one standard error."
        )
    elif np.isfinite(margin):
        weight = "either would do" if margin < 1 else "a real difference" if margin > 2 else "a small difference"
        found.append(
            f"The best candidate with another kernel scores {search.certainty_['margin']:.2g} less, {margin:.1f} "
            f"standard errors of the difference: {weight}."
        )
    return found


def _of_metric(kernel: Any) -> list[str]:
    """Say why distances are measured in a metric."""
    if not isinstance(kernel, Metric):
        return []
    return [
        "The kernel measures distances in a metric made of the slopes of the modes: it was kept because the held-out "
        "score rose by more than one standard error of the difference."
    ]


def _of_relevance(found: Any) -> list[str]:
    """Name the inputs that each mode depends on most, where there is more than one input."""
    if found is None or len(found.names) < 2:
        return []
    modes = (f"mode {k + 1}: {_inputs(found.names, shares)}" for k, shares in enumerate(found.shares))
    return [f"Inputs by their share in the slopes of each mode: {'; '.join(modes)}."]


def _inputs(names: tuple[str, ...], shares: np.ndarray) -> str:
    """Name the inputs of one mode, largest share first."""
    order = np.argsort(-shares, kind="stable")
    shown = [order[0], *(j for j in order[1:MOST_RELEVANT] if shares[j] >= SMALLEST_SHARE)]
    rest = 1 - shares[shown].sum()
    return ", ".join(f"{names[j]} ({shares[j]:.0%})" for j in shown) + (" …" if rest >= SMALLEST_SHARE else "")


def independence_of(found: Any) -> str:
    """Say which modes are new coordinates (`kdmaps.independent_modes`), and what is left of the others."""
    new, old = found.indices + 1, np.flatnonzero(~found.independent)
    if not old.size:
        return "Every mode is a new coordinate: none is a function of those before it."
    named = f"Modes {', '.join(map(str, new))} are new coordinates" if len(new) > 1 else "Mode 1 is the only coordinate"
    rest = ", ".join(f"{k + 1} ({found.residuals[k]:.2g})" for k in old)
    return f"{named}; functions of those before them, with the residual of predicting them: {rest}."


def _of_refinement(refinement: Any) -> list[str]:
    """Say whether a bandwidth for each coordinate was kept, and by which rule (`Refinement.preferred`)."""
    if refinement is None:
        return []
    change = f"{refinement.score_difference:+.3g} ± {refinement.difference_standard_error:.2g}"
    if not refinement.preferred:
        reason = (
            f"was not kept: it changes the held-out score by {change}. It would be kept if the score rose by more than "
            "one standard error, or fell by less while the folds agreed better on the same modes; of other modes on "
            "which they agree better, it must rise"
        )
    elif refinement.score_difference > refinement.difference_standard_error:
        reason = f"was kept: it changes the held-out score by {change}, a rise of more than one standard error"
    else:
        reason = (
            f"was kept: the held-out scores differ by less than one standard error ({change}), and the folds agree "
            f"better on the modes ({refinement.rival.agreement:.3f} before, {refinement.candidate.agreement:.3f} after)"
        )
    return [f"A separate bandwidth for each coordinate {reason}."]


def _of_suggestion(search: Any) -> list[str]:
    suggested = search.suggested_n_components_
    if suggested is None or suggested == search.n_components:
        return []
    return [f"The largest spectral gap on which the folds agree is after mode {suggested}."]


def checks_of(estimator: Any, tests: Any = None) -> list[Check]:
    """Return what can spoil the modes, in numbers; after a search the folds measure what a single fit estimates.

    `tests` are those of the lag (`kdmaps.dynamics.Validation`), if there are any.
    """
    checks, agreement, trust = estimator.modes_.checks(), agreement_of(estimator), getattr(estimator, "trust_", None)
    if agreement is not None:
        measured = agreement_check(agreement, getattr(search_of(estimator), "suggested_n_components_", None))
        checks = [*(check for check in checks if not check.estimate), measured]
    return [*checks, *([] if trust is None else trust.summaries()), *([] if tests is None else tests.checks())]


def doubtful(estimator: Any, tests: Any = None) -> np.ndarray:
    """Return which modes fail a check of their own, `trust_` or a test of the lag; (r,) of bool."""
    trust = getattr(estimator, "trust_", None)
    found = np.zeros(len(estimator.timescales_), dtype=bool) if trust is None else ~trust.ok
    return found if tests is None else found | tests.doubtful


def warnings_of(estimator: Any, tests: Any = None) -> list[str]:
    """Return the reasons not to trust the modes, each with its remedy."""
    return [str(check.warning) for check in checks_of(estimator, tests) if not check.passed]


def has_unit_diffusion(estimator: Any) -> bool:
    """Return whether the diffusion tensor was not given, so that time scales are those of a diffusion constant of 1."""
    given = getattr(estimator, "diffusion", None)
    return getattr(estimator, "lag_", None) is None and isinstance(given, str | TangentDiffusion | None)


def lag_of(estimator: Any, unit: str | None = None) -> str | None:
    """Return the lag of a model as a time and in frames; None for a model of samples."""
    lag = getattr(estimator, "lag_", None)
    if lag is None:
        return None
    return f"{lag * estimator.time_step:g}{'' if unit is None else f' {unit}'} ({frames_of(lag)})"


def frames_of(number: int) -> str:
    """Count frames."""
    return "1 frame" if number == 1 else f"{number} frames"


def time_unit(estimator: Any, unit: str | None = None) -> str:
    """Say in which unit the time scales are; `unit` is the one of the time step between frames."""
    lag = lag_of(estimator, unit)
    if lag is not None:
        unit = unit or ("frames (time_step=1)" if estimator.time_step == 1 else "the unit of time_step")
        return f"Time scales are in {unit}, from pairs of frames {lag} apart."
    if has_unit_diffusion(estimator):
        return (
            "Time scales are in units of length²/D, for D = 1: divide them by the diffusion constant D of the system."
        )
    return "Time scales are in the unit of time of the diffusion tensor that was given."


def timescale_intervals(uncertainty: Any, n_modes: int) -> np.ndarray | None:
    """Return the intervals of an `Uncertainty` for this many modes, of shape (r, 2); None stays None."""
    if uncertainty is None:
        return None
    intervals = np.asarray(uncertainty.timescale_intervals, dtype=np.float64)
    if intervals.shape != (n_modes, 2):
        raise ValueError(f"uncertainty is that of {len(intervals)} modes, but the model has {n_modes}.")
    return intervals


def timescale_columns(uncertainty: Any = None, unit: str | None = None) -> tuple[str, ...]:
    """Return the titles of the columns of `timescale_rows`; `unit` is that of the time step between frames."""
    time, rate = ("time scale", "rate") if unit is None else (f"time scale ({unit})", f"rate (1/{unit})")
    if uncertainty is None:
        return ("mode", time, rate)
    level = f"{100 * uncertainty.confidence:g} %"
    return ("mode", time, f"{level} interval", rate, f"uncertainty of direction ({level})")


def timescale_rows(estimator: Any, uncertainty: Any = None, tests: Any = None) -> list[tuple[str, ...]]:
    """Return one row of text per mode: number, time scale, rate; with an uncertainty, its interval and angle too.

    The number of a mode that is not to be trusted is marked.
    """
    intervals = timescale_intervals(uncertainty, len(estimator.timescales_))
    rows: list[tuple[str, ...]] = []
    marked = doubtful(estimator, tests)
    for k, (time, rate) in enumerate(zip(estimator.timescales_, estimator.rates_, strict=True)):
        row: tuple[str, ...] = (f"{MARK} {k + 1}" if marked[k] else str(k + 1), f"{time:.4g}", f"{rate:.4g}")
        if intervals is not None:
            low, high = intervals[k]
            angle = np.degrees(uncertainty.mode_angles[k])
            row = (*row[:2], f"{low:.4g} – {high:.4g}".replace("inf", "∞"), row[2], f"{angle:.0f}°")
        rows.append(row)
    return rows
