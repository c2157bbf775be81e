"""The claims of the paper's Discussion as losses over σ, and their minima."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from experiments._runner import Row
from experiments.failure_modes._laboratory import (
    PAPER_CHOICE,
    SCALARS,
    STARTS,
    VECTORS,
    WEIGHTS,
    WIDE,
    residual_norms,
)
from kdmaps.learn.objectives import PRESETS


class Landscape:
    """The two rows of a landscape as arrays over σ, and the losses computed from them."""

    def __init__(self, rows: Sequence[Row]):
        self.sigma = np.array(rows[0]["sigma"])
        self.columns = {
            "centred" if row["center"] else "uncentred": {
                name: np.array(row[name]) for name in (*SCALARS, *VECTORS, "target", "mismatch")
            }
            for row in rows
        }
        self.columns["heldout"] = self.columns["centred"]

    def _base(self, setup: str) -> np.ndarray:
        """Return the loss to which a regularizer is added."""
        columns = self.columns[setup]
        return columns["heldout"] if setup == "heldout" else columns["eig"] + columns["sub"]

    def term(self, setup: str, name: str) -> np.ndarray:
        """Return a term of the loss, or the held-out score for the setup "heldout"."""
        return self.columns[setup]["heldout" if setup == "heldout" else name]

    def combined(self, setup: str) -> np.ndarray:
        """Return the preset "combined"."""
        columns, weights = self.columns[setup], {"heldout": 1.0} if setup == "heldout" else PRESETS["combined"]
        return np.sum([weight * columns[term] for term, weight in weights.items()], axis=0)

    def regularized(self, setup: str, name: str, weight: float) -> np.ndarray:
        """Return the combined loss (or `heldout`) plus one regularizer."""
        if name == "anchor":
            return self._base(setup) + weight * np.log(self.sigma / self.anchor(setup)) ** 2
        return self._base(setup) + weight * self.columns[setup][name]

    def anchor(self, setup: str) -> float:
        """Return σ_CV, selected by the paper's rule or by the held-out score."""
        return PAPER_CHOICE if setup == "uncentred" else float(self.sigma[lowest(self.columns["centred"]["heldout"])])

    def nearest(self, sigma: float) -> int:
        """Return the index of the grid point closest to σ."""
        return int(np.argmin(np.abs(np.log(self.sigma / sigma))))

    def moves(self, setup: str) -> list[bool]:
        """Return whether descent of the residual (on the grid) leaves each start."""
        loss = self.residual(setup, "solver")
        return [_downhill(loss, self.nearest(start)) != self.nearest(start) for start in STARTS]

    def stays(self, setup: str, weight: float) -> bool:
        """Return whether descent (on the grid) from σ_CV, anchored there, ends within a factor 2 of it."""
        choice, loss = self.anchor(setup), self.regularized(setup, "anchor", weight)
        start = self.nearest(choice)
        near = abs(np.log(self.sigma[_downhill(loss, start)] / choice)) < np.log(2)
        return bool(near and np.isfinite(loss[start]))

    def residual(self, setup: str, gauge: str, rates: np.ndarray | None = None) -> np.ndarray:
        """Return Σ_k ‖𝒢φ_k + λ̂_kφ_k‖², with λ̂ recomputed at each σ or equal to `rates`.

        Modes have Eφ_k² = μ_k for the gauge "solver" and Eφ_k² = 1 for "unit".
        """
        columns = self.columns[setup]
        if setup == "heldout":
            return columns["heldout"]
        each = residual_norms(columns, -columns["cross"] if rates is None else rates)
        return np.sum(each * (columns["mu"] if gauge == "solver" else 1.0), axis=1)

    def heldout_residual(self, setup: str, gauge: str) -> np.ndarray:
        """Return the residual on samples that were not used to fit the modes and λ̂."""
        return self.columns[setup]["heldout"] if setup == "heldout" else self.columns[setup][f"heldout_{gauge}"].sum(1)

    def constrained(self, setup: str, weight: float) -> np.ndarray:
        """Return the residual with Dirichlet quotients constrained to the true rates, the most favourable target."""
        columns = self.columns[setup]
        penalty = np.sum((columns["rates"] - columns["target"]) ** 2, axis=1)
        return self.residual(setup, "solver") + weight * penalty

    def two_timescales(self, setup: str, gauge: str, start: float, steps: int = 3) -> int:
        """Return the index at which descent ends if λ̂ is refreshed after every `steps` grid points."""
        index = self.nearest(start)
        for _ in range(10 * len(self.sigma)):
            loss = self.residual(setup, gauge, -self.columns[setup]["cross"][index])
            after = _downhill(loss, index, steps)
            if after == index:
                break
            index = after
        return index

    def free_minimum(self) -> Row:
        """Return the minimum of the held-out loss over σ and λ."""
        columns = self.columns["centred"]
        index = lowest(columns["free_heldout"])
        r2 = float(columns["free_r2"][index])
        return {
            "where": self.where(index, "centred"),
            "escapes": self.escapes(index, "centred"),
            "sigma": float(self.sigma[index]),
            "r2": r2,
        }

    def where(self, index: int, setup: str) -> str:
        """Return whether σ is at an edge of the range in which the samples determine the modes."""
        usable = np.flatnonzero(np.isfinite(self.columns[setup]["eig"]))
        return "left edge" if index <= usable[0] else "right edge" if index >= usable[-1] else "interior"

    def escapes(self, index: int, setup: str) -> bool:
        """Return whether σ → ∞: beyond WIDE, or at the widest kernel that determines the modes (narrower for dw1d)."""
        return bool(self.sigma[index] >= WIDE) or self.where(index, setup) == "right edge"


def lowest(loss: np.ndarray) -> int:
    return int(np.nanargmin(loss))


def _downhill(loss: np.ndarray, index: int, steps: int | None = None) -> int:
    """Return the index at which descent along the grid ends, after at most `steps` points."""
    for _ in range(len(loss) if steps is None else steps):
        near = [i for i in (index - 1, index + 1) if 0 <= i < len(loss) and loss[i] < loss[index]]
        if not near:
            break
        index = min(near, key=lambda i: loss[i])
    return index


# --- claims -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Claim:
    """A statement of the Discussion and the losses, one per weight, to which it refers."""

    name: str
    paper: str
    loss: Callable[[Landscape, str, float], np.ndarray]
    weights: tuple[float, ...] = (1.0,)


def _regularizer(name: str, term: str, paper: str) -> Claim:
    return Claim(name, paper, lambda land, setup, w: land.regularized(setup, term, w), tuple(WEIGHTS))


_NO_HELP = "no effect or σ → 0 at any weight"
CLAIMS = (
    Claim("sub", "σ → 0", lambda land, setup, w: land.term(setup, "sub")),
    Claim("eig", "σ → ∞", lambda land, setup, w: land.term(setup, "eig")),
    Claim("combined", "σ → 0: sub dominates", lambda land, setup, w: land.combined(setup)),
    _regularizer("+ coefficient norm", "rkhs", _NO_HELP),
    _regularizer("+ eigenvalue spread", "spread", _NO_HELP),
    _regularizer("+ Dirichlet H¹", "dirichlet", _NO_HELP),
    _regularizer("+ soft anchor", "anchor", "holds σ at σ_CV if strong enough"),
    Claim("residual", "(i) σ stays where it starts", lambda land, setup, w: land.residual(setup, "solver")),
    Claim("residual, unit modes", "(not distinguished)", lambda land, setup, w: land.residual(setup, "unit")),
    Claim("held-out residual", "(iii) σ → ∞", lambda land, setup, w: land.heldout_residual(setup, "solver")),
    Claim(
        "held-out residual, unit modes",
        "(not distinguished)",
        lambda land, setup, w: land.heldout_residual(setup, "unit"),
    ),
    Claim(
        "residual + Dirichlet constraint",
        "interior, off σ_CV, worse",
        lambda land, setup, w: land.columns[setup]["heldout"] if setup == "heldout" else land.constrained(setup, w),
        tuple(WEIGHTS),
    ),
)


def minima(lands: Sequence[Landscape], claim: Claim, setup: str, weight: float) -> list[Row]:
    """Locate the minimum for each seed, with SubR² of the modes there."""
    found = []
    for land in lands:
        index = lowest(claim.loss(land, setup, weight))
        r2 = float(land.columns[setup]["r2"][index])
        escapes, sigma = land.escapes(index, setup), float(land.sigma[index])
        found.append({"where": land.where(index, setup), "escapes": escapes, "sigma": sigma, "r2": r2})
    return found


def landscapes(rows: Sequence[Row]) -> dict[tuple[str, str, str], list[Landscape]]:
    """Return the landscapes of all seeds by case."""
    found: dict[tuple[str, str, str], dict[int, list[Row]]] = {}
    for row in rows:
        if row["part"] == "landscape":
            case = row["problem"], row["family"], row["basis"]
            found.setdefault(case, {}).setdefault(row["seed"], []).append(row)
    return {case: [Landscape(pair) for pair in seeds.values()] for case, seeds in found.items()}
