"""Modes exported as JAX functions and PLUMED input, compared with `transform`."""

import re

import jax
import numpy as np
import pytest
from molecules import CHAIN, frames
from numpy.testing import assert_allclose

import kdmaps
from kdmaps.simulation import AlignedPositions, Distance, KolmogorovBias, Torsion, as_jax, descriptors, plumed_input
from shared import kernels, known

KERNELS = kernels(
    "gaussian",
    "laplacian-anisotropic",
    "matern32",
    "mixture-not-proportional",
    "metric-matern32",
    "metric-laplacian",
    "mixture-of-different-metrics",
)


def make(**options):
    defaults = {"bandwidth": 6.0, "n_features": 40, "random_state": 0}
    return kdmaps.KernelDiffusionMap(2, **{**defaults, **options})


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).standard_normal((300, 3)) * [1.0, 0.8, 0.5] + [5.0, -3.0, 0.0]


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("basis", ["fourier", "random-phase", "landmarks"])
@known("no-gap")  # with the rough Laplacian kernel
def test_jax_function_is_the_mode(X, basis, kernel):
    model = make(basis=basis, kernel=kernel).fit(X)
    points = X[:20] + 0.1
    with jax.enable_x64(True):
        function = as_jax(model, 1)
        values, gradients = function(points), jax.vmap(jax.grad(function))(points)
    assert_allclose(values, model.transform(points)[:, 1], atol=1e-9)  # rounding of large coefficients
    assert_allclose(gradients, model.gradient(points)[:, 1], atol=1e-8)


def test_jax_function_in_single_precision(X):
    model = make().fit(X)
    value = jax.jit(as_jax(model))(X[0].astype(np.float32))
    assert value.dtype == np.float32
    # Coefficients of order 100 lose two of seven digits.
    assert_allclose(value, model.transform(X[:1])[0, 0], atol=1e-3)


@pytest.mark.parametrize("basis", ["fourier", "random-phase"])
def test_plumed_input_computes_the_mode(X, basis):
    """Evaluate the input with a small interpreter of COMBINE and CUSTOM, written from PLUMED's manual."""
    model = make(basis=basis).fit(X)
    text = plumed_input(model, ["a.x", "b", "c"], mode=1, label="slow")
    values = run_plumed(text, {"a.x": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    assert_allclose(values["slow"], model.transform(X)[:, 1], atol=1e-9)


@known("mismatch", "copied-columns")  # of a small fit of noise
def test_plumed_input_computes_columns():
    """From positions: two distances and a torsion, with atoms counted from 1."""
    positions = frames()
    inputs = [Distance(0, 3), Torsion((2, 3, 4, 5)), Distance(1, 6)]
    columns = descriptors(inputs, positions)
    model = make(bandwidth=1.0).fit(columns)
    text = plumed_input(model, inputs, mode=1, label="slow")
    measured = {"1,4": columns[:, 0], "3,4,5,6": np.arctan2(columns[:, 2], columns[:, 1]), "2,7": columns[:, 3]}
    assert_allclose(run_plumed(text, {}, measured)["slow"], model.transform(columns)[:, 1], atol=1e-9)
    with pytest.raises(ValueError, match="AlignedPositions cannot"):
        plumed_input(
            make(n_features=10).fit(np.tile(columns[:, :3], 3)), [AlignedPositions((0, 2, 5), CHAIN[[0, 2, 5]])]
        )


def test_plumed_input_of_the_kolmogorov_bias():
    X = np.random.default_rng(0).uniform(-2, 2, (1000, 2))
    committor = kdmaps.AdaptiveCommittor(basis="fourier", n_features=40, random_state=0)
    bias = KolmogorovBias(committor.fit(X, (X[:, 0] < -1, X[:, 0] > 1)), kT=2.5)
    values = run_plumed(bias.plumed(["a", "b"], label="k"), {"a": X[:, 0], "b": X[:, 1]})
    assert np.count_nonzero(values["k_energy"]) > 200
    assert_allclose(values["k_energy"], bias.energy(X), atol=1e-7)
    with pytest.raises(ValueError, match="2 PLUMED labels"):
        bias.plumed(["a"])


def run_plumed(text, values, measured=None):
    """Return the values of all actions, given the values of arguments or of groups of atoms."""
    for line in text.splitlines():
        label, action, rest = re.fullmatch(r"(\S+): (\S+) (.*)", line).groups()
        if action == "BIASVALUE":
            values[label] = values[rest.removeprefix("ARG=")]
            continue
        keys = dict(word.split("=", 1) for word in rest.removesuffix(" NOPBC").split(" "))
        if action in ("TORSION", "DISTANCE"):
            assert rest.endswith(" NOPBC")  # frames are of whole molecules
            values[label] = measured[keys.pop("ATOMS")]
            assert not keys
            continue
        assert keys.pop("PERIODIC") == "NO"
        arguments = [values[name] for name in keys.pop("ARG").split(",")]
        if action == "COMBINE":  # Σ c_i (x_i - a_i)
            c, shift, powers = (
                [float(number) for number in keys.pop(name, ",".join([default] * len(arguments))).split(",")]
                for name, default in (("COEFFICIENTS", "1"), ("PARAMETERS", "0"), ("POWERS", "1"))
            )
            terms = zip(c, arguments, shift, powers, strict=True)
            values[label] = sum(ci * (x - ai) ** pi for ci, x, ai, pi in terms)
        else:
            assert action == "CUSTOM"
            known = {"cos": np.cos, "sin": np.sin, "log": np.log, "min": np.minimum, "max": np.maximum}
            variables = dict(zip(keys.pop("VAR", "x").split(","), arguments, strict=True))
            values[label] = eval(keys.pop("FUNC").replace("^", "**"), known | variables)
        assert not keys
    return values


def test_invalid_arguments(X):
    model = make().fit(X)
    for labels in (["a"], ["a", "b c", "d"], "abc"):
        with pytest.raises(ValueError, match="3 PLUMED labels"):
            plumed_input(model, labels)
    with pytest.raises(ValueError, match="arguments must be distinct labels"):
        plumed_input(model, ["a", "b", "a"])
    with pytest.raises(ValueError, match="mode must be"):
        as_jax(model, 2)
    with pytest.raises(ValueError, match="cannot be exported to PLUMED"):
        plumed_input(make(basis="landmarks").fit(X), ["a", "b", "c"])
