"""Problems on which the default is not the most accurate method.

- *Landmarks*, sphere-19, 500 samples: the default with 125 landmarks, which are k-means centres of the training samples
  of each fold (as always, unless they are given), of all samples, or of 500 other samples. Σt is the sum of time
  scales on held-out samples of the search, and on 2,000 fresh ones. For the exact modes it is 1.056, the maximum in the
  population.
- *Samples*, ou2d-4, 500 samples: the slowest four functions in the span of the first *exact* eigenfunctions, by
  Rayleigh–Ritz on the samples, compared with SpectralEmbedding with a Gaussian kernel of three widths.
- *Digits*, 1,797 images of ten digits: share of images whose class agrees with most of their five nearest neighbours in
  the first 2, 4 and 9 coordinates (mean of five folds); for the first two coordinates, the share of the variance
  between the classes, and the effective number of images that carry it, n_V = (Σφ²)²/Σφ⁴. "one grid" has Gaussian and
  Laplacian kernels of 1.5 to 30 median distances, and Fourier features.

Means over three samples, or random states.

    python -m experiments.reasons --quick
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.manifold import SpectralEmbedding
from sklearn.model_selection import RepeatedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from experiments._fits import slowest
from experiments._runner import Row, markdown, options_of, publish, run_tasks
from kdmaps import metrics, problems
from kdmaps.estimators.adaptive import AdaptiveDiffusionMap
from kdmaps.estimators.search import KernelSearchCV

N_SAMPLES, N_LANDMARKS, N_FRESH = 500, 125, 2000
SPHERE, PROCESS = "sphere-19", "ou2d-4"
#: Samples of which the landmarks are k-means centres.
CENTRES = ("training samples", "all samples", "other samples")
#: Numbers of exact eigenfunctions, and widths of the Gaussian in units of scikit-learn's default.
FUNCTIONS, WIDTHS = (6, 8, 11, 15), (0.5, 1.0, 2.0)
DIGIT_METHODS = (
    "principal components",
    "kdmaps, one grid",
    "kdmaps, search",
    "kdmaps, default",
    "SpectralEmbedding, 179 neighbours",
    "SpectralEmbedding, 12 neighbours",
)
DIMENSIONS = (2, 4, 9)
#: Offset of the seeds of other samples.
OTHER = 1_000_000


def run(part: str, seed: int) -> list[Row]:
    """Return the rows of one sample (of one random state, for the digits) of one part."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [{"part": part, "seed": seed, **row} for row in PARTS[part](seed)]


def landmarks(seed: int) -> list[Row]:
    """Return one row for each origin of the landmarks."""
    system = problems.load(SPHERE)
    r, (X, other) = system.n_modes, (system.sample(N_SAMPLES, random_state=seed + more) for more in (0, OTHER))
    fresh = system.sample(N_FRESH, random_state=seed + 2 * OTHER)
    rows = []
    for name, source in zip(CENTRES, (None, X, other), strict=True):
        given: Any = "kmeans"
        if source is not None:
            given = KMeans(N_LANDMARKS, n_init=1, random_state=seed).fit(source).cluster_centers_
        model = AdaptiveDiffusionMap(
            r,
            basis="landmarks",
            n_features=N_LANDMARKS,
            cv=list(RepeatedKFold(n_splits=3, n_repeats=2, random_state=seed).split(X)),
            random_state=seed,
            search=KernelSearchCV(landmarks=given),
        ).fit(X)
        rows.append(
            {
                "centres": name,
                "r2": float(metrics.subspace_r2(model.transform(X), system.reference(X, r))),
                "held out": model.best_score_,
                "fresh": model.score(fresh),
                "exact": float((1 / system.rates(r)).sum()),
                "kernel": repr(model.kernel_),
            }
        )
    return rows


def samples(seed: int) -> list[Row]:
    """Return one row for each number of exact eigenfunctions, and for each width of a Gaussian."""
    system = problems.load(PROCESS)
    X, r = system.sample(N_SAMPLES, random_state=seed), system.n_modes
    found = {f"{count} exact functions": slowest(system, X, count) for count in FUNCTIONS}
    for width in WIDTHS:
        graph = SpectralEmbedding(r, affinity="rbf", gamma=1 / (X.shape[1] * width**2), random_state=seed)
        found[f"SpectralEmbedding, width {width:g}"] = graph.fit_transform(X)
    reference = system.reference(X, r)
    return [{"method": name, "r2": float(metrics.subspace_r2(modes, reference))} for name, modes in found.items()]


def digits(seed: int) -> list[Row]:
    """Return one row for each method."""
    images, labels = load_digits(return_X_y=True)
    X = images[:, np.ptp(images, axis=0) > 0] / 16
    r = max(DIMENSIONS)
    coarse: dict[str, Any] = {"families": ["gaussian", "laplacian"], "bandwidths": 5}
    # The images are in the order in which they were written, which is not a time: cv=3 draws random folds.
    methods = (
        PCA(r),
        KernelSearchCV(r, **coarse, cv=3, random_state=seed),
        KernelSearchCV(r, cv=3, random_state=seed),
        AdaptiveDiffusionMap(r, cv=3, random_state=seed),
        SpectralEmbedding(r, random_state=seed),
        SpectralEmbedding(r, n_neighbors=12, random_state=seed),
    )
    return [
        {"method": name, **_separation(method.fit_transform(X), labels)}
        for name, method in zip(DIGIT_METHODS, methods, strict=True)
    ]


def _separation(points: np.ndarray, labels: np.ndarray) -> Row:
    """Return how well coordinates separate the classes."""
    right = [cross_val_score(KNeighborsClassifier(5), points[:, :r], labels, cv=5).mean() for r in DIMENSIONS]
    scaled = (points - points.mean(axis=0)) / points.std(axis=0)
    classes = [scaled[labels == label] for label in np.unique(labels)]
    between = sum(len(part) * part.mean(axis=0) ** 2 for part in classes) / len(points)
    carried = len(points) ** 2 / (scaled**4).sum(axis=0)
    return {"right": right, "between": between[:2].tolist(), "carried": carried[:2].tolist()}


PARTS: dict[str, Callable[[int], list[Row]]] = {"landmarks": landmarks, "samples": samples, "digits": digits}


def table(rows: list[Row]) -> str:
    """Return one Markdown table for each part."""
    makers = {"landmarks": _landmark_table, "samples": _sample_table, "digits": _digit_table}
    parts = {name: [row for row in rows if row["part"] == name] for name in makers}
    return "\n\n".join(f"## {name.capitalize()}\n\n{makers[name](mine)}" for name, mine in parts.items() if mine)


def _landmark_table(rows: list[Row]) -> str:
    lines = []
    for name in CENTRES:
        mine = [row for row in rows if row["centres"] == name]
        r2, held, fresh = ([row[key] for row in mine] for key in ("r2", "held out", "fresh"))
        metric = sum(row["kernel"].startswith("Metric") for row in mine)
        cells = [f"{np.mean(r2):.4f} ({min(r2):.3f})", f"{np.mean(held):.3f}", f"{np.mean(fresh):.3f}"]
        lines.append([name, *cells, f"{mine[0]['exact']:.3f}", f"{metric} of {len(mine)}"])
    header = [
        "landmarks of",
        "SubR² (worst)",
        "Σt held out",
        "Σt, fresh samples",
        "Σt, exact",
        "learned metric taken",
    ]
    return markdown(header, lines)


def _sample_table(rows: list[Row]) -> str:
    seeds = list(dict.fromkeys(row["seed"] for row in rows))
    lines = []
    for name in dict.fromkeys(row["method"] for row in rows):
        r2 = [row["r2"] for row in rows if row["method"] == name]
        lines.append([name, *(f"{value:.3f}" for value in r2), f"{np.mean(r2):.3f}"])
    return markdown(["SubR²", *(f"sample {seed}" for seed in seeds), "mean"], lines)


def _digit_table(rows: list[Row]) -> str:
    lines = []
    for name in DIGIT_METHODS:
        mine = [row for row in rows if row["method"] == name]
        right, between, carried = (
            np.mean([row[key] for row in mine], axis=0) for key in ("right", "between", "carried")
        )
        cells = [f"{value:.3f}" for value in right]
        lines.append([name, *cells, ", ".join(f"{v:.2f}" for v in between), ", ".join(f"{v:.0f}" for v in carried)])
    return markdown(["method", *(f"{r} coordinates" for r in DIMENSIONS), "between classes", "n_V"], lines)


def figure(rows: list[Row]) -> Figure:
    """Plot held-out against fresh scores, and the share of digits classified correctly."""
    fig = Figure(figsize=(10, 3.8), layout="constrained")
    left, right = fig.subplots(1, 2)
    for name, colour in zip(CENTRES, ("C3", "C0", "C2"), strict=True):
        mine = [row for row in rows if row.get("centres") == name]
        left.plot([row["held out"] for row in mine], [row["fresh"] for row in mine], "o", color=colour, label=name)
        for row in mine[:1]:
            left.axhline(row["exact"], color="0.6", lw=0.8, ls="--")
            left.axvline(row["exact"], color="0.6", lw=0.8, ls="--")
    left.set(xlabel="Σt on held-out samples", ylabel="Σt on fresh samples", title=f"{SPHERE}: landmarks from")
    left.legend(frameon=False)
    for number, name in enumerate(DIGIT_METHODS):
        mine = [row for row in rows if row.get("method") == name]
        style = {"color": "0.6" if number == 0 else f"C{number - 1}", "marker": "o", "label": name}
        right.plot(DIMENSIONS, np.mean([row["right"] for row in mine], axis=0) if mine else [np.nan] * 3, **style)
    right.set(xlabel="coordinates", ylabel="share of images classified correctly", title="ten digits")
    right.set_xticks(DIMENSIONS)
    right.legend(frameon=False, fontsize="small")
    return fig


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment from the command line."""
    parser = options_of("reasons", __doc__, n_seeds=3, quick="the samples of one seed")
    options = parser.parse_args(arguments)
    parts, n_seeds = (["samples"], 1) if options.quick else (list(PARTS), options.seeds)
    tasks = [{"part": part, "seed": seed} for part in parts for seed in range(n_seeds)]
    publish("reasons", run_tasks(run, tasks, options.out / "rows.jsonl", options.jobs), table, figure, options.out)


if __name__ == "__main__":
    main()
