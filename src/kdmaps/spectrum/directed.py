"""Pairs of frames without time reversal: singular functions at both ends of a lag, and the Koopman operator."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import linalg, optimize

from kdmaps.exceptions import Undetermined
from kdmaps.forms.moments import Moments
from kdmaps.spectrum.modes import NO_LAG, Clock, Modes
from kdmaps.spectrum.pencil import ROUNDING, check_determined, find_modes

#: Powers of ten of rounding on the diagonal of a covariance, beyond which its features count as dependent.
MOST_ROUNDING = 7


class TwoSided(NamedTuple):
    """Covariances of the features of first frames x and second frames y about their means, and these means."""

    first: np.ndarray  # Cov[φ(x), φ(x)]
    second: np.ndarray  # Cov[φ(y), φ(y)]
    cross: np.ndarray  # Cov[φ(x), φ(y)]
    first_mean: np.ndarray
    second_mean: np.ndarray


def two_sided(moments: Moments) -> TwoSided:
    """Return the covariances of both ends of a lag."""
    assert moments.flow is not None
    assert moments.change is not None
    w = moments.weight
    gain, turn = (moments.flow + moments.flow.T) / (2 * w), (moments.flow - moments.flow.T) / (2 * w)
    first, second = (moments.total - moments.change) / w, (moments.total + moments.change) / w
    return TwoSided(
        moments.gram / w - gain - np.outer(first, first),
        moments.gram / w + gain - np.outer(second, second),
        (moments.gram - moments.energy) / w + turn - np.outer(first, second),
        first,
        second,
    )


def doubled(moments: Moments) -> Moments:
    """Return moments of the features (φ(x), φ(y)) about their means.

    For functions f(x) and g(y), the variance Var f + Var g and the energy E|f(x) - g(y)|², both about the means, have
    the quotient 1 - σ at the singular functions of the transfer operator; for f = g this is the quotient of
    `kdmaps.forms.lagged`.
    """
    C00, C11, C01, first, _ = two_sided(moments)
    energy = np.block([[C00, -C01], [-C01.T, C11]])
    numbers, w = (moments.count, moments.weight, moments.weight_squared), moments.weight
    return Moments(*numbers, np.zeros(2 * len(first)), w * linalg.block_diag(C00, C11), w * energy)


def doubled_ridge(ridge: np.ndarray | None) -> np.ndarray | None:
    """Return the regularization ‖f‖² + ‖g‖² of functions at both ends."""
    return None if ridge is None else linalg.block_diag(ridge, ridge)


def find_directed_modes(
    moments: Moments,
    ridge: np.ndarray | None,
    n_components: int,
    regularization: float,
    clock: Clock,
    fewer: bool = False,
) -> tuple[Modes, Modes]:
    """Return the most correlated functions f of first and g of second frames, longest time scale first.

    These are the singular functions of the transfer operator, of unit variance, from an eigenproblem of twice the size.
    The quotients are 1 - σ with the correlations σ of f and g; λ weighs ½(‖f‖² + ‖g‖²).
    """
    both = two_sided(moments)
    p = len(both.first_mean)
    # `doubled` has no means, by which `find_modes` detects that only rounding varies.
    varying = np.trace(both.first) + np.trace(both.second) > 10 * ROUNDING * np.trace(moments.gram) / moments.weight
    check_determined(np.full(n_components, varying))
    problem = (doubled(moments), doubled_ridge(ridge), n_components, regularization)
    modes = find_modes(*problem, center=False, clock=clock, fewer=fewer)
    known, r = modes.coefficients, modes.coefficients.shape[1]
    if modes.next_coefficients is not None:
        known = np.column_stack([known, modes.next_coefficients])
    a, b = _scaled(known[:p], both.first), _scaled(known[p:], both.second)
    # Without noise σ = 1, to rounding.
    quotients = np.maximum(1 - np.einsum("mk,mk->k", a, both.cross @ b), ROUNDING)
    order = np.argsort(quotients[:r], kind="stable")
    following = float(quotients[r]) if len(quotients) > r else np.nan
    # Without noise σ = 1 after any lag: it is not the autocorrelation of f, from which `find_modes` counts samples.
    count = moments.effective_count
    modes = replace(modes, quotients=quotients[:r], next_quotient=following, effective_count=count)
    left, right = (
        replace(
            modes, coefficients=m[:, :r], offset=mean @ m[:, :r], next_coefficients=m[:, r] if m.shape[1] > r else None
        )
        for m, mean in ((a, both.first_mean), (b, both.second_mean))
    )
    return left.take(order), right.take(order)


def modes_of(
    moments: Moments,
    ridge: np.ndarray | None,
    n_components: int,
    regularization: float,
    center: bool = True,
    clock: Clock = NO_LAG,
    fewer: bool = False,
) -> tuple[Modes, Modes | None]:
    """Return the modes of samples or pairs and, if the direction of time matters, the modes of second frames.

    Then, with `fewer`, functions that the pairs do not determine are left out.
    """
    if moments.flow is not None:
        return find_directed_modes(moments, ridge, n_components, regularization, clock, fewer)
    return find_modes(moments, ridge, n_components, regularization, center, clock), None


def directed_score(moments: Moments) -> float:
    """Return the VAMP-2 score Σσ² of functions (f, g), with the canonical correlations σ of f(x) and g(y)."""
    both, r = two_sided(moments), len(moments.total) // 2
    factors = [linalg.cholesky(C, lower=True) for C in (both.first[:r, :r], both.second[r:, r:])]
    cross = linalg.solve_triangular(factors[0], both.cross[:r, r:], lower=True)
    return float(np.sum(linalg.solve_triangular(factors[1], cross.T, lower=True) ** 2))


class Eigenfunctions(NamedTuple):
    """Eigenfunctions ψ_j = Σ_k V_kj f_k and left eigenfunctions ξ_j = Σ_k W_kj g_k of the Koopman operator.

    About the means, E[h(y) | x] = Σ_j λ_j ψ_j(x) E[ξ̄_j(y) h(y)] for the part of h that functions g of second frames
    span; E[ξ̄_i ψ_j] = δ_ij and E|ψ_j|² = 1.
    """

    values: np.ndarray  # (r,) complex: λ, the largest first; of a conjugate pair, the one with positive imaginary part
    right: np.ndarray  # (r, r) complex: V
    left: np.ndarray  # (r, r) complex: W


def eigenfunctions(sums: TwoSided) -> Eigenfunctions:
    """Return the eigenfunctions of the Koopman operator in the space of functions (f, g), the features of `sums`.

    f(y) is regressed on f(x), without λ; left eigenfunctions are the functions g that are biorthogonal to the result.
    """
    r = len(sums.first) // 2
    values, right = np.linalg.eig(np.linalg.solve(sums.first[:r, :r], sums.cross[:r, :r]))
    order = _slowest_first(values)
    values, right = values[order].astype(complex), right[:, order].astype(complex)
    right /= np.sqrt(np.einsum("ik,ij,jk->k", right.conj(), sums.first[:r, :r], right).real)
    return Eigenfunctions(values, right, np.linalg.inv(sums.second[r:, :r] @ right).conj().T)


def _slowest_first(values: np.ndarray) -> np.ndarray:
    return np.lexsort((-values.imag, -np.round(np.abs(values), 12)))


def invariant_functions(
    sums: TwoSided, ridge: np.ndarray | None, regularization: float, n_functions: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients of functions f(x) and g(y) that span the leading right and left eigenfunctions.

    The operator is the regression of all features of y on all features of x. Its leading eigenfunctions may be far from
    its leading singular functions: after a short lag every smooth function is predictable. λ shrinks eigenvalues, which
    are to be estimated again in this space. There is one function more if a conjugate pair would be cut.
    Functions whose variance is rounding, negative, are left out.
    """
    penalty = regularization * (np.eye(len(sums.first)) if ridge is None else ridge)
    forward, backward = (_factor(C, penalty) for C in (sums.first, sums.second))
    values, left, right = linalg.eig(linalg.cho_solve(forward, sums.cross), left=True)
    order = _slowest_first(values)
    n = n_functions + bool(n_functions < len(order) and values[order[n_functions - 1]].imag > 0)
    order = order[:n]
    left = linalg.cho_solve(backward, sums.cross.T @ linalg.cho_solve(forward, left[:, order]))
    first, second = (np.where(values[order].imag < 0, m.imag, m.real) for m in (right[:, order], left))
    varying = (_variances(first, sums.first) > 0) & (_variances(second, sums.second) > 0)
    return _scaled(first[:, varying], sums.first), _scaled(second[:, varying], sums.second)


def refit(
    train: Moments, covariance: np.ndarray, reference: np.ndarray, ridge: np.ndarray | None, regularization: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return eigenfunctions of some of the frames that match those of all frames, the `reference`.

    Returns coefficients, eigenvalues, and squared cosines with the reference, by the covariance of all first frames.
    Where these frames determine no function, it is 0, and so are its eigenvalue and its cosine.
    """
    n = reference.shape[1]
    functions = invariant_functions(two_sided(train), ridge, regularization, n)[0]
    found = eigenfunctions(two_sided(train.reduced(np.hstack([functions, functions]))))
    functions = functions @ found.right
    missing = max(n - functions.shape[1], 0)
    functions = np.pad(functions, ((0, 0), (0, missing)))
    values = np.pad(found.values, (0, missing))
    overlap = np.abs(functions.conj().T @ covariance @ reference) ** 2
    sizes = np.outer(*(np.einsum("ik,ik->k", m.conj(), covariance @ m).real for m in (functions, reference)))
    overlap = np.divide(overlap, sizes, out=np.zeros_like(overlap), where=sizes > 0)
    order = optimize.linear_sum_assignment(-overlap.T)[1]
    return functions[:, order], values[order], overlap[order, np.arange(len(order))]


def smoothest(sums: TwoSided, ridge: np.ndarray | None, most: int) -> np.ndarray:
    """Return coefficients of uncorrelated functions of unit variance with the smallest norms: kernel PCA."""
    values, vectors = linalg.eigh(sums.first, ridge)
    kept = values[::-1][:most] > 1e5 * ROUNDING * values[-1]  # the relative error of a variance is below 1e-5
    return (vectors / np.sqrt(np.maximum(values, np.finfo(float).tiny)))[:, ::-1][:, :most][:, kept]


def smallest_residuals(points: np.ndarray, train: TwoSided, test: TwoSided) -> np.ndarray:
    """Return E|g(y) - λg(x)|² and E|g(x)|² of test pairs for each of the numbers λ; (2, n_points).

    g minimises the quotient on training pairs (residual DMD, M. Colbrook and A. Townsend, Commun. Pure Appl. Math. 77,
    221 (2024)). The features of both sums are the functions among which g is sought.
    """

    def squares(sums: TwoSided, value: complex) -> np.ndarray:
        return abs(value) ** 2 * sums.first + sums.second - value * sums.cross.T - np.conj(value) * sums.cross

    found = np.empty((2, len(points)))
    for k, point in enumerate(points):
        g = linalg.eigh(squares(train, point), train.first, subset_by_index=[0, 0])[1][:, 0]
        found[:, k] = [(g.conj() @ C @ g).real for C in (squares(test, point), test.first)]
    return found


def held_out_tests(
    whole: Moments,
    parts: list[tuple[Moments, Moments]],
    ridge: np.ndarray | None,
    regularization: float,
    n_functions: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Test eigenfunctions ψ of the training pairs of each fold on its test pairs; each (r,).

    Returns the mean squared cosine between each eigenfunction of all pairs and its counterparts, and their error
    E|ψ(y) - λψ(x)|² in excess of 1 - |λ|², relative to |λ|².
    """
    sums = two_sided(whole)
    both = np.hstack(invariant_functions(sums, ridge, regularization, n_functions))
    values, right, _ = eigenfunctions(two_sided(whole.reduced(both)))
    agreement, errors = np.zeros(len(values)), np.zeros((2, len(values)))
    for train, test in parts:
        psi, known, cosines = refit(train, sums.first, both[:, : len(right)] @ right, ridge, regularization)
        agreement += cosines / len(parts)
        own = two_sided(test)
        first, second, cross = (np.einsum("ik,ik->k", psi.conj(), C @ psi) for C in own[:3])
        error = np.abs(known) ** 2 * first + second - 2 * (known.conj() * cross).real
        errors += test.weight * np.real([error, (first + second) / 2])
    return agreement, excess(errors[0] / errors[1], values)


def excess(errors: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return E|ψ(y) - λψ(x)|²/E|ψ|² in excess of 1 - |λ|², relative to |λ|²."""
    return (errors - 1) / np.abs(values) ** 2 + 1


def _factor(covariance: np.ndarray, penalty: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return the Cholesky factor of their sum, with as much more on the diagonal as rounding requires."""
    for rounding in (0.0, *(ROUNDING * 10.0 ** np.arange(MOST_ROUNDING))):
        try:
            return linalg.cho_factor(covariance + penalty + rounding * np.trace(covariance) * np.eye(len(covariance)))
        except np.linalg.LinAlgError:
            continue
    raise Undetermined("The features are linearly dependent; increase {regularization}, or use a narrower {bandwidth}.")


def _variances(coefficients: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return the variances of functions; rounding may leave a negative number."""
    return np.einsum("mk,mk->k", coefficients, covariance @ coefficients)


def _scaled(coefficients: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return functions of unit variance; 0 for functions without variance."""
    variances = _variances(coefficients, covariance)
    return coefficients / np.sqrt(np.where(variances > 0, variances, np.inf))


def propagator(moments: Moments) -> np.ndarray:
    """Return K = C₀₀⁻¹C₀₁ about the means: the regression of functions of second on first frames."""
    sums = two_sided(moments)
    return np.linalg.solve(sums.first, sums.cross)
