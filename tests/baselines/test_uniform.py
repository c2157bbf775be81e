import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import kdmaps
from experiments.paper._printed import MAIN_RESULTS
from kdmaps.baselines import UniformMixtureMap
from kdmaps.kernels import Gaussian
from shared import known_warning


@parametrize_with_checks([UniformMixtureMap(n_components=1, n_features=20, n_kernels=3)])
@known_warning()  # the checks fit blobs and a few points
@pytest.mark.filterwarnings("ignore:sample_weight leaves:kdmaps.exceptions.DataWarning")  # one of 16 weighs ten times
@pytest.mark.slow
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_kernel_is_the_mean_of_gaussians():
    X = kdmaps.problems.load("ou2d-4").sample(200, random_state=0)
    kernel = UniformMixtureMap(2, n_kernels=3, bandwidth_range=(0.5, 50), random_state=0).fit(X).kernel_
    median = kdmaps.data.distances.median_distance(X)
    expected = sum(Gaussian(median * factor)(X) for factor in (0.5, 5, 50)) / 3
    np.testing.assert_allclose(kernel(X), expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        *(({"n_kernels": n}, "n_kernels must be a positive integer") for n in (0, 2.5, True, "a")),
        *(({"bandwidth_range": r}, "bandwidth_range must be two positive") for r in (3, (1,), (-1, 2), (5, 1), "ab")),
    ],
)
def test_invalid_arguments_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        UniformMixtureMap(2, random_state=0, **wrong).fit(np.random.default_rng(0).standard_normal((40, 2)))


@pytest.mark.parametrize(
    ("basis", "n_features", "method"), [("fourier", 300, "Uniform+RFF"), ("landmarks", 60, "Uniform+Nyström")]
)
@known_warning()  # as the paper does it, with the constant
def test_reproduces_the_printed_cells(basis, n_features, method):
    """Uniform on OU2D α=16 (tab:main-results), with the constant among the modes.

    It finds He1, He2, .. of x, the true slow modes, which span half of the paper's reference {x, y, x²-1, y²-1}.
    """
    problem = kdmaps.problems.load("ou2d-16")
    found = []
    for seed in (42, 43, 44):
        X = problem.sample(500, random_state=seed)
        model = UniformMixtureMap(4, basis=basis, n_features=n_features, center=False, random_state=seed).fit(X)
        found.append(kdmaps.metrics.subspace_r2(model.transform(X), problem.paper_reference(X)))
        assert kdmaps.metrics.subspace_r2(model.transform(X), problem.reference(X, 4)) > 0.85
    assert np.mean(found) == pytest.approx(MAIN_RESULTS["OU2D α=16", method][0], abs=3 * 0.004)  # printed: ± 0.004
