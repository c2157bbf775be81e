"""Problems by name."""

import re
from collections.abc import Callable
from copy import copy
from functools import cache, partial

from kdmaps.problems.base import Problem
from kdmaps.problems.langevin import MullerBrown, double_well, prinz, triple_well, triple_well_2d
from kdmaps.problems.manifolds import NoisyCircle, Sphere
from kdmaps.problems.product import DEFAULT_STD, MDLike, OrnsteinUhlenbeck, nuisance

_REGISTRY: dict[str, Callable[[], Problem]] = {
    "ou2d-4": partial(OrnsteinUhlenbeck, (1, 4)),
    "ou2d-16": partial(OrnsteinUhlenbeck, (1, 16)),
    "ou3d": partial(OrnsteinUhlenbeck, (1, 4, 16)),
    **{f"ou{d}d": partial(OrnsteinUhlenbeck, [2.0**j for j in range(d)]) for d in (10, 20)},
    "dw1d": double_well,
    "dw1d-asym": partial(double_well, tilt=0.1),
    "triplewell1d": triple_well,
    "prinz": prinz,
    "triplewell2d": triple_well_2d,
    "muller-brown": MullerBrown,
    "circle": partial(NoisyCircle, noise=0.05),
    **{f"mdlike-{d}": partial(MDLike, n_slow=2, n_fast=d - 2) for d in (6, 10, 20)},
    **{f"sphere-{d}": partial(Sphere, d) for d in (3, 5, 11, 19)},
}


@cache
def _built(name: str) -> Problem:
    """Build a registered problem once; copies share the solution of its eigenproblem, which may take seconds."""
    return _REGISTRY[name]()


def names() -> list[str]:
    """Return the registered names; ``load`` also accepts "sphere-<d>" for any d >= 2, and any name with "+<k>"."""
    return list(_REGISTRY)


def load(name: str) -> Problem:
    """Return the problem with the given name.

    Parameters
    ----------
    name : str
        One of `names()`, or "sphere-<d>" with d >= 2. A suffix "+<k>" or "+<k>x<std>" adds k Gaussian coordinates:
        "triplewell2d+198x0.1" is ``nuisance(load("triplewell2d"), 198, 0.1)``.

    Examples
    --------
    >>> import kdmaps
    >>> problem = kdmaps.problems.load("ou2d-4")
    >>> problem.rates(4)
    array([1., 2., 3., 4.])
    >>> X = problem.sample(100, random_state=0)
    >>> problem.reference(X, 4).shape  # the cluster of rate 4 is complete: two functions
    (100, 5)
    """
    if name in _REGISTRY:
        problem = copy(_built(name))
    elif sphere := re.fullmatch(r"sphere-(\d+)", str(name)):
        problem = Sphere(int(sphere[1]))
    elif noisy := re.fullmatch(r"(.+)\+(\d+)(?:x(\d*\.?\d+))?", str(name)):
        problem = nuisance(load(noisy[1]), int(noisy[2]), float(noisy[3] or DEFAULT_STD))
    else:
        raise ValueError(
            f"Unknown problem name {name!r}; pass one of {', '.join(names())}, sphere-<d> with d >= 2, or one of these "
            "followed by +<k>."
        )
    problem.name = name
    return problem
