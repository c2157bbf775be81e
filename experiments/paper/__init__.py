"""The paper's tables and figures, one module each: printed numbers, the paper's protocol, and kdmaps.

    kdmaps reproduce --quick

Every module defines one `experiment`, a frozen dataclass of settings with `run(seed) → rows`, `table(rows)` and
`figure(rows)` (`_experiment.Experiment`). `_printed` holds the printed numbers, `_protocol` the methods, `_show` shared
code for tables and figures, `_reproduce` the command.
"""

from experiments.paper._reproduce import NAMES, reproduce

__all__ = ["NAMES", "reproduce"]
