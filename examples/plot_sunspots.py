"""
Sunspots: the phase of a cycle from a time series
=================================================

Yearly sunspot numbers from 1700 to 2008 (``statsmodels.datasets.sunspots``). Windows of eleven consecutive years are
points in eleven dimensions, near a closed loop: the solar cycle. The two smoothest functions on a loop are the cosine
and the sine of its phase.
"""

# %%
# Square roots equalize the noise of counts. The windows overlap, so the folds are blocks of years with gaps between
# them. The grid is smaller than the default to keep this example short.

import warnings

import numpy as np
from matplotlib import pyplot as plt
from statsmodels.datasets import sunspots

import kdmaps

series = sunspots.load_pandas().data
root = np.sqrt(series["SUNACTIVITY"].to_numpy())
WINDOW = 11
X = np.lib.stride_tricks.sliding_window_view(root, WINDOW)
year = series["YEAR"].to_numpy()[WINDOW // 2 : WINDOW // 2 + len(X)]

folds = kdmaps.BlockedKFold(4, gap=WINDOW)
model = kdmaps.KernelSearchCV(2, families=["gaussian", "laplacian"], bandwidths=5, cv=folds, random_state=0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    modes = model.fit(X).transform(X)
print("selected:", model.kernel_)
print(*(str(warning.message) for warning in caught), sep="\n")

# %%
# Neighbouring windows share ten of their eleven years, and the phase of the cycle is correlated over decades. The
# bootstrap draws blocks that are long compared with the correlation time of the modes; three centuries contain few such
# blocks, and a warning is raised. The time scales describe a diffusion on the loop, in units of X; the solar cycle
# itself runs in one direction, so it is not a reversible diffusion.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    error = kdmaps.uncertainty.bootstrap(model, X)
for row in error.table():
    low, high = row["timescale_low"], row["timescale_high"]
    print(f"mode {row['mode']}: {row['timescale']:.1f}, 95 % interval {low:.1f} to {high:.1f}")
print(f"{error.n_blocks} blocks of {error.block_length} years;", *(str(warning.message) for warning in caught))

# %%
# The two modes form a loop, and the angle along it is the phase of the cycle; its slope in time gives the period.

phase = np.unwrap(np.arctan2(modes[:, 1], modes[:, 0]))
slope = np.polyfit(year, phase, 1)[0]
print(f"period: {2 * np.pi / abs(slope):.1f} years")

figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", width_ratios=[1, 2])
angle = np.mod(phase, 2 * np.pi)
axes[0].plot(*modes.T, color="0.8", lw=0.6, zorder=0)
axes[0].scatter(*modes.T, c=angle, cmap="twilight", s=14, edgecolors="0.4", linewidths=0.3)
axes[0].set(xlabel="mode 1", ylabel="mode 2", aspect="equal")
axes[1].plot(series["YEAR"], series["SUNACTIVITY"], color="0.8", lw=0.8, zorder=0)
number = root[WINDOW // 2 : WINDOW // 2 + len(X)] ** 2
points = axes[1].scatter(year, number, c=angle, cmap="twilight", s=14, edgecolors="0.4", linewidths=0.3)
axes[1].set(xlabel="year", ylabel="sunspot number")
figure.colorbar(points, ax=axes[1], label="phase of the modes")
plt.show()
