"""The data check: what samples hold that is probably not meant, found in a fraction of a second before a fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.data.correlation import Order, order_of
from kdmaps.data.findings import Finding, Looked, curved_surface, run_checks, time_columns
from kdmaps.data.inputs import as_source, join_trajectories
from kdmaps.data.pairs import ArrayPairs, PairSource
from kdmaps.data.sources import PREVIEW_SAMPLES, ArraySource, Sample, Source
from kdmaps.exceptions import DataWarning
from kdmaps.utils.frames import column_names
from kdmaps.utils.types import SamplesLike
from kdmaps.utils.validation import checked_weight
from kdmaps.utils.warn import warn


def check_data(
    X: SamplesLike,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
) -> list[Finding]:
    """Look for what is probably not meant: before every fit this runs by itself, and each finding is a `DataWarning`.

    The checks are for outliers, copies of rows, discrete and one-hot columns, columns that are a time or an index, or
    weights by their names, angles that wrap, constant columns and columns of very different scales, weights that few
    rows dominate, and rows in the order of time: consecutive frames or interleaved walkers. Samples on a curved surface
    are noted, but not warned of before a fit.

    Parameters
    ----------
    X : array-like of shape (n_samples, d), list of such arrays, path, stream of chunks
        Anything that `kdmaps.data.as_source` takes; of what is not in memory, 10,000 random rows are looked at.
    sample_weight : array-like of shape (n_samples,), optional
        Rows of weight 0 are left out.
    groups : array-like of shape (n_samples,), optional
        The trajectory of each row; the order of rows is then known.
    feature_names : sequence of str, optional
        Names of the columns, where X has none.

    Returns
    -------
    list of Finding

    Examples
    --------
    >>> import numpy as np
    >>> from kdmaps.data import check_data
    >>> x = np.random.default_rng(0).standard_normal((500, 2))
    >>> check_data(x)
    []
    >>> x[7] = 50
    >>> [(finding.name, finding.where) for finding in check_data(x)]
    [('outliers', (7,))]
    """
    X, groups, _ = join_trajectories(X, groups, sample_weight)
    names = column_names(X) if feature_names is None else feature_names
    source = as_source(X)
    weight = checked_weight(sample_weight, source)
    preview = None if isinstance(source, ArraySource) else _preview(source, weight)
    looked = _look(source, weight, groups, names, preview)
    findings = run_checks(looked)
    order = Order() if groups is not None else order_in(source, preview)
    # Columns that are no coordinates make or hide surfaces; and a surface is no reason to warn before a fit.
    surface = None if findings else curved_surface(looked.X)
    return [*findings, *order_findings(order), *([] if surface is None else [surface])]


def find_time(X: np.ndarray, groups: ArrayLike | None = None, names: Sequence[str] | None = None) -> Finding | None:
    """Return the finding of columns that are a time or an index, if there are any: the first of the checks alone."""
    return time_columns(_look(ArraySource(X), None, groups, names))


def warn_of_array(
    source: Source, weight: np.ndarray | None, groups: Any, *, folds: bool = True, lag: int | None = None
) -> None:
    """Warn of what is found in the rows of an array; other sources are looked at when their preview is drawn.

    Parameters
    ----------
    source, weight, groups :
        The rows.
    folds : bool
        Whether rows are held out. (What their order tells is said where folds are made of it.)
    lag : int, optional
        With a lag rows are frames in order, unless they are those of walkers that take turns.
    """
    if not isinstance(source, ArraySource):
        return
    warn_of(run_checks(_look(source, weight, groups), folds, lag is not None))
    if lag is not None and groups is None and (order := order_in(source)).n_walkers > 1:
        warn_of(order_findings(order))


def warn_of_weighted_pairs(weight: np.ndarray | None, lag: Any) -> None:
    """Warn of weights that differ beside a lag: of biased frames they do not mend what pairs show.

    A pair has the weight of its first frame. With weights π/law this is the stationary law of pairs, if the runs
    themselves are those of the system, and only their starts are not in equilibrium. Under a bias, what becomes of a
    frame is the bias's doing too, and no weight of frames takes it back.
    """
    if lag is None or weight is None or np.ptp(weight[weight > 0]) == 0:
        return
    warn(
        "sample_weight beside lag: a pair of frames has the weight of its first frame, which is right for runs without "
        "a bias that begin out of equilibrium. Frames of a biased simulation follow one another as the bias wants, and "
        "their time scales are wrong with any weights; leave out lag and keep sample_weight for them.",
        DataWarning,
    )


def warn_of_time_step(time_step: float, lag: Any) -> None:
    """Warn of a time step that nothing is done with."""
    if lag is None and time_step != 1:
        warn(
            f"time_step={time_step:g} has no effect without a lag: time scales of samples are in units of length²/D. "
            'Give lag=1 (or "auto") if X is a trajectory, or leave time_step out.',
            DataWarning,
        )


def warn_of_preview(source: Source, preview: Sample, folds: bool = True) -> None:
    """Warn of what is found in some rows of a source that is no array."""
    paired = isinstance(source, PairSource)
    if not isinstance(source.pairs if isinstance(source, PairSource) else source, ArraySource | ArrayPairs):
        warn_of(run_checks(_look(source, preview.weight, preview=preview), folds, paired))


def warn_of(findings: Iterable[Finding]) -> None:
    """Issue a `DataWarning` for each finding."""
    for finding in findings:
        warn(str(finding), DataWarning)


def order_in(source: Source, preview: Sample | None = None) -> Order:
    """Tell how the rows of a source depend on rows nearby; of what is no array, from the rows of a preview."""
    if isinstance(source, ArraySource):
        return order_of(source.array)
    sample = _preview(source) if preview is None else preview
    return order_of(sample.X, spacing=(source.n_samples or 0) / len(sample.X))


def order_findings(order: Order) -> list[Finding]:
    """Put the order of rows into words, with the folds that `cv="auto"` makes of it."""
    if order.n_walkers == 0:
        return []
    k, time = order.n_walkers, f"{order.correlation_time:.3g}"
    if k == 1:
        return [
            Finding(
                "consecutive frames",
                (),
                f"Rows depend on the rows before them (correlation time about {time} rows), as consecutive frames of a "
                "trajectory do.",
                "If they are, without a bias, use lag='auto' and time_step for time scales in real time. Without a lag "
                "folds are blocks of rows, with a gap of that time between them. If rows are in no order of time, "
                "shuffle them or pass cv=3.",
            )
        ]
    return [
        Finding(
            "interleaved walkers",
            (),
            f"Rows depend on the row {k} before them (correlation time about {time} such steps), as the frames of {k} "
            "walkers that take turns do.",
            f"Folds and the bootstrap keep each walker together; say so yourself with groups, the walker of each row "
            f"(its number modulo {k}). If there are no walkers, shuffle the rows, or pass cv=3 or the right groups.",
        )
    ]


def _preview(source: Source, weight: np.ndarray | None = None) -> Sample:
    return source.sample(PREVIEW_SAMPLES, np.random.RandomState(0), weight, typical=False)


def _look(
    source: Source,
    weight: np.ndarray | None,
    groups: Any = None,
    names: Sequence[str] | None = None,
    preview: Sample | None = None,
) -> Looked:
    """Return the rows to look at: all of an array in memory, the first ones of a file, or those of a preview."""
    if preview is not None:
        X, rows = preview.X, preview.rows
    else:
        n = source.n_samples or 0
        rows = np.arange(n if source.many_passes else min(n, PREVIEW_SAMPLES))
        X = source.read(slice(0, len(rows)))[1]
    groups = np.asarray(groups)[rows] if np.shape(groups) == (source.n_samples,) else None
    own_weight = weight if weight is None or len(weight) == len(rows) else weight[rows]
    if own_weight is not None and not own_weight.all():
        kept = np.flatnonzero(own_weight)
        X, rows, groups = X[kept], rows[kept], None if groups is None else groups[kept]
    return Looked(X, rows, weight, groups, source.feature_names if names is None else names)
