"""Optional packages: imported where needed; the error for a missing one names the extra that installs it."""

from importlib import import_module
from types import ModuleType


def optional(module: str, extra: str, what: str) -> ModuleType:
    """Import an optional module, e.g. `optional("pyarrow.parquet", "tables", "Parquet files")`."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f"{what} need {package}, which is not installed: pip install 'kdmaps[{extra}]'.") from error
