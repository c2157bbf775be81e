"""Autocorrelations computed in pieces equal the results for the whole series and need little memory."""

import numpy as np
import pytest

from kdmaps.data import correlation
from kdmaps.data.correlation import autocorrelation, integrated_correlation_time, trajectories_of
from shared import traced_peak

SERIES = np.cumsum(np.random.default_rng(0).standard_normal(100)) + 50
GROUPS = np.where(np.arange(100) < 37, 0, np.arange(100) % 3)  # the first 37 samples, then alternating


def explicit(series, trajectories, n_lags):
    """Sum over explicit pairs."""
    centred = series - series.mean()
    found = [
        np.concatenate(
            [centred[rows[lag:]] * centred[rows[: len(rows) - lag]] for rows in trajectories if len(rows) > lag]
        )
        for lag in range(n_lags)
    ]
    return np.array([values.mean() for values in found]) / found[0].mean()


@pytest.mark.parametrize("piece", [1, 7, 16, 1000])
@pytest.mark.parametrize("n_lags", [1, 5, 17, None])
@pytest.mark.parametrize("groups", [None, GROUPS])
def test_pieces_count_every_pair_once(piece, n_lags, groups, monkeypatch):
    monkeypatch.setattr(correlation, "PIECE", piece)
    trajectories = trajectories_of(groups, 100)
    longest = max(map(len, trajectories))
    expected = explicit(SERIES, trajectories, n_lags or longest)
    found = autocorrelation(SERIES, trajectories, n_lags)
    assert found.shape == expected.shape
    # Rounding of sums of a hundred products; few remain at the longest lags.
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("memory", [0.0, 0.9, 0.999])
def test_window_is_found_with_few_lags(memory, monkeypatch):
    noise = np.random.default_rng(1).standard_normal(3000)
    series = np.empty(3000)
    series[0] = noise[0]
    for t in range(1, 3000):
        series[t] = memory * series[t - 1] + np.sqrt(1 - memory**2) * noise[t]
    whole = integrated_correlation_time(series)  # all lags at once: fewer than FIRST_LAGS
    monkeypatch.setattr(correlation, "FIRST_LAGS", 4)
    monkeypatch.setattr(correlation, "PIECE", 50)
    assert integrated_correlation_time(series) == pytest.approx(whole, rel=1e-10)
    assert integrated_correlation_time(np.arange(4.0)) == pytest.approx(
        2 * np.sum(np.abs(autocorrelation(range(4)))) - 1
    )


def test_memory_of_a_long_series():
    series, rows = np.random.default_rng(0).standard_normal(1_000_000), [np.arange(1_000_000)]
    assert integrated_correlation_time(series, rows) < 1.1  # white noise: 1
    # Half the size of the series; its padded spectrum alone would take 16 MB.
    assert traced_peak(lambda: integrated_correlation_time(series, rows)) < 4e6
