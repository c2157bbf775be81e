"""Angles as points on a circle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from kdmaps.data.formats.base import block_rows
from kdmaps.data.inputs import as_source
from kdmaps.data.sources import Source
from kdmaps.data.streams import StreamSource
from kdmaps.utils.frames import column_names, like


def angles(X: Any, columns: Sequence[str | int] | None = None, degrees: bool = False) -> Any:
    """Replace angles by their cosine and sine, which are continuous at the end of a turn.

    The pair (cos φ, sin φ) has the metric of φ, d(cos φ)² + d(sin φ)² = dφ², so rates in radians do not change.

    Parameters
    ----------
    X : array-like of shape (n_samples, d), data frame or Source
        Samples; a source is converted in parts.
    columns : sequence of str or int, optional
        Names or numbers of the columns with angles; by default all columns.
    degrees : bool, default=False
        Set if angles are in degrees instead of radians.

    Returns
    -------
    array, data frame or Source
        Each angle is replaced by two columns, named "cos(phi)" and "sin(phi)" if the angle is "phi".

    Examples
    --------
    >>> import numpy as np
    >>> from kdmaps.data import angles
    >>> angles([[1.0, 90.0], [2.0, 180.0]], columns=[1], degrees=True).round(3)
    array([[ 1.,  0.,  1.],
           [ 2., -1.,  0.]])
    """
    if isinstance(X, Source):
        source, names = X, X.feature_names
    else:
        source = as_source(X)
        names = column_names(X)
    chosen = _numbers(columns, names, source.n_features)
    named = None if names is None else [new for j, name in enumerate(names) for new in _names(name, j in chosen)]

    def blocks() -> Iterator[np.ndarray]:
        for part in source.parts(block_rows(source.n_features)):
            yield _on_circles(source.read(part)[1], chosen, degrees)

    if isinstance(X, Source):
        found = StreamSource(blocks, n_samples=source.n_samples, feature_names=named)
        found.times, found.gap = source.times, source.gap
        return found
    values = np.concatenate(list(blocks()))
    return values if named is None else like(X, values, named)


def _on_circles(X: np.ndarray, chosen: set[int], degrees: bool) -> np.ndarray:
    """Replace angles by cosine and sine."""
    values = np.deg2rad(X) if degrees else X
    parts = [(np.cos(values[:, j]), np.sin(values[:, j])) if j in chosen else (X[:, j],) for j in range(X.shape[1])]
    return np.column_stack([column for part in parts for column in part])


def _numbers(columns: Sequence[str | int] | None, names: list[str] | None, width: int) -> set[int]:
    """Return the numbers of the columns with angles."""
    if columns is None:
        return set(range(width))
    if isinstance(columns, str):
        columns = [columns]
    known: dict[Any, int] = {j: j for j in range(width)} | {str(j): j for j in range(width)}
    known |= {name: j for j, name in enumerate(names or [])}
    unknown = [column for column in columns if column not in known]
    if unknown:
        there = f"Columns are numbered 0 to {width - 1}" + (f", named {', '.join(names)}." if names else ".")
        raise ValueError(f"columns: X does not have a column {unknown[0]!r}. {there}")
    return {known[column] for column in columns}


def _names(name: str, angle: bool) -> tuple[str, ...]:
    return (f"cos({name})", f"sin({name})") if angle else (name,)
