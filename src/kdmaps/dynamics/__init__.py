"""Analysis of trajectories: lags and their tests, coarse states, committors, passage times, diffusion constants."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
