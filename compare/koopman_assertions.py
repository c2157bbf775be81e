"""Numerical assertions of the tests of kooplearn and deeptime, with kdmaps in place of their estimators.

Data, tolerances and the asserted numbers are taken from `tests/` of kooplearn 2.0.3 and deeptime 0.4.5 (and its later
tests of weighted VAMP); assertions on shapes, types and attributes are left out, and so are assertions that a class
makes about its own `score` method. A function here yields the largest deviation and the tolerance for each assertion.
Random data have other seeds, and the states of test_koopman_reweighting are simulated. `AdaptiveDiffusionMap` chooses
the kernel unless a test prescribes one. The exact spectrum that kooplearn computes for its logistic map, which its
tests do not use, is compared as well. Needs kdmaps, kooplearn and deeptime in one environment.

    python compare/koopman_assertions.py
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import special_ortho_group

import kdmaps
from kdmaps.spectrum.directed import two_sided

OUT = Path(__file__).resolve().parents[1] / "results" / "koopman" / "assertions.md"
FLOAT32 = float(np.finfo(np.float32).eps)
Check = Iterator[tuple[str, float, float]]
CHECKS: list[tuple[Callable[[], Check], str]] = []


def check(why: str = "") -> Callable[[Callable[[], Check]], Callable[[], Check]]:
    """Register the assertions of a test, which the docstring names, and the reason for those that do not hold."""

    def register(function: Callable[[], Check]) -> Callable[[], Check]:
        CHECKS.append((function, why))
        return function

    return register


def fit(X: Any, r: int, **options: Any) -> Any:
    """Fit pairs of frames in their direction of time; with a bandwidth, without a search."""
    settings = {"lag": 1, "reversible": False, "random_state": 0, **options}
    given = {name: settings.pop(name) for name in ("groups", "sample_weight") if name in settings}
    cls = kdmaps.KernelDiffusionMap if "bandwidth" in settings else kdmaps.AdaptiveDiffusionMap
    return cls(r, **settings).fit(X, **given)


def fit_pairs(x: np.ndarray, y: np.ndarray, r: int, **options: Any) -> Any:
    """Fit pairs that do not form a trajectory."""
    return fit(np.vstack([x, y]), r, groups=np.tile(np.arange(len(x)), 2), **options)


def predict(model: Any, X: np.ndarray, values: np.ndarray, at: np.ndarray, groups: Any = None) -> np.ndarray:
    """Return E[values one lag later] from some points."""
    return kdmaps.dynamics.forecast(model, X, values, [1.0], at=at, groups=groups).values[0]


def largest(*differences: Any) -> float:
    """Return the largest absolute value."""
    return max(float(np.max(np.abs(some))) for some in differences)


def up_to_sign(found: np.ndarray, exact: np.ndarray) -> float:
    """Return the largest difference of columns up to their sign."""
    return max(min(largest(a - b), largest(a + b)) for a, b in zip(found.T, exact.T, strict=True))


# kooplearn


def linear_system(n: int, largest_value: float) -> np.ndarray:
    """Return the noisy linear system of kooplearn's tests, five eigenvalues in twenty dimensions."""
    from kooplearn.datasets import make_linear_system

    values = np.concatenate([10 * largest_value * np.logspace(-3, -1, 5), np.zeros(15)])
    Q = special_ortho_group(20, 0).rvs(1)
    return make_linear_system(np.zeros(20), Q @ np.diag(values) @ Q.T, n, noise=1e-3, random_state=0).to_numpy()


@check()
def kooplearn_linear_system() -> Check:
    """Kooplearn, KernelRidge, NystroemKernelRidge and Ridge: eigenvalues and predictions of a linear system."""
    for n, rate in ((50, 0.9), (100, 0.99)):
        X = linear_system(n, rate)
        for r in (3, 5, 15):
            for lag in (1, 5):
                options = {"bandwidth": 0.02, "regularization": 1e-5, "lag": lag}
                model = fit(X, r, **options)
                values = kdmaps.dynamics.koopman(model).eigenvalues
                name = f"{n} frames, {r} functions, lag {lag}"
                yield f"finite eigenvalues, {name}", 0.0 if np.isfinite(values).all() else np.inf, 0.0
                yield f"singular values finite, {name}", 0.0 if np.isfinite(model.rates_).all() else np.inf, 0.0
                for observable in (X, np.ones((len(X), 6))):
                    one, two = (
                        kdmaps.dynamics.forecast(model, X, observable, [float(lag)], at=X).values for _ in range(2)
                    )
                    yield f"same prediction twice, {name}", largest(one / two - 1), 1e-10


@check("conjugate pairs are not cut: r + 1 eigenvalues")
def kooplearn_number() -> Check:
    """Kooplearn, the same: at most n_components eigenvalues."""
    X = linear_system(50, 0.9)
    for r in (3, 5, 15):
        found = kdmaps.dynamics.koopman(fit(X, r, bandwidth=0.02, regularization=1e-5)).eigenvalues
        yield f"{r} functions", float(max(0, len(found) - r)), 0.0


@check()
def kooplearn_random_state() -> Check:
    """Kooplearn, test_random_state_reproducibility."""
    X = np.random.default_rng(0).normal(size=(25, 6))
    one, two = (fit(X, 3, bandwidth=2.4, regularization=1e-3, random_state=42).coefficients_ for _ in range(2))
    yield "coefficients", largest(one / two - 1), 1e-10


@check()
def kooplearn_kernel() -> Check:
    """Kooplearn, test_callable_kernel_functionality: γ = 0.1, 15 samples."""
    X = np.random.default_rng(0).normal(size=(15, 5))
    model = fit(X, 3, bandwidth=np.sqrt(5), regularization=1e-6)
    yield "finite singular values", 0.0 if np.isfinite(model.rates_).all() else np.inf, 0.0


@check()
def kooplearn_errors() -> Check:
    """Kooplearn, test_invalid_input_shape_raises, test_predict_observable_shape_mismatch_raises."""
    X = np.random.default_rng(0).normal(size=(40, 4))
    model = fit(X, 1, bandwidth=2.0)
    for name, call in (
        ("one frame", lambda: fit(X[:1], 1, bandwidth=2.0)),
        ("observable of another length", lambda: predict(model, X, X[:-2], X)),
    ):
        try:
            call()
        except ValueError:
            yield name, 0.0, 0.0
        else:
            yield name, np.inf, 0.0


# deeptime


@check("an orthogonal map has infinitely many eigenvalues on the unit circle, the leading 25 are not the linear ones")
def deeptime_dmd() -> Check:
    """Deeptime, test_dmd.test_decomposition: an orthogonal matrix in 25 dimensions."""
    rng = np.random.default_rng(0)
    A = np.linalg.qr(rng.normal(size=(25, 25)))[0]
    x = [rng.uniform(-1, 1, size=25)]
    for _ in range(499):
        x.append(A @ x[-1])
    X = np.array(x)
    model = fit(X, 25)
    found, exact = kdmaps.dynamics.koopman(model).eigenvalues, np.linalg.eigvals(A)
    yield "eigenvalues of A", largest(np.abs(found[:, None] - exact).min(axis=0)), 1.5e-6
    # test_propagate
    yield "next frames", largest(predict(model, X, X, X[:50]) - X[1:51]), 1.5e-6


@check("a kernel is not linear, and does not extrapolate to 9 times the range of the data")
def deeptime_edmd() -> Check:
    """Deeptime, test_edmd.test_linearly_evolved_data: an expanding map in four dimensions."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(1000, 4))
    Q = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    K = Q @ np.diag(np.arange(4.0)) @ Q.T
    model, X, groups = fit_pairs(x, x @ K, 4), np.vstack([x, x @ K]), np.tile(np.arange(1000), 2)
    yield "predictions from the first points", largest(predict(model, X, X, x, groups) - x @ K), 1.5e-7
    yield "predictions from the second points", largest(predict(model, X, X, x @ K, groups) - x @ K @ K), 1.5e-7


@check("50 pairs determine no function of five variables that is not in a basis given in advance")
def deeptime_monomials() -> Check:
    """Deeptime, test_edmd.test_polynomially_evolved_data: monomials of degree 5 in five dimensions from 50 pairs."""
    from deeptime.basis import Monomials

    x = np.random.default_rng(0).uniform(0, 1, size=(50, 5))
    y, basis = 5 * x + 3 + x**2, Monomials(5, 5)
    X = np.vstack([x, y])
    values = basis(X)
    found = predict(fit_pairs(x, y, 5, bandwidth=3.0), X, values, x, np.tile(np.arange(50), 2))
    yield "predicted monomials", largest(found - values[50:]), 1.5e-4


@check()
def deeptime_sanity() -> Check:
    """Deeptime, test_kcca_sanity and test_kedmd.test_sanity: Bickley jet and ellipsoids, Gaussian kernels."""
    from deeptime.data import bickley_jet, ellipsoids

    ends = bickley_jet(200).endpoints_dataset()
    model = fit_pairs(ends.data, ends.data_lagged, 5, bandwidth=0.7, regularization=1e-3)
    yield "five singular values", abs(len(model.rates_) - 5), 0.0
    X = ellipsoids().observations(500)
    values = kdmaps.dynamics.koopman(fit(X, 4, bandwidth=1.0, regularization=1e-5)).eigenvalues
    yield "the first eigenvalues are not 0", 0.0 if (np.abs(values[:2]) > 0).all() else np.inf, 0.0


@check()
def deeptime_states() -> Check:
    """Deeptime, test_koopman_reweighting: correlations of ten states at a lag of 10, reversible."""
    rng = np.random.default_rng(0)
    T = np.eye(10) * 0.9
    for k in range(10):
        T[k, max(k - 1, 0)] += 0.05
        T[k, min(k + 1, 9)] += 0.05
    X, tau = np.eye(10)[chain(T, 20_000, rng)], 10
    both = np.vstack([X[:-tau], X[tau:]])
    mean = both.mean(axis=0)
    C0 = (both - mean).T @ (both - mean) / len(both)
    Ct = (X[:-tau] - mean).T @ (X[tau:] - mean) / (len(X) - tau)
    d, V = np.linalg.eigh(C0)
    R = V[:, d > 1e-6] / np.sqrt(d[d > 1e-6])
    exact = np.sort(np.linalg.eigvalsh(R.T @ (Ct + Ct.T) / 2 @ R))[::-1]
    found = fit(X, 9, bandwidth=1.0, regularization=1e-10, n_features=60, lag=tau, reversible=True)
    yield "eigenvalues", largest(1 - found.modes_.quotients - exact), 1e-7
    slow = exact > 0.1
    yield "time scales, relative", largest(found.timescales_[slow] * -np.log(exact[slow]) / tau - 1), 1e-7


def chain(T: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return a path of states."""
    states, total, state = np.empty(n, dtype=int), T.cumsum(axis=1), 0
    for t, number in enumerate(rng.random(n)):
        states[t] = state
        state = min(int(np.searchsorted(total[state], number)), len(T) - 1)
    return states


@check()
def deeptime_model() -> Check:
    """Deeptime, TestVAMPModel: three states, against the transition matrix."""
    T, rng = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]), np.random.default_rng(0)
    paths = [np.eye(3)[chain(T, 10_000, rng)] for _ in range(20)]
    options = {"bandwidth": 1.0, "regularization": 1e-10, "n_features": 30}
    model = fit(paths, 2, **options)
    x, y = (np.concatenate([path[rows] for path in paths]) for rows in (slice(None, -1), slice(1, None)))
    p0, p1, counts = x.mean(axis=0), y.mean(axis=0), x.T @ y
    P = counts / counts.sum(axis=1, keepdims=True)
    U, S, V = np.linalg.svd(np.sqrt(p0)[:, None] * P / np.sqrt(p1))
    f, g = (np.asarray(model.transform(np.eye(3), end=end)) for end in ("first", "second"))
    singular = 1 - model.modes_.quotients
    yield "singular values", largest(singular - S[1:]), 1e-7
    tolerance = 2.5e-5  # atol + rtol·|value|, 1e-5 each
    yield "left singular functions", up_to_sign(f, U[:, 1:] / np.sqrt(p0)[:, None]), tolerance
    yield "right singular functions", up_to_sign(g, V.T[:, 1:] / np.sqrt(p1)[:, None]), tolerance
    explained = np.cumsum(S[1:] ** 2) / np.sum(S[1:] ** 2)
    yield "cumulative kinetic variance", largest(np.cumsum(singular**2) / np.sum(singular**2) - explained), 1e-7
    # VAMP-2 contains the constant function, which score() does not.
    yield "VAMP-2 score of the transition matrix, relative", abs((model.score(paths) + 1) / np.sum(S**2) - 1), 1e-7
    yield "VAMP-1 score, relative", abs((singular.sum() + 1) / S.sum() - 1), 1e-7
    values = kdmaps.dynamics.koopman(model).eigenvalues
    exact = np.sort(np.linalg.eigvals(P).real)[::-1][1:]
    yield "eigenvalues of the transition matrix", largest(np.sort(values.real)[::-1] - exact), 1e-5
    score = fit(paths[:10], 2, **options).score(paths[10:]) + 1
    T_train = sum(path[:-1].T @ path[1:] for path in paths[:10])
    yield "score of other trajectories against the Markov model", abs(score - markov_score(T_train, paths[10:])), 1e-3


def markov_score(counts: np.ndarray, paths: list[np.ndarray]) -> float:
    """Return the VAMP-2 score, on other paths, of the singular functions of a matrix of counts."""
    P = counts / counts.sum(axis=1, keepdims=True)
    p0, p1 = counts.sum(axis=1) / counts.sum(), counts.sum(axis=0) / counts.sum()
    U, _, V = np.linalg.svd(np.sqrt(p0)[:, None] * P / np.sqrt(p1))
    u, v = U / np.sqrt(p0)[:, None], V.T / np.sqrt(p1)[:, None]
    x, y = (np.concatenate([path[rows] for path in paths]) for rows in (slice(None, -1), slice(1, None)))
    C00, C11, C01 = (a.T @ b / len(x) for a, b in ((x @ u, x @ u), (y @ v, y @ v), (x @ u, y @ v)))
    return float(np.trace(np.linalg.solve(C00, C01) @ np.linalg.solve(C11, C01.T)))


@check("λ > 0 makes singular functions of unit variance slightly oblique")
def deeptime_orthonormal() -> Check:
    """Deeptime, TestVAMPEstimatorSelfConsistency and test_weights_self_consistency: orthonormal functions."""
    rng = np.random.default_rng(0)
    A, tau = rng.normal(size=(20, 20)), 50
    paths = [np.cumsum(rng.normal(size=(n, 20)), axis=0) @ A for n in (123, 456, 789)]
    model = fit(paths, 5, bandwidth=60.0, regularization=1e-8, lag=tau)
    ends = ((slice(None, -tau), "first"), (slice(tau, None), "second"))
    f, g = (np.concatenate([model.transform(path[rows], end=end) for path in paths]) for rows, end in ends)
    yield "means of both ends", largest(f.mean(axis=0), g.mean(axis=0)), 10 * FLOAT32
    yield "variances of both ends", largest(f.var(axis=0) - 1, g.var(axis=0) - 1), 10 * FLOAT32
    covariances = [some.T @ some / len(some) - np.eye(5) for some in (f, g)]
    yield "covariances of both ends", largest(*covariances), 10 * FLOAT32
    yield "diagonal correlation of both ends", largest(np.diag(f.T @ g) / len(f) - 1 + model.modes_.quotients), 1e-6
    off = f.T @ g / len(f)
    yield "no other correlation", largest(off - np.diag(np.diag(off))), 10 * FLOAT32


@check()
def deeptime_chapman() -> Check:
    """Deeptime, test_cktest: ellipsoids, predictions of lags 2 to 4 from lag 1."""
    from deeptime.data import ellipsoids

    X = ellipsoids(seed=13).observations(10_000)
    rates = [kdmaps.dynamics.koopman(fit(X, 1, lag=lag)).eigenvalues[0] for lag in (1, 2, 3, 4)]
    for k, value in zip((2, 3, 4), rates[1:], strict=True):
        yield f"lag {k}", abs(rates[0] ** k - value), 0.15


@check("deeptime symmetrizes the sums in both fits; a directed fit of kdmaps does not")
def deeptime_consistency() -> Check:
    """Deeptime, test_tica.test_vamp_consistency: ellipsoids in 50 dimensions, reversible against directed."""
    from deeptime.data import ellipsoids

    X = ellipsoids(seed=13).observations(10_000, n_dim=50)
    one, two = (fit(X, 2, reversible=reversible) for reversible in (True, False))
    correlations = [1 - model.modes_.quotients for model in (one, two)]
    yield "first singular value", abs(correlations[0][0] - correlations[1][0]), 0.15
    yield "second singular value", abs(correlations[0][1] - correlations[1][1]), 0.15
    yield "first time scale", abs(one.timescales_[0] - two.timescales_[0]), 0.015


@check()
def deeptime_tica() -> Check:
    """Deeptime, TestTICAExtensive: two hidden states, 40,000 frames."""
    rng, lag = np.random.default_rng(123), 10
    states = chain(np.array([[0.99, 0.01], [0.01, 0.99]]), 40_000, rng)
    X = np.array([[-1.0, 1.0], [1.0, -1.0]])[states] + [0.3, 2.0] * rng.normal(size=(40_000, 2))
    model = fit(X, 1, lag=lag, reversible=True)
    yield "unit variance", abs(np.var(model.transform(X)) - 1), 0.01


@check()
def deeptime_score() -> Check:
    """Deeptime, test_score.test_vamp_estimator_consistency: deeptime's score of kdmaps' functions."""
    from deeptime.data import sqrt_model
    from deeptime.decomposition import vamp_score_data

    X = sqrt_model(5000, seed=13)[1]
    model = fit(X, 1)
    ends = ((X[:-1], "first"), (X[1:], "second"))
    f, g = (np.asarray(model.transform(some, end=end)) for some, end in ends)
    yield "score", abs(vamp_score_data(f, g) - 1 - model.score(X)), 1.5e-7


@check("nonlinear functions have correlations above 0.99 here, too close to 1 to differ by 0.001")
def deeptime_weights() -> Check:
    """Deeptime, tests of weighted VAMP."""
    rng = np.random.RandomState(42)
    Q = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    K, x = Q @ np.diag(np.arange(1, 6) / 5) @ Q.T, [rng.normal(size=5)]
    for _ in range(4999):
        x.append(x[-1] @ K + 0.1 * rng.normal(size=5))
    X, weight = np.array(x), rng.exponential(size=5000)
    options: dict[str, Any] = {"bandwidth": 1.0, "regularization": 1e-6, "n_features": 60}
    plain = fit(X, 3, **options)
    ones, weighted = (fit(X, 3, sample_weight=some, **options) for some in (np.ones(5000), weight))
    yield "equal weights change nothing", largest(plain.modes_.quotients - ones.modes_.quotients), 1e-10
    other = largest(plain.modes_.quotients - weighted.modes_.quotients)
    yield "other weights do", 0.0 if other > 1e-3 else np.inf, 0.0
    z = weighted.basis_.features(X, len(X))
    w = weight[:-1] / weight[:-1].sum()
    a, b = z[:-1] - w @ z[:-1], z[1:] - w @ z[1:]
    sums = two_sided(weighted.moments_)
    parts = ((sums.first, a, a), (sums.cross, a, b), (sums.second, b, b))
    yield "weighted covariances", largest(*(C - (w[:, None] * p).T @ q for C, p, q in parts)), 1e-10
    yield "weighted means", largest(sums.first_mean - w @ z[:-1], sums.second_mean - w @ z[1:]), 1e-10
    f = np.asarray(weighted.transform(X[:-1]))
    yield "weighted means of the functions", largest(w @ f), 100 * FLOAT32
    yield "weighted variances of the functions", largest(w @ f**2 - 1), 100 * FLOAT32
    chunks = fit(lambda: iter(np.split(X, 5)), 3, **options)
    yield "chunks equal one array", largest(chunks.modes_.quotients - plain.modes_.quotients), 1e-8
    try:
        fit(X[:100], 1, sample_weight=np.ones(50), bandwidth=1.0)
    except ValueError:
        yield "weights of another length are refused", 0.0, 0.0
    else:
        yield "weights of another length are refused", np.inf, 0.0


@check()
def deeptime_constant() -> Check:
    """Deeptime, test_const_data: constant frames are refused."""
    for d in (1, 2):
        try:
            fit(np.ones((10, d)), 1, bandwidth=1.0)
        except ValueError:
            yield f"{d} columns", 0.0, 0.0
        else:
            yield f"{d} columns", np.inf, 0.0


# Exact spectra of kooplearn's data sets, which its own tests do not compare with


@check("`make_logistic_map` clips at 0 and 1, the spectrum is for x modulo 1")
def kooplearn_logistic() -> Check:
    """Not in the tests: exact spectrum of kooplearn's noisy logistic map."""
    from kooplearn.datasets import compute_logistic_map_eig, make_logistic_map

    X = make_logistic_map(0.5, n_steps=10_000, M=20, random_state=0).to_numpy()
    exact = np.sort_complex(np.asarray(compute_logistic_map_eig(M=20)).astype(complex))
    exact = exact[np.argsort(-np.abs(exact))][1:3]
    found = kdmaps.dynamics.koopman(fit(X, 8)).eigenvalues
    yield "second and third eigenvalue", largest(np.abs(found[:, None] - exact).min(axis=0)), 0.02


def main() -> None:
    """Write the table."""
    lines = []
    warnings.simplefilter("ignore")
    for function, why in CHECKS:
        test = (function.__doc__ or "").rstrip(".")
        found: list[tuple[str, float, float]] = []
        try:
            found.extend(function())
        except (ValueError, np.linalg.LinAlgError) as error:  # an assertion that cannot be evaluated does not hold
            found.append((f"{type(error).__name__}: {error}", np.inf, 0.0))
        good = [deviation <= limit for _, deviation, limit in found]
        print(f"{sum(good)} of {len(good)}  {test}", flush=True)
        lines.append((test, good, [(*row, why) for row, fine in zip(found, good, strict=True) if not fine]))
    all_good = [fine for test, good, _ in lines for fine in good if not test.startswith("Not in")]
    text = ["# Tests of kooplearn and deeptime", "", "From `compare/koopman_assertions.py`.", ""]
    text += [f"{sum(all_good)} of {len(all_good)} assertions hold.", "", "| test | hold | of |", "|---|---|---|"]
    text += [f"| {test} | {sum(good)} | {len(good)} |" for test, good, _ in lines]
    text += ["", "| does not hold | deviation | tolerance | reason |", "|---|---|---|---|"]
    for test, _, bad in lines:
        text += [f"| {test.split(':')[0]}: {name} | {d:.2g} | {limit:.2g} | {why} |" for name, d, limit, why in bad]
    OUT.write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
