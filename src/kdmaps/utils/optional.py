"""Optional packages: imported where needed; the error for a missing one names the extra that installs it."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def optional(module: str, extra: str, what: str) -> ModuleType:
    """Import an optional package.

    Parameters
    ----------
    module : str
        Module to import, such as "pyarrow.parquet".
    extra : str
        The extra of kdmaps that installs it.
    what : str
        Feature that needs it, as the subject of a sentence: "Parquet files".

    Raises
    ------
    ImportError
        If it is not installed; the message names the extra.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f"{what} need {package}, which is not installed: pip install 'kdmaps[{extra}]'.") from error
