"""Networks against kernels: accuracy, time and memory of neural spectral methods on the same samples.

SpectralNet [1], the generator networks of mlcolvar [2], VAMPnets of deeptime [3] (pairs of samples a lag apart), and
two losses for the Dirichlet energy, written here with one common network and training loop: NeuralEF [4] and Deep Ritz
[5], [6]. Each library runs in an environment of its own, with one thread.

**Their budget.** Settings are those of each library's documentation (last table). The learning rate is the best of
three on samples that are not reported (500 of them, for all sizes), by the exact modes, for each method. Training stops
after three seconds of processor time, with 100,000 samples after fifteen: for samples, the default of kdmaps takes less
with 500 and with 100,000, and up to twice as long with 5,000. The table *More training* shows what five times as much
gives. SpectralNet has no such limit, but as many steps as take about that long with 500 samples; with more they take
two to five times as long. The networks of this folder, as VAMPnets, hold a fifth of the samples out and keep the
parameters of the best held-out score; a training that diverges keeps those from before. kdmaps has its defaults, for
samples and, as `lag=1`, for pairs.

SubR² is that of the rivals' table (against the true slow modes, complete clusters), at 2,000 *new* samples (of
muller-brown, whose modes live in wells that few samples visit, 100,000); at the training samples it is in the rows.
Modes are taken from the span of a network's outputs, without the constant, by Rayleigh–Ritz where there is an energy or
a lag: no method loses by the order of its outputs. Rate errors are means of |rate/exact - 1| over the modes. Seconds
are processor time of a fit, so that a busy machine does not count; memory is that of the first fit of a process, above
what it held before.

- [1] U. Shaham et al., SpectralNet: spectral clustering using deep neural networks, ICLR 2018.
- [2] T. Devergne, V. Kostic, M. Pontil, M. Parrinello, J. Chem. Phys. (2025), doi 10.1063/5.0246248.
- [3] A. Mardt, L. Pasquali, H. Wu, F. Noé, Nat. Commun. 9 (2018) 5.
- [4] Z. Deng, J. Shi, J. Zhu, NeuralEF: deconstructing kernels by deep neural networks, ICML 2022.
- [5] W. E, B. Yu, The deep Ritz method, Commun. Math. Stat. 6 (2018) 1.
- [6] W. Zhang, T. Li, C. Schütte, Solving eigenvalue PDEs of metastable diffusion processes using artificial neural
  networks, J. Comput. Phys. 465 (2022) 111377.
"""
