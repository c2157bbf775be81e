"""The search from coarse to fine: threads, units, limits set by the user, metrics."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import kdmaps
from kdmaps import metrics
from kdmaps.bases import FourierBasis, ModeBasis
from kdmaps.diagnostics.relevance import gradient_products, metric_matrix
from kdmaps.exceptions import Undetermined
from kdmaps.kernels import Gaussian, Metric, Mixture
from kdmaps.selection import coarse_to_fine as module
from kdmaps.selection import search as search_module
from kdmaps.selection.candidate import Candidate, Stage
from kdmaps.selection.evaluation import SearchData
from kdmaps.selection.grid import rounded
from kdmaps.selection.roots import FLOOR, metric_root
from kdmaps.selection.scores import Score, jackknife_error
from kdmaps.selection.search import _Sweep
from kdmaps.spectrum.modes import Clock
from kdmaps.summary import summarise
from shared import adaptive, known

SETTINGS = {"n_components": 2, "n_features": 60, "random_state": 0}


@pytest.fixture(scope="module")
def X():
    return kdmaps.problems.load("ou2d-4").sample(200, random_state=0)


@pytest.fixture(scope="module")
def found(X):
    return adaptive(**SETTINGS, refine=False).fit(X)


def test_choice_does_not_depend_on_the_number_of_threads(X, found):
    alone = adaptive(**SETTINGS, refine=False, n_jobs=1).fit(X)
    np.testing.assert_array_equal(alone.cv_results_["selection_score"], found.cv_results_["selection_score"])
    np.testing.assert_array_equal(alone.transform(X), found.transform(X))


def test_candidates_reach_every_stage(found):
    candidates = found.search_result_.candidates
    n_folds = {Stage.SCREENED: 3, Stage.ALL_FOLDS: 6, Stage.EXACT: 6}
    assert {c.stage for c in candidates} == set(Stage)
    assert all(len(c.score.replicates) == n_folds[c.stage] for c in candidates if not c.rejected)
    assert found.search_result_.best.stage is Stage.EXACT
    table = found.cv_results_
    early = np.array(table["stage"]) == Stage.SCREENED
    assert np.isnan(table["split5_test_score"][early]).all()
    assert np.isfinite(table["mean_test_score"][early & (np.array(table["rejected"]) == "")]).all()


def test_rough_scores_are_close_to_exact_ones(found):
    """The best candidate is evaluated roughly and exactly; the difference is small against the standard error."""
    best = found.search_result_.best
    same = [c for c in found.search_result_.candidates if (c.kernel, c.basis) == (best.kernel, best.basis)]
    rough = next(c for c in same if c.regularization == best.regularization and c.stage is Stage.ALL_FOLDS)
    assert abs(rough.value - best.value) < 0.3 * best.standard_error


def test_coarse_to_fine_is_at_least_as_good_as_a_grid(X):
    grid = kdmaps.KernelSearchCV(**SETTINGS, bandwidths=6, families=("gaussian", "matern32"), max_extensions=0).fit(X)
    found = kdmaps.KernelSearchCV(**SETTINGS).fit(X)
    assert found.best_selection_score_ > grid.best_selection_score_ - 0.5 * grid.cv_results_["selection_error"].min()


@pytest.mark.parametrize("unit", [1e-9, 1e6])
def test_choice_does_not_depend_on_the_unit_of_length(X, found, unit):
    scaled = adaptive(**SETTINGS, refine=False, diffusion=unit**2).fit(unit * X)
    assert_allclose(scaled.rates_, found.rates_, rtol=0.02)  # λ is rounded to three digits on both paths


def test_an_edge_is_reported(X, monkeypatch):
    monkeypatch.setattr(module, "WIDEST", 1.0)
    model = kdmaps.KernelSearchCV(**SETTINGS, families=["gaussian"]).fit(X)
    assert any("bandwidth" in text and "largest" in text for text in model.edges_)
    assert "edge" in [check.code for check in summarise(model).checks.notes]


def test_tries_only_given_families_and_regularizations(X):
    model = kdmaps.KernelSearchCV(
        **SETTINGS, families=["matern52", Gaussian(3.0)], regularizations=[1e-2, 1e-1], basis="landmarks"
    ).fit(X)
    found = model.search_result_.candidates
    assert {c.regularization for c in found} == {1e-2, 1e-1}
    assert {c.basis for c in found} == {"landmarks"} == {model.best_params_["basis"]}
    assert {c.label for c in found} == {"matern52", repr(Gaussian(3.0))}


def test_only_kernels_without_a_bandwidth(X):
    stretched = Metric(Gaussian(2.0), [[1.0, 0.0], [0.0, 0.5]])
    for kernels in ([Gaussian(2.0), Mixture([Gaussian(1.0), Gaussian(4.0)])], [stretched]):
        model = adaptive(**SETTINGS, families=kernels, refine=False).fit(X)
        assert model.kernel_ in kernels


@pytest.mark.parametrize("settings", [{"basis": "random-phase"}, {"scoring": "rayleigh"}, {"dtype": "float32"}])
def test_other_settings(X, settings):
    model = kdmaps.KernelSearchCV(**SETTINGS, **settings).fit(X)
    truth = kdmaps.problems.load("ou2d-4").reference(X, 2)
    assert metrics.subspace_r2(model.transform(X), truth) > 0.8


# --- metrics ----------------------------------------------------------------------------------------------------------
class Linear(FourierBasis):
    """Functions uᵀx and 2vᵀx, of constant gradients."""

    def gradient(self, X, coefficients):
        return np.broadcast_to(np.stack([U, 2 * V]), (len(X), 2, 3))


U, V = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.6, 0.8])


def test_metric_of_linear_modes():
    """Modes uᵀx and 2vᵀx with rates 1 and 4 give M = uuᵀ + vvᵀ, whatever the weights."""
    modes = ModeBasis(Linear(Gaussian(1.0), np.ones((3, 3)), np.ones(3), np.zeros(3)), np.eye(2), np.zeros(2))
    for weight in (np.full(5, 0.2), np.array([0.2, 0.0, 0.6, 0.0, 0.2])):
        products, _ = gradient_products(modes, np.zeros((5, 3)), weight)
        static = SimpleNamespace(rates=np.array([1.0, 4.0]), clock=Clock())
        lagged = SimpleNamespace(rates=np.array([7.0, 0.1]), clock=Clock(lag=3))
        for found in (static, lagged):  # modes of pairs of frames count alike, whatever their rates
            assert_allclose(metric_matrix(products, found), np.outer(U, U) + np.outer(V, V), atol=1e-15)
        assert_allclose(products, [np.outer(U, U), 4 * np.outer(V, V)], atol=1e-15)


def test_root_of_a_metric_has_a_floor():
    root = metric_root(np.diag([4.0, 1.0, 0.0]))
    assert_allclose(root @ root.T, np.diag([1.0, 0.25, FLOOR]), atol=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("rotated", [False, True])
@known("no-gap", "mismatch")
def test_metric_shrinks_noise_coordinates(rotated):
    """A metric removes the effect of 38 coordinates of noise, for any rotation of the inputs."""
    rotation = 7 if rotated else None
    problem = kdmaps.problems.nuisance(kdmaps.problems.load("triplewell2d"), 38, 0.25, rotation)
    X = problem.sample(600, random_state=0)
    truth, settings = problem.reference(X, 2), {"random_state": 0, "refine": False}
    plain = adaptive(2, **settings, metric_rounds=0).fit(X)
    model = adaptive(2, **settings).fit(X)
    assert isinstance(model.kernel_, Metric)
    before, after = (metrics.subspace_r2(m.transform(X), truth) for m in (plain, model))
    assert 1 - after < 0.5 * (1 - before)  # half of the error, at least
    assert_allclose(model.rates_, problem.rates(2), rtol=0.3)


def test_isotropic_samples_keep_the_euclidean_metric():
    """For isotropic samples the metric of the modes is the identity up to noise, and is not used."""
    X = np.random.default_rng(1).standard_normal((300, 2))
    model = adaptive(2, n_features=60, random_state=0, refine=False).fit(X)
    root = model.kernel_.root if isinstance(model.kernel_, Metric) else np.eye(2)
    lengths = np.linalg.svd(root, compute_uv=False)
    assert lengths[0] < 2 * lengths[-1]


def test_undetermined_modes_give_no_metric(X, monkeypatch):
    """If rounding leaves fewer modes than a screened candidate has, the metric is None, without an error."""

    def too_few(*_):
        raise Undetermined("The samples determine only 1 mode")

    monkeypatch.setattr("kdmaps.selection.training.modes_of", too_few)
    model = adaptive(**SETTINGS, refine=False).fit(X)
    assert not isinstance(model.kernel_, Metric)


def test_next_best_candidate_replaces_one_spoiled_by_rounding(X, found, monkeypatch):
    """The exact solve of the best candidate fails: the next best one is taken, whatever its score."""
    result, spoilt = found.search_result_, found.search_result_.best.kernel
    evaluate_sums = SearchData.evaluate_sums

    def failing(self, trial, folded, scoring, seconds=0.0):
        found = evaluate_sums(self, trial, folded, scoring, seconds)
        spoiled = folded.basis.kernel == spoilt
        return [
            replace(c, score=Score(-np.inf, np.empty(0), np.empty(0)), rejected="x") if spoiled else c for c in found
        ]

    monkeypatch.setattr(SearchData, "evaluate_sums", failing)
    again = adaptive(**SETTINGS, refine=False).fit(X)
    final = [c for c in result.candidates if c.stage == Stage.ALL_FOLDS and c.kernel != spoilt]
    best = max(final, key=lambda c: c.order)
    assert (again.kernel_, again.best_params_["regularization"]) == (best.kernel, best.regularization)


def test_kernel_spoiled_by_rounding_gets_more_regularization(X, found, monkeypatch):
    """Rounding spoils modes below a limit of λ: the same kernel above it is taken if it scores nearly as well."""
    exact = found.search_result_.best
    own = (Stage.ALL_FOLDS, exact.kernel, exact.regularization)
    best = next(c for c in found.search_result_.candidates if (c.stage, c.kernel, c.regularization) == own)
    monkeypatch.setattr(module, "_final", lambda *arguments: best)
    monkeypatch.setattr(_Sweep, "_is_sound", lambda self, moments, lam: lam > 5 * best.regularization)
    monkeypatch.setattr(search_module, "FORGIVEN", np.inf)
    again = adaptive(**SETTINGS, refine=False).fit(X)
    assert again.kernel_ == best.kernel
    assert again.best_params_["regularization"] == rounded(10 * best.regularization)


class TestFourierFeaturesForManySamples:
    """Landmarks are replaced by Fourier features, whose sums are faster, unless the score is clearly lower."""

    limits = module.SearchRange(("gaussian",), (), ("fourier", "landmarks"), (0.1, 1.0), (1e-10, 1e3), (), 1.0)

    @staticmethod
    def candidate(basis, lead, agreement=1.0):
        # Replicates with a jackknife error of .1 for the score, and of .01 for the difference of two scores.
        common, own = np.array([-1.0, 1.0, -1.0, 1.0]), np.array([1.0, 1.0, -1.0, -1.0])
        scale = 0.1 / jackknife_error(common)
        replicates = scale * (common + (0.1 * own if basis == "landmarks" else 0.0))
        score = Score(-1.0 + lead, replicates, np.zeros(4))
        return Candidate("gaussian", Gaussian(1.0), 1e-3, score, agreement, basis=basis, stage=Stage.ALL_FOLDS)

    @pytest.mark.parametrize(
        ("lead", "agreement", "few", "many"),
        [
            (0.005, 1.0, "fourier", "fourier"),  # within the error of the difference
            (0.05, 1.0, "landmarks", "fourier"),  # five of these errors, half an error of the score
            (0.2, 1.0, "landmarks", "landmarks"),
            (0.05, 0.5, "landmarks", "landmarks"),  # folds disagree on the modes
        ],
    )
    def test_choice(self, lead, agreement, few, many):
        best, waves = self.candidate("landmarks", lead), self.candidate("fourier", 0.0, agreement)
        asked = []

        def run(trials, label):
            asked.extend(trials)
            return [replace(waves, score=replace(waves.score, value=-9.0)), waves]  # the better regularization counts

        assert module._with_waves(best, self.limits, run, many=False).basis == few
        assert module._with_waves(best, self.limits, run, many=True).basis == many
        assert {(t.kernel, t.basis, t.stage) for t in asked} == {(best.kernel, "fourier", Stage.ALL_FOLDS)}
        assert best.regularization in asked[0].lambdas

    def test_only_if_a_part_of_the_samples_is_searched(self, X, monkeypatch):
        calls, final = [], module._final

        def at_landmarks(finalists, *others):
            return final([c for c in finalists if c.basis == "landmarks"], *others)

        monkeypatch.setattr(module, "_with_waves", lambda best, *_, many: calls.append(many) or best)
        monkeypatch.setattr(module, "_final", at_landmarks)
        monkeypatch.setattr(module, "MANY_SAMPLES", 180)
        for searched, expected in ((None, []), (150, [True])):
            adaptive(**SETTINGS, refine=False, metric_rounds=0, max_search_samples=searched).fit(X)
            assert calls == expected
        adaptive(**SETTINGS, refine=False, metric_rounds=0, max_search_samples=150).fit(X[:170])
        assert calls == [True, False]


def test_every_family_has_a_place_in_the_order_of_smoothness():
    assert set(module.SMOOTHNESS) == set(kdmaps.kernels.FAMILIES)


@pytest.mark.parametrize(("lam", "expected"), [(1e-10, 2), (1e-3, 3), (1e3, 2)])
def test_the_finest_regularizations_contain_the_best_one(lam, expected):
    limits = module.SearchRange((), (), (), (0.1, 1.0), (1e-10, 1e3), (), 1.0)
    assert lam in limits.finest_lambdas(lam)
    assert len(limits.finest_lambdas(lam)) == expected
