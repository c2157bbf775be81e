"""Eigenvalues and eigenfunctions of the Koopman operator of a model fitted with reversible=False."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment

from kdmaps.bases import ModeBasis
from kdmaps.checks import Checks, recorded, warn_of
from kdmaps.data.inputs import join_trajectories
from kdmaps.data.sources import gather
from kdmaps.diagnostics.projection import Projection, evaluate
from kdmaps.diagnostics.resampling import Resampling, basic_intervals
from kdmaps.dynamics._koopman_trust import MAX_NOISE, KoopmanTrust, noise_of, reproducibility, tested
from kdmaps.dynamics._timescales import check_lag
from kdmaps.dynamics._without_noise import (
    TrustWithoutNoise,
    evaluate_eigenfunctions,
    intervals_of,
    spectrum_of,
    trust_of,
)
from kdmaps.estimators.arguments import model_and_samples
from kdmaps.estimators.prediction import checked_propagator
from kdmaps.estimators.transformer import ModeTransformer, checked_source
from kdmaps.exceptions import NotApplicable, Undetermined
from kdmaps.forms.moments import chunk_rows
from kdmaps.propagation.propagator import Propagator
from kdmaps.spectrum.directed import Eigenfunctions, eigenfunctions, invariant_functions, smallest_residuals, two_sided
from kdmaps.spectrum.pencil import fewer_modes
from kdmaps.summary import show_interval
from kdmaps.utils.frames import aligned, records, split_rows
from kdmaps.utils.notebook import TableCard
from kdmaps.utils.numbers import rounded
from kdmaps.utils.threads import one_blas_thread
from kdmaps.utils.types import RandomStateLike, SamplesLike
from kdmaps.utils.validation import as_numbers, checked_values, checked_weight, unit_weight


@dataclass(frozen=True, eq=False)
class Koopman(TableCard):
    """Spectrum of the Koopman operator on the modes of a model, the result of `koopman`."""

    eigenvalues: np.ndarray  #: (r,) complex: λ after one lag, the slowest decay first; conjugate pairs are adjacent.
    #: (r,) complex: ln λ/lag, in the unit of `time_step`: decay (negative real part) and angular frequency.
    rates: np.ndarray
    duration: float  #: The lag as a time; frequencies above π/duration cannot be distinguished from lower ones.
    confidence: float = 0.95  #: Confidence level of the intervals.
    #: (r, 2) complex: lower and upper ends of the real parts and of the imaginary parts of the rates; None without X.
    intervals: np.ndarray | None = None
    samples: np.ndarray | None = None  #: (n_resamples, r) complex: eigenvalues of the resamples; None without X.
    trust: KoopmanTrust | None = None  #: Tests on held-out frames; None without X, or without three frames in a row.
    #: (r,): share of the coordinates that each pair explains, in whose order they come; only of deterministic systems.
    shares: np.ndarray | None = None
    products: list[str] | None = None  #: (r,): other eigenvalues whose product each one is, as "1·1", or "".
    checks: Checks = field(default_factory=Checks, repr=False)  #: Checks of the frames and of the eigenfunctions.
    _model: Any = field(default=None, repr=False)
    _functions: Any = field(default=None, repr=False)  # f, then g
    _spectrum: Any = field(default=None, repr=False)
    _frames: Any = field(default=None, repr=False)  # functions at X and weights, for observables
    _folds: Any = field(default=None, repr=False)  # sums of training and of held-out pairs, for pseudo-spectra

    @property
    def periods(self) -> np.ndarray:
        """2π/|angular frequency|; infinite for eigenvalues that do not oscillate; (r,)."""
        with np.errstate(divide="ignore"):
            return 2 * np.pi / np.abs(self.rates.imag)

    @one_blas_thread()
    def eigenfunctions(self, X: SamplesLike) -> Any:
        """Evaluate the eigenfunctions ψ, E[ψ(x_{t+τ}) | x_t] = λψ(x_t), of unit variance.

        Parameters
        ----------
        X : array-like of shape (n_samples, d), list of such arrays, path, stream of chunks

        Returns
        -------
        values : complex ndarray of shape (n_samples, r); for a list of arrays a list
        """
        return self._evaluated(X, slice(0, len(self.rates)), self._spectrum.right)

    @one_blas_thread()
    def left_eigenfunctions(self, X: SamplesLike) -> Any:
        """Evaluate the left eigenfunctions ξ, biorthogonal to the eigenfunctions: E[ξ̄_i ψ_j] = δ_ij.

        ξ times the stationary density is an eigenfunction of the Perron–Frobenius operator.

        Parameters
        ----------
        X : array-like of shape (n_samples, d), list of such arrays, path, stream of chunks

        Returns
        -------
        values : complex ndarray of shape (n_samples, r); for a list of arrays a list
        """
        return self._evaluated(X, slice(len(self.rates), None), self._spectrum.left)

    @one_blas_thread()
    def modes(self, values: ArrayLike, X: SamplesLike = None, sample_weight: ArrayLike | None = None) -> np.ndarray:
        """Return the modes of an observable, its coefficients E[ξ̄_j h] in the eigenfunctions.

        E[h(x_{t+kτ}) | x_t] ≈ E h + Σ_j λ_j^k ψ_j(x_t) E[ξ̄_j h]. For the coordinates of the system these are the
        dynamic modes.

        Parameters
        ----------
        values : array-like of shape (n_samples,) or (n_samples, m)
            The observable, or m observables, at the samples.
        X : array-like of shape (n_samples, d), optional
            The samples; by default the X of `koopman`.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of these samples.

        Returns
        -------
        modes : complex ndarray of shape (r,) or (r, m)
        """
        right, left, weight = self._at(X, sample_weight)
        values = checked_values(values, len(left))
        if self.shares is not None:
            return _regressed(right, values, weight)[1:]
        return (left.conj() * weight[:, None]).T @ (values - weight @ values)

    @one_blas_thread()
    def projection(self, values: ArrayLike, X: SamplesLike = None, sample_weight: ArrayLike | None = None) -> Any:
        """Return the part of an observable that the eigenfunctions explain, E h + Σ_j ψ_j E[ξ̄_j h], at the samples.

        Parameters
        ----------
        values, X, sample_weight :
            As in `modes`.

        Returns
        -------
        projection : ndarray of shape (n_samples,) or (n_samples, m)
        """
        right, _, weight = self._at(X, sample_weight)
        if self.shares is not None:
            constant, *modes = _regressed(right, checked_values(values, len(right)), weight)
            return np.real(constant + right @ np.array(modes))
        return weight @ checked_values(values, len(right)) + (right @ self.modes(values, X, sample_weight)).real

    @one_blas_thread()
    def pseudospectrum(self, points: ArrayLike) -> np.ndarray:
        """Return the smallest residual √(E|g(y) - λg(x)|²/E|g(x)|²) at complex numbers λ, for deterministic systems.

        The λ with a residual below ε are the ε-pseudospectrum: an eigenvalue that lies outside for a small ε is an
        artefact of the features. The function g, about its mean, minimises the residual without a block of the
        frames, and the residual is measured in this block. Noisy systems are refused: their residuals contain the
        noise, 1 - |λ|² at eigenvalues; use `trust`.

        Parameters
        ----------
        points : array-like of complex numbers

        Returns
        -------
        residuals : ndarray of the shape of points

        Examples
        --------
        >>> import warnings, numpy as np, kdmaps
        >>> x = np.random.default_rng(0).uniform(-1, 1, size=(500, 1))  # x → x/2: eigenvalues 1/2, 1/4, …
        >>> X, pairs = np.vstack([x, x / 2]), np.tile(np.arange(500), 2)
        >>> settings = {"bandwidth": 1.0, "regularization": 1e-8, "n_features": 30, "random_state": 0}
        >>> m = kdmaps.KernelDiffusionMap(2, lag=1, reversible=False, **settings)
        >>> with warnings.catch_warnings(action="ignore"):  # nothing is noisy: λ exceeds the energy
        ...     k = kdmaps.dynamics.koopman(m.fit(X, groups=pairs), X, groups=pairs)
        >>> found = k.pseudospectrum([0.5, 0.25, 0.7])
        >>> bool(found[:2].max() < 1e-3), bool(found[2] > 0.02)
        (True, True)
        """
        if self.shares is not None:
            raise NotApplicable(
                "Eigenvalues of this system come from forecasts of its coordinates, without a kernel: see trust. For "
                "residuals of a kernel, fit KernelDiffusionMap with {reversible:False}."
            )
        if self._frames is None:
            raise ValueError("pseudospectrum needs held-out pairs of frames: give X to koopman.")
        if (noise := noise_of(self._model)) > MAX_NOISE:
            raise ValueError(
                f"The system is noisy: at least {noise:.1%} of the change of any mode in one lag is unpredictable "
                f"(limit {MAX_NOISE:.0%}), and residuals contain this noise at every λ. Use koopman(model, X).trust."
            )
        points = np.asarray(points, dtype=complex)
        error, size = np.sum([smallest_residuals(points.ravel(), *fold) for fold in self._folds], axis=0)
        return np.sqrt(np.maximum(error, 0) / size).reshape(points.shape)

    def _at(self, X: SamplesLike, sample_weight: ArrayLike | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return eigenfunctions, left eigenfunctions and weights at samples."""
        spectrum, r = self._spectrum, len(self.rates)
        if X is None:
            if self._frames is None:
                raise ValueError("Give X, the samples of the values; koopman was called without samples.")
            functions, weight = self._frames
        else:
            functions = np.asarray(self._evaluated(join_trajectories(X)[0], slice(None), np.eye(2 * r)))
            weight = checked_weight(sample_weight, functions)
        return functions[:, :r] @ spectrum.right, functions[:, r:] @ spectrum.left, unit_weight(weight, len(functions))

    def _evaluated(self, X: SamplesLike, columns: slice, coefficients: np.ndarray) -> Any:
        """Evaluate combinations of some of the functions at samples."""
        if self.shares is not None:
            psi, lengths = evaluate_eigenfunctions(self._model, X)
            values = np.hstack([psi, psi])[:, columns] @ coefficients
            return values if lengths is None else split_rows(values, lengths)
        X, _, lengths = join_trajectories(X)
        source, known = checked_source(self._model, X), self._functions
        self._model._warn_of_extrapolation(source)
        chosen = ModeBasis(known.basis, known.coefficients[:, columns], known.offset[columns])
        size = chunk_rows(known.basis, 0, getattr(self._model, "memory_limit", None))
        values = source.project(chosen, np.ones(chosen.n_features), size) @ coefficients
        return values if lengths is None else split_rows(values, lengths)

    def table(self) -> list[dict[str, Any]]:
        """Return one row of plain data per eigenvalue, for example for `pandas.DataFrame`."""
        columns = {"eigenvalue": np.arange(len(self.rates)) + 1, "real": self.eigenvalues.real}
        columns |= {"imaginary": self.eigenvalues.imag, "decay": -self.rates.real, "frequency": self.rates.imag}
        columns["period"] = self.periods
        if self.intervals is not None:
            low, high = self.intervals.T
            columns |= {"decay_low": -high.real, "decay_high": -low.real}
            columns |= {"frequency_low": low.imag, "frequency_high": high.imag}
            slow, fast = np.sort(np.abs([low.imag, high.imag]), axis=0)
            slow = np.where(low.imag * high.imag > 0, slow, 0)
            with np.errstate(divide="ignore"):
                columns |= {"period_low": 2 * np.pi / fast, "period_high": 2 * np.pi / slow}
        if self.trust is not None:
            columns |= {name: getattr(self.trust, name) for name in ("agreement", "overfit", "residuals", "ok")}
        if self.shares is not None:
            columns |= {"share": self.shares, "product": np.array(self.products)}
        if isinstance(self.trust, TrustWithoutNoise):
            columns |= {"growth": self.trust.growth, "others": self.trust.others}
        return records(**columns)

    def __repr__(self) -> str:
        titles, rows = self.cells()
        return "\n".join([f"Koopman operator, lag {self.duration:.4g}", *aligned([titles, *rows])])

    @property
    def dynamic_modes(self) -> np.ndarray:
        """The dynamic modes v_j of the columns of X, by regression on ψ_j λ_j^h for several lags h; (r, d) complex."""
        return self._propagator.modes

    @one_blas_thread()
    def reconstruct(self, times: ArrayLike, at: SamplesLike) -> np.ndarray:
        """Return the columns of X at times after given frames, by the eigenpairs: c + Σ_j v_j e^{rate_j t} ψ_j(x).

        With v_j the `dynamic_modes`; the amplitudes are `eigenfunctions(at)`. `predict` of the model is more accurate
        where a few eigenfunctions do not explain the columns.

        Parameters
        ----------
        times : float or array-like of shape (n_times,)
            In the unit of `time_step`.
        at : array-like of shape (n_points, d)
            Frames at time 0.

        Returns
        -------
        values : ndarray of shape (n_points, d), or (n_times, n_points, d) for several times
        """
        given = as_numbers("times", times, "a number, or numbers")
        points = np.asarray(gather(checked_source(self._model, join_trajectories(at)[0])), dtype=np.float64)
        values = self._propagator.reconstruct(points, np.atleast_1d(given) / self.duration)
        return values if given.ndim else values[0]

    @property
    def _propagator(self) -> Propagator:
        if self.shares is None:
            raise NotApplicable(
                "Only deterministic systems are reconstructed by a few eigenpairs; for others use forecast, or predict "
                "of the model."
            )
        return checked_propagator(self._model)

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return titles and rows of a table of eigenvalues as text; of a conjugate pair, only the first is shown."""
        level, rows = f"{100 * self.confidence:g} % interval", []
        for row in self.table():
            if row["frequency"] < 0:
                continue
            cells = [("", f"{'' if row.get('ok', True) else '⚠ '}{row['eigenvalue']}")]
            for title, name in (("period", "period"), ("decay rate", "decay")):
                shown, interval = self._shown(row, name)
                cells += [(title, shown), *([] if self.intervals is None else [(level, interval)])]
            if self.trust is not None:
                cells += [("agreement of folds", f"{row['agreement']:.2f}"), ("residual", f"{row['residuals']:.2g}")]
            if self.shares is not None:
                cells += [("share", f"{row['share']:.2g}"), ("product", row["product"])]
            rows.append(cells)
        return [title for title, _ in rows[0]], [[cell for _, cell in cells] for cells in rows]

    def _shown(self, row: dict[str, Any], name: str) -> tuple[str, str]:
        """Return a value of the table and its interval as text; nothing for the period of a real eigenvalue."""
        if np.isinf(row[name]):
            return "", ""
        ends = np.array([row.get(f"{name}_low"), row.get(f"{name}_high")])
        return rounded(row[name]), "" if self.intervals is None else show_interval(ends)

    def slowest(self, unit: str | None = None) -> str:
        """Return the oscillation that lasts longest in words; without one, the slowest decay."""
        rows = self.table()
        turning = [row for row in rows if row["frequency"] > 0]

        def words(name: str, of: str) -> str:
            value, interval = self._shown((turning or rows)[0], name)
            return f"{value}{'' if unit is None else of + unit}{f' ({interval})' if interval else ''}"

        period, decay = words("period", " "), words("decay", "/")
        return f"Oscillation with period {period}, decay rate {decay}" if turning else f"Slowest decay rate {decay}"


@one_blas_thread()
@recorded
def koopman(
    model: ModeTransformer,
    X: SamplesLike = None,
    *,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    n_resamples: int = 200,
    confidence: float = 0.95,
    random_state: RandomStateLike = 0,
) -> Koopman:
    """Compute eigenvalues and eigenfunctions of the Koopman operator from a model fitted with `reversible=False`.

    The operator maps a function h to E[h(x_{t+τ}) | x_t]. For systems that are driven, oscillate or are deterministic
    its eigenvalues are complex: the rate ln λ/τ is a decay and an angular frequency.

    Parameters
    ----------
    model : fitted estimator, with a lag and reversible=False
    X : array-like of shape (n_frames, d), list of such arrays, path of a file, optional
        The training frames, for intervals and tests on held-out frames. Without X, eigenvalues and eigenfunctions come
        from the sums that the model contains.
    groups, sample_weight : array-like of shape (n_frames,), optional
        Trajectory of each frame, and its weight; pairs stay in one trajectory and have the weight of their first frame.
    n_resamples, confidence : int, default=200, and float, default=0.95
        Number of resamples of the block bootstrap, and confidence level of the intervals.
    random_state : int, RandomState instance or None, default=0

    Returns
    -------
    Koopman

    Warns
    -----
    UnreliableModesWarning
        If eigenfunctions fail the tests on held-out frames; without X, if the folds of a search disagree about them.

    Notes
    -----
    All features of second frames are regressed on all features of first frames, with the λ of the model. The leading
    eigenfunctions of this operator span r functions f; f(y) is regressed on f(x) again, without λ: an r×r matrix. (The
    singular functions of the model would be enough in equilibrium; after a short lag they are only the smoothest
    functions.) Left eigenfunctions come from the left eigenvectors, by regression of first on second frames. There are
    r + 1 eigenvalues if r would cut a conjugate pair. Intervals are basic bootstrap intervals over blocks of frames,
    for fixed functions.

    If held-out frames show that the system is deterministic (`model.propagator_.law`), eigenvalues come from the
    dictionary whose forecasts of the coordinates after several lags are best: the coordinates themselves, a kernel, or
    a sum of exponentials. They are ordered by the share of the coordinates that they explain, X may be left out, and
    intervals are those of a jackknife over blocks.

    References
    ----------
    Kostic, V. et al. (2022). Learning dynamical systems via Koopman operator regression in reproducing kernel Hilbert
    spaces. NeurIPS 35.

    Examples
    --------
    >>> import numpy as np, kdmaps
    >>> turn = np.exp(0.1 * (-0.2 + 2j))  # a noisy oscillator: exact rates -0.2±2i
    >>> noise = np.random.default_rng(0).normal(size=(5000, 2)) @ [1, 1j] * np.sqrt(1 - abs(turn) ** 2)
    >>> path = [0j]
    >>> for step in noise:
    ...     path.append(turn * path[-1] + step)
    >>> X = np.column_stack([np.real(path), np.imag(path)])
    >>> settings = {"bandwidth": 8.0, "regularization": 1e-4, "n_features": 50, "random_state": 0}
    >>> m = kdmaps.KernelDiffusionMap(2, lag=1, time_step=0.1, reversible=False, **settings).fit(X)
    >>> k = kdmaps.dynamics.koopman(m, X)
    >>> bool(abs(k.rates[0].imag - 2) < 0.1)
    True
    """
    resampling = Resampling(n_resamples, confidence, random_state)
    model, X = model_and_samples(model, X, ModeTransformer)
    check_lag(model)
    fitted: Any = getattr(model, "best_estimator_", model)
    if fitted.right_modes_ is None:
        raise NotApplicable(
            "model was fitted with {reversible:True}; its rates are real. Fit it with {reversible:False}."
        )
    propagator = getattr(model, "propagator_", None)
    if propagator is not None and propagator.is_deterministic:
        return _without_noise(model, propagator, X, sample_weight, float(confidence))
    modes, basis, sums = fitted.modes_, fitted.basis_, two_sided(fitted.moments_)
    first, second = invariant_functions(sums, basis.ridge, fitted.regularization, len(modes.eigenvalues))
    asked = len(modes.eigenvalues)
    if not first.shape[1]:
        raise Undetermined("The frames determine no eigenfunction; use more distinct frames.")
    warn_of([fewer_modes(min(first.shape[1], asked), asked)])
    both = np.hstack([first, second])
    functions = ModeBasis(basis, both, np.concatenate([sums.first_mean @ first, sums.second_mean @ second]))
    spectrum = eigenfunctions(two_sided(fitted.moments_.reduced(both)))
    duration = modes.clock.duration
    found: dict[str, Any] = {"_model": fitted, "_functions": functions, "_spectrum": spectrum}
    found["confidence"] = float(confidence)
    if X is not None:
        X, groups, _ = join_trajectories(X, groups, sample_weight)
        source = checked_source(fitted, X)
        weight = checked_weight(sample_weight, source)
        frames = evaluate(functions, modes, source, groups, weight, getattr(fitted, "memory_limit", None))
        known = (frames.in_order_of_rows(frames.values), weight)
        found |= {"_frames": known, **_intervals(frames, spectrum, duration, resampling)}
        trust, found["_folds"] = tested(fitted, spectrum.values, first @ spectrum.right, source, groups, weight, frames)
        found["trust"] = trust
        warn_of([] if trust is None else trust.checks)
    elif model.trust_ is not None and model.trust_.eigenfunctions is not None and model.trust_.overfit is not None:
        warn_of(reproducibility(model.trust_.eigenfunctions, model.trust_.overfit))
    return Koopman(spectrum.values, _rates(spectrum.values, duration), duration, **found)


def _without_noise(
    model: Any, propagator: Propagator, X: SamplesLike, sample_weight: ArrayLike | None, confidence: float
) -> Koopman:
    """Return the eigenpairs that the propagator of a deterministic system found."""
    spectrum, found_products, raised = spectrum_of(propagator)
    values, duration = spectrum.values, model.modes_.clock.duration
    frames = None
    if X is not None:
        psi, _ = evaluate_eigenfunctions(model, X)
        frames = (np.hstack([psi, psi]), checked_weight(sample_weight, psi))
    trust = trust_of(values, propagator.tests)
    warn_of([*raised, *trust.checks])
    return Koopman(
        values,
        _rates(values, duration),
        duration,
        confidence,
        **intervals_of(values, propagator.tests, duration, confidence),
        trust=trust,
        shares=propagator.pairs.shares[: len(values)],
        products=found_products,
        _model=model,
        _spectrum=spectrum,
        _frames=frames,
    )


def _regressed(right: np.ndarray, values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the coefficients of the constant and the eigenfunctions in the regression of values on them."""
    root = np.sqrt(weight)
    design = np.column_stack([np.ones(len(right)), right]) * root[:, None]
    scaled = values * (root if values.ndim == 1 else root[:, None])
    return np.linalg.lstsq(design, scaled.astype(complex), rcond=None)[0]


def _rates(values: np.ndarray, duration: float) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(values) / duration


def _intervals(
    frames: Projection, spectrum: Eigenfunctions, duration: float, resampling: Resampling
) -> dict[str, np.ndarray]:
    """Return the eigenvalues of resampled blocks of frames, and intervals of the rates.

    To first order, the error of λ is the mean of ψ̄(x)(ψ(y) - λψ(x)), whose correlation time determines the blocks. ψ
    itself may be correlated over the whole trajectory, but noise in one lag is independent of noise in the next.
    """
    psi = frames.values[:, : len(spectrum.values)] @ spectrum.right
    first, second = frames.pairs(frames.lag, slice(0, len(psi)))
    errors = np.zeros_like(psi)
    errors[first] = psi[first].conj() * (psi[second] - spectrum.values * psi[first])
    errors = np.hstack([errors.real, errors.imag])
    frames = replace(frames, values=errors, n_modes=errors.shape[1]).with_values(frames.values)
    moments, values = frames.moments(frames.lag), spectrum.values
    samples = []
    try:
        with np.errstate(invalid="ignore", divide="ignore"):
            for counts in resampling.counts(len(frames.blocks)):
                others = eigenfunctions(two_sided(moments.combine(counts))).values
                samples.append(others[linear_sum_assignment(np.abs(others - values[:, None]))[1]])
    except np.linalg.LinAlgError as error:
        raise Undetermined("X does not determine the eigenfunctions; use longer trajectories, or X=None.") from error
    # Relative to λ, so that no rate jumps by 2π/τ where eigenvalues are negative.
    changes, rates = np.log(np.array(samples) / values) / duration, _rates(values, duration)
    n, level = len(frames.blocks), resampling.confidence
    parts = [
        basic_intervals(getattr(rates, part), getattr(rates, part) + getattr(changes, part), level, n)
        for part in ("real", "imag")
    ]
    return {"samples": np.array(samples), "intervals": parts[0] + 1j * parts[1]}
