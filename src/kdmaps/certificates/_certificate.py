"""What every certificate says."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

#: Descriptions of the bounds, by the label of the theorem.
STATEMENTS = {
    "thm:cv-consistency": "probability that the search missed the best candidate",
    "thm:cv-continuous": "how much worse than the best possible bandwidth the chosen one may be",
    "optimism": "how much of the held-out score may be chance",
    "constant-mode": "contribution of the constant to a sum of eigenvalues",
    "thm:residual-gap": "distance of a mode from the exact one",
    "thm:projector-continuity": "how far the modes move when the weights of the mixture change",
    "prop:lipschitz-operators": "how fast the operators change with the weights of the mixture",
    "prop:uniform-pd": "smallest eigenvalue of L+λR for any weights of the mixture",
    "prop:rkhs-mixture-norm": "squared norm of a function in the space of the mixture",
}


@dataclass(frozen=True)
class Certificate:
    """A bound, and what it rests on.

    Attributes
    ----------
    theorem : str
        Label in the paper.
    value : float
        The bound. Where it does not apply (`holds` is False) it is the trivial one, such as 1 for a distance between
        unit vectors.
    constants : dict
        The numbers that it is made of, by their names in the formula.
    assumptions : tuple of str
        What it assumes beyond what was computed.
    violations : tuple of str
        Assumptions that are known to fail, and what to do about it.
    trivial : float, default=inf
        The value that is known without computing anything, such as 1 for a probability.
    """

    theorem: str
    value: float
    constants: dict[str, float] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()
    trivial: float = math.inf

    @property
    def statement(self) -> str:
        """Description of the bound, for tables and figures."""
        return STATEMENTS.get(self.theorem, self.theorem)

    @property
    def holds(self) -> bool:
        """Whether no assumption is known to fail."""
        return not self.violations

    @property
    def informative(self) -> bool:
        """Whether it applies and says more than what is known anyway."""
        return self.holds and self.value < self.trivial
