"""A candidate: a kernel with a regularization, and what held-out samples say of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kdmaps.kernels import FAMILIES, Kernel, Metric, kernel_from_dict
from kdmaps.selection.rules import Score, jackknife_error

#: How closely candidates are looked at: on the folds that test every sample once, with at most `HEAT_FEATURES`
#: features; on all folds, with all features; the same, with eigenproblems solved to the last digit.
JUDGED = ("on the first folds", "on all folds", "exactly")
HEAT_FEATURES = 150
#: Folds agree on the modes from this mean squared cosine on.
MIN_AGREEMENT = 0.9


@dataclass(frozen=True)
class Trial:
    """A kernel to be judged at some regularizations.

    Attributes
    ----------
    label : str
        As in `Candidate`.
    kernel : Kernel
    basis : str
    lambdas : tuple of float
    judged : str
        One of `JUDGED`.
    """

    label: str
    kernel: Kernel
    basis: str
    lambdas: tuple[float, ...]
    judged: str = "exactly"


@dataclass(frozen=True)
class Candidate:
    """A kernel with a regularization, judged on the folds.

    Attributes
    ----------
    label : str
        Name of the kernel's family, or its representation where the user gave the kernel itself.
    kernel : Kernel
    regularization : float
        λ.
    score : Score
        What selection maximises; -inf if there is no score.
    agreement : float
        Mean squared cosine between the mode spaces of the folds and of all samples.
    condition_number : float
        Of L+λR.
    timescales : tuple of float
        On all samples searched; of pairs of frames the inverse quotients 1/(1-ν).
    fit_seconds, score_seconds : tuple of float
        Time of each fold: its share of the sums over samples and its solve; its score.
    rejected : str
        Why it has no score; empty if it has one.
    basis : str
        What the kernel's functions are made of.
    judged : str
        One of `JUDGED`.
    """

    label: str
    kernel: Kernel
    regularization: float
    score: Score
    agreement: float = np.nan
    condition_number: float = np.nan
    timescales: tuple[float, ...] = ()
    fit_seconds: tuple[float, ...] = ()
    score_seconds: tuple[float, ...] = ()
    rejected: str = ""
    basis: str = "fourier"
    judged: str = "exactly"

    @property
    def agreed(self) -> bool:
        """Whether the folds agree on the modes.

        A mode that rests on a few samples shows no energy on others: it scores high, but every fold has another one.
        """
        return self.agreement >= MIN_AGREEMENT

    @property
    def key(self) -> tuple[bool, float]:
        """What a race maximises: the score, of those candidates first whose modes the folds agree on."""
        return self.agreed, self._score

    @property
    def _score(self) -> float:
        """The score, without its standard error where few folds would have to tell that."""
        return self.score.plain if self.judged == JUDGED[0] and np.isfinite(self.value) else self.value

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
        settings = {"regularization": self.regularization, "basis": self.basis}
        if self.bandwidth is None or isinstance(self.kernel, Metric):
            return {"kernel": self.kernel, **settings}
        return {"kernel": self.label, "bandwidth": self.bandwidth, **settings}

    def lead_error(self, other: Candidate) -> float:
        """Return the standard error of the difference of two scores, which see the same samples."""
        return jackknife_error(self.score.replicates - other.score.replicates)

    def standardised_lead(self, other: Candidate) -> float:
        """Return by how many standard errors of the difference this candidate scores more than another one."""
        return (self._score - other._score) / max(self.lead_error(other), np.finfo(float).tiny)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for a checkpoint."""
        score = [self.score.value, self.score.replicates.tolist(), self.score.fold_values.tolist(), self.score.plain]
        return {**vars(self), "kernel": self.kernel.to_dict(), "score": score}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Candidate:
        """Invert `to_dict`."""
        value, replicates, fold_values, plain = data["score"]
        lists = {name: tuple(entry) for name, entry in data.items() if isinstance(entry, list)}
        score = Score(value, np.array(replicates), np.array(fold_values), plain)
        return cls(**{**data, **lists, "kernel": kernel_from_dict(data["kernel"]), "score": score})
