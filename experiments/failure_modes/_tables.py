"""Tables: how often each claim of the paper holds, and where the minima and descents of each case are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np

from experiments._runner import Row, markdown
from experiments.failure_modes._claims import CLAIMS, Claim, Landscape, landscapes, lowest, minima
from experiments.failure_modes._laboratory import N_MODES, NARROW, SETUPS, STARTS, WEIGHTS, WIDE

#: A regularizer helps if it raises SubR² by this much; a choice is worse if its SubR² is lower by that much.
GAIN, LOSS = 0.05, 0.01


# --- cells of the table of a case -------------------------------------------------------------------------------------
def _summary(found: list[Row]) -> str:
    """Return the most frequent result over the seeds, with the ranges of σ and SubR²."""
    where, votes = Counter(f["where"] for f in found).most_common(1)[0]
    share = "" if votes == len(found) else f" ({votes} of {len(found)})"
    at = "" if where != "interior" else f" σ={_span([f['sigma'] for f in found], '.2g')}"
    return f"{where}{at}{share}, SubR² {_span([f['r2'] for f in found], '.2f')}"


def _span(values: list[float], form: str) -> str:
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low}…{high}"


def _cell(lands: Sequence[Landscape], claim: Claim, setup: str) -> str:
    """Return one result, or one per range of weights with the same result."""
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


def _ceiling_cell(lands: Sequence[Landscape], setup: str) -> str:
    """Return SubR² with both references: the best over σ, or that at the minimum of `heldout`."""
    chosen = [
        (c["r2"][i], c["paper_r2"][j])
        for c in (land.columns[setup] for land in lands)
        for i, j in [(lowest(c["heldout"]),) * 2 if setup == "heldout" else (lowest(-c["r2"]), lowest(-c["paper_r2"]))]
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


# --- how often each claim holds ---------------------------------------------------------------------------------------
def claims_table(rows: Sequence[Row]) -> str:
    """Count over all cases and seeds how often each claim holds, with the mean SubR² at the minimum."""
    by_case = landscapes(rows)
    lands = [land for found in by_case.values() for land in found]
    gaussians = [land for case, found in by_case.items() for land in found if case[:2] == ("ou2d-4", "gaussian")]
    anchor = f"a soft anchor of weight {WEIGHTS[-1]:g} holds σ within a factor 2 of σ_CV, from there"
    free = [land.free_minimum() for land in lands]
    lines = [
        ["`sub` drives σ → 0", *_drives_to(lands, "sub", _is_narrow)],
        ["`eig` drives σ → ∞", *_drives_to(lands, "eig", _is_wide)],
        ["`combined` drives σ → 0", *_drives_to(lands, "combined", _is_narrow)],
        ["no weight of the coefficient norm helps", *_no_weight_helps(lands, "+ coefficient norm")],
        ["no weight of the eigenvalue spread helps", *_no_weight_helps(lands, "+ eigenvalue spread")],
        ["no weight of the Dirichlet H¹ norm helps", *_no_weight_helps(lands, "+ Dirichlet H¹")],
        [anchor, *(_count([land.stays(setup, WEIGHTS[-1]) for land in lands]) for setup in SETUPS)],
        ["(i) residual with differentiable λ̂ leaves σ where it starts", *_stays_at_start(lands)],
        ["… unlike (ii): how different are their gradients by σ?", *_gradient_mismatch(lands)],
        ["(ii) residual with refreshed λ̂ drives σ → ∞", *_refreshed_escapes(lands, "solver")],
        ["… with modes of unit norm", *_refreshed_escapes(lands, "unit")],
        ["(iii) held-out residual drives σ → ∞", *_drives_to(lands, "held-out residual", _is_wide)],
        ["… with modes of unit norm", *_drives_to(lands, "held-out residual, unit modes", _is_wide)],
        ["a Dirichlet constraint stays worse than a held-out choice", *_constraint_is_worse(lands)],
        [
            "one Gaussian on ou2d-4 stays below SubR² 0.75",
            *(_ceiling_cell(gaussians, setup) if gaussians else "" for setup in SETUPS),
        ],
        ["for comparison: `heldout` over σ and λ drives σ → ∞", "", "", _count_with_r2(free, _is_wide)],
    ]
    return markdown(["the paper says", "uncentred, as in the paper", "centred", "heldout (centred)"], lines)


def _is_narrow(minimum: Row) -> bool:
    return minimum["sigma"] <= NARROW


def _is_wide(minimum: Row) -> bool:
    return minimum["escapes"]


def _count(true: Sequence[bool], note: str = "") -> str:
    return f"{sum(true)} of {len(true)}{note}"


def _mean_r2(found: Sequence[Row]) -> str:
    return f"{np.mean([minimum['r2'] for minimum in found]):.2f}"


def _count_with_r2(found: Sequence[Row], condition: Callable[[Row], bool]) -> str:
    return _count([condition(minimum) for minimum in found], f", SubR² {_mean_r2(found)}")


def _minima(lands: Sequence[Landscape], name: str, setup: str, weight: float = 1.0) -> list[Row]:
    claim = next(claim for claim in CLAIMS if claim.name == name)
    return minima(lands, claim, setup, weight)


def _best_over_weights(lands: Sequence[Landscape], name: str, setup: str) -> list[Row]:
    """Return, for each landscape, the minimum of largest SubR² over all weights."""
    by_weight = (_minima(lands, name, setup, weight) for weight in WEIGHTS)
    return [max(found, key=lambda minimum: minimum["r2"]) for found in zip(*by_weight, strict=True)]


def _drives_to(lands: Sequence[Landscape], name: str, condition: Callable[[Row], bool]) -> list[str]:
    return [_count_with_r2(_minima(lands, name, setup), condition) for setup in SETUPS]


def _no_weight_helps(lands: Sequence[Landscape], name: str) -> list[str]:
    cells = []
    for setup in SETUPS:
        plain, best = _minima(lands, name, setup, 0.0), _best_over_weights(lands, name, setup)
        useless = [b["r2"] < p["r2"] + GAIN for b, p in zip(best, plain, strict=True)]
        cells.append(_count(useless, f", SubR² {_mean_r2(plain)} → {_mean_r2(best)}"))
    return cells


def _stays_at_start(lands: Sequence[Landscape]) -> list[str]:
    moved = [[move for land in lands for move in land.moves(setup)] for setup in SETUPS[:2]]
    return [*(_count([not move for move in moves], " starts") for moves in moved), ""]


def _gradient_mismatch(lands: Sequence[Landscape]) -> list[str]:
    worst = (max(np.nanmax(land.columns[setup]["mismatch"]) for land in lands) for setup in SETUPS[:2])
    return [*(f"equal, to {value:.0e}" for value in worst), ""]


def _refreshed_escapes(lands: Sequence[Landscape], gauge: str) -> list[str]:
    def ends(setup: str) -> list[bool]:
        return [land.escapes(land.two_timescales(setup, gauge, start), setup) for land in lands for start in STARTS]

    return [*(_count(ends(setup), " starts") for setup in SETUPS[:2]), ""]


def _constraint_is_worse(lands: Sequence[Landscape]) -> list[str]:
    chosen, cells = _minima(lands, "eig", "heldout"), []
    for setup in SETUPS[:2]:
        best = _best_over_weights(lands, "residual + Dirichlet constraint", setup)
        worse = [b["r2"] < c["r2"] - LOSS for b, c in zip(best, chosen, strict=True)]
        cells.append(_count(worse, f", best SubR² {_mean_r2(best)}"))
    return [*cells, f"(itself: SubR² {_mean_r2(chosen)})"]


INTRODUCTION = f"""\
The table counts the samples (over all cases and seeds) for which a claim holds. σ is in units of the median pairwise
distance. σ → 0 means a minimum at σ ≤ {NARROW:g}, σ → ∞ a minimum at σ ≥ {WIDE:g} or at the widest kernel that
determines {N_MODES} modes. A regularizer helps if some weight from {WEIGHTS[0]:g} to {WEIGHTS[-1]:g} raises SubR² at
the minimum by {GAIN:g}. Modes are normalized by the solver (Eφ² = μ) unless stated to have unit norm. Residuals are
minimised by descent on the grid, starting at σ = {", ".join(f"{s:g}" for s in STARTS)}."""


def table(rows: list[Row]) -> str:
    """Return how often each claim holds, then the minima and descents for each case and claim."""
    sections = [INTRODUCTION, claims_table(rows)]
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
