"""The page about a fit."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from kdmaps import dynamics
from kdmaps.data import ArraySource, Source, gather
from kdmaps.data.inputs import join_trajectories
from kdmaps.diagnostics.independence import IndependentModes
from kdmaps.dynamics import Koopman, Validation, validate
from kdmaps.estimators.transformer import ModeTransformer
from kdmaps.report._fit_sections import SECTIONS
from kdmaps.report._subject import Subject, checked_draw, checked_names
from kdmaps.report.sections import render_page
from kdmaps.report.text import count_states
from kdmaps.summary import summarise
from kdmaps.uncertainty import Uncertainty
from kdmaps.utils.files import write_text
from kdmaps.utils.optional import optional
from kdmaps.utils.threads import one_blas_thread
from kdmaps.utils.types import PathLike
from kdmaps.utils.warn import muted

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
    warnings: Sequence[str] | None = None,
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
    warnings : sequence of str, optional
        Warnings to show. By default the warnings about the modes.
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
    check_is_fitted(model)
    X, groups, _ = join_trajectories(X, groups)
    names = checked_names(model, X, feature_names)
    X = gather(X) if isinstance(X, Source) else np.asarray(X)
    if X.ndim != 2 or X.shape[1] != model.n_features_in_:
        raise ValueError(f"X has shape {X.shape}; pass the samples, with {model.n_features_in_} columns.")
    for name, values in {"sample_weight": sample_weight, "groups": groups}.items():
        if values is not None and np.shape(values) != (len(X),):
            raise ValueError(f"{name} has shape {np.shape(values)}; pass one for each of the {len(X)} samples.")
    weight = None if sample_weight is None else np.asarray(sample_weight)
    if model.right_modes_ is not None and koopman is None:
        with suppress(ValueError), muted():  # too few frames for blocks
            koopman = dynamics.koopman(model, ArraySource(X), groups=groups, sample_weight=weight)
    # Eigenvalues have a test of their own after several lags; singular functions need not be slow.
    tests = validation if koopman is None else None
    if tests is None and koopman is None:
        with suppress(ValueError), muted():  # without a lag, equilibrium or enough frames there are no tests
            tests = validate(model, ArraySource(X), groups=groups, sample_weight=weight)
    summary = summarise(model, unit=unit, uncertainty=uncertainty, tests=tests)
    subject = Subject(
        model, X, names, weight, groups, checked_draw(draw, len(X)), summary, tests, independence, command,
        reading, max_points, koopman,
    )  # fmt: skip
    shown = summary.warnings if warnings is None else warnings
    effective = "" if summary.effective_samples is None else f" ({summary.effective_samples:,.0f} effective)"
    facts = [("samples" if summary.lag is None else "frames", f"{len(X):,}{effective}")]
    if summary.lag is not None:
        facts.append(("lag", summary.lag_time))
    if koopman is None:  # singular functions need not be slow
        facts += [("longest time scale", summary.slowest), ("next mode faster by a factor of", f"{summary.gap:.4g}")]
    if summary.search is not None:
        facts.append(("agreement of the folds", f"{summary.search.fold_agreement:.3f}"))
    return render_page(
        title,
        summary.verdict(count_states(subject.states), len(shown), "" if koopman is None else koopman.slowest(unit)),
        [section(subject) for section in SECTIONS],
        facts=facts,
        warnings=shown,
        notes=notes,
    )
