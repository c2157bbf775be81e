"""
Every picture that kdmaps draws
===============================

The functions of ``kdmaps.plotting`` on one small fit: 800 samples of a triple well in the plane. Each draws on Axes
that it is given, or on new ones, and returns them.
"""

# %%
# The fit: a small search, and its error bars.

from kdmaps.certificates import certify_modes
from kdmaps.generators import for_problem
from matplotlib import pyplot as plt

import kdmaps

problem = kdmaps.problems.load("triplewell2d")
X = problem.sample(800, random_state=0)
search = kdmaps.KernelSearchCV(
    n_components=3,
    families=["gaussian", "matern52", "rq2"],
    bandwidths=6,
    regularizations=[1e-3, 3e-3, 1e-2, 3e-2],
    random_state=0,
).fit(X)
errors = kdmaps.uncertainty.bootstrap(search, X)

# %%
# Modes over the samples
# ----------------------
# :func:`kdmaps.plotting.plot_modes` colours the samples by each mode. Red and blue are the two ends of a mode; the way
# from one to the other takes its time.

kdmaps.plotting.plot_modes(search, X)
plt.show()

# %%
# Samples in the coordinates of modes
# -----------------------------------
# :func:`kdmaps.plotting.plot_embedding`: three wells are three corners.

kdmaps.plotting.plot_embedding(search, X)
plt.show()

# %%
# Time scales
# -----------
# :func:`kdmaps.plotting.plot_timescales` with bootstrap intervals, the exact values, and the gap behind the last mode.

kdmaps.plotting.plot_timescales(search, 1 / problem.rates(3), uncertainty=errors)
plt.show()

# %%
# What the search saw
# -------------------
# :func:`kdmaps.plotting.plot_landscape`: the held-out score of every family over its bandwidth, at the best
# regularization of each.

kdmaps.plotting.plot_landscape(search)
plt.show()

# %%
# :func:`kdmaps.plotting.plot_regularization_map`: the score of the chosen family over bandwidth and regularization.

kdmaps.plotting.plot_regularization_map(search)
plt.show()

# %%
# How a kernel was learned
# ------------------------
# :func:`kdmaps.plotting.plot_history`: the loss of `VariationalKernelMap` over the steps of its optimiser.

learned = kdmaps.VariationalKernelMap(3, objective="heldout", adam_steps=15, lbfgs_steps=10, random_state=0).fit(X)
kdmaps.plotting.plot_history(learned)
plt.show()

# %%
# Against known dynamics
# ----------------------
# :func:`kdmaps.plotting.plot_residuals`: how far every mode is from an eigenfunction of the generator, on fresh
# samples.

fresh = problem.sample(5000, random_state=1)
generator = for_problem(problem)
kdmaps.plotting.plot_residuals(generator.residuals(search, fresh))
plt.show()

# %%
# :func:`kdmaps.plotting.plot_certificates`: bounds on the distance of every mode from the exact one, from those
# residuals and the exact rates. A bound of 1 says nothing.

bounds = certify_modes(generator, search, fresh, rates=problem.rates(6))
kdmaps.plotting.plot_certificates(bounds, labels=[f"mode {k + 1}" for k in range(3)])
plt.show()
