"""Figures and exports of a committor, its page, and rates between several states."""

import numpy as np
import pytest

import kdmaps
from kdmaps.simulation import plumed_input

SETTINGS = {"n_features": 100, "n_resamples": 20, "random_state": 0, "cv": 2}


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-2, 2, 600), rng.normal(size=600)])
    return kdmaps.AdaptiveCommittor(**SETTINGS).fit(X, (X[:, 0] < -1, X[:, 0] > 1)), X


def test_level_set_and_samples(fitted):
    model, X = fitted
    ax = kdmaps.plotting.plot_committor(model, X)
    level = np.concatenate([path.vertices for c in ax.collections if hasattr(c, "levels") for path in c.get_paths()])
    # A uniform law between the sets: q = (x + 1)/2, to a statistical error.
    assert np.abs(level[:, 0]).mean() < 0.25
    assert len(kdmaps.plotting.plot_committor(model, X, coordinates=(0,)).lines[0].get_xdata()) == 600


def test_distributions_over_q(fitted):
    model, X = fitted
    ax = kdmaps.plotting.plot_flux_distribution(model, X)
    heights = ax.patches[0].get_data().values
    assert heights.mean() == pytest.approx(1)
    assert kdmaps.plotting.plot_free_energy_along_q(model, X).get_xlabel() == "q"


def test_page_has_rates_and_warnings(fitted):
    pytest.importorskip("jinja2")
    model, X = fitted
    page = kdmaps.report.render_committor(model, X, names=["a", "b"], title="from a to b")
    assert f"{model.rate_:.4g}" in page
    assert "from a to b" in page
    assert all(reason.split(",")[0] in page for reason in model.trust_.reasons)


def test_plumed_input_has_the_function_and_its_logit(fitted):
    model, X = fitted
    if type(model.basis_).__name__ != "FourierBasis":
        pytest.skip("landmarks were chosen")
    lines = plumed_input(model, ["x", "y"], label="q", logit=True).splitlines()
    assert lines[-1].startswith("q_logit: CUSTOM ARG=q ")
    offset = float(lines[-2].split("PARAMETERS=")[1].split()[0])
    assert offset == model.offset_[0]
    with pytest.raises(ValueError, match="needs a committor"):
        plumed_input(kdmaps.KernelDiffusionMap(1, random_state=0).fit(X), ["x", "y"], logit=True)


def test_forces_of_the_function_and_its_logit():
    openmm = pytest.importorskip("openmm")
    from kdmaps.simulation import Distance, descriptors, openmm_cv

    rng = np.random.default_rng(0)
    frames = np.zeros((600, 2, 3))
    frames[:, 1, 0] = rng.uniform(1, 5, 600)
    inputs = [Distance(0, 1)]
    X = descriptors(inputs, frames)
    model = kdmaps.AdaptiveCommittor(**SETTINGS).fit(X, (X[:, 0] < 2, X[:, 0] > 4))
    x = np.array([2.5, 3.0, 3.3])
    q, slope = model.decision_function(x[:, None]), model.gradient(x[:, None])[:, 0]
    for logit, values, slopes in (
        (False, q, slope),
        (True, np.log(q / (1 - q)), slope / (q * (1 - q))),
    ):
        system = openmm.System()
        for _ in range(2):
            system.addParticle(1.0)
        system.addForce(openmm_cv(model, 0, inputs, outside="free", logit=logit))
        context = openmm.Context(system, openmm.VerletIntegrator(1e-3), openmm.Platform.getPlatformByName("Reference"))
        for place, value, expected in zip(x, values, slopes, strict=True):
            context.setPositions([[0, 0, 0], [place, 0, 0]])
            state = context.getState(getEnergy=True, getForces=True)
            assert state.getPotentialEnergy()._value == pytest.approx(value, rel=1e-6, abs=1e-6)
            assert -state.getForces()[1][0]._value == pytest.approx(expected, rel=1e-6)


def test_rates_between_three_states():
    X = kdmaps.problems.load("triplewell1d").sample(1200, random_state=0)
    x = X[:, 0]
    states = np.where(np.abs(x) < 0.3, 1, np.where(x < -1.3, 0, np.where(x > 1.3, 2, -1)))
    found = kdmaps.dynamics.rate_matrix(X, states, **SETTINGS)
    assert found.rates.shape == (3, 3)
    np.testing.assert_array_equal(found.fluxes, found.fluxes.T)
    assert sorted(found.committors) == [(0, 1), (0, 2), (1, 2)]
    # Resistances in series: the flux from end to end is 1/(1/ν₁ + 1/ν₂) up to the part inside the middle state.
    ends = 1 / (1 / found.fluxes[0, 1] + 1 / found.fluxes[1, 2])
    assert found.fluxes[0, 2] == pytest.approx(ends, rel=0.25)
    with pytest.raises(ValueError, match="at least two states"):
        kdmaps.dynamics.rate_matrix(X, np.zeros(len(X), dtype=int))
