"""Tables and figures of the three parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from experiments._fits import mark
from experiments._runner import Row, markdown
from experiments.theory.continuous import BANDWIDTHS, NU, continuous_regret
from kdmaps.certificates import Certificate

CONFIDENCE = 0.95
#: Predictions are for kernels whose q = s²/ℓ² and mq/λ are below this: there the bounds on μ₀ differ by a tenth.
WIDE = 0.1


def table(rows: list[Row]) -> str:
    """Return the three tables."""
    parts = (("constant", constant_table), ("optimism", optimism_table), ("continuous", continuous_table))
    return "\n\n".join(
        text for name, make in parts if (mine := [row for row in rows if row["part"] == name]) for text in [make(mine)]
    )


def constant_table(rows: list[Row]) -> str:
    """Return how well the sums were predicted, and which bandwidth they chose, by problem, family and λ."""
    lines = []
    for key in dict.fromkeys((row["problem"], row["family"], row["λ"]) for row in rows):
        mine = [row for row in rows if (row["problem"], row["family"], row["λ"]) == key]
        errors = np.concatenate([_wide_errors(row) for row in mine])
        last = [int(np.argmax(row["sum"])) == len(row["sum"]) - 1 for row in mine]
        outside = max(_outside(row) for row in mine)
        most = max(row["possible"] for row in mine)
        lines.append(
            [
                key[0],
                key[1],
                f"{key[2]:g}",
                f"{1 / key[2]:g}",
                f"{max(row['λT'] for row in mine):.2g}",
                f"{np.mean([row['sum'][-1] for row in mine]):.6g}",
                f"{np.mean([row['predicted'][-1] for row in mine]):.6g}",
                f"{errors.max():.2%}",
                f"{outside:.2%}",
                f"{most} of {len(mine[0]['sum'])}",
                f"{sum(last)} of {len(last)}",
            ]
        )
    header = ["problem", "family", "λ", "1/λ", "λT", "sum at the edge", "predicted", "largest error, wide kernels",
              "μ₀ outside its bounds by", "may win", "the edge wins"]  # fmt: skip
    words = (
        "## The constant\n\nSums of four uncentred eigenvalues on test folds over the paper's ten bandwidths. `may "
        "win`: number of bandwidths that the bounds do not exclude. The bounds are for the exact kernel, the "
        f"eigenvalues for 300 features of it. Wide kernels have q and mq/λ below {WIDE:g}."
    )
    return f"{words}\n\n{markdown(header, lines)}"


def _wide_errors(row: Row) -> np.ndarray:
    wide = np.array(row["narrowness"]) < WIDE
    return np.abs(np.array(row["predicted"]) / np.array(row["sum"]) - 1)[wide]


def _outside(row: Row) -> float:
    """Return by how much the measured eigenvalue of the constant is outside its bounds, relative to it."""
    mu, lower, upper = (np.array(row[name]) for name in ("constant", "lower", "upper"))
    return float(np.max(np.maximum(np.maximum(lower - mu, mu - upper), 0) / mu))


def optimism_table(rows: list[Row]) -> str:
    """Return how often the bound on the optimism holds, and how large it is, by problem."""
    lines = []
    for problem in dict.fromkeys(row["problem"] for row in rows):
        mine = [row for row in rows if row["problem"] == problem]
        score, population, bound = (np.array([row[name] for row in mine]) for name in ("score", "population", "bound"))
        held = np.mean(score - population <= bound)
        lines.append(
            [
                problem,
                f"{mine[0]['n_modes']}",
                f"{mine[0]['n']}",
                f"{mine[0]['candidates']:.0f}",
                f"{len(mine)}",
                f"{mine[0]['exact']:.3f}",
                f"{score.mean():.3f}",
                f"{np.mean(score - population):.3f}",
                f"{bound.mean():.3f}",
                f"{np.mean([row['q'] for row in mine]):.2f}",
                f"{held:.3f} {mark(bool(held >= CONFIDENCE))}",
                f"{np.mean(score - bound <= mine[0]['exact']):.3f}",
                mark(bool(np.all(bound < score))),
            ]
        )
    header = ["problem", "r", "N", "candidates", "repetitions", "exact sum", "best score", "optimism", "bound", "q",
              "bound holds (goal 0.95)", "score − bound below the exact sum", "below the trivial bound"]  # fmt: skip
    words = "## Optimism\n\nMeans over repetitions. The trivial bound is the score itself."
    return f"{words}\n\n{markdown(header, lines)}"


def regret_bound(rows: list[Row]) -> tuple[Certificate, np.ndarray, float]:
    """Return the bound on the regret of a continuum, the regrets of all samples, and the best population score."""
    (law,) = (np.array(row["scores"]) for row in rows if row["seed"] < 0)
    samples = np.array([row["scores"] for row in rows if row["seed"] >= 0])
    best, error = float(law.max()), float(samples.std(axis=0, ddof=1).max())
    regrets = best - law[samples.argmax(axis=1)]
    interval = float(np.log(BANDWIDTHS[-1] / BANDWIDTHS[0]))
    # One dimension: K = max(1, 2ν). The score itself concentrates: r = F = 1 and c N = 1/(2s²).
    found = continuous_regret(CONFIDENCE, best, interval, max(1.0, 2 * NU), 1, 1, 1.0, 1 / (2 * error**2))
    return found, regrets, best


def continuous_table(rows: list[Row]) -> str:
    """Return regret and bound of a choice from an interval, by the number of samples."""
    lines = []
    for n in sorted({row["n"] for row in rows}):
        mine = [row for row in rows if row["n"] == n]
        found, regrets, best = regret_bound(mine)
        lines.append(
            [
                mine[0]["problem"],
                f"{n}",
                f"{len(regrets)}",
                f"{best:.3f}",
                f"{regrets.mean():.4f}",
                f"{regrets.max():.4f}",
                f"{found.value:.3f}",
                f"{found.constants['M']:.0f}",
                f"{np.mean(regrets <= found.value):.3f}",
                mark(found.informative),
            ]
        )
    header = ["problem", "N", "repetitions", "best score", "mean regret", "largest regret", "bound (95 %)",
              "points of the net", "bound holds", "below the trivial bound"]  # fmt: skip
    words = (
        "## A continuum of bandwidths\n\nMatérn-5/2 kernels of all bandwidths from 0.5 to 5, by the sum of two "
        "centred eigenvalues on three folds."
    )
    return f"{words}\n\n{markdown(header, lines)}"


def figures(rows: list[Row], out: Path) -> None:
    """Draw predicted against measured sums, and optimism against its bound."""
    constant = [row for row in rows if row["part"] == "constant" and row["λ"] == 0.01 and row["family"] == "gaussian"]
    names = list(dict.fromkeys(row["problem"] for row in constant))
    fig = Figure(figsize=(8, 5.6), layout="constrained")
    for ax, name in zip(fig.subplots(2, 2, sharex=True, sharey=True).flat, names, strict=False):
        row = next(row for row in constant if row["problem"] == name)
        x = np.array(row["bandwidths"])
        ax.fill_between(x, row["lower"], row["upper"], color="C0", alpha=0.15, lw=0, label="bounds on μ₀")
        ax.plot(x, row["predicted"], color="C0", label="predicted sum")
        ax.plot(x, row["sum"], "o", color="C1", label="measured sum")
        ax.axhline(100, color="0.6", lw=0.8, ls=":")
        ax.set(xscale="log", title=name)
    axes = fig.axes
    axes[0].legend(frameon=False, fontsize="small")
    fig.supxlabel("bandwidth / median distance")
    fig.supylabel("sum of four uncentred eigenvalues, λ = 0.01")
    fig.savefig(out / "constant.png", dpi=130)

    fig = Figure(figsize=(8, 3.6), layout="constrained")
    optimism = [row for row in rows if row["part"] == "optimism"]
    names = list(dict.fromkeys(row["problem"] for row in optimism))
    for ax, name in zip(fig.subplots(1, max(len(names), 1), squeeze=False)[0], names, strict=False):
        mine = [row for row in optimism if row["problem"] == name]
        ax.plot([row["bound"] for row in mine], [row["score"] - row["population"] for row in mine], ".", color="C1")
        high = max(row["bound"] for row in mine) * 1.05
        ax.plot([0, high], [0, high], color="0.6", lw=0.8)
        ax.text(high, high, "the bound", ha="right", va="bottom", color="0.4", rotation=0, fontsize="small")
        ax.axhline(0, color="0.6", lw=0.8)
        ax.set(xlabel="bound", ylabel="score − population value", title=name)
    fig.savefig(out / "optimism.png", dpi=130)
