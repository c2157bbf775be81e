"""The paper's tables and figures, one module for each: printed numbers, the paper's protocol, and kdmaps.

    kdmaps reproduce --quick

Every module has one `experiment`, a frozen dataclass of settings with `run(seed) → rows`, `table(rows)` and
`figure(rows)` (`_experiment.Experiment`); `_protocol` has the methods, `_show` what tables and figures share,
`_reproduce` the command.
"""
