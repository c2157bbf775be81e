"""What a fit and a search know of how far to trust their modes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kdmaps.bases import FourierBasis, ModeBasis
from kdmaps.data.correlation import trajectories_of
from kdmaps.data.distances import Support
from kdmaps.data.pairs import PairSource
from kdmaps.data.sources import Sample, Source
from kdmaps.diagnostics.evidence import MOST_AFTER_FIT, MOST_AFTER_SEARCH, Evidence, energies_at, evidence_of, values_at
from kdmaps.diagnostics.trust import Trust
from kdmaps.estimators.transformer import ModeTransformer, set_trust
from kdmaps.forms.energy import EnergyForm
from kdmaps.forms.lagged import LaggedForm
from kdmaps.selection.candidate import JUDGED, Candidate
from kdmaps.selection.judging import FoldedMoments, SearchData
from kdmaps.selection.result import SearchResult
from kdmaps.selection.rules import pooled_ritz_timescales
from kdmaps.spectrum.pencil import find_modes


def judge_fit(
    model: ModeTransformer,
    source: Source,
    sample: Sample,
    form: EnergyForm | LaggedForm,
    groups: ArrayLike | None,
    seed: int,
    reset: bool = True,
) -> None:
    """Set `trust_`, the counts of samples and `support_` after a fit without folds.

    Parameters
    ----------
    model : fitted estimator
    source : Source
        All samples.
    sample : Sample
        Samples of the fit, of which some thousand are looked at.
    form : EnergyForm or LaggedForm
        At all samples.
    groups : array-like of shape (n_samples,) or None
        Trajectories of all samples.
    seed : int
    reset : bool, default=True
        Whether these are all samples; otherwise there were others before.
    """
    before = None if reset else model.support_
    support = Support.of(sample.X, seed) if before is None else before
    model.support_ = support.extended((sample.X.min(axis=0), sample.X.max(axis=0))).extended(source.bounds())
    # What a later chunk shows alone says little about all samples.
    known = reset and _readable(source, form)
    found = _evidence(model, source, _thinned(sample, MOST_AFTER_FIT, seed), form, groups) if known else None
    set_trust(model, None if found is None else Trust(found, model.rates_))


def judge_search(
    model: ModeTransformer,
    source: Source,
    result: SearchResult,
    chosen: Candidate,
    moments: FoldedMoments,
    groups: ArrayLike | None,
) -> None:
    """Set `trust_`, the counts of samples and `support_` after a search.

    Parameters
    ----------
    model : fitted estimator
    source : Source
        All samples.
    result : SearchResult
    chosen : Candidate
        What was fitted.
    moments : FoldedMoments
        Its sums over the samples searched.
    groups : array-like of shape (n_samples,) or None
        Trajectories of all samples.
    """
    data = result.data
    model.support_ = Support.of(data.preview.X, data.seed).extended(source.bounds())
    sample = _thinned(data.preview, MOST_AFTER_SEARCH, data.seed)
    own = None if groups is None else np.asarray(groups)[data.rows]
    if not _readable(data.source, data.form):
        return
    evidence = _evidence(model, data.source, sample, data.form, own)
    evidence = replace(evidence, heaviest=data.rows[evidence.heaviest])
    held_out = _held_out(data, chosen, moments) if data.fit.center else None  # the rate of a constant has no digits
    if held_out is None:
        set_trust(model, Trust(evidence, model.rates_))
        return
    # Quotients of the samples searched, to be compared with one another, in units of those of all samples.
    modes = model.modes_
    unit = modes.quotients / _quotients(np.array(chosen.timescales))
    alike = [_quotients(np.array(c.timescales)) for c in _alike(result, chosen)]
    others = _other_features(data, moments, chosen.regularization)
    candidates, features = (modes.clock.rates(np.array(some).reshape(-1, len(unit)) * unit) for some in (alike, others))
    set_trust(model, Trust(evidence, model.rates_, modes.clock.rates(held_out * unit), candidates, features))


def _evidence(
    model: Any, source: Source, sample: Sample, form: EnergyForm | LaggedForm, groups: ArrayLike | None
) -> Evidence:
    """Return the evidence of the modes; that of the next one tells how far the gap before it can be trusted."""
    trajectories = None if groups is None else trajectories_of(np.asarray(groups)[sample.rows], len(sample.X))
    modes, r = model.modes_, len(model.rates_)
    coefficients, offset = modes.coefficients, modes.offset
    if modes.next_coefficients is not None:
        coefficients, offset = np.column_stack([coefficients, modes.next_coefficients]), np.append(offset, 0.0)
    basis, X = ModeBasis(model.basis_, coefficients, offset), np.asarray(sample.X, dtype=np.float64)
    values, settings = values_at(basis, X), (sample, model.moments_.count, trajectories)
    if isinstance(form, EnergyForm):
        found = evidence_of(values, energies_at(basis, X, form.tensor, sample.rows), *settings)
    else:
        later = np.asarray(source.second_frames(sample.rows), dtype=np.float64)  # type: ignore[attr-defined]
        energies = (values_at(basis, later) - values) ** 2 / 2
        found = evidence_of(values, energies, *settings, local=False)
    if modes.next_coefficients is not None:
        fastest = modes.clock.stretch(np.array([modes.next_quotient]))[0]
        model.modes_ = replace(modes, gap_error=fastest * found.gap_error)
    return found.first(r)


def _readable(source: Source, form: EnergyForm | LaggedForm) -> bool:
    """Whether what the form needs can be read at single samples: pairs of a stream cannot."""
    return isinstance(form, EnergyForm) or (isinstance(source, PairSource) and source.has_rows and source.many_passes)


def _thinned(sample: Sample, most: int, seed: int) -> Sample:
    """Return at most so many of the rows, in their order."""
    if len(sample.X) <= most:
        return sample
    kept = np.sort(np.random.RandomState(seed).permutation(len(sample.X))[:most])
    return Sample(sample.rows[kept], sample.X[kept], None if sample.weight is None else sample.weight[kept])


def _quotients(timescales: np.ndarray) -> np.ndarray:
    """Return quotients, slowest first; infinite where there is no time scale."""
    with np.errstate(divide="ignore"):
        return np.sort(1 / np.maximum(timescales, 0))


def _held_out(data: SearchData, chosen: Candidate, moments: FoldedMoments) -> np.ndarray | None:
    """Return the quotients on held-out samples: those of the score, or of the folds fitted once more."""
    if chosen.score.timescales is not None and chosen.judged == JUDGED[-1]:
        return _quotients(chosen.score.timescales)
    fit = data.fit_folds(moments, [chosen.regularization])[0]
    return None if fit is None else _quotients(pooled_ritz_timescales(fit))


def _alike(result: SearchResult, chosen: Candidate) -> list[Candidate]:
    """Return the candidates of the final that score as well as the chosen one, within its standard error."""
    lowest = chosen.value - chosen.standard_error
    final = (c for c in result.candidates if c.judged != JUDGED[0] and not c.rejected and c.agreed)
    return [c for c in final if c.value >= lowest]


def _other_features(data: SearchData, moments: FoldedMoments, regularization: float) -> list[np.ndarray]:
    """Return the quotients with another draw of random features, where there are such and the samples are at hand."""
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
    return [np.sort(modes.quotients)]
