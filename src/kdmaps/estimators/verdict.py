"""What a fit and a search know of how far to trust their modes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.analysis.correlation import trajectories_of
from kdmaps.analysis.evidence import MOST_AFTER_FIT, MOST_AFTER_SEARCH, Evidence, evidence_at
from kdmaps.analysis.trust import Trust
from kdmaps.bases import FourierBasis, ModeBasis
from kdmaps.data.sources import Sample
from kdmaps.data.support import Support
from kdmaps.estimators.transformer import ModeTransformer, set_trust
from kdmaps.forms.energy import EnergyForm
from kdmaps.selection.candidate import JUDGED, Candidate
from kdmaps.selection.judging import FoldedMoments, SearchData
from kdmaps.selection.result import SearchResult
from kdmaps.selection.rules import pooled_ritz_timescales
from kdmaps.spectrum.pencil import find_modes


def judge_fit(
    model: ModeTransformer,
    sample: Sample,
    form: EnergyForm,
    groups: ArrayLike | None,
    seed: int,
    reset: bool = True,
) -> None:
    """Set `trust_`, the counts of samples and `support_` after a fit without folds.

    Parameters
    ----------
    model : fitted estimator
    sample : Sample
        Samples of the fit, of which some thousand are looked at.
    form : EnergyForm
        At all samples.
    groups : array-like of shape (n_samples,) or None
        Trajectories of all samples.
    seed : int
    reset : bool, default=True
        Whether these are all samples; otherwise there were others before.
    """
    before = None if reset else model.support_
    model.support_ = Support.of(sample.X, seed) if before is None else before.extended(sample.X)
    sample = _thinned(sample, MOST_AFTER_FIT, seed)
    set_trust(model, Trust(_evidence(model, sample, form, groups), model.rates_))


def judge_search(
    model: ModeTransformer, result: SearchResult, chosen: Candidate, moments: FoldedMoments, groups: ArrayLike | None
) -> None:
    """Set `trust_`, the counts of samples and `support_` after a search.

    Parameters
    ----------
    model : fitted estimator
    result : SearchResult
    chosen : Candidate
        What was fitted.
    moments : FoldedMoments
        Its sums over the samples searched.
    groups : array-like of shape (n_samples,) or None
        Trajectories of all samples.
    """
    data = result.data
    model.support_ = Support.of(data.preview.X, data.seed)
    sample = _thinned(data.preview, MOST_AFTER_SEARCH, data.seed)
    own = None if groups is None else np.asarray(groups)[data.rows]
    evidence = _evidence(model, sample, data.form, own)
    evidence = replace(evidence, heaviest=data.rows[evidence.heaviest])
    fit = data.fit_folds(moments, [chosen.regularization])[0]
    if fit is None:
        set_trust(model, Trust(evidence, model.rates_))
        return
    # Rates of the samples searched, to be compared with one another, in units of those of all samples.
    unit = model.rates_ / np.sort(fit.rates)
    held_out = _rates(pooled_ritz_timescales(fit))
    alike = [_rates(np.array(c.timescales)) for c in _alike(result, chosen)]
    others = _other_features(data, moments, chosen.regularization)
    found = (np.array(rates).reshape(-1, len(unit)) * unit for rates in (alike, others))
    set_trust(model, Trust(evidence, model.rates_, held_out * unit, *found))


def _evidence(model: Any, sample: Sample, form: EnergyForm, groups: ArrayLike | None) -> Evidence:
    """Return the evidence of the modes; that of the next one tells how far the gap before it can be trusted."""
    trajectories = None if groups is None else trajectories_of(np.asarray(groups)[sample.rows], len(sample.X))
    modes, r = model.modes_, len(model.rates_)
    coefficients, offset = modes.coefficients, modes.offset
    if modes.next_coefficients is not None:
        coefficients, offset = np.column_stack([coefficients, modes.next_coefficients]), np.append(offset, 0.0)
    basis = ModeBasis(model.basis_, coefficients, offset)
    found = evidence_at(basis, sample, form.tensor, model.moments_.count, trajectories)
    if modes.next_coefficients is not None:
        model.modes_ = replace(modes, gap_error=found.gap_error)
    return found.first(r)


def _thinned(sample: Sample, most: int, seed: int) -> Sample:
    """Return at most so many of the rows, in their order."""
    if len(sample.X) <= most:
        return sample
    kept = np.sort(np.random.RandomState(seed).permutation(len(sample.X))[:most])
    return Sample(sample.rows[kept], sample.X[kept], None if sample.weight is None else sample.weight[kept])


def _rates(timescales: np.ndarray) -> np.ndarray:
    """Return rates, slowest first; infinite where there is no time scale."""
    with np.errstate(divide="ignore"):
        return np.sort(1 / np.maximum(timescales, 0))


def _alike(result: SearchResult, chosen: Candidate) -> list[Candidate]:
    """Return the candidates of the final that score as well as the chosen one, within its standard error."""
    lowest = chosen.value - chosen.standard_error
    final = (c for c in result.candidates if c.judged != JUDGED[0] and not c.rejected and c.agreed)
    return [c for c in final if c.value >= lowest]


def _other_features(data: SearchData, moments: FoldedMoments, regularization: float) -> list[np.ndarray]:
    """Return the rates with another draw of random features, where there are such and the samples are at hand."""
    basis, fit = moments.basis, data.fit
    if not (data.is_small and type(basis) is FourierBasis):
        return []
    spec = replace(data.basis, n_features=basis.n_features)
    other = spec.make(basis.kernel, data.preview.X, data.preview.weight, data.seed + 1)
    (sums,) = data.source.moments(data.form, other, data.weight, engine=fit.engine)
    try:
        modes = find_modes(sums, other.ridge, fit.n_components, regularization, fit.center)
    except ValueError:  # it determines fewer modes
        return []
    return [np.sort(modes.rates)]
