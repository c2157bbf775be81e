"""Networks against kernels: accuracy, time and memory of neural spectral methods on the same samples.

SpectralNet [1], the generator networks of mlcolvar [2], VAMPnets of deeptime [3] (pairs of samples a lag apart), and
two losses for the Dirichlet energy, written here with one common network and training loop: NeuralEF [4] and Deep Ritz
[5], [6]. Each library runs in a separate environment, with one thread.

**Training budget.** Settings follow each library's documentation (last table). For each method, the learning rate is
the best of three, compared with the exact modes on 500 samples that are not reported. Training stops after three
seconds of processor time, with 100,000 samples after fifteen. From samples, the default of kdmaps takes less with 500
and with 100,000 samples, and up to twice as long with 5,000. The table *More training* shows results with five times as
much. SpectralNet has no such limit; its number of steps takes about that long with 500 samples, and two to five times
as long with more. The networks of this folder and VAMPnets hold out a fifth of the samples and keep the parameters of
the best held-out score; a training that diverges keeps its last good parameters. kdmaps is used with its defaults, for
samples and, with `lag=1`, for pairs.

SubR² is measured against the true slow modes (complete clusters) at 2,000 *new* samples; 100,000 for muller-brown,
whose modes live in wells that few samples visit. The rows also contain SubR² at the training samples. Modes are taken
from the span of a network's outputs, without the constant, by Rayleigh–Ritz if there is an energy or a lag, so that the
order of the outputs does not matter. Rate errors are means of |rate/exact - 1| over the modes. Seconds are processor
time of a fit; memory is the peak of the first fit of a process, above the memory that it held before.

- [1] U. Shaham et al., SpectralNet: spectral clustering using deep neural networks, ICLR 2018.
- [2] T. Devergne, V. Kostic, M. Pontil, M. Parrinello, J. Chem. Phys. (2025), doi 10.1063/5.0246248.
- [3] A. Mardt, L. Pasquali, H. Wu, F. Noé, Nat. Commun. 9 (2018) 5.
- [4] Z. Deng, J. Shi, J. Zhu, NeuralEF: deconstructing kernels by deep neural networks, ICML 2022.
- [5] W. E, B. Yu, The deep Ritz method, Commun. Math. Stat. 6 (2018) 1.
- [6] W. Zhang, T. Li, C. Schütte, Solving eigenvalue PDEs of metastable diffusion processes using artificial neural
  networks, J. Comput. Phys. 465 (2022) 111377.
"""
