"""Rates from the quotients of an eigenproblem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Clock:
    """Conversion between the quotients aᵀLa/aᵀΣa of modes and their rates."""

    lag: int | None = None  # in frames; None for the energy form, whose quotients are rates
    time_step: float = 1.0  # time between frames

    @property
    def duration(self) -> float:
        """The lag as a time."""
        return (self.lag or 0) * self.time_step

    def rates(self, quotients: np.ndarray) -> np.ndarray:
        """Return -ln ν/τ for the autocorrelations ν = 1 - quotient after a time τ; infinite where ν is not positive."""
        if self.lag is None:
            return quotients
        with np.errstate(divide="ignore", invalid="ignore"):
            rates = -np.log1p(-quotients) / self.duration
        return np.where(quotients < 1, rates, np.inf)

    def quotients(self, rates: np.ndarray) -> np.ndarray:
        """Invert `rates`."""
        return rates if self.lag is None else -np.expm1(-rates * self.duration)

    def stretch(self, quotients: np.ndarray) -> np.ndarray:
        """Return d log rate/d log quotient, by which relative errors of quotients are multiplied in rates."""
        if self.lag is None:
            return np.ones_like(quotients)
        inside = np.clip(quotients, np.finfo(float).tiny, 1 - 1e-12)
        return -inside / ((1 - inside) * np.log1p(-inside))

    def inefficiency(self, quotients: np.ndarray) -> float:
        """Return pairs per independent pair, (1+ρ)/(1-ρ) with the autocorrelation ρ of the slowest mode per frame."""
        if self.lag is None:
            return 1.0
        step = np.clip(1 - np.min(quotients), 0, 1) ** (1 / self.lag)
        return float((1 + step) / max(1 - step, np.finfo(float).eps))


#: For samples in any order.
NO_LAG = Clock()


def rate_ratios(rates: np.ndarray) -> np.ndarray:
    """Return rate_{k+1}/rate_k; 1 between equal rates, even if both are infinite or 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(rates[1:] == rates[:-1], 1.0, rates[1:] / rates[:-1])
