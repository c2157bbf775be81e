"""Unreliable fits warn; others do not."""

import warnings

import numpy as np

from kdmaps import KernelDiffusionMap, problems
from shared import checks, expects, known


@known("mismatch")
def test_cut_through_a_cluster():
    # The noisy circle: modes come in pairs, and three cut through the second.
    X = problems.load("circle").sample(1000, random_state=0)
    with expects("no-gap") as record:
        KernelDiffusionMap(3, random_state=0).fit(X)
    assert (checks(record)[0].words["last"], checks(record)[0].words["after"]) == (3, 4)
    assert record[0].filename == __file__


def test_complete_clusters_are_silent():
    X = problems.load("circle").sample(3000, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelDiffusionMap(4, bandwidth=0.5, random_state=0).fit(X)


@known("no-gap", "energy-samples", "transition-samples", "mismatch", "variance-samples", "ridge", "independent-samples")
def test_too_few_samples():
    X = np.random.default_rng(0).standard_normal((40, 10))
    with expects("unresolved"):
        KernelDiffusionMap(4, regularization=1e-4, random_state=0).fit(X)


@known("variance-samples")
def test_ill_conditioned():
    X = np.random.default_rng(0).standard_normal((400, 2)) * [1.0, 0.55]
    with expects("condition"):
        KernelDiffusionMap(2, bandwidth=20.0, regularization=1e-14, random_state=0).fit(X)
