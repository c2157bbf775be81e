"""Slow modes of stochastic systems from samples, with the kernel chosen automatically.

The public names are listed in `__init__.pyi`; each is imported when it is first used.
"""

import lazy_loader

__version__ = "0.3.0.dev0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
