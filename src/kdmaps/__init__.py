"""Slow modes of stochastic systems from samples, with the kernel chosen automatically.

The public names are listed in `__init__.pyi`; each is imported when it is first used.
"""

import lazy_loader

__version__ = "0.2.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
