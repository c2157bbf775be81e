"""Components of cells: kdmaps' graph of neighbours beside scanpy, Palantir and SpectralEmbedding with their defaults.

Measures, for ten components (the constant not counted):

- kNN: accuracy of 15 nearest neighbours in 2, 5 and 10 components for the types of cells, five folds;
- Spearman: rank correlation of the true time with the distance from the root in components multiplied by λ/(1 - λ),
  the scaling of diffusion pseudotime and of Palantir (for SpectralEmbedding, which returns no eigenvalues, without);
- stability: mean squared cosine between the spans of ten components of two subsets of 80 % of the cells, on common
  cells;
- projection: share of the variance of five components of left-out cells that projection from 80 % misses, after the
  linear map that the other cells have between both fits. Peers do not project: new cells have the distance-weighted
  mean of the components of their 15 nearest neighbours.

Sets: seven simulated ones (`experiments.simulated_cells`) for each seed; krumsiek11 and pbmc68k_reduced, which scanpy
contains; digits (900 of them) and wine of scikit-learn. CPU seconds are of a first fit in one thread on a shared
machine: only their ratios mean anything.

    python -m experiments.cells --out results/cells     # in an environment with scanpy 1.11 and palantir 1.4
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata, spearmanr
from sklearn.datasets import load_digits, load_wine
from sklearn.manifold import SpectralEmbedding
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import scale

import kdmaps
from experiments import simulated_cells as simulated
from experiments._runner import Row, grouped, markdown
from kdmaps.utils.files import append_line, read_lines, write_text

#: Components after the constant one.
COMPONENTS = 10
SEEDS = (100, 101)
#: Numbers of cells of `--speed`.
SIZES = (5_000, 20_000)
#: Differences below this are ties.
TIE = 0.005
BINARY = [-1, 0, 0]
FIVE = [-1, 0, 0, 1, 1]


class Components(NamedTuple):
    """Components at the cells of a fit, their weights for pseudotime, and a function of new cells, if there is one."""

    values: np.ndarray
    weights: np.ndarray
    project: Callable[[np.ndarray], np.ndarray] | None


def with_eigenvalues(values: np.ndarray, eigenvalues: np.ndarray) -> Components:
    """Return components of unit variance with the weights λ/(1 - λ)."""
    weights = eigenvalues / np.maximum(1 - eigenvalues, 1e-9)
    return Components(values / values.std(axis=0), weights, None)


def by_neighbors(X: np.ndarray) -> Components:
    """kdmaps, the exact eigenvectors of the graph of neighbours."""
    model = kdmaps.NeighborDiffusionMap(COMPONENTS, random_state=0).fit(X)
    found = with_eigenvalues(model.transform(X), model.eigenvalues_)
    return found._replace(project=model.transform)


def by_landmarks(X: np.ndarray) -> Components:
    """kdmaps, the same energy in the span of Gaussians at 500 landmarks: pairs of neighbours are pairs of frames."""
    model = kdmaps.NeighborDiffusionMap(COMPONENTS, random_state=0).fit(X)
    basis: Any = model.basis_
    means = basis.form.means.points
    graph = model.graph_.tocoo()
    first, second = graph.coords
    upper = first < second
    frames = np.empty((2 * upper.sum(), X.shape[1]))
    frames[::2] = means[first[upper]]
    frames[1::2] = means[second[upper]]
    pairs = np.repeat(np.arange(upper.sum()), 2)
    weight = np.repeat(graph.data[upper], 2)
    form = basis.form

    def averaged(rows: np.ndarray) -> np.ndarray:
        nearest = form.rows.nearest(rows)
        return form.rows.means(rows, nearest, form.rows.weights(nearest, form.rows.row_widths(nearest)))

    features = kdmaps.KernelDiffusionMap(
        COMPONENTS, basis="landmarks", n_features=500, regularization=1e-6, lag=1, random_state=0
    ).fit(frames, groups=pairs, sample_weight=weight / weight.mean())
    found = with_eigenvalues(features.transform(means), np.exp(-features.rates_))
    return found._replace(project=lambda rows: features.transform(averaged(rows)))


def by_scanpy(n_neighbors: int) -> Callable[[np.ndarray], Components]:
    """Return scanpy's diffusion map with so many neighbours."""

    def fit(X: np.ndarray) -> Components:
        import anndata
        import scanpy

        adata = anndata.AnnData(np.zeros((len(X), 1)), obsm={"X_pca": X})
        scanpy.pp.neighbors(adata, n_neighbors=n_neighbors, use_rep="X_pca", random_state=0)
        scanpy.tl.diffmap(adata, n_comps=COMPONENTS + 1, random_state=0)
        return with_eigenvalues(adata.obsm["X_diffmap"][:, 1:], adata.uns["diffmap_evals"][1:])

    return fit


def by_palantir(X: np.ndarray) -> Components:
    """Palantir's diffusion map."""
    import palantir
    import pandas as pd

    result = palantir.utils.run_diffusion_maps(pd.DataFrame(X), n_components=COMPONENTS + 1)
    vectors, values = np.asarray(result["EigenVectors"]), np.asarray(result["EigenValues"])
    return with_eigenvalues(vectors[:, 1:], values[1:])


def by_spectral_embedding(X: np.ndarray) -> Components:
    """SpectralEmbedding of scikit-learn."""
    values = SpectralEmbedding(COMPONENTS, random_state=0).fit_transform(X)
    return Components(values / values.std(axis=0), np.ones(COMPONENTS), None)


METHODS: dict[str, Callable[[np.ndarray], Components]] = {
    "kdmaps": by_neighbors,
    "scanpy 15": by_scanpy(15),
    "scanpy 30": by_scanpy(30),
    "scanpy 100": by_scanpy(100),
    "Palantir": by_palantir,
    "SpectralEmbedding": by_spectral_embedding,
}
#: Methods and sets of a second comparison.
FORMS = {"kdmaps": by_neighbors, "kdmaps at landmarks": by_landmarks}


def with_far_rows(data: dict[str, Any]) -> dict[str, Any]:
    """Return a set with five cells far from all others and from one another, which are not measured."""
    X = data["X"]
    far = np.random.default_rng(0).standard_normal((5, X.shape[1]))
    far *= 5 * np.linalg.norm(X, axis=1).max() / np.linalg.norm(far, axis=1, keepdims=True)
    return {**data, "X": np.vstack([X, far]), "measured": len(X)}


def with_far_type(data: dict[str, Any]) -> dict[str, Any]:
    """Return a set with 150 cells of an unconnected type, which are not measured."""
    X = data["X"]
    rng = np.random.default_rng(1)
    far = rng.standard_normal((150, X.shape[1])) * X.std(axis=0) / 2
    far[:, 0] += 20 * np.abs(X).max()
    return {**data, "X": np.vstack([X, far]), "measured": len(X)}


def _scanpy_set(name: str, labels: str) -> dict[str, Any]:
    import scanpy

    adata = getattr(scanpy.datasets, name)()
    X = np.asarray(adata.obsm.get("X_pca", adata.X), dtype=float)
    y = adata.obs[labels].cat.codes.to_numpy()
    t = np.tile(np.arange(160.0), 4) if name == "krumsiek11" else None
    return {"X": X - X.mean(axis=0), "y": y, "t": t, "root": None if t is None else 0}


def _table(loader: Callable[..., Any], n: int) -> dict[str, Any]:
    X, y = loader(return_X_y=True)
    return {"X": scale(X) if loader is load_wine else X[:n], "y": y[:n], "t": None, "root": None}


SIMULATED: dict[str, Callable[[int], dict[str, Any]]] = {
    "bifurcation": lambda seed: simulated.tree(seed, BINARY, 700),
    "tree": lambda seed: simulated.tree(seed, FIVE, 800),
    "tree, rare branch": lambda seed: simulated.tree(seed, FIVE, 800, [1, 1, 1, 1, 0.15]),
    "tree, cell cycle": lambda seed: simulated.tree(seed, FIVE, 800, cell_cycle=0.6),
    "random walks": lambda seed: simulated.walks(seed, 6, 130),
    "cycle": lambda seed: simulated.cycle(seed, 700),
    "types": lambda seed: simulated.types(seed, 900),
}
REAL: dict[str, Callable[[], dict[str, Any]]] = {
    "krumsiek11": lambda: _scanpy_set("krumsiek11", "cell_type"),
    "pbmc68k": lambda: _scanpy_set("pbmc68k_reduced", "bulk_labels"),
    "digits": lambda: _table(load_digits, 900),
    "wine": lambda: _table(load_wine, 178),
}


def load(name: str, seed: int) -> dict[str, Any]:
    """Return a set by name, with its cells in random order."""
    plain, _, change = name.partition(" + ")
    data = SIMULATED[plain](seed) if plain in SIMULATED else REAL[plain]()
    order = np.random.default_rng(seed).permutation(len(data["X"]))
    shuffled = {"X": data["X"][order], "y": data["y"][order], "t": None, "root": None}
    if data["t"] is not None:
        shuffled |= {"t": data["t"][order], "root": int(np.flatnonzero(order == data["root"])[0])}
    changes = {"": lambda same: same, "far rows": with_far_rows, "far type": with_far_type}
    return changes[change](shuffled)


def knn_accuracy(values: np.ndarray, y: np.ndarray) -> list[float]:
    """Return the accuracy of 15 nearest neighbours in 2, 5 and 10 components, for types of five cells or more."""
    enough = np.bincount(y)[y] >= 5
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    model = KNeighborsClassifier(15)
    accuracy = [cross_val_score(model, values[enough, :k], y[enough], cv=folds).mean() for k in (2, 5, COMPONENTS)]
    return [float(value) for value in accuracy]


def time_correlation(found: Components, data: dict[str, Any]) -> float:
    """Return Spearman's correlation of the true time with the distance from the root."""
    n = len(data["t"])
    distances = np.linalg.norm((found.values - found.values[data["root"]]) * found.weights, axis=1)
    return float(spearmanr(distances[:n], data["t"])[0])


def agreement(first: np.ndarray, second: np.ndarray) -> float:
    """Return the mean squared cosine between the spans of columns."""
    frames = [np.linalg.qr(values - values.mean(axis=0))[0] for values in (first, second)]
    return float(np.linalg.norm(frames[0].T @ frames[1]) ** 2 / first.shape[1])


def unexplained(first: np.ndarray, second: np.ndarray, new: np.ndarray, true: np.ndarray) -> float:
    """Return the share of `true` that the linear map from `first` to `second` misses at `new`."""
    ones = np.ones((len(first), 1))
    coefficients = np.linalg.lstsq(np.hstack([first, ones]), second)[0]
    residual = true - np.hstack([new, np.ones((len(new), 1))]) @ coefficients
    return float((residual.var(axis=0) / true.var(axis=0)).mean())


def measure(data: dict[str, Any], fit: Callable[[np.ndarray], Components], subsets: bool = True) -> Row:
    """Return the measures of one method for one set."""
    X = data["X"]
    n = data.get("measured", len(X))
    start = time.process_time()
    whole = fit(X)
    row: Row = {"cpu": time.process_time() - start}
    accuracy = knn_accuracy(whole.values[:n], data["y"])
    row |= dict(zip(("knn 2", "knn 5", "knn 10"), accuracy, strict=True))
    if data["t"] is not None:
        row["spearman"] = time_correlation(whole, data)
    if not subsets:
        return row
    rows = [np.sort(np.random.default_rng(i).permutation(len(X))[: int(0.8 * len(X))]) for i in (1, 2)]
    fits = [fit(X[subset]) for subset in rows]
    common = np.intersect1d(rows[0], rows[1])
    at_common = [found.values[np.searchsorted(subset, common)] for found, subset in zip(fits, rows, strict=True)]
    row["stability"] = agreement(*at_common)
    errors = []
    for found, subset in zip(fits, rows, strict=True):
        left_out = np.setdiff1d(np.arange(len(X)), subset)
        nearest = KNeighborsRegressor(15, weights="distance").fit(X[subset], found.values)
        project = nearest.predict if found.project is None else found.project
        new = project(X[left_out])
        if found.project is not None:
            new = new / found.project(X[subset]).std(axis=0)
        five = slice(5)
        errors.append(
            unexplained(found.values[:, five], whole.values[subset, five], new[:, five], whole.values[left_out, five])
        )
    row["projection"] = float(np.mean(errors))
    return row


def tasks() -> Iterator[tuple[str, str, int]]:
    """Yield part, set and seed of all comparisons."""
    for seed in SEEDS:
        for name in SIMULATED:
            yield "sets", name, seed
    for name in REAL:
        yield "sets", name, SEEDS[0]
    for name in ("bifurcation", "tree", "types", "pbmc68k"):
        yield "forms", name, SEEDS[0]
    for name in ("bifurcation", "tree"):
        for change in ("far rows", "far type"):
            for seed in SEEDS:
                yield "robust", f"{name} + {change}", seed


def run(out: Path) -> list[Row]:
    """Return all rows; finished ones are kept in `rows.jsonl`."""
    path = out / "rows.jsonl"
    rows: list[Row] = list(read_lines(path)) if path.exists() else []
    done = {(row["part"], row["set"], row["seed"], row["method"]) for row in rows}
    for part, name, seed in tasks():
        methods = FORMS if part == "forms" else METHODS
        data = None
        for method, fit in methods.items():
            if (part, name, seed, method) in done:
                continue
            data = load(name, seed) if data is None else data
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                row = {"part": part, "set": name, "seed": seed, "method": method}
                row |= measure(data, fit, subsets=part != "robust")
            append_line(path, row)
            rows.append(row)
            print(row, flush=True)
    return rows


MEASURES = ("knn 2", "knn 5", "knn 10", "spearman", "stability", "projection")


def ranks(rows: list[Row]) -> dict[tuple[str, str], float]:
    """Return the mean rank of each method in each measure, ties within `TIE`; the first is 1."""
    found: dict[tuple[str, str], list[float]] = {}
    for of_set in grouped([row for row in rows if row["part"] == "sets"], "set", "seed").values():
        for name in MEASURES:
            if name not in of_set[0]:
                continue
            sign = 1 if name == "projection" else -1
            values = np.round(sign * np.array([row[name] for row in of_set]) / TIE)
            for row, rank in zip(of_set, rankdata(values), strict=True):
                found.setdefault((row["method"], name), []).append(float(rank))
    return {key: float(np.mean(values)) for key, values in found.items()}


def mean_of(rows: list[Row], name: str) -> str:
    """Return the mean of a measure as text."""
    values = [row[name] for row in rows if name in row]
    return f"{np.mean(values):.3f}" if values else "–"


def table(rows: list[Row]) -> str:
    """Return the tables of all parts."""
    of_sets = [row for row in rows if row["part"] == "sets"]
    by_rank = ranks(rows)
    count = len(grouped(of_sets, "set", "seed"))
    lines = []
    for (method,), own in grouped(of_sets, "method").items():
        mean_rank = np.mean([by_rank[method, name] for name in MEASURES])
        cells = [f"{mean_of(own, name)} ({by_rank[method, name]:.1f})" for name in MEASURES]
        lines.append([method, f"{mean_rank:.2f}", *cells, f"{np.median([row['cpu'] for row in own]):.2f}"])
    text = [f"Means over {count} sets, mean ranks among {len(lines)} methods in brackets (ties within {TIE}):", ""]
    text.append(markdown(["method", "mean rank", *MEASURES, "CPU s, median"], lines))
    text += ["", "Every set: kNN on 2 components / Spearman / stability / projection:", ""]
    lines = []
    names = list(grouped(of_sets, "method"))
    for (name, seed), own in grouped(of_sets, "set", "seed").items():
        cells = [
            " / ".join(f"{row[m]:.3f}" if m in row else "–" for m in ("knn 2", "spearman", "stability", "projection"))
            for row in own
        ]
        lines.append([name, str(seed), *cells])
    text.append(markdown(["set", "seed", *(name for (name,) in names)], lines))
    forms = [row for row in rows if row["part"] == "forms"]
    text += ["", "Exact eigenvectors and features at landmarks, for the same energy (four sets):", ""]
    lines = []
    for (method,), own in grouped(forms, "method").items():
        lines.append([method, *(mean_of(own, name) for name in MEASURES), mean_of(own, "cpu")])
    text.append(markdown(["method", *MEASURES, "CPU s"], lines))
    text += ["", "Change of kNN on 2 components / Spearman by cells that do not belong to the tree:", ""]
    plain = {(row["set"], row["seed"], row["method"]): row for row in of_sets}
    lines = []
    for (name, seed), own in grouped([row for row in rows if row["part"] == "robust"], "set", "seed").items():
        cells = []
        for row in own:
            before = plain[name.partition(" + ")[0], seed, row["method"]]
            cells.append(f"{row['knn 2'] - before['knn 2']:+.3f} / {row['spearman'] - before['spearman']:+.3f}")
        lines.append([name, str(seed), *cells])
    text.append(markdown(["set", "seed", *(name for (name,) in names)], lines))
    return "\n".join(text)


def measure_speed(out: Path) -> None:
    """Write CPU seconds and peak memory for cells of a tree of 5,000 cells, drawn with noise, in 50 components."""
    base = simulated.tree(SEEDS[0], FIVE, 5_000)["X"]
    fits = {name: METHODS[name] for name in ("kdmaps", "scanpy 30")}
    for fit in fits.values():
        fit(base[:1_000])  # compiles
    lines = []
    for n in SIZES:
        rng = np.random.default_rng(n)
        X = base[rng.integers(len(base), size=n)] + rng.normal(0, 1, (n, base.shape[1]))
        cells = [f"{n:,}"]
        for fit in fits.values():
            start = time.process_time()
            fit(X)
            cells.append(f"{time.process_time() - start:.1f}")
        cells.append(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:,.0f}")
        lines.append(cells)
        print(cells, flush=True)
    text = markdown(["cells", *(f"{name}, CPU s" for name in fits), "peak memory of the process, MB"], lines)
    write_text(out / "speed.md", text + "\n")


def main() -> None:
    """Run all comparisons and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results", "cells"))
    parser.add_argument("--speed", action="store_true", help="measure only how long fits take")
    arguments = parser.parse_args()
    out = arguments.out
    if arguments.speed:
        measure_speed(out)
        return
    rows = run(out)
    text = table(rows)
    write_text(out / "table.md", text + "\n")
    print(text)


if __name__ == "__main__":
    main()
