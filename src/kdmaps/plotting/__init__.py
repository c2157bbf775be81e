"""Figures. Every function draws on Axes and returns them; matplotlib is imported only when one is called."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
