"""Values have the same digest if and only if their content is equal."""

import functools
import threading
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from kdmaps import Factor, TangentDiffusion
from kdmaps.kernels import Gaussian, Metric, Mixture
from kdmaps.utils.content import content_digest

FACTOR = 3.0


def adding(number):
    return lambda x: x + number


def scaled(x):
    return FACTOR * x


def recursive(n):
    return recursive(n - 1) if n else FACTOR


class Adder:
    def __init__(self, number):
        self.number = number

    def __call__(self, x):
        return self.helped(x)

    def helped(self, x):
        return x + self.number

    def method(self, x):
        return x - self.number


#: Functions that make a value from a number, on which the digest depends.
MADE_OF = {
    "number": lambda k: k,
    "float": float,
    "text": str,
    "list": lambda k: [1, [k]],
    "dict": lambda k: {"a": {"b": k}},
    "set": lambda k: {k, k + 1},
    "array": lambda k: np.arange(3) + k,
    "0-d": lambda k: np.float64(k),
    "shape": lambda k: np.zeros((k, 12 // k)),
    "strided": lambda k: np.arange(20)[:: k + 1],
    "objects": lambda k: np.array([k, "a"], dtype=object),
    "large": lambda k: np.arange(2**22) == 2**22 - k,
    "generator": np.random.RandomState,
    "closure": adding,
    "default": lambda k: lambda x, y=k: x + y,
    "keyword": lambda k: lambda x, *, y=k: x + y,
    "constant": lambda k: eval(f"lambda x: x + {k}"),
    "within": lambda k: lambda x: adding(k)(x),
    "partial": lambda k: functools.partial(max, k),
    "partial keyword": lambda k: functools.partial(scaled, x=k),
    "callable": Adder,
    "method": lambda k: Adder(k).method,
    "frame": lambda k: pd.DataFrame({"x": [1.0, k]}),
    "column": lambda k: pd.DataFrame({f"x{k}": [1.0]}),
    "metric": lambda k: Metric(Gaussian(1.0), k * np.eye(2)),
    "kernel": lambda k: Mixture([Gaussian(float(k)), Gaussian(5.0)]),
    "dataclass": TangentDiffusion,
    "factor": lambda k: Factor(np.full((2, 1, 1), k)),
}


@pytest.mark.parametrize("kind", MADE_OF)
def test_digest_depends_on_content(kind):
    make = MADE_OF[kind]
    assert content_digest(make(2)) == content_digest(make(2))
    assert content_digest(make(2)) != content_digest(make(3))


def test_digest_depends_on_globals_of_the_module(monkeypatch):
    before = [content_digest(scaled), content_digest(recursive), content_digest(lambda x: scaled(x))]
    monkeypatch.setitem(globals(), "FACTOR", 4.0)
    after = [content_digest(scaled), content_digest(recursive), content_digest(lambda x: scaled(x))]
    assert all(one != two for one, two in zip(before, after, strict=True))


def test_digest_depends_on_methods_of_a_callable(monkeypatch):
    before = content_digest(Adder(1))
    monkeypatch.setattr(Adder, "helped", lambda self, x: x * self.number)
    assert content_digest(Adder(1)) != before


def test_digests_of_types_differ():
    values = [None, True, 1, 1.0, "1", b"1", [1], {1}, {1: None}, np.array(1), np.array(1.0), np.array([1]), max, min]
    assert len({content_digest(value) for value in values}) == len(values)
    assert content_digest("a", "b") != content_digest("ab")


def test_inaccessible_content_is_an_error():
    with pytest.raises(ValueError, match=r"content of .*lock.* not accessible"):
        content_digest({"a": threading.Lock()})


def test_arrays_are_hashed_by_their_bytes():
    """Neither the layout of an array nor the library of its rows matters, and no number becomes a Python object."""
    X = np.random.default_rng(0).standard_normal((2**17, 4))
    digest = content_digest(X)
    assert digest == content_digest(np.asfortranarray(X)) == content_digest(np.repeat(X, 2, axis=0)[::2])
    metric = Metric(Gaussian(1.0), X[:1000, :1] * X[:1000, 0])
    tracemalloc.start()
    content_digest(X, metric)
    largest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert largest < 1e6  # a million floats take 24 MB
