"""The default fit in this fresh process, timed: run by bench_default.py with the kdmaps that PYTHONPATH names.

Arguments: samples (.npy), number of fits (0 only compiles what is kept on disk), where the modes go (.npy).
Prints one line of JSON. Must run with version 0.1.0 too.
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
