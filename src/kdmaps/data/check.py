"""The data check: finds common mistakes in a fraction of a second before a fit."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.data.correlation import Order, order_of
from kdmaps.data.findings import NOTED_SCALES, CheckedRows, Finding, curved_surface, run_checks, scales, time_columns
from kdmaps.data.inputs import as_source, join_trajectories
from kdmaps.data.pairs import ArrayPairs, PairSource
from kdmaps.data.sources import PREVIEW_SAMPLES, ArraySource, Sample, Source
from kdmaps.exceptions import DataWarning
from kdmaps.utils.frames import column_names
from kdmaps.utils.threads import one_blas_thread
from kdmaps.utils.types import SamplesLike
from kdmaps.utils.validation import checked_weight
from kdmaps.utils.warn import warn


@one_blas_thread()
def check_data(
    X: SamplesLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
) -> list[Finding]:
    """Check data for common mistakes. Every fit runs this check and issues each finding as a `DataWarning`.

    It looks for outliers, repeated rows, discrete and one-hot columns, columns that are a time or an index, columns
    with the names of weights, angles that wrap, constant columns, columns of very different scales, weights dominated
    by a few rows, and rows in the order of time (consecutive frames or interleaved walkers). Samples on a curved
    surface, and columns whose scales differ by more than a factor of 100, are noted here, but fits do not warn.

    Parameters
    ----------
    X : array-like of shape (n_samples, d), list of such arrays, path, stream of chunks
        Anything that `kdmaps.data.as_source` takes. Data that are not in memory are represented by 10,000 random rows.
    sample_weight : array-like of shape (n_samples,), optional
        Rows of weight 0 are left out.
    groups : array-like of shape (n_samples,), optional
        The trajectory of each row; the order of rows is then not checked.

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
    names, source = column_names(X), as_source(X)
    weight = checked_weight(sample_weight, source)
    preview = None if isinstance(source, ArraySource) else _preview(source, weight)
    data = _rows_to_check(source, weight, groups, names, preview)
    findings = run_checks(data)
    order = Order() if groups is not None else order_in(source, preview)
    note = None if findings else scales(data, NOTED_SCALES) or curved_surface(data.X)
    return [*findings, *order_findings(order), *([] if note is None else [note])]


def find_time(X: np.ndarray, groups: ArrayLike | None = None, names: Sequence[str] | None = None) -> Finding | None:
    """Return the finding about columns that are a time or an index, if any."""
    return time_columns(_rows_to_check(ArraySource(X), None, groups, names))


def warn_of_data(
    source: Source,
    weight: np.ndarray | None,
    groups: Any,
    *,
    folds: bool = True,
    lag: Any = None,
    time_step: float | None = None,
) -> None:
    """Warn of findings in an array, and of settings that do not suit the data.

    Other sources are checked when their preview is drawn. With a lag, rows are frames in order, and only interleaved
    walkers are a mistake. Without one, the code that makes folds warns of the order of rows.
    """
    if isinstance(source, ArraySource):
        warn_of(run_checks(_rows_to_check(source, weight, groups), folds, lag is not None))
        if lag is not None and groups is None and (order := order_in(source)).n_walkers > 1:
            warn_of(order_findings(order))
    # Weights cannot correct a bias of pairs, because it also changes their second frames.
    if lag is not None and weight is not None and np.ptp(weight[weight > 0]) > 0:
        warn(
            "sample_weight with lag: each pair of frames has the weight of its first frame, which is correct for "
            "unbiased runs that start out of equilibrium. Frames of a biased simulation follow the biased dynamics, "
            "and their time scales are wrong with any weights. If there is a bias, leave out lag and keep "
            "sample_weight.",
            DataWarning,
        )
    if lag is None and time_step not in (None, 1):
        warn(
            f"time_step={time_step:g} has no effect without a lag: time scales of samples are in units of length²/D. "
            'Give lag=1 (or "auto") if X is a trajectory; otherwise leave out time_step.',
            DataWarning,
        )


def warn_of_preview(source: Source, preview: Sample, folds: bool = True) -> None:
    """Warn of findings in a preview of a source that is not an array."""
    paired = isinstance(source, PairSource)
    if not isinstance(source.pairs if isinstance(source, PairSource) else source, ArraySource | ArrayPairs):
        warn_of(run_checks(_rows_to_check(source, preview.weight, preview=preview), folds, paired))


def warn_of(findings: Iterable[Finding]) -> None:
    """Issue a `DataWarning` for each finding."""
    for finding in findings:
        warn(str(finding), DataWarning)


def order_in(source: Source, preview: Sample | None = None) -> Order:
    """Return the order of the rows of a source, from a preview if it is not an array."""
    if isinstance(source, ArraySource):
        return order_of(source.array)
    sample = _preview(source) if preview is None else preview
    return order_of(sample.X, spacing=(source.n_samples or 0) / len(sample.X))


def order_findings(order: Order) -> list[Finding]:
    """Describe the order of rows, and the folds that `cv="auto"` makes of it."""
    k, time = order.n_walkers, f"{order.correlation_time:.3g}"
    if k == 0:
        return []
    if k > 1:
        finding = Finding(
            "interleaved walkers",
            (),
            f"Rows depend on the row {k} places before (correlation time about {time} such steps), like interleaved "
            f"frames of {k} walkers.",
            f"Folds and the bootstrap keep each walker together; pass groups, the walker of each row (its number "
            f"modulo {k}), to state this explicitly. Otherwise shuffle the rows, or pass cv=3 or the right groups.",
        )
    elif order.sorted:
        finding = Finding(
            "sorted rows",
            (),
            "Rows follow a trend, but consecutive rows do not depend on each other otherwise, like a sorted table.",
            "They are taken for independent samples, with random folds. If they are frames of a trajectory, pass lag, "
            "or cv=kdmaps.BlockedKFold(5); otherwise shuffle the rows, or pass cv=3.",
        )
    else:
        finding = Finding(
            "consecutive frames",
            (),
            f"Rows depend on the preceding rows (correlation time about {time} rows), like consecutive frames of a "
            "trajectory.",
            "If they are frames of an unbiased simulation, use lag='auto' and time_step for time scales in real time. "
            "Without a lag, folds are blocks of rows, separated by gaps of that time. If the order of rows has no "
            "meaning, shuffle them or pass cv=3.",
        )
    return [finding]


def _preview(source: Source, weight: np.ndarray | None = None) -> Sample:
    return source.sample(PREVIEW_SAMPLES, np.random.RandomState(0), weight, typical=False)


def _rows_to_check(
    source: Source,
    weight: np.ndarray | None,
    groups: Any = None,
    names: Sequence[str] | None = None,
    preview: Sample | None = None,
) -> CheckedRows:
    """Return the rows to check: a preview, all rows of an array in memory, or the first rows of a file."""
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
    return CheckedRows(X, rows, weight, groups, source.feature_names if names is None else names)
