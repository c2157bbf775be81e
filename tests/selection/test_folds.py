"""Cross-validation by sums of moments equals cross-validation by refitting, for every splitter and score."""

import numpy as np
import pytest
from scipy import linalg
from sklearn.model_selection import GroupKFold, KFold, LeaveOneGroupOut, ShuffleSplit, TimeSeriesSplit

import kdmaps
from kdmaps.bases import make_basis
from kdmaps.data import ArraySource
from kdmaps.forms.diffusion import DiffusionTensor
from kdmaps.forms.energy import EnergyForm, compute_moments
from kdmaps.kernels import Gaussian, Matern
from kdmaps.selection import scores
from kdmaps.selection.cross_fit import cross_fit
from kdmaps.selection.folds import BlockedKFold, Folds, make_splits, splits_at
from kdmaps.selection.scores import SCORINGS, jackknife_error, make_scoring, pooled_score, ritz_pairs
from kdmaps.spectrum import path as regularization_path
from kdmaps.spectrum.path import RegularizationPath
from kdmaps.spectrum.pencil import find_modes, solve
from shared import checks, expects, known

LAMBDAS = [1e-1, 1e-2, 1e-3]
R = 3


@pytest.fixture(scope="module")
def X():
    return kdmaps.problems.load("ou2d-4").sample(240, random_state=0)


@pytest.fixture(params=["fourier", "landmarks"])
def basis(request, X):
    return make_basis(request.param, Matern(2.5, 2.0), X, 40, random_state=0)


def folded(folds, X, basis, weight=None):
    form = EnergyForm(DiffusionTensor(None, X.shape[1]))
    return folds.moments(ArraySource(X, checked=True), form, basis, weight)


SPLITTERS = {
    "kfold": KFold(3, shuffle=True, random_state=0),
    "time-series": TimeSeriesSplit(3),
    "blocks with a gap": BlockedKFold(4, gap=7),
    "groups": GroupKFold(3),
    "shuffled": ShuffleSplit(3, test_size=0.3, random_state=0),
}


@pytest.mark.parametrize("name", SPLITTERS)
def test_moments_of_folds_equal_moments_of_their_rows(name, X, basis):
    weight = np.random.default_rng(0).uniform(0.5, 2, len(X))
    groups = np.arange(len(X)) // 20 if name == "groups" else None
    splits = make_splits(SPLITTERS[name], X, groups, R, 0)
    whole, folds = Folds(splits, len(X)).moments(
        ArraySource(X, checked=True), EnergyForm(DiffusionTensor(None, 2)), basis, weight
    )
    for part, rows in [(whole, np.arange(len(X)))] + [
        pair for fold, split in zip(folds, splits, strict=True) for pair in zip(fold, split, strict=True)
    ]:
        direct = compute_moments(basis, X[rows], weight[rows])
        for field in ("weight", "total", "gram", "energy"):
            scale = np.abs(getattr(direct, field)).max()
            # Sums of a few hundred terms in another order differ by rounding only.
            np.testing.assert_allclose(getattr(part, field), getattr(direct, field), atol=1e-12 * scale, rtol=0)


def test_blocked_folds_have_gaps():
    for train, test in BlockedKFold(4, gap=7).split(np.zeros((100, 1))):
        assert np.array_equal(test, np.arange(test[0], test[-1] + 1))
        assert np.abs(train[:, None] - test[None, :]).min() == 8


def _refitted(X, basis, splits, lam, score):
    """The score of every fold with each model fitted from scratch by the estimator's own route."""
    values = []
    for train, test in splits:
        modes = find_modes(compute_moments(basis, X[train]), basis.ridge, R, lam)
        held_out = compute_moments(basis, X[test])
        V, covariance, energy = modes.coefficients, held_out.covariance(), held_out.mean_energy()
        ridge = np.eye(len(energy)) if basis.ridge is None else basis.ridge
        if score in ("eigsum", "gap"):
            mu = solve(covariance, energy, basis.ridge, R + 1, lam)[0]
            values.append(mu[:R].sum() if score == "eigsum" else mu[R - 1] / mu[R])
        elif score == "rayleigh":
            values.append(
                sum(v @ covariance @ v / (v @ (energy + lam * ridge) @ v) for v in V.T),
            )
        else:
            values.append(np.trace(np.linalg.solve(V.T @ energy @ V, V.T @ covariance @ V)))
    return values


@pytest.mark.parametrize("worthwhile", [0.0, 1.0], ids=["features", "frame"])
@pytest.mark.parametrize("score", SCORINGS)
def test_subtraction_equals_refit(score, worthwhile, X, basis, monkeypatch):
    monkeypatch.setattr("kdmaps.selection.cross_fit._WORTHWHILE", worthwhile)
    splits = make_splits(3, X, None, R, 0)
    whole, folds = Folds(splits, len(X)).moments(
        ArraySource(X, checked=True), EnergyForm(DiffusionTensor(None, 2)), basis, None
    )
    for lam, fit in zip(LAMBDAS, cross_fit(whole, folds, basis.ridge, R, LAMBDAS), strict=True):
        values = SCORINGS[score](fit).fold_values
        # Two routes through p×p linear algebra whose condition number is below 1e5 here.
        np.testing.assert_allclose(values, _refitted(X, basis, splits, lam, score), rtol=1e-8)
        trained = [(f.coefficients, train) for f, (train, _) in zip(fit.folds, folds, strict=True)]
        for a, part in [(fit.coefficients, whole), *trained]:
            direct = find_modes(part, basis.ridge, R, lam).coefficients
            overlap = direct.T @ part.covariance() @ a
            np.testing.assert_allclose(np.abs(overlap), np.eye(R), atol=1e-7)


def test_a_smooth_kernel_is_fitted_in_a_frame(X):
    basis = make_basis("fourier", Gaussian(4.0), X, 100, random_state=0)
    moments = compute_moments(basis, X)
    covariance, energy = moments.covariance(), moments.mean_energy()
    B = RegularizationPath(covariance, energy).frame
    assert B.shape[1] < 50
    outside = np.linalg.svd(B)[0][:, B.shape[1] :]
    np.testing.assert_allclose(B.T @ B, np.eye(B.shape[1]), atol=1e-12)
    # Cauchy and Schwarz: directions without variance or energy are uncorrelated with the rest.
    for operator in (covariance, energy):
        assert np.abs(outside.T @ operator @ outside).max() < 1e-14 * np.abs(operator).max() * len(operator)


def test_pooled_score_of_one_fold_is_its_score(X, basis):
    splits = make_splits(KFold(2), X, None, R, 0)
    whole, folds = Folds(splits, len(X)).moments(
        ArraySource(X, checked=True), EnergyForm(DiffusionTensor(None, 2)), basis, None
    )
    fit = cross_fit(whole, folds, basis.ridge, R, [1e-2])[0]
    # The trace is invariant to the rotation of the modes.
    alone, pooled = (
        [scores.timescale_score(fold.test_covariance, fold.test_energy) for fold in fit.folds],
        pooled_score(fit, power=1),
    )
    np.testing.assert_allclose(pooled.left_out, alone[::-1], rtol=1e-10)
    np.testing.assert_allclose(pooled.fold_timescales.sum(axis=1), alone, rtol=1e-10)


def test_fold_without_energy_does_not_affect_others():
    rng = np.random.default_rng(0)
    roots = rng.standard_normal((2, 3, R, 2 * R))
    P, E = roots @ np.swapaxes(roots, 2, 3)
    E[1, :, 0] = E[1, 0, :] = 0
    times, _ = ritz_pairs(P, E)
    assert np.all(times[1] == -np.inf)
    for f in (0, 2):
        np.testing.assert_allclose(times[f], linalg.eigh(P[f], E[f], eigvals_only=True), rtol=1e-9)


def test_jackknife_error_of_a_mean_is_its_standard_error():
    values = np.array([1.0, 4.0, 2.0, 7.0])
    left_out = (values.sum() - values) / 3
    assert jackknife_error(left_out) == pytest.approx(values.std(ddof=1) / 2)


def test_jackknife_error_of_scores_that_are_not_finite():
    """Without a warning of NumPy: columns of zeros and ones have such scores."""
    assert np.isnan(jackknife_error(np.array([1.0, -np.inf, 2.0])))


@pytest.mark.parametrize("dense_blocks", [70, 0])  # 0: by iteration, whatever the size
@pytest.mark.parametrize("kind", ["fourier", "landmarks"])
def test_path_equals_direct_solve(kind, dense_blocks, X, monkeypatch):
    monkeypatch.setattr(regularization_path, "DENSE_BLOCKS", dense_blocks)
    kernel = Matern(1.5, 0.5)  # rough: no direction is left out
    basis = make_basis(kind, kernel, X, 200, random_state=0)
    moments = compute_moments(basis, X)
    path = RegularizationPath(moments.covariance(), moments.mean_energy(), basis.ridge)
    for lam in (1e-1, 1e-2, 1e-3, 1e-4):
        mu, a = path.solve(4, lam)
        exact, b, condition, _ = solve(moments.covariance(), moments.mean_energy(), basis.ridge, 4, lam)
        # Rounding in either route is at most eps times the condition number, which is below 1e7 here.
        assert condition < 1e7
        np.testing.assert_allclose(mu, exact, rtol=1e-8)
        penalty = moments.mean_energy() + lam * (np.eye(200) if basis.ridge is None else basis.ridge)
        # Same space: all cosines under the penalty's inner product are 1 (residual 1e-11 over gaps above 1e-3).
        np.testing.assert_allclose(np.linalg.svd(a.T @ penalty @ b, compute_uv=False), 1, atol=1e-8)


def test_agreement_is_one_for_equal_folds_and_less_for_noise(X):
    doubled = np.vstack([X, X])
    halves = [(np.arange(240), np.arange(240, 480)), (np.arange(240, 480), np.arange(240))]
    basis = make_basis("fourier", Gaussian(2.0), X, 40, random_state=0)
    whole, folds = Folds(halves, 480).moments(
        ArraySource(doubled, checked=True), EnergyForm(DiffusionTensor(None, 2)), basis, None
    )
    assert cross_fit(whole, folds, None, R, [1e-2])[0].agreement() == pytest.approx(1, abs=1e-9)
    few = make_splits(3, X[:30], None, R, 0)
    whole, folds = Folds(few, 30).moments(
        ArraySource(X[:30], checked=True), EnergyForm(DiffusionTensor(None, 2)), basis, None
    )
    assert cross_fit(whole, folds, None, R, [1e-6])[0].agreement() < 0.95


@pytest.mark.slow
@known("ridge", "no-gap")  # any kernel and any λ
def test_timescale_score_obeys_ky_fan():
    """At the exact modes the score is the exact sum of time scales; no other space exceeds it beyond sampling error."""
    problem = kdmaps.problems.load("ou2d-4")
    X = problem.sample(200_000, random_state=0)
    exact = (1 / problem.rates(5)).sum()
    h = 1e-4
    phi = problem.eigenfunctions(X, 5)
    phi = phi - phi.mean(axis=0)
    steps = h * np.eye(2)
    gradients = [(problem.eigenfunctions(X + e, 5) - problem.eigenfunctions(X - e, 5)) / (2 * h) for e in steps]
    energy = sum(g.T @ g for g in gradients) / len(X)
    value = scores.timescale_score(phi.T @ phi / len(X), energy)
    # He4 has relative variance of φ² of order 100, hence a standard error of about √(100/2e5) = 2 % of its 1/4 and
    # less for the others: 1 % of the sum is more than three standard errors.
    assert value == pytest.approx(exact, rel=0.01)
    train, test = X[:100_000], X[100_000:]
    for kernel in ("gaussian", "matern32", "laplacian"):
        for bandwidth in (1.0, 4.0):
            model = kdmaps.KernelDiffusionMap(5, kernel=kernel, bandwidth=bandwidth, n_features=100, random_state=0)
            assert model.fit(train).score(test) <= exact * 1.01


def test_bad_folds_are_refused(X):
    with pytest.raises(ValueError, match="too few for 4 mode"):
        make_splits(3, X[:9], None, 4, 0)
    with pytest.raises(ValueError, match=r"gaps of 7 rows around them.*Use a shorter lag"):
        make_splits(BlockedKFold(3, gap=7), X[:20], None, 2, 0)
    with pytest.raises(ValueError, match="4 rows are too few for 6 blocks"):
        make_splits(BlockedKFold(6, gap=1), X[:4], None, 1, 0)
    with pytest.raises(ValueError, match="at least 2"):
        make_splits([(np.arange(10), np.arange(10, 20))], X, None, 2, 0)
    with pytest.raises(ValueError, match="n_splits"):
        BlockedKFold(1)
    with pytest.raises(ValueError, match="Unknown scoring"):
        make_scoring("accuracy")


def test_leaves_out_folds_without_drawn_rows():
    groups = np.repeat(np.arange(10), 30)
    source, rows = ArraySource(np.arange(300.0)[:, None]), np.concatenate([np.arange(30, 200), [290, 291]])
    with expects("folds-left-out") as record:
        splits = splits_at(LeaveOneGroupOut(), source, groups, rows, 2, 0)
    (check,) = checks(record)
    assert (check.value, check.words) == (4, {"count": 10, "rows": 172})
    assert [set(groups[rows[test]]) for _, test in splits] == [{1}, {2}, {3}, {4}, {5}, {6}]
    # A training set may be empty, too: the first block of a series.
    with expects("folds-left-out") as record:
        splits = splits_at(TimeSeriesSplit(5), source, None, np.arange(60, 300), 2, 0)
    assert (checks(record)[0].value, checks(record)[0].words["count"]) == (1, 5)
    assert [len(train) for train, _ in splits] == [40, 90, 140, 190]
    with pytest.raises(ValueError, match=r"10 of 10 folds .* a larger max_search_samples"):
        splits_at(LeaveOneGroupOut(), source, groups, np.arange(30, 60), 2, 0)
