"""Propagators as plain arrays and plain data, for model files."""

from dataclasses import fields
from typing import Any

import numpy as np

from kdmaps.bases import FourierBasis
from kdmaps.kernels import Gaussian
from kdmaps.propagation.choice import Law
from kdmaps.propagation.dictionary import Dictionary
from kdmaps.propagation.forecaster import Forecaster
from kdmaps.propagation.frames import Coordinates
from kdmaps.propagation.pair_tests import PairTests
from kdmaps.propagation.pairs import LeadingPairs, Spectrum
from kdmaps.propagation.propagator import Propagator

#: Prefix of the names of all arrays.
PREFIX = "propagator."
#: Arrays of the objects that a propagator is made of.
COORDINATES = ("origin", "directions")
PAIRS = ("shares", "modes", "mean")
FORECASTER = ("limit", "values", "functions", "modes", "mean")
OWN = ("covariance", "steps", "errors", "rest")


def to_arrays(propagator: Propagator) -> dict[str, np.ndarray]:
    """Return all arrays of a propagator."""
    forecaster = propagator.forecaster
    arrays = _of("coordinates", propagator.coordinates, COORDINATES)
    arrays |= _of("pairs", propagator.pairs, PAIRS)
    arrays |= _of("spectrum", propagator.pairs.spectrum, ("values", "functions"))
    arrays |= _of("tests", propagator.tests, _test_names())
    arrays |= _of("forecaster", forecaster, FORECASTER)
    arrays |= _of("own", propagator, OWN)
    arrays |= _waves("dictionary", propagator.dictionary)
    if forecaster.dictionary is not propagator.dictionary:
        arrays |= _waves("lifted", forecaster.dictionary)
    if forecaster.step is not None:
        arrays["step"] = forecaster.step
    return {PREFIX + name: np.asarray(array) for name, array in arrays.items()}


def to_data(propagator: Propagator) -> dict[str, Any]:
    """Return all scalars of a propagator."""
    forecaster = propagator.forecaster
    return {
        "law": propagator.law.name,
        "method": propagator.method,
        "unpredictable": float(propagator.unpredictable),
        "asked": int(propagator.asked),
        "n_frame_pairs": int(propagator.n_frame_pairs),
        "scale": float(propagator.coordinates.scale),
        "n_coordinates": int(propagator.dictionary.n_coordinates),
        "n_forecast": int(forecaster.dictionary.n_coordinates),
        "same_dictionary": forecaster.dictionary is propagator.dictionary,
        "lifted": bool(forecaster.lifted),
        "n_tested": int(propagator.tests.n_tested),
    }


def from_stored(data: dict[str, Any], arrays: dict[str, np.ndarray]) -> Propagator:
    """Return the propagator of `to_data` and `to_arrays`; raise a ValueError for impossible content."""
    known = {name.removeprefix(PREFIX): array for name, array in arrays.items() if name.startswith(PREFIX)}
    for name, array in known.items():
        if array.dtype.kind not in "fiuc" or np.isinf(array).any():
            raise ValueError(f"array {PREFIX}{name} holds no usable numbers.")
    own = _group(known, "own", OWN)
    place = _group(known, "coordinates", COORDINATES)
    coordinates = Coordinates(place["origin"], float(data["scale"]), place["directions"])
    dictionary = _dictionary(known, "dictionary", data["n_coordinates"])
    forecast_dictionary = dictionary
    if not data["same_dictionary"]:
        forecast_dictionary = _dictionary(known, "lifted", data["n_forecast"])
    pairs = LeadingPairs(
        Spectrum(**_group(known, "spectrum", ("values", "functions"))), **_group(known, "pairs", PAIRS)
    )
    tests = PairTests(**_group(known, "tests", _test_names()), n_tested=int(data["n_tested"]))
    of_forecaster = _group(known, "forecaster", FORECASTER)
    forecaster = Forecaster(forecast_dictionary, known.get("step"), bool(data["lifted"]), **of_forecaster)
    propagator = Propagator(
        law=Law[data["law"]],
        method=str(data["method"]),
        unpredictable=float(data["unpredictable"]),
        asked=int(data["asked"]),
        n_frame_pairs=int(data["n_frame_pairs"]),
        coordinates=coordinates,
        dictionary=dictionary,
        pairs=pairs,
        tests=tests,
        forecaster=forecaster,
        **own,
    )
    _check(propagator)
    return propagator


def _test_names() -> tuple[str, ...]:
    return tuple(field.name for field in fields(PairTests) if field.name != "n_tested")


def _of(prefix: str, source: object, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    return {f"{prefix}.{name}": getattr(source, name) for name in names}


def _group(arrays: dict[str, np.ndarray], prefix: str, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    return {name: arrays[f"{prefix}.{name}"] for name in names}


def _waves(prefix: str, dictionary: Dictionary) -> dict[str, np.ndarray]:
    waves = dictionary.waves
    if waves is None:
        return {}
    bandwidth = np.asarray(getattr(waves.kernel, "bandwidth"))  # noqa: B009 - of a Gaussian
    parts = {"frequencies": waves.frequencies, "weights": waves.weights, "origin": waves.origin, "bandwidth": bandwidth}
    return {f"{prefix}.{name}": part for name, part in parts.items()}


def _dictionary(arrays: dict[str, np.ndarray], prefix: str, n_coordinates: Any) -> Dictionary:
    if f"{prefix}.frequencies" not in arrays:
        return Dictionary(int(n_coordinates))
    parts = _group(arrays, prefix, ("frequencies", "weights", "origin"))
    kernel = Gaussian(float(arrays[f"{prefix}.bandwidth"]))
    return Dictionary(int(n_coordinates), FourierBasis(kernel, *parts.values()))


def _check(propagator: Propagator) -> None:
    """Raise a ValueError unless all shapes agree."""
    d, kept = propagator.coordinates.directions.shape
    r = propagator.n_pairs
    n_values = len(propagator.pairs.spectrum.values)
    forecaster = propagator.forecaster
    q, k = forecaster.dictionary.n_functions, forecaster.dictionary.n_coordinates
    n_steps = len(propagator.steps)
    width = propagator.errors.shape[-1]
    expected = [
        (propagator.coordinates.origin, (d,)),
        (propagator.rest, (d,)),
        (propagator.pairs.spectrum.functions, (propagator.dictionary.n_functions, n_values)),
        (propagator.pairs.modes, (n_values, len(propagator.pairs.mean))),
        (propagator.pairs.shares, (n_values,)),
        (propagator.covariance, (r, r)),
        (propagator.errors, (n_steps, width, width)),
        (forecaster.limit, (k,)) if forecaster.lifted else (forecaster.mean, (len(forecaster.mean),)),
    ]
    if forecaster.step is not None:
        expected.append((forecaster.step, (q, q)))
    wrong = [array.shape for array, shape in expected if array.shape != shape]
    if wrong or r > n_values or max(k, propagator.dictionary.n_coordinates, width) > kept or n_steps == 0:
        raise ValueError(f"the arrays of its propagator do not belong together, {wrong}.")
