"""The data check: finds common mistakes in a fraction of a second before a fit."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.checks import Check, Checks, rules, warn, warn_of
from kdmaps.data.correlation import Order, order_of
from kdmaps.data.findings import CheckedRows, curved_surface, run_checks, time_columns
from kdmaps.data.inputs import as_source, join_trajectories
from kdmaps.data.pairs import ArrayPairs, PairSource
from kdmaps.data.sources import PREVIEW_SAMPLES, ArraySource, Sample, Source
from kdmaps.utils.frames import column_names
from kdmaps.utils.threads import one_blas_thread
from kdmaps.utils.types import SamplesLike
from kdmaps.utils.validation import checked_weight


@one_blas_thread()
def check_data(X: SamplesLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None) -> Checks:
    """Check data for common mistakes. Every fit runs this check and issues each failure as a `DataWarning`.

    It looks for outliers, repeated rows, discrete and one-hot columns, columns that are a time or an index, columns
    with the names of weights, angles that wrap, constant columns, columns of very different scales, weights dominated
    by a few rows, and rows in the order of time (consecutive frames or interleaved walkers). Samples on a curved
    surface are noted here, but fits do not warn.

    Returns
    -------
    kdmaps.checks.Checks
        `failed` lists the mistakes, each with its `code`, `where` (columns or rows), `message()` and `remedy()`;
        `notes` what is worth knowing.

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
    >>> check_data(x).failed
    []
    >>> x[7] = 50
    >>> [(check.code, check.where) for check in check_data(x).failed]
    [('outliers', (7,))]
    """
    X, groups, _ = join_trajectories(X, groups, sample_weight)
    names, source = column_names(X), as_source(X)
    weight = checked_weight(sample_weight, source)
    preview = None if isinstance(source, ArraySource) else _preview(source, weight)
    data = _rows_to_check(source, weight, groups, names, preview)
    found = run_checks(data)
    order = Order() if groups is not None else order_in(source, preview)
    notes = [] if any(check.warns for check in found) else [curved_surface(data.X)]
    few_rows = Check(rules.FEW_ROWS, len(data.X))
    return Checks([few_rows, *found, *order_checks(order), *notes])


def time_check(X: np.ndarray, groups: ArrayLike | None = None, names: Sequence[str] | None = None) -> Check:
    """Check for columns that are a time or an index."""
    return time_columns(_rows_to_check(ArraySource(X), None, groups, names))


def warn_of_data(
    source: Source,
    weight: np.ndarray | None,
    groups: Any,
    *,
    folds: bool = True,
    lag: Any = None,
    time_step: float | None = None,
    diffusion: bool = False,
    detached: bool = True,
) -> None:
    """Warn of mistakes in an array, and of settings that do not suit the data.

    Other sources are checked when their preview is drawn. With a lag, rows are frames in order, and only interleaved
    walkers are a mistake. Without one, the code that makes folds warns of the order of rows. Without `detached`, rows
    behind an empty gap were named before.
    """
    if isinstance(source, ArraySource):
        rows = _rows_to_check(source, weight, groups)
        warn_of(run_checks(rows, folds, lag is not None, diffusion, detached))
        if lag is not None and groups is None:
            warn_of(check for check in order_checks(order_in(source)) if check.rule is rules.INTERLEAVED_WALKERS)
    # Weights cannot correct a bias of pairs, because it also changes their second frames.
    weighted = lag is not None and weight is not None and bool(np.ptp(weight[weight > 0]) > 0)
    warn(Check(rules.WEIGHTED_PAIRS, int(weighted)))
    stepped = lag is None and time_step not in (None, 1)
    warn(Check(rules.TIME_STEP, int(stepped), words={"step": time_step}))


def warn_of_preview(source: Source, preview: Sample, folds: bool = True, diffusion: bool = False) -> None:
    """Warn of mistakes in a preview of a source that is not an array."""
    paired = isinstance(source, PairSource)
    if not isinstance(source.pairs if isinstance(source, PairSource) else source, ArraySource | ArrayPairs):
        warn_of(run_checks(_rows_to_check(source, preview.weight, preview=preview), folds, paired, diffusion))


def order_in(source: Source, preview: Sample | None = None) -> Order:
    """Return the order of the rows of a source, from a preview if it is not an array."""
    if isinstance(source, ArraySource):
        return order_of(source.array)
    sample = _preview(source) if preview is None else preview
    return order_of(sample.X, spacing=(source.n_samples or 0) / len(sample.X))


def order_checks(order: Order) -> list[Check]:
    """Check whether the order of rows matters, and describe the folds that `cv="auto"` makes of it."""
    walkers, time = order.n_walkers, order.correlation_time
    words = {"walkers": walkers, "time": f"{time:.3g}"}
    consecutive = walkers == 1 and not order.sorted
    return [
        Check(rules.INTERLEAVED_WALKERS, max(walkers, 1), words=words),
        Check(rules.SORTED_ROWS, int(walkers == 1 and order.sorted), words=words),
        Check(rules.CONSECUTIVE_FRAMES, float(max(time, 2.0)) if consecutive else 0.0, words=words),
    ]


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
