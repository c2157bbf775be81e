"""The paper's tables and figures, one module each: printed numbers, the paper's protocol, and kdmaps.

    make reproduce QUICK=1              # or python -m experiments.paper --quick
    make reproduce NAMES=main_results   # one table

Every module defines one `experiment`, a frozen dataclass of settings with `run(seed) → rows`, `table(rows)` and
`figure(rows)` (`_experiment.Experiment`). `_printed` holds the printed numbers, `_protocol` the methods, `_show` shared
code for tables and figures, `_reproduce` the run.
"""

from experiments.paper._reproduce import NAMES, reproduce

__all__ = ["NAMES", "reproduce"]
