"""Candidates of a search: a kernel with a regularization, and its held-out score."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from kdmaps.kernels import FAMILIES, Kernel, Metric, kernel_from_dict
from kdmaps.selection.scores import Score, jackknife_error

#: Features used for screening.
SCREENING_FEATURES = 150
#: Folds agree on the modes if their mean squared cosine is at least this large.
MIN_AGREEMENT = 0.9


class Stage(StrEnum):
    """How closely a candidate was evaluated; only scores of one stage are comparable.

    Screening uses the folds that test every sample once and at most `SCREENING_FEATURES` features; the next stage uses
    all folds and all features; the last one also solves the eigenproblems to full precision.
    """

    SCREENED = "screened"
    ALL_FOLDS = "all folds"
    EXACT = "exact"


@dataclass(frozen=True)
class Axes:
    """The slowest functions of single inputs, or of single principal components, as the origin of a metric."""

    components: bool


@dataclass(frozen=True)
class Recipe:
    """How a kernel is made from samples: in the metric of the inputs, or of the functions of an origin."""

    kernel: Kernel  # without a metric
    basis: str
    regularization: float  # λ of its own modes, which may define the next metric
    origin: Recipe | Axes | None = None  # the functions whose gradients define the metric of the kernel


def origin_of(data: dict[str, Any] | None) -> Recipe | Axes | None:
    """Invert `plain_data` of an origin."""
    if data is None:
        return None
    if "components" in data:
        return Axes(**data)
    return Recipe(**{**data, "kernel": kernel_from_dict(data["kernel"]), "origin": origin_of(data["origin"])})


@dataclass(frozen=True)
class Trial:
    """A kernel to be evaluated at some regularizations."""

    label: str
    kernel: Kernel
    basis: str
    lambdas: tuple[float, ...]
    stage: Stage = Stage.EXACT
    origin: Recipe | Axes | None = None


@dataclass(frozen=True)
class Candidate:
    """A kernel with a regularization, evaluated on the folds."""

    label: str  # the family, or the representation of a kernel given by the user
    kernel: Kernel
    regularization: float  # λ
    score: Score  # its `value` is maximised; -inf without a score
    agreement: float = np.nan  # mean squared cosine between the mode spaces of the folds and of all samples
    condition_number: float = np.nan  # of L+λR
    timescales: tuple[float, ...] = ()  # on all samples searched; for pairs of frames the inverse quotients 1/(1-ν)
    fit_seconds: tuple[float, ...] = ()  # of each fold: its share of the sums over samples, and the solve
    score_seconds: tuple[float, ...] = ()  # of each fold
    rejected: str = ""  # the reason for a missing score
    basis: str = "fourier"
    stage: Stage = Stage.EXACT
    origin: Recipe | Axes | None = None  # the functions that define the metric of the kernel
    n_features: int | None = None  # if it differs from the settings of the search
    few_rows: bool = False  # a few rows carry the variance and the energy of a mode

    @property
    def agreed(self) -> bool:
        """True if the folds agree on the modes; a mode that rests on a few samples scores well, but folds disagree."""
        return self.agreement >= MIN_AGREEMENT

    @property
    def reliable(self) -> bool:
        """Whether the folds agree on the modes and none of these rests on a few rows."""
        return self.agreed and not self.few_rows

    @property
    def order(self) -> tuple[bool, float]:
        """Sort key of the search from coarse to fine: reliable modes first, then score."""
        return self.reliable, self._score

    @property
    def grid_order(self) -> tuple[bool, bool, float]:
        """Sort key of a grid, and of `rank_selection_score`: modes that rest on a few rows last, then score."""
        return not self.rejected, not self.few_rows, self.value

    @property
    def _score(self) -> float:
        """The score; after screening without its standard error, which needs more folds."""
        return self.score.plain if self.stage == Stage.SCREENED and np.isfinite(self.value) else self.value

    @property
    def value(self) -> float:
        """The selection score."""
        return self.score.value

    @property
    def standard_error(self) -> float:
        """Jackknife standard error of the selection score over the folds."""
        return jackknife_error(self.score.replicates)

    @property
    def bandwidth(self) -> float | None:
        """σ of a family given by name; None for a kernel that the user gave."""
        return float(self.kernel.bandwidth) if self.label in FAMILIES else None  # type: ignore[attr-defined]

    @property
    def params(self) -> dict[str, Any]:
        """Arguments that make `KernelDiffusionMap` fit this candidate."""
        settings: dict[str, Any] = {"regularization": self.regularization, "basis": self.basis}
        if self.n_features is not None:
            settings["n_features"] = self.n_features
        if self.bandwidth is None or isinstance(self.kernel, Metric):
            return {"kernel": self.kernel, **settings}
        return {"kernel": self.label, "bandwidth": self.bandwidth, **settings}

    @property
    def recipe(self) -> Recipe:
        """How the candidate is made from samples."""
        kernel = self.kernel.kernel if self.origin is not None and isinstance(self.kernel, Metric) else self.kernel
        return Recipe(kernel, self.basis, self.regularization, self.origin)

    def lead_error(self, other: Candidate) -> float:
        """Return the standard error of the difference of two scores on the same samples."""
        return jackknife_error(self.score.replicates - other.score.replicates)

    def standardised_lead(self, other: Candidate) -> float:
        """Return the lead over another candidate in standard errors of the difference."""
        return (self._score - other._score) / max(self.lead_error(other), np.finfo(float).tiny)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for a checkpoint."""
        score = [self.score.value, self.score.replicates.tolist(), self.score.fold_values.tolist(), self.score.plain]
        return {**plain_data(self), "score": score}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Candidate:
        """Invert `to_dict`."""
        value, replicates, fold_values, plain = data["score"]
        lists = {name: tuple(entry) for name, entry in data.items() if isinstance(entry, list)}
        score = Score(value, np.array(replicates), np.array(fold_values), plain)
        objects = {"kernel": kernel_from_dict(data["kernel"]), "score": score, "stage": Stage(data["stage"])}
        objects["origin"] = origin_of(data["origin"])
        return cls(**{**data, **lists, **objects})


def plain_data(one: Recipe | Trial | Candidate) -> dict[str, Any]:
    """Return fields for a checkpoint, with the kernel and the origin as plain data."""
    origin: Any = plain_data(one.origin) if isinstance(one.origin, Recipe) else one.origin and vars(one.origin)
    return {**vars(one), "kernel": one.kernel.to_dict(), "origin": origin}


def trial_of(candidate: Candidate, lambdas: Iterable[float], stage: Stage = Stage.EXACT) -> Trial:
    """Return a trial with the kernel of a candidate."""
    return Trial(candidate.label, candidate.kernel, candidate.basis, tuple(lambdas), stage, candidate.origin)
