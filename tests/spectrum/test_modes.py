"""Clusters of modes, checks with their limits, and warnings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from spectra import moments_of, positive, with_spectrum

from kdmaps.exceptions import UnresolvedModesWarning
from kdmaps.spectrum.modes import Clock, agreement_check, or_fewer
from kdmaps.spectrum.pencil import find_modes


def texts(modes):
    return [str(warning) for warning in modes.warnings()]


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.integers(0, 100))
def test_degenerate_clusters(multiplicities, seed):
    # Time scales 1, 1/2, 1/4, ... with these multiplicities, and one more beyond the cut.
    times = np.repeat(0.5 ** np.arange(len(multiplicities)), multiplicities)
    modes = find_modes(with_spectrum(np.r_[times, 1e-3], seed), None, len(times), 1e-12)
    expected = np.split(np.arange(len(times)), np.cumsum(multiplicities)[:-1])
    assert [c.tolist() for c in modes.clusters] == [e.tolist() for e in expected]
    assert_allclose(modes.eigenvalues, times, rtol=1e-9)
    assert not modes.warnings()


def test_cut_through_a_cluster():
    moments = with_spectrum([1.0, 0.5, 0.5, 0.5, 0.1])
    assert "Modes 3 and 4 have the same time scale" in texts(find_modes(moments, None, 3, 1e-9))[0]
    assert not find_modes(moments, None, 4, 1e-9).warnings()
    assert_allclose(find_modes(moments, None, 2, 1e-9).gap, 1, rtol=1e-9)


@pytest.mark.parametrize(("times", "space"), [([1.0, 1.0], "mode 1"), ([2.0, 1.0, 1.0], "first 2 modes")])
def test_missing_gap_names_the_arbitrary_space(times, space):
    (warning,) = texts(find_modes(with_spectrum(times), None, len(times) - 1, 1e-9))
    assert "(gap 1.000)" in warning
    assert f"{space} is partly arbitrary" in warning


def test_the_smaller_gap_is_checked():
    # Σ = diag(1, 1) and L = diag(1, 1.5): rates 1 and 1.5, with λ = 1 the eigenvalues 1/2 and 1/2.5.
    modes = find_modes(moments_of(np.eye(2), np.diag([1.0, 1.5])), None, 1, 1.0)
    assert_allclose([modes.gap, modes.next_quotient / modes.rates[0]], [1.25, 1.5], rtol=1e-12)
    assert_allclose(modes.timescale_gap, 1.25, rtol=1e-12)
    # Σ = diag(4, 1) and L = diag(4, 1.1): rates 1 and 1.1, with λ = 10 the eigenvalues 4/14 and 1/11.1.
    modes = find_modes(moments_of(np.diag([4.0, 1.0]), np.diag([4.0, 1.1])), None, 1, 10.0)
    assert_allclose(modes.gap, 4 / 14 * 11.1, rtol=1e-12)
    assert_allclose(modes.timescale_gap, 1.1, rtol=1e-12)


def test_only_many_samples_distinguish_close_eigenvalues():
    # 2 % apart: resolved to 2/√n, i.e. by more than 10^4 samples.
    times = [1.0, 0.98, 0.3]
    for count, n_clusters in ((5_000, 1), (50_000, 2)):
        modes = find_modes(with_spectrum(times, count=count), None, 2, 1e-9)
        assert len(modes.clusters) == n_clusters
    assert "same time scale" in texts(find_modes(with_spectrum(times, count=5_000), None, 1, 1e-9))[0]
    assert not find_modes(with_spectrum(times, count=50_000), None, 1, 1e-9).warnings()


def test_ill_conditioned():
    moments = moments_of(positive(0, 10), positive(1, 10, 1e14))
    assert any("condition number" in text for text in texts(find_modes(moments, None, 2, 1e-15)))
    assert not any("condition number" in text for text in texts(find_modes(moments, None, 2, 1e-3)))


def test_too_few_samples():
    times = np.r_[3.0, 1.5, np.full(40, 0.4)]
    # Effective ranks tr/μ_1 = 6.8 and tr/μ_2 = 13.7: √(6.8/n), √(13.7/n) > 1/2 for n < 27 and n < 55.
    (few,) = texts(find_modes(with_spectrum(times, count=40), None, 2, 1e-9))
    assert few.startswith("40 effective samples do not resolve mode 2 (")
    assert f"{np.sqrt(times.sum() / 1.5 / 40):.2f}" in few
    fewer = texts(find_modes(with_spectrum(times, count=20), None, 2, 1e-9))
    assert "20 effective samples do not resolve mode 1 and the modes after it" in fewer[0]
    assert not find_modes(with_spectrum(times, count=2000), None, 2, 1e-9).warnings()


def test_modes_by_time_scale():
    # Σ = diag(4, 1) and L = diag(4, ½): rates 1 and ½, but with λ = 10 the eigenvalues are 4/14 and 1/10.5.
    moments = moments_of(np.diag([4.0, 1.0]), np.diag([4.0, 0.5]))
    modes = find_modes(moments, None, 2, 10.0)
    assert_allclose(modes.rates, [1, 0.5], rtol=1e-12)
    ordered = modes.by_timescale()
    assert_allclose(ordered.rates, [0.5, 1], rtol=1e-12)
    assert_allclose(ordered.eigenvalues, [1 / 10.5, 4 / 14], rtol=1e-12)
    assert_allclose(np.abs(ordered.coefficients), [[0, 0.5], [1, 0]], atol=1e-12)


@pytest.mark.parametrize("count", [20, 2000])
def test_a_check_fails_exactly_with_its_warning(count):
    """Values and limits of the table, computed here from the spectrum."""
    times = np.r_[3.0, 1.5, np.full(40, 0.4)]
    modes = find_modes(with_spectrum(times, count=count), None, 2, 1e-9)
    checks = {check.what.partition(",")[0]: check for check in modes.checks()}
    error = np.sqrt(times.sum() / 1.5 / count)
    sampling = checks["relative sampling error of eigenvalue 2"]
    assert (sampling.value, sampling.limit) == (f"{error:.3g}", "at most 0.5")
    assert sampling.passed == (error <= 0.5)
    assert isinstance(sampling.warning, UnresolvedModesWarning) == (error > 0.5)
    gap = checks["gap after the last mode"]
    smallest = min(1 + 4 / np.sqrt(count), 1.35)  # rates that differ by a third are not degenerate
    assert (gap.value, gap.limit) == ("3.75", f"at least {smallest:.4g} with {count:,} effective samples")
    assert gap.passed
    assert [type(warning) for warning in modes.warnings()] == [UnresolvedModesWarning] * int(error > 0.5)


def test_which_checks_are_estimates():
    checks = find_modes(with_spectrum([3.0, 2.0, 1.0]), None, 2, 1e-9).checks()
    assert [check.what.split()[0] for check in checks if check.estimate] == ["relative", "regularization"]


def test_regularization_that_outweighs_the_energy():
    # λR is 4 and 8 times the energy of these two modes: Σ = 1 and L = diag(1, ½) in the basis of R = 1.
    moments = moments_of(np.eye(2), np.diag([1.0, 0.5]))
    check = next(check for check in find_modes(moments, None, 2, 4.0).checks() if "regularization" in check.what)
    assert (check.what, check.value) == ("regularization relative to the energy of mode 1", "8")
    assert "weighs 8 times" in str(check.warning)
    tiny = moments_of(np.eye(2), 1e-300 * np.eye(2))
    assert "weighs 4e+300 times" in "".join(str(check.warning) for check in find_modes(tiny, None, 2, 4.0).checks())


def test_folds_that_disagree():
    assert agreement_check(0.8).passed
    check = agreement_check(0.75, suggested=3)
    assert (check.value, check.limit) == ("0.750", "at least 0.8")
    assert "cosine 0.75" in str(check.warning)
    assert "(suggested: 3)" in str(check.warning)
    assert "suggested" not in str(agreement_check(0.75).warning)


def lagged(timescales, lag):
    """Modes of pairs of frames with these time scales, in frames."""
    quotients = 1 - np.exp(-lag / np.array(timescales))
    found = find_modes(with_spectrum(1 / quotients), None, len(timescales) - 1, 1e-9, clock=Clock(lag, 1.0))
    return found.by_timescale()


@pytest.mark.parametrize(
    ("timescales", "lag", "remedy"),
    [
        ([50.0, 30.0, 2.0, 1.0], 4, "Use a shorter lag or fewer n_components (at most 2)."),
        ([50.0, 0.8, 0.5], 1, "Use frames at shorter time steps or fewer n_components (at most 1)."),
        ([2.0, 1.0], 4, "Use a shorter lag, or check"),
        ([0.5, 0.2], 1, "unreliable. Check that the rows"),
    ],
)
def test_remedies_for_modes_faster_than_the_lag(timescales, lag, remedy):
    """No lag is shorter than one frame, and there are no fewer modes than one."""
    (check,) = [check for check in lagged(timescales, lag).checks() if "shortest time scale" in check.what]
    assert remedy in str(check.warning)


@pytest.mark.parametrize(("before", "words"), [(0, ""), (1, " or fewer n_components (at most 1)")])
def test_fewer_modes_are_suggested_if_some_are_left(before, words):
    assert or_fewer(before) == words
