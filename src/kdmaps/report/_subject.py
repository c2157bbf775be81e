"""The fit that a page is about, with everything that several sections use."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from kdmaps.data import ArraySource
from kdmaps.diagnostics.independence import IndependentModes
from kdmaps.diagnostics.relevance import Relevance, relevance
from kdmaps.dynamics import CoarseStates, Koopman, PassageTimes, Validation, mean_first_passage_times
from kdmaps.report.text import STATE_SAMPLES, find_states
from kdmaps.summary import FitSummary
from kdmaps.utils.frames import column_names, torsions
from kdmaps.utils.warn import muted

#: Largest number of samples in the figures of modes (random) and of free energies (equidistant rows).
MODE_SAMPLES, ENERGY_SAMPLES = 5_000, 50_000
#: Longer trajectories have no passage times on the page, which should not take longer than the fit.
PASSAGE_FRAMES = 100_000


@dataclass(frozen=True, eq=False)
class Subject:
    """A fitted model, its samples and what is known about them."""

    model: Any
    X: np.ndarray
    names: list[str]  # of the columns of X
    weight: np.ndarray | None
    groups: Any
    drawn: dict[str, np.ndarray]  # columns to draw over, given by the user
    summary: FitSummary
    tests: Validation | None
    independence: IndependentModes | None
    command: str | None
    reading: str | None
    max_points: int  # in interactive figures
    koopman: Koopman | None = None  # of a model out of equilibrium

    def modes_at(self, rows: Any) -> np.ndarray:
        """Return the modes at training samples, of which the fit has warned if necessary."""
        with muted():
            return np.asarray(self.model.transform(ArraySource(np.asarray(self.X[rows]))))  # needs no column names

    def weight_at(self, rows: Any) -> np.ndarray | None:
        """Return the weights of samples, if there are any."""
        return None if self.weight is None else self.weight[rows]

    def random_rows(self, most: int) -> np.ndarray:
        """Return at most this number of rows, drawn at random, in order."""
        n = len(self.X)
        return np.arange(n) if n <= most else np.sort(np.random.default_rng(0).choice(n, most, replace=False))

    def equidistant_rows(self, most: int) -> np.ndarray:
        """Return at most this number of rows at equal distances."""
        return np.arange(0, len(self.X), -(-len(self.X) // most))

    @cached_property
    def relevance(self) -> Relevance:
        """Dependence of the modes on the inputs."""
        known = self.summary.relevance
        with muted():
            return known or relevance(self.model, ArraySource(self.X), self.weight)

    def coordinates(self, mode: int | None = None) -> dict[str, np.ndarray]:
        """Return one or two coordinates to draw over: as given, or else the most relevant inputs of a mode, or all."""
        if self.drawn:
            return dict([*self.drawn.items()][:2])
        shares = self.relevance.overall if mode is None else self.relevance.shares[mode]
        if angles := torsions(self.names):
            return {name: np.arctan2(*self.X[:, angles[name]].T) for name in _two_torsions(angles, shares)}
        return {self.names[j]: self.X[:, j] for j in sorted(np.argsort(-shares, kind="stable")[:2])}

    @cached_property
    def state_rows(self) -> np.ndarray:
        """Rows of the samples from which states are found."""
        return self.equidistant_rows(STATE_SAMPLES)

    @cached_property
    def states(self) -> CoarseStates | None:
        """States of these samples, if there are any."""
        return find_states(self.model, self.modes_at(self.state_rows), self.weight_at(self.state_rows))

    @cached_property
    def passages(self) -> PassageTimes | None:
        """Passage times between the cores of the states; None without a lag, or with too few transitions."""
        if self.summary.lag is None or self.states is None or len(self.X) > PASSAGE_FRAMES:
            return None
        # The cores of the states of some frames, at all frames.
        memberships = self.states.memberships_at(self.modes_at(slice(None)))
        every = replace(self.states, memberships=memberships, labels=memberships.argmax(axis=1))
        with suppress(ValueError), muted():
            return mean_first_passage_times(self.model, ArraySource(self.X), every, groups=self.groups, random_state=0)
        return None


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
