"""Methods for trajectories on the frames of examples/alanine_dipeptide; writes its lagged_methods.json.

TICA, VAMP, KernelCCA and Markov models by deeptime, kernel estimators by kooplearn. Bandwidth and regularization, which
their documentation leaves to the user, are chosen on held-out frames, by the score of the library if it has one; the
time of this choice counts. It takes about ten minutes.
"""

import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import deeptime
import kooplearn
import numpy as np
from deeptime.decomposition import TICA, VAMP, KernelCCA
from deeptime.kernels import GaussianKernel
from deeptime.markov import TransitionCountEstimator
from deeptime.markov.msm import MaximumLikelihoodMSM
from kooplearn.kernel import KernelRidge, NystroemKernelRidge
from scipy.spatial.distance import pdist

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "alanine_dipeptide"
sys.path.insert(0, str(EXAMPLE))
from alanine import STEP_PS, coordinates, load, place  # noqa: E402

#: One frame. The second time scale is shorter than two frames, so longer lags would miss it.
LAG = 1
#: Cells along φ and ψ: as fine as in the reference model (which used seven times the data), and coarser.
CELLS = (50, 20)
#: Number of functions, without the constant.
DIM = 4
#: Pairs of the final KernelCCA, and of the choice of its settings; its eigenproblem has as many rows, and no symmetry.
CCA_PAIRS, CCA_TUNING = 3000, 1000
#: Frames of kooplearn's estimator without centres, which needs a square matrix of them; centres of the other.
RIDGE_FRAMES, CENTERS = 5000, 1000
#: Bandwidths σ in median distances, and the share of held-out frames.
BANDWIDTHS, HELD_OUT = (0.25, 0.5, 1.0), 0.2
#: Regularizations from the default of each library on, 1e-6.
EPSILONS, ALPHAS = (1e-6, 1e-3, 1e-1), (1e-6, 1e-4)

Modes = tuple[np.ndarray, np.ndarray, str]


def timescales(values: np.ndarray) -> np.ndarray:
    """Return time scales in ps of eigenvalues or singular values after the lag."""
    return -LAG * STEP_PS / np.log(np.clip(np.abs(values), 1e-12, 1 - 1e-12))


def median(X: np.ndarray) -> float:
    """Return the median distance of 1,000 frames."""
    return float(np.median(pdist(X[:: max(1, len(X) // 1000)])))


def linear(method: type) -> Callable[[np.ndarray], Modes]:
    """Return TICA or VAMP, which need no settings."""

    def run(X: np.ndarray) -> Modes:
        model = method(lagtime=LAG, dim=DIM, scaling=None).fit_fetch(X)
        return timescales(model.singular_values), model.transform(X), "all frames"

    return run


def kernel_cca(X: np.ndarray) -> Modes:
    """Choose σ and ε by the squared autocorrelations of two functions on held-out frames, then fit more pairs."""
    n_train, width = int((1 - HELD_OUT) * len(X)), median(X)

    def fit(frames: np.ndarray, n_pairs: int, factor: float, epsilon: float):
        rows = np.linspace(0, len(frames) - LAG - 1, n_pairs).astype(int)
        kernel = GaussianKernel(factor * width)
        return KernelCCA(kernel, DIM, epsilon).fit((frames[rows], frames[rows + LAG])).fetch_model()

    def score(model) -> float:
        f = model.transform(X[n_train:]).real
        return sum(np.corrcoef(f[:-LAG, k], f[LAG:, k])[0, 1] ** 2 for k in (0, 1))

    tried = [(factor, epsilon) for factor in BANDWIDTHS for epsilon in EPSILONS]
    factor, epsilon = max(tried, key=lambda each: score(fit(X[:n_train], CCA_TUNING, *each)))
    model = fit(X, CCA_PAIRS, factor, epsilon)
    # Its eigenvalues are squares of correlations.
    said = f"{CCA_PAIRS} pairs, σ = {factor} medians, ε = {epsilon:g}, the best of {len(tried)} settings"
    return timescales(np.sqrt(np.abs(model.eigenvalues))), model.transform(X).real, said


def kernel_ridge(estimator: type, frames: int | None = None, **options) -> Callable[[np.ndarray], Modes]:
    """Return an estimator of kooplearn with γ and α chosen by its own score on held-out frames."""

    def run(X: np.ndarray) -> Modes:
        used = X[:frames]
        n_train, width = int((1 - HELD_OUT) * len(used)), median(X)

        def fit(part: np.ndarray, factor: float, alpha: float):
            gamma = 1 / (2 * (factor * width) ** 2)
            settings = {"kernel": "rbf", "gamma": gamma, "alpha": alpha, "lag_time": LAG, "random_state": 0}
            return estimator(DIM + 1, **settings, **options).fit(part)

        tried = [(factor, alpha) for factor in BANDWIDTHS for alpha in ALPHAS]
        factor, alpha = max(tried, key=lambda each: fit(used[:n_train], *each).score(used[n_train:]))
        values, functions = fit(used, factor, alpha).eig(eval_right_on=X)
        order = np.argsort(-np.abs(values))[1:]  # the first is the constant
        values, functions = values[order], functions[:, order]
        modes = np.where(np.imag(values) < 0, np.imag(functions), np.real(functions))
        said = f"{len(used)} frames, σ = {factor} medians, α = {alpha:g}, the best of {len(tried)} settings"
        return timescales(values), modes, said

    return run


def markov_model(data: dict[str, np.ndarray], cells: int) -> Modes:
    """Return a Markov state model with cells in (φ, ψ)."""
    edges = np.linspace(-np.pi, np.pi, cells + 1)[1:-1]
    cell = np.digitize(data["phi"], edges) * cells + np.digitize(data["psi"], edges)
    counts = TransitionCountEstimator(LAG, "sliding").fit_fetch(cell).submodel_largest()
    model = MaximumLikelihoodMSM(reversible=True).fit_fetch(counts)
    vectors = np.zeros((cells * cells, DIM))
    vectors[counts.state_symbols] = model.eigenvectors_right(DIM + 1)[:, 1:].real
    return model.timescales(k=2) * STEP_PS, vectors[cell], f"{cells}×{cells} cells of φ and ψ, all frames"


def measure(method: str, name: str, run: Callable[[], Modes], reference: np.ndarray) -> dict:
    """Run a method and return its row."""
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # near-singular kernel matrices
        times, modes, settings = run()
    row = {"method": method, "coordinates": name, "settings": settings, "timescales_ps": times[:2].round(2).tolist()}
    row |= place(modes, reference) | {"seconds": round(time.perf_counter() - begin, 1)}
    print(json.dumps(row, ensure_ascii=False), flush=True)
    return row


def main():
    """Run all methods and write the results."""
    data = load()
    reference, rows = data["msm_modes"], []
    methods = {
        "TICA": linear(TICA),
        "VAMP": linear(VAMP),
        "KernelCCA (deeptime)": kernel_cca,
        "KernelRidge (kooplearn)": kernel_ridge(KernelRidge, RIDGE_FRAMES),
        "NystroemKernelRidge (kooplearn)": kernel_ridge(NystroemKernelRidge, n_centers=CENTERS),
    }
    for name, X in coordinates(data).items():
        rows += [measure(method, name, lambda run=run, X=X: run(X), reference) for method, run in methods.items()]
    for cells in CELLS:
        run = lambda cells=cells: markov_model(data, cells)  # noqa: E731
        rows.append(measure(f"MSM, {cells}² cells", "dihedrals", run, reference))
    versions = {"deeptime": deeptime.__version__, "kooplearn": kooplearn.__version__}
    found = {"versions": versions, "lag_ps": LAG * STEP_PS, "methods": rows}
    (EXAMPLE / "lagged_methods.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
