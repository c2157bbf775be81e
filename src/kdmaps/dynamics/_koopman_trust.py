"""Tests of Koopman eigenfunctions on frames that they were not fitted to."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kdmaps.bases import LandmarkBasis, ModeBasis
from kdmaps.checks import Check, muted, rules
from kdmaps.data.pairs import make_pairs, paired_rows
from kdmaps.data.sources import ArraySource
from kdmaps.diagnostics.projection import Projection
from kdmaps.forms.lagged import LaggedForm
from kdmaps.selection.folds import FOLDS, make_folds, make_splits
from kdmaps.selection.plan import FitSpec
from kdmaps.spectrum.directed import excess, refit, smoothest, two_sided
from kdmaps.utils.frames import aligned
from kdmaps.utils.notebook import TableCard

#: Bounds of `KoopmanTrust.limits`, two standard errors √(k/n) of a correlation after k lags in n frames; with eight
#: decay times these are 0.4. In the time in which half of the variance is forgotten, 0.05 is a decay that is wrong by
#: 14 %, or a phase by 3°; polynomials on a limit cycle, whose decay rates are 1.6 times too large, have 0.08.
RESIDUALS = (0.05, 0.25)
#: Consecutive frames of each block on which eigenfunctions are tested.
TESTED = 50_000
#: Largest unpredictable part of the change of a mode in one lag, of the most predictable mode, in systems that are
#: called deterministic: residuals due to noise are below a tenth of the change. And most functions of pseudo-spectra.
MAX_NOISE, FUNCTIONS = 0.01, 50


@dataclass(frozen=True, eq=False, repr=False)
class KoopmanTrust(TableCard):
    """Eigenfunctions ψ fitted without a block of the frames, tested on that block.

    The error E|ψ(y) - λψ(x)|² of a noisy system is 1 - |λ|² for any ψ that was fitted to the same frames, so that plain
    residuals show nothing. On held-out frames a poor ψ leaves more. After one short lag every smooth function is nearly
    an eigenfunction; several lags show whether its correlations are λ^k.
    """

    eigenvalues: np.ndarray  #: (r,) complex: to be checked.
    held_out: np.ndarray  #: (r,) complex: E[ψ̄(x)ψ(y)]/E|ψ(x)|² on held-out frames.
    agreement: np.ndarray  #: (r,): mean squared cosine between ψ and its counterparts in the folds.
    #: (r,): held-out E|ψ(y) - λψ(x)|² in excess of 1 - |λ|², relative to |λ|²: positive where ψ is overfitted.
    overfit: np.ndarray
    #: (r,): |ρ/λ^k - 1| for the held-out correlation ρ = E[ψ̄(x_t)ψ(x_{t+k})]/E|ψ|² after k lags: 0 for eigenfunctions.
    residuals: np.ndarray
    steps: np.ndarray  #: (r,): k, the number of lags after which |λ|^2k is about ½, or as many as a block has.
    limits: np.ndarray  #: (r,): largest `residuals` that sampling explains.

    @property
    def ok(self) -> np.ndarray:
        """True for eigenfunctions that pass all three tests; (r,)."""
        open_ = self.residuals > self.limits
        return ~np.any([check.failed for check in reproducibility(self.agreement, self.overfit)], axis=0) & ~open_

    def __repr__(self) -> str:
        titles, rows = self.cells()
        return "\n".join(
            [f"{int(self.ok.sum())} of {len(self.ok)} eigenfunctions pass all tests", *aligned([titles, *rows])]
        )

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return titles and rows of a table of the tests as text."""
        titles = ["", "agreement of folds", "overfit", "residual", "limit of residual"]
        columns = zip(self.ok, self.agreement, self.overfit, self.residuals, self.limits, strict=True)
        return titles, [
            [f"{'' if ok else '⚠ '}{k}", f"{agreement:.2f}", f"{overfit:.2g}", f"{residual:.2g}", f"{limit:.2g}"]
            for k, (ok, agreement, overfit, residual, limit) in enumerate(columns, start=1)
        ]

    @property
    def checks(self) -> list[Check]:
        """The checks of these numbers; eigenfunctions that other frames do not reproduce have no residual."""
        reproduced = reproducibility(self.agreement, self.overfit)
        poor = np.any([check.failed for check in reproduced], axis=0)
        relative = np.where(poor, np.nan, self.residuals / self.limits)
        worst = 0 if poor.all() else int(np.nanargmax(relative))
        words = {
            "steps": int(self.steps[worst]),
            "residual": float(self.residuals[worst]),
            "most": float(self.limits[worst]),
        }
        return reproduced if poor.all() else [*reproduced, Check(rules.KOOPMAN_OPEN, relative, words=words)]


def reproducibility(agreement: np.ndarray, overfit: np.ndarray) -> list[Check]:
    """Check whether other frames reproduce eigenfunctions."""
    return [Check(rules.KOOPMAN_UNSTABLE, agreement), Check(rules.KOOPMAN_OVERFIT, overfit)]


def tested(
    fitted: Any, values: np.ndarray, reference: np.ndarray, source: Any, groups: Any, weight: Any, frames: Projection
) -> tuple[KoopmanTrust | None, list[Any]]:
    """Fit eigenfunctions without each block of frames, and test them on it; `reference` are coefficients.

    Also returns, for a deterministic system, sums of the pairs with and without the block.
    """
    basis, lag, r = fitted.basis_, fitted.modes_.clock.lag, len(values)
    settings, deterministic, folded = (basis.ridge, fitted.regularization), noise_of(fitted) <= MAX_NOISE, []
    labels = None if groups is None else np.asarray(groups)
    starts_of_pairs = paired_rows(len(frames.rows), lag, labels)[0]
    spec = FitSpec(r, lag=lag, reversible=False, cv=FOLDS)
    with muted():  # the fit has warned of short trajectories
        pairs, of_pairs, pair_groups = make_pairs(source, lag, weight, groups)
    splits = make_splits(spec.splitter, pairs.rows_for_splitters, pair_groups, r, 0)
    landmarks = basis.landmarks if isinstance(basis, LandmarkBasis) else None
    if landmarks is not None and len(landmarks) > len(starts_of_pairs) / 2:
        landmarks = None  # too few other frames to test on; coefficients are fitted without the test frames anyway
    folds = make_folds(splits, pairs, of_pairs, r, landmarks)
    whole, parts = folds.moments(pairs, LaggedForm(lag, False), basis, of_pairs, **spec.summing)
    starts = np.argsort(frames.rows)[starts_of_pairs]
    longest = max(1, min(min(len(test) for _, test in splits) // (4 * lag), frames.longest // (2 * lag)))
    with np.errstate(divide="ignore"):
        steps = np.clip(np.round(np.log(0.5) / (2 * np.log(np.abs(values)))), 1, longest).astype(int)
    covariance, sums, agreement = two_sided(whole).first, np.zeros((5, r), dtype=complex), np.zeros(r)
    for (train, rest), (_, test) in zip(parts, splits, strict=True):
        functions, known, cosines = refit(train, covariance, reference, *settings)
        agreement += cosines / len(parts)
        both = np.hstack([functions.real, functions.imag])
        parts_of_psi = ModeBasis(basis, both, two_sided(train).first_mean @ both)
        sums += _errors(frames, source, np.sort(starts[test])[:TESTED], parts_of_psi, known, steps)
        if deterministic:
            smooth = smoothest(two_sided(train), basis.ridge, FUNCTIONS)
            folded.append([two_sided(part.reduced(smooth)) for part in (train, rest)])
    variance, cross, error, size, later = sums
    if not (variance.all() and size.all()):  # trajectories of two frames
        return None, folded
    overfit = excess(error.real / variance.real, values)
    residuals = np.abs(later / size.real / values**steps - 1)
    limits = np.clip(2 * np.sqrt(steps / sum(min(len(test), TESTED) for _, test in splits)), *RESIDUALS)
    return KoopmanTrust(values, cross / variance.real, agreement, overfit, residuals, steps, limits), folded


def noise_of(fitted: Any) -> float:
    """Return the unpredictable part, 1 - σ², of the change E|g(y) - g(x)|² of a mode g in one lag: the smallest one."""
    own = fitted.moments_.reduced(fitted.right_modes_.coefficients)
    correlations = 1 - fitted.modes_.quotients
    with np.errstate(divide="ignore", invalid="ignore"):  # conserved quantities do not change
        return float(np.nanmin((1 - correlations**2) * own.weight / (2 * np.diag(own.energy))))


def _errors(
    frames: Projection, source: Any, block: np.ndarray, parts: ModeBasis, values: np.ndarray, steps: np.ndarray
) -> np.ndarray:
    """Return sums over pairs that begin in a block, for functions ψ, given as real and imaginary parts.

    Σ|ψ(x)|², Σψ̄(x)ψ(y) and Σ|ψ(y) - λψ(x)|² after one lag; the first and the last of these after k lags.
    """
    rows, n = frames.rows[block], len(values)
    ascending = np.argsort(rows)
    X = ArraySource(np.asarray(source.take(rows[ascending]), dtype=np.float64), checked=True)
    psi = np.empty((len(block), n), dtype=complex)
    evaluated = X.project(parts, np.ones(2 * n), parts.chunk_rows)
    psi[ascending] = evaluated[:, :n] + 1j * evaluated[:, n:]
    weights = np.ones(len(block)) if frames.weight is None else frames.weight[block]

    def sums(steps: np.ndarray) -> np.ndarray:
        found = np.zeros((3, n), dtype=complex)
        for k in np.unique(steps):
            later = block + k * frames.lag
            place = np.minimum(np.searchsorted(block, later), len(block) - 1)
            first = np.flatnonzero((block[place] == later) & (frames.owner[block] == frames.owner[block[place]]))
            x, y = psi[first], psi[place[first]]
            terms = (np.abs(x) ** 2 + np.abs(y) ** 2) / 2, x.conj() * y, np.abs(y - values**k * x) ** 2
            found = np.where(steps == k, [weights[first] @ term for term in terms], found)
        return found

    return np.array([*sums(np.ones_like(steps)), *sums(steps)[:2]])
