"""The number of features of the final fit, by the held-out score of the chosen kernel."""

from __future__ import annotations

from dataclasses import replace

from kdmaps.bases import Basis
from kdmaps.forms.engines import chunk_rows, make_loop
from kdmaps.selection.candidate import Candidate
from kdmaps.selection.coarse_to_fine import is_better
from kdmaps.selection.evaluation import Scoring, SearchData, remade
from kdmaps.selection.plan import FitSpec, SearchPlan
from kdmaps.selection.result import Search
from kdmaps.selection.scores import make_scoring
from kdmaps.selection.training import fit_by_fold
from kdmaps.utils.threads import one_blas_thread

#: Samples of the search for each feature, at least.
SAMPLES_PER_FEATURE = 4


def with_more_features(found: Search, chosen: Candidate, plan: SearchPlan) -> tuple[Search, Candidate]:
    """Double the number of features of the chosen candidate as long as this raises its held-out score.

    The score has to rise by more than the standard error of the difference. Kernel and λ stay the same, also the metric
    of every fold; landmarks are selected from the training samples of each fold.
    """
    data, p = found.data, plan.basis.n_features
    best, scoring = None, make_scoring(plan.scoring, plan.fit.lag)
    with one_blas_thread():
        while SAMPLES_PER_FEATURE * 2 * p <= len(data.rows):
            if not _fits_memory(data.make_basis(chosen.kernel, chosen.basis, 2 * p), plan.fit):
                break
            best = best or _scored(data, chosen, p, scoring)
            other = _scored(data, chosen, 2 * p, scoring)
            if not is_better(other, best):
                break
            best, p = other, 2 * p
        if best is None or p == plan.basis.n_features:
            return found, replace(chosen, n_features=p)
        return found._replace(moments=data.fold(best.kernel, best.basis, p)), best


def _scored(data: SearchData, chosen: Candidate, n_features: int, scoring: Scoring) -> Candidate:
    """Return the chosen candidate with this number of features, evaluated fold by fold."""
    everything, *trainings = (t.with_features(n_features) for t in (data.everything, *data.trainings))
    lambdas, kernel_of = [chosen.regularization], remade(chosen.kernel, chosen.origin)
    fits = fit_by_fold(everything, trainings, chosen.kernel, kernel_of, chosen.basis, lambdas, data.typical)
    basis = everything.basis(chosen.kernel, chosen.basis)
    (scored,) = data.candidates(chosen.label, lambdas, fits, scoring, basis)
    return replace(scored, basis=chosen.basis, origin=chosen.origin, n_features=n_features)


def _fits_memory(basis: Basis, fit: FitSpec) -> bool:
    """Return whether the final fit stays within the memory limit."""
    try:
        chunk_rows(make_loop(basis, fit.engine), basis.n_features, fit.memory_limit)
    except ValueError:
        return False
    return True
