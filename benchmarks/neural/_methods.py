"""Neural methods: how each is called, its settings and their source; each is imported in its own environment.

A function takes the samples (`benchmarks.rivals._methods.Data`), a learning rate and a limit on its processor time, and
returns the modes as a function of points, and the rates for D = 1 if the method has any.
"""

from __future__ import annotations

import copy
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import eigh

from benchmarks.rivals._methods import Data

ROOT = Path(__file__).parents[2]
Modes = Callable[[np.ndarray], np.ndarray]
Fit = tuple[Modes, np.ndarray | None]
VALIDATION = 0.2
#: Samples in a step of the generator networks; the tutorial takes all.
BATCH = 1000


def kdmaps_default(data: Data, learning_rate: None, seconds: float) -> Fit:
    from kdmaps import AdaptiveDiffusionMap

    model = AdaptiveDiffusionMap(data.n_modes, random_state=data.seed).fit(data.X)
    return model.transform, model.rates_


def kdmaps_pairs(data: Data, learning_rate: None, seconds: float) -> Fit:
    """Fit pairs as trajectories of two frames."""
    from kdmaps import AdaptiveDiffusionMap

    frames = np.stack([data.X, data.later], axis=1).reshape(-1, data.X.shape[1])
    model = AdaptiveDiffusionMap(data.n_modes, lag=1, time_step=data.lag, random_state=data.seed)
    model.fit(frames, groups=np.repeat(np.arange(len(data.X)), 2))
    return model.transform, model.rates_


def neural_ef(data: Data, learning_rate: float, seconds: float) -> Fit:
    from benchmarks.neural import _losses

    return _losses.train(data.X, data.n_modes, data.seed, _losses.neural_ef, learning_rate, seconds)


def deep_ritz(data: Data, learning_rate: float, seconds: float) -> Fit:
    from benchmarks.neural import _losses

    return _losses.train(data.X, data.n_modes, data.seed, _losses.deep_ritz, learning_rate, seconds)


def generator(data: Data, learning_rate: float, seconds: float) -> Fit:
    """Train networks and loss of mlcolvar without Lightning's loop, which would take half of the time."""
    import torch
    from mlcolvar.cvs.generator import Generator

    torch.manual_seed(data.seed)
    X = torch.as_tensor(data.X, dtype=torch.float32)
    model = Generator(
        data.n_modes + 1, [X.shape[1], 20, 20, 1], eta=0.05, alpha=0.1, friction=torch.ones(1), n_dim=X.shape[1]
    )
    model.preprocessing = _standardise(X.mean(0), X.std(0))
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate, weight_decay=1e-5)
    end = time.process_time() + seconds
    for _ in range(20_000):
        batch = X[torch.randperm(len(X))[:BATCH]].requires_grad_()
        optimizer.zero_grad()
        model.loss_fn(batch, model(batch), torch.ones(len(batch)))[0].backward()
        optimizer.step()
        if time.process_time() > end:
            break

    def outputs(points: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return model(torch.as_tensor(points, dtype=torch.float32)).double().numpy()

    # Its own compute_eigenfunctions takes `eigh` of a matrix that is not symmetric; solve the same problem here.
    energy = np.zeros((data.n_modes + 1, data.n_modes + 1))
    for part in X.split(5000):
        part = part.clone().requires_grad_()
        gradient = [torch.autograd.grad(column.sum(), part, retain_graph=True)[0] for column in model(part).T]
        rows = torch.stack(gradient).double().numpy()
        energy += np.einsum("ind,jnd->ij", rows, rows) / len(X)
    rates, mixing = slowest(energy, np.cov(outputs(data.X).T, bias=True), data.n_modes)
    return lambda points: outputs(points) @ mixing, rates


def _standardise(mean: Any, std: Any) -> Any:
    """Return the module x → (x - mean)/std."""
    from torch import nn

    module = nn.Linear(len(mean), len(mean)).requires_grad_(False)
    module.weight.data, module.bias.data = (1 / std).diag(), -mean / std
    return module


def vampnet(data: Data, learning_rate: float, seconds: float) -> Fit:
    import torch
    from deeptime.decomposition.deep import VAMPNet
    from deeptime.util.torch import MLP

    torch.manual_seed(data.seed)
    mean, std = data.X.mean(0), data.X.std(0)
    pairs = [torch.as_tensor((part - mean) / std, dtype=torch.float32) for part in (data.X, data.later)]
    order = torch.randperm(len(data.X))
    held, kept = order.split([int(VALIDATION * len(order)), len(order) - int(VALIDATION * len(order))])
    lobe = MLP([data.X.shape[1], 64, 64, data.n_modes], nonlinearity=torch.nn.ELU)
    network = VAMPNet(lobe, learning_rate=learning_rate)
    best, state = -np.inf, copy.deepcopy(lobe.state_dict())
    end, epochs = time.process_time() + seconds, 0
    while time.process_time() < end and epochs < 500:
        lobe.train()
        for chosen in kept[torch.randperm(len(kept))].split(512):
            network.partial_fit(tuple(part[chosen] for part in pairs))
        epochs += 1
        with torch.no_grad():
            score = float(network.validate(tuple(part[held] for part in pairs)))
        if score > best:
            best, state = score, copy.deepcopy(lobe.state_dict())
    lobe.load_state_dict(state)
    lobe.eval()

    def outputs(points: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return lobe(torch.as_tensor((points - mean) / std, dtype=torch.float32)).double().numpy()

    now, later = outputs(data.X), outputs(data.later)
    centre = (now.mean(0) + later.mean(0)) / 2
    now, later = now - centre, later - centre
    gram = (now.T @ now + later.T @ later) / 2
    # 1 - autocorrelation in the place of an energy: ascending as rates are.
    lost, mixing = slowest(gram - (now.T @ later + later.T @ now) / 2, gram, data.n_modes)
    rates = -np.log(np.clip(1 - lost, 1e-12, None)) / data.lag
    return lambda points: outputs(points) @ mixing, rates


def spectralnet(data: Data, learning_rate: float, seconds: float) -> Fit:
    """Fit one output more than modes, for the constant; modes are the leading directions of the centred outputs.

    Samples are not standardised: their distances make the graph.
    """
    import torch
    from spectralnet import SpectralNet

    torch.manual_seed(data.seed)
    r, n = data.n_modes + 1, len(data.X)
    steps = -(-int(0.9 * n) // 1024)  # of an epoch; twenty of them take about a second with 500 samples
    least = 30 if n <= 5000 else 1  # its default; with 100,000 samples that would take minutes
    model = SpectralNet(
        r,
        spectral_hiddens=[512, 512, r],
        spectral_lr=learning_rate,
        spectral_epochs=max(least, int(20 * seconds) // steps),
    )
    model.fit(torch.as_tensor(data.X, dtype=torch.float32))

    def outputs(points: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return model.spec_net(torch.as_tensor(points, dtype=torch.float32), False).double().numpy()

    values = outputs(data.X)
    mixing = np.linalg.svd(values - values.mean(0), full_matrices=False)[2][: data.n_modes].T
    return lambda points: outputs(points) @ mixing, None


def slowest(energy: np.ndarray, covariance: np.ndarray, n_modes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest quotients energy/covariance in a span, and the coefficients of their functions."""
    floor = 1e-9 * np.trace(covariance) * np.eye(len(covariance))
    values, vectors = eigh(energy + floor * np.trace(energy) / np.trace(covariance), covariance + floor)
    # A direction without variance, such as the constant, has a meaningless quotient.
    variances = np.einsum("ij,ik,kj->j", vectors, covariance, vectors)
    usable = np.flatnonzero(variances > 0.5)[:n_modes]
    return values[usable], vectors[:, usable]


# --- registry ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Peer:
    """A method with its settings.

    Attributes
    ----------
    adapter : str
        Name of a function of this module.
    environment : str
        The extra of pyproject.toml that installs it, in the environment .venv-NAME; empty for this one.
    packages : tuple of str
        Distributions whose versions are reported.
    settings, source : str
        Settings, and where they are recommended.
    learning_rates : tuple of float
        Learning rates tried on the samples for tuning.
    lagged : bool
        True if it needs pairs of samples a time lag apart.
    """

    adapter: str
    environment: str
    packages: tuple[str, ...]
    settings: str
    source: str
    learning_rates: tuple[float, ...] = ()
    lagged: bool = False

    @property
    def python(self) -> str:
        """The interpreter of its environment."""
        here = Path(sys.executable)
        return str(ROOT / f".venv-{self.environment}" / here.parent.name / here.name) if self.environment else str(here)


NETWORK = (
    "two hidden layers of 64 tanh, standardised inputs, Adam, batches of 512, at most 20,000 steps, best held-out step"
)
PEERS: dict[str, Peer] = {
    "kdmaps": Peer("kdmaps_default", "", ("kdmaps",), "AdaptiveDiffusionMap", "defaults"),
    "NeuralEF": Peer(
        "neural_ef",
        "neural",
        ("torch",),
        f"{NETWORK}; outputs of energy 1, penalty on earlier outputs",
        "loss of the paper [4], for the inverse of the generator; benchmarks/neural/_losses.py",
        (1e-3, 3e-3, 1e-2),
    ),
    "Deep Ritz": Peer(
        "deep_ritz",
        "neural",
        ("torch",),
        f"{NETWORK}; Rayleigh quotients with weights 1 … 0.5, penalty 20 on covariance - 1",
        "loss of [5] for eigenvalues, in the form of [6]; benchmarks/neural/_losses.py",
        (1e-3, 3e-3, 1e-2),
    ),
    "mlcolvar Generator": Peer(
        "generator",
        "mlcolvar",
        ("mlcolvar", "torch"),
        "r + 1 networks [d, 20, 20, 1] of tanh, eta=0.05, alpha=0.1, weight decay 1e-5, batches of 1,000, at most "
        "20,000 steps, standardised inputs",
        "its tutorial Learning the infinitesimal generator (learning rate there 5e-4)",
        (5e-4, 2e-3, 5e-3),
    ),
    "SpectralNet": Peer(
        "spectralnet",
        "spectralnet",
        ("spectralnet", "torch"),
        "spectral_hiddens=[512, 512, r + 1], 30 epochs, or as many as make 20 steps for each second of the limit (with "
        "100,000 samples these, though fewer), else defaults (30 neighbours, local scale, batches of 1,024)",
        "its README (layers), its defaults (learning rate 1e-3)",
        (3e-4, 1e-3, 3e-3),
    ),
    "kdmaps, lag": Peer(
        "kdmaps_pairs", "", ("kdmaps",), "AdaptiveDiffusionMap(lag=1) of the same pairs", "defaults", lagged=True
    ),
    "VAMPnet": Peer(
        "vampnet",
        "neural",
        ("deeptime", "torch"),
        "MLP [d, 64, 64, r] of ELU, VAMP-2, batches of 512, at most 500 epochs, best held-out epoch, standardised "
        "inputs; pairs a lag 0.5/rate_r apart",
        "defaults of deeptime (learning rate 5e-4), ELU of its tutorial",
        (5e-4, 2e-3, 5e-3),
        lagged=True,
    ),
}
OURS = tuple(name for name in PEERS if name.startswith("kdmaps"))
