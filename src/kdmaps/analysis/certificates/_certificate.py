"""What every certificate says."""

from __future__ import annotations

from dataclasses import dataclass, field


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
    """

    theorem: str
    value: float
    constants: dict[str, float] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether no assumption is known to fail."""
        return not self.violations
