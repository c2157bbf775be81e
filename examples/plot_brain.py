"""
A brain at rest: slow patterns of an fMRI recording
===================================================

The data are the activity (blood oxygenation) of 28 brain regions of one person at rest: 250 volumes, one every 1.89 s,
from the package ``nitime``. Three results are expected from the literature: the activity of a region is similar on both
sides of the brain; posterior cingulate and precuneus (the *default mode network*) form one pattern, striatum (caudate,
putamen) and the medial frontal lobe another; and these patterns are slow, below 0.1 Hz.
"""

# %%
# The data check reports the first volume as isolated: the magnetisation has not yet settled when a recording starts.
# This volume is removed.

import warnings
from importlib.resources import files

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

import kdmaps

table = pd.read_csv(files("nitime") / "data" / "fmri_timeseries.csv").iloc[:, 3:]  # without the means of tissues
table = table.rename(columns={"APHG": "LAntPHG"})
for check in kdmaps.data.check_data(table.to_numpy()).failed:
    print(check)
names = list(table.columns)
X = table.iloc[1:].to_numpy()
X = (X - X.mean(axis=0)) / X.std(axis=0)
STEP = 1.89  # seconds


def fit(**settings):
    """Fit two modes, and print their checks and all warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = kdmaps.AdaptiveDiffusionMap(2, random_state=0, **settings).fit(X)
    print(model.trust_, *(str(warning.message) for warning in caught), sep="\n")
    return model


def loadings(model):
    """Correlation of every region with every mode; the largest is positive."""
    found = np.corrcoef(model.transform(X), X, rowvar=False)[: model.n_components, model.n_components :]
    return found * np.sign(found[np.arange(len(found)), np.abs(found).argmax(axis=1)])[:, None]


def show(found):
    """Print the regions with the largest loadings."""
    for k, row in enumerate(found, start=1):
        print(f"mode {k}:", ", ".join(f"{names[j]} {row[j]:.2f}" for j in np.argsort(-np.abs(row))[:8]))


# %%
# **Without a lag.** Folds are blocks of volumes, because ``cv="auto"`` detects that consecutive volumes are correlated.

static = fit()
show(loadings(static))

# %%
# **With a lag** of two volumes (3.8 s), the modes are the patterns that persist longest.

lagged = fit(lag=2, time_step=STEP)
patterns = loadings(lagged)
show(patterns)

# %%
# Left and right: the fit does not use the pairing of regions. How similar are the loadings of both sides?

left = [name for name in names if name.startswith("L") and "R" + name[1:] in names]
pairs = [(names.index(name), names.index("R" + name[1:])) for name in left]
for k, row in enumerate(patterns, start=1):
    a, b = row[[i for i, _ in pairs]], row[[j for _, j in pairs]]
    others = [np.corrcoef(a, np.roll(b, shift))[0, 1] for shift in range(1, len(b))]
    print(f"mode {k}: correlation of left and right loadings {np.corrcoef(a, b)[0, 1]:.2f}; for other pairs", end=" ")
    print(f"{np.mean(others):.2f} on average, at most {max(others):.2f}")

# %%
# Time scales, with error bars from blocks of volumes, and the share of slow frequencies:

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    bars = kdmaps.uncertainty.bootstrap(lagged, X)
for row in bars.table():
    low, high = row["timescale_low"], row["timescale_high"]
    print(f"mode {row['mode']}: {row['timescale']:.1f} s, 95 % interval {low:.1f} to {high:.1f} s")
modes = lagged.transform(X)
frequency = np.fft.rfftfreq(len(modes), STEP)
power = np.abs(np.fft.rfft(modes, axis=0)) ** 2
share = power[frequency < 0.1].sum(axis=0) / power.sum(axis=0)
print("share of the power below 0.1 Hz:", np.round(share, 2))

# %%
# All three expectations are met: the patterns agree with the literature, both sides of the brain agree, and the
# patterns are slow. The time scales are uncertain: eight minutes contain about a dozen independent states of these
# patterns, and ``trust_`` marks the rates as unreliable.

figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained", width_ratios=[1.2, 1])
order = np.argsort(patterns[0][[i for i, _ in pairs]])
height = np.arange(len(order))
for k, colour in enumerate(["C0", "C1"]):
    for side, marker in ((0, "<"), (1, ">")):
        at = patterns[k][[pairs[i][side] for i in order]]
        axes[0].plot(at, height + 0.15 * (2 * k - 1), marker, color=colour, mfc="none" if side else colour)
    axes[0].plot([], [], "s", color=colour, label=f"mode {k + 1}")
axes[0].set_yticks(height, [left[i][1:] for i in order])
axes[0].axvline(0, color="0.8", lw=0.8)
axes[0].set(xlabel="correlation with the region (◂ left, ▹ right)", title="patterns")
axes[0].legend(frameon=False)
axes[1].plot(STEP * np.arange(len(modes)), modes + np.array([0, 6]), lw=0.9)
axes[1].set(xlabel="time (s)", yticks=[0, 6], yticklabels=["mode 1", "mode 2"], title="in time")
plt.show()
