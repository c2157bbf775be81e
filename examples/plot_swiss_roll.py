"""
Swiss roll: the second coordinate, not the harmonic of the first
================================================================

A sheet, 90 long and 21 wide, is rolled up in three dimensions. Its slowest modes are functions of the position along
the sheet: one half wave, two half waves, three …; only about the fifth mode varies across it. A plot of the first two
modes is a parabola, because the second is a function of the first. For a useful plot, select modes that are
*functionally* independent of earlier ones.
"""

# %%
# Fit more modes than the expected number of coordinates, and test which of them are new. Each mode is predicted from
# the previous independent modes by local linear regression; the residual is near 0 for a function of them, and near 1
# for a new coordinate (Dsilva, Talmon, Coifman and Kevrekidis, 2018). :func:`kdmaps.plotting.plot_independence` plots
# it.

import numpy as np
from matplotlib import pyplot as plt
from scipy.stats import spearmanr
from sklearn.datasets import make_swiss_roll

import kdmaps

X, angle = make_swiss_roll(1500, random_state=0)
along = (angle * np.sqrt(1 + angle**2) + np.arcsinh(angle)) / 2  # length of the spiral
across = X[:, 1]

model = kdmaps.AdaptiveDiffusionMap(8, random_state=0).fit(X)
modes = model.transform(X)
found = kdmaps.independent_modes(modes)
print("residuals:", found.residuals.round(2))
print("independent modes, counted from 0:", found.indices)
kdmaps.plotting.plot_independence(found)
plt.show()

# %%
# The first two modes, and the first two independent modes, coloured by the position across the sheet. Rank correlations
# identify each independent mode with a coordinate of the sheet.

first, second = found.indices[:2]
figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained", width_ratios=[1.2, 1, 1])
axes[0].remove()
roll = figure.add_subplot(1, 3, 1, projection="3d")
roll.scatter(*X.T, c=modes[:, second], cmap="coolwarm", s=5)
roll.set_title(f"mode {second + 1} on the roll")
roll.view_init(8, -78)
for ax, (i, j) in zip(axes[1:], [(0, 1), (first, second)], strict=True):
    ax.scatter(modes[:, i], modes[:, j], c=across, cmap="viridis", s=5)
    ax.set(xlabel=f"mode {i + 1}", ylabel=f"mode {j + 1}")
axes[1].set_title("the first two modes")
axes[2].set_title("independent modes")
for name, k, coordinate in [("along", first, along), ("across", second, across)]:
    print(f"mode {k + 1} and the position {name}: |rank correlation| {abs(spearmanr(modes[:, k], coordinate)[0]):.2f}")
plt.show()

# %%
# The rates explain the order of the modes: a flat sheet with uniform samples has the rates (πk/length)² along it and
# (π/width)² across it.

length, width = np.ptp(along), 21
print("half waves along: ", ((np.pi * np.arange(1, 6) / length) ** 2).round(4))
print("half wave across: ", round((np.pi / width) ** 2, 4))
print("learned:          ", model.rates_.round(4))
