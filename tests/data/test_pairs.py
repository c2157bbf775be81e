"""Pairs of frames do not depend on how frames are stored."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import kdmaps
from kdmaps.data import as_source
from kdmaps.data.pairs import RUN, Tail, make_pairs, paired_rows, split_pairs
from kdmaps.data.sources import ArraySource, draw_by_keys
from shared import checks, expects, known


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def brute_force(groups, lag):
    """All pairs, by iterating over every trajectory."""
    found = set()
    for label in set(groups):
        rows = [i for i, other in enumerate(groups) if other == label]
        found |= {(rows[k], rows[k + lag]) for k in range(len(rows) - lag)}
    return found


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.integers(1, 6))
def test_pairs_against_brute_force(groups, lag):
    """Pairs never cross trajectories, none is missing, and they are sorted by their first frames."""
    expected = brute_force(groups, lag)
    if not expected:
        with pytest.raises(ValueError, match="leaves no pair"):
            paired_rows(len(groups), lag, np.array(groups))
        return
    starts, ends = paired_rows(len(groups), lag, np.array(groups))
    assert set(zip(starts.tolist(), ends.tolist(), strict=True)) == expected
    assert len(starts) == len(expected)
    assert np.all(np.diff(starts) > 0)


def all_pairs(source, size):
    return np.concatenate([source.read(part)[1] for part in source.parts(size)])


def pair_set(paired):
    return set(map(tuple, all_pairs(paired.source, 99).tolist()))


@pytest.mark.parametrize("cut", [1, 3, 7, 40])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("lag", [1, 2, 5])
def test_streams_pair_across_chunks(rng, cut, grouped, lag):
    X = rng.standard_normal((40, 2))
    groups = np.repeat([4, 1, 7], [20, 6, 14]) if grouped else None
    weight = rng.random(40)
    whole = make_pairs(ArraySource(X), lag, weight, groups)
    stream = as_source(lambda: (X[i : i + cut] for i in range(0, 40, cut)))
    chunked = make_pairs(stream, lag, weight, groups)
    assert_array_equal(all_pairs(chunked.source, 9), all_pairs(whole.source, 11))
    assert_array_equal(chunked.weight, whole.weight)
    starts = paired_rows(40, lag, groups)[0]
    assert_array_equal(whole.weight, weight[starts])
    assert_array_equal(all_pairs(whole.source, 100)[:, :2], X[starts])


def test_stream_of_unknown_length(rng):
    X = rng.standard_normal((30, 3))
    stream = make_pairs(as_source(iter(np.array_split(X, 4))), 3).source
    assert_array_equal(all_pairs(stream, 8), np.hstack([X[:-3], X[3:]]))
    assert stream.n_samples == 27


def test_samples_are_first_frames(rng):
    X = np.arange(50.0)[:, None]
    source = make_pairs(ArraySource(X), 4).source
    rows, drawn, _ = source.sample(10, np.random.RandomState(0))
    assert_array_equal(drawn[:, 0], rows)
    rows, thin, _ = source.thinned(10, np.random.RandomState(0))
    first, second = split_pairs(all_pairs(thin, 4))
    assert_array_equal(first[:, 0], rows)
    assert_array_equal(second - first, np.full((10, 1), 4.0))


@given(st.integers(1, 9), st.integers(1, 60), st.lists(st.integers(1, 30), min_size=1, max_size=8), st.integers(0, 99))
def test_runs_are_complete_for_any_chunks(run, size, lengths, seed):
    rows = np.arange(sum(lengths))
    size = min(size, len(rows))
    (whole,) = draw_by_keys([(rows,)], size, seed, run)
    (cut,) = draw_by_keys([(piece,) for piece in np.split(rows, np.cumsum(lengths)[:-1])], size, seed, run)
    assert_array_equal(cut, whole)
    assert len(whole) == size
    drawn, total = np.bincount(whole // run, minlength=len(rows)), np.bincount(rows // run, minlength=len(rows))
    partial_runs = np.flatnonzero((drawn > 0) & (drawn < total))
    assert len(partial_runs) <= 1
    for number in partial_runs:  # its first rows
        assert_array_equal(whole[whole // run == number], number * run + np.arange(drawn[number]))


def test_all_runs_are_equally_likely(rng):
    """30 of 100 runs, 400 times: a count has a standard error of √(400·.3·.7) = 9."""
    counts = np.zeros(100)
    for seed in range(400):
        counts[np.unique(draw_by_keys([(np.arange(500),)], 150, seed, 5)[0] // 5)] += 1
    assert np.abs(counts - 120).max() < 5 * 9.2


def test_thinning_keeps_transitions_of_excursions():
    """Some pairs leave each excursion of 5 frames; without them, its indicator function would not decay."""
    n, size, every = 80_000, 20_000, 1000
    X = np.zeros((n, 1))
    for k in range(n // every):
        X[every // 2 + k * every + np.arange(5)] = k + 1

    def without_end(**options):
        """Return the share of sampled excursions without a pair that enters or leaves."""
        rows = make_pairs(ArraySource(X), 1).source.thinned(size, np.random.RandomState(0), **options)[0]
        here, there = X[rows, 0], X[rows + 1, 0]
        seen, crossed = (set(np.concatenate([here[which], there[which]])) for which in (here >= 0, here != there))
        return 1 - len(crossed - {0}) / len(seen - {0})

    assert without_end(run=1) > 0.25
    assert without_end() <= 0.05  # a run of 100 may end within an excursion of 5


@pytest.mark.parametrize("n_walkers", [3, 500])
def test_length_of_runs_of_interleaved_walkers(n_walkers):
    n_frames = 120_000 // n_walkers
    groups = np.tile([f"walker {k}" for k in range(n_walkers)], n_frames)
    X = np.arange(float(len(groups)))[:, None]
    weight = np.ones(len(groups))
    source, own, _ = make_pairs(ArraySource(X), 1, weight, groups)
    rows, thin, drawn = source.thinned(30_000, np.random.RandomState(0), own)
    first, second = split_pairs(all_pairs(thin, 4000))
    assert_array_equal(second - first, np.full((30_000, 1), float(n_walkers)))
    assert_array_equal(first[:, 0], rows)
    assert_array_equal(drawn, np.ones(30_000))
    frames = np.sort(rows % n_walkers * (n_frames + 1) + rows // n_walkers)  # along trajectories, with gaps
    lengths = np.diff(np.flatnonzero(np.diff(np.concatenate([[-2], frames, [10**9]])) > 1))
    assert np.mean(lengths) > 0.9 * RUN  # runs at the end of a trajectory are shorter


def test_thinning_with_dask():
    dask_array = pytest.importorskip("dask.array")
    X, groups = np.arange(40_000.0)[:, None], np.tile(np.arange(4), 10_000)
    drawn = [
        make_pairs(as_source(data), 2, groups=groups).source.thinned(900, np.random.RandomState(1))
        for data in (X, dask_array.from_array(X, chunks=(7000, 1)))
    ]
    assert_array_equal(drawn[0][0], drawn[1][0])
    assert_array_equal(*(all_pairs(thin, 500) for _, thin, _ in drawn))


@pytest.mark.filterwarnings("ignore:.*trajectories .* are not longer:kdmaps.exceptions.DataWarning")
@given(st.lists(st.integers(0, 2), min_size=12, max_size=40), st.integers(1, 3), st.integers(5, 11), st.booleans())
def test_tails_complete_all_pairs(groups, lag, cut, weighted):
    """Two consecutive arrays have the pairs of the joined array."""
    groups = np.sort(groups)  # consecutive trajectories
    X, weight = np.arange(float(len(groups)))[:, None], np.arange(1.0, len(groups) + 1) if weighted else None
    try:
        expected = pair_set(make_pairs(ArraySource(X), lag, weight, groups))
        tail = Tail.of(ArraySource(X[:cut]), lag, None if weight is None else weight[:cut], groups[:cut])
        first = set(
            map(tuple, all_pairs(make_pairs(ArraySource(X[:cut]), lag, None, groups[:cut]).source, 99).tolist())
        )
        source, own, labels = tail.before(ArraySource(X[cut:]), None if weight is None else weight[cut:], groups[cut:])
        later = make_pairs(source, lag, own, labels)
    except ValueError:  # a part without pairs
        return
    second = pair_set(later)
    assert first | second == expected
    assert not first & second
    if weighted:
        assert_array_equal(later.weight, all_pairs(later.source, 99)[:, 0] + 1)


def test_stream_of_interleaved_trajectories(rng):
    stream = as_source(lambda: iter([rng.standard_normal((6, 2))]))
    with pytest.raises(ValueError, match="interleaves"):
        make_pairs(stream, 1, groups=[0, 1, 0, 1, 0, 1])


def test_lag_longer_than_a_trajectory(rng):
    with pytest.raises(ValueError, match=r"lag=10.*10 frame"):
        make_pairs(ArraySource(rng.standard_normal((10, 2))), 10)
    with pytest.raises(ValueError, match="lag=10"):
        all_pairs(make_pairs(as_source(iter([rng.standard_normal((10, 2))])), 10).source, 5)
    with pytest.raises(ValueError, match="one label for each of 10 frames"):
        make_pairs(ArraySource(rng.standard_normal((10, 2))), 1, groups=[0, 1])


@pytest.mark.filterwarnings("ignore::kdmaps.exceptions.UnreliableModesWarning")  # the frames are noise
def test_short_trajectories_are_named(rng):
    """A trajectory of `lag` frames is too short, one of `lag + 1` frames has a pair."""
    groups = np.repeat(["a", "b", "c", "d"], [4, 3, 2, 5])
    with expects("short-trajectories") as record:
        paired = make_pairs(ArraySource(rng.standard_normal((14, 2))), 3, groups=groups)
    (check,) = checks(record)
    assert (check.value, check.words) == (2, {"count": 4, "shown": "b, c", "lag_frames": 3})
    assert paired.groups.tolist() == ["a", "d", "d"]
    parts = [rng.standard_normal((n, 1)) for n in (400, 2, 400)]
    with expects("short-trajectories") as record:
        kdmaps.KernelDiffusionMap(1, lag=2, random_state=0).fit(parts)
    (check,) = checks(record)
    assert (check.value, check.words) == (1, {"count": 3, "shown": "1", "lag_frames": 2})
    many = np.repeat(np.arange(8), [9, 1, 1, 1, 1, 1, 1, 9])
    with expects("short-trajectories") as record:
        make_pairs(ArraySource(rng.standard_normal((24, 2))), 1, groups=many)
    (check,) = checks(record)
    assert (check.value, check.words) == (6, {"count": 8, "shown": "1, 2, 3, 4, 5, …", "lag_frames": 1})


@pytest.mark.parametrize("grouped", [False, True])
def test_dask_pairs(rng, grouped):
    da = pytest.importorskip("dask.array")
    X = rng.standard_normal((60, 2))
    groups = np.repeat([0, 1, 2], 20) if grouped else None
    whole = make_pairs(ArraySource(X), 3, None, groups)
    blocks = make_pairs(as_source(da.from_array(X, chunks=(7, 2))), 3, None, groups)
    assert_array_equal(all_pairs(blocks.source, 5), all_pairs(whole.source, 5))
    assert blocks.source.n_samples == whole.source.n_samples
    for source in (blocks.source, whole.source):  # frames of pairs in and outside of a sample
        starts, ends = paired_rows(60, 3, groups)
        rows = np.array([0, 5, len(starts) - 1])
        assert_array_equal(source.second_frames(rows), X[ends[rows]])
        drawn = source.sample(20, np.random.RandomState(0))
        assert_array_equal(drawn.X, X[starts[drawn.rows]])
        assert_array_equal(source.second_frames(drawn.rows[::3]), X[ends[drawn.rows[::3]]])
        assert_array_equal(source.second_frames(rows), X[ends[rows]])


@pytest.mark.parametrize("form", ["fit", "search"])
@known("unresolved", "ridge", "flat", "independent-samples", "held-out-factor")
def test_lag_with_dask_as_in_memory(rng, form):
    da = pytest.importorskip("dask.array")
    X = np.cumsum(rng.standard_normal((400, 2)), axis=0) / 10
    grid = {"families": ["gaussian"], "bandwidths": [2.0, 4.0], "regularizations": [1e-2]}
    make = kdmaps.KernelDiffusionMap if form == "fit" else partial(kdmaps.KernelSearchCV, **grid)
    local, remote = (make(1, n_features=20, lag=3, random_state=0).fit(x) for x in (X, da.from_array(X, chunks=90)))
    assert_allclose(remote.timescales_, local.timescales_, rtol=1e-9)
    assert str(remote.trust_) == str(local.trust_)  # to the digits shown
