"""The result of a search."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from kdmaps.certificates import Certificate, cv_consistency
from kdmaps.checks import Check, rules
from kdmaps.kernels import Kernel, Metric
from kdmaps.selection.candidate import Candidate, Stage
from kdmaps.selection.evaluation import FoldedMoments, SearchData
from kdmaps.spectrum.modes import Clock


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Every candidate, the best one, and how certain the choice is. It holds no samples."""

    #: In the order of evaluation; a candidate without a score has a reason (`Candidate.rejected`).
    candidates: tuple[Candidate, ...]
    best: Candidate  #: The chosen one.
    extensions: tuple[str, ...]  #: How the grid was extended.
    edges: tuple[str, ...]  #: Ends of the search range on which the best candidate lies.
    #: (n_samples, n_folds): 1 where a sample that was searched trains, 2 where it tests, 0 where it does neither.
    assignment: np.ndarray
    n_components: int  #: Number of modes.
    clock: Clock  #: Converts quotients to rates.

    @property
    def best_index(self) -> int:
        """Position of the best candidate."""
        return self.candidates.index(self.best)

    @cached_property
    def _peers(self) -> tuple[Candidate, Candidate | None]:
        """The best candidate of the chosen kernel and of all others, evaluated at one stage."""
        # After screening, all remaining candidates were evaluated at the same stage.
        final = [c for c in self.candidates if c.stage == Stage.ALL_FOLDS] or list(self.candidates)
        best = max((c for c in final if c.kernel == self.best.kernel), key=lambda c: c.value, default=self.best)
        others = [c for c in final if c.kernel != best.kernel and np.isfinite(c.value)]
        return best, max(others, key=lambda c: c.value, default=None)

    @cached_property
    def certificate(self) -> Certificate:
        """Bound on the probability that the search missed its best candidate, with constants from the folds."""
        (best, second), r = self._peers, self.n_components
        margin = best.value - second.value if second else np.inf
        # A score with standard error s over independent folds of N_f of N samples has the variance s² N/N_f in a fold.
        # For a sub-Gaussian law of this variance, c N_f = N_f/(2 N s²) for the sum of r terms, r² times that for each.
        n_samples, fold_size = len(self.assignment), float(np.count_nonzero(self.assignment == 2, axis=0).mean())
        variance = max(best.standard_error**2, np.finfo(float).tiny) * n_samples / fold_size
        concentration = r**2 / (2 * variance * fold_size)
        sizes = (len(self.candidates), r, len(best.score.fold_values))
        return cv_consistency(margin, *sizes, fold_size, concentration)

    @cached_property
    def certainty(self) -> dict[str, float]:
        """Margin to the best candidate of another kernel, and the bound of thm:cv-consistency."""
        (best, second), bound = self._peers, self.certificate
        return {
            "margin": bound.constants["Δ"],
            "margin_in_standard_errors": best.standardised_lead(second) if second else np.inf,
            "bound": bound.value,
            "fold_size": bound.constants["N_f"],
            "concentration": bound.constants["c"],
        }

    @property
    def flatness(self) -> Check | None:
        """Check whether kernels score differently, if there are three or more."""
        peaks: dict[Kernel, float] = {}
        for c in self.candidates:
            if np.isfinite(c.value):
                peaks[c.kernel] = max(c.value, peaks.get(c.kernel, -np.inf))
        if len(peaks) <= 2:
            return None
        spread = max(peaks.values()) - min(peaks.values())
        error = max(self.best.standard_error, np.finfo(float).tiny)
        return Check(rules.FLAT, float(spread / error))

    def table(self) -> dict[str, Any]:
        """Return scikit-learn's `cv_results_`, one entry per candidate."""
        candidates, n_folds, clock = self.candidates, self.assignment.shape[1], self.clock

        def per_fold(rows: Iterable[Sequence[float] | np.ndarray]) -> np.ndarray:
            """Return rows as an array; NaN in folds that were not evaluated."""
            out = np.full((len(candidates), n_folds), np.nan)
            for line, row in zip(out, rows, strict=True):
                line[: len(row)] = row
            return out

        scores = per_fold(c.score.fold_values for c in candidates)
        fits = per_fold(c.fit_seconds for c in candidates)
        scoring = per_fold(c.score_seconds for c in candidates)
        selection = np.array([c.value for c in candidates])
        return {
            "mean_fit_time": _over_folds(np.mean, fits),
            "std_fit_time": _over_folds(np.std, fits),
            "mean_score_time": _over_folds(np.mean, scoring),
            "std_score_time": _over_folds(np.std, scoring),
            "param_family": np.array([c.label for c in candidates]),
            "param_bandwidth": np.array([np.nan if c.bandwidth is None else c.bandwidth for c in candidates]),
            "param_regularization": np.array([c.regularization for c in candidates]),
            "param_basis": np.array([c.basis for c in candidates]),
            "param_metric": np.array([isinstance(c.kernel, Metric) for c in candidates]),
            "params": [c.params for c in candidates],
            **{f"split{f}_test_score": scores[:, f] for f in range(n_folds)},
            "mean_test_score": _over_folds(np.mean, scores),
            "std_test_score": _over_folds(np.std, scores),
            "rank_test_score": _rank(_over_folds(np.mean, scores)),
            "selection_score": selection,
            "selection_error": np.array([c.standard_error for c in candidates]),
            "rank_selection_score": _rank(np.where([c.few_rows for c in candidates], -np.inf, selection)),
            "fold_agreement": np.array([c.agreement for c in candidates]),
            "condition_number": np.array([c.condition_number for c in candidates]),
            "timescales": [(1 / clock.rates(1 / np.array(c.timescales))).tolist() for c in candidates],
            "stage": [c.stage.value for c in candidates],
            "rejected": [c.rejected for c in candidates],
        }


class Search(NamedTuple):
    """A finished search: its result, and the samples and sums that the final fit still needs."""

    result: SearchResult
    data: SearchData
    moments: FoldedMoments


def _over_folds(statistic: Any, values: np.ndarray) -> np.ndarray:
    """Return a statistic of each row over its evaluated folds, which come first; NaN if there are none."""
    evaluated, out = np.count_nonzero(~np.isnan(values), axis=1), np.full(len(values), np.nan)
    with np.errstate(invalid="ignore"):  # the spread of scores that are -inf is NaN
        for n in set(evaluated.tolist()) - {0}:
            out[evaluated == n] = statistic(values[evaluated == n, :n], axis=1)
    return out


def _rank(values: np.ndarray) -> np.ndarray:
    """Return 1 for the largest value, and so on; NaN comes last, and equal values share a rank as in scikit-learn."""
    return rankdata(np.where(np.isfinite(values), -values, np.inf), method="min").astype(np.int32)
