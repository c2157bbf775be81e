"""TICA, VAMP and a Markov state model by deeptime on the same frames; writes lagged_methods.json for analyse.py.

These methods use the temporal order of the frames; kdmaps does not. Needs deeptime (`pip install deeptime`), which may
be installed in a separate environment, because kdmaps is not imported here.
"""

import json

import deeptime
import numpy as np
from alanine import HERE, STEP_PS, coordinates, load
from deeptime.decomposition import TICA, VAMP
from deeptime.markov import TransitionCountEstimator
from deeptime.markov.msm import MaximumLikelihoodMSM

#: One frame. The second time scale is shorter than two frames, so longer lags would miss it.
LAG = 1
#: Cells along φ and ψ: as fine as in the reference model (which used seven times the data), and coarser.
CELLS = (50, 20)


def best_correlations(modes: np.ndarray, reference: np.ndarray) -> list[float]:
    """Return, for each of the first two reference modes, the largest |correlation| with one of the modes."""
    table = np.abs(np.corrcoef(modes.T, reference.T)[: modes.shape[1], modes.shape[1] :])
    return [round(float(value), 4) for value in table.max(axis=0)[:2]]


def markov_model(data: dict[str, np.ndarray], cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Return time scales in ps, and eigenvectors 1 to 4 at the frames, of a model with cells in (φ, ψ)."""
    edges = np.linspace(-np.pi, np.pi, cells + 1)[1:-1]
    cell = np.digitize(data["phi"], edges) * cells + np.digitize(data["psi"], edges)
    counts = TransitionCountEstimator(LAG, "sliding").fit_fetch(cell).submodel_largest()
    model = MaximumLikelihoodMSM(reversible=True).fit_fetch(counts)
    vectors = np.zeros((cells * cells, 4))
    vectors[counts.state_symbols] = model.eigenvectors_right(5)[:, 1:].real
    return model.timescales(k=2) * STEP_PS, vectors[cell]


def main():
    """Run all three methods and write the results."""
    data = load()
    reference = data["msm_modes"]
    found = {"deeptime": deeptime.__version__, "lag_ps": LAG * STEP_PS, "methods": []}
    for name, X in coordinates(data).items():
        for method in (TICA, VAMP):
            model = method(lagtime=LAG, dim=4, scaling=None).fit_fetch(X)
            times = -LAG * STEP_PS / np.log(np.clip(model.singular_values[:2], 1e-12, 1 - 1e-12))
            row = {"method": method.__name__, "coordinates": name, "timescales_ps": times.round(2).tolist()}
            found["methods"].append(row | {"correlations": best_correlations(model.transform(X), reference)})
    for cells in CELLS:
        times, modes = markov_model(data, cells)
        row = {"method": f"MSM, {cells}² cells", "coordinates": "dihedrals", "timescales_ps": times.round(2).tolist()}
        found["methods"].append(row | {"correlations": best_correlations(modes, reference)})
    (HERE / "lagged_methods.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    print(json.dumps(found, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
