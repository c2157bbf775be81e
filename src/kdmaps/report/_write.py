"""Gather what the page says of a fit, and fill the template."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from kdmaps.certificates import Certificate, cv_consistency
from kdmaps.data import ArraySource
from kdmaps.data.inputs import join_trajectories
from kdmaps.diagnostics.independence import IndependentModes
from kdmaps.diagnostics.relevance import Relevance
from kdmaps.dynamics import Validation
from kdmaps.estimators.model_files import library_versions
from kdmaps.estimators.transformer import ModeTransformer
from kdmaps.report._dynamics import dynamics_of, lag_tests
from kdmaps.report._energy import weighted_energy
from kdmaps.report._figures import svg
from kdmaps.report._look import checked_draw, coordinates_of, look_of, states_of
from kdmaps.report._program import fingerprint, program, show_argument
from kdmaps.summary import FitSummary, describe_independence, show_interval, summarise
from kdmaps.uncertainty import Uncertainty
from kdmaps.utils.files import replacing
from kdmaps.utils.frames import column_names
from kdmaps.utils.optional import optional
from kdmaps.utils.types import PathLike
from kdmaps.utils.warn import muted

#: Samples in the interactive figure, and columns of X that its axes offer.
MAX_POINTS, MAX_COLUMNS = 3000, 30
#: Inputs in the figure of relevance.
RELEVANT_INPUTS = 15


def write_report(model: ModeTransformer, X: ArrayLike, path: PathLike, **options: Any) -> None:
    """Write a self-contained HTML page about a fit: it needs no network, no server and no other file.

    Parameters
    ----------
    model : fitted estimator
    X : array-like of shape (n_samples, d)
        The samples it was fitted to. Column names of a data frame name the axes.
    path : path-like
        An existing file is replaced, by a whole one or not at all.
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
    page = render_report(model, X, **options)
    with replacing(path) as (file,):
        file.write(page.encode())


def render_report(
    model: ModeTransformer,
    X: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    uncertainty: Uncertainty | None = None,
    certificates: Sequence[Certificate] = (),
    independence: IndependentModes | None = None,
    notes: Sequence[str] | None = None,
    title: str = "Slow modes",
    unit: str | None = None,
    validation: Validation | None = None,
    feature_names: Sequence[str] | None = None,
    command: str | None = None,
    reading: str | None = None,
    draw: Any = None,
    max_points: int = MAX_POINTS,
) -> str:
    """Return the page that `write_report` writes. The same fit gives the same page.

    Parameters
    ----------
    model, X :
        As in `write_report`.
    sample_weight, groups : array-like of shape (n_samples,), optional
        What `fit` was given beside X; shown under the settings and in the program. Weights, and a `cv` of
        scikit-learn that needs groups, are recognised without them.
    uncertainty : kdmaps.uncertainty.Uncertainty, optional
        Intervals of the time scales.
    certificates : sequence of Certificate, optional
        Shown after the one of the search. Bounds that are trivial are left out.
    independence : IndependentModes, optional
        From `kdmaps.independent_modes`: which modes are new coordinates.
    notes : sequence of str, optional
        Warnings to show. By default those of the modes.
    title : str
    unit : str, optional
        Unit of the time step between frames, for a model with a lag.
    validation : kdmaps.dynamics.Validation, optional
        Tests of the lag, for a model with one; by default they are computed.
    feature_names : sequence of str, optional
        Names of the columns of X, where X has none.
    command : str, optional
        The command line of the fit.
    reading : str, optional
        Lines of Python that read X, and `sample_weight`, `groups` and other arrays that were given, from the data. They
        begin the program that fits the model again; without them the program names what it needs.
    draw : data frame, dict of columns or array-like of shape (n_samples, k), optional
        Coordinates to draw the modes over, fitted or not, one number for each sample. The first two are those of the
        figure, all are axes of the interactive one. By default the two most relevant columns of X.
    max_points : int, default=3000
        Samples in the interactive figure, drawn at random if there are more.
    """
    optional("jinja2", "report", "Reports")  # before anything is computed
    optional("matplotlib", "report", "Reports")
    check_is_fitted(model)
    X, groups, _ = join_trajectories(X, groups)
    names = _column_names(model, X, feature_names)
    X = X if isinstance(X, np.ndarray) else np.asarray(X)
    if X.ndim != 2 or X.shape[1] != model.n_features_in_:
        raise ValueError(f"X has shape {X.shape}; pass the samples, with {model.n_features_in_} columns.")
    drawn = checked_draw(draw, len(X))
    coordinates = coordinates_of(model, X, names, drawn)
    for name, values in {"sample_weight": sample_weight, "groups": groups}.items():
        if values is not None and np.shape(values) != (len(X),):
            raise ValueError(f"{name} has shape {np.shape(values)}; pass one for each of the {len(X)} samples.")
    tests = lag_tests(model, X, groups, sample_weight) if validation is None else validation
    summary = summarise(model, unit=unit, intervals=uncertainty, tests=tests)
    beside = _beside(model, summary, sample_weight, groups)
    return _filled(
        title=title,
        look=look_of(model, X, coordinates, _mode_titles(model, unit)),
        states=states_of(model, X, coordinates, sample_weight),
        facts=_facts(summary, len(X)),
        energy=weighted_energy(model, summary.lag, X, sample_weight),
        dynamics=dynamics_of(model, summary, X, groups, sample_weight, tests),
        notes=summary.warnings if notes is None else list(notes),
        scatter=_scatter(model, X, names, drawn, list(coordinates), max_points),
        settings=_settings(model, X, names, beside),
        certificates=_informative([*_certificate_of(summary), *certificates]),
        command=command,
        python=program(model, beside, reading),
        fingerprint=fingerprint(X),
        summary=summary,
        uncertainty=uncertainty,
        independence=None if independence is None else describe_independence(independence),
        figures=_figures(model, summary, uncertainty, independence),
    )


def template_of(name: str) -> Any:
    """Return a template of this folder."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(
        loader=FunctionLoader(lambda name: (files("kdmaps.report") / name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    ).get_template(name)


def _filled(**content: Any) -> str:
    """Fill the template."""
    folder = files("kdmaps.report")
    style, script = ((folder / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    return template_of("page.html").render(style=style, script=script, versions=library_versions(), **content)


def _column_names(model: Any, X: Any, given: Sequence[str] | None) -> list[str]:
    """Return the names of the columns: those given, those of a data frame, those of the fit, or x1, x2, …."""
    d = model.n_features_in_
    known = given if given is not None else column_names(X)
    known = getattr(model, "feature_names_in_", None) if known is None else known
    names = [f"x{j + 1}" for j in range(d)] if known is None else [str(name) for name in known]
    if len(names) != d:
        raise ValueError(f"feature_names holds {len(names)} names for {d} columns.")
    return names


def _facts(summary: FitSummary, n_samples: int) -> list[tuple[str, str]]:
    """Return the numbers at the top of the page."""
    slowest, effective = f"{summary.timescales[0]:.4g}", summary.effective_samples
    if summary.intervals is not None:
        slowest += f" ({show_interval(summary.intervals.timescale_intervals[0])})"
    return [
        (
            "samples" if summary.lag is None else "frames",
            f"{n_samples:,}{'' if effective is None else f' ({effective:,.0f} effective)'}",
        ),
        *([] if summary.lag is None else [("lag", summary.lag_time)]),
        ("longest time scale", slowest if summary.unit is None else f"{slowest} {summary.unit}"),
        (f"gap after mode {len(summary.timescales)}", f"{summary.gap:.4g}"),
        *([] if summary.search is None else [("agreement of the folds", f"{summary.search.fold_agreement:.3f}")]),
    ]


def _beside(model: Any, summary: FitSummary, sample_weight: Any, groups: Any) -> dict[str, str]:
    """Describe what a fit was given beside the samples, by the name of the argument."""
    words = {}
    if summary.effective_samples is not None:
        words["sample_weight"] = f"one for each sample; {summary.effective_samples:,.0f} effective samples"
    elif sample_weight is not None:
        words["sample_weight"] = "one for each sample, all equal"
    if groups is not None:
        words["groups"] = f"{len(np.unique(groups))} groups of samples"
    elif _needs_groups(getattr(model, "cv", None)):
        words["groups"] = "the group of each sample"
    return words


def _needs_groups(cv: Any) -> bool:
    """Return whether a splitter of scikit-learn says that it splits by groups."""
    routing = getattr(cv, "get_metadata_routing", None)
    return routing is not None and routing().split.requests.get("groups") is True


def _settings(model: Any, X: np.ndarray, names: list[str], beside: dict[str, str]) -> list[tuple[str, str]]:
    """Return data, estimator and the arguments that are not the defaults."""
    defaults = type(model)().get_params(deep=False)
    parameters = model.get_params(deep=False)
    changed = {name: value for name, value in parameters.items() if repr(value) != repr(defaults[name])}
    shown = names if len(names) <= MAX_COLUMNS else [*names[:MAX_COLUMNS], "…"]
    return [
        ("data", f"{len(X):,} samples of {X.shape[1]} column{'s' if X.shape[1] > 1 else ''}: {', '.join(shown)}"),
        *(({"sample_weight": "weights"}.get(name, name), words) for name, words in beside.items()),
        ("estimator", type(model).__name__),
        ("number of modes", str(len(model.timescales_))),
        *((name, show_argument(value)) for name, value in changed.items() if name not in ("n_components", "progress")),
    ]


def _certificate_of(summary: FitSummary) -> list[Certificate]:
    """Bound the probability that a search missed its best candidate."""
    search = summary.search
    if search is None or not np.isfinite(search.margin):
        return []
    sizes = search.n_candidates, len(summary.timescales), search.n_folds
    bound = cv_consistency(search.margin, *sizes, search.fold_size, search.concentration)
    return [bound] if bound.holds else []


def _informative(certificates: Sequence[Certificate]) -> list[Certificate]:
    """Leave out bounds that hold but say nothing, such as a probability of at most 1."""
    return [certificate for certificate in certificates if certificate.informative or not certificate.holds]


def _figures(
    model: Any, summary: FitSummary, uncertainty: Uncertainty | None, independence: IndependentModes | None
) -> dict[str, Any]:
    """Draw the figures of the page, by name."""
    from markupsafe import Markup

    from kdmaps import plotting

    def draw_timescales(ax: Any) -> None:
        plotting.plot_timescales(model, ax=ax, uncertainty=uncertainty)
        ax.set_ylabel(summary.columns[1])

    made = {
        "timescales": svg(
            draw_timescales,
            "Time scale of every mode, on a logarithmic axis, and the gap after the last one",
            "timescales",
        )
    }
    if independence is not None:
        made["independence"] = svg(
            lambda ax: plotting.plot_independence(independence, ax), "How much of each mode is new", "independence"
        )
    if summary.search is not None and np.isfinite(model.cv_results_["param_bandwidth"]).any():
        made["landscape"] = svg(
            lambda ax: plotting.plot_landscape(model, ax), "Score over bandwidth for every kernel family", "landscape"
        )
        with suppress(ValueError):  # too few points for a map
            made["map"] = svg(
                lambda ax: plotting.plot_regularization_map(model, ax=ax),
                "Score over bandwidth and regularization for the chosen family",
                "map",
            )
    if summary.relevance is not None and len(summary.relevance.names) > 1:
        made["relevance"] = _relevance(summary.relevance)
    if summary.history is not None and len(summary.history["loss"]) > 2:  # one step makes no curve
        made["history"] = svg(
            lambda ax: plotting.plot_history(summary.history, ax=ax), "Loss over the steps of the optimiser", "history"
        )
    return {name: Markup(text) for name, text in made.items()}


def _relevance(known: Relevance) -> str:
    """Draw how much each mode depends on each input; the page gives it its full width."""
    from kdmaps import plotting

    r = len(known.shares)

    def draw(axes: np.ndarray) -> None:
        plotting.plot_relevance(known, max_inputs=RELEVANT_INPUTS, axes=axes[0])
        axes[0, -1].remove()  # colours of combinations, whose numbers are made for a white page
        places = axes[0, 0].figure.add_gridspec(1, r)
        for k in range(r):
            axes[0, k].set_subplotspec(places[k])

    size = (1.8 + 1.5 * r, 0.9 + 0.24 * max(4, min(RELEVANT_INPUTS + 1, len(known.names))))
    return svg(draw, "Share of every input in the slopes of every mode", "relevance", shape=(1, r + 1), size=size)


def _mode_titles(model: Any, unit: str | None) -> list[str]:
    """Return the titles of the modes: their numbers and time scales."""
    after = "" if unit is None else f" {unit}"
    return [f"mode {k + 1}: {time:.3g}{after}" for k, time in enumerate(model.timescales_)]


def _scatter(
    model: Any, X: np.ndarray, names: list[str], drawn: dict[str, np.ndarray], axes: list[str], max_points: int
) -> dict[str, Any]:
    """Return the samples of the interactive figure: row numbers, names and values of its columns, and its first axes.

    The colour is never one of the axes; -1 is no colour.
    """
    rows = np.arange(len(X))
    if len(X) > max_points:
        rows = np.sort(np.random.default_rng(0).choice(len(X), max_points, replace=False))
    points = np.asarray(X[rows])
    with muted():  # what the fit had to say of them is among the notes
        modes = np.asarray(model.transform(ArraySource(points)))  # a source without names fits a model with names
    r, kept = modes.shape[1], [j for j, name in enumerate(names) if name not in drawn]
    kept = [*(j for j in kept if names[j] in axes), *(j for j in kept if names[j] not in axes)][:MAX_COLUMNS]
    kept.sort()
    columns = [*modes.T, *(values[rows] for values in drawn.values()), *(points[:, j] for j in kept)]
    labels = [*(f"mode {k + 1}" for k in range(r)), *drawn, *(names[j] for j in kept)]
    first = [r + labels[r:].index(name) for name in axes]
    return {
        "rows": rows.tolist(),
        "names": labels,
        "modes": r,
        "values": [[float(f"{value:.4g}") for value in column] for column in columns],
        "total": len(X),
        "start": [*first, 0] if len(first) == 2 else [*first, 0, 1 if r > 1 else -1],
    }
