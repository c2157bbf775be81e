"""Points far from all samples."""

import warnings

import numpy as np
import pytest

from kdmaps import KernelDiffusionMap, problems
from kdmaps.data.distances import Support
from shared import checks, expects, known


@pytest.fixture(scope="module")
def model():
    return KernelDiffusionMap(2, random_state=0).fit(problems.load("dw1d").sample(600, random_state=0))


def test_transform_far_outside_warns(model):
    with expects("extrapolation") as record:
        model.transform([[0.0], [5.0]])
    (check,) = checks(record)
    assert (check.value, check.words["count"], check.words["row"]) == (1, 2, 1)
    assert model.extrapolates([[0.0], [1.5], [5.0]]).tolist() == [False, False, True]


def test_no_warning_for_samples_of_the_same_distribution(model):
    X = problems.load("dw1d").sample(20_000, random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.transform(X)
    assert model.extrapolates(X).mean() < 0.003


def test_hole_is_far_from_samples_but_not_outside():
    ring = problems.load("circle").sample(500, random_state=0)
    support = Support.of(ring, 0)
    assert support.far(np.zeros((1, 2))).tolist() == [True]
    assert support.outside(np.zeros((1, 2))).size == 0


@known("ridge")  # two clusters
def test_chunks_extend_the_range():
    X = np.random.default_rng(0).random((200, 1))
    model = KernelDiffusionMap(1, random_state=0).partial_fit(X)
    model.partial_fit(X + 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.transform(X + 5)
