"""The page about a committor."""

from collections.abc import Iterable, Sequence
from typing import Any
from warnings import catch_warnings, filterwarnings

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.bases import LandmarkBasis
from kdmaps.checks import Check, Checks
from kdmaps.estimators.arguments import model_and_samples, same_samples_check
from kdmaps.estimators.committor import AdaptiveCommittor, quantity_rows
from kdmaps.forms.tangent import TangentDiffusion
from kdmaps.language import PYTHON, Language
from kdmaps.plotting import plot_committor, plot_flux_distribution, plot_free_energy_along_q
from kdmaps.report._figures import figure
from kdmaps.report.sections import Beside, Figure, Section, Table, Text, checks_section, clock_table, render_page
from kdmaps.summary import describe_kernel, show_interval
from kdmaps.utils.numbers import rounded
from kdmaps.utils.optional import optional
from kdmaps.utils.threads import one_blas_thread

#: Most samples in a figure.
MOST = 5000


def time_unit(model: AdaptiveCommittor) -> str:
    """Return a sentence about the unit of the times."""
    if model.clock_ is not None:
        return f"Times are real, in the unit of the time step, by {model.clock_.n_bursts} bursts."
    if isinstance(model.diffusion, str | TangentDiffusion | None):
        return "Times are in units of length²/D with D = 1: divide them by the diffusion constant D."
    return "Times are in the time unit of the given diffusion tensor."


def chosen_kernel(model: AdaptiveCommittor) -> str:
    """Return kernel, regularization and basis in words."""
    basis = "landmarks" if isinstance(model.basis_, LandmarkBasis) else "Fourier features"
    kernel, count = describe_kernel(model.kernel_), model.basis_.n_features
    return f"{kernel}, regularization {model.regularization_:.2g}, {count} {basis}"


def verdict(model: AdaptiveCommittor, checks: Checks, language: Language = PYTHON) -> str:
    """Return the result in one line."""
    result = f"Rate from A to B: {rounded(model.rate_)} ({show_interval(model.rate_interval_, 4)})"
    return checks.verdict(result, language)


@one_blas_thread()
def render_committor(
    model: AdaptiveCommittor,
    X: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    title: str = "Committor",
    checks: Iterable[Check] = (),
    language: Language = PYTHON,
) -> str:
    """Return a self-contained HTML page about a committor.

    Parameters
    ----------
    model : AdaptiveCommittor
        Fitted.
    X : array-like of shape (n_samples, d)
        The training samples.
    sample_weight : array-like of shape (n_samples,), optional
    names : sequence of str, optional
        Names of the columns.
    title : str, default="Committor"
    checks : iterable of kdmaps.checks.Check, optional
        Further checks to show, for example of the files that X was read from.
    language : Language, default=kdmaps.language.PYTHON
        Language of remedies: of readers of Python programs, or of the command line.

    Returns
    -------
    page : str
    """
    model, X = model_and_samples(model, X, AdaptiveCommittor)
    optional("jinja2", "report", "The report")
    rows = np.asarray(X, dtype=np.float64)
    labels = [f"x{j + 1}" for j in range(rows.shape[1])] if names is None else list(names)
    with catch_warnings():
        filterwarnings("ignore", "X does not have valid feature names")  # these are the samples of the fit
        drawn = _figures(model, rows, sample_weight, labels)
    every = Checks([*checks, *model.checks_, same_samples_check(model.support_, rows)])
    candidates = _candidate_rows(model.candidates_)
    sections = [
        Section(
            "rates", "Rates", "",
            [Table("rates", ("", "value", "95 % interval"), quantity_rows(model), plain=True),
             *([] if model.clock_ is None else [clock_table(model.clock_)]), Text(time_unit(model))],
        ),
        Section("committor", "Committor", "Probability to reach B before A.", [Beside(drawn)]),
        checks_section(every),
        Section(
            "kernel", "Kernel", f"{chosen_kernel(model)}.",
            [Table("candidates", ("family", "basis", "width", "λ / flux", "metrics", "held-out energy"), candidates),
             Text("Best kernels, each with its best λ. Widths are in units of the median distance; metrics count the "
                  "times that distances were learned from the gradient of q.")]
            if candidates else [],
        ),
    ]  # fmt: skip
    return render_page(title, verdict(model, every, language), sections, checks=every, language=language)


def _figures(model: AdaptiveCommittor, rows: np.ndarray, weight: ArrayLike | None, labels: list[str]) -> list[Figure]:
    """Draw q over the columns that matter most, the free energy along it, and the energy over its values."""
    slopes = np.abs(model.gradient(rows)) * rows.std(axis=0)
    shown = sorted(np.argsort(-np.sum(slopes**2, axis=0))[:2].tolist())
    some = np.linspace(0, len(rows) - 1, min(MOST, len(rows))).astype(int)

    def overview(ax: Any) -> None:
        plot_committor(model, rows[some], coordinates=shown, ax=ax)
        ax.set_xlabel(labels[shown[0]])
        if len(shown) > 1:
            ax.set_ylabel(labels[shown[1]])

    figures: dict[str, Any] = {
        "q and its flux lines; thick: q = ½."
        if rows.shape[1] == 2
        else "q over columns on which it depends most.": overview,
        "Free energy along q.": lambda ax: plot_free_energy_along_q(model, rows, sample_weight=weight, ax=ax),
        "Energy over q, which is even for the exact committor, and number of samples.": (
            lambda ax: plot_flux_distribution(model, rows, sample_weight=weight, ax=ax)
        ),
    }
    return [figure(draw, text, f"committor{k}", text) for k, (text, draw) in enumerate(figures.items())]


def _candidate_rows(candidates: list[dict[str, Any]], most: int = 8) -> list[list[str]]:
    """Return the best kernels, each with its best λ."""
    best: dict[tuple[Any, ...], dict[str, Any]] = {}
    for one in sorted(candidates, key=lambda one: one["score"]):
        best.setdefault((one["family"], one["basis"], one["width"], one["metrics"]), one)
    return [
        [*key[:2], f"{key[2]:.3g}", f"{one['regularization']:.0e}", str(key[3]), f"{one['score']:.4g}"]
        for key, one in list(best.items())[:most]
    ]
