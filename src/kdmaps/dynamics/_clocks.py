"""Both clocks: modes of samples, whose rates need a diffusion constant, and of pairs of frames, which need none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from kdmaps.data.inputs import join_trajectories
from kdmaps.diagnostics.projection import Projection
from kdmaps.diagnostics.resampling import Resampling
from kdmaps.dynamics._model import check_reversible, project_model
from kdmaps.estimators.summed import own_diffusion
from kdmaps.estimators.transformer import ModeTransformer, checked_source
from kdmaps.forms.energy import make_form
from kdmaps.forms.moments import Moments, StackedMoments
from kdmaps.metrics import principal_angles, subspace_r2
from kdmaps.spectrum.clock import Clock
from kdmaps.utils.types import RandomStateLike, SamplesLike
from kdmaps.utils.validation import checked_weight


@dataclass(frozen=True)
class ClockComparison:
    """Modes of samples and of pairs of frames, side by side.

    Attributes
    ----------
    angles : ndarray
        Principal angles between the two spaces of modes, in radians, ascending.
    subspace_r2 : float
        Mean squared cosine between the two spaces.
    correlations : ndarray of shape (r, R)
        |Correlation| of each mode of pairs with each mode of samples.
    rates, static_rates : ndarray of shape (r,)
        Of each mode of pairs, the rate in time, and the rate that its slopes have in the metric of X for D = 1.
    diffusion, diffusion_errors : ndarray of shape (r,)
        D of each mode, rates/static_rates, and standard errors.
    common_diffusion : float
        From the mean of log D, weighted with the inverse variances.
    disagreement : float
        Largest distance of a log D from that mean, in its own standard errors.
    """

    angles: np.ndarray
    subspace_r2: float
    correlations: np.ndarray
    rates: np.ndarray
    static_rates: np.ndarray
    diffusion: np.ndarray
    diffusion_errors: np.ndarray
    common_diffusion: float
    disagreement: float

    def table(self) -> list[dict[str, Any]]:
        """Return one row of plain data per mode of pairs, for example for `pandas.DataFrame`."""
        return [
            {
                "mode": k + 1,
                "timescale": float(1 / self.rates[k]),
                "static_mode": int(self.correlations[k].argmax()) + 1,
                "correlation": float(self.correlations[k].max()),
                "diffusion": float(self.diffusion[k]),
                "diffusion_error": float(self.diffusion_errors[k]),
            }
            for k in range(len(self.rates))
        ]

    def __repr__(self) -> str:
        degrees = ", ".join(f"{angle:.0f}°" for angle in np.degrees(self.angles))
        lines = [f"Modes of pairs and of samples: SubR² {self.subspace_r2:.3f}, angles {degrees}"]
        lines += [
            f"  mode {row['mode']}: time scale {row['timescale']:.4g}, like mode {row['static_mode']} of samples "
            f"(correlation {row['correlation']:.3f}), D = {row['diffusion']:.3g} ± {row['diffusion_error']:.2g}"
            for row in self.table()
        ]
        lines.append(f"  D differs between modes by up to {self.disagreement:.1f} standard errors")
        return "\n".join(lines)


def compare_clocks(
    static_model: ModeTransformer,
    lagged_model: ModeTransformer,
    X: SamplesLike,
    *,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    n_resamples: int = 100,
    random_state: RandomStateLike = None,
) -> ClockComparison:
    """Compare the modes of samples with those of pairs of frames: do they agree, and on which diffusion constant?

    If X holds all that is slow, and its metric is that of the noise, then both have the same modes, and the rates of
    pairs are D times those of samples, with the same D for all modes.

    Parameters
    ----------
    static_model : fitted estimator, without a lag
    lagged_model : fitted estimator, with a lag
    X : array-like of shape (n_frames, d), list of such arrays, path of a `.npy` file
        Frames at equal time steps.
    groups : array-like of shape (n_frames,), optional
        Trajectory of each frame.
    sample_weight : array-like of shape (n_frames,), optional
    n_resamples : int, default=100
        Number of resamples of the block bootstrap.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    ClockComparison

    Examples
    --------
    >>> import kdmaps
    >>> path = kdmaps.problems.load("dw1d").simulate(5000, dt=0.1, random_state=0)[0]
    >>> settings = {"n_components": 1, "regularization": 1e-3, "random_state": 0}
    >>> static = kdmaps.KernelDiffusionMap(**settings).fit(path)
    >>> lagged = kdmaps.KernelDiffusionMap(lag=2, time_step=0.1, **settings).fit(path)
    >>> found = kdmaps.dynamics.compare_clocks(static, lagged, path, random_state=0)
    >>> bool(found.subspace_r2 > 0.95 and abs(found.common_diffusion - 1) < 0.2)
    True
    """
    check_is_fitted(static_model)
    if static_model.modes_.clock.lag is not None:
        raise ValueError("static_model was fitted with a lag; pass one without as the first model.")
    resampling = Resampling(n_resamples, 0.95, random_state)
    X, groups, _ = join_trajectories(X, groups)
    check_reversible(lagged_model)
    along = project_model(lagged_model, X, groups, sample_weight, n_functions=1)
    energies = _energies(static_model, lagged_model, X, sample_weight, along)
    clock, pairs = Clock(along.lag, along.time_step), along.moments(along.lag)
    counts = np.vstack([np.ones(len(along.blocks)), resampling.counts(len(along.blocks))])
    found = [(_rates(pairs.combine(row), clock), _rates(energies.combine(row), Clock())) for row in counts]
    rates, static_rates = (np.array(part) for part in zip(*found, strict=True))
    diffusion = rates / static_rates
    errors = diffusion[0] * np.log(diffusion[1:]).std(axis=0, ddof=1)
    common, disagreement = common_value(diffusion[0], errors)
    lagged, static = along.in_order_of_rows(along.values), np.asarray(static_model.transform(X), dtype=np.float64)
    weight = along.weight if along.weight is None else along.in_order_of_rows(along.weight)
    return ClockComparison(
        angles=principal_angles(lagged, static, weight),
        subspace_r2=subspace_r2(lagged, static, weight),
        correlations=_correlations(lagged, static, weight),
        rates=rates[0],
        static_rates=static_rates[0],
        diffusion=diffusion[0],
        diffusion_errors=errors,
        common_diffusion=common,
        disagreement=disagreement,
    )


def common_value(values: np.ndarray, errors: np.ndarray) -> tuple[float, float]:
    """Return the exponential of the mean of logarithms, weighted with inverse variances, and the largest distance.

    The distance of a logarithm from the mean is in its own standard errors.
    """
    precision = (values / errors) ** 2
    mean = np.average(np.log(values), weights=precision)
    return float(np.exp(mean)), float(np.max(np.abs(np.log(values) - mean) * np.sqrt(precision)))


def _energies(static: Any, lagged: Any, X: Any, sample_weight: ArrayLike | None, along: Projection) -> StackedMoments:
    """Sum values and slopes of the modes of pairs over the same blocks, in the metric of the other model."""
    source = checked_source(static, X)
    if not source.has_rows:
        raise ValueError("X must be an array, a .npy file or Dask data, from which blocks of rows can be selected.")
    weight, fitted = checked_weight(sample_weight, source), getattr(static, "best_estimator_", static)
    form = make_form(own_diffusion(fitted), source, weight, spaces=fitted.tangents_)
    labels = np.empty((len(along.rows), 1), dtype=int)
    for number, block in enumerate(along.blocks):
        labels[along.rows[block], 0] = number
    sets = [(0, number) for number in range(len(along.blocks))]
    return StackedMoments(source.moments(form, lagged._mode_basis(), weight, labels, sets))


def _rates(moments: Moments, clock: Clock) -> np.ndarray:
    return clock.rates(np.diagonal(moments.mean_energy()) / np.diagonal(moments.covariance()))


def _correlations(one: np.ndarray, other: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    weight = np.ones(len(one)) if weight is None else weight
    covariance = np.cov(np.hstack([one, other]), rowvar=False, aweights=weight)
    scale = np.sqrt(np.diagonal(covariance))
    return np.abs(covariance / np.outer(scale, scale))[: one.shape[1], one.shape[1] :]
