"""The sections of the page about a fit, one function each."""

import ast
import hashlib
import textwrap
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from kdmaps import plotting
from kdmaps.checks import muted
from kdmaps.data.correlation import LEAST_TIME, trajectories_of
from kdmaps.data.sources import ArraySource
from kdmaps.forms.diffusion import Factor
from kdmaps.plotting.common import draw_phase
from kdmaps.report import _figures as figures
from kdmaps.report._figures import figure
from kdmaps.report._subject import ENERGY_SAMPLES, MODE_SAMPLES, Subject
from kdmaps.report.sections import (
    Beside,
    Code,
    Explorer,
    Heading,
    Items,
    Section,
    Table,
    Text,
    checks_section,
    clock_table,
)
from kdmaps.report.text import (
    TYPICAL,
    count_states,
    failed_tests,
    implied_sentence,
    implied_table,
    lag_sentences,
    state_sentences,
    state_table,
)
from kdmaps.summary import describe_independence, list_relevant, with_unit
from kdmaps.utils.numbers import rounded

#: Largest number of consecutive frames in the figure of modes against time.
SERIES_FRAMES = 20_000
#: Cells along the slowest mode of weighted samples: few, because barriers have few samples.
WEIGHTED_CELLS = 25
#: Largest number of columns that the axes of the interactive figures offer.
MAX_COLUMNS = 30


def samples(subject: Subject) -> Section:
    """Linked interactive figures: rows, columns, states and times of samples, and the columns to show first."""
    rows, states = subject.random_rows(subject.max_points), subject.analysis.states
    points, modes, axes = np.asarray(subject.X[rows]), subject.modes_at(rows), list(subject.coordinates())
    names, summary, r = subject.names, subject.summary, modes.shape[1]
    drawn = subject.drawn or subject.coordinates()  # angles of torsions are not columns
    kept = [j for j, name in enumerate(names) if name not in drawn]
    kept = sorted(sorted(kept, key=lambda j: names[j] not in axes)[:MAX_COLUMNS])
    columns = [*modes.T, *(values[rows] for values in drawn.values()), *(points[:, j] for j in kept)]
    labels = [*(f"mode {k + 1}" for k in range(r)), *drawn, *(names[j] for j in kept)]
    first = [r + labels[r:].index(name) for name in axes]
    plane = [0, 1] if r > 1 else [first[0], 0]
    time = None
    if summary.lag is not None:
        time = len(labels)
        labels.append(with_unit("time", summary.unit))
        columns.append(rows * summary.time_step)
    explorer = {
        "rows": rows.tolist(),
        "names": labels,
        "modes": r,
        "values": [[float(f"{value:.{8 if j == time else 4}g}") for value in c] for j, c in enumerate(columns)],
        "total": len(subject.X),
        "states": None if states is None else subject.analysis.state_labels(rows).tolist(),
        "panels": [plane, *([first] if len(first) == 2 else []), *([] if time is None else [[time, 0]])],
        "time": time,
        "inputs": {r + len(drawn) + place: j for place, j in enumerate(kept)},  # columns of X
    }
    shown, n = len(rows), len(subject.X)
    verdict = f"{shown:,} of {n:,} samples, drawn at random." if shown < n else f"All {n:,} samples."
    return Section("samples", "Samples", verdict, [Explorer(explorer)])


def modes(subject: Subject) -> Section:
    """Every mode over the two inputs that matter for it."""
    rows, r = subject.random_rows(MODE_SAMPLES), len(subject.summary.timescales)
    values, drawn = subject.modes_at(rows), []
    for k in range(min(r, figures.DRAWN_MODES)):
        coordinates = {name: column[rows] for name, column in subject.coordinates(k).items()}
        drawn.append(figures.mode_figure(k, values[:, k], coordinates, subject.summary))
    which = "Every mode" if len(drawn) == r else f"The first {len(drawn)} of {r} modes"
    over = "the given coordinates" if subject.drawn else "the inputs that it depends on most"
    text = (
        "A mode is a function of the state of the system that relaxes exponentially with this time scale: transitions "
        "between samples of different colours are slow."
    )
    if subject.summary.directed:
        text = (
            "Modes of a system out of equilibrium are singular functions: the functions of the state that predict most "
            "of the state one lag later. Only eigenvalues have periods and decay rates."
        )
    else:
        over += ", with the time scale"
    return Section(
        "modes", "Modes", f"{which} over {over}.", [Beside(drawn, small=True), Text(f"{text} Signs are arbitrary.")]
    )


def times(subject: Subject) -> Section:
    """Time scales with intervals."""
    summary, known = subject.summary, subject.summary.uncertainty
    sentences = [summary.time_unit]
    if summary.unit_diffusion:
        sentences.append(
            "Samples alone do not determine D. Time scales assume one diffusion constant for all directions; otherwise "
            "even their order can be wrong. A trajectory (`--lag`) gives true time scales."
        )
    directed = subject.analysis.koopman is not None
    if known is None and not directed:
        sentences.append("For intervals, pass the result of `kdmaps.uncertainty.bootstrap` as `uncertainty`.")
    elif known is not None:
        time = known.correlation_time  # at least 1, and about 1 for independent rows
        correlated = f"; the modes decorrelate within about {time:.3g} samples" if time >= LEAST_TIME else ""
        sentences.append(
            f"Intervals from a bootstrap of {known.n_blocks} blocks of {known.block_length} samples or "
            f"more{correlated}. The intervals cover the sampling error "
            "for the chosen kernel. The uncertainty of direction is an upper confidence bound on the angle between a "
            "mode and the same mode of other samples."
        )
    draw = partial(plotting.plot_timescales, subject.model, None, uncertainty=known, unit=summary.unit)
    text = "Time scale of every mode, on a logarithmic axis, and the gap after the last one"
    caption = (
        "The grey band ends at the time scale of the next mode, which is not shown. If it is thin, the number of modes "
        "splits a group with nearly the same time scale."
    )
    beside: list[Any] = [Text(" ".join(sentences)), figure(draw, text, "timescales", caption)]
    if (found := subject.independence) is not None:
        draw, caption = partial(plotting.plot_independence, found), describe_independence(found)
        beside.append(figure(draw, "How much of each mode is new", "independence", caption))
    verdict = f"Slowest: {summary.slowest}; the next mode is faster by a factor of {summary.gap:.3g}."
    if directed:
        verdict = "Singular values σ as times, −lag/ln σ. They are not relaxation times: those are in Oscillations."
    table = Table("time scales", summary.columns, summary.rows)
    tables = [table] if summary.clock is None else [table, clock_table(summary.clock)]
    return Section("times", "Singular functions" if directed else "Time scales", verdict, [*tables, Beside(beside)])


def energy(subject: Subject) -> Section | None:
    """Unbiased free energy along the slowest mode, with its barriers, of weighted samples without a lag."""
    if subject.analysis.sample_weight is None or subject.summary.lag is not None:
        return None
    rows = subject.equidistant_rows(ENERGY_SAMPLES)
    caption = (
        "Free energy −ln p of the weighted samples along the slowest mode, without the bias. It refers to the mode as "
        "the coordinate, not to the inputs."
    )
    text = (
        "The band is one standard error, from ten blocks of consecutive samples. The curve has gaps where a cell "
        "contains no samples."
    )
    picture = figures.energy_figure(subject.modes_at(rows)[:, :1], subject.weight_at(rows), caption, WEIGHTED_CELLS)
    return Section("energy", "Free energy", "", [Beside([picture, Text(text)])])


def trajectory(subject: Subject) -> Section | None:
    """Modes in time, free energy, and the tests of a lag."""
    summary, tests = subject.summary, subject.analysis.validation
    if summary.lag is None:
        return None
    longest = max(trajectories_of(subject.analysis.groups, len(subject.X)), key=len)[:SERIES_FRAMES]
    some = subject.equidistant_rows(ENERGY_SAMPLES)
    part = "" if len(longest) == len(subject.X) else f" in {len(longest)} frames of the longest trajectory"
    caption = (
        "Free energy −ln p along the slowest modes, white where its standard error is 1 kT or more. It refers to the "
        "modes as coordinates, not to the inputs."
    )
    series = figures.series_figure(subject.modes_at(longest), summary, f"Modes against time{part}, with histograms.")
    blocks: list[Any] = [
        Beside([series, figures.energy_figure(subject.modes_at(some), subject.weight_at(some), caption)])
    ]
    if subject.analysis.koopman is None:
        sentences = [*lag_sentences(summary, tests), *(check.message() for check in failed_tests(tests))]
        blocks += [Heading("Is the lag long enough?"), Items(sentences)]
    if tests is not None:
        blocks += [
            Table("implied time scales", *implied_table(tests, summary.unit)),
            Text(implied_sentence(subject.model)),
        ]
    blocks.append(Beside(figures.lag_figures(summary, tests)))
    return Section("dynamics", "Trajectory", f"Lag: {summary.lag_time}.", blocks)


def oscillations(subject: Subject) -> Section | None:
    """Eigenvalues of the Koopman operator, and phases of oscillating eigenfunctions."""
    found = subject.analysis.koopman
    if found is None:
        return None
    rows, turning = subject.random_rows(MODE_SAMPLES), np.flatnonzero(found.rates.imag > 0)
    caption = "Eigenvalues after one lag and their resamples; unit circle."
    drawn = [
        figure(lambda ax: plotting.plot_koopman(found, ax=ax), "Eigenvalues in the complex plane", "koopman", caption)
    ]
    if turning.size:
        coordinates = {name: column[rows] for name, column in subject.coordinates().items()}
        with muted():  # the fit has warned of these samples
            values = found.eigenfunctions(ArraySource(np.asarray(subject.X[rows])))[:, turning[0]]
        caption = f"Phase of eigenfunction {turning[0] + 1} over the samples, from -π to π."
        names, phase = list(coordinates), np.angle(values)
        draw = partial(draw_phase, phase=phase, columns=[*coordinates.values()], labels=names, size=4)
        drawn.append(figure(draw, f"Phase over {' and '.join(names)}", "phase", caption, size=figures.MODE_SIZE))
    text = (
        "The system is not assumed to be in equilibrium: eigenvalues of the Koopman operator are complex. Rates are "
        "ln λ over the lag. The agreement of folds is 1 if an eigenfunction does not change when a block of frames is "
        "left out; the residual is the predictable part that λψ misses."
    )
    table = Table("eigenvalues", *found.cells())
    return Section(
        "oscillations", "Oscillations", f"{found.slowest(subject.summary.unit)}.", [table, Beside(drawn), Text(text)]
    )


def states(subject: Subject) -> Section | None:
    """Coarse states with their populations and typical rows."""
    found, rows = subject.analysis.states, subject.analysis.state_rows
    if found is None:
        return None
    typical = found.representatives(np.asarray(subject.X[rows]), TYPICAL)
    typical = np.where(typical < 0, -1, rows[typical])
    coordinates = subject.coordinates()
    titles, table = state_table(found, typical)
    for k, row in enumerate(table):
        row += [f"{values[typical[k, 0]]:.4g}" for values in coordinates.values()]
    titles = [*titles, *(f"{name} of the first" for name in coordinates)]
    populations = ", ".join(f"{part:.0%}" for part in found.populations)
    return Section(
        "states",
        "States",
        f"{count_states(found)}; populations of the regions: {populations}.",
        [Table("states", titles, table), *map(Text, state_sentences(found, subject.summary.rates))],
    )


def passages(subject: Subject) -> Section | None:
    """Mean first passage times between the states of a trajectory."""
    times, summary = subject.analysis.passages, subject.summary
    if times is None:
        return None
    i, j = np.unravel_index(np.argmax(times.times), times.times.shape)
    unit = summary.unit or ("frames" if summary.time_step == 1 else "the unit of the time step")
    slowest = f"{rounded(times.times[i, j], 3)} {summary.unit or ''}".strip()
    return Section(
        "passages",
        "Passage times",
        f"Slowest passage: from state {times.labels[i] + 1} to state {times.labels[j] + 1} in {slowest} on average.",
        [
            Table("passage times", *times.cells()),
            Text(
                f"Mean first passage times between the cores of states, in {unit}, with {times.confidence:.0%} "
                "intervals. A time scale is shorter: between two states, its inverse is the sum of both rates."
            ),
        ],
    )


def inputs(subject: Subject) -> Section | None:
    """Shares of the inputs in every mode."""
    known = subject.analysis.relevance
    if len(known.names) < 2:
        return None
    first = list_relevant(known, 0)
    return Section(
        "inputs", "Relevance of the inputs", f"Mode 1 depends on {first}.", [figures.relevance_figure(known)]
    )


def choice(subject: Subject) -> Section:
    """Chosen kernel, and why it was chosen."""
    reasons = subject.summary.reasons
    blocks: list[Any] = [Items(reasons[:3])]
    if len(reasons) > 3:
        blocks.append(Items(reasons[3:], "Further steps of the choice"))
    blocks.append(Beside(figures.choice_figures(subject.model, subject.summary)))
    return Section("choice", "Choice of the kernel", f"`{subject.summary.chosen}`", blocks)


def checks(subject: Subject) -> Section:
    """All checks with their numbers and limits, and notes."""
    return checks_section(subject.summary.checks)


def certificate(subject: Subject) -> Section | None:
    """Bound on the probability of a wrong choice, with its constants and assumptions, unless it is trivial."""
    search = subject.summary.search
    bound = None if search is None else search.result.certificate
    if bound is None or not bound.informative or not np.isfinite(bound.constants["Δ"]):  # infinite for one candidate
        return None
    verdict = f"Probability that the search missed the best candidate: at most {bound.value:.3g}."
    constants = [f"{name} = {value:.4g}" for name, value in bound.constants.items()]
    details = Items([*constants, *bound.assumptions], "Constants and assumptions")
    return Section("certificates", "Certificate", verdict, [details])


def settings(subject: Subject) -> Section:
    """Columns, estimator and the arguments that differ from the defaults."""
    model, X, names = subject.model, subject.X, subject.names
    defaults = type(model)().get_params(deep=False)
    parameters = model.get_params(deep=False)
    changed = {name: value for name, value in parameters.items() if repr(value) != repr(defaults[name])}
    shown = names if len(names) <= MAX_COLUMNS else [*names[:MAX_COLUMNS], "…"]
    rows = [
        ("data", f"{len(X):,} samples of {X.shape[1]} column{'s' if X.shape[1] > 1 else ''}: {', '.join(shown)}"),
        *(({"sample_weight": "weights"}.get(name, name), text) for name, text in _given(subject).items()),
        ("estimator", type(model).__name__),
        ("number of modes", str(len(model.timescales_))),
        *((name, _show_argument(value)) for name, value in changed.items() if name not in ("n_components", "progress")),
    ]
    return Section("settings", "Settings", "", [Table("settings", (), rows, plain=True)])


def _given(subject: Subject) -> dict[str, str]:
    """Describe the weights and groups of a fit, by the name of the argument."""
    given, effective = {}, subject.summary.effective_samples
    if effective is not None:
        given["sample_weight"] = f"one for each sample; {effective:,.0f} effective samples"
    elif subject.analysis.sample_weight is not None:
        given["sample_weight"] = "one for each sample, all equal"
    groups = subject.analysis.groups
    if groups is not None:
        given["groups"] = f"{len(np.unique(groups))} groups of samples"
        return given
    routing = getattr(subject.model.get_params(deep=False).get("cv"), "get_metadata_routing", None)
    if routing is not None and routing().split.requests.get("groups") is True:  # a splitter of scikit-learn
        given["groups"] = "the group of each sample"
    return given


def reproduction(subject: Subject) -> Section:
    """Command, program and fingerprint of the samples."""
    again = _program(subject.model, _given(subject), subject.reading)
    blocks = [Code(text) for text in (subject.command, again) if text]
    digest = f"Samples (SHA-256 of the rows as 64-bit floats): `{_fingerprint(subject.X)}`"
    return Section("again", "How to reproduce", "", [*blocks, Text(digest)])


def _show_argument(value: Any) -> str:
    """Write an argument on one line, arrays by their shape."""
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}"
    if isinstance(value, Factor):
        return f"factor of shape {value.array.shape}"
    return textwrap.shorten(repr(value), 200, placeholder=" …")


def _program(model: Any, given: dict[str, str], reading: str | None) -> str:
    """Write a program that repeats the fit; arguments that cannot be written as code are names in it."""
    import kdmaps  # classes that it has are imported from there, others from their module up to its private part

    parameters = model.get_params(deep=False)
    named = {name: value for name, value in parameters.items() if not _is_code(value)}
    changes: dict[str, Any] = {name: _Name(name) for name in named}
    if "progress" in parameters:
        changes["progress"] = False
    plain = clone(model).set_params(**changes)
    written = [value for name, value in parameters.items() if name not in named]
    classes = {type(model), *_classes_in(written)}
    classes = {c for c in classes if c.__module__ != "builtins"}
    known = {c: "kdmaps" if getattr(kdmaps, c.__name__, None) is c else c.__module__ for c in classes}
    imports = {f"from {module.partition('._')[0]} import {c.__name__}" for c, module in known.items()}
    if reading is None:
        needed = [f"# {name}: the given {_show_argument(value)}" for name, value in named.items()]
        needed += [f"# {name}: as given to fit, {text}" for name, text in given.items()]
    else:
        lines = reading.splitlines()
        imports |= {line for line in lines if line.startswith(("from ", "import "))}
        needed = [line for line in lines if line not in imports]
    arguments = ", ".join(["X", *(f"{name}={name}" for name in given)])
    made = f"model = {plain.__repr__(N_CHAR_MAX=10**6)}"
    return "\n".join([*sorted(imports), "", *needed, made, f"model.fit({arguments})"])


def _classes_in(value: Any) -> Iterator[type]:
    """Yield the class of an argument, and of the kernels or other objects in it."""
    inside = value if isinstance(value, list | tuple) else getattr(value, "kernels", ())
    yield type(value)
    for item in inside:
        yield from _classes_in(item)


def _is_code(value: Any) -> bool:
    """Return whether evaluating the representation of an argument, with its classes imported, reproduces it."""
    try:
        tree = ast.parse(repr(value), mode="eval")
    except SyntaxError:
        return False
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return names <= {c.__name__ for c in _classes_in(value)} and not isinstance(value, np.ndarray)


class _Name(str):
    """A string represented without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def _fingerprint(X: np.ndarray) -> str:
    """Return the SHA-256 of the samples as 64-bit floats, row by row."""
    digest, source = hashlib.sha256(), ArraySource(X, checked=True)  # reads a mapped file in parts
    for part in source.parts(2**16):
        digest.update(np.ascontiguousarray(source.read(part)[1], dtype="<f8").tobytes())
    return digest.hexdigest()


#: Sections in their order on the page.
SECTIONS: tuple[Callable[[Subject], Section | None], ...] = (
    samples,
    oscillations,
    modes,
    times,
    energy,
    trajectory,
    states,
    passages,
    inputs,
    choice,
    checks,
    certificate,
    settings,
    reproduction,
)
