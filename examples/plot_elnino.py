"""
El Niño: the slow function of sea-surface temperatures
======================================================

Monthly temperatures of the sea off Peru from 1950 to 2010 (``statsmodels.datasets.elnino``). Four results are expected
from the literature: after removal of the annual cycle, the slow variable is the warmth of the sea; it decorrelates
within half a year to a year; its extremes are the great El Niños of 1972, 1982 and 1997; and it oscillates irregularly,
with periods of three to seven years.
"""

# %%
# The anomalies are standardised for each calendar month, because the temperature varies more in some months than in
# others. (If only the means are subtracted, the season can be inferred from the amplitude of the variation in a window,
# and the slowest function of such windows is the season.) The points are windows of six months.

import warnings

import numpy as np
from matplotlib import pyplot as plt
from statsmodels.datasets import elnino

import kdmaps

temperature = elnino.load_pandas().data.iloc[:, 1:].to_numpy()
anomaly = ((temperature - temperature.mean(axis=0)) / temperature.std(axis=0)).ravel()
WINDOW = 6
X = np.lib.stride_tricks.sliding_window_view(anomaly, WINDOW)
year = 1950 + (np.arange(len(X)) + WINDOW / 2) / 12


def fit(**settings):
    """Fit two modes, and print their checks and all warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = kdmaps.AdaptiveDiffusionMap(2, random_state=0, **settings).fit(X)
    print(model.trust_, *(str(warning.message) for warning in caught), sep="\n")
    return model


def correlation(a, b):
    """Correlation of two columns."""
    return float(np.corrcoef(a, b)[0, 1])


# %%
# **Without a lag.** Consecutive months are not independent samples; ``cv="auto"`` detects this, and folds are blocks of
# months with gaps between them. The first mode distinguishes the great El Niños from all other times.

static = fit()
first = static.transform(X)[:, 0]
first *= np.sign(correlation(first, X.mean(axis=1)))
print(f"mode 1: correlation with the mean anomaly {correlation(first, X.mean(axis=1)):.2f}; largest in", end=" ")
print(sorted({int(y) for y in year[np.argsort(-first)[:20]]}))

# %%
# **With a lag** of half a year, so that the two windows of a pair do not overlap. Error bars come from blocks of
# months.

lagged = fit(lag=WINDOW)
slow = lagged.transform(X)[:, 0]
slow *= np.sign(correlation(slow, X.mean(axis=1)))
print(f"mode 1: correlation with the mean anomaly {correlation(slow, X.mean(axis=1)):.2f}; largest in", end=" ")
print(sorted({int(y) for y in year[np.argsort(-slow)[:20]]}))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    bars = kdmaps.uncertainty.bootstrap(lagged, X)
for row in bars.table():
    low, high = row["timescale_low"], row["timescale_high"]
    print(f"mode {row['mode']}: {row['timescale']:.1f} months, 95 % interval {low:.1f} to {high:.1f}")
print(f"{bars.n_blocks} blocks of {bars.block_length} months;", *(str(warning.message) for warning in caught))

# %%
# Does the mode oscillate? The time scale of a reversible process describes decay only. The autocorrelation of the mode
# is negative after two years, which suggests an oscillation, but could be chance. It is compared with 500 series of the
# same length from a process that decays at the same rate and does not oscillate: how many of them have an
# autocorrelation that is as negative, and how many have as much power at periods between three and seven years?

lags = np.arange(1, 85)


def memory(x):
    """Autocorrelation at all lags, by the Fourier transform."""
    x = x - x.mean()
    power = np.abs(np.fft.rfft(x, 2 * len(x))) ** 2
    found = np.fft.irfft(power)[: lags[-1] + 1] / np.arange(len(x), len(x) - lags[-1] - 1, -1)
    return found[1:] / found[0]


def share(x):
    """Share of the power at periods of three to seven years."""
    frequency = np.fft.rfftfreq(len(x), 1 / 12)[1:]
    power = np.abs(np.fft.rfft(x - x.mean())[1:]) ** 2
    return power[(frequency > 1 / 7) & (frequency < 1 / 3)].sum() / power.sum()


decay = np.exp(-1 / lagged.timescales_[0])
noise = np.random.default_rng(0).standard_normal((500, len(slow) + 200))
surrogates = np.zeros_like(noise)
for t in range(1, noise.shape[1]):
    surrogates[:, t] = decay * surrogates[:, t - 1] + noise[:, t]
surrogates = surrogates[:, 200:]
own, others = memory(slow), np.array([memory(x) for x in surrogates])
lowest = own[:48].min()
print(f"lowest autocorrelation {lowest:.2f}, after {lags[own[:48].argmin()]} months;", end=" ")
print(f"as low in {np.mean(others[:, :48].min(axis=1) <= lowest):.0%} of the series without oscillations")
print(f"power between three and seven years: {share(slow):.0%};", end=" ")
print(f"as much in {np.mean([share(x) >= share(slow) for x in surrogates]):.0%} of them")

figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained", width_ratios=[2, 1])
axes[0].plot(year, slow, lw=0.9, color="C0")
axes[0].axhline(0, color="0.8", lw=0.8)
for event in (1972, 1982, 1997):
    during = np.flatnonzero((year > event) & (year < event + 2))
    top = during[slow[during].argmax()]
    axes[0].text(year[top], slow[top] + 0.15, f"{event}–{event + 1 - 1900}", ha="center", fontsize="small")
axes[0].set_ylim(top=slow.max() + 0.8)
axes[0].set(xlabel="year", ylabel="slow mode", title="sixty years")
low, high = np.quantile(others, [0.025, 0.975], axis=0)
axes[1].fill_between(lags / 12, low, high, color="0.9", label="no oscillation (95 %)")
axes[1].plot(lags / 12, own, color="C0", label="slow mode")
axes[1].axhline(0, color="0.8", lw=0.8)
axes[1].set(xlabel="years", ylabel="autocorrelation", title="memory")
axes[1].legend(frameon=False, fontsize="small")
plt.show()
