"""A Markov state model and TICA of Ace-Ala3-Nme by deeptime; writes markov.json and markov.npz of examples/ala3."""

import json
from pathlib import Path

import deeptime
import numpy as np
from deeptime.clustering import KMeans
from deeptime.decomposition import TICA
from deeptime.markov import TransitionCountEstimator
from deeptime.markov.msm import BayesianMSM, MaximumLikelihoodMSM

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "ala3"
#: Lag in frames of 1 ps, cells of the k-means clustering, and number of modes.
LAG, CELLS, MODES = 5, 100, 3


def main() -> None:
    """Fit and write."""
    with np.load(EXAMPLE / "torsions.npz") as stored:
        angles = [stored[name] for name in sorted(stored)]
    runs = [np.hstack([np.cos(run), np.sin(run)]).astype(np.float64) for run in angles]
    cells = KMeans(CELLS, fixed_seed=1, max_iter=500).fit_fetch(np.concatenate(runs))
    paths = [cells.transform(run) for run in runs]
    counts = TransitionCountEstimator(LAG, "sliding").fit_fetch(paths).submodel_largest()
    model = MaximumLikelihoodMSM(reversible=True).fit_fetch(counts)
    effective = TransitionCountEstimator(LAG, "effective").fit_fetch(paths).submodel_largest()
    sampled = BayesianMSM(n_samples=200).fit_fetch(effective).gather_stats("timescales", k=MODES)
    # The eigenvector at each frame; frames of cells outside the connected set have none.
    vectors = np.full((CELLS, MODES), np.nan)
    vectors[model.count_model.state_symbols] = model.eigenvectors_right(MODES + 1)[:, 1:]
    tica = TICA(LAG, dim=MODES, scaling=None).fit_from_timeseries(runs).fetch_model()
    results = {
        "deeptime": deeptime.__version__,
        "lag_ps": LAG,
        "cells": CELLS,
        "connected_cells": int(model.n_states),
        "timescales_ps": model.timescales(k=MODES).round(2).tolist(),
        "timescale_intervals_ps": np.transpose([sampled.L, sampled.R]).round(1).tolist(),
        "tica_timescales_ps": tica.timescales(k=MODES).round(2).tolist(),
    }
    np.savez_compressed(
        EXAMPLE / "markov.npz",
        eigenvectors=np.concatenate([vectors[path] for path in paths]).astype(np.float32),
        tica=tica.transform(np.concatenate(runs)).astype(np.float32),
    )
    (EXAMPLE / "markov.json").write_text(json.dumps(results, indent=1) + "\n")
    print(results)


if __name__ == "__main__":
    main()
