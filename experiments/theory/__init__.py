"""Numerical tests of the theory: the eigenvalue of the constant, the optimism of a search, a continuum of kernels.

Three results of the page about theory, each compared with a measurement.

- *The constant.* Without centring, a sum of eigenvalues is predicted by the variances of the data alone, and rises
  with the bandwidth to 1/λ (`wide_kernel_sum`, `constant_mode` and `eigenvalue_sum_choice` of `constant.py`): predicted
  and measured sums of four eigenvalues over the paper's grid of bandwidths, on test folds as in the paper.
- *Optimism.* The best of many held-out scores exceeds its population value, by no more than a bound from the same
  samples (`optimism_of` of `optimism.py`): how often the bound holds at a nominal 95 %, and how large it is.
- *A continuum.* The bandwidth is chosen from an interval instead of a grid (`continuous_regret` of
  `continuous.py`): regret of the choice, and the bound on it. The continuum is a fine grid, and the standard error of
  the score is estimated from the repetitions.

The paper's bounds for mixtures of kernels are in `mixtures.py`, and the bound on the errors of modes in `residuals.py`.

    python -m experiments.theory --quick
"""
