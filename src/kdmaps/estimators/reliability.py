"""How reliable the modes of a fit or a search are: evidence, held-out rates, other candidates, other features."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.bases import Basis, FourierBasis, ModeBasis
from kdmaps.checks import rules
from kdmaps.data.check import order_in
from kdmaps.data.correlation import trajectories_of
from kdmaps.data.pairs import PairSource
from kdmaps.data.sources import Sample, Source
from kdmaps.diagnostics.equilibrium import asymmetry, drift
from kdmaps.diagnostics.evidence import (
    MOST_AFTER_FIT,
    MOST_AFTER_SEARCH,
    Evidence,
    evaluated_at,
    evidence_of,
    values_at,
)
from kdmaps.diagnostics.separation import FEWEST_JUDGED, MOST_ROWS, crosses, find_parts, unseparated
from kdmaps.diagnostics.trust import Equilibrium, Trust
from kdmaps.exceptions import Undetermined
from kdmaps.forms.energy import EnergyForm
from kdmaps.forms.lagged import LaggedForm
from kdmaps.forms.moments import Moments
from kdmaps.selection.candidate import Candidate, Stage
from kdmaps.selection.evaluation import FoldedMoments, SearchData
from kdmaps.selection.folds import BlockedKFold
from kdmaps.selection.result import Search
from kdmaps.selection.scores import jackknife_error, pooled_ritz_timescales
from kdmaps.spectrum.directed import held_out_tests, modes_of
from kdmaps.spectrum.modes import WIDE_GAP, Modes
from kdmaps.utils.validation import unit_weight

#: Held-out quotients replace training quotients that are smaller by more than this many standard errors.
SIGNIFICANT = 1.0


def is_readable(source: Source, form: EnergyForm | LaggedForm, sample: Sample) -> bool:
    """Return True if single samples can be read, or pairs of frames: not the first ones of a stream read only once."""
    whole = isinstance(source, PairSource) and (source.has_rows or source.n_samples == len(sample.rows))
    return isinstance(form, EnergyForm) or whole or bool(sample.rows[-1] >= len(sample.rows))


def evidence_of_fit(
    basis: Basis,
    modes: Modes,
    moments: Moments,
    source: Source,
    sample: Sample,
    form: EnergyForm | LaggedForm,
    groups: ArrayLike | None,
    seed: int,
    most: int = MOST_AFTER_FIT,
    right: Modes | None = None,
    cv: Any = None,
) -> tuple[Modes, Evidence, Equilibrium | None]:
    """Return the modes with the error of the gap after them, the evidence for each, and tests of pairs of frames.

    At most `most` rows of `sample`, drawn from `source`, are used; `groups` are the trajectories of all its samples,
    and `right` the modes of second frames if they differ. The rows of folds `cv` that are blocks are frames.
    """
    sample = sample.thinned(most, seed)
    trajectories = None if groups is None else trajectories_of(np.asarray(groups)[sample.rows], len(sample.X))
    projected, X, r = _with_next(basis, modes), np.asarray(sample.X, dtype=np.float64), len(modes.rates)
    settings, tests = (sample, moments.count, trajectories), None
    if isinstance(form, EnergyForm):
        values, energies = evaluated_at(projected, X, form.tensor, sample.rows, moments.count)
        found = evidence_of(values, energies, *settings)
        few = groups is None and np.any(found.independent_samples < rules.INDEPENDENT_SAMPLES.limit)
        # Rows of a sorted table are independent, as for the folds; some rows of a trajectory may look like a table.
        if few and not isinstance(cv, BlockedKFold) and order_in(source, sample).sorted:
            order = np.random.RandomState(seed).permutation(len(X))
            sample = sample.take(order)
            found = evidence_of(values[order], energies[order], sample, moments.count)
    else:
        values = values_at(projected, X)
        later = np.asarray(source.second_frames(sample.rows), dtype=np.float64)  # type: ignore[attr-defined]
        second = values_at(projected if right is None else _with_next(basis, right), later)
        if right is not None:  # functions of first and of second frames have different means
            weight = unit_weight(sample.weight, len(X))
            values, second = (some - weight @ some for some in (values, second))
        found = evidence_of(values, (second - values) ** 2 / 2, *settings, local=False, directed=right is not None)
        if form.reversible:
            turn = asymmetry(values, second, sample.weight, trajectories)
            pairs, moved = (values[:, :r], second[:, :r]), np.full(r, np.nan)
            if not moments.weighted:  # weights correct the starting points of runs
                moved = drift(*pairs, modes.timescales, trajectories)
            tests = Equilibrium(turn[:r], moved)
    if modes.next_coefficients is not None:
        stretch = modes.clock.stretch(np.array([modes.next_quotient]))[0]
        modes = replace(modes, gap_error=stretch * found.gap_error)
    return modes, found.first(r), tests


def _with_next(basis: Basis, modes: Modes) -> ModeBasis:
    """Return the modes and, if it was computed, the one after the last, which determines the error of the gap."""
    coefficients, offset = modes.coefficients, modes.offset
    if modes.next_coefficients is not None:
        coefficients, offset = np.column_stack([coefficients, modes.next_coefficients]), np.append(offset, 0.0)
    return ModeBasis(basis, coefficients, offset)


def trust_after_search(
    basis: Basis,
    modes: Modes,
    moments: Moments,
    found: Search,
    chosen: Candidate,
    groups: ArrayLike | None,
    right: Modes | None = None,
) -> tuple[Modes, Trust]:
    """Return the modes of all samples with the error of the gap after them, and their reliability after a search.

    `found` has the sums of the `chosen` candidate; `groups` are the trajectories of all samples; with modes `right` of
    second frames, the order of the modes is kept.
    """
    data, weighted = found.data, moments.weighted
    factor, errors = np.ones(len(modes.quotients)), np.zeros(len(modes.quotients))
    if data.complete and data.fit.rates == "ritz":
        factor, errors = optimism(chosen)
    order = np.argsort(modes.quotients * factor, kind="stable") if right is None else np.arange(len(factor))
    raw, factor, errors = modes.quotients[order], factor[order], errors[order]
    # The mode after the last is about as optimistic as the last one.
    following = modes.next_quotient * (factor[np.argmax(raw)] if data.complete else 1.0)
    modes = replace(modes, quotients=modes.quotients * factor[np.argsort(order)], next_quotient=following).take(order)
    own = None if groups is None else np.asarray(groups)[data.rows]
    settings = (data.source, data.preview, data.form, own, data.seed, MOST_AFTER_SEARCH)
    modes, evidence, tests = evidence_of_fit(basis, modes, moments, *settings, right, data.fit.cv)
    evidence = replace(evidence, heaviest=data.rows[evidence.heaviest])
    held_out = _held_out(found, chosen) if data.fit.center else None  # the rate of a constant is rounding error
    if held_out is None:
        return modes, Trust(evidence, modes.rates, weighted=weighted, equilibrium=tests)
    # The quotients of the samples searched are compared with one another, then scaled to all samples.
    unit = raw / _quotients(np.array(chosen.timescales))[order]
    lowest = chosen.value - chosen.standard_error
    final = (c for c in found.result.candidates if c.stage is not Stage.SCREENED and not c.rejected and c.agreed)
    alike = [_quotients(np.array(c.timescales)) for c in final if c.value >= lowest]
    others = _other_features(data, found.moments, chosen.regularization)
    candidates, features = (
        modes.clock.rates(np.array(some).reshape(-1, len(unit))[:, order] * unit * factor) for some in (alike, others)
    )
    rates = (modes.rates, modes.clock.rates(held_out[order] * unit), candidates, features)
    if np.all(factor == 1):
        return modes, Trust(evidence, *rates, weighted, equilibrium=tests)
    return modes, Trust(evidence, *rates, weighted, errors, modes.clock.rates(raw), tests)


def gaps_between_samples(
    basis: Basis, modes: Modes, source: Source, sample: Sample, form: EnergyForm | LaggedForm, seed: int
) -> dict[str, Any]:
    """Return `unseparated` and `parts` of `Trust`; empty if the samples, or pairs of frames, connect all parts."""
    if isinstance(form, LaggedForm) and not form.reversible:
        return {}
    if len(sample.X) < FEWEST_JUDGED:
        return {}
    sample = sample.thinned(MOST_ROWS, seed)
    parts = find_parts(sample.X)
    if parts is None:
        return {}
    if isinstance(form, LaggedForm) and crosses(sample.X, parts, source.second_frames(sample.rows)):  # type: ignore[attr-defined]
        return {}
    values = values_at(ModeBasis(basis, modes.coefficients, modes.offset), np.asarray(sample.X, dtype=np.float64))
    shares = np.bincount(parts[parts >= 0]) / len(parts)
    return {"unseparated": unseparated(values, parts, sample.weight), "parts": shares}


def tests_of_eigenfunctions(found: Search, chosen: Candidate) -> dict[str, Any]:
    """Return `eigenfunctions` and `overfit` of `Trust`, from sums of the search; empty if a fold determines none."""
    basis, whole, parts = found.moments
    try:
        tests = held_out_tests(whole, parts, basis.ridge, chosen.regularization, found.data.fit.n_components)
    except (Undetermined, np.linalg.LinAlgError):
        return {}
    return dict(zip(("eigenfunctions", "overfit"), tests, strict=True))


def optimism(chosen: Candidate) -> tuple[np.ndarray, np.ndarray]:
    """Return held-out over training quotient of each mode, slowest first, and the standard error of its logarithm.

    Modes of similar training quotients, which folds may exchange or mix, have the mean of their logarithms in common.
    Where the difference is not significant, the ratio is 1 and the error 0.
    """
    score, training = chosen.score, 1 / np.array(chosen.timescales)
    ratios, errors = np.ones(len(training)), np.zeros(len(training))
    if score.quotients is None or score.quotient_replicates is None:
        return ratios, errors
    order = np.argsort(training, kind="stable")
    training, replicates = training[order], score.quotient_replicates[:, order]
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = np.log(score.quotients[order] / training)
        apart = np.flatnonzero(training[1:] / training[:-1] > WIDE_GAP) + 1
    for cluster in np.split(np.arange(len(training)), apart):
        mean, error = float(logs[cluster].mean()), jackknife_error(replicates[:, cluster].mean(axis=1))
        if mean > SIGNIFICANT * error:
            ratios[cluster], errors[cluster] = np.exp(mean), error
    return ratios, errors


def _quotients(timescales: np.ndarray) -> np.ndarray:
    """Return quotients, slowest first; infinite without a time scale."""
    with np.errstate(divide="ignore"):
        return np.sort(1 / np.maximum(timescales, 0))


def _held_out(found: Search, chosen: Candidate) -> np.ndarray | None:
    """Return the quotients on held-out samples, from the score or by fitting the folds again."""
    if chosen.score.timescales is not None and chosen.stage is Stage.EXACT:
        return _quotients(chosen.score.timescales)
    fit = found.data.fit_folds(found.moments, [chosen.regularization])[0]
    return None if fit is None else _quotients(pooled_ritz_timescales(fit))


def _other_features(data: SearchData, moments: FoldedMoments, regularization: float) -> list[np.ndarray]:
    """Return the quotients with another draw of random features, if there are such and the samples are in memory."""
    basis, fit = moments.basis, data.fit
    if not (data.is_small and type(basis) is FourierBasis):
        return []
    spec = replace(data.basis, n_features=basis.n_features)
    other = spec.make(basis.kernel, data.preview.X, data.preview.weight, data.seed + 1)
    (sums,) = data.source.moments(data.form, other, data.weight)
    try:
        modes, _ = modes_of(sums, other.ridge, fit.n_components, regularization, fit.center)
    except Undetermined:  # it determines fewer modes
        return []
    return [np.sort(modes.quotients)]
