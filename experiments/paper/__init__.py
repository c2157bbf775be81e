"""The paper's tables and figures: printed numbers, the paper's protocol, and kdmaps.

    make reproduce QUICK=1              # or python -m experiments.paper --quick
    make reproduce NAMES=main_results   # one table

An experiment is a frozen dataclass of settings with `run(seed) → rows`, `table(rows)` and `figure(rows)`
(`_experiment.Experiment`), listed in EXPERIMENTS of its module and in NAMES of `_reproduce`. `_printed` holds the
printed numbers, `_protocol` the methods, `_show` shared code for tables and figures, `_page` the pages.
"""

from experiments.paper._reproduce import NAMES, reproduce

__all__ = ["NAMES", "reproduce"]
