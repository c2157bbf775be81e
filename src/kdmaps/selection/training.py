"""Candidates made of the training samples of each fold: no test sample contributes to landmarks, metrics or bandwidths.

A kernel at landmarks, in a metric of modes, or with refined bandwidths depends on samples. Evaluated on samples that it
was made of, it scores too high. Here every fold makes its own from its training samples, and the modes of the folds are
aligned by their values at common samples.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from kdmaps.bases import Basis, BasisSpec, ModeBasis, select_landmarks
from kdmaps.data.distances import median_distance
from kdmaps.data.pairs import PairSource
from kdmaps.data.sources import Form, Sample, Source
from kdmaps.diagnostics.relevance import gradient_products, metric_matrix
from kdmaps.exceptions import Undetermined
from kdmaps.forms.energy import EnergyForm
from kdmaps.forms.moments import Moments, sum_moments
from kdmaps.kernels import Kernel, Metric
from kdmaps.selection.candidate import Axes, Recipe, Trial
from kdmaps.selection.cross_fit import CrossFit, FoldFit, Operators, make_fold_fit, seen_frame
from kdmaps.selection.plan import FitSpec
from kdmaps.selection.roots import axis_root, metric_root
from kdmaps.spectrum.directed import doubled, doubled_ridge, modes_of
from kdmaps.spectrum.iteration import STEPS, cross_fit_path
from kdmaps.utils.threads import map_ordered
from kdmaps.utils.validation import unit_weight

#: Samples over which gradients of modes are averaged, for an error of 2 %.
TYPICAL_SAMPLES = 2_000
#: A search uses at most this part of the samples as landmarks; the final fit may use all.
LANDMARK_PART = 1 / 4

#: Makes the kernel of some training samples; None if they do not determine it.
KernelOf = Callable[["Training"], Kernel | None]


@dataclass(frozen=True, eq=False)
class Training:
    """The training samples of a fold, or all samples, and everything that is made of them."""

    source: Source  # all samples of the search
    form: Form
    weight: np.ndarray | None
    labels: np.ndarray  # 1 for the samples of this set, 2 for test samples; (n_samples, 1)
    drawn: Sample  # some of the samples of this set
    fit: FitSpec
    bases: Sequence[BasisSpec]
    seed: int
    _landmarks: dict[int, np.ndarray] = field(default_factory=dict)
    _roots: dict[Recipe | Axes, np.ndarray | None] = field(default_factory=dict)
    _sums: dict[tuple[Kernel, str], tuple[Basis, Moments, Moments]] = field(default_factory=dict)

    @cached_property
    def typical(self) -> Sample:
        """A random subsample, for averages."""
        few = self.drawn.thinned(TYPICAL_SAMPLES, self.seed)
        return few._replace(X=np.asarray(few.X, dtype=np.float64))

    @cached_property
    def median(self) -> float:
        """Median distance of these samples."""
        return median_distance(self.drawn.X, self.drawn.weight, self.seed)

    def basis(self, kernel: Kernel, name: str, part: float = LANDMARK_PART) -> Basis:
        """Make the basis of a kernel of these samples, with at most this part of them as landmarks."""
        return self.spec(name, part).make(kernel, self.drawn.X, self.drawn.weight, self.seed)

    def spec(self, name: str, part: float = LANDMARK_PART) -> BasisSpec:
        """Return the settings of a basis by its name, with at most this part of the samples as landmarks."""
        spec = next(spec for spec in self.bases if spec.basis == name)
        if name != "landmarks":
            return spec
        _, X, weight = self.drawn
        used = X if weight is None else X[weight > 0]
        most = min(spec.n_features, max(self.fit.n_components + 1, int(part * len(used))))
        if most not in self._landmarks:
            self._landmarks[most] = select_landmarks(used, most, spec.landmarks, self.seed)
        return replace(spec, landmarks=self._landmarks[most])

    def with_features(self, n_features: int | None) -> Self:
        """Return the same samples with bases of this number of features; metrics of modes stay as they are."""
        if n_features is None:
            return self
        return replace(
            self, bases=[replace(spec, n_features=n_features) for spec in self.bases], _landmarks={}, _sums={}
        )

    def kernel(self, kernel: Kernel, origin: Recipe | Axes | None) -> Kernel | None:
        """Return a kernel in the metric of the functions of `origin`; None if the samples do not determine them."""
        root = None if origin is None else self.root(origin)
        return kernel if origin is None else None if root is None else Metric(kernel, root)

    def root(self, origin: Recipe | Axes) -> np.ndarray | None:
        """Return H of the metric HHᵀ of some functions, scaled to keep the median distance of the inputs.

        Expected gradient outer products: active subspaces, and "recursive feature machines" in regression. None if the
        samples do not determine the functions, or their gradients are not finite.
        """
        if origin not in self._roots:
            few = self.typical
            if isinstance(origin, Axes):
                share = unit_weight(few.weight, len(few.X))
                second = self.source.second_frames(few.rows) if isinstance(self.source, PairSource) else None
                tensor = self.form.tensor if isinstance(self.form, EnergyForm) else None
                root = axis_root(few, share, self.fit.n_components, origin.components, tensor, second)
            else:
                root = self._mode_root(few, origin)
            if root is not None:
                root = root * (self.median / median_distance(few.X, few.weight, self.seed, root))
            self._roots[origin] = root
        return self._roots[origin]

    def _mode_root(self, few: Sample, recipe: Recipe) -> np.ndarray | None:
        """Return H of the modes of a recipe, before it is scaled."""
        kernel = self.kernel(recipe.kernel, recipe.origin)
        if kernel is None:
            return None
        (basis, moments, _), fit = self.sums(kernel, recipe.basis), self.fit
        try:
            problem = (basis.ridge, fit.n_components, recipe.regularization, fit.center, fit.clock)
            modes, right = modes_of(moments, *problem)
        except Undetermined:  # with all features, rounding leaves fewer modes than with those of the screening
            return None
        ends = [modes] if right is None else [modes, right]
        functions = (np.hstack([m.coefficients for m in ends]), np.concatenate([m.offset for m in ends]))
        share = unit_weight(few.weight, len(few.X))
        products, frame = gradient_products(ModeBasis(basis, *functions), few.X, share)
        matrix = metric_matrix(products, modes)
        if not np.all(np.isfinite(matrix)) or not np.trace(matrix) > 0:
            return None
        return metric_root(matrix, frame)

    def sums(self, kernel: Kernel, basis_name: str) -> tuple[Basis, Moments, Moments]:
        """Return the basis of a kernel, and its sums over these samples and over the test samples.

        The last ones are kept: the modes of a kernel also define the next metric, and the best kernel is solved again.
        """
        key = kernel, basis_name
        found = self._sums.get(key)
        if found is None:
            basis = self.basis(kernel, basis_name)
            train, test = self.source.moments(self.form, basis, self.weight, self.labels, [(0, 1), (0, 2)])
            found = basis, train, test
            self._sums.clear()
            self._sums[key] = found
        return found


class _SetFit(NamedTuple):
    """Modes of one set of samples at one λ, and their centred values at common samples."""

    fold: FoldFit
    condition_number: float
    values: np.ndarray
    trained: np.ndarray  # which of these samples belong to the set


def fit_by_fold(
    everything: Training,
    trainings: Sequence[Training],
    trial: Trial,
    kernel_of: KernelOf,
    iteration: dict[str, Any] | None = None,
) -> list[CrossFit | None]:
    """Fit a kernel that every fold makes of its own training samples, at every λ of a trial.

    The modes of the folds are aligned to the modes of all samples (`everything`), whose kernel is the kernel of the
    trial, by their values at `everything.typical`. Solutions are exact, or found with options of `cross_fit_path`.
    """
    rows, X, weights = everything.typical
    share, center, lambdas = unit_weight(weights, len(X)), everything.fit.center, trial.lambdas

    def solved(training: Training, own: Kernel, whole: bool = False) -> tuple[list[_SetFit | None], float, float]:
        start, (basis, train, test) = time.perf_counter(), training.sums(own, trial.basis)
        found = _solve(train, train if whole else test, basis, training.fit, lambdas, iteration)
        features = basis.features(X)
        features = features - center * (share @ features)
        trained = np.tile(training.labels[rows, 0] == 1, 1 if train.flow is None else 2)
        fits = [fit and _SetFit(*fit, _values(features, fit[0].coefficients), trained) for fit in found]
        return fits, train.weight, (time.perf_counter() - start) / len(lambdas)

    kernels = list(map_ordered(trainings, kernel_of))
    if any(own is None for own in kernels):
        return [None] * len(lambdas)
    reference, weight, _ = solved(everything, trial.kernel, whole=True)
    paths = list(map_ordered(zip(trainings, kernels, strict=True), lambda pair: solved(*pair)))
    seconds = [spent for *_, spent in paths]
    share = share if everything.fit.reversible else np.tile(share, 2) / 2
    joined: list[CrossFit | None] = []
    for i, own in enumerate(reference):
        folds = [path[i] for path, *_ in paths]
        known = own is not None and all(fold is not None for fold in folds)
        joined.append(_joined(own, folds, share, weight, seconds, center) if known else None)  # type: ignore[arg-type]
    return joined


def _values(features: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Return the modes at samples; functions of the second end of a lag follow the functions of the first."""
    return np.vstack([features @ end for end in np.split(coefficients, len(coefficients) // features.shape[1])])


def _solve(
    train: Moments,
    test: Moments,
    basis: Basis,
    fit: FitSpec,
    lambdas: Sequence[float],
    iteration: dict[str, Any] | None,
) -> list[tuple[FoldFit, float] | None]:
    """Fit the modes of training samples at every λ, with the condition number of L+λR; None if undetermined."""
    ridge, center = basis.ridge, fit.center
    if train.flow is not None:
        train, test, ridge = doubled(train), doubled(test), doubled_ridge(ridge)
    frame = seen_frame(sum_moments([train, test]), ridge)
    own, other = (Operators(part, ridge, center, frame) for part in (train, test))
    if iteration is None:
        solutions = [own.modes(fit.n_components, lam) for lam in lambdas]
        conditions = [own.path.condition_number(lam) for lam in lambdas]
    else:
        sums = train if frame is None else train.reduced(frame)
        # As closely as the modes of a fold, whose steps start from the modes of all samples.
        options = {**iteration, "steps": np.array([np.sum(iteration.get("steps", STEPS)), 0])}
        problem = ([sums], ridge, np.array(lambdas), fit.n_components, center)
        path = cross_fit_path(np.ones((1, 1), dtype=bool), *problem, **options)
        solutions = [(path.values[i, 0], path.modes[i, 0].T) if path.known[i] else None for i in range(len(lambdas))]
        conditions = [np.nan] * len(lambdas)
    return [
        None if modes is None else (make_fold_fit(own, other, *modes, float(lam)), condition)
        for lam, modes, condition in zip(lambdas, solutions, conditions, strict=True)
    ]


def _joined(
    reference: _SetFit, folds: Sequence[_SetFit], share: np.ndarray, weight: float, seconds: list[float], center: bool
) -> CrossFit:
    """Align the modes of the folds to the modes of all samples by their values at common samples."""
    root = np.sqrt(share)[:, None]
    unit = np.linalg.qr(root * reference.values)[0]  # modes have unit variance over all samples, not over these
    overlaps = np.stack([(root * fold.values).T @ unit for fold in folds])
    trained = [_covariance(fold.values, reference.values, share, fold.trained, center) for fold in folds]
    left, _, right = np.linalg.svd(np.stack(trained))  # test samples do not take part in the alignment
    return CrossFit(
        folds=[fold.fold for fold in folds],
        coefficients=reference.fold.coefficients,
        rotations=left @ right,
        eigenvalues=reference.fold.eigenvalues,
        rates=np.diagonal(reference.fold.train_energy),
        coverage=sum(fold.fold.test_weight for fold in folds) / weight,
        overlaps=overlaps,
        spreads=np.stack([fold.values.T @ (share[:, None] * fold.values) for fold in folds]),
        condition_number=reference.condition_number,
        seconds=seconds,
    )


def _covariance(
    values: np.ndarray, others: np.ndarray, share: np.ndarray, rows: np.ndarray, center: bool
) -> np.ndarray:
    """Return the covariance of functions over some of the samples, or their second moments."""
    values, others, weight = values[rows], others[rows], share[rows] / share[rows].sum()
    return (values - center * (weight @ values)).T @ (weight[:, None] * others)
