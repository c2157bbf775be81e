"""Samples: arrays, streams, files, trajectories and Dask as sources; tables of modes written to files."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
