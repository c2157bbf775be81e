"""The generalized eigenproblem Σa = μ(L+λR)a of size p×p."""

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from kdmaps.checks import Check, or_fewer, rules, warn
from kdmaps.exceptions import ArgumentError, Undetermined
from kdmaps.forms.moments import Moments
from kdmaps.spectrum.modes import NO_LAG, Clock, Modes

#: Rounding of a number in single precision.
SINGLE_ROUNDING = 6e-8
#: Eigenvalues below this fraction of the largest one are rounding errors.
ROUNDING = 1e-15
#: Cause and remedy of matrices that cannot be factorised.
TOO_EXTREME = "X, sample_weight or diffusion has values that are too extreme; rescale or repair them."


def solve(
    covariance: np.ndarray, energy: np.ndarray, ridge: np.ndarray | None, n_modes: int, regularization: float
) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Top eigenpairs of Σa = μ(L+λR)a (eq:gen_eig_mat) by Cholesky reduction.

    Parameters
    ----------
    covariance, energy, ridge : ndarray of shape (p, p)
        Σ, L and R; R may be None for the identity.
    n_modes : int
        Number of pairs, at most p.
    regularization : float
        λ.

    Returns
    -------
    eigenvalues, coefficients : ndarray of shape (n_modes,), descending, and (p, n_modes)
        With aᵀ(L+λR)a = 1.
    condition_number, trace : float
        Estimate for L+λR in the 1-norm, and tr[(L+λR)⁻¹Σ].
    """
    p = covariance.shape[0]
    penalty = regularization * np.eye(p) if ridge is None else regularization * ridge
    penalty += energy
    norm = np.abs(penalty).sum(axis=0).max()
    factor = cholesky(penalty)
    reciprocal, _ = lapack.dpocon(factor, norm, uplo="L")
    reduced, _ = lapack.dsygst(covariance, factor, itype=1, lower=1)
    trace = float(np.trace(reduced))
    leading = [p - n_modes, p - 1]
    values, vectors = linalg.eigh(reduced, subset_by_index=leading, driver="evr", overwrite_a=True, check_finite=False)
    coefficients = linalg.solve_triangular(factor, vectors[:, ::-1], lower=True, trans=1, check_finite=False)
    return values[::-1], coefficients, 1 / max(reciprocal, np.finfo(float).tiny), trace


def cholesky(
    matrix: np.ndarray, name: str = "L+λR", remedy: str = "Increase regularization or use fewer features."
) -> np.ndarray:
    """Return the lower Cholesky factor; if there is none, add to the diagonal, tenfold at a time, and warn."""
    scale = np.trace(matrix) / matrix.shape[0]
    for jitter in (0.0, *np.logspace(-15, -6, 10)):
        lifted = matrix + jitter * scale * np.eye(matrix.shape[0]) if jitter else matrix
        factor, info = lapack.dpotrf(lifted, lower=1, clean=0)
        if info == 0:
            if jitter:
                warn(Check(rules.JITTER, float(jitter), words={"matrix": name, "advice": remedy}))
            return factor
    raise np.linalg.LinAlgError(f"{name} is not positive definite even with jitter: {TOO_EXTREME}")


def rounding_variance(moments: Moments, coefficients: np.ndarray) -> np.ndarray:
    """Return the value of aᵀΣa that rounding of E φφᵀ may leave for a constant function, for each column a."""
    return 2 * ROUNDING * np.trace(moments.gram) / moments.weight * np.einsum("mk,mk->k", coefficients, coefficients)


def single_precision_check(moments: Moments, coefficients: np.ndarray) -> Check:
    """Check whether the rounding ε of features, of variance at most ε tr(Σ)|a|², is large in a mode."""
    noise = SINGLE_ROUNDING * np.trace(moments.covariance()) * np.einsum("mk,mk->k", coefficients, coefficients)
    spoiled = noise > rules.SINGLE_PRECISION.limit
    return Check(rules.SINGLE_PRECISION, noise, words={"first": int(np.argmax(spoiled)) + 1})


def check_determined(modes: np.ndarray) -> None:
    """Raise unless all modes are determined."""
    determined = int(np.count_nonzero(modes))
    if determined < len(modes):
        raise Undetermined(
            "The samples determine only {modes}, fewer than {n_components:{asked}}; use more distinct samples{fewer}.",
            modes=f"{determined} mode{'' if determined == 1 else 's'}",
            asked=len(modes),
            fewer=or_fewer(determined),
        )


def fewer_modes(determined: int, asked: int) -> Check:
    """Check how many of the modes that were asked for the samples determine."""
    return Check(rules.FEWER_MODES, determined, asked, words={"determined": determined})


def find_modes(
    moments: Moments,
    ridge: np.ndarray | None,
    n_components: int,
    regularization: float,
    center: bool = True,
    clock: Clock = NO_LAG,
    fewer: bool = False,
) -> Modes:
    """Return the leading modes of the samples, or pairs of frames, that were summed to `moments`.

    With `fewer`, modes that the samples do not determine are left out.

    Raises
    ------
    Undetermined
        If the samples do not determine `n_components` modes; with `fewer`, if they determine none.
    """
    covariance, energy = moments.covariance(center), moments.mean_energy()
    p = covariance.shape[0]
    if n_components > p:
        raise ArgumentError(
            "{n_components:{modes}} exceeds the number of features {features}; increase {n_features}.",
            modes=n_components,
            features=p,
        )
    solution = solve(covariance, energy, ridge, min(n_components + 1, p), regularization)
    values, coefficients, condition, trace = solution
    floor = rounding_variance(moments, coefficients)
    determined = int(np.cumprod(values > floor)[:n_components].sum())
    if fewer and determined > 0:
        n_components = determined
    check_determined((values > floor)[:n_components])
    known = coefficients[:, : n_components + int(np.all(values > floor))]
    known = known / np.sqrt(np.einsum("mk,mk->k", known, covariance @ known))
    quotients = np.einsum("mk,mk->k", known, energy @ known)
    mu, a = values[:n_components], known[:, :n_components]
    # A generic direction fixes signs: no symmetry of the data makes a mode orthogonal to it.
    direction = np.modf(np.arange(1, p + 1) * 0.6180339887498949)[0] - 0.5
    a = a * np.where(direction @ a < 0, -1.0, 1.0)
    following = known.shape[1] > n_components
    return Modes(
        coefficients=a,
        offset=moments.mean @ a if center else np.zeros(n_components),
        eigenvalues=mu,
        next_eigenvalue=float(values[n_components]) if n_components < p else np.nan,
        quotients=quotients[:n_components],
        condition_number=condition,
        effective_rank=trace / mu,
        effective_count=moments.effective_count / clock.inefficiency(quotients[:n_components]),
        clock=clock,
        next_quotient=float(quotients[n_components]) if following else np.nan,
        next_coefficients=known[:, n_components] if following else None,
    )
