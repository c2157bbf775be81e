"""Sums over pairs of frames, against the matrices themselves."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kdmaps.bases import BasisSpec
from kdmaps.data import as_source
from kdmaps.data.pairs import make_pairs
from kdmaps.data.sources import ArraySource
from kdmaps.forms.lagged import LaggedForm
from kdmaps.kernels import Gaussian

LAG = 3


@pytest.fixture(scope="module")
def frames():
    steps = np.random.default_rng(0).standard_normal((1500, 2))
    path = np.empty_like(steps)
    path[0] = steps[0]
    for t in range(1, len(steps)):
        path[t] = 0.9 * path[t - 1] + 0.4 * steps[t]
    return path


@pytest.fixture(params=["fourier", "landmarks", "random-phase"])
def basis(request, frames):
    return BasisSpec(request.param, 40).make(Gaussian(1.5), frames, None, 0)


def explicit(basis, frames, weight=None, lag=LAG):
    """Mean, C₀ and C₀ - C_τ of a basis, from the whole matrices of features."""
    features = basis.features(frames)
    here, there = features[:-lag], features[lag:]
    w = np.ones(len(here)) if weight is None else weight[:-lag]
    total = (w @ here + w @ there) / 2
    gram = ((here.T * w) @ here + (there.T * w) @ there) / 2
    cross = (here.T * w) @ there
    return total, gram, gram - (cross + cross.T) / 2


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_against_explicit_matrices(frames, basis, weighted):
    weight = np.random.default_rng(1).random(len(frames)) if weighted else None
    source, own, _ = make_pairs(ArraySource(frames), LAG, weight)
    (found,) = source.moments(LaggedForm(LAG), basis, own)
    total, gram, energy = explicit(basis, frames, weight)
    # The explicit difference C₀ - C_τ loses digits, the sum of squares does not.
    scale = np.abs(gram).max()
    assert_allclose(found.total, total, rtol=0, atol=1e-11 * np.abs(total).max())
    assert_allclose(found.gram, gram, rtol=0, atol=1e-11 * scale)
    assert_allclose(found.energy, energy, rtol=0, atol=1e-11 * scale)
    assert found.count == len(frames) - LAG
    assert_allclose(found.weight, found.count if weight is None else weight[:-LAG].sum())


def test_single_precision(frames):
    basis = BasisSpec("fourier", 40).make(Gaussian(1.5), frames, None, 0)
    source = make_pairs(ArraySource(frames), LAG).source
    (double,), (single,) = (source.moments(LaggedForm(LAG), b) for b in (basis, basis.astype(np.float32)))
    # Rounding of 6e-8 in every feature, of sums of 1,500 terms of size one.
    assert_allclose(single.energy, double.energy, atol=1e-5 * np.abs(double.energy).max())
    assert single.energy.dtype == np.float64


@pytest.mark.parametrize("cut", [40, 333])
def test_chunks_add_up(frames, basis, cut):
    (whole,) = make_pairs(ArraySource(frames), LAG).source.moments(LaggedForm(LAG), basis)
    stream = as_source(lambda: (frames[i : i + cut] for i in range(0, len(frames), cut)))
    (chunked,) = make_pairs(stream, LAG).source.moments(LaggedForm(LAG), basis)
    for name in ("total", "gram", "energy"):
        assert_allclose(getattr(chunked, name), getattr(whole, name), rtol=1e-10, atol=1e-10 * whole.count)


def test_time_reversal_has_no_effect(frames, basis):
    (forward,), (backward,) = (
        make_pairs(ArraySource(X), LAG).source.moments(LaggedForm(LAG), basis) for X in (frames, frames[::-1].copy())
    )
    assert_allclose(backward.energy, forward.energy, atol=1e-10)
    assert_allclose(backward.gram, forward.gram, atol=1e-10)


def test_memory_limit(frames, basis):
    source = make_pairs(ArraySource(frames), LAG).source
    with pytest.raises(ValueError, match="memory_limit"):
        source.moments(LaggedForm(LAG), basis, memory_limit=0.01)
    (small,), (default,) = (source.moments(LaggedForm(LAG), basis, memory_limit=limit) for limit in (2.0, None))
    assert_allclose(small.energy, default.energy, rtol=1e-10, atol=1e-10)
