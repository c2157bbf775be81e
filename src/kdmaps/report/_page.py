"""The page about a fit."""

from collections.abc import Iterable, Sequence
from typing import Any

from numpy.typing import ArrayLike

from kdmaps.analysis import Analysis
from kdmaps.checks import Check
from kdmaps.diagnostics.independence import IndependentModes
from kdmaps.dynamics import Koopman, Validation
from kdmaps.estimators.arguments import model_and_samples
from kdmaps.estimators.transformer import ModeTransformer
from kdmaps.language import CLI, PYTHON
from kdmaps.report._fit_sections import SECTIONS
from kdmaps.report._subject import Subject, checked_draw, checked_names
from kdmaps.report.sections import render_page
from kdmaps.report.text import count_states
from kdmaps.summary import FitSummary, summarise
from kdmaps.uncertainty import Uncertainty
from kdmaps.utils.files import write_text
from kdmaps.utils.frames import column_names
from kdmaps.utils.optional import optional
from kdmaps.utils.threads import one_blas_thread
from kdmaps.utils.types import PathLike

#: Largest number of samples in the interactive figures.
MAX_POINTS = 3000


@one_blas_thread()
def write_report(model: ModeTransformer, X: ArrayLike, path: PathLike, **options: Any) -> None:
    """Write a self-contained HTML page about a fit, which needs no network, server or other file.

    Parameters
    ----------
    model : fitted estimator
    X : array-like of shape (n_samples, d)
        The training samples. Column names of a data frame name the axes.
    path : path-like
        An existing file is replaced, completely or not at all.
    **options
        As in `render_report`.

    Examples
    --------
    >>> import kdmaps
    >>> X = kdmaps.problems.load("dw1d").sample(300, random_state=0)
    >>> m = kdmaps.KernelDiffusionMap(n_components=2, random_state=0).fit(X)
    >>> u = kdmaps.uncertainty.bootstrap(m, X, n_resamples=20)
    >>> kdmaps.report.write_report(m, X, "report.html", uncertainty=u)  # doctest: +SKIP
    """
    write_text(path, render_report(model, X, **options))


@one_blas_thread()
def render_report(
    model: ModeTransformer,
    X: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    uncertainty: Uncertainty | None = None,
    independence: IndependentModes | None = None,
    checks: Iterable[Check] = (),
    notes: str = "",
    title: str = "Slow modes",
    unit: str | None = None,
    validation: Validation | None = None,
    koopman: Koopman | None = None,
    feature_names: Sequence[str] | None = None,
    command: str | None = None,
    reading: str | None = None,
    draw: Any = None,
    max_points: int = MAX_POINTS,
) -> str:
    """Return the page that `write_report` writes. The same fit gives the same page on the same day.

    Parameters
    ----------
    model : fitted estimator
    X : array-like of shape (n_samples, d)
        The training samples. Column names of a data frame name the axes.
    sample_weight, groups : array-like of shape (n_samples,), optional
        As given to `fit`; shown in the settings and in the program. Without them the page still recognises that `fit`
        had weights, or a splitter of scikit-learn that needs groups.
    uncertainty : kdmaps.uncertainty.Uncertainty, optional
        Intervals of the time scales.
    independence : IndependentModes, optional
        From `kdmaps.independent_modes`: which modes are new coordinates.
    checks : iterable of kdmaps.checks.Check, optional
        Further checks to show, for example of the files that X was read from.
    notes : str, default=""
        Text for the readers, shown after the verdict; an empty line separates paragraphs.
    title : str, default="Slow modes"
        Heading of the page.
    unit : str, optional
        Unit of the time step between frames, for a model with a lag.
    validation : kdmaps.dynamics.Validation, optional
        Tests of the lag, for a model with a lag. By default they are computed.
    koopman : kdmaps.dynamics.Koopman, optional
        Eigenvalues of a model fitted with `reversible=False`. By default they are computed.
    feature_names : sequence of str, optional
        Names of the columns of X, if X has none.
    command : str, optional
        Command line of the fit.
    reading : str, optional
        Lines of Python that read X, and `sample_weight`, `groups` and other arrays if given. They begin the program
        that repeats the fit; without them, the program lists what it needs.
    draw : data frame, dict of columns or array-like of shape (n_samples, k), optional
        Coordinates to draw the modes over, with one number for each sample; they need not be inputs of the fit. The
        figures of modes use the first two, and the interactive figures offer all. By default the two most relevant
        columns of X for each mode.
    max_points : int, default=3000
        Largest number of samples in the interactive figures; they are selected at random.
    """
    optional("jinja2", "report", "Reports")  # before anything is computed
    optional("matplotlib", "report", "Reports")
    columns = column_names(X)
    model, X = model_and_samples(model, X, ModeTransformer)  # steps of a pipeline may lose the names
    if feature_names is None and columns is not None and len(columns) == model.n_features_in_:
        feature_names = columns
    analysis = Analysis(
        model,
        X,
        sample_weight=sample_weight,
        groups=groups,
        n_resamples=0,  # error bars are shown if they are given
        uncertainty=uncertainty,
        validation=validation,
        koopman=koopman,
        checks=checks,
    )
    return render_analysis(
        analysis,
        feature_names,
        independence=independence,
        notes=notes,
        title=title,
        unit=unit,
        command=command,
        reading=reading,
        draw=draw,
        max_points=max_points,
    )


@one_blas_thread()
def render_analysis(
    analysis: Analysis,
    feature_names: Sequence[str] | None = None,
    *,
    independence: IndependentModes | None = None,
    notes: str = "",
    title: str = "Slow modes",
    unit: str | None = None,
    command: str | None = None,
    reading: str | None = None,
    draw: Any = None,
    max_points: int = MAX_POINTS,
) -> str:
    """Return the page about an analysis; the other arguments are as in `render_report`."""
    model, n_samples = analysis.model, len(analysis.X)
    summary = summarise(
        model, unit=unit, uncertainty=analysis.uncertainty, checks=analysis.checks, doubtful=analysis.doubtful
    )
    drawn = checked_draw(draw, n_samples)
    names = checked_names(model, None, feature_names)
    subject = Subject(analysis, names, drawn, summary, independence, command, reading, max_points)
    language = PYTHON if command is None else CLI
    process = "" if analysis.koopman is None else analysis.koopman.slowest(unit)
    return render_page(
        title,
        summary.verdict(count_states(analysis.states), process, language),
        [section(subject) for section in SECTIONS],
        facts=_facts(summary, n_samples, driven=analysis.koopman is not None),
        checks=analysis.checks,
        notes=notes,
        language=language,
    )


def _facts(summary: FitSummary, n_samples: int, driven: bool) -> list[tuple[str, str]]:
    """Return the numbers below the headline."""
    effective = "" if summary.effective_samples is None else f" ({summary.effective_samples:,.0f} effective)"
    facts = [("samples" if summary.lag is None else "frames", f"{n_samples:,}{effective}")]
    if summary.lag is not None:
        facts.append(("lag", summary.lag_time))
    if not driven:  # singular functions need not be slow
        facts += [("longest time scale", summary.slowest), ("next mode faster by a factor of", f"{summary.gap:.4g}")]
    if summary.search is not None:
        facts.append(("agreement of the folds", f"{summary.search.fold_agreement:.3f}"))
    return facts
