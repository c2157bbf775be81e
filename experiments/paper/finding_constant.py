"""The constant is one of the modes.

The covariance is not centred, so the constant function is a mode. Its energy is 0, and only the penalty λ bounds its
quotient, which grows to 1/λ = 100 as the kernel widens, while the quotients of all other modes add up to about 2. The
eigenvalue sum therefore measures how small the penalty of a constant is. Centring removes this mode:

    KernelDiffusionMap(4, bandwidth=σ, center=False).fit(X).eigenvalues_
    KernelDiffusionMap(4, bandwidth=σ, center=True).fit(X).eigenvalues_
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.figure import Figure

from experiments._runner import Row
from experiments.paper._experiment import Call, now
from experiments.paper._show import Table
from kdmaps import problems
from kdmaps.data.distances import median_distance
from kdmaps.estimators.kernel_map import KernelDiffusionMap


def eigenvalues(problem: str, bandwidth: float, center: bool, seed: int) -> Row:
    """Return the eigenvalues μ of a Gaussian with the given bandwidth in median distances."""
    X = problems.load(problem).sample(500, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KernelDiffusionMap(4, bandwidth=bandwidth * median_distance(X), center=center, random_state=seed).fit(X)
    return {"bandwidth": bandwidth, "center": center, "seed": seed, "eigenvalues": model.eigenvalues_.tolist()}


@dataclass(frozen=True)
class ConstantMode:
    """Eigenvalues over the bandwidth."""

    title: str = "The constant is one of the modes"
    problem: str = "ou2d-16"
    bandwidths: Sequence[float] = tuple(float(f"{s:.3g}") for s in np.geomspace(0.5, 50, 10))

    def quick(self) -> Self:
        return self

    def run(self, seed: int, call: Call = now) -> list[Row]:
        """Return one row per bandwidth and centring."""
        return [
            call(eigenvalues, problem=self.problem, bandwidth=sigma, center=center, seed=seed)
            for sigma in self.bandwidths
            for center in (False, True)
        ]

    def _mean(self, rows: Sequence[Row], center: bool) -> np.ndarray:
        found = [
            np.mean([r["eigenvalues"] for r in rows if r["center"] == center and r["bandwidth"] == s], axis=0)
            for s in self.bandwidths
        ]
        return np.array(found)

    def table(self, rows: Sequence[Row]) -> Table:
        """Tabulate μ₁ to μ₄ at the ends of the grid."""
        lines = [
            [f"{self.bandwidths[end]:g}", "centred" if center else "as in the paper", *(f"{v:.2f}" for v in mu[end])]
            for end in (0, -1)
            for center in (False, True)
            for mu in [self._mean(rows, center)]
        ]
        return Table(("σ / median distance", "covariance", "μ₁", "μ₂", "μ₃", "μ₄"), lines)

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Plot μ₁ to μ₄ over the bandwidth."""
        figure = Figure(figsize=(8.5, 3.4), layout="constrained")
        axes = figure.subplots(1, 2, sharey=True)
        for ax, center, title in zip(axes, (False, True), ("as in the paper", "centred"), strict=True):
            for k, mu in enumerate(self._mean(rows, center).T):
                ax.plot(self.bandwidths, mu, ".-", label=f"μ{k + 1}")
            ax.axhline(100, color="0.6", ls="--", lw=0.8)
            ax.set(xscale="log", yscale="log", xlabel="σ / median distance", title=f"OU2D α=16, {title}")
        axes[0].set_ylabel("eigenvalue μ (dashed: 1/λ)")
        axes[0].legend(frameon=False, ncols=2)
        return figure


experiment: ConstantMode = ConstantMode()
