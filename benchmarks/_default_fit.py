"""Time the default fit in this fresh process; bench_default.py runs it with the kdmaps that PYTHONPATH names.

Arguments: samples (.npy), number of fits (0 only fills the caches on disk), file of the modes (.npy).
Prints one line of JSON. Must also run with version 0.1.0.
"""

import json
import sys
import time
import warnings


def main(samples: str, n_fits: int, modes: str) -> dict:
    start = time.perf_counter()
    import kdmaps

    make = kdmaps.AdaptiveDiffusionMap  # imported when it is used
    seconds = {"import": time.perf_counter() - start}
    import numpy as np

    warnings.simplefilter("ignore")
    X = np.load(samples)
    if n_fits == 0:
        kdmaps.KernelDiffusionMap(1, n_features=20, random_state=0).fit(X)
        return seconds
    for name in ("first", "second")[:n_fits]:
        start = time.perf_counter()
        model = make(random_state=0).fit(X)
        seconds[name] = time.perf_counter() - start
    np.save(modes, model.transform(X))
    return {**seconds, "version": kdmaps.__version__, "kernel": repr(model.kernel_), "rates": model.rates_.tolist()}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), sys.argv[3])))
