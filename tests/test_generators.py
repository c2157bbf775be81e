"""Generators against finite differences, exact eigenfunctions and integration by parts."""

import pickle
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

import kdmaps
from kdmaps import Factor, KernelDiffusionMap
from kdmaps.bases import BASES, ModeBasis, make_basis
from kdmaps.forms.moments import generator_moments
from kdmaps.generators import Generator, for_problem, rayleigh_residuals
from kdmaps.kernels import FAMILIES, Gaussian, Laplacian, Matern, Mixture
from shared import MATRIX, diagonal_field, generator_by_differences, kernels, scalar_field, thin_factor

DIM = 3
KERNELS = kernels(
    "gaussian",
    "matern32",
    "matern52",
    "matern72",
    "rq2",
    "rq5",
    "gaussian-anisotropic",
    "matern52-anisotropic",
    "mixture",
    "mixture-not-proportional",
    "metric-gaussian",
    "metric-matern32",
    "metric-of-mixture",
    "mixture-of-different-metrics",
)


def swirl(X):
    return np.stack([np.sin(X[:, 1]), X[:, 0] * X[:, 2], -(X[:, 1] ** 2)], axis=1)


def linear(X):
    return -X @ MATRIX.T


GENERATORS = {
    "ou": Generator(linear),
    "langevin": Generator(lambda X: X - X**3),
    "matrix": Generator(swirl, MATRIX),
    "diagonal": Generator(swirl, [0.3, 1.0, 2.0]),
    "scalar-field": Generator(swirl, scalar_field),
    "diagonal-field": Generator(swirl, diagonal_field),
    "factor-field": Generator(swirl, lambda X: Factor(thin_factor(X))),
}
RNG = np.random.default_rng(0)
# Away from the origin, where a basis and a drift that disagree on coordinates would show.
CENTRE = np.array([2.0, -1.0, 0.5])
X = RNG.standard_normal((25, DIM)) + CENTRE
SAMPLES = RNG.standard_normal((40, DIM)) + CENTRE

every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
every_generator = pytest.mark.parametrize("generator", GENERATORS.values(), ids=GENERATORS)


def build(name, kernel):
    return make_basis(name, kernel, SAMPLES, 12, random_state=0)


@every_generator
@every_kernel
@pytest.mark.parametrize("name", BASES)
@pytest.mark.slow
def test_features_against_finite_differences(name, kernel, generator):
    basis = build(name, kernel)
    expected = generator_by_differences(generator, basis.features, X, step=3e-4)
    # Central differences are off by f''''·step²/12, and by |f'''|·step/3 for Matérn 3/2, which is not C⁴.
    assert_allclose(generator.apply(basis, X), expected, rtol=0, atol=2e-5 * np.abs(expected).max())


@every_generator
@every_kernel
def test_value_at_a_landmark_is_the_curvature(kernel, generator):
    """𝒢k(·, z)(z) = 2κ'(0) tr(TᵀaT), Σ_j a_jj/σ_j² in simple cases, summed over the mixture, because ∇k = 0 at z."""
    images = np.diagonal(generator(kernel, X, X))

    def spread(part):  # 𝒢|xT - c|² = 2tr(TᵀaT) at c = xT
        return generator_by_differences(generator, lambda x: (part.coordinates(x - X) ** 2).sum(axis=1), X)

    expected = sum(beta * part.profile(np.zeros(1), 1) * spread(part) for beta, part in kernel.components())
    assert_allclose(images, expected, rtol=1e-6)


@pytest.mark.parametrize("alpha", [1.0, 4.0])
def test_hermite_polynomials_are_eigenfunctions(alpha):
    problem = kdmaps.problems.OrnsteinUhlenbeck([alpha])
    points = np.linspace(-2, 2, 21)[:, None]
    images = generator_by_differences(for_problem(problem), lambda x: problem.eigenfunctions(x, 4), points, step=1e-4)
    assert_allclose(images, -alpha * np.arange(1, 5) * problem.eigenfunctions(points, 4), atol=3e-6 * alpha**2)


@pytest.mark.parametrize("name", ["ou2d-4", "ou3d", "dw1d", "mdlike-6"])
def test_generators_of_problems_agree_with_exact_modes(name):
    problem = kdmaps.problems.load(name)
    points = problem.sample(200, random_state=1)
    images = generator_by_differences(for_problem(problem), lambda x: problem.eigenfunctions(x, 3), points, step=0.01)
    found = rayleigh_residuals(problem.eigenfunctions(points, 3), images)
    # step² for polynomials; modes of the double well are interpolated between finite volumes, which is rougher.
    tolerance = 1e-4 if name.startswith("ou") else 0.02
    assert_allclose(found.rates, problem.rates(3), rtol=tolerance)
    assert np.all(found.norms < tolerance * problem.rates(3))


def test_integration_by_parts():
    """E[f 𝒢g] = -E[∇f·∇g] for the samples of a reversible law, within five Monte-Carlo standard errors."""
    problem = kdmaps.problems.load("ou2d-4")
    samples = problem.sample(100_000, random_state=0)
    basis = make_basis("fourier", Gaussian(1.0), samples, 8, random_state=0)
    phi, images = basis.features(samples), for_problem(problem).apply(basis, samples)
    J = basis.gradient(samples, np.eye(8))
    for f in range(8):
        for g in range(8):
            terms = phi[:, f] * images[:, g] + np.einsum("nd,nd->n", J[:, f], J[:, g])
            assert abs(terms.mean()) < 5 * terms.std() / np.sqrt(len(terms))
    # The same on average with a general reversible diffusion: E[∇f·a∇g].
    a = np.array([[3.0, 1.0], [1.0, 2.0]])
    tilted = Generator(lambda x: -x @ (a @ np.diag([1.0, 4.0])).T, a)
    terms = phi[:, 0] * tilted.apply(basis, samples)[:, 1] + np.einsum("ni,ij,nj->n", J[:, 0], a, J[:, 1])
    assert abs(terms.mean()) < 5 * terms.std() / np.sqrt(len(terms))


@pytest.mark.parametrize("name", BASES[:3])
def test_moments_are_averages_of_products(name):
    basis, generator = build(name, Gaussian(1.4)), GENERATORS["matrix"]
    weight = np.random.default_rng(1).uniform(0.2, 3, len(X))
    phi, images = basis.features(X), generator.apply(basis, X)
    square, cross, image = generator_moments(partial(generator.apply, basis), basis, X, weight)
    w = weight / weight.sum()
    assert_allclose(square, (images * w[:, None]).T @ images, atol=1e-12)
    assert_allclose(cross, (images * w[:, None]).T @ phi, atol=1e-12)
    assert_allclose(image, w @ images, atol=1e-12)


def test_residuals_agree_with_moments():
    problem = kdmaps.problems.load("ou2d-4")
    samples = problem.sample(3000, random_state=0)
    model = KernelDiffusionMap(2, n_features=40, random_state=0).fit(samples)
    generator = for_problem(problem)
    found = generator.residuals(model, samples)
    modes = ModeBasis(model.basis_, model.coefficients_, model.modes_.offset)
    square, cross, _ = generator_moments(partial(generator.apply, modes), modes, samples)
    # The modes have unit second moment on the training samples.
    assert_allclose(found.rates, -np.diagonal(cross), rtol=1e-9)
    assert_allclose(found.norms**2, np.diagonal(square) - np.diagonal(cross) ** 2, rtol=1e-8)
    assert_allclose(found.norms**2, np.mean(found.values**2, axis=0), rtol=1e-9)


@pytest.mark.parametrize("name", ["fourier", "landmarks"])
def test_rayleigh_estimates_agree_with_the_rates(name):
    """-⟨φ, 𝒢φ⟩ = ⟨∇φ, ∇φ⟩ under the law: for fresh samples the two estimates of a rate differ by noise only."""
    problem = kdmaps.problems.load("ou2d-16")
    model = KernelDiffusionMap(3, basis=name, n_features=60, bandwidth=2.0, regularization=1e-4, random_state=0)
    model.fit(problem.sample(20_000, random_state=0))
    found = for_problem(problem).residuals(model, problem.sample(20_000, random_state=1))
    assert_allclose(found.rates, model.rates_, rtol=0.06)
    assert_allclose(found.rates, problem.rates(3), rtol=0.06)


@pytest.mark.parametrize("diffusion", [3.0, [2.0, 0.5]])
def test_diffusion_means_the_same_as_in_estimators(diffusion):
    """dX = -a∇V dt + √(2a) dW has the energy E[∇f·a∇f]: both estimates of a rate differ by noise only."""
    problem, a = kdmaps.problems.load("ou2d-4"), np.broadcast_to(diffusion, 2)
    model = KernelDiffusionMap(2, diffusion=diffusion, bandwidth=4.0, regularization=1e-4, random_state=0)
    model.fit(problem.sample(20_000, random_state=0))
    generator = Generator(lambda x: a * problem.drift(x), diffusion)
    found = generator.residuals(model, problem.sample(20_000, random_state=1))
    # Coordinates relax at the rates a_j·(1, 4); the first two modes are 1 and 2 of them.
    exact = np.sort(np.outer(a * [1, 4], [1, 2]).ravel())[:2]
    assert_allclose(model.rates_, exact, rtol=0.06)
    assert_allclose(found.rates, exact, rtol=0.06)


@pytest.mark.parametrize("kernel", [Laplacian(1.0), Matern(0.5, 1.0), Mixture([Gaussian(1.0), Laplacian(1.0)])])
def test_error_names_kernel_that_is_not_c2(kernel):
    rough = next(part for _, part in kernel.components() if part.smoothness < 2)
    with pytest.raises(ValueError, match="not twice differentiable") as error:
        GENERATORS["ou"].apply(build("landmarks", kernel), X)
    assert repr(rough) in str(error.value)
    assert "gaussian" in str(error.value)
    assert np.all(np.isfinite(GENERATORS["ou"].apply(build("fourier", kernel), X)))


def test_error_lists_all_c2_families():
    with pytest.raises(ValueError, match="C² family") as error:
        GENERATORS["ou"](Laplacian(1.0), X, X)
    for name, family in FAMILIES.items():
        assert (name in str(error.value).split("family")[1]) == (family(1.0).smoothness >= 2)


@pytest.mark.parametrize(
    ("generator", "message"),
    [
        (Generator(lambda x: x[:, :1]), "shape"),
        (Generator(lambda x: x / 0 * 0), "not finite"),
        (Generator(swirl, np.ones((25, 3, 3))), "callable"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_errors_of_drift_and_diffusion(generator, message):
    with pytest.raises(ValueError, match=message):
        generator.apply(build("fourier", Gaussian(1.0)), X)


def test_errors_of_arguments():
    with pytest.raises(ValueError, match="a drift"):
        for_problem(kdmaps.problems.load("sphere-3"))
    with pytest.raises(TypeError, match="closed form"):
        GENERATORS["ou"].apply(object(), X)


def test_generators_can_be_pickled():
    again = pickle.loads(pickle.dumps(GENERATORS["ou"]))
    assert_allclose(again(Gaussian(1.0), X, X), GENERATORS["ou"](Gaussian(1.0), X, X), rtol=1e-12)
