"""Units of columns: searches with `standardize`, or with the right diffusion tensor, do not depend on them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import kdmaps
from kdmaps import AdaptiveDiffusionMap, KernelSearchCV
from kdmaps.exceptions import ArgumentError
from kdmaps.kernels import Gaussian
from shared import known

X = kdmaps.problems.load("ou2d-4").sample(300, random_state=0)
#: Few candidates, whose quality does not matter.
GRID = {"families": ("gaussian",), "regularizations": (1e-4, 1e-2), "n_features": 60}
pytestmark = known("mismatch", "no-gap", "outliers", "variance-samples", "kernel-factor", "held-out-factor", "flat")


def adaptive(**settings):
    search = KernelSearchCV(**{name: GRID[name] for name in ("families", "regularizations")})
    return AdaptiveDiffusionMap(2, n_features=60, search=search, random_state=0, **settings)


@pytest.mark.parametrize("factor", [1e-6, 1e-3, 1e6])
@pytest.mark.parametrize("tensor", [np.diag([1.0, 1.0]), np.array([[1.0, 0.3], [0.3, 2.0]])], ids=["diagonal", "full"])
def test_scaled_columns_with_their_tensor_have_the_same_modes(factor, tensor):
    """The law of (c x, y) with the tensor of (c x, y) is the same system: an exact invariance."""
    scale = np.array([factor, 1.0])
    tensors = [np.diag(one) @ tensor @ np.diag(one) for one in (np.ones(2) * [1.0, 1.0 + 1e-12], scale)]
    one, other = (adaptive(diffusion=D).fit(X * s) for D, s in zip(tensors, (1.0, scale), strict=True))
    assert_allclose(other.rates_, one.rates_, rtol=1e-6)
    assert_allclose(other.transform(X * scale), one.transform(X), atol=1e-5)
    assert_allclose(other.relevance_, one.relevance_, atol=1e-6)


def test_standardized_columns_do_not_depend_on_units(tmp_path):
    scale = np.array([1e5, 1e-3])
    one, other = (adaptive(standardize=True).fit(rows) for rows in (X, X * scale))
    assert_allclose(other.rates_, one.rates_, rtol=1e-6)
    assert_allclose(other.transform(X * scale), one.transform(X), atol=1e-5)
    assert_allclose(other.score(X * scale), one.score(X), rtol=1e-6)
    assert "scales" not in [check.code for check in other.checks.failed]
    other.save(tmp_path / "model.npz")
    stored = kdmaps.load(tmp_path / "model.npz")
    assert_allclose(stored.transform(X * scale), other.transform(X * scale), rtol=1e-12)
    assert_allclose(stored.score(X * scale), other.score(X * scale), rtol=1e-9)


def test_standardizing_equals_dividing_by_standard_deviations():
    deviations = X.std(axis=0)
    by_hand = adaptive().fit((X - X.mean(axis=0)) / deviations)
    assert_allclose(adaptive(standardize=True).fit(X).rates_, by_hand.rates_, rtol=1e-6)


@pytest.mark.parametrize(
    ("settings", "argument"),
    [
        ({"diffusion": 2.0}, "diffusion"),
        ({"search": KernelSearchCV(families=[Gaussian(1.0)])}, "kernels"),
        ({"search": KernelSearchCV(landmarks=X[:20])}, "landmarks"),
    ],
)
def test_settings_in_the_units_of_the_columns_are_refused(settings, argument):
    with pytest.raises(ArgumentError, match=argument):
        AdaptiveDiffusionMap(2, standardize=True, **settings).fit(X)


def test_streams_cannot_be_standardized():
    with pytest.raises(ArgumentError, match="memory"):
        AdaptiveDiffusionMap(2, standardize=True).fit(lambda: iter([X]))


class TestPairs:
    """Pairs of an Ornstein–Uhlenbeck process of time scale 2, drawn independently of each other."""

    random = np.random.default_rng(0)
    x = random.standard_normal((3000, 1))
    y = np.exp(-0.5) * x + np.sqrt(1 - np.exp(-1.0)) * random.standard_normal((3000, 1))

    def test_time_scale(self):
        model = kdmaps.KernelDiffusionMap(1, lag=1, random_state=0).fit(kdmaps.data.as_pairs(self.x, self.y))
        # The standard error of the autocorrelation is (1 - e^-1)/√3000 = 0.012: 4 % of the time scale, three of them.
        assert_allclose(model.timescales_, 2.0, rtol=0.12)

    def test_pairs_equal_trajectories_of_two_frames(self):
        pairs = kdmaps.data.as_pairs(self.x[:300], self.y[:300])
        runs = [np.array([a, b]) for a, b in zip(self.x[:300], self.y[:300], strict=True)]
        model = kdmaps.KernelDiffusionMap(1, lag=1, random_state=0)
        assert_allclose(model.fit(pairs).timescales_, model.fit(runs).timescales_, rtol=1e-12)

    @known("weighted-pairs")
    def test_weights_of_pairs_are_repetitions(self):
        count = np.random.default_rng(1).integers(1, 3, 300)
        model = kdmaps.KernelDiffusionMap(1, lag=1, bandwidth=2.0, landmarks=self.x[:20], basis="landmarks")
        weighted = model.fit(kdmaps.data.as_pairs(self.x[:300], self.y[:300]), sample_weight=np.repeat(count, 2))
        rates = weighted.rates_
        repeated = [np.repeat(one[:300], count, axis=0) for one in (self.x, self.y)]
        assert_allclose(model.fit(kdmaps.data.as_pairs(*repeated)).rates_, rates, rtol=1e-6)

    def test_a_tuple_of_two_tables_is_ambiguous(self):
        with pytest.raises(ArgumentError, match="as_pairs"):
            kdmaps.KernelDiffusionMap(1, lag=1).fit((self.x, self.y))

    @pytest.mark.parametrize("lag", [None, 2])
    def test_pairs_need_a_lag_of_one(self, lag):
        with pytest.raises(ArgumentError, match="lag=1"):
            kdmaps.KernelDiffusionMap(1, lag=lag).fit(kdmaps.data.as_pairs(self.x, self.y))

    def test_different_shapes(self):
        with pytest.raises(ArgumentError, match="shapes"):
            kdmaps.data.as_pairs(self.x, self.y[:10])
