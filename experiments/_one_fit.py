"""One fit of the default estimator, with the names that all versions from 0.2.0.dev0 on have.

python experiments/_one_fit.py '{"problem": "ou3d", "n": 200, "seed": 0}'
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import kdmaps


def fit(problem: str, n: int, seed: int) -> dict[str, Any]:
    """Return SubR², the first rate with its exact value, and whether the mode is flagged."""
    system = kdmaps.problems.load(problem)
    X = system.sample(n, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kdmaps.AdaptiveDiffusionMap(system.n_modes, random_state=seed, n_jobs=1).fit(X)
    r2 = kdmaps.metrics.subspace_r2(model.transform(X), system.reference(X, system.n_modes))
    first = int(model.rates_.argmin())
    return {
        "r2": float(r2),
        "rate": float(model.rates_[first]),
        "exact": float(system.rates(1)[0]),
        "flagged": not bool(model.trust_.ok[first]),  # type: ignore[union-attr]
    }


if __name__ == "__main__":
    print(json.dumps(fit(**json.loads(sys.argv[1]))))
