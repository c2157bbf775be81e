"""Experiments: one file for each table or figure, each runnable as `python -m kdmaps.experiments.NAME`."""
