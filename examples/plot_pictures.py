"""
All plots of kdmaps
===================

The functions of ``kdmaps.plotting`` for one small fit: 800 samples of a triple well in the plane. Each draws on given
or new Axes and returns them.
"""

# %%
# The fit: a small search, and its uncertainty.

from itertools import accumulate

import numpy as np
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
# :func:`kdmaps.plotting.plot_modes` colours the samples by the value of each mode. Transitions between red and blue
# regions occur on the time scale of the mode.

kdmaps.plotting.plot_modes(search, X)
plt.show()

# %%
# Time scales
# -----------
# :func:`kdmaps.plotting.plot_timescales` with bootstrap intervals, the exact values, and the gap after the last mode.

kdmaps.plotting.plot_timescales(search, 1 / problem.rates(3), uncertainty=errors)
plt.show()

# %%
# Scores of the search
# --------------------
# :func:`kdmaps.plotting.plot_landscape`: the held-out score of each family over the bandwidth, at the best
# regularization.

kdmaps.plotting.plot_landscape(search)
plt.show()

# %%
# :func:`kdmaps.plotting.plot_regularization_map`: the score of the selected family over bandwidth and regularization.

kdmaps.plotting.plot_regularization_map(search)
plt.show()

# %%
# Relevance of inputs
# -------------------
# :func:`kdmaps.plotting.plot_relevance`: the share of each input in each mode, from the gradients of the modes, and the
# combinations of inputs along which the modes change most.

kdmaps.plotting.plot_relevance(search, X)
plt.show()

# %%
# :func:`kdmaps.plotting.plot_independence`: which modes are new coordinates, and which are functions of earlier ones.

kdmaps.plotting.plot_independence(search.transform(X))
plt.show()

# %%
# A trajectory
# ------------
# With consecutive frames of the same triple well, modes are fitted to pairs of frames, and time scales are times.
# :func:`kdmaps.plotting.plot_implied_timescales`: time scales over the lag, and exact values. In the shaded region
# a mode relaxes within the lag; a dotted line marks the lag from which time scales are flat within their errors.

path = problem.trajectory(8000, 0.1, random_state=1)
lagged = kdmaps.KernelDiffusionMap(2, lag=2, time_step=0.1, regularization=1e-4, random_state=0).fit(path)
timescales = kdmaps.dynamics.implied_timescales(lagged, path, [1, 2, 4, 8, 16], random_state=0)
kdmaps.plotting.plot_implied_timescales(timescales, 1 / problem.rates(2))
plt.show()

# %%
# :func:`kdmaps.plotting.plot_chapman_kolmogorov`: predictions of one lag for several (lines), and estimates at these
# lags (points), here for transitions between three coarse states.

test = kdmaps.dynamics.chapman_kolmogorov(lagged, path, steps=6, n_states=3, random_state=0)
kdmaps.plotting.plot_chapman_kolmogorov(test)
plt.show()

# %%
# :func:`kdmaps.plotting.plot_free_energy`: -ln p along two modes, in units of kT.

kdmaps.plotting.plot_free_energy(lagged, path, bins=40)
plt.show()

# %%
# :func:`kdmaps.plotting.plot_committor`, :func:`kdmaps.plotting.plot_free_energy_along_q` and
# :func:`kdmaps.plotting.plot_flux_distribution`: the probability to reach the right well before the left one.

wells = kdmaps.problems.load("triplewell2d").sample(1000, random_state=0)
committor = kdmaps.AdaptiveCommittor(n_features=100, random_state=0)
committor.fit(wells, (wells[:, 0] < -0.8, wells[:, 0] > 0.8))
_, axes = plt.subplots(1, 3, figsize=(12, 3.4), layout="constrained")
kdmaps.plotting.plot_committor(committor, wells, ax=axes[0])
kdmaps.plotting.plot_free_energy_along_q(committor, wells, ax=axes[1])
kdmaps.plotting.plot_flux_distribution(committor, wells, ax=axes[2])
plt.show()

# %%
# :func:`kdmaps.plotting.plot_modes_in_time`: the modes along the trajectory.

kdmaps.plotting.plot_modes_in_time(lagged, path[:2000])
plt.show()

# %%
# :func:`kdmaps.plotting.plot_states`: the samples of every coarse state.

kdmaps.plotting.plot_states(kdmaps.dynamics.coarse_states(lagged.transform(path), 2), path)
plt.show()

# %%
# An oscillating system
# ---------------------
# A noisy oscillator with the rates -0.2±2i, fitted without time reversal. :func:`kdmaps.plotting.plot_koopman`:
# eigenvalues of the Koopman operator with resamples and exact values (crosses).

turn = np.exp(0.1 * (-0.2 + 2j))
noise = np.random.default_rng(0).normal(size=(5000, 2)) @ [1, 1j] * np.sqrt(1 - abs(turn) ** 2)
z = np.array(list(accumulate(noise, lambda now, step: turn * now + step)))
turning = np.column_stack([z.real, z.imag])
directed = kdmaps.KernelDiffusionMap(
    2, lag=1, time_step=0.1, reversible=False, kernel="gaussian", bandwidth=8.0, regularization=1e-4, random_state=0
).fit(turning)
spectrum = kdmaps.dynamics.koopman(directed, turning)
kdmaps.plotting.plot_koopman(spectrum, exact=[turn, turn.conjugate()])
plt.show()

# %%
# :func:`kdmaps.plotting.plot_phases`: the phase of the oscillation at every sample.

kdmaps.plotting.plot_phases(spectrum, turning)
plt.show()

# %%
# :func:`kdmaps.plotting.plot_coherent_sets`: particles that stay together in a flow, here on both sides of the Bickley
# jet and in its vortices.

first, second = kdmaps.problems.bickley_jet(1000, random_state=0)
flow = kdmaps.KernelDiffusionMap(
    5, lag=1, reversible=False, kernel="gaussian", bandwidth=1.0, regularization=1e-4, n_features=200, random_state=0
).fit(np.vstack([first, second]), groups=np.tile(np.arange(1000), 2))
kdmaps.plotting.plot_coherent_sets(kdmaps.dynamics.coherent_sets(flow, first, second, 6), first, second)
plt.show()

# %%
# Learning a kernel
# -----------------
# :func:`kdmaps.plotting.plot_history`: the loss of `VariationalKernelMap` over the steps of its optimiser.

learned = kdmaps.VariationalKernelMap(3, objective="heldout", adam_steps=15, lbfgs_steps=10, random_state=0).fit(X)
kdmaps.plotting.plot_history(learned)
plt.show()
