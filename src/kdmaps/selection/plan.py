"""Settings of a fit and of a search."""

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Self

import numpy as np

from kdmaps.bases import BASES, BasisSpec, check_basis
from kdmaps.data.pairs import PairedData, make_pairs
from kdmaps.data.sources import Sample, Source
from kdmaps.exceptions import ArgumentError
from kdmaps.forms.energy import EnergyForm
from kdmaps.forms.lagged import LaggedForm
from kdmaps.forms.moments import check_memory_limit
from kdmaps.forms.tangent import checked_tensor
from kdmaps.selection.folds import FOLDS, REPEATS, BlockedKFold, is_auto, resolve_cv
from kdmaps.selection.grid import bandwidth_grid, kernels_of, regularization_grid
from kdmaps.selection.scores import PAPER_SCORINGS, make_scoring
from kdmaps.spectrum.modes import Clock
from kdmaps.utils.threads import n_workers_of
from kdmaps.utils.validation import check_choice, check_count, check_positive_integer, check_positive_number

#: How rates are estimated.
RATES = ("ritz", "cross-fitted")
#: Treatment of a few rows behind an empty gap.
ISOLATED = ("separate", "keep", "drop")


@dataclass(frozen=True)
class FitSpec:
    """Settings of a fit in a given basis; the fields are parameters of `KernelDiffusionMap`."""

    n_components: int = 4
    center: bool = True
    diffusion: Any = None
    rates: str = "ritz"
    cv: Any = 3
    memory_limit: float | None = None
    lag: int | None = None
    time_step: float | None = None
    reversible: bool = True
    isolated: str = "separate"

    def check(self) -> None:
        """Raise a ValueError for settings that are invalid for any data."""
        check_positive_integer("n_components", self.n_components)
        check_memory_limit(self.memory_limit)
        if self.rates not in RATES:
            raise ValueError(f"rates must be one of {', '.join(RATES)}, got {self.rates!r}.")
        check_choice("isolated", self.isolated, ISOLATED)
        if self.time_step is not None:
            check_positive_number("time_step", self.time_step)
        if self.lag is not None:
            lag: Any = self.lag
            if not isinstance(lag, Integral) and lag != "auto":
                raise ValueError(f'lag must be a positive integer, "auto" or None, got {lag!r}.')
            if lag != "auto":
                check_positive_integer("lag", lag)
            self._check_lagged()
        elif not self.reversible:
            raise ArgumentError("{reversible:False} needs pairs of frames; give a {lag}.")

    def _check_lagged(self) -> None:
        """Raise a ValueError for settings that do not apply to pairs of frames."""
        if self.diffusion is not None:
            raise ArgumentError(
                "{diffusion} cannot be combined with {lag}: pairs of frames show the diffusion themselves. Leave out "
                "one of them."
            )
        if not self.reversible and self.rates == "cross-fitted":
            raise ArgumentError("{rates:cross-fitted} cannot be combined with {reversible:False}; use {rates:ritz}.")
        if not self.center:
            raise ValueError("center=False makes the constant a mode, which never decays; use center=True with a lag.")

    def observations(self, source: Source, weight: np.ndarray | None, groups: Any) -> PairedData:
        """Return the samples or pairs of frames that are summed, with their weights and groups."""
        if self.lag is None:
            return PairedData(source, weight, groups)
        return make_pairs(source, self.lag, weight, groups)

    def form(self, source: Source, weight: np.ndarray | None, **options: Any) -> EnergyForm | LaggedForm:
        """Return the form that is summed; `options` are passed to `checked_tensor`."""
        if self.lag is not None:
            return LaggedForm(self.lag, self.reversible)
        return EnergyForm(checked_tensor(self.diffusion, source, weight, **options))

    @property
    def clock(self) -> Clock:
        """Conversion of quotients to rates."""
        return Clock(self.lag, 1.0 if self.time_step is None else float(self.time_step))

    def with_folds(self, source: Source, groups: Any, preview: Sample | None = None) -> Self:
        """Return the settings with `cv="auto"` replaced by folds; pairs of frames need no test of their order."""
        if self.lag is not None:
            return replace(self, cv=FOLDS) if is_auto(self.cv) else self
        return replace(self, cv=resolve_cv(self.cv, source, groups, preview))

    @property
    def splitter(self) -> Any:
        """The folds; with a lag, a number of folds stands for blocks, since neighbouring frames are alike."""
        if self.lag is None or not isinstance(self.cv, Integral):
            return self.cv
        check_positive_integer("cv", self.cv)
        # Random folds are drawn twice, blocks cannot be: use twice as many.
        return BlockedKFold(REPEATS * int(self.cv), gap=int(self.lag))

    @property
    def summing(self) -> dict[str, Any]:
        """Options of `Source.moments`."""
        return {"memory_limit": self.memory_limit}


@dataclass(frozen=True)
class SearchPlan:
    """Settings of a search; the fields are parameters of `KernelSearchCV` and `AdaptiveDiffusionMap`."""

    basis: BasisSpec
    fit: FitSpec
    families: Any
    bandwidths: Any
    bandwidth_range: Any
    regularizations: Any
    scoring: Any
    max_extensions: int
    metric_rounds: int
    max_search_samples: int | None
    n_jobs: int | None
    checkpoint: Any
    progress: bool
    random_state: Any
    more_features: bool = False  # for the final fit, if they raise the held-out score
    standardize: bool = False  # whether columns are divided by their standard deviations
    rotated: bool = False  # whether inputs were rotated, so that single ones mean nothing

    @property
    def guarded(self) -> bool:
        """True if modes that rest on a few rows come last; the paper's grids of its own scores have no such rule."""
        return self.adaptive or self.scoring not in PAPER_SCORINGS

    @property
    def adaptive(self) -> bool:
        """True if bandwidths and regularizations are searched from coarse to fine instead of on a grid."""
        return isinstance(self.bandwidths, str) and self.bandwidths == "auto"

    @property
    def bases(self) -> tuple[BasisSpec, ...]:
        """The bases that are tried."""
        if self.basis.basis != "auto":
            return (self.basis,)
        # In single precision, kernel functions at landmarks are numerically dependent.
        names = ("fourier", "landmarks") if self.adaptive and np.dtype(self.basis.dtype) == np.float64 else ("fourier",)
        return tuple(replace(self.basis, basis=name) for name in names)

    def check(self) -> None:
        """Raise a ValueError for settings that are invalid for any data."""
        self.fit.check()
        check_basis(self.basis.basis, (*BASES, "auto"))
        if isinstance(self.basis.n_features, str):
            raise ValueError(f'n_features must be a positive integer or "auto", got {self.basis.n_features!r}.')
        for basis in self.bases:
            basis.check(self.fit.n_components)
        make_scoring(self.scoring, self.fit.lag)
        sigmas = np.ones(1) if self.adaptive else bandwidth_grid(self.bandwidths, self.bandwidth_range, median=1.0)
        kernels_of(self.families, sigmas)
        regularization_grid(self.regularizations, unit=1.0)
        most = self.max_search_samples
        if most is not None and (not isinstance(most, Integral) or most < 2):
            raise ValueError(f"max_search_samples must be None or an integer of at least 2, got {most!r}.")
        for name in ("max_extensions", "metric_rounds"):
            check_count(name, getattr(self, name))
        n_workers_of(self.n_jobs)
        if self.basis.basis == "full":
            raise ValueError("basis='full' leaves no sample to test on; use basis='landmarks' or 'fourier'.")
        if self.scoring == "timescale" and not self.fit.center:
            raise ValueError(
                "scoring='timescale' needs center=True: without centring the constant is a mode, with an unbounded "
                "time scale."
            )
