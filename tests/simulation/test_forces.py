"""Modes and walls as forces of OpenMM, compared with `transform`, `gradient` and finite differences in OpenMM."""

import sys

import numpy as np
import pytest
from molecules import CHAIN, INPUTS, evaluate, fit, frames
from numpy.testing import assert_allclose

from kdmaps.simulation import Distance, descriptors, openmm_cv, openmm_walls
from kdmaps.simulation.fields import ModeField, WallField
from kdmaps.simulation.inputs import Columns
from shared import known

openmm = pytest.importorskip("openmm")
pytestmark = known("outliers", "no-gap", "variance-samples", "mismatch")  # small fits of noise

CASES = [
    *((name, basis, "python") for name in INPUTS for basis in ("fourier", "random-phase", "landmarks")),
    *((name, "fourier", "expression") for name in ("one torsion", "two torsions", "distances")),
    *((name, basis, "table") for name in ("one torsion", "two torsions") for basis in ("fourier", "landmarks")),
]


def expected(model, mode, inputs, positions):
    """Return values and forces by `transform`, `gradient` and the chain rule that `test_inputs` checks."""
    columns = Columns(inputs)
    X = columns.values(positions)
    slopes = model.gradient(X)[:, mode]
    pulled = [columns.pull(x, row, g) for x, row, g in zip(positions, X, slopes, strict=True)]
    return model.transform(X)[:, mode], -np.array(pulled)


@pytest.mark.parametrize(("name", "basis", "method"), CASES)
def test_energy_is_the_mode(name, basis, method):
    inputs = INPUTS[name]
    model, positions = fit(inputs, basis), frames(20, seed=1)
    outside = "free" if method == "expression" else "flat"
    positions = positions[~model.extrapolates(descriptors(inputs, positions))]
    assert len(positions) >= 10
    energies, forces = evaluate(openmm_cv(model, 1, inputs, method=method, outside=outside), positions)
    values, exact = expected(model, 1, inputs, positions)
    # A table is a spline: its slope errs by about its error over its spacing.
    tolerance = (1e-6, 1e-4) if method == "table" else (1e-8, 1e-8)
    assert_allclose(energies, values, atol=tolerance[0])
    assert_allclose(forces, exact, atol=tolerance[1] * np.abs(exact).max())


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("what", ["mode", "walls"])
def test_forces_are_gradients_far_from_samples(name, what):
    inputs = INPUTS[name]
    model = fit(inputs, spread=0.05)
    force = openmm_cv(model, 0, inputs) if what == "mode" else openmm_walls(model, inputs, strength=50.0)
    positions = frames(40, spread=0.25, seed=2)
    far = model.extrapolates(descriptors(inputs, positions))
    assert far.any()
    energies = check_slopes(force, positions)
    if what == "walls":
        assert_allclose(energies[~far], 0)
        assert energies[far].max() > 0


@pytest.mark.parametrize("method", ["table", "expression"])
@pytest.mark.parametrize("name", ["one torsion", "two torsions"])
def test_forces_of_other_methods_are_gradients(name, method):
    """Otherwise a bias would not have the equilibrium of its energies."""
    inputs = INPUTS[name]
    model = fit(inputs)
    outside = "free" if method == "expression" else "flat"
    check_slopes(openmm_cv(model, 0, inputs, method=method, outside=outside), frames(20, spread=0.15, seed=2))


def check_slopes(force, positions, step=2e-5):
    """Compare forces with differences of fourth order inside OpenMM; return the energies."""
    direction = np.random.default_rng(3).standard_normal(CHAIN.shape)
    places = [positions + k * step * direction for k in (0, -2, -1, 1, 2)]
    energies, forces = evaluate(force, np.concatenate(places))
    middle, *around = np.split(energies, 5)
    slopes = -np.einsum("nad,ad->n", forces[: len(positions)], direction)
    # The rounding of energies is 1e-16 of them over the step, times what sums of waves amplify: some 1e-9.
    differences = np.array([1, -8, 8, -1]) @ around / (12 * step)
    assert_allclose(differences, slopes, atol=1e-6 * np.abs(slopes).max())
    return middle


def test_continuation_is_flat_and_within_the_range_of_samples():
    inputs = INPUTS["distances"]
    model = fit(inputs)
    field, far = ModeField(model, 0, flat=True), model.support_.samples[:40] + np.array([0.0, 5.0, -4.0])
    values, slopes = zip(*map(field, far), strict=True)
    seen = model.transform(model.support_.samples)[:, 0]
    assert seen.min() <= min(values) <= max(values) <= seen.max()
    # Typical slopes at samples are of order 10; far away the value is constant.
    typical = np.median(np.linalg.norm(model.gradient(model.support_.samples)[:, 0], axis=1))
    assert np.median(np.linalg.norm(slopes, axis=1)) < 0.01 * typical
    inside = model.support_.samples[7]
    assert field(inside)[0] == pytest.approx(model.transform(inside[None])[0, 0], abs=1e-12)


def test_walls_are_harmonic_in_the_distance_to_the_nearest_sample():
    inputs = INPUTS["distances"]
    model = fit(inputs)
    corner = model.support_.samples.max(axis=0) + 10.0  # far away, only one sample matters
    nearest = np.linalg.norm(model.support_.samples - corner, axis=1).min()
    energy, _ = WallField(model, 3.0, 0.5)(corner)
    # √s is below the nearest distance d by at most h² log(1000)/d.
    assert energy == pytest.approx(1.5 * (nearest - model.support_.radius - 0.5) ** 2, rel=1e-3)


def test_names_of_forces():
    for name, inputs in INPUTS.items():
        model = fit(inputs)
        force = openmm_cv(model, 0, inputs)
        assert isinstance(force, openmm.PythonForce)
        assert force.getName() == f"mode 1 (python), flat beyond {model.support_.radius:.3g} of all samples"
        if "torsion" in name:
            force = openmm_cv(model, 0, inputs, method="table")
            assert isinstance(force, openmm.CustomCompoundBondForce)
            assert force.getName().startswith("mode 1 (table of ")


def test_metadynamics_after_serialization():
    from openmm import app, unit

    inputs = INPUTS["distances"]
    model = fit(inputs)
    force = openmm.XmlSerializer.clone(openmm_cv(model, 0, inputs))
    system = openmm.System()
    for _ in CHAIN:
        system.addParticle(12.0)
    for i in range(6):
        bond = openmm.HarmonicBondForce()
        bond.addBond(i, i + 1, 0.15, 1e4)
        system.addForce(bond)
    variable = app.BiasVariable(force, -3, 3, 0.3)
    metadynamics = app.Metadynamics(system, [variable], 300 * unit.kelvin, 5, 1.0, 10)
    integrator = openmm.LangevinMiddleIntegrator(300, 1, 0.001)
    simulation = app.Simulation(app.Topology(), system, integrator, openmm.Platform.getPlatform("Reference"))
    simulation.context.setPositions(CHAIN)
    metadynamics.step(simulation, 50)
    (value,) = metadynamics.getCollectiveVariables(simulation)
    positions = simulation.context.getState(positions=True).getPositions(asNumpy=True)._value
    field = ModeField(model, 0, flat=True)
    assert value == pytest.approx(field(descriptors(inputs, positions[None])[0])[0], abs=1e-9)


def test_invalid_arguments():
    inputs = INPUTS["two torsions"]
    model = fit(inputs)
    with pytest.raises(ValueError, match="mode must be an integer from 0 to 1"):
        openmm_cv(model, 2, inputs)
    with pytest.raises(ValueError, match=r"inputs define 2 columns.* fitted to 4"):
        openmm_cv(model, 0, inputs[:1])
    with pytest.raises(ValueError, match="method must be one of"):
        openmm_cv(model, 0, inputs, method="quick")
    with pytest.raises(ValueError, match="needs outside='free'"):
        openmm_cv(model, 0, inputs, method="expression")
    with pytest.raises(ValueError, match="strength must be a positive"):
        openmm_walls(model, inputs, strength=0)
    with pytest.raises(ValueError, match="margin must be a non-negative"):
        openmm_walls(model, inputs, strength=1.0, margin=-1.0)
    for inputs in (INPUTS["distances"], INPUTS["aligned"]):
        with pytest.raises(ValueError, match="one or two torsions"):
            openmm_cv(fit(inputs), 0, inputs, method="table")
    with pytest.raises(ValueError, match="needs torsions and distances"):
        openmm_cv(fit(inputs), 0, inputs, method="expression", outside="free")


def test_atom_that_does_not_exist():
    system = openmm.System()
    for _ in CHAIN:
        system.addParticle(1.0)
    model = fit(INPUTS["distances"])
    wrong = [*INPUTS["distances"][:2], Distance(1, 7)]
    for make in (
        lambda: openmm_cv(model, 0, wrong, system=system),
        lambda: openmm_walls(model, wrong, 1.0, system=system),
    ):
        with pytest.raises(ValueError, match="atom 7 does not exist"):
            make()
    openmm_cv(model, 0, INPUTS["distances"], system=system)


def test_openmm_missing(monkeypatch):
    model = fit(INPUTS["distances"])
    monkeypatch.setitem(sys.modules, "openmm", None)
    with pytest.raises(ImportError, match=r"pip install 'kdmaps\[openmm\]'"):
        openmm_cv(model, 0, INPUTS["distances"])
