"""The fit that a page is about, with everything that several sections use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kdmaps.analysis import Analysis
from kdmaps.diagnostics.independence import IndependentModes
from kdmaps.estimators.transformer import ModeTransformer
from kdmaps.summary import FitSummary
from kdmaps.utils.frames import column_names, torsions

#: Largest number of samples in the figures of modes (random) and of free energies (equidistant rows).
MODE_SAMPLES, ENERGY_SAMPLES = 5_000, 50_000


@dataclass(frozen=True, eq=False)
class Subject:
    """An analysis, and how it is shown."""

    analysis: Analysis
    names: list[str]  # of the columns of X
    drawn: dict[str, np.ndarray]  # columns to draw over, given by the user
    summary: FitSummary
    independence: IndependentModes | None
    command: str | None
    reading: str | None
    max_points: int  # in interactive figures

    @property
    def model(self) -> ModeTransformer:
        """The fitted model."""
        return self.analysis.model

    @property
    def X(self) -> np.ndarray:
        """The samples."""
        return self.analysis.X

    def modes_at(self, rows: Any) -> np.ndarray:
        """Return the modes at some samples."""
        return self.analysis.modes[rows]

    def weight_at(self, rows: Any) -> np.ndarray | None:
        """Return the weights of samples, if there are any."""
        weight = self.analysis.sample_weight
        return None if weight is None else weight[rows]

    def random_rows(self, most: int) -> np.ndarray:
        """Return at most this number of rows, drawn at random, in order."""
        n = len(self.X)
        return np.arange(n) if n <= most else np.sort(np.random.default_rng(0).choice(n, most, replace=False))

    def equidistant_rows(self, most: int) -> np.ndarray:
        """Return at most this number of rows at equal distances."""
        return np.arange(0, len(self.X), -(-len(self.X) // most))

    def coordinates(self, mode: int | None = None) -> dict[str, np.ndarray]:
        """Return one or two coordinates to draw over: as given, or else the most relevant inputs of a mode, or all."""
        if self.drawn:
            return dict([*self.drawn.items()][:2])
        relevance = self.analysis.relevance
        shares = relevance.overall if mode is None else relevance.shares[mode]
        if angles := torsions(self.names):
            return {name: np.arctan2(*self.X[:, angles[name]].T) for name in _two_torsions(angles, shares)}
        return {self.names[j]: self.X[:, j] for j in sorted(np.argsort(-shares, kind="stable")[:2])}


def _two_torsions(angles: dict[str, list[int]], shares: np.ndarray) -> list[str]:
    """Return the most relevant torsion with its partner: φ and ψ of one residue, or else the two most relevant."""
    ranked = sorted(angles, key=lambda name: -shares[angles[name]].sum())
    kind, _, residue = ranked[0].partition(" ")
    partner = {"phi": "psi", "psi": "phi"}.get(kind, "") + f" {residue}"
    pair = [ranked[0], partner.strip() if partner.strip() in angles else ranked[-1 if len(ranked) == 1 else 1]]
    return sorted(set(pair), key=list(angles).index)


def checked_names(model: Any, X: Any, given: Sequence[str] | None) -> list[str]:
    """Return the column names: as given, of a data frame, of the fit, or x1, x2, …."""
    d = model.n_features_in_
    known = given if given is not None else column_names(X)
    known = getattr(model, "feature_names_in_", None) if known is None else known
    names = [f"x{j + 1}" for j in range(d)] if known is None else [str(name) for name in known]
    if len(names) != d:
        raise ValueError(f"feature_names has {len(names)} names for {d} columns.")
    return names


def checked_draw(draw: Any, n_samples: int) -> dict[str, np.ndarray]:
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
