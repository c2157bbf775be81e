"""Cost of a fit as a formula fitted to measurements, with predictions for sizes beyond one machine.

    seconds = N (a p² + b p d + c p + e d) + s p³

for N samples of d columns and p features: the Gram, the angles, their cosines and sines, the reading of rows, the
solve. Run `python -m benchmarks.cost_model` from the root of the repository; it writes results/cost_model.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from itertools import repeat
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import nnls

from experiments._runner import markdown
from kdmaps.bases import make_basis
from kdmaps.data import StreamSource
from kdmaps.forms.energy import compute_moments
from kdmaps.forms.moments import MATRICES
from kdmaps.kernels import Gaussian
from kdmaps.spectrum.pencil import find_modes
from kdmaps.utils.threads import n_threads

#: (N, p, d). Streams repeat one block of rows, so that only the fit is measured.
CASES = (
    *((10**k, 100, 10) for k in (4, 5, 6, 7, 8)),
    *((10**k, 300, 10) for k in (4, 5, 6, 7)),
    *((10**k, 1024, 10) for k in (4, 5, 6)),
    *((10**k, 4096, 10) for k in (4, 5)),
    *((10**6, 300, d) for d in (2, 100)),
    *((10**5, 300, d) for d in (300, 1000)),
    (10**5, 1024, 1000),
    (10**7, 100, 2),
)
BLOCK = 10_000
TERMS = ("Gram N p²", "angles N p d", "cosines N p", "rows N d", "solve p³")
#: Predictions: N, nodes, p, d. A node is a machine like this one; sums cross the network in a tree.
PLANS = (
    (10**8, 1, 300, 10),
    (10**9, 10, 300, 10),
    (10**10, 100, 300, 10),
    (10**10, 100, 1024, 60),
    (10**10, 100, 4096, 60),
)
NETWORK = 1e9  # bytes a second between nodes, assumed


def measure(n: int, p: int, d: int) -> dict:
    """Seconds of the pass over the samples and of the solve."""
    block = np.random.default_rng(0).standard_normal((min(n, BLOCK), d))
    basis = make_basis("fourier", Gaussian(np.sqrt(2 * d)), block, p, random_state=0)
    source = StreamSource(lambda: repeat(block, n // len(block)), n_samples=n)
    compute_moments(basis, block)  # compiles, and starts threads
    start = time.perf_counter()
    moments = compute_moments(basis, source)
    middle = time.perf_counter()
    find_modes(moments, basis.ridge, 4, 1e-2)
    solve = time.perf_counter() - middle
    return {"N": n, "p": p, "d": d, "pass": middle - start, "solve": solve, "threads": n_threads()}


def design(n, p, d) -> np.ndarray:
    """Return the terms of the formula, without their coefficients."""
    n, p, d = (np.asarray(v, dtype=float) for v in (n, p, d))
    return np.stack([n * p**2, n * p * d, n * p, n * d], axis=-1)


def fit(rows: list[dict]) -> np.ndarray:
    """Coefficients a, b, c, e, s >= 0 that make the relative errors smallest."""
    columns = design(*([row[key] for row in rows] for key in ("N", "p", "d")))
    seconds = np.array([row["pass"] for row in rows])
    passes = nnls(columns / seconds[:, None], np.ones(len(rows)))[0]
    cubes = np.array([row["p"] ** 3 / row["solve"] for row in rows if row["p"] >= 1000])
    return np.append(passes, 1 / np.median(cubes))


def tables(rows: list[dict], k: np.ndarray) -> str:
    """Coefficients, measured against fitted seconds, and predictions."""
    parts = [
        f"Measured with {rows[0]['threads']} threads.",
        markdown(["term", "seconds per unit"], [[term, f"{value:.2e}"] for term, value in zip(TERMS, k, strict=True)]),
    ]
    fitted = design(*([row[key] for row in rows] for key in ("N", "p", "d"))) @ k[:4]
    lines = [
        [
            f"{row['N']:.0e}",
            str(row["p"]),
            str(row["d"]),
            f"{row['pass']:.3g}",
            f"{seconds:.3g}",
            f"{seconds / row['pass'] - 1:+.0%}",
            f"{row['N'] * row['p'] ** 2 / row['pass'] / 1e9:.0f}",
            f"{row['solve']:.3g}",
        ]
        for row, seconds in zip(rows, fitted, strict=True)
    ]
    header = ["N", "p", "d", "pass, s", "formula, s", "error", "Gflop/s of the Gram", "solve, s"]
    parts.append(markdown(header, lines))
    lines = []
    for n, nodes, p, d in PLANS:
        work, solve = float(design(n, p, d) @ k[:4]) / nodes, k[4] * p**3
        hops = int(np.ceil(np.log2(nodes))) if nodes > 1 else 0
        network = hops * 2 * 8 * p**2 / NETWORK
        balance = k[0] * n / nodes / k[4]  # p at which the solve costs as much as the Gram of a node
        sizes = (f"{n:.0e}", str(nodes), str(p), str(d))
        lines.append([*sizes, f"{work:.3g}", f"{network:.2g}", f"{solve:.2g}", f"{balance:.1e}"])
    header = ["N", "nodes", "p", "d", "pass, s", "network, s", "solve, s", "p where the solve takes over"]
    parts.append(f"Predicted; between nodes {NETWORK:.0e} bytes a second are assumed, not measured.")
    parts.append(markdown(header, lines))
    ratio = k[4] / k[0]
    parts.append(
        f"The solve costs as much as the Gram if a node has N = {ratio:.0f} p samples, and more with fewer samples. It "
        f"is direct (Cholesky, and LAPACK for the leading pairs): p³, and about {MATRICES} matrices of 8 p² bytes. If "
        "that is too much, subspace iteration needs only p² for each step and vector; searches use it for many λ "
        "beyond a few hundred features. With few samples per feature, fewer features lose little."
    )
    return "\n\n".join(parts) + "\n"


def figure(rows: list[dict], k: np.ndarray) -> Figure:
    """Measured seconds, and the formula as lines."""
    picture = Figure(figsize=(7, 4), layout="constrained")
    ax = picture.subplots()
    for number, p in enumerate(sorted({row["p"] for row in rows})):
        mine = [row for row in rows if row["p"] == p and row["d"] == 10]
        n = np.geomspace(1e4, 1e10, 50)
        ax.plot(n, design(n, p, 10) @ k[:4] + k[4] * p**3, color=f"C{number}", lw=1, label=f"p = {p}")
        ax.plot([r["N"] for r in mine], [r["pass"] + r["solve"] for r in mine], "o", color=f"C{number}")
    ax.set(xscale="log", yscale="log", xlabel="number N of samples, d = 10", ylabel="seconds of a fit, one machine")
    ax.set_title("Measured (dots) and the formula (lines)")
    ax.grid(lw=0.4)
    ax.legend(frameon=False)
    return picture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=float, default=2e12, help="skip cases with more than this many N p² (flops)")
    parser.add_argument("--out", type=Path, default=Path("results/cost_model"))
    parser.add_argument("--show", action="store_true", help="tables and figure from stored rows")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # warnings about modes of random numbers
    rows = json.loads((options.out / "rows.json").read_text()) if options.show else []
    for n, p, d in () if options.show else CASES:
        if n * p**2 <= options.most:
            rows.append(measure(n, p, d))
            print(rows[-1], flush=True)
    k = fit(rows)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "rows.json").write_text(json.dumps(rows, indent=1) + "\n")
    (options.out / "table.md").write_text(tables(rows, k))
    figure(rows, k).savefig(options.out / "cost_model.png", dpi=110)
    print(tables(rows, k))


if __name__ == "__main__":
    main()
