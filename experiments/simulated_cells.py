"""Simulated cells: trees, cycles and types, as counts with dropout, normalised and reduced to principal components.

Every set is a dict with the coordinates X (n, 50), the type y of each cell, the true time t or None, and the root.
"""

from typing import Any

import numpy as np
from sklearn.decomposition import PCA

GENES = 400
#: Mean number of counts of a cell.
DEPTH = 3000
#: Share of the counts below 1 that are lost.
DROPOUT = 0.3


def principal_components(expression: np.ndarray, rng: np.random.Generator, n_pcs: int = 50) -> np.ndarray:
    """Return components of log-normalised, scaled counts with the given expected relative expression (n, genes)."""
    share = expression / expression.sum(axis=1, keepdims=True)
    depth = rng.lognormal(np.log(DEPTH), 0.35, len(share))
    mean = share * depth[:, None]
    counts = rng.poisson(rng.gamma(2.0, mean / 2.0))
    counts = counts * (rng.random(counts.shape) > DROPOUT * np.exp(-mean / 2.0))
    counts = counts[:, (counts > 0).sum(axis=0) > 3]
    total = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    logs = np.log1p(counts / total * 1e4)
    scaled = np.clip((logs - logs.mean(axis=0)) / (logs.std(axis=0) + 1e-9), -10, 10)
    return PCA(n_pcs, random_state=0).fit_transform(scaled)


def tree(
    seed: int, parents: list[int], n: int, weights: list[float] | None = None, cell_cycle: float = 0.0
) -> dict[str, Any]:
    """Branch b starts at the end of branch parents[b] (-1: at the root); expression changes smoothly along it."""
    rng = np.random.default_rng(seed)
    share = np.ones(len(parents)) if weights is None else np.array(weights)
    programs = rng.standard_normal((len(parents), 3, GENES)) * (rng.random((len(parents), 3, GENES)) < 0.25)
    branch = rng.choice(len(parents), n, p=share / share.sum())
    place = rng.random(n)
    waves = np.column_stack([place, 0.7 * np.sin(np.pi * place), 0.4 * np.sin(2 * np.pi * place)])
    starts = np.empty((len(parents), GENES))
    times = np.empty(len(parents))
    base = rng.normal(0, 1.2, GENES)
    for b, parent in enumerate(parents):
        starts[b] = base if parent < 0 else starts[parent] + programs[parent, 0]
        times[b] = 0 if parent < 0 else times[parent] + 1
    expression = starts[branch] + np.einsum("nw,nwg->ng", waves, programs[branch])
    if cell_cycle:
        phase = rng.uniform(0, 2 * np.pi, n)
        genes = rng.standard_normal((2, GENES)) * (rng.random(GENES) < 0.15)
        expression += cell_cycle * (np.cos(phase)[:, None] * genes[0] + np.sin(phase)[:, None] * genes[1])
    t = times[branch] + place
    return {"X": principal_components(np.exp(expression), rng), "y": branch, "t": t, "root": int(t.argmin())}


def cycle(seed: int, n: int) -> dict[str, Any]:
    """Cells around a closed loop, more of them on one side; time is the distance from a root along the loop."""
    rng = np.random.default_rng(seed)
    phase = rng.vonmises(0, 0.6, n)
    genes = rng.standard_normal((4, GENES)) * (rng.random((4, GENES)) < 0.3)
    waves = [np.cos(phase), np.sin(phase), 0.5 * np.cos(2 * phase), 0.5 * np.sin(2 * phase)]
    expression = rng.normal(0, 1.2, GENES) + np.column_stack(waves) @ genes
    root = int(np.abs(phase).argmin())
    types = np.floor((phase + np.pi) / (2 * np.pi) * 8).astype(int) % 8
    t = np.abs(np.angle(np.exp(1j * (phase - phase[root]))))
    return {"X": principal_components(np.exp(expression), rng), "y": types, "t": t, "root": root}


def types(seed: int, n: int) -> dict[str, Any]:
    """Nine types of unequal frequency, three pairs of related ones, 2 % doublets."""
    rng = np.random.default_rng(seed)
    frequency = np.array([0.3, 0.2, 0.15, 0.12, 0.08, 0.06, 0.05, 0.02, 0.02])
    centres = rng.normal(0, 1.2, GENES) + 0.9 * rng.standard_normal((9, GENES)) * (rng.random((9, GENES)) < 0.2)
    for first, second in ((0, 1), (2, 3), (4, 5)):
        difference = 0.45 * rng.standard_normal(GENES) * (rng.random(GENES) < 0.2)
        centres[second] = centres[first] + difference
    y = rng.choice(9, n, p=frequency)
    expression = np.exp(centres[y] + 0.2 * rng.standard_normal((n, GENES)))
    share = expression / expression.sum(axis=1, keepdims=True)
    doublets = rng.choice(n, n // 50, replace=False)
    partners = rng.choice(n, len(doublets))
    mixed = share.copy()
    mixed[doublets] += share[partners]
    return {"X": principal_components(mixed, rng), "y": y, "t": None, "root": None}


def walks(seed: int, branches: int, length: int, noise: float = 1.0) -> dict[str, Any]:
    """Branches of random walks in 50 dimensions, each starting at a random place of an earlier one."""
    rng = np.random.default_rng(seed)
    paths = [np.cumsum(rng.uniform(-1, 1, (length, 50)), axis=0)]
    times = [np.arange(length, dtype=float)]
    for _ in range(1, branches):
        earlier = rng.integers(len(paths))
        start = rng.integers(length // 4, length)
        paths.append(paths[earlier][start] + np.cumsum(rng.uniform(-1, 1, (length, 50)), axis=0))
        times.append(times[earlier][start] + 1 + np.arange(length))
    X = np.vstack(paths) + rng.normal(0, noise, (branches * length, 50))
    return {"X": X - X.mean(axis=0), "y": np.repeat(np.arange(branches), length), "t": np.concatenate(times), "root": 0}
