"""What the measurements say of each claim of the paper's Discussion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from kdmaps.experiments._runner import Row, markdown
from kdmaps.experiments.failure_modes._laboratory import (
    N_MODES,
    NARROW,
    PAPER_CHOICE,
    SCALARS,
    SETUPS,
    STARTS,
    VECTORS,
    WEIGHTS,
    WIDE,
    _residual,
)
from kdmaps.learn._objective import PRESETS


class Landscape:
    """The two rows of a landscape as arrays over σ, and the losses made of them."""

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
        """What a regularizer is added to."""
        columns = self.columns[setup]
        return columns["heldout"] if setup == "heldout" else columns["eig"] + columns["sub"]

    def term(self, setup: str, name: str) -> np.ndarray:
        """A term; with `heldout`, that one instead."""
        return self.columns[setup]["heldout" if setup == "heldout" else name]

    def combined(self, setup: str) -> np.ndarray:
        """The preset "combined"."""
        columns, weights = self.columns[setup], {"heldout": 1.0} if setup == "heldout" else PRESETS["combined"]
        return np.sum([weight * columns[term] for term, weight in weights.items()], axis=0)

    def regularized(self, setup: str, name: str, weight: float) -> np.ndarray:
        """The combined loss without a regularizer, or `heldout`, plus one."""
        if name == "anchor":
            return self._base(setup) + weight * np.log(self.sigma / self.anchor(setup)) ** 2
        return self._base(setup) + weight * self.columns[setup][name]

    def anchor(self, setup: str) -> float:
        """σ_CV: the choice of the paper's rule, or of the held-out score."""
        return PAPER_CHOICE if setup == "uncentred" else float(self.sigma[_lowest(self.columns["centred"]["heldout"])])

    def nearest(self, sigma: float) -> int:
        """Index of the grid's σ next to a σ."""
        return int(np.argmin(np.abs(np.log(self.sigma / sigma))))

    def moves(self, setup: str) -> list[bool]:
        """Whether descent of the residual (on the grid) leaves each start."""
        loss = self.residual(setup, "solver")
        return [_downhill(loss, self.nearest(start)) != self.nearest(start) for start in STARTS]

    def stays(self, setup: str, weight: float) -> bool:
        """Whether descent (on the grid) from σ_CV with an anchor there ends within a factor 2 of it."""
        choice, loss = self.anchor(setup), self.regularized(setup, "anchor", weight)
        start = self.nearest(choice)
        near = abs(np.log(self.sigma[_downhill(loss, start)] / choice)) < np.log(2)
        return bool(near and np.isfinite(loss[start]))

    def residual(self, setup: str, gauge: str, rates: np.ndarray | None = None) -> np.ndarray:
        """Σ_k ‖𝒢φ_k + λ̂_kφ_k‖², with λ̂ its own at every σ or `rates`; `gauge` "solver" has Eφ_k² = μ_k, "unit" 1."""
        columns = self.columns[setup]
        if setup == "heldout":
            return columns["heldout"]
        each = _residual(columns, -columns["cross"] if rates is None else rates)
        return np.sum(each * (columns["mu"] if gauge == "solver" else 1.0), axis=1)

    def heldout_residual(self, setup: str, gauge: str) -> np.ndarray:
        """The residual on samples that modes and λ̂ were not fitted to."""
        return self.columns[setup]["heldout"] if setup == "heldout" else self.columns[setup][f"heldout_{gauge}"].sum(1)

    def constrained(self, setup: str, weight: float) -> np.ndarray:
        """The residual with Dirichlet quotients held near the true rates, the most favourable target."""
        columns = self.columns[setup]
        penalty = np.sum((columns["rates"] - columns["target"]) ** 2, axis=1)
        return self.residual(setup, "solver") + weight * penalty

    def two_timescales(self, setup: str, gauge: str, start: float, steps: int = 3) -> int:
        """Index of σ where descent ends that moves `steps` points of the grid between two refreshments of λ̂."""
        index = self.nearest(start)
        for _ in range(10 * len(self.sigma)):
            loss = self.residual(setup, gauge, -self.columns[setup]["cross"][index])
            after = _downhill(loss, index, steps)
            if after == index:
                break
            index = after
        return index

    def free_minimum(self) -> Row:
        """Minimum of the held-out loss over σ and λ."""
        columns = self.columns["centred"]
        index = _lowest(columns["free_heldout"])
        r2 = float(columns["free_r2"][index])
        return {
            "where": self.where(index, "centred"),
            "escapes": self.escapes(index, "centred"),
            "sigma": float(self.sigma[index]),
            "r2": r2,
        }

    def where(self, index: int, setup: str) -> str:
        """Whether σ is at an edge of what the samples determine."""
        usable = np.flatnonzero(np.isfinite(self.columns[setup]["eig"]))
        return "left edge" if index <= usable[0] else "right edge" if index >= usable[-1] else "interior"

    def escapes(self, index: int, setup: str) -> bool:
        """Whether σ → ∞: beyond WIDE, or as wide as the modes are determined (dw1d ends before)."""
        return bool(self.sigma[index] >= WIDE) or self.where(index, setup) == "right edge"


def _lowest(loss: np.ndarray) -> int:
    return int(np.nanargmin(loss))


def _downhill(loss: np.ndarray, index: int, steps: int | None = None) -> int:
    """Where descent along the grid ends, after at most `steps` points."""
    for _ in range(len(loss) if steps is None else steps):
        near = [i for i in (index - 1, index + 1) if 0 <= i < len(loss) and loss[i] < loss[index]]
        if not near:
            break
        index = min(near, key=lambda i: loss[i])
    return index


# --- claims -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Claim:
    """A sentence of the Discussion and the losses, one for every weight, that it is about."""

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
    Claim("residual, unit modes", "(not told apart)", lambda land, setup, w: land.residual(setup, "unit")),
    Claim("held-out residual", "(iii) σ → ∞", lambda land, setup, w: land.heldout_residual(setup, "solver")),
    Claim(
        "held-out residual, unit modes", "(not told apart)", lambda land, setup, w: land.heldout_residual(setup, "unit")
    ),
    Claim(
        "residual + Dirichlet constraint",
        "interior, off σ_CV, worse",
        lambda land, setup, w: land.columns[setup]["heldout"] if setup == "heldout" else land.constrained(setup, w),
        tuple(WEIGHTS),
    ),
)


def minima(lands: Sequence[Landscape], claim: Claim, setup: str, weight: float) -> list[Row]:
    """Where the minimum is for every seed, and how good the modes are there."""
    found = []
    for land in lands:
        index = _lowest(claim.loss(land, setup, weight))
        r2 = float(land.columns[setup]["r2"][index])
        escapes, sigma = land.escapes(index, setup), float(land.sigma[index])
        found.append({"where": land.where(index, setup), "escapes": escapes, "sigma": sigma, "r2": r2})
    return found


def _summary(found: list[Row]) -> str:
    """What most seeds say, with the ranges of σ and SubR²."""
    where, votes = Counter(f["where"] for f in found).most_common(1)[0]
    share = "" if votes == len(found) else f" ({votes} of {len(found)})"
    at = "" if where != "interior" else f" σ={_span([f['sigma'] for f in found], '.2g')}"
    return f"{where}{at}{share}, SubR² {_span([f['r2'] for f in found], '.2f')}"


def _span(values: list[float], form: str) -> str:
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low}…{high}"


def _cell(lands: Sequence[Landscape], claim: Claim, setup: str) -> str:
    """One outcome, or one for every range of weights that agree."""
    by_weight = [(w, minima(lands, claim, setup, w)) for w in claim.weights]
    if len(by_weight) == 1:
        return _summary(by_weight[0][1])
    parts = []
    for _, group in groupby(by_weight, key=lambda entry: Counter(f["where"] for f in entry[1]).most_common(1)[0][0]):
        members = list(group)
        low, high = members[0][0], members[-1][0]
        span = f"{low:.0e}" if low == high else f"{low:.0e}…{high:.0e}"
        parts.append(f"{span}: {_summary([f for _, found in members for f in found])}")
    return "; ".join(parts)


def landscapes(rows: Sequence[Row]) -> dict[tuple[str, str, str], list[Landscape]]:
    """Landscapes of all seeds, by case."""
    found: dict[tuple[str, str, str], dict[int, list[Row]]] = {}
    for row in rows:
        if row["part"] == "landscape":
            case = row["problem"], row["family"], row["basis"]
            found.setdefault(case, {}).setdefault(row["seed"], []).append(row)
    return {case: [Landscape(pair) for pair in seeds.values()] for case, seeds in found.items()}


def _ceiling_cell(lands: Sequence[Landscape], setup: str) -> str:
    """Best SubR² over σ, or that at the minimum of `heldout`: against the slow modes, and the paper's reference."""
    chosen = [
        (c["r2"][i], c["paper_r2"][j])
        for c in (land.columns[setup] for land in lands)
        for i, j in [
            (_lowest(c["heldout"]),) * 2 if setup == "heldout" else (_lowest(-c["r2"]), _lowest(-c["paper_r2"]))
        ]
    ]
    truth, paper = np.mean(chosen, axis=0)
    return f"{'chosen' if setup == 'heldout' else 'best'}: {truth:.3f} (paper's reference {paper:.3f})"


def _descent_cell(rows: Sequence[Row], case: tuple[str, str, str], name: str, setup: str) -> str:
    mine = [
        row for row in rows
        if row["part"] == "descent" and (row["problem"], row["family"], row["basis"]) == case
        and (row["loss"] == "heldout" if setup == "heldout"
             else row["loss"] == name and row["center"] == (setup == "centred"))
    ]  # fmt: skip
    return "σ ends at " + ", ".join(f"{row['path'][-1]:.2g}" for row in mine) if mine else ""


# --- verdicts: is it so? ----------------------------------------------------------------------------------------------
def verdicts(rows: Sequence[Row]) -> str:
    """How often each claim is true over all cases and seeds, with mean SubR² at the minimum."""
    by_case = landscapes(rows)
    lands = [land for mine in by_case.values() for land in mine]
    claims = {claim.name: claim for claim in CLAIMS}

    def at(name: str, setup: str, weight: float = 1.0) -> list[Row]:
        return minima(lands, claims[name], setup, weight)

    def count(true: Sequence[bool], note: str = "") -> str:
        return f"{sum(true)} of {len(true)}{note}"

    def mean(found: Sequence[Row]) -> str:
        return f"{np.mean([f['r2'] for f in found]):.2f}"

    def goes(name: str, narrow: bool) -> list[str]:
        found = {setup: at(name, setup) for setup in SETUPS}
        true = {s: [f["sigma"] <= NARROW if narrow else f["escapes"] for f in found[s]] for s in SETUPS}
        return [count(true[s], f", SubR² {mean(found[s])}") for s in SETUPS]

    def no_gain(name: str) -> list[str]:
        cells = []
        for setup in SETUPS:
            plain, *others = (at(name, setup, w) for w in (0.0, *WEIGHTS))
            best = [max(fs, key=lambda f: f["r2"]) for fs in zip(*others, strict=True)]
            true = [b["r2"] < f["r2"] + 0.05 for b, f in zip(best, plain, strict=True)]
            cells.append(count(true, f", SubR² {mean(plain)} → {mean(best)}"))
        return cells

    def anchored() -> list[str]:
        return [count([land.stays(setup, WEIGHTS[-1]) for land in lands]) for setup in SETUPS]

    def frozen() -> list[str]:
        moved = [[m for land in lands for m in land.moves(setup)] for setup in SETUPS[:2]]
        return [*(count([not m for m in mine], " starts") for mine in moved), ""]

    def gradients() -> list[str]:
        worst = (max(np.nanmax(land.columns[setup]["mismatch"]) for land in lands) for setup in SETUPS[:2])
        return [*(f"equal, to {value:.0e}" for value in worst), ""]

    def refreshed(gauge: str) -> list[str]:
        def ends(setup: str) -> list[bool]:
            return [land.escapes(land.two_timescales(setup, gauge, start), setup) for land in lands for start in STARTS]

        return [*(count(ends(setup), " starts") for setup in SETUPS[:2]), ""]

    def constrained() -> list[str]:
        chosen = at("eig", "heldout")
        cells = []
        for setup in SETUPS[:2]:
            by_weight = zip(*(at("residual + Dirichlet constraint", setup, w) for w in WEIGHTS), strict=True)
            best = [max(found, key=lambda f: f["r2"]) for found in by_weight]
            true = [b["r2"] < c["r2"] - 0.01 for b, c in zip(best, chosen, strict=True)]
            cells.append(count(true, f", best SubR² {mean(best)}"))
        return [*cells, f"(itself: SubR² {mean(chosen)})"]

    def ceiling() -> list[str]:
        mine = [land for case, found in by_case.items() for land in found if case[:2] == ("ou2d-4", "gaussian")]
        return [_ceiling_cell(mine, setup) for setup in SETUPS] if mine else [""] * 3

    lines = [
        ["`sub` drives σ → 0", *goes("sub", True)],
        ["`eig` drives σ → ∞", *goes("eig", False)],
        ["`combined` drives σ → 0", *goes("combined", True)],
        ["no weight of the coefficient norm helps", *no_gain("+ coefficient norm")],
        ["no weight of the eigenvalue spread helps", *no_gain("+ eigenvalue spread")],
        ["no weight of the Dirichlet H¹ norm helps", *no_gain("+ Dirichlet H¹")],
        [f"a soft anchor of weight {WEIGHTS[-1]:g} holds σ within a factor 2 of σ_CV, from there", *anchored()],
        ["(i) residual with differentiable λ̂ leaves σ where it starts", *frozen()],
        ["… unlike (ii): how different are their gradients by σ?", *gradients()],
        ["(ii) residual with refreshed λ̂ drives σ → ∞", *refreshed("solver")],
        ["… with modes of unit norm", *refreshed("unit")],
        ["(iii) held-out residual drives σ → ∞", *goes("held-out residual", False)],
        ["… with modes of unit norm", *goes("held-out residual, unit modes", False)],
        ["a Dirichlet constraint stays worse than a held-out choice", *constrained()],
        ["one Gaussian on ou2d-4 stays below SubR² 0.75", *ceiling()],
    ]
    free = [land.free_minimum() for land in lands]
    wide = count([f["escapes"] for f in free], f", SubR² {mean(free)}")
    lines.append(["for comparison: `heldout` over σ and λ drives σ → ∞", "", "", wide])
    return markdown(["the paper says", "uncentred, as in the paper", "centred", "heldout (centred)"], lines)


INTRODUCTION = f"""\
Of how many samples (all cases and seeds) is it true? σ is in medians of the pairwise distance. σ → 0 means a minimum at
σ ≤ {NARROW:g}, σ → ∞ one at σ ≥ {WIDE:g} or at the widest kernel that determines {N_MODES} modes. A regularizer helps
if some weight from {WEIGHTS[0]:g} to {WEIGHTS[-1]:g} adds 0.05 to SubR² at the minimum. Modes are as the solver gives
them (Eφ² = μ) unless of unit norm. Residuals are descended on the grid, from
σ = {", ".join(f"{s:g}" for s in STARTS)}."""


def table(rows: list[Row]) -> str:
    """How often the claims are true; then, for every case and claim, where minima and descents are."""
    sections = [INTRODUCTION, verdicts(rows)]
    for case, lands in landscapes(rows).items():
        lines = []
        for claim in CLAIMS:
            lines.append([claim.name, claim.paper, *(_cell(lands, claim, setup) for setup in SETUPS)])
            path = [_descent_cell(rows, case, claim.name, setup) for setup in SETUPS]
            if path[0]:
                lines.append([f"descent, {claim.name}", f"from σ = {', '.join(f'{s:g}' for s in STARTS)}", *path])
        lines.append(["heldout, λ chosen too", "", "", "", _summary([land.free_minimum() for land in lands])])
        says = "SubR² ≤ 0.75 at any σ" if case[:2] == ("ou2d-4", "gaussian") else ""
        lines.append([f"ceiling of one {case[1]}", says, *(_ceiling_cell(lands, setup) for setup in SETUPS)])
        title = f"**{case[0]}, {case[1]}, {case[2]}, {len(lands)} seed{'s' * (len(lands) > 1)}**"
        sections.append(f"{title}\n\n" + markdown(["loss", "paper says", *SETUPS], lines))
    return "\n\n".join(sections)
