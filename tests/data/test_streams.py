"""Streams whose chunks share one buffer, and passes that differ."""

import numpy as np
import pytest

import kdmaps
from kdmaps.data import as_source, gather
from kdmaps.utils import threads

ROWS = 50
X = kdmaps.problems.load("ou2d-4").sample(20 * ROWS, random_state=0)


def reusing():
    """Yield the rows of X in one buffer, which is overwritten by the next chunk and at the end."""
    buffer = np.empty((ROWS, X.shape[1]))
    for number in range(len(X) // ROWS):
        buffer[:] = X[number * ROWS : (number + 1) * ROWS]
        yield buffer
    buffer[:] = 1e6


@pytest.fixture(params=[1, 3])
def workers(request, monkeypatch):
    """Set the number of threads, whatever the machine has."""
    for module in (threads, kdmaps.data.sources):
        monkeypatch.setattr(module, "n_threads", lambda: request.param)


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("stream", [reusing, lambda: reusing], ids=["iterator", "callable"])
@pytest.mark.parametrize("size", [7, ROWS, 3 * ROWS + 1])
def test_parts_contain_all_rows(stream, size):
    source = as_source(stream())
    parts = [source.read(part)[1] for part in list(source.parts(size))]  # all are read before any is used
    np.testing.assert_array_equal(np.concatenate(parts), X)


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("stream", [reusing, lambda: reusing], ids=["iterator", "callable"])
def test_samples_contain_all_rows(stream):
    sample = as_source(stream()).sample(None, np.random.RandomState(0))
    np.testing.assert_array_equal(sample.X, X)
    source = as_source(stream())
    sample = source.sample(120, np.random.RandomState(0), typical=False)
    np.testing.assert_array_equal(sample.X, X[sample.rows])
    np.testing.assert_array_equal(gather(source), X)  # including the rows read for the sample


@pytest.mark.usefixtures("workers")
def test_modes_as_for_an_array():
    settings = {"n_components": 2, "bandwidth": 2.0, "n_features": 40, "random_state": 0, "memory_limit": 2}
    from_array = kdmaps.KernelDiffusionMap(**settings).fit(X)
    from_stream = kdmaps.KernelDiffusionMap(**settings).fit(reusing)
    np.testing.assert_allclose(from_stream.rates_, from_array.rates_, rtol=1e-9)
    np.testing.assert_allclose(from_stream.transform(reusing), from_array.transform(X), rtol=1e-6, atol=1e-8)


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("lag", [1, ROWS - 1, ROWS, 2 * ROWS + 3])
def test_pairs_across_chunks(lag):
    source = as_source(reusing).paired(lag, None)
    parts = [source.read(part)[1] for part in list(source.parts(70))]
    np.testing.assert_array_equal(np.concatenate(parts), np.hstack([X[:-lag], X[lag:]]))


def test_different_passes():
    """Rows that are drawn or shuffled again in every pass would not match their weights."""
    rng = np.random.default_rng(0)

    def drawn():
        yield from (rng.standard_normal((ROWS, 2)) for _ in range(20))

    def shuffled():
        yield from np.split(1e6 + X[rng.permutation(len(X))], 20)

    def cut_elsewhere():
        yield from np.split(X, np.sort(rng.integers(0, len(X), 5)))

    model = kdmaps.KernelDiffusionMap(1, n_features=40, random_state=0)  # the median needs a separate pass
    for stream in (drawn, shuffled):
        with pytest.raises(ValueError, match="different rows than in the previous pass"):
            model.fit(stream)
    np.testing.assert_allclose(model.fit(cut_elsewhere).rates_, model.fit(X).rates_)


def test_pass_that_differs_in_one_row():
    last = iter([0.0, 0.0, 0.0, 1e-3])  # the first call finds the number of columns
    source = as_source(lambda: iter([X[:-1], X[-1:] + next(last)]))
    for _ in range(2):
        list(source.parts(100))
    with pytest.raises(ValueError, match="different rows than in the previous pass"):
        list(source.parts(100))
