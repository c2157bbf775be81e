"""Eigenvalues of the Koopman operator in the complex plane, phases of its eigenfunctions, and coherent sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.plotting._common import LEARNED, add_colorbar, coordinates_of, mode_axes, one_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kdmaps.dynamics import CoherentSets, Koopman
    from kdmaps.utils.types import SamplesLike

#: Cyclic and uniform in lightness: no phase looks special.
CYCLIC = "twilight"
#: Ticks of phases.
PHASES = {-np.pi: "-π", 0.0: "0", np.pi: "π"}


def plot_koopman(koopman: Koopman, *, exact: ArrayLike | None = None, ax: Axes | None = None) -> Axes:
    """Draw eigenvalues of the Koopman operator in the complex plane, with the unit circle.

    Parameters
    ----------
    koopman : kdmaps.dynamics.Koopman
        If it has resamples, these are drawn as clouds; eigenvalues that fail a test are hollow.
    exact : array-like of complex, optional
        Known eigenvalues after one lag, drawn as crosses.
    ax : Axes, default=new figure
    """
    ax, values = one_axes(ax), koopman.eigenvalues
    turn = np.linspace(0, 2 * np.pi, 400)
    ax.plot(np.cos(turn), np.sin(turn), color="0.6", lw=0.8, zorder=0)
    ax.axhline(0, color="0.85", lw=0.8, zorder=0)
    if koopman.samples is not None:
        cloud = koopman.samples.ravel()
        ax.scatter(cloud.real, cloud.imag, s=8, color="0.5", alpha=0.3, lw=0, label="resamples")
    ok = np.ones(len(values), dtype=bool) if koopman.trust is None else koopman.trust.ok
    for chosen, face, label in ((ok, LEARNED, "eigenvalues"), (~ok, "none", "doubtful")):
        if chosen.any():
            ax.scatter(values[chosen].real, values[chosen].imag, s=9, facecolor=face, edgecolor=LEARNED, label=label)
    for k, value in enumerate(values):
        ax.annotate(str(k + 1), (value.real, value.imag), xytext=(4, 4), textcoords="offset points", fontsize=7)
    if exact is not None:
        known = np.asarray(exact, dtype=complex)
        ax.scatter(known.real, known.imag, marker="x", s=30, color="black", label="exact")
    ax.set(xlabel="real part", ylabel="imaginary part", aspect="equal", title="eigenvalues after one lag")
    ax.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    return ax


def plot_phases(
    koopman: Koopman,
    X: ArrayLike,
    *,
    which: Sequence[int] | None = None,
    coordinates: Sequence[int] = (0, 1),
    axes: Sequence[Axes] | np.ndarray | None = None,
    point_size: float = 6,
) -> np.ndarray:
    """Draw the phases of oscillating eigenfunctions over the samples, one period from -π to π.

    Parameters
    ----------
    koopman : kdmaps.dynamics.Koopman
    X : array-like of shape (n_samples, d)
        The samples.
    which : sequence of int, optional
        Eigenfunctions, counted from 0. By default one of each conjugate pair.
    coordinates : sequence of one or two int, default=(0, 1)
        Columns of X to draw over.
    axes : sequence of Axes, default=new figure
    point_size : float, default=6
        Area of a scatter point, in points².
    """
    chosen = np.flatnonzero(koopman.rates.imag > 0) if which is None else np.asarray(which, dtype=int)
    if not len(chosen):
        raise ValueError("No eigenvalue oscillates; name eigenfunctions with which.")
    phases = np.angle(np.asarray(koopman.eigenfunctions(X))[:, chosen])
    X, shown, labels = coordinates_of(X, coordinates)
    axes = mode_axes(axes, len(chosen))
    for ax, k, phase in zip(axes, chosen, phases.T, strict=True):
        ax.set_title(f"phase {k + 1}, period {koopman.periods[k]:.3g}")
        draw_phase(ax, phase, [*X[:, shown].T], labels, point_size, bar=ax is axes[-1])
    return axes


def draw_phase(
    ax: Axes, phase: np.ndarray, columns: Sequence[np.ndarray], labels: Sequence[str], size: float, *, bar: bool = True
) -> None:
    """Draw phases over one or two columns."""
    x, y = [*columns, phase][:2]
    drawn = ax.scatter(x, y, c=phase, cmap=CYCLIC, vmin=-np.pi, vmax=np.pi, s=size, lw=0, rasterized=True)
    ax.set(xlabel=labels[0], ylabel=[*labels, "phase"][1])
    if bar:
        add_colorbar(drawn, ax, label="phase", ticks=[*PHASES], format=lambda value, _: PHASES.get(value, ""))


def plot_coherent_sets(
    sets: CoherentSets,
    first: SamplesLike,
    second: SamplesLike,
    *,
    coordinates: Sequence[int] = (0, 1),
    axes: Sequence[Axes] | np.ndarray | None = None,
    point_size: float = 6,
) -> np.ndarray:
    """Draw the particles of every coherent set in one colour, at the first and at the second time.

    Parameters
    ----------
    sets : kdmaps.dynamics.CoherentSets
    first, second : array-like of shape (n, d)
        Positions of the particles, or other coordinates of them.
    coordinates : sequence of two int, default=(0, 1)
        Columns to draw over.
    axes : sequence of two Axes, default=new figure
    point_size : float, default=6
        Area of a scatter point, in points².
    """
    axes = mode_axes(axes, 2)
    for ax, X, label, title in zip(axes, (first, second), sets.labels.T, ("first time", "second time"), strict=True):
        X, shown, names = coordinates_of(X, coordinates)
        if len(X) != len(label) or len(shown) != 2:
            raise ValueError(f"{title}: positions must be {len(label)} rows of at least 2 columns, got {X.shape}.")
        for k in range(len(sets.coherence)):
            ax.scatter(*X[label == k][:, shown].T, s=point_size, lw=0, color=f"C{k}", label=f"set {k + 1}")
        ax.set(title=title, xlabel=names[0], ylabel=names[1])
    axes[-1].legend(fontsize=7, markerscale=2, loc="upper left", bbox_to_anchor=(1.01, 1))
    return axes
