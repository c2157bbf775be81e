"""The neural methods, their settings and who recommends them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Peer:
    """A method with its settings.

    Attributes
    ----------
    adapter : str
        A function of `_adapters`.
    environment : str
        The extra of pyproject.toml that installs it, in the environment .venv-NAME; empty for this one.
    packages : tuple of str
        Distributions whose versions are reported.
    settings, source : str
        What was set, and who recommends it.
    learning_rates : tuple of float
        Those that are tried on the samples for tuning.
    lagged : bool
        Whether it needs pairs of samples a time lag apart.
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
