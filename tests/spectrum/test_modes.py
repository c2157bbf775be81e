"""Clusters of modes, checks with their limits, and warnings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from spectra import moments_of, positive, with_spectrum

from kdmaps.checks import Phrase, Subject, or_fewer
from kdmaps.exceptions import UnresolvedModesWarning
from kdmaps.spectrum.modes import Clock, agreement_check
from kdmaps.spectrum.pencil import find_modes


def warned(modes):
    return [check for check in modes.checks if check.warns]


def warned_codes(modes):
    return [check.code for check in warned(modes)]


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.integers(0, 100))
def test_degenerate_clusters(multiplicities, seed):
    # Time scales 1, 1/2, 1/4, ... with these multiplicities, and one more beyond the cut.
    times = np.repeat(0.5 ** np.arange(len(multiplicities)), multiplicities)
    modes = find_modes(with_spectrum(np.r_[times, 1e-3], seed), None, len(times), 1e-12)
    expected = np.split(np.arange(len(times)), np.cumsum(multiplicities)[:-1])
    assert [c.tolist() for c in modes.clusters] == [e.tolist() for e in expected]
    assert_allclose(modes.eigenvalues, times, rtol=1e-9)
    assert not warned(modes)


def test_cut_through_a_cluster():
    moments = with_spectrum([1.0, 0.5, 0.5, 0.5, 0.1])
    (check,) = warned(find_modes(moments, None, 3, 1e-9))
    assert (check.code, check.words["last"], check.words["after"]) == ("no-gap", 3, 4)
    assert not warned(find_modes(moments, None, 4, 1e-9))
    assert_allclose(find_modes(moments, None, 2, 1e-9).gap, 1, rtol=1e-9)


@pytest.mark.parametrize(("times", "space"), [([1.0, 1.0], "mode 1"), ([2.0, 1.0, 1.0], "first 2 modes")])
def test_missing_gap_names_the_arbitrary_space(times, space):
    (check,) = warned(find_modes(with_spectrum(times), None, len(times) - 1, 1e-9))
    assert check.code == "no-gap"
    assert_allclose(check.value, 1, atol=5e-4)
    assert check.words["space"].endswith(space)


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
    assert warned_codes(find_modes(with_spectrum(times, count=5_000), None, 1, 1e-9)) == ["no-gap"]
    assert not warned(find_modes(with_spectrum(times, count=50_000), None, 1, 1e-9))


def test_ill_conditioned():
    moments = moments_of(positive(0, 10), positive(1, 10, 1e14))
    assert "condition" in warned_codes(find_modes(moments, None, 2, 1e-15))
    assert "condition" not in warned_codes(find_modes(moments, None, 2, 1e-3))


def test_too_few_samples():
    times = np.r_[3.0, 1.5, np.full(40, 0.4)]
    # Effective ranks tr/μ_1 = 6.8 and tr/μ_2 = 13.7: √(6.8/n), √(13.7/n) > 1/2 for n < 27 and n < 55.
    (few,) = warned(find_modes(with_spectrum(times, count=40), None, 2, 1e-9))
    assert (few.code, few.words["samples"], few.words["first"], few.words["after"]) == ("unresolved", 40, 2, "")
    assert_allclose(few.words["error"], np.sqrt(times.sum() / 1.5 / 40), rtol=1e-6)
    fewer = warned(find_modes(with_spectrum(times, count=20), None, 2, 1e-9))[0]
    assert (fewer.code, fewer.words["samples"], fewer.words["first"]) == ("unresolved", 20, 1)
    assert fewer.words["after"]
    assert not warned(find_modes(with_spectrum(times, count=2000), None, 2, 1e-9))


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
    checks = {check.code: check for check in modes.checks}
    error = np.sqrt(times.sum() / 1.5 / count)
    sampling = checks["unresolved"]
    assert (sampling.filled["mode"], sampling.bound) == (2, "at most 0.5")
    assert_allclose(sampling.filled["value"], error, rtol=1e-6)
    assert sampling.passed == (error <= 0.5)
    gap = checks["no-gap"]
    smallest = min(1 + 4 / np.sqrt(count), 1.35)  # rates that differ by a third are not degenerate
    assert (gap.shown, gap.bound) == ("3.75", f"at least {smallest:.4g} with {count:,} effective samples")
    assert gap.passed
    assert [check.category for check in warned(modes)] == [UnresolvedModesWarning] * int(error > 0.5)


def test_which_checks_are_estimates():
    checks = find_modes(with_spectrum([3.0, 2.0, 1.0]), None, 2, 1e-9).checks
    assert [check.code for check in checks if check.rule.subject is Subject.ESTIMATE] == ["unresolved", "ridge"]


def test_regularization_that_outweighs_the_energy():
    # λR is 4 and 8 times the energy of these two modes: Σ = 1 and L = diag(1, ½) in the basis of R = 1.
    moments = moments_of(np.eye(2), np.diag([1.0, 0.5]))
    (check,) = [check for check in find_modes(moments, None, 2, 4.0).checks if check.code == "ridge"]
    assert (check.what, check.shown) == ("regularization relative to the energy of mode 1", "8")
    assert check.words["times"] == "8"
    tiny = moments_of(np.eye(2), 1e-300 * np.eye(2))
    (check,) = [check for check in find_modes(tiny, None, 2, 4.0).checks if check.code == "ridge"]
    assert check.words["times"] == "4e+300"


def test_folds_that_disagree():
    assert agreement_check(0.8).passed
    check = agreement_check(0.75, suggested=3)
    assert (check.shown, check.bound) == ("0.750", "at least 0.8")
    assert check.words["suggested"] == Phrase("suggested", {"suggested": 3})
    assert not agreement_check(0.75).words["suggested"].say()


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
    (check,) = [check for check in lagged(timescales, lag).checks if check.code == "within-lag"]
    assert remedy in check.say()


@pytest.mark.parametrize(("before", "words"), [(0, ""), (1, " or fewer n_components (at most 1)")])
def test_fewer_modes_are_suggested_if_some_are_left(before, words):
    assert or_fewer(before).say() == words
