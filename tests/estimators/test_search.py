"""KernelSearchCV and AdaptiveDiffusionMap: the choice, the table of candidates, and failures."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit
from sklearn.utils.estimator_checks import parametrize_with_checks

import kdmaps
from kdmaps import KernelDiffusionMap, KernelSearchCV
from kdmaps.bases import make_basis
from kdmaps.data import ArraySource
from kdmaps.exceptions import Undetermined
from kdmaps.forms.diffusion import DiffusionTensor
from kdmaps.forms.energy import EnergyForm, compute_moments
from kdmaps.kernels import Gaussian, Mixture
from kdmaps.selection import evaluation
from kdmaps.selection.candidate import Candidate
from kdmaps.selection.cross_fit import CrossFit, FoldFit
from kdmaps.selection.evaluation import SearchData
from kdmaps.selection.folds import BlockedKFold, Folds, make_splits
from kdmaps.selection.scores import Score
from shared import SMALL_SEARCH, adaptive, expects, known

LAMBDAS = [1e-3, 1e-2, 1e-1]


@pytest.fixture(scope="module")
def problem():
    return kdmaps.problems.load("dw1d")


@pytest.fixture(scope="module")
def X(problem):
    return problem.sample(300, random_state=0)


@pytest.mark.slow
@parametrize_with_checks(
    [
        KernelSearchCV(
            n_components=1, families=("gaussian",), bandwidths=2, regularizations=(1e-2,), cv=2, n_features=20
        ),
        adaptive(1, families=("gaussian",), bandwidths=3, regularizations=(1e-2,), cv=2, n_features=20, refine=False),
    ]
)
@known(
    "copies-of-rows",
    "no-gap",
    "folds-disagree",
    "flat",
    "energy-samples",
    "variance-samples",
    "transition-samples",
    "independent-samples",
    "mismatch",
    "held-out-factor",
    "kernel-factor",
    "feature-factor",
)  # the checks fit blobs and a few points
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@known("ridge")  # at the largest λ of the grid
def test_agrees_with_grid_search_of_scikit_learn(X):
    """Same grid, same folds, same frequencies: the fold scores equal the scores of GridSearchCV over `score`."""
    bandwidths, folds = [1.0, 3.0], KFold(3, shuffle=True, random_state=1)
    ours = KernelSearchCV(
        2,
        families=["gaussian", "rq2"],
        bandwidths=bandwidths,
        regularizations=LAMBDAS,
        cv=folds,
        n_features=60,
        random_state=0,
        max_extensions=0,
    ).fit(X)
    seed = ours.best_estimator_.random_state
    grid = {"kernel": ["gaussian", "rq2"], "bandwidth": bandwidths, "regularization": LAMBDAS, "basis": ["fourier"]}
    theirs = GridSearchCV(KernelDiffusionMap(2, n_features=60, random_state=seed), grid, cv=folds).fit(X)
    expected = {tuple(sorted(p.items())): i for i, p in enumerate(theirs.cv_results_["params"])}
    order = [expected[tuple(sorted(p.items()))] for p in ours.cv_results_["params"]]
    for f in range(3):
        # The training mean is subtracted by one and the test mean by the other: both are invisible to a covariance.
        np.testing.assert_allclose(
            ours.cv_results_[f"split{f}_test_score"], theirs.cv_results_[f"split{f}_test_score"][order], rtol=1e-7
        )


def test_best_estimator_is_the_best_candidate_fitted_on_everything(X):
    search = KernelSearchCV(**SMALL_SEARCH).fit(X)
    again = KernelDiffusionMap(
        2, n_features=60, random_state=search.best_estimator_.random_state, **search.best_params_
    )
    # The sums of the search are added by folds, the sums of a fit by chunks: rounding, times a condition of 1e3.
    np.testing.assert_allclose(search.transform(X), again.fit(X).transform(X), atol=1e-12)
    results = search.cv_results_
    assert results["params"][search.best_index_] == search.best_params_
    assert results["selection_score"][search.best_index_] == search.best_selection_score_
    inside = np.flatnonzero(results["rank_selection_score"] == 1)[0]
    assert results["selection_score"][inside] == results["selection_score"].max()


@pytest.mark.slow
def test_same_seed_same_answer_for_any_number_of_threads(X):
    one, two = (KernelSearchCV(**SMALL_SEARCH, n_jobs=jobs).fit(X) for jobs in (1, 2))
    assert one.best_params_ == two.best_params_
    # Threads of BLAS may change the order of sums in the last fit.
    np.testing.assert_allclose(one.transform(X), two.transform(X), atol=1e-9)


@known("mismatch")
def test_eigenvalue_sum_without_centring_runs_to_the_widest_kernel(X):
    """The paper's score measures how well the kernel represents a constant, so it is largest for σ → ∞ (§3)."""
    settings = {**SMALL_SEARCH, "families": ["gaussian"], "bandwidth_range": (0.5, 50), "max_extensions": 0}
    paper = KernelSearchCV(**settings, regularizations=[1e-2], scoring="eigsum", center=False).fit(X)
    assert paper.best_params_["bandwidth"] == paper.cv_results_["param_bandwidth"].max()
    ours = KernelSearchCV(**settings, regularizations=[1e-2]).fit(X)
    assert ours.best_params_["bandwidth"] < ours.cv_results_["param_bandwidth"].max()


def test_grid_grows_beyond_an_edge_and_says_so(X):
    search = KernelSearchCV(
        2,
        families=["gaussian"],
        bandwidths=[50.0, 100.0],
        regularizations=[1e-2],
        n_features=60,
        random_state=0,
        max_extensions=2,
    ).fit(X)
    # Two points further at the ratio of the grid, twice: 25, 12.5 and 6.25, 3.125 (data are 2 wide).
    assert search.cv_results_["param_bandwidth"].min() == pytest.approx(100 / 2**5)
    assert search.best_params_["bandwidth"] < 50
    assert [("edge bandwidth=50;" in line, "edge bandwidth=12.5;" in line) for line in search.extensions_] == [
        (True, False),
        (False, True),
    ]


def test_a_lead_is_counted_in_standard_errors_of_the_difference():
    scores = [Score(2.0, np.array([1.0, 2.0, 3.0]), np.zeros(3)), Score(1.0, np.array([0.0, 2.0, 2.0]), np.zeros(3))]
    one, other = (Candidate("gaussian", Gaussian(1.0), 1e-2, score) for score in scores)
    # Differences 1, 0, 1 have the jackknife error √(2/3·(1+4+1)/9) = 2/3.
    assert one.standardised_lead(other) == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("differences", "accepted"),
    [
        # Both have the mean 0.2; its jackknife error √(Σ(d - d̄)²/6) is 0.15 for the first, 0.26 for the second.
        ([0.0, 0.1, 0.5], True),
        ([-0.2, 0.1, 0.7], False),
        ([-0.1, -0.1, -0.1], False),
    ],
)
def test_beyond_the_grid_only_a_clear_gain_counts(differences, accepted, X):
    """Fold scores as given: 1 at the edge λ = 0.1 of the grid, 1 + difference at λ = 1 beyond it, 0 elsewhere."""
    sizes = [80, 100, 120]  # which identify the fold in the scoring
    tests = np.split(np.arange(300), np.cumsum(sizes)[:-1])
    splits = [(np.setdiff1d(np.arange(300), test), test) for test in tests]

    def given(fold):
        difference = differences[sizes.index(round(fold.test_weight))]
        return {0.1: 1.0, 1.0: 1.0 + difference}.get(round(fold.regularization, 9), 0.0)

    search = KernelSearchCV(
        2,
        families=["gaussian"],
        bandwidths=[2.0],
        regularizations=[0.01, 0.1],
        scoring=given,
        cv=splits,
        n_features=60,
        random_state=0,
    ).fit(X)
    assert search.best_params_["regularization"] == pytest.approx(1.0 if accepted else 0.1)
    assert search.best_selection_score_ == pytest.approx(1.2 if accepted else 1.0)
    assert len(search.extensions_) == 1
    assert search.extensions_[0].endswith(f"continued to 10, {'with' if accepted else 'without'} a better one")
    np.testing.assert_array_equal(np.unique(search.cv_results_["param_regularization"]).round(9), [0.01, 0.1, 1, 10])


def test_kernels_and_mixtures_as_candidates(X):
    mixture = Mixture([Gaussian(0.5), Gaussian(4.0)])
    search = KernelSearchCV(2, families=[mixture, "gaussian"], bandwidths=[1e-3, 2e-3], n_features=60, random_state=0)
    search.set_params(max_extensions=0).fit(X)
    assert search.best_params_["kernel"] == mixture


@known("independent-samples")
@pytest.mark.parametrize("cv", [BlockedKFold(3, gap=5), GroupKFold(3)])
@known("flat")
@known("ridge")
def test_splitters_for_trajectories(cv, problem):
    trajectory = problem.simulate(600, 0.05, random_state=0)[0]
    groups = np.repeat(np.arange(6), 100)
    search = KernelSearchCV(**SMALL_SEARCH, cv=cv).fit(trajectory, groups=groups)
    best = KernelDiffusionMap(2, n_features=60, random_state=search.best_estimator_.random_state, **search.best_params_)
    roles = np.zeros((600, 3))
    for f, (train, test) in enumerate(cv.split(trajectory, groups=groups)):
        roles[train, f], roles[test, f] = 1, 2
        held_out = best.fit(trajectory[train]).score(trajectory[test])
        # As in the comparison with scikit-learn.
        assert search.cv_results_[f"split{f}_test_score"][search.best_index_] == pytest.approx(held_out, rel=1e-7)
    np.testing.assert_array_equal(search.search_result_.assignment, roles)


def test_landmarks_that_are_samples_do_not_test_themselves(X):
    search = KernelSearchCV(
        2,
        families=["gaussian"],
        bandwidths=[1.0, 2.0],
        regularizations=LAMBDAS,
        cv=KFold(3),
        basis="landmarks",
        landmarks="uniform",
    )
    search.set_params(n_features=30, random_state=0, max_extensions=0).fit(X)
    chosen = np.isin(X[:, 0], search.best_estimator_.basis_.landmarks)
    roles = search.search_result_.assignment
    assert chosen.sum() == search.best_estimator_.basis_.n_features > 10
    for f, (train, test) in enumerate(KFold(3).split(X)):
        assert (roles[train, f] == 1).all()  # a landmark trains like any other sample
        np.testing.assert_array_equal(roles[test, f], np.where(chosen[test], 0, 2))


@known("energy-samples", "variance-samples", "mismatch")
@known("folds-disagree")
@known("no-gap")
def test_narrow_kernels_at_landmarks_show_nothing_between_them(X):
    search = KernelSearchCV(
        2, families=["matern32"], bandwidths=[0.01], regularizations=[1e-6], basis="landmarks", landmarks="uniform",
        n_features=75, random_state=0, max_extensions=0,
    )  # fmt: skip
    data_score = search.fit(X).cv_results_["mean_test_score"][0]
    # Between landmarks such narrow kernels vanish: on held-out samples no time scale is near the exact sum.
    assert data_score < 0.2 * (1 / kdmaps.problems.load("dw1d").rates(2)).sum()
    with pytest.raises(ValueError, match="leaves no sample"):
        search.set_params(basis="full").fit(X)


@pytest.mark.slow
def test_suggested_number_of_modes():
    """mdlike-6 has the rates 0.79, 0.79, 1.58, 3.55, ...: the largest ratio, 2.24, comes after the third mode."""
    X = kdmaps.problems.load("mdlike-6").sample(1500, random_state=0)
    search = KernelSearchCV(3, families=["gaussian", "laplacian"], random_state=0).fit(X)
    assert search.suggested_n_components_ == 3


@pytest.mark.parametrize(("cosine", "suggested"), [(0.91, 1), (0.89, 2)])
def test_a_gap_counts_if_the_folds_agree_on_it(cosine, suggested):
    """Held-out time scales 10, 1, 0.5, 0.4; the folds agree on the first two modes, on the first to cos² = `cosine`."""
    turn = np.eye(4)
    turn[:2, :2] = [[np.sqrt(cosine), -np.sqrt(1 - cosine)], [np.sqrt(1 - cosine), np.sqrt(cosine)]]
    one = np.eye(4)
    fold = FoldFit(one, np.ones(4), 1e-2, 50.0, np.diag([10.0, 1.0, 0.5, 0.4]), one, one, one, lambda: None)
    ones, turns = np.stack([one] * 2), np.stack([turn] * 2)
    fit = CrossFit([fold] * 2, one, ones, np.ones(4), np.ones(4), 1.0, turns, ones, 1.0)
    settings = {"folds": SimpleNamespace(smallest=50), "fit": SimpleNamespace(n_components=1)}
    data = SimpleNamespace(**settings, fit_more=lambda *_: fit)
    assert SearchData.suggest_n_components(data, None, 1e-2) == suggested


@known("copies-of-rows")
def test_sample_weight_is_repetition():
    X = kdmaps.problems.load("ou2d-4").sample(90, random_state=0)
    weight = np.tile([1.0, 2.0, 3.0], 30)
    rows = np.repeat(np.arange(90), weight.astype(int))
    folds = [(np.flatnonzero(np.arange(90) % 2 == f), np.flatnonzero(np.arange(90) % 2 != f)) for f in (0, 1)]
    repeated = [tuple(np.flatnonzero(np.isin(rows, part)) for part in fold) for fold in folds]
    settings = {**SMALL_SEARCH, "bandwidths": [1.0, 2.0], "max_extensions": 0}
    weighted = KernelSearchCV(**settings, cv=folds).fit(X, sample_weight=weight)
    plain = KernelSearchCV(**settings, cv=repeated).fit(X[rows])
    np.testing.assert_allclose(weighted.cv_results_["selection_score"], plain.cv_results_["selection_score"], rtol=1e-8)


def test_callable_scoring_is_averaged_over_folds(X):
    def first_mode(fold):
        return fold.test_covariance[0, 0] / fold.test_energy[0, 0]

    search = KernelSearchCV(**SMALL_SEARCH, scoring=first_mode).fit(X)
    results = search.cv_results_
    np.testing.assert_allclose(results["selection_score"], results["mean_test_score"])
    # The held-out time scale of the first mode is within 15 % of the exact one at 300 samples.
    assert results["selection_score"][search.best_index_] == pytest.approx(
        1 / kdmaps.problems.load("dw1d").rates(1)[0], rel=0.15
    )


@pytest.mark.slow
def test_failed_fits_leave_nothing_behind(X):
    for estimator in (
        KernelSearchCV(**SMALL_SEARCH),
        adaptive(2, families=["gaussian"], n_features=20, refine=False),
    ):
        with pytest.raises(ValueError, match="n_components"):
            clone(estimator).set_params(n_components=200).fit(X)
        fitted = estimator.fit(X)
        before = fitted.transform(X)
        with pytest.raises(ValueError, match="families"):
            fitted.set_params(families=[]).fit(np.hstack([X, X]))
        np.testing.assert_array_equal(fitted.transform(X), before)


@pytest.mark.slow
def test_a_corner_of_the_grid_is_left_in_both_directions(X):
    search = KernelSearchCV(
        2,
        families=["gaussian"],
        bandwidths=[50.0, 100.0],
        regularizations=[1.0, 2.0],
        n_features=60,
        random_state=0,
        max_extensions=9,
    )
    search.fit(X)
    axes = {line.split("edge ")[1].split("=")[0] for line in search.extensions_}
    assert axes == {"bandwidth", "regularization"}


@pytest.mark.slow
def test_columns_keep_their_names_through_search_and_disk(X, tmp_path):
    pandas = pytest.importorskip("pandas")
    search = KernelSearchCV(**SMALL_SEARCH).fit(pandas.DataFrame(X, columns=["position"]))
    search.save(tmp_path / "model.npz")
    assert list(kdmaps.load(tmp_path / "model.npz").feature_names_in_) == ["position"]


def test_a_kernel_of_the_users_own(X):
    class Mine(Gaussian):
        """k(x, z) = exp(-s/2), under another name."""

    search = KernelSearchCV(
        2, families=[Mine(2.0), Mine(3.0)], regularizations=LAMBDAS, n_features=60, random_state=0
    ).fit(X)
    same = KernelSearchCV(
        2, families=[Gaussian(2.0), Gaussian(3.0)], regularizations=LAMBDAS, n_features=60, random_state=0
    )
    np.testing.assert_array_equal(search.cv_results_["selection_score"], same.fit(X).cv_results_["selection_score"])


def test_many_overlapping_splits_are_summed_directly(X):
    splits = ShuffleSplit(8, test_size=0.3, random_state=0)
    basis = make_basis("fourier", Gaussian(1.0), X, 20, random_state=0)
    folds = Folds(make_splits(splits, X, None, 2, 0), len(X))
    assert len(folds.rows) > 3 * 8
    _, parts = folds.moments(ArraySource(X, checked=True), EnergyForm(DiffusionTensor(None, 1)), basis, None)
    for (train, _), (rows, _) in zip(parts, splits.split(X), strict=True):
        np.testing.assert_allclose(train.gram, compute_moments(basis, X[rows]).gram, rtol=1e-10, atol=1e-10)


@known("no-gap", "energy-samples", "variance-samples", "transition-samples", "independent-samples", "mismatch")
@known("held-out-factor", "kernel-factor", "feature-factor", "flat", "condition")
def test_warns_when_folds_disagree():
    X = np.random.default_rng(0).standard_normal((40, 8))
    with expects("folds-disagree"):
        KernelSearchCV(
            5, families=["gaussian"], bandwidths=[0.3], regularizations=[1e-6], random_state=0, max_extensions=0
        ).fit(X)


def test_warns_of_a_flat_landscape(X):
    settings = {"families": ["gaussian"], "n_features": 60, "random_state": 0, "max_extensions": 0}
    with expects("flat"):
        KernelSearchCV(2, bandwidths=[3.0, 3.1, 3.2], **settings).fit(X)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "The score landscape")
        # Kernels of a twentieth of the distance between the wells resolve no slow mode.
        KernelSearchCV(2, bandwidths=[0.1, 1.0, 3.0], **settings).fit(X)
        # Two kernels that score the same make no landscape.
        KernelSearchCV(2, bandwidths=[3.0, 3.1], **settings).fit(X)


def test_a_winner_of_a_grid_that_rounding_spoils_gives_way_to_the_next(monkeypatch):
    X = kdmaps.problems.load("dw1d").sample(200, random_state=0)
    settings = {"families": ("gaussian",), "bandwidths": [0.5, 1.0], "regularizations": [1e-3, 1e-2], "random_state": 0}
    first = kdmaps.KernelSearchCV(2, **settings).fit(X)
    spoiled, solve = first.best_params_["regularization"], evaluation.modes_of

    def modes_of(moments, ridge, n, regularization, center):
        if regularization == spoiled:
            raise Undetermined("The samples determine only 1 mode")
        return solve(moments, ridge, n, regularization, center)

    monkeypatch.setattr(evaluation, "modes_of", modes_of)
    second = kdmaps.KernelSearchCV(2, **settings).fit(X)
    scores = first.cv_results_["selection_score"]
    others = first.cv_results_["param_regularization"] != spoiled
    assert second.best_params_["regularization"] != spoiled
    assert second.best_selection_score_ == scores[others].max()
