"""Gathers what a page says of a fit, and fills the template."""

from __future__ import annotations

import ast
import hashlib
import os
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.resources import files
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from kdmaps.analysis.certificates import Certificate, cv_consistency
from kdmaps.data import ArraySource
from kdmaps.forms.diffusion import Factor
from kdmaps.forms.tangent import TangentDiffusion
from kdmaps.output.model_files import library_versions
from kdmaps.output.report._figures import svg
from kdmaps.output.words import (
    checks_of,
    chosen,
    complaints_of,
    reasons,
    search_of,
    timescale_columns,
    timescale_intervals,
    timescale_rows,
)
from kdmaps.utils.files import replacing

#: Samples in the interactive figure, and columns of X that its axes offer.
MAX_POINTS, MAX_COLUMNS = 3000, 30
#: What the value of a certificate is, in plain words.
STATEMENTS = {
    "thm:cv-consistency": "probability that the search missed the best candidate",
    "thm:residual-gap": "distance of a mode from the exact one",
    "thm:projector-continuity": "how far the modes move when the weights of the mixture change",
    "prop:lipschitz-operators": "how fast the operators change with the weights of the mixture",
    "prop:uniform-pd": "smallest eigenvalue of L+λR for any weights of the mixture",
    "prop:rkhs-mixture-norm": "squared norm of a function in the space of the mixture",
}


def write_report(model: Any, X: Any, path: str | os.PathLike, **options: Any) -> None:
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
    model: Any,
    X: Any,
    *,
    sample_weight: Any = None,
    groups: Any = None,
    uncertainty: Any = None,
    certificates: Sequence[Certificate] = (),
    notes: Sequence[str] | None = None,
    title: str = "Slow modes",
    feature_names: Sequence[str] | None = None,
    command: str | None = None,
    reading: str | None = None,
    max_points: int = MAX_POINTS,
) -> str:
    """The page that `write_report` writes, as text. The same fit gives the same page.

    Parameters
    ----------
    model, X :
        As in `write_report`.
    sample_weight, groups : array-like of shape (n_samples,), optional
        What `fit` was given beside X, for what was asked and how to reproduce it. Weights are noticed without them,
        and so is a `cv` of scikit-learn that needs groups.
    uncertainty : kdmaps.uncertainty.Uncertainty, optional
        Intervals of the time scales.
    certificates : sequence of Certificate, optional
        Shown beside the one that a search brings with it.
    notes : sequence of str, optional
        Warnings to show. By default those of the modes.
    title : str
    feature_names : sequence of str, optional
        Names of the columns of X, where X has none.
    command : str, optional
        The command line that made the fit.
    reading : str, optional
        Lines of Python that make X, and `sample_weight`, `groups` and other arrays that were given, from the data. They
        become the beginning of the program that fits the model again; without them it names what it needs.
    max_points : int, default=3000
        Samples in the interactive figure, drawn at random if there are more.
    """
    from jinja2 import Environment, StrictUndefined

    check_is_fitted(model)
    names = _column_names(model, X, feature_names)
    X = X if isinstance(X, np.ndarray) else np.asarray(X)
    if X.ndim != 2 or X.shape[1] != model.n_features_in_:
        raise ValueError(f"X has shape {X.shape}; pass the samples, with {model.n_features_in_} columns.")
    timescale_intervals(uncertainty, len(model.timescales_))  # complains before anything is drawn
    beside = _beside(model, len(X), sample_weight, groups)
    bounds = [*_certificate_of(model), *certificates]
    folder = files("kdmaps.report")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((folder / "page.html").read_text(encoding="utf-8"))
    return template.render(
        title=title,
        style=(folder / "page.css").read_text(encoding="utf-8"),
        script=(folder / "page.js").read_text(encoding="utf-8"),
        facts=_facts(model, X, uncertainty),
        asked=_asked(model, X, names, beside),
        chosen=chosen(model),
        reasons=reasons(model),
        columns=timescale_columns(uncertainty),
        rows=timescale_rows(model, uncertainty),
        blocks=uncertainty,
        unit_diffusion=isinstance(getattr(model, "diffusion", None), str | TangentDiffusion | None),
        notes=complaints_of(model) if notes is None else list(notes),
        figures=_figures(model, uncertainty),
        checks=checks_of(model),
        certificates=[(STATEMENTS.get(c.theorem, c.theorem), c) for c in bounds],
        scatter=_scatter(model, X, names, max_points),
        command=command,
        python=_python(model, beside, reading),
        fingerprint=_fingerprint(X),
        versions=library_versions(),
    )


def _column_names(model: Any, X: Any, given: Sequence[str] | None) -> list[str]:
    """Names of the columns: those given, those of a data frame, those of the fit, or x1, x2, …."""
    d = model.n_features_in_
    known = given if given is not None else getattr(X, "columns", getattr(model, "feature_names_in_", None))
    names = [f"x{j + 1}" for j in range(d)] if known is None else [str(name) for name in known]
    if len(names) != d:
        raise ValueError(f"feature_names holds {len(names)} names for {d} columns.")
    return names


def _facts(model: Any, X: np.ndarray, uncertainty: Any) -> list[tuple[str, str]]:
    slowest = f"{model.timescales_[0]:.4g}"
    if uncertainty is not None:
        low, high = uncertainty.timescale_intervals[0]
        slowest += f" ({low:.3g} – {high:.3g})"
    search = search_of(model)
    agreement = [] if search is None else [float(search.cv_results_["fold_agreement"][search.best_index_])]
    return [
        ("samples", f"{len(X):,}"),
        ("longest time scale", slowest),
        (f"gap after mode {len(model.timescales_)}", f"{model.modes_.gap:.3g}"),
        *(("agreement of the folds", f"{value:.3f}") for value in agreement),
    ]


def _beside(model: Any, n_samples: int, sample_weight: Any, groups: Any) -> dict[str, str]:
    """What a fit was given beside the samples, by the name of its argument, in words."""
    given = {"sample_weight": sample_weight, "groups": groups}
    for name, values in given.items():
        if values is not None and np.shape(values) != (n_samples,):
            raise ValueError(f"{name} has shape {np.shape(values)}; pass one for each of the {n_samples} samples.")
    words = {}
    moments = getattr(getattr(model, "best_estimator_", model), "moments_", None)
    # Equal weights are no weights: they leave as many effective samples as there are.
    if moments is not None and not np.isclose(moments.effective_count, moments.count, rtol=1e-9):
        words["sample_weight"] = f"one for each sample; {moments.effective_count:.4g} effective samples"
    elif sample_weight is not None:
        words["sample_weight"] = "one for each sample, all equal"
    if groups is not None:
        words["groups"] = f"{len(np.unique(groups))} groups of samples"
    elif _needs_groups(getattr(model, "cv", None)):
        words["groups"] = "the group of each sample"
    return words


def _needs_groups(cv: Any) -> bool:
    """Whether a splitter of scikit-learn says that it splits by groups."""
    routing = getattr(cv, "get_metadata_routing", None)
    return routing is not None and routing().split.requests.get("groups") is True


def _asked(model: Any, X: np.ndarray, names: list[str], beside: dict[str, str]) -> list[tuple[str, str]]:
    """What the user said: data, estimator and the arguments that are not the defaults."""
    defaults = type(model)().get_params(deep=False)
    parameters = model.get_params(deep=False)
    changed = {name: value for name, value in parameters.items() if repr(value) != repr(defaults[name])}
    shown = names if len(names) <= MAX_COLUMNS else [*names[:MAX_COLUMNS], "…"]
    return [
        ("data", f"{len(X):,} samples of {X.shape[1]} column(s): {', '.join(shown)}"),
        *(({"sample_weight": "weights"}.get(name, name), words) for name, words in beside.items()),
        ("estimator", type(model).__name__),
        ("number of modes", str(len(model.timescales_))),
        *((name, _shown(value)) for name, value in changed.items() if name not in ("n_components", "progress")),
    ]


def _shown(value: Any) -> str:
    """An argument as it was written, on one line; of an array, as a diffusion tensor may be, its shape."""
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}"
    if isinstance(value, Factor):
        return f"factor of shape {value.array.shape}"
    return textwrap.shorten(repr(value), 200, placeholder=" …")


def _certificate_of(model: Any) -> list[Certificate]:
    """What a search can say of its choice."""
    search = search_of(model)
    if search is None or not np.isfinite(search.certainty_["margin"]):
        return []
    known, results = search.certainty_, search.cv_results_
    n_folds = sum(name.startswith("split") for name in results)
    size, concentration = known["fold_size"], known["concentration"]
    return [cv_consistency(known["margin"], len(results["score"]), search.n_components, n_folds, size, concentration)]


def _figures(model: Any, uncertainty: Any) -> dict[str, Any]:
    from markupsafe import Markup

    from kdmaps import plotting

    made = {
        "timescales": svg(
            lambda ax: plotting.plot_timescales(model, ax=ax, uncertainty=uncertainty),
            "Time scale of every mode, on a logarithmic axis, and the gap behind the last one",
            "timescales",
        )
    }
    search = search_of(model)
    if search is not None and np.isfinite(search.cv_results_["param_bandwidth"]).any():
        made["landscape"] = svg(
            lambda ax: plotting.plot_landscape(search, ax), "Score over bandwidth for every kernel family", "landscape"
        )
        with suppress(ValueError):  # too few points for a map
            made["map"] = svg(
                lambda ax: plotting.plot_regularization_map(search, ax=ax),
                "Score over bandwidth and regularization for the chosen family",
                "map",
            )
    history = getattr(model, "history_", getattr(getattr(model, "refinement_", None), "history", None))
    if history is not None and len(history["loss"]) > 2:  # one step makes no curve
        made["history"] = svg(
            lambda ax: plotting.plot_history(model, ax=ax), "Loss over the steps of the optimiser", "history"
        )
    return {name: Markup(text) for name, text in made.items()}


def _scatter(model: Any, X: np.ndarray, names: list[str], max_points: int) -> dict[str, Any]:
    """Samples of the interactive figure: numbers of rows, names and values of the columns that the axes offer."""
    rows = np.arange(len(X))
    if len(X) > max_points:
        rows = np.sort(np.random.default_rng(0).choice(len(X), max_points, replace=False))
    points = np.asarray(X[rows])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        modes = np.asarray(model.transform(points))
    columns = [*modes.T, *points.T[:MAX_COLUMNS]]
    return {
        "rows": rows.tolist(),
        "names": [*(f"mode {k + 1}" for k in range(modes.shape[1])), *names[:MAX_COLUMNS]],
        "modes": modes.shape[1],
        "values": [[float(f"{value:.4g}") for value in column] for column in columns],
        "total": len(X),
    }


def _python(model: Any, beside: dict[str, str], reading: str | None) -> str:
    """A program that fits the model again, with the imports of what it uses; what is no code is a name in it."""
    parameters = model.get_params(deep=False)
    named = {name: value for name, value in parameters.items() if not _is_code(value)}
    changes: dict[str, Any] = {name: _Name(name) for name in named}
    if "progress" in parameters:
        changes["progress"] = False
    plain = clone(model).set_params(**changes)
    written = [value for name, value in parameters.items() if name not in named]
    classes = {type(model), *_classes_in(written)}
    imports = {f"from {_public(c.__module__)} import {c.__name__}" for c in classes if c.__module__ != "builtins"}
    if reading is None:
        needed = [f"# {name}: the {_shown(value)} that was given" for name, value in named.items()]
        needed += [f"# {name}: what was given to fit, {words}" for name, words in beside.items()]
    else:
        lines = reading.splitlines()
        imports |= {line for line in lines if line.startswith(("from ", "import "))}
        needed = [line for line in lines if line not in imports]
    arguments = ", ".join(["X", *(f"{name}={name}" for name in beside)])
    made = f"model = {plain.__repr__(N_CHAR_MAX=10**6)}"
    return "\n".join([*sorted(imports), "", *needed, made, f"model.fit({arguments})"])


def _classes_in(value: Any) -> Iterator[type]:
    """Classes of an argument, and of the kernels or other objects that it holds."""
    inside = value if isinstance(value, list | tuple) else getattr(value, "kernels", ())
    yield type(value)
    for item in inside:
        yield from _classes_in(item)


def _is_code(value: Any) -> bool:
    """Whether the representation of an argument, with its classes imported, makes it again."""
    try:
        tree = ast.parse(repr(value), mode="eval")
    except SyntaxError:
        return False
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return names <= {c.__name__ for c in _classes_in(value)} and not isinstance(value, np.ndarray)


class _Name(str):
    """A string that shows itself without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def _public(module: str) -> str:
    """The part of a module's name before what is private."""
    return module.partition("._")[0]


def _fingerprint(X: np.ndarray) -> str:
    """SHA-256 of the samples as 64-bit floats, row by row."""
    digest, source = hashlib.sha256(), ArraySource(X, checked=True)  # which gives the pages of a file back
    for part in source.parts(2**16):
        digest.update(np.ascontiguousarray(source.read(part)[1], dtype="<f8").tobytes())
    return digest.hexdigest()
