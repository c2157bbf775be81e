"""Bases map points to features and compute the energy Gram matrix with few matrix products."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
