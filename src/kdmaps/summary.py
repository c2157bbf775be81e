"""Summary of a fitted estimator, and the tables and sentences that command line, report and notebook make of it."""

from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple, cast

import numpy as np
from sklearn.base import BaseEstimator

from kdmaps.bases import Basis
from kdmaps.checks import Checks
from kdmaps.clocks.clock import BurstClock
from kdmaps.data.detached import RareGroup
from kdmaps.data.sources import ArraySource
from kdmaps.diagnostics.independence import IndependentModes
from kdmaps.diagnostics.relevance import Relevance
from kdmaps.diagnostics.trust import Trust
from kdmaps.forms.moments import Moments
from kdmaps.forms.tangent import TangentDiffusion, TangentSpaces
from kdmaps.kernels import Kernel, Metric, Mixture
from kdmaps.language import PYTHON, Language
from kdmaps.learn import Refinement
from kdmaps.selection.candidate import MIN_AGREEMENT
from kdmaps.selection.lag import ImpliedTimescales
from kdmaps.selection.result import SearchResult
from kdmaps.selection.scores import chosen_scoring
from kdmaps.spectrum.modes import Modes
from kdmaps.utils.notebook import card, scatter, warning_lines
from kdmaps.utils.numbers import rounded

#: Quantities that candidates are compared by, for each name of `kdmaps.selection.scores`.
SCORINGS = {
    "timescale": "the time scales of their modes on held-out samples",
    "rayleigh": "the Rayleigh quotients of their modes on held-out samples",
    "eigsum": "the sum of their eigenvalues on held-out samples",
    "gap": "their spectral gap on held-out samples",
    "vamp1": "the autocorrelations of their modes after the lag on held-out blocks",
    "vamp2": "the squared autocorrelations of their modes after the lag on held-out blocks",
    "vampe": "the share of the transfer operator that their modes explain on held-out blocks",
}
#: Definitions of their scores, for one mode and for several.
SCORES = {
    "timescale": ("logarithm of the held-out time scale", "sum of the logarithms of the {r} held-out time scales"),
    "vamp1": ("autocorrelation (at most 1)", "sum of the {r} autocorrelations (at most {r})"),
    "vamp2": ("squared autocorrelation (at most 1)", "sum of the {r} squared autocorrelations (at most {r})"),
}
#: Marks the number of a mode that fails a check.
MARK = "⚠"
#: Number of inputs named for each mode, and their smallest share: shares are accurate to about 2 %.
MOST_RELEVANT, SMALLEST_SHARE = 3, 0.02
#: About the number of samples in the picture of a notebook.
PICTURED = 500


class FittedModel(BaseEstimator):
    """Attributes of every fitted estimator."""

    basis_: Basis
    kernel_: Kernel
    modes_: Modes
    coefficients_: np.ndarray
    eigenvalues_: np.ndarray
    rates_: np.ndarray
    timescales_: np.ndarray
    moments_: Moments
    tangents_: TangentSpaces | None
    trust_: Trust | None
    energy_samples_: np.ndarray | None
    variance_samples_: np.ndarray | None
    right_modes_: Modes | None
    lag_: int | None
    lag_choice_: ImpliedTimescales | None
    checks_: Checks
    rare_groups_: tuple[RareGroup, ...]
    clock_: BurstClock | None


class SearchedModel(FittedModel):
    """Further attributes of an estimator that searched its kernel."""

    best_estimator_: FittedModel
    best_params_: dict[str, Any]
    best_index_: int
    best_score_: float
    best_selection_score_: float
    cv_results_: dict[str, Any]
    search_result_: SearchResult
    refinement_: Refinement | None
    certainty_: dict[str, float]
    extensions_: list[str]
    edges_: list[str]
    fold_agreement_: float
    suggested_n_components_: int | None
    relevance_details_: Relevance
    relevance_: np.ndarray


class LearnedModel(FittedModel):
    """Further attributes of an estimator that learned its kernel by gradient descent."""

    objective: Any
    best_estimator_: FittedModel
    regularization_: float
    history_: dict[str, np.ndarray]
    best_loss_: float


class SearchSummary(NamedTuple):
    """A search, its settings, and what is known about the modes of the kernel that was kept."""

    result: SearchResult
    scoring: str | None  # None for a function of the user
    on_grid: bool  # a grid of bandwidths, instead of an adaptive search
    fold_agreement: float  # mean squared cosine between mode spaces
    suggested_n_components: int | None


@dataclass(frozen=True, eq=False)
class FitSummary:
    """Everything that is shown of a fitted estimator."""

    timescales: np.ndarray
    rates: np.ndarray
    doubtful: np.ndarray  # (r,) of bool: modes that fail a check
    gap: float  # after the last mode
    uncertainty: Any  # kdmaps.uncertainty.Uncertainty or None
    unit: str | None  # of the time step between frames
    unit_diffusion: bool  # time scales assume a diffusion constant of 1
    standardized: bool  # columns were divided by their standard deviations
    clock: BurstClock | None  # of bursts, by which time scales are real
    lag: int | None  # in frames; None for a model of samples
    time_step: float
    lag_choice: ImpliedTimescales | None  # None if the lag was given
    directed: bool  # reversible=False
    n_samples: int
    effective_samples: float | None  # None without weights
    chosen: str  # kernel, regularization and basis in one line
    in_metric: bool
    checks: Checks  # of all parts that are shown
    search: SearchSummary | None
    refinement: Refinement | None
    relevance: Relevance | None
    objective: str  # of a learned kernel
    history: dict[str, np.ndarray] | None  # of the optimiser, if the kernel comes from one

    @property
    def columns(self) -> tuple[str, ...]:
        """Titles of the table of time scales."""
        time, rate = with_unit("time scale", self.unit), "rate" if self.unit is None else f"rate (1/{self.unit})"
        if self.uncertainty is None:
            return ("mode", time, rate)
        level = f"{100 * self.uncertainty.confidence:g} %"
        return ("mode", time, f"{level} interval", rate, f"uncertainty of direction ({level})")

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """Table of time scales, one row per mode; the numbers of doubtful modes are marked."""
        rows: list[tuple[str, ...]] = []
        for k, (time, rate) in enumerate(zip(self.timescales, self.rates, strict=True)):
            number = f"{MARK} {k + 1}" if self.doubtful[k] else str(k + 1)
            known = time > 0  # otherwise the mode relaxes within one lag
            row: tuple[str, ...] = (number, rounded(time), rounded(rate)) if known else (number, "< lag", "–")
            if self.uncertainty is not None:
                interval = show_interval(self.uncertainty.timescale_intervals[k], 4) if known else "–"
                row = (*row[:2], interval, row[2], f"{np.degrees(self.uncertainty.mode_angles[k]):.0f}°")
            rows.append(row)
        return rows

    @property
    def slowest(self) -> str:
        """The longest time scale with its interval and unit."""
        if not self.timescales[0] > 0:
            return f"shorter than the lag of {self.lag_time}"
        known, unit = self.uncertainty, "" if self.unit is None else f" {self.unit}"
        interval = "" if known is None else f" ({show_interval(known.timescale_intervals[0])})"
        return f"{rounded(self.timescales[0])}{unit}{interval}"

    def verdict(self, states: str = "", process: str = "", language: Language = PYTHON) -> str:
        """Return the result in one line; `states` is the number of states in words, `process` replaces time scales."""
        if not process:
            slowest = f"lowest {'exchange' if states[:1].isdigit() else 'relaxation'} {self.slowest}"
            process = f"{states}; s{slowest}" if states else f"S{slowest}"
        return self.checks.verdict(process, language)

    @property
    def lag_time(self) -> str:
        """The lag as a time and in frames; "" without one."""
        if self.lag is None:
            return ""
        unit = "" if self.unit is None else f" {self.unit}"
        return f"{self.lag * self.time_step:g}{unit} ({count_frames(self.lag)})"

    @property
    def time_unit(self) -> str:
        """Sentence about the unit of the time scales."""
        if self.lag is not None:
            unit = self.unit or ("frames (time_step=1)" if self.time_step == 1 else "the unit of the time step")
            return f"Time scales are in {unit}, from pairs of frames {self.lag_time} apart."
        if self.clock is not None:
            unit = self.unit or "the unit of the time step"
            return f"Time scales are real, in {unit}, by {self.clock.n_bursts} bursts."
        if self.standardized:
            return "Columns were divided by their standard deviations; time scales are in units of variances."
        if self.unit_diffusion:
            return "Time scales are in units of length²/D with D = 1: divide them by the diffusion constant D."
        return "Time scales are in the time unit of the given diffusion tensor."

    @property
    def short_reason(self) -> str:
        """The kernel and the origin of the choice in one line."""
        how = "given" if self.history is None else "learned"
        if self.search is not None:
            agreement = f"agreement of the folds {self.search.fold_agreement:.2f}"
            how = f"chosen from {len(self.search.result.candidates)} candidates ({agreement})"
        return f"Kernel: {self.chosen}, {how}."

    @property
    def reasons(self) -> list[str]:
        """Sentences that explain the choice of the kernel, the most important first."""
        search, r = self.search, len(self.timescales)
        if search is None:
            if self.history is None:
                return ["The kernel was given."]
            loss, best = self.history["loss"], self.history["best_loss"][-1]
            return [
                f"The kernel was learned by minimising the objective {self.objective}: from {loss[0]:.4g} to "
                f"{best:.4g} in {len(loss) - 1} steps."
            ]
        found = [
            _score_sentence(search, r),
            *_margin_sentence(search),
            f"Agreement of the mode spaces between folds: mean squared cosine {search.fold_agreement:.3f} (1 means "
            f"identical; candidates below {MIN_AGREEMENT:g} have to be better by several standard errors).",
        ]
        if self.in_metric:
            found.append(
                "The kernel uses a metric in which inputs that matter little are shrunk, because the held-out score "
                "rose by more than one standard error of the difference."
            )
        found += _refinement_sentence(self.refinement)
        found += [f"The grid was extended: {text}." for text in search.result.extensions]
        if search.suggested_n_components not in (None, r):
            last = search.suggested_n_components
            found.append(f"The largest spectral gap on which the folds agree is after mode {last}.")
        if (known := self.relevance) is not None and len(known.names) > 1:
            shares = "; ".join(f"mode {k + 1}: {list_relevant(known, k)}" for k in range(len(known.shares)))
            found.append(f"Inputs by their share in the squared gradients of each mode: {shares}.")
        return found


def summarise(
    model: FittedModel,
    *,
    unit: str | None = None,
    uncertainty: Any = None,
    checks: Checks | None = None,
    doubtful: np.ndarray | None = None,
) -> FitSummary:
    """Return the summary of a fitted estimator.

    `checks` and `doubtful`, a mask of the modes, are those of an analysis; by default, of the fit alone.
    """
    parameters, clock, trust, r = model.get_params(), model.modes_.clock, model.trust_, len(model.timescales_)
    if uncertainty is not None and len(uncertainty.timescale_intervals) != r:
        known = len(uncertainty.timescale_intervals)
        raise ValueError(f"uncertainty has {known} modes, but the model has {r}; resample this model.")
    search = _summarise_search(model, parameters, clock.lag) if isinstance(model, SearchedModel) else None
    if doubtful is None:
        doubtful = np.zeros(r, dtype=bool) if trust is None else ~trust.ok
    refinement = model.refinement_ if isinstance(model, SearchedModel) else None
    history, objective = refinement.history if refinement is not None and refinement.preferred else None, ""
    used = (model.best_params_ if isinstance(model, SearchedModel) else parameters).get("regularization")
    if isinstance(model, LearnedModel):
        used, history, objective = model.regularization_, model.history_, repr(model.objective)
    return FitSummary(
        timescales=model.timescales_,
        rates=model.rates_,
        doubtful=doubtful,
        gap=model.modes_.timescale_gap,
        uncertainty=uncertainty,
        unit=unit,
        unit_diffusion=model.clock_ is None
        and clock.lag is None
        and isinstance(parameters["diffusion"], str | TangentDiffusion | None),
        standardized=bool(parameters.get("standardize", False)),
        clock=model.clock_,
        lag=clock.lag,
        time_step=clock.time_step,
        lag_choice=model.lag_choice_,
        directed=model.right_modes_ is not None,
        n_samples=model.moments_.count,
        effective_samples=float(model.moments_.effective_count) if model.moments_.weighted else None,
        chosen=f"{describe_kernel(model.kernel_)}, regularization {used:.3g}, {model.basis_.n_features} features",
        in_metric=isinstance(model.kernel_, Metric),
        checks=model.checks_ if checks is None else checks,
        search=search,
        refinement=refinement,
        relevance=model.relevance_details_ if isinstance(model, SearchedModel) else None,
        objective=objective,
        history=history,
    )


def _summarise_search(model: SearchedModel, parameters: dict[str, Any], lag: int | None) -> SearchSummary:
    # An estimator that contains a search has the parameters of the search under another name.
    scoring, bandwidths = (
        parameters.get(name, parameters.get(f"search__{name}", "auto")) for name in ("scoring", "bandwidths")
    )
    scoring = chosen_scoring(scoring, lag)
    named, on_grid = isinstance(scoring, str), not (isinstance(bandwidths, str) and bandwidths == "auto")
    of_modes = model.fold_agreement_, model.suggested_n_components_
    return SearchSummary(model.search_result_, scoring if named else None, on_grid, *of_modes)


def describe_kernel(kernel: Kernel) -> str:
    """Describe a kernel with rounded numbers, and a metric by the number of directions that count."""
    if isinstance(kernel, Metric):
        lengths = np.linalg.svd(kernel.root, compute_uv=False) ** 2
        count = lengths.sum() ** 2 / max(np.sum(lengths**2), np.finfo(float).tiny)  # of equal ones, their number
        metric = f"in a metric (about {count:.2g} of {len(lengths)} directions count)"
        return f"{describe_kernel(kernel.kernel)} {metric}"
    numbers = (item for item in kernel.to_dict().items() if item[0] not in ("family", "kernels"))
    parts = [f"{name}={_rounded(value)}" for name, value in numbers]
    if isinstance(kernel, Mixture):
        parts.append("of " + ", ".join(describe_kernel(part) for part in kernel.kernels))
    return f"{type(kernel).__name__}({', '.join(parts)})"


def describe_independence(found: IndependentModes) -> str:
    """Name the modes that are new coordinates, and the residuals of the others."""
    new, old = found.indices + 1, np.flatnonzero(~found.independent)
    if not old.size:
        return "Every mode is a new coordinate; none is a function of earlier modes."
    named = f"Modes {', '.join(map(str, new))} are new coordinates" if len(new) > 1 else "Mode 1 is the only coordinate"
    rest = ", ".join(f"{k + 1} ({found.residuals[k]:.2g})" for k in old)
    return f"{named}; the others are functions of earlier modes (residual of the prediction): {rest}."


def count_frames(number: int) -> str:
    """Return "1 frame", "2 frames", …."""
    return f"{number} frame{'' if number == 1 else 's'}"


def show_interval(ends: np.ndarray, digits: int = 3) -> str:
    """Return an interval as text."""
    low, high = ("unknown" if np.isnan(end) else rounded(end, digits) for end in ends)
    return f"{low} – {high}".replace("inf", "∞")


def with_unit(label: str, unit: str | None) -> str:
    """Return the label of an axis or a column."""
    return label if unit is None else f"{label} ({unit})"


def list_relevant(found: Relevance, k: int) -> str:
    """List the inputs that mode k depends on most, with their shares."""
    shares = found.shares[k]
    order = np.argsort(-shares, kind="stable")
    shown = [order[0], *(j for j in order[1:MOST_RELEVANT] if shares[j] >= SMALLEST_SHARE)]
    more = " …" if 1 - shares[shown].sum() >= SMALLEST_SHARE else ""
    return ", ".join(f"{found.names[j]} ({shares[j]:.0%})" for j in shown) + more


def _rounded(value: Any) -> str:
    numbers = np.atleast_1d(np.asarray(value, dtype=np.float64))
    shown = [f"{number:.4g}" for number in numbers[:8]] + (["…"] if len(numbers) > 8 else [])
    return shown[0] if np.ndim(value) == 0 else f"[{', '.join(shown)}]"


def _score_sentence(search: SearchSummary, r: int) -> str:
    compared = "a user-defined score" if search.scoring is None else SCORINGS[search.scoring]
    result, best = search.result, search.result.best
    sentence = (
        f"{len(result.candidates)} candidates were compared by {compared}. The best scores {best.value:.4g} ± "
        f"{best.standard_error:.2g} (standard error)"
    )
    if search.scoring not in SCORES:
        return f"{sentence}."
    score = SCORES[search.scoring][r > 1].format(r=r)
    return f"{sentence}; the score is the {score} minus one standard error, and larger is better."


def _margin_sentence(search: SearchSummary) -> list[str]:
    """Compare with the best candidate that has a different kernel, if there is one."""
    known = search.result.certainty
    margin, errors = known["margin"], known["margin_in_standard_errors"]
    if not np.isfinite(errors):
        return []
    size = f"{abs(margin):.2g} {'more' if errors < 0 else 'less'}, {abs(errors):.1f} standard errors of the difference"
    if errors >= 0:
        weight = "either would do" if errors < 1 else "a clear difference" if errors > 2 else "a small difference"
        return [f"The best candidate with a different kernel scores {size}: {weight}."]
    if search.on_grid:
        return [
            f"A candidate outside the initial grid scores {size}. The search leaves the grid only for a gain of more "
            "than one standard error."
        ]
    return [
        f"Another finalist scores {size}. It was not chosen because rounding errors would affect its modes, or because "
        "its metric is not clearly better."
    ]


def _refinement_sentence(found: Refinement | None) -> list[str]:
    """Give the outcome of the refinement, with the rule that decided (`Refinement.preferred`)."""
    if found is None:
        return []
    change = f"{found.score_difference:+.3g} ± {found.difference_standard_error:.2g}"
    if not found.preferred:
        reason = (
            f"were not kept: the held-out score changes by {change}. They are kept if the score rises by more than one "
            "standard error, or falls by less than that while the folds agree better on the same modes; for other "
            "modes, the score must rise"
        )
    elif found.score_difference > found.difference_standard_error:
        reason = f"were kept: the held-out score changes by {change}, a rise of more than one standard error"
    else:
        reason = (
            f"were kept: the held-out score changes by {change}, less than one standard error, and the folds agree "
            f"better on the modes ({found.rival.agreement:.3f} before, {found.candidate.agreement:.3f} after)"
        )
    return [f"Separate bandwidths for each coordinate {reason}."]


# --- notebook ---------------------------------------------------------------------------------------------------------
class NotebookDisplay:
    """Mixin that adds the summary of a fitted estimator to scikit-learn's diagram of it."""

    def _repr_html_inner(self) -> str:
        return super()._repr_html_inner() + self._card()  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:  # absent if the user set scikit-learn to display text
            bundle["text/html"] += self._card()
        return bundle

    def _card(self) -> str:
        """Return verdict, time scales, kernel, reasons and warnings as HTML; "" before a fit."""
        if not hasattr(self, "modes_"):
            return ""
        summary = summarise(cast(FittedModel, self))
        why = "".join(f"<li>{escape(reason)}</li>" for reason in summary.reasons)
        details = f"<details><summary>{escape(summary.chosen)}</summary><ul>{why}</ul></details>"
        parts = self._picture(), details, warning_lines(summary.checks)
        return card(summary.verdict(), summary.columns, summary.rows, *parts)

    def _picture(self) -> str:
        """Return the first two modes at samples that the model contains, or its mode over the first input."""
        support = getattr(self, "support_", None)
        if support is None or not len(support.samples):
            return ""
        X = support.samples[:: max(1, len(support.samples) // PICTURED)]
        modes = np.asarray(self.transform(ArraySource(X)))  # type: ignore[attr-defined]
        if modes.shape[1] == 1:
            return scatter(np.column_stack([X[:, 0], modes]), ("input 1", "mode 1"))
        return scatter(modes[:, :2], ("mode 1", "mode 2"))
