"""Error against the number of samples in 2, 5, 10 and 20 dimensions: kernels against graphs.

The system is the triple well in the plane with d - 2 additional independent Gaussian coordinates of a similar width
(standard deviation 0.6, rate 2.8); its two slowest modes have the rates 0.40 and 1.30. The modes are the same for every
d, but the samples fill d dimensions. The error is 1 - SubR² at the samples.

Three graphs of all pairs of samples, with q(x) = Σ_y k(x, y), K the kernel matrix and D its row sums:

- *Laplacian eigenmaps* [1]: K = k = exp(-|x-y|²/(2σ²)), eigenvectors of D⁻¹K;
- *diffusion maps* [2]: the same with K = k/√(q(x)q(y)), whose limit is the generator (α = 1/2);
- *variable bandwidth* [3]: K = exp(-|x-y|²/(2σ²ρ(x)ρ(y))) with ρ = density^(-1/(d+2)), eigenvectors of ρ⁻²(D⁻¹K - 1),
  whose limit is also the generator; the kernel of the density estimate is as wide as the distance to eight neighbours.

**Each graph gets the best bandwidth of a grid, selected with the exact modes**, for every sample anew, and the
dimension d. kdmaps is given only the samples: *one Gaussian* is `KernelSearchCV` with the Gaussian family alone,
*default* is `AdaptiveDiffusionMap`.

An exponent is the mean over seeds of the slope of log error against log N, with its standard error; an error that falls
as 1/N has -1. For comparison, the bandwidth that balances bias and variance of a graph Laplacian at one point gives
-4/(d+6) [4].

- [1] M. Belkin, P. Niyogi, Neural Computation 15 (2003) 1373.
- [2] R. R. Coifman, S. Lafon, Appl. Comput. Harmon. Anal. 21 (2006) 5.
- [3] T. Berry, J. Harlim, Appl. Comput. Harmon. Anal. 40 (2016) 68.
- [4] A. Singer, Appl. Comput. Harmon. Anal. 21 (2006) 128: the error at a point is N^(-2/(d+6)), here squared.

    python -m experiments.dimension --quick
"""

from __future__ import annotations

import warnings

import numpy as np
from matplotlib.figure import Figure
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from scipy.spatial.distance import cdist

from experiments._runner import Row, markdown, options_of, publish, run_tasks
from kdmaps import metrics, problems
from kdmaps.estimators.adaptive import AdaptiveDiffusionMap
from kdmaps.estimators.search import KernelSearchCV

BASE, STD, N_MODES = "triplewell2d", 0.6, 2
DIMENSIONS = (2, 5, 10, 20)
SIZES = (250, 500, 1000)
GRAPHS = ("Laplacian eigenmaps", "diffusion maps", "variable bandwidth")
KERNELS = ("kdmaps, one Gaussian", "kdmaps, default")
#: σ of the graphs, in median distances.
BANDWIDTHS = (0.1, 0.14, 0.2, 0.28, 0.4, 0.56, 0.8)
#: Neighbours whose distance is the local width of the density estimate, as in [3].
NEIGHBOURS = 8
#: Restarts of the eigensolver; a graph that falls into pieces does not converge and counts as an error of 1.
RESTARTS = 50


def problem(d: int) -> problems.Problem:
    """Return the triple well with d - 2 Gaussian coordinates."""
    return problems.load(BASE if d == 2 else f"{BASE}+{d - 2}x{STD:g}")


def run(method: str, d: int, n: int, seed: int) -> list[Row]:
    """Return the row of one method on one sample."""
    system = problem(d)
    X = system.sample(n, random_state=seed)
    reference = system.reference(X, N_MODES)
    row = {"method": method, "d": d, "n": n, "seed": seed}
    if method in GRAPHS:
        errors = [graph_error(X, method, factor, reference, seed) for factor in BANDWIDTHS]
        return [{**row, "error": min(errors), "tried": errors}]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method == KERNELS[0]:
            model: KernelSearchCV = KernelSearchCV(N_MODES, families=("gaussian",), random_state=seed).fit(X)
        else:
            model = AdaptiveDiffusionMap(N_MODES, random_state=seed).fit(X)
    return [{**row, "error": float(1 - metrics.subspace_r2(model.transform(X), reference))}]


def graph_error(X: np.ndarray, method: str, factor: float, reference: np.ndarray, seed: int) -> float:
    """Return 1 - SubR² of a graph with σ = factor × median distance."""
    squared = cdist(X, X, "sqeuclidean")
    sigma = factor * float(np.sqrt(np.median(squared)))
    try:
        return float(1 - metrics.subspace_r2(graph_modes(squared, X.shape[1], method, sigma, seed)[1], reference))
    except ArpackNoConvergence:
        return 1.0


def graph_modes(
    squared: np.ndarray, d: int, method: str, sigma: float, seed: int, n_modes: int = N_MODES
) -> tuple[np.ndarray, np.ndarray]:
    """Return rates and modes of a graph, slowest first, without the constant.

    With S = ρ√D, the eigenvectors f of ρ⁻²(D⁻¹K - 1) are S⁻¹v for eigenvectors v of the symmetric S⁻¹KS⁻¹ - ρ⁻².
    Rates are minus the eigenvalues over σ²/2, the time of one step.
    """
    width = local_width(squared, d) if method == "variable bandwidth" else np.ones(len(squared))
    kernel = np.exp(squared / (-2 * sigma**2) / width[:, None] / width)
    if method == "diffusion maps":
        root = np.sqrt(kernel.sum(axis=1))
        kernel /= root[:, None] * root
    scale = width * np.sqrt(kernel.sum(axis=1))
    symmetric = kernel / scale[:, None] / scale
    symmetric[np.diag_indices_from(symmetric)] -= width**-2
    constant = scale / np.linalg.norm(scale)
    below = 2 * np.max(width**-2)  # the constant goes where no eigenvalue is
    deflated = LinearOperator(
        symmetric.shape, matvec=lambda v: symmetric @ v - below * constant * (constant @ v), dtype=np.float64
    )
    start = np.random.default_rng(seed).uniform(-1, 1, len(squared))
    values, vectors = eigsh(deflated, k=n_modes, which="LA", v0=start, ncv=30, tol=1e-6, maxiter=RESTARTS)
    order = np.argsort(-values)
    return -values[order] * 2 / sigma**2, vectors[:, order] / scale[:, None]


def local_width(squared: np.ndarray, d: int) -> np.ndarray:
    """Return ρ = density^(-1/(d+2)) at the samples, of geometric mean 1."""
    near = np.partition(squared, NEIGHBOURS, axis=1)[:, 1 : NEIGHBOURS + 1]
    radius = np.sqrt(near.mean(axis=1))
    density = np.exp(-squared / (2 * radius[:, None] * radius)).sum(axis=1)
    width = np.exp((d * np.log(radius) - np.log(density)) / (d + 2))
    return width / np.exp(np.log(width).mean())


def errors(rows: list[Row], method: str, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the sizes and the errors of one method in one dimension, of shape (seeds, sizes)."""
    found = {(row["seed"], row["n"]): row["error"] for row in rows if (row["method"], row["d"]) == (method, d)}
    seeds, sizes = sorted({s for s, _ in found}), sorted({n for _, n in found})
    return np.array(sizes), np.array([[found[s, n] for n in sizes] for s in seeds])


def exponent(sizes: np.ndarray, errors: np.ndarray) -> tuple[float, float]:
    """Return the mean slope of log error against log N over seeds, and its standard error."""
    slopes = np.polyfit(np.log(sizes), np.log(errors).T, 1)[0]
    spread = np.std(slopes, ddof=1) / np.sqrt(len(slopes)) if len(slopes) > 1 else np.nan
    return float(slopes.mean()), float(spread)


def table(rows: list[Row]) -> str:
    """Return the exponents, and the mean errors at the smallest and the largest N."""
    dims, methods = sorted({row["d"] for row in rows}), [m for m in (*GRAPHS, *KERNELS) if m in _methods(rows)]
    slopes, levels = [], []
    for method in methods:
        found = [errors(rows, method, d) for d in dims]
        fits = [exponent(*cell) for cell in found]
        slopes.append([method, *(f"{value:.2f} ± {spread:.2f}" for value, spread in fits)])
        levels.append([method, *(f"{e[:, 0].mean():.4f} → {e[:, -1].mean():.4f}" for _, e in found)])
    slopes.append(["a graph at a point, in theory", *(f"{-4 / (d + 6):.2f}" for d in dims)])
    header = ["", *(f"d={d}" for d in dims)]
    sizes = sorted({row["n"] for row in rows})
    seeds = len({row["seed"] for row in rows})
    return "\n\n".join(
        [
            f"Exponents, N={sizes[0]} to {sizes[-1]:,}, {seeds} seeds:",
            markdown(header, slopes),
            f"Mean error 1 - SubR² at N={sizes[0]} → {sizes[-1]:,}:",
            markdown(header, levels),
        ]
    )


def _methods(rows: list[Row]) -> set[str]:
    return {row["method"] for row in rows}


def figure(rows: list[Row]) -> Figure:
    """Draw error against N, one panel for each dimension; bars are standard errors over seeds."""
    dims = sorted({row["d"] for row in rows})
    fig = Figure(figsize=(3.3 * len(dims), 4.2), layout="constrained")
    axes = fig.subplots(1, len(dims), sharey=True, squeeze=False)[0]
    colours = dict(zip((*GRAPHS, *KERNELS), ("0.55", "C1", "C4", "C2", "C0"), strict=True))
    for ax, d in zip(axes, dims, strict=True):
        for method in colours:
            if method not in _methods(rows):
                continue
            sizes, found = errors(rows, method, d)
            value, spread = exponent(sizes, found)
            bars = found.std(axis=0, ddof=min(1, len(found) - 1)) / np.sqrt(len(found))
            ours = method in KERNELS
            ax.errorbar(
                sizes, found.mean(axis=0), bars, color=colours[method], capsize=2, lw=2 if ours else 1.2,
                marker="o" if ours else "s", ms=4, ls="-" if ours else "--",
                label=f"{method}: {value:.2f} ± {spread:.2f}",
            )  # fmt: skip
        ax.set(xscale="log", yscale="log", xlabel="samples", title=f"d = {d}")
        ticks = sorted({row["n"] for row in rows})
        ax.set_xticks(ticks, [f"{n:,}" for n in ticks])
        ax.set_xticks([], minor=True)
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize="small", frameon=False, title="exponent")
        ax.grid(alpha=0.25)
    axes[0].set_ylabel("error 1 - SubR²")
    return fig


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment from the command line."""
    parser = options_of(
        "dimension", __doc__, n_seeds=3, quick="two seeds, two dimensions, at most 500 samples", first_seed=6000
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), help="numbers of samples")
    options = parser.parse_args(arguments)
    dims, sizes, seeds = list(DIMENSIONS), options.sizes, options.seeds
    if options.quick:
        dims, sizes, seeds = dims[:2], list(SIZES[:2]), 2
    tasks = [
        {"method": method, "d": d, "n": n, "seed": seed}
        for n in sizes
        for seed in range(options.first_seed, options.first_seed + seeds)
        for d in dims
        for method in (*GRAPHS, *KERNELS)
    ]
    rows = run_tasks(run, tasks, options.out / "rows.jsonl", options.jobs)
    publish("dimension", rows, table, figure, options.out)


if __name__ == "__main__":
    main()
