"""Plain data in model files: parameters as JSON, and groups of arrays whose shapes are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kdmaps.forms.diffusion import Factor
from kdmaps.forms.tangent import TangentDiffusion
from kdmaps.kernels import Kernel, kernel_from_dict


def encode(name: str, value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Return a parameter as JSON; what is no scalar becomes a dict that says how to read it."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        raise ValueError(f"{name}={value!r} cannot be stored; set it to what it was in the fit before saving.")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.random.RandomState | np.random.Generator) or name == "cv":
        return None
    if isinstance(value, type | np.dtype):
        return np.dtype(value).name
    if isinstance(value, Kernel):
        return {"kernel": value.to_dict()}
    if isinstance(value, TangentDiffusion):
        return {"tangent": {field: encode(field, entry, arrays) for field, entry in vars(value).items()}}
    if callable(value):
        raise ValueError(
            f"{name}={value!r} is a function and cannot be stored. Call set_params({name}=None) before saving, and "
            f"pass {name} to score and partial_fit of the loaded model."
        )
    factor = isinstance(value, Factor)
    try:
        array = np.asarray(value.array if factor else value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name}={value!r} cannot be stored: it is neither a number, a string nor an array.") from None
    arrays[f"parameters.{name}"] = array
    return {"factor" if factor else "array": f"parameters.{name}"}


def decode(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Return the parameter that `encode` was given."""
    if not isinstance(value, dict):
        return value
    ((tag, content),) = value.items()
    if tag == "kernel":
        return kernel_from_dict(content)
    if tag == "tangent":
        return TangentDiffusion(**content)
    if tag not in ("array", "factor"):
        raise ValueError(f"unknown kind of parameter {tag!r}.")
    array = _numbers(content, arrays[content])
    return Factor(array) if tag == "factor" else array


def put(arrays: dict[str, np.ndarray], prefix: str, source: object, names: dict[str, str]) -> None:
    """Add attributes of an object to the arrays, as "prefix.name"."""
    arrays.update({f"{prefix}.{name}": np.asarray(getattr(source, name)) for name in names})


def take(
    arrays: dict[str, np.ndarray],
    prefix: str,
    shapes: dict[str, str],
    sizes: dict[str, int],
    may_be_nan: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the arrays of one object, checked; new letters of a shape enter `sizes`. A 0-d array is a float."""
    taken: dict[str, Any] = {}
    for name, shape in shapes.items():
        key = f"{prefix}.{name}"
        if key not in arrays:
            raise ValueError(f"array {key} is missing.")
        array = _numbers(key, arrays[key], finite=name not in may_be_nan)
        check_shape(key, array, shape, sizes)
        taken[name] = array if shape else float(array)
    return taken


def _numbers(name: str, array: np.ndarray, finite: bool = True) -> np.ndarray:
    if array.dtype.kind not in "fiu":
        raise ValueError(f"array {name} holds {array.dtype}, not numbers.")
    if finite and not np.isfinite(array).all():
        raise ValueError(f"array {name} holds NaN or infinity.")
    return array.astype(np.float64, copy=False)


def check_shape(name: str, array: np.ndarray, shape: str, sizes: dict[str, int]) -> None:
    """Raise a ValueError unless an array has as many entries as `sizes` says; new letters enter it."""
    if array.ndim == len(shape):
        for letter, size in zip(shape, array.shape, strict=True):
            sizes.setdefault(letter, size)
    expected = tuple(sizes.get(letter, 1) for letter in shape)
    if array.shape != expected or 0 in expected:
        raise ValueError(f"array {name} has shape {array.shape}, expected {expected}.")
