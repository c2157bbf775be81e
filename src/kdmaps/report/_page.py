"""Collect the content of the page, and fill the template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from kdmaps.certificates import Certificate, cv_consistency
from kdmaps.data import ArraySource
from kdmaps.data.correlation import trajectories_of
from kdmaps.data.inputs import join_trajectories
from kdmaps.diagnostics.independence import IndependentModes
from kdmaps.dynamics import Validation, coarse_states, suggest_states, validate
from kdmaps.estimators.model_files import library_versions
from kdmaps.estimators.transformer import ModeTransformer
from kdmaps.report import _figures as figures
from kdmaps.report._program import fingerprint, program, show_argument
from kdmaps.report.text import implied_table, lag_sentences, state_sentences, state_table
from kdmaps.summary import FitSummary, describe_independence, show_interval, summarise
from kdmaps.uncertainty import Uncertainty
from kdmaps.utils.files import replacing
from kdmaps.utils.frames import column_names
from kdmaps.utils.optional import optional
from kdmaps.utils.types import PathLike
from kdmaps.utils.warn import muted

#: Largest number of samples in the interactive figure, and of columns that its axes offer.
MAX_POINTS, MAX_COLUMNS = 3000, 30
#: Largest number of samples in the figures of modes (random) and of states and free energies (equidistant rows).
MODE_SAMPLES, STATE_SAMPLES, ENERGY_SAMPLES = 5_000, 10_000, 50_000
#: Largest number of consecutive frames in the figure of modes against time.
SERIES_FRAMES = 20_000
#: Cells along the slowest mode of weighted samples: few, because barriers have few samples.
WEIGHTED_CELLS = 25
#: Number of typical rows of each state.
TYPICAL = 3


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
    model : fitted estimator
    X : array-like of shape (n_samples, d)
        The training samples. Column names of a data frame name the axes.
    sample_weight, groups : array-like of shape (n_samples,), optional
        As given to `fit`; shown in the settings and in the program. Without them the page still recognises that `fit`
        had weights, or a splitter of scikit-learn that needs groups.
    uncertainty : kdmaps.uncertainty.Uncertainty, optional
        Intervals of the time scales.
    certificates : sequence of Certificate, optional
        Shown after the certificate of the search, except trivial bounds.
    independence : IndependentModes, optional
        From `kdmaps.independent_modes`: which modes are new coordinates.
    notes : sequence of str, optional
        Warnings to show. By default the warnings about the modes.
    title : str, default="Slow modes"
        Heading of the page.
    unit : str, optional
        Unit of the time step between frames, for a model with a lag.
    validation : kdmaps.dynamics.Validation, optional
        Tests of the lag, for a model with a lag. By default they are computed.
    feature_names : sequence of str, optional
        Names of the columns of X, if X has none.
    command : str, optional
        Command line of the fit.
    reading : str, optional
        Lines of Python that read X, and `sample_weight`, `groups` and other arrays if given. They begin the program
        that repeats the fit; without them, the program lists what it needs.
    draw : data frame, dict of columns or array-like of shape (n_samples, k), optional
        Coordinates to draw the modes over, with one number for each sample; they need not be inputs of the fit. The
        figures of modes use the first two, and the interactive figure offers all. By default the two most relevant
        columns of X.
    max_points : int, default=3000
        Largest number of samples in the interactive figure; they are selected at random.
    """
    optional("jinja2", "report", "Reports")  # before anything is computed
    optional("matplotlib", "report", "Reports")
    check_is_fitted(model)
    X, groups, _ = join_trajectories(X, groups)
    names = _column_names(model, X, feature_names)
    X = X if isinstance(X, np.ndarray) else np.asarray(X)
    if X.ndim != 2 or X.shape[1] != model.n_features_in_:
        raise ValueError(f"X has shape {X.shape}; pass the samples, with {model.n_features_in_} columns.")
    for name, values in {"sample_weight": sample_weight, "groups": groups}.items():
        if values is not None and np.shape(values) != (len(X),):
            raise ValueError(f"{name} has shape {np.shape(values)}; pass one for each of the {len(X)} samples.")
    weight = None if sample_weight is None else np.asarray(sample_weight)
    drawn = _checked_draw(draw, len(X))
    tests = validation
    if validation is None:
        with suppress(ValueError), muted():  # without a lag, equilibrium or enough frames there are no tests
            tests = validate(model, ArraySource(X), groups=groups, sample_weight=weight)
    summary = summarise(model, unit=unit, uncertainty=uncertainty, tests=tests)
    coordinates = _coordinates(summary, X, names, drawn)
    given = _given(model, summary, weight, groups)
    bounds = [*_search_certificate(summary), *certificates]
    return _fill_template(
        title=title,
        summary=summary,
        facts=_facts(summary, len(X)),
        notes=summary.warnings if notes is None else list(notes),
        look=_look(model, summary, X, coordinates),
        scatter=_scatter(model, X, names, drawn, list(coordinates), max_points),
        independence=None if independence is None else describe_independence(independence),
        energy=_weighted_energy(model, summary, X, weight),
        dynamics=_dynamics(model, summary, X, groups, weight, tests),
        states=_states(model, summary, X, coordinates, weight),
        figures=figures.fit_figures(model, summary, independence),
        settings=_settings(model, X, names, given),
        certificates=[bound for bound in bounds if bound.informative or not bound.holds],
        command=command,
        python=program(model, given, reading),
        fingerprint=fingerprint(X),
    )


def _fill_template(**content: Any) -> str:
    from jinja2 import Environment, StrictUndefined

    folder = files("kdmaps.report")
    page, style, script = ((folder / f"page.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js"))
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(page).render(style=style, script=script, versions=library_versions(), **content)


def _column_names(model: Any, X: Any, given: Sequence[str] | None) -> list[str]:
    """Return the column names: as given, of a data frame, of the fit, or x1, x2, …."""
    d = model.n_features_in_
    known = given if given is not None else column_names(X)
    known = getattr(model, "feature_names_in_", None) if known is None else known
    names = [f"x{j + 1}" for j in range(d)] if known is None else [str(name) for name in known]
    if len(names) != d:
        raise ValueError(f"feature_names has {len(names)} names for {d} columns.")
    return names


def _checked_draw(draw: Any, n_samples: int) -> dict[str, np.ndarray]:
    """Return columns to draw over, by name."""
    if draw is None:
        return {}
    names = column_names(draw)
    if names is not None or isinstance(draw, Mapping):
        columns = {str(name): np.asarray(draw[name]) for name in (draw if names is None else names)}
    else:
        values = np.asarray(draw)
        values = values[:, None] if values.ndim == 1 else values
        columns = {f"drawn {j + 1}": column for j, column in enumerate(values.T)}
    for name, column in columns.items():
        if column.shape != (n_samples,) or column.dtype.kind not in "fiub":
            raise ValueError(f"draw: column {name} must have one number for each of the {n_samples} samples.")
    return columns


def _coordinates(
    summary: FitSummary, X: np.ndarray, names: list[str], drawn: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return one or two coordinates to draw modes over: as given, or else the most relevant inputs."""
    if drawn:
        return dict([*drawn.items()][:2])
    known = summary.relevance
    order = np.arange(len(names)) if known is None else np.argsort(-known.overall, kind="stable")
    return {names[j]: X[:, j] for j in sorted(order[:2])}


def _facts(summary: FitSummary, n_samples: int) -> list[tuple[str, str]]:
    """Return the numbers at the top of the page."""
    slowest, effective = f"{summary.timescales[0]:.4g}", summary.effective_samples
    if summary.uncertainty is not None:
        slowest += f" ({show_interval(summary.uncertainty.timescale_intervals[0])})"
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


def _given(model: Any, summary: FitSummary, weight: np.ndarray | None, groups: Any) -> dict[str, str]:
    """Describe the weights and groups of a fit, by the name of the argument."""
    given = {}
    if summary.effective_samples is not None:
        given["sample_weight"] = f"one for each sample; {summary.effective_samples:,.0f} effective samples"
    elif weight is not None:
        given["sample_weight"] = "one for each sample, all equal"
    if groups is not None:
        given["groups"] = f"{len(np.unique(groups))} groups of samples"
        return given
    routing = getattr(model.get_params(deep=False).get("cv"), "get_metadata_routing", None)
    if routing is not None and routing().split.requests.get("groups") is True:  # a splitter of scikit-learn
        given["groups"] = "the group of each sample"
    return given


def _settings(model: Any, X: np.ndarray, names: list[str], given: dict[str, str]) -> list[tuple[str, str]]:
    """Return data, estimator and the arguments that differ from the defaults."""
    defaults = type(model)().get_params(deep=False)
    parameters = model.get_params(deep=False)
    changed = {name: value for name, value in parameters.items() if repr(value) != repr(defaults[name])}
    shown = names if len(names) <= MAX_COLUMNS else [*names[:MAX_COLUMNS], "…"]
    return [
        ("data", f"{len(X):,} samples of {X.shape[1]} column{'s' if X.shape[1] > 1 else ''}: {', '.join(shown)}"),
        *(({"sample_weight": "weights"}.get(name, name), text) for name, text in given.items()),
        ("estimator", type(model).__name__),
        ("number of modes", str(len(model.timescales_))),
        *((name, show_argument(value)) for name, value in changed.items() if name not in ("n_components", "progress")),
    ]


def _search_certificate(summary: FitSummary) -> list[Certificate]:
    """Bound the probability that a search missed its best candidate."""
    search = summary.search
    if search is None or not np.isfinite(search.margin):
        return []
    sizes = search.n_candidates, len(summary.timescales), search.n_folds
    bound = cv_consistency(search.margin, *sizes, search.fold_size, search.concentration)
    return [bound] if bound.holds else []


# --- modes at samples -------------------------------------------------------------------------------------------------
def _modes(model: Any, X: np.ndarray) -> np.ndarray:
    """Return the modes at training samples, of which the fit has warned if necessary."""
    with muted():
        return np.asarray(model.transform(ArraySource(np.asarray(X))))  # a source needs no column names


def _random_rows(n_samples: int, most: int) -> np.ndarray:
    if n_samples <= most:
        return np.arange(n_samples)
    return np.sort(np.random.default_rng(0).choice(n_samples, most, replace=False))


def _equidistant_rows(n_samples: int, most: int) -> np.ndarray:
    return np.arange(0, n_samples, -(-n_samples // most))


def _at(coordinates: dict[str, np.ndarray], rows: np.ndarray) -> dict[str, np.ndarray]:
    return {name: values[rows] for name, values in coordinates.items()}


def _look(model: Any, summary: FitSummary, X: np.ndarray, coordinates: dict[str, np.ndarray]) -> dict[str, Any]:
    """Draw every mode over the coordinates."""
    rows = _random_rows(len(X), MODE_SAMPLES)
    values = _modes(model, X[rows])
    made = figures.mode_figures(values, _at(coordinates, rows), summary)
    return {"figures": made, "coordinates": " and ".join(coordinates), "modes": values.shape[1]}


def _scatter(
    model: Any, X: np.ndarray, names: list[str], drawn: dict[str, np.ndarray], axes: list[str], max_points: int
) -> dict[str, Any]:
    """Return rows, columns, first axes and colour (-1 for none) of the interactive figure; no axis is the colour."""
    rows = _random_rows(len(X), max_points)
    points = np.asarray(X[rows])
    modes = _modes(model, points)
    r, kept = modes.shape[1], [j for j, name in enumerate(names) if name not in drawn]
    kept = sorted(sorted(kept, key=lambda j: names[j] not in axes)[:MAX_COLUMNS])
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


def _weighted_energy(model: Any, summary: FitSummary, X: np.ndarray, weight: np.ndarray | None) -> Any | None:
    """Draw the unbiased free energy along the slowest mode, with its barriers; None without weights or with a lag."""
    if weight is None or summary.lag is not None:
        return None
    rows = _equidistant_rows(len(X), ENERGY_SAMPLES)
    return figures.energy_figure(_modes(model, X[rows])[:, :1], weight[rows], WEIGHTED_CELLS)


def _dynamics(
    model: Any, summary: FitSummary, X: np.ndarray, groups: Any, weight: np.ndarray | None, tests: Validation | None
) -> dict[str, Any]:
    """Return sentences, a table and figures of a model with a lag; an empty dict for a model of samples."""
    if summary.lag is None:
        return {}
    longest = max(trajectories_of(groups, len(X)), key=len)[:SERIES_FRAMES]
    some = _equidistant_rows(len(X), ENERGY_SAMPLES)
    titles, table = ([], []) if tests is None else implied_table(tests, summary.unit)
    return {
        "reasons": lag_sentences(summary, tests),
        "columns": titles,
        "rows": table,
        "figures": {
            **figures.lag_figures(summary, tests),
            "series": figures.series_figure(_modes(model, X[longest]), summary),
            "energy": figures.energy_figure(_modes(model, X[some]), None if weight is None else weight[some]),
        },
        "frames": len(longest),
        "all": len(longest) == len(X),
    }


def _states(
    model: Any, summary: FitSummary, X: np.ndarray, coordinates: dict[str, np.ndarray], weight: np.ndarray | None
) -> dict[str, Any]:
    """Return sentences, a table with typical rows, and a figure of coarse states; an empty dict if there are none."""
    if summary.directed:  # states assume equilibrium
        return {}
    rows = _equidistant_rows(len(X), STATE_SAMPLES)
    try:
        found = coarse_states(
            _modes(model, X[rows]), suggest_states(model), sample_weight=None if weight is None else weight[rows]
        )
    except ValueError:  # modes that are constant at the samples
        return {}
    typical = found.representatives(np.asarray(X[rows]), TYPICAL)
    typical = np.where(typical < 0, -1, rows[typical])
    titles, table = state_table(found, typical)
    for k, row in enumerate(table):
        row += [f"{values[typical[k, 0]]:.4g}" for values in coordinates.values()]
    return {
        "columns": [*titles, *(f"{name} of the first" for name in coordinates)],
        "rows": table,
        "sentences": state_sentences(found, summary.rates),
        "figure": figures.state_figure(found, _at(coordinates, rows)),
    }
