"""Systems of the study of real clocks: exact rates, weights and bursts agree with one another."""

import numpy as np
import pytest

from experiments import _clock_systems as systems
from experiments.clocks import errors_of, table


def test_finite_volumes_agree_with_the_problem_of_the_library():
    exact = systems.muller_brown(lambda X: np.full((len(X), 2), 0.1))[0]
    # The grid is coarser and cut off at 25 kT; the plateau behind rate 2 changes it by a few per cent.
    assert exact.rates[0] == pytest.approx(systems.MB.rates(1)[0], rel=0.03)
    assert exact.rates[1] == pytest.approx(systems.MB.rates(2)[1], rel=0.1)


def test_inertia_slows_the_wells_down():
    # Overdamped theory (Kramers, barriers of 5 kT, friction 10) is 1.5 times too fast.
    assert systems.inertial_rates().rates == pytest.approx([0.00701, 0.01923], rel=0.01)


def test_shear_is_inverted():
    X = np.random.default_rng(0).normal(size=(20, 2))
    np.testing.assert_allclose(systems.straight(systems.sheared(X)), X)


@pytest.mark.parametrize("name", systems.SYSTEMS)
def test_bursts_begin_at_their_starts(name):
    system = systems.SYSTEMS[name]
    rng = np.random.default_rng(0)
    X, weight = system.samples(rng, 300)
    bursts = system.bursts(rng, X[:5])
    assert bursts.shape == (systems.FRAMES + 1, 5, X.shape[1])
    np.testing.assert_allclose(bursts[0], X[:5], atol=1e-12)
    assert weight.mean() == pytest.approx(1)
    assert np.isfinite(bursts).all()


def row(system, bursts, ratios, failed=()):
    return {
        "system": system, "seed": 0, "bursts": bursts, "seconds": 1.0, "ratios": ratios, "inside": [True, False],
        "chosen": ["R1", "G5,5"], "failed": list(failed), "trusted": True,
    }  # fmt: skip


def test_table_counts_wrong_rates_that_are_not_flagged():
    rows = [row("a", 1000, [3.0, 1.0]), row("a", 1000, [3.0, 1.0], ["clock-memory"]), row("a", 1000, [None, 1.0])]
    rows[2]["ratios"][0] = np.nan
    assert np.isinf(errors_of(rows)[2, 0])
    line = table(rows).splitlines()[4]
    assert "| 2 ✗ |" in line
    assert "| 0.33 |" in line  # flagged
