"""
Swiss roll: the second coordinate, not the harmonic of the first
================================================================

A sheet, 90 long and 21 wide, is rolled up in three dimensions. Its slowest modes are functions of the position along
the sheet, one half wave, two half waves, three …; only the fifth or so changes across it. A picture of the first two
modes is a parabola: the second one says nothing that the first one does not. Modes that are *functionally* independent
of earlier ones are what one wants to look at.
"""

# %%
# Fit more modes than coordinates are expected, and ask which of them are new. Each mode is predicted from the
# independent ones before it by local linear regression; the residual is near 0 for a function of them, near 1 for a new
# coordinate. :func:`kdmaps.plotting.plot_independence` draws it. (The method is that of Dsilva, Talmon, Coifman and
# Kevrekidis, 2018.)

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
# The first two modes, and the first two that are independent, coloured by the position across the sheet. Rank
# correlations with the two coordinates of the sheet tell what each mode is.

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
# Rates say why the order is as it is. A flat sheet with uniform samples has (πk/length)² along and (π/width)² across.

length, width = np.ptp(along), 21
print("half waves along: ", ((np.pi * np.arange(1, 6) / length) ** 2).round(4))
print("half wave across: ", round((np.pi / width) ** 2, 4))
print("learned:          ", model.rates_.round(4))
