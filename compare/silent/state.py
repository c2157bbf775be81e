"""Samples, settings or checkpoints of one fit that are used for another."""

import re
import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kdmaps import KernelDiffusionMap, KernelSearchCV, problems
from silent.case import SMALL, case


def field(x: np.ndarray) -> np.ndarray:
    """Return tensors (n, d, d) that vary from sample to sample."""
    return np.exp(2 * x[:, 0])[:, None, None] * np.eye(x.shape[1])


@case(
    6,
    "diffusion was given per sample",
    "tests/estimators/test_state.py",
    ["score", "partial_fit"],
)
def tensors(method: str) -> tuple[str, bool]:
    """Tensors of the samples of `fit`, used for as many new points: `score(X2)`, `partial_fit(X2)`."""
    X, X2 = (problems.load("ou2d-4").sample(300, random_state=seed) for seed in (0, 1))
    found = []
    for diffusion in (field(X), field):
        model = KernelDiffusionMap(1, diffusion=diffusion, bandwidth=2.0, random_state=0).fit(X)
        found.append(model.score(X2) if method == "score" else model.partial_fit(X2).rates_[0])
    return f"{method}: {found[0]:.3g} instead of {found[1]:.3g}", bool(np.isclose(*found))


@case(7, "", "tests/data/test_streams.py")
def buffer() -> tuple[str, bool]:
    """One buffer, reused for all chunks of a generator."""
    X = problems.load("ou2d-4").sample(20_000, random_state=0)

    def reusing() -> Iterable[np.ndarray]:
        chunk = np.empty((1000, 2))
        for start in range(0, len(X), 1000):
            chunk[:] = X[start : start + 1000]
            yield chunk

    model = KernelDiffusionMap(2, bandwidth=2.0, random_state=0).fit(X)
    off = np.abs(model.transform(reusing) - model.transform(X)).max()
    return f"modes off by {off:.2g}", off < 1e-6


def preferring(fold: Any, sign: float) -> float:
    """Score small or large regularizations."""
    return sign * float(np.log(fold.regularization))


def resumed(change: dict[str, Any], **first: Any) -> tuple[Any, Any]:
    """Return a search resumed from the checkpoint of another search, and the same search without it."""
    X = problems.load("ou2d-4").sample(600, random_state=0)
    settings = {**SMALL, "regularizations": [1e-3, 1e-2, 0.1]}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sweep.jsonl")
        KernelSearchCV(2, checkpoint=path, **settings, **first).fit(X)
        for old, new in change.pop("replace", ()):
            path.write_text(re.sub(old, new, path.read_text(), count=1))
        stale = KernelSearchCV(2, checkpoint=path, **settings, **change).fit(X)
    return stale, KernelSearchCV(2, **settings, **change).fit(X)


def chosen(stale: Any, fresh: Any) -> tuple[str, bool]:
    """Compare the regularizations of two searches."""
    one, two = (search.best_params_["regularization"] for search in (stale, fresh))
    return f"λ = {one:g}, without the checkpoint {two:g}", one == two


@case(
    9,
    "belongs to other data, settings or scoring",
    "tests/selection/test_search_sweep.py",
)
def checkpoint_of_a_score() -> tuple[str, bool]:
    """Checkpoint of another score with the same name (`functools.partial`)."""
    return chosen(*resumed({"scoring": partial(preferring, sign=-1)}, scoring=partial(preferring, sign=1)))


@case(
    10,
    "belongs to other data, settings or scoring",
    "tests/selection/test_search_sweep.py",
)
def checkpoint_of_a_tensor() -> tuple[str, bool]:
    """Checkpoint of another callable `diffusion`, which differs after row 100."""
    late = problems.load("ou2d-4").sample(600, random_state=0)[100:, 0]
    other = {"diffusion": lambda x: np.where(np.isin(x[:, 0], late), 9.0, 1.0)}
    one, two = (search.best_score_ for search in resumed(other, diffusion=lambda x: np.ones(len(x))))
    return f"score {one:.3g}, without the checkpoint {two:.3g}", bool(np.isclose(one, two))


@case(
    19,
    "(bandwidth|diffusion) changed after the first samples were summed",
    "tests/estimators/test_state.py",
    [{"bandwidth": 0.3}, {"diffusion": 4.0}],
)
def changed(change: dict[str, float]) -> tuple[str, bool]:
    """`set_params` between `fit` and `partial_fit`: the bandwidth, the diffusion."""
    X, X2 = (problems.load("ou2d-4").sample(300, random_state=seed) for seed in (0, 1))
    settings = {"bandwidth": 2.0, "random_state": 0}
    rate = KernelDiffusionMap(1, **settings).fit(X).set_params(**change).partial_fit(X2).rates_[0]
    fresh = KernelDiffusionMap(1, **{**settings, **change}).fit(X).partial_fit(X2).rates_[0]
    return f"{next(iter(change))}: {rate:.2g} instead of {fresh:.2g}", bool(np.isclose(rate, fresh))


@case(
    22,
    r"\d+ of \d+ lines of the checkpoint",
    "tests/selection/test_search_sweep.py",
)
def digit() -> tuple[str, bool]:
    """One digit of a checkpoint changed."""
    return chosen(*resumed({"replace": [(r'(?s)(.*(?:"value": |"score": \[)-?)\d', r"\g<1>9")]}))
