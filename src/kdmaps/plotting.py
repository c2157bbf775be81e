"""Figures. Every function draws on Axes and returns them; matplotlib is imported only when one is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Moreland's diverging map, uniform in lightness towards both ends: equal steps of a mode look equally large.
DIVERGING = "coolwarm"
LEARNED, EXACT = "tab:blue", "black"
#: Modes grow without bound where samples are rare; colours span this part of their values, the rest is saturated.
SHOWN = 0.99


def plot_modes(modes, X, *, coordinates=(0, 1), reference=None, axes=None, titles=None, point_size=6) -> np.ndarray:
    """Each mode over the samples: a curve over one coordinate, a coloured scatter over two.

    Parameters
    ----------
    modes : fitted estimator or array-like of shape (n_samples, r)
        What has `transform`, or the modes at X.
    X : array-like of shape (n_samples, d)
    coordinates : sequence of one or two int, default=(0, 1)
        Columns of X to draw over; data of one column are drawn over that one.
    reference : array-like of shape (n_samples, r), optional
        Exact modes, drawn as a dashed curve over one coordinate. Over two, draw them on axes of their own.
    axes : sequence of r Axes, optional
        By default a new figure with the modes side by side.
    titles : sequence of r str, optional
        By default the number of each mode and, for an estimator, its time scale.
    point_size : float, default=6
        Area of a scatter point, in points².

    Returns
    -------
    axes : ndarray of r Axes
    """
    labels = _coordinate_labels(X)
    values = np.asarray(modes.transform(X) if hasattr(modes, "transform") else modes)
    X = np.asarray(X)
    if values.ndim != 2 or values.shape[0] != X.shape[0]:
        raise ValueError(f"modes has shape {values.shape}; pass one row for each of the {X.shape[0]} samples of X.")
    r = values.shape[1]
    shown = tuple(coordinates)[: X.shape[1]]
    if len(shown) not in (1, 2) or not all(0 <= j < X.shape[1] for j in shown):
        raise ValueError(f"coordinates must be one or two columns of X (0 to {X.shape[1] - 1}), got {coordinates!r}.")
    if titles is None:
        titles = [f"mode {k + 1}" for k in range(r)]
        if hasattr(modes, "timescales_"):
            titles = [f"{title}, time scale {t:.3g}" for title, t in zip(titles, modes.timescales_, strict=True)]
    axes = _new_axes(r) if axes is None else np.ravel(np.asarray(axes, dtype=object))
    if len(axes) != r:
        raise ValueError(f"axes holds {len(axes)} Axes for {r} modes; pass one for each.")
    for k, ax in enumerate(axes):
        if len(shown) == 2:
            _scatter(ax, X[:, shown], values[:, k], point_size)
        else:
            _curve(ax, X, shown[0], values[:, k], None if reference is None else np.asarray(reference)[:, k])
        ax.set(title=titles[k], xlabel=labels[shown[0]], ylabel=labels[shown[1]] if len(shown) == 2 else "mode")
    return axes


def plot_timescales(estimator, exact=None, ax: Axes | None = None) -> Axes:
    """The spectrum of time scales, with the gap behind the last mode.

    Parameters
    ----------
    estimator : fitted estimator
    exact : array-like of shape (r,), optional
        Exact time scales for comparison.
    ax : Axes, optional
        By default a new figure.

    Returns
    -------
    ax : Axes

    Notes
    -----
    The gap is the ratio μ_r/μ_{r+1} of eigenvalues. The band reaches down from the last time scale by that ratio; a
    thin one means that the modes were cut within a cluster.
    """
    from matplotlib.ticker import MaxNLocator

    ax = _new_axes(1)[0] if ax is None else ax
    timescales, gap = estimator.timescales_, estimator.modes_.gap
    number = np.arange(1, len(timescales) + 1)
    if np.isfinite(gap):
        last = timescales[-1]
        ax.axhspan(last / gap, last, color="0.9", zorder=0)
        ax.annotate(f"gap {gap:.2f}", (number[0], last / np.sqrt(gap)), va="center", color="0.35")
    if exact is not None:
        ax.plot(number, exact, linestyle="none", marker="_", markersize=22, markeredgewidth=1.5, c=EXACT, label="exact")
    ax.plot(number, timescales, linestyle="none", marker="o", color=LEARNED, label="learned")
    ax.set(yscale="log", xlabel="mode", ylabel="time scale", xlim=(0.5, len(timescales) + 0.5))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    _plain_log_ticks(ax.yaxis)
    ax.legend(frameon=False, loc="upper right")
    return ax


def plot_landscape(search, ax: Axes | None = None) -> Axes:
    """The score over the bandwidth for each family, at the best regularization of each, with the chosen point.

    Parameters
    ----------
    search : fitted KernelSearchCV, or an estimator with `search_`
    ax : Axes, optional
        By default a new figure.

    Returns
    -------
    ax : Axes
    """
    search = getattr(search, "search_", search)
    ax = _new_axes(1)[0] if ax is None else ax
    results = search.cv_results_
    families, sigmas, score = results["param_family"], results["param_bandwidth"], results["score"]
    for number, family in enumerate(dict.fromkeys(families)):
        at = np.unique(sigmas[(families == family) & np.isfinite(sigmas)])
        best = [np.flatnonzero((families == family) & (sigmas == sigma)) for sigma in at]
        best = [rows[np.argmax(score[rows])] for rows in best]
        if len(at):  # kernels with a bandwidth of their own have no place on this axis
            errors = results["standard_error"][best]
            ax.errorbar(at * 1.01**number, score[best], errors, label=family, marker=".", lw=1.2, elinewidth=0.6)
    chosen = search.best_index_
    ax.plot(sigmas[chosen], score[chosen], "*", ms=14, color="black", mfc="none", label="chosen", zorder=5)
    low = np.nanquantile(score[np.isfinite(score)], 0.1)
    ax.set(xscale="log", xlabel="bandwidth σ", ylabel="score (larger is better)", ylim=(low, None))
    _plain_log_ticks(ax.xaxis)
    ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    return ax


def plot_regularization_map(search, family: str | None = None, ax: Axes | None = None) -> Axes:
    """The score over regularization and bandwidth of one family, with the best point of the map.

    Parameters
    ----------
    search : fitted KernelSearchCV, or an estimator with `search_`
    family : str, optional
        By default the chosen one.
    ax : Axes, optional
        By default a new figure.

    Returns
    -------
    ax : Axes
    """
    search = getattr(search, "search_", search)
    results = search.cv_results_
    family = results["param_family"][search.best_index_] if family is None else family
    mine = np.flatnonzero(results["param_family"] == family)
    sigma, lam = results["param_bandwidth"][mine], results["param_regularization"][mine]
    if mine.size == 0 or np.unique(sigma).size < 2 or np.unique(lam).size < 2:
        raise ValueError(f"family {family!r} was not tried at two bandwidths and two regularizations or more.")
    ax = _new_axes(1)[0] if ax is None else ax
    columns, rows = np.unique(sigma), np.unique(lam)
    grid = np.full((len(rows), len(columns)), np.nan)
    grid[np.searchsorted(rows, lam), np.searchsorted(columns, sigma)] = results["score"][mine]
    grid[~np.isfinite(grid)] = np.nan
    drawn = ax.pcolormesh(columns, rows, grid, shading="nearest", cmap="viridis", vmin=np.nanquantile(grid, 0.2))
    best = mine[np.argmax(results["score"][mine])]
    ax.plot(
        results["param_bandwidth"][best], results["param_regularization"][best], "*", ms=14, color="white", mec="black"
    )
    ax.set(xscale="log", yscale="log", xlabel="bandwidth σ", ylabel="regularization λ", title=family)
    _plain_log_ticks(ax.xaxis)
    figure = ax.get_figure()
    assert figure is not None
    figure.colorbar(drawn, ax=ax, label="score", extend="min")
    return ax


def _new_axes(n: int) -> np.ndarray:
    import matplotlib.pyplot as plt

    return plt.subplots(1, n, figsize=(max(5.0, 3.2 * n), 3.0), layout="constrained", squeeze=False)[1][0]


def _plain_log_ticks(axis) -> None:
    """Label 1, 2 and 5 of each decade as plain numbers: time scales and bandwidths often span a decade or less."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def _coordinate_labels(X: Any) -> list[str]:
    if hasattr(X, "columns"):
        return [str(name) for name in X.columns]
    return [f"$x_{{{j + 1}}}$" for j in range(np.shape(X)[1])]


def _scatter(ax: Axes, points: np.ndarray, mode: np.ndarray, size: float) -> None:
    from matplotlib.colors import CenteredNorm

    norm = CenteredNorm(0, halfrange=float(np.quantile(np.abs(mode), SHOWN)) or 1.0)
    # Large values last: rare samples on the rim are what a mode tells, and would be hidden by the crowd.
    order = np.argsort(np.abs(mode), kind="stable")
    x, y = points[order].T
    drawn = ax.scatter(x, y, c=mode[order], s=size, cmap=DIVERGING, norm=norm, linewidths=0)
    figure = ax.get_figure()
    assert figure is not None
    figure.colorbar(drawn, ax=ax, extend="both")


def _curve(ax: Axes, X: np.ndarray, coordinate: int, mode: np.ndarray, reference: np.ndarray | None) -> None:
    order = np.argsort(X[:, coordinate], kind="stable")
    # Over one coordinate of many, a mode is a cloud and not a function.
    style = {"linestyle": "-"} if X.shape[1] == 1 else {"linestyle": "none", "marker": ".", "markersize": 2}
    ax.axhline(0, color="0.8", linewidth=0.8)
    ax.plot(X[order, coordinate], mode[order], color=LEARNED, label="learned", **style)
    if reference is not None:
        style = {**style, "linestyle": "--"} if X.shape[1] == 1 else style
        ax.plot(X[order, coordinate], reference[order], color=EXACT, label="exact", **style)
        ax.legend(frameon=False)
