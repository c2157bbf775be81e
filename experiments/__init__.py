"""Experiments: one module per table or figure, run with `python -m experiments.NAME`."""
