"""A few far rows: does the default estimator keep the modes of the other rows, and name every far row?

k rows are added to samples of five systems with known modes and of simulated cells on a branching tree, in random
places: single points 4 to 8 standard deviations away, a tight group at 4 standard deviations, or copies of rows with
one column 10 standard deviations away. In a fourth kind, one row in a hundred gets t-distributed noise of three
standard deviations, much of which is within the data. SubR² compares the modes at the other rows with the exact modes
(of cells, with the modes of the fit without far rows).

A fit that leaves out exactly the added rows is the fit without them to the bit (tests/estimators/test_isolation.py), so
its SubR² is not computed again, except for one case of every system. "kept" are fits with isolated="keep", as before
version 0.3. States of 1 and 2 % in equilibrium, and samples without far rows, count false alarms.

    python -m experiments.far_rows --quick
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments._fits import at_least, at_most, fit_default
from experiments._runner import Row, grouped, markdown, options_of, publish, run_tasks
from kdmaps import problems
from kdmaps.data.detached import FEWEST_OF_STATE, find_groups
from kdmaps.metrics import subspace_r2
from kdmaps.problems import Langevin1D

#: Number of modes of every system.
SYSTEMS = {"triplewell2d": 2, "ou2d-4": 2, "ou10d": 3, "circle": 2, "mdlike-6": 2, "cells": 2}
KINDS = ("points", "tight", "column")
COUNTS = (1, 2, 5, 10, 20, 40)
#: Samples, the part of the seeds, and the systems that are fitted.
SIZES = {500: (1.0, tuple(SYSTEMS)), 2_000: (0.34, tuple(SYSTEMS)), 20_000: (0.34, ("triplewell2d", "ou10d"))}
#: Seeds and systems without far rows, for false alarms.
HONEST = ("triplewell2d", "ou2d-4", "ou10d", "circle", "mdlike-6", "dw1d", "prinz", "muller-brown", "cells")
MORE = ("gauss-1", "gauss-10", "gauss-50", "laplace-2", "t5-3", "t3-3", "rare-1", "rare-2")
HONEST_SEEDS = 20
#: Double wells with barriers of 6 kT, tilted by so much that one well holds 1 and 2 % of the samples.
TILTS = {"rare-1": 2.0, "rare-2": 1.7}
#: Largest loss of SubR², and largest part of the time of a fit.
GOAL_LOSS, GOAL_TIME = 0.03, 0.05


def samples(system: str, n: int, seed: int) -> np.ndarray:
    """Return samples without far rows."""
    rng = np.random.default_rng(seed)
    kind, _, columns = system.partition("-")
    if system == "cells":
        return cells(n, rng)
    if kind == "gauss":
        return rng.standard_normal((n, int(columns)))
    if kind == "laplace":
        return rng.laplace(size=(n, int(columns)))
    if kind in ("t3", "t5"):
        chi = rng.chisquare(int(kind[1]), (n, 1)) / int(kind[1])
        return rng.standard_normal((n, int(columns))) / np.sqrt(chi)
    if kind == "rare":
        return rare_well(TILTS[system]).sample(n, random_state=seed)
    return problems.load(system).sample(n, random_state=seed)


def rare_well(tilt: float) -> Langevin1D:
    """Return a double well with a barrier of 6 kT, one well of which is rare."""
    return Langevin1D(lambda x: 6 * (x**2 - 1) ** 2 + tilt * x, lambda x: 24 * x * (x**2 - 1) + tilt, (-2.6, 2.6))


def cells(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return 30 principal components of counts of 300 genes along three branches that meet in a point."""
    genes = 300
    start = rng.normal(0, 1.2, genes)
    directions = rng.standard_normal((3, genes)) * (rng.random((3, genes)) < 0.3)
    branch = rng.choice(3, n)
    progress = rng.random(n)
    levels = np.exp(start + 1.2 * progress[:, None] * directions[branch])
    depth = rng.lognormal(np.log(3000), 0.35, (n, 1))
    means = depth * levels / levels.sum(axis=1, keepdims=True)
    counts = rng.poisson(rng.gamma(2.0, means / 2))
    logs = np.log1p(1e4 * counts / counts.sum(axis=1, keepdims=True))
    centred = logs - logs.mean(axis=0)
    left, deviations, _ = np.linalg.svd(centred, full_matrices=False)
    X = left[:, :30] * deviations[:30]
    return X / X.std()


def far_rows(X: np.ndarray, kind: str, k: int, rng: np.random.Generator) -> np.ndarray:
    """Return k far rows of a kind."""
    n, d = X.shape
    centre = X.mean(axis=0)
    deviations = X.std(axis=0)
    radius = float(np.linalg.norm(deviations))
    if kind == "points":
        directions = rng.standard_normal((k, d))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        return centre + directions * radius * rng.uniform(4, 8, (k, 1))
    if kind == "tight":
        towards = rng.standard_normal(d)
        place = centre + 4 * radius / np.linalg.norm(towards) * towards
        return place + 0.1 * radius / np.sqrt(d) * rng.standard_normal((k, d))
    rows = X[rng.choice(n, k, replace=False)].copy()
    columns = rng.integers(d, size=k)
    size = 10 * deviations.max() * rng.choice([-1, 1], k) * rng.uniform(0.8, 1.2, k)
    rows[np.arange(k), columns] = centre[columns] + size
    return rows


def noisy(X: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return samples with t-distributed noise in one row of a hundred, and which rows have none."""
    rows = rng.choice(len(X), max(1, len(X) // 100), replace=False)
    Y = X.copy()
    Y[rows] += 3 * X.std(axis=0) * rng.standard_t(2, (len(rows), X.shape[1]))
    return Y, np.isin(np.arange(len(X)), rows, invert=True)


def run(system: str, n: int, seed: int | None) -> list[Row]:
    """Return the rows of one data set: without far rows, and with every kind of them; without a seed, false alarms."""
    if seed is None:
        return false_alarms(system, n)
    X, n_modes = samples(system, n, seed), SYSTEMS[system]
    start = time.process_time()
    clean, _ = fit_default(X, n_modes, seed)
    seconds = time.process_time() - start
    modes = np.asarray(clean.transform(X))
    exact = modes if system == "cells" else problems.load(system).reference(X, n_modes)
    best = subspace_r2(exact, modes)
    common = {"system": system, "n": n, "seed": seed, "clean": best}

    def fitted(Y: np.ndarray, added: np.ndarray, **settings: Any) -> float:
        model, _ = fit_default(Y, n_modes, seed, **settings)
        return subspace_r2(exact, np.asarray(model.transform(Y))[~added])

    rows: list[Row] = []
    for kind in KINDS:
        for k in COUNTS:
            rng = np.random.default_rng([seed, KINDS.index(kind), k])
            places = np.sort(rng.choice(n + k, k, replace=False))
            added = np.isin(np.arange(n + k), places)
            Y = np.empty((n + k, X.shape[1]))
            Y[~added] = X
            Y[added] = far_rows(X, kind, k, rng)
            start = time.process_time()
            groups = find_groups(Y)
            spent = time.process_time() - start
            named = np.zeros(n + k, dtype=bool)
            for group in groups:
                named[group.rows] = True
            same = np.array_equal(named, added)
            checked = not same or (k == 5 and kind == "points" and n == 500)
            row = {"kind": kind, "k": k, "named": int(named[added].sum()), "others": int(named[~added].sum())}
            row |= {"r2": fitted(Y, added) if checked else best, "fitted": checked, "part": spent / seconds}
            if k == 5 and n == 500:
                row["kept"] = fitted(Y, added, isolated="keep")
            rows.append(common | row)
    rng = np.random.default_rng([seed, 99])
    Y, unchanged = noisy(X, rng)
    named = np.concatenate([np.empty(0, dtype=int), *(group.rows for group in find_groups(Y))])
    model, _ = fit_default(Y, n_modes, seed)
    r2 = subspace_r2(exact[unchanged], np.asarray(model.transform(Y))[unchanged])
    others = int(unchanged[named].sum())
    k = int(np.count_nonzero(~unchanged))
    return [*rows, common | {"kind": "noise", "k": k, "named": len(named) - others, "others": others, "r2": r2}]


def false_alarms(system: str, n: int) -> list[Row]:
    """Return the numbers of rows in groups that are detached in samples without far rows."""
    rows: list[Row] = []
    for seed in range(HONEST_SEEDS):
        sizes = [len(group.rows) for group in find_groups(samples(system, n, seed))]
        rows.append({"honest": system, "n": n, "seed": seed, "rows": sizes})
    return rows


def table(rows: list[Row]) -> str:
    """Return two Markdown tables: far rows, and samples without them."""
    far = [row for row in rows if "kind" in row]
    lines = []
    for (n, kind), mine in grouped(sorted(far, key=lambda row: row["n"]), "n", "kind").items():
        losses = np.array([row["clean"] - row["r2"] for row in mine])
        named = sum(row["named"] for row in mine) / sum(row["k"] for row in mine)
        kept = [row["kept"] for row in mine if "kept" in row]
        goal = kind != "noise"
        lines.append(
            [
                f"{n:,}",
                kind,
                f"{len(mine)} ({sum(row.get('fitted', True) for row in mine)})",
                f"{np.median([row['clean'] for row in mine]):.3f}",
                f"{np.median([row['r2'] for row in mine]):.3f}",
                f"{min(row['r2'] for row in mine):.3f}",
                at_most(float(losses.max()), GOAL_LOSS if goal else None),
                f"{np.count_nonzero(losses > GOAL_LOSS)} of {len(mine)}",
                at_least(named, 1.0 if goal else None, ".3f"),
                str(sum(row["others"] for row in mine)),
                f"{np.median(kept):.3f} ({min(kept):.3f})" if kept else "–",
                at_most(max(row.get("part", 0.0) for row in mine), GOAL_TIME, ".1%"),
            ]
        )
    header = ["samples", "far rows", "data sets (fitted)", "SubR² without", "SubR²", "smallest", "largest loss",
              "losses over 0.03", "named", "other rows named", "kept, k = 5", "time of a fit"]  # fmt: skip
    alarms = []
    for (name, n), mine in grouped([row for row in rows if "honest" in row], "honest", "n").items():
        sizes = [size for row in mine for size in row["rows"]]
        some = sum(bool(row["rows"]) for row in mine)
        few = [size for size in sizes if size < FEWEST_OF_STATE]
        states = [size for size in sizes if size >= FEWEST_OF_STATE]
        span = f"{len(states)} of {min(states)} to {max(states)} rows" if states else "–"
        alarms.append([name, f"{n:,}", f"{some} of {len(mine)}", str(len(few)) if few else "–", span])
    missed = [
        [row["system"], f"{row['n']:,}", row["kind"], str(row["k"]), str(row["seed"]), f"{row['named']}",
         f"{row['clean']:.3f}", f"{row['r2']:.3f}"]
        for row in far
        if row["kind"] != "noise" and row["clean"] - row["r2"] > GOAL_LOSS
    ]  # fmt: skip
    losses_header = ["system", "samples", "far rows", "k", "seed", "named", "SubR² without", "SubR²"]
    return "\n\n".join(
        [
            f"Goals: loss of SubR² ≤ {GOAL_LOSS:g}, all far rows named, at most {GOAL_TIME:.0%} of the time of a fit.",
            markdown(header, lines),
            "Losses over 0.03:",
            markdown(losses_header, missed),
            "Samples without far rows:",
            markdown(["samples of", "number", "with detached rows", "groups of 1 or 2 rows", "larger groups"], alarms),
        ]
    )


def figure(rows: list[Row]) -> Figure:
    """Plot SubR² with far rows over SubR² without them."""
    fig = Figure(figsize=(5, 4.5), layout="constrained")
    ax = fig.subplots()
    for (kind,), mine in grouped([row for row in rows if "kind" in row], "kind").items():
        ax.plot([row["clean"] for row in mine], [row["r2"] for row in mine], ".", alpha=0.6, label=kind)
    kept = [row for row in rows if "kept" in row]
    ax.plot([row["clean"] for row in kept], [row["kept"] for row in kept], "x", color="0.5", label="isolated='keep'")
    ax.axline((1, 1), slope=1, color="0.6", lw=0.8)
    ax.set(xlabel="SubR² without far rows", ylabel="SubR² with far rows", ylim=(-0.02, 1.02))
    ax.legend(frameon=False, fontsize="small")
    return fig


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment from the command line."""
    parser = options_of("far_rows", __doc__, n_seeds=3, quick="one seed of two systems", first_seed=9400)
    options = parser.parse_args(arguments)
    tasks = []
    for n, (part, systems) in list(SIZES.items())[: 1 if options.quick else None]:
        n_seeds = 1 if options.quick else max(1, round(part * options.seeds))
        for system in systems[:: 5 if options.quick else 1]:
            seeds = range(options.first_seed, options.first_seed + n_seeds)
            tasks += [{"system": system, "n": n, "seed": seed} for seed in seeds]
    names = HONEST[:2] if options.quick else (*HONEST, *MORE)
    tasks += [{"system": name, "n": n, "seed": None} for name in names for n in (500, 2_000)]
    rows = run_tasks(run, tasks, options.out / "rows.jsonl", options.jobs)
    publish("far_rows", rows, table, figure, options.out)


if __name__ == "__main__":
    main()
