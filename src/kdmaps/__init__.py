"""Slow modes of stochastic systems from samples, with the kernel chosen automatically.

The public names are listed in `__init__.pyi`.
"""

from pathlib import Path

from kdmaps.utils.lazy import attach

__version__ = "0.2.0.dev0"
__getattr__, __dir__, __all__ = attach(__name__, Path(__file__).with_suffix(".pyi"))
