"""Models on disk: a model that is written and read again is the same."""

import json
import os
import warnings
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest

import kdmaps
from kdmaps import Factor, KernelDiffusionMap
from kdmaps.bases import BASES
from kdmaps.data.distances import Support
from kdmaps.diagnostics.evidence import Evidence
from kdmaps.estimators import model_files as io
from kdmaps.forms.moments import Moments
from kdmaps.kernels import FAMILIES, Gaussian, Laplacian, Matern, Metric, Mixture
from kdmaps.spectrum.modes import Modes
from shared import expects, known

# Small files of 150 samples, whose modes are not the point.
pytestmark = known("no-gap", "variance-samples", "mismatch")  # of few samples

RNG = np.random.default_rng(0)
X = RNG.standard_normal((150, 3)) * [1.0, 0.7, 0.4]
CHUNK = RNG.standard_normal((40, 3))
CHUNK.flags.writeable = X.flags.writeable = False

# Normalised a second time, these weights change in the last bit.
WEIGHTS = [0.2, 0.72, 0.08]
ROOT = [[0.9, 0.3, -0.2], [-0.5, 0.7, 0.1], [0.2, 0.4, 0.5]]
METRICS = [Metric(Matern(1.5, [1.0, 2.0, 0.5]), ROOT), Mixture([Metric(Gaussian(1.1), ROOT), Laplacian(2.0)])]
MIXTURE = Mixture([Gaussian(1.1), Mixture([Matern(1.5, 0.7), Gaussian(0.9)]), Laplacian(2.0)], WEIGHTS)


def fitted(**parameters):
    return KernelDiffusionMap(**{"n_components": 3, "n_features": 40, "random_state": 0, **parameters}).fit(X)


def reloaded(estimator, tmp_path):
    estimator.save(tmp_path / "model.npz")
    return kdmaps.load(tmp_path / "model.npz")


def assert_same(first, second, data=X, **options):
    np.testing.assert_array_equal(first.transform(data), second.transform(data), strict=True)
    np.testing.assert_array_equal(first.gradient(data), second.gradient(data), strict=True)
    assert first.score(data, **options) == second.score(data, **options)
    for name in ("eigenvalues_", "rates_", "timescales_", "coefficients_"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), strict=True)
    for field in fields(Modes):
        np.testing.assert_array_equal(getattr(first.modes_, field.name), getattr(second.modes_, field.name))
    assert first.kernel_ == second.kernel_


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("kernel", [*FAMILIES, Matern(2.5, [1.0, 2.0, 0.5]), MIXTURE, *METRICS], ids=str)
def test_a_loaded_model_equals_the_saved_one_and_goes_on(basis, kernel, tmp_path):
    model = fitted(basis=basis, kernel=kernel)
    again = reloaded(model, tmp_path)
    assert_same(model, again)
    assert again.get_params() == model.get_params()
    assert_same(model.partial_fit(CHUNK), again.partial_fit(CHUNK))
    assert again.moments_.count == 190
    assert isinstance(again.moments_.count, int)


def test_only_a_metric_needs_a_newer_reader(tmp_path):
    """Version 0.1.0 reads format 2, and asks for an upgrade if a file has a newer kernel."""
    for kernel, version in [(MIXTURE, 2), (METRICS[0], 3), (METRICS[1], 3)]:
        fitted(kernel=kernel).save(tmp_path / "model.npz")
        assert io.read_header(tmp_path / "model.npz")["version"] == version


def test_float32_stays_float32(tmp_path):
    data = X.astype(np.float32)
    model = fitted().fit(data)
    again = reloaded(model, tmp_path)
    assert again.transform(data).dtype == np.float32
    assert_same(model, again, data)


def test_feature_names_are_kept_and_checked(tmp_path):
    frame = pd.DataFrame(X, columns=["φ", "ψ", "x y"])
    again = reloaded(fitted().fit(frame), tmp_path)
    assert list(again.feature_names_in_) == ["φ", "ψ", "x y"]
    with pytest.raises(ValueError, match="feature names"):
        again.transform(frame.rename(columns={"φ": "other"}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert again.set_output(transform="pandas").transform(frame).shape == (150, 3)


@known("variance-samples")
@pytest.mark.parametrize("diffusion", [2.0, [1.0, 2.0, 3.0], np.diag([1.0, 2.0, 3.0]), np.tile(np.eye(3), (150, 1, 1))])
def test_diffusion_is_kept(diffusion, tmp_path):
    model = fitted(diffusion=diffusion)
    again = reloaded(model, tmp_path)
    np.testing.assert_array_equal(again.diffusion, diffusion)
    assert_same(model, again, diffusion=diffusion)


def test_a_factor_is_kept_as_a_factor(tmp_path):
    model = fitted(diffusion=Factor(RNG.standard_normal((150, 3, 3))))
    again = reloaded(model, tmp_path)
    assert isinstance(again.diffusion, Factor)
    assert_same(model, again, diffusion=again.diffusion)


def test_a_function_is_refused_with_a_way_out(tmp_path):
    def double(x):
        return 2 * np.ones(len(x))

    model = fitted(diffusion=double)
    score = model.score(X)
    with pytest.raises(ValueError, match=r"function and cannot be stored. Call set_params\(diffusion=None\)"):
        model.save(tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []
    again = reloaded(model.set_params(diffusion=None), tmp_path)
    assert again.score(X, diffusion=double) == score
    # Without it the energy would differ from the energy of the fit.
    with pytest.raises(ValueError, match="diffusion was changed after the fit"):
        again.score(X)
    with pytest.raises(ValueError, match="diffusion changed after the first samples were summed"):
        again.partial_fit(CHUNK)
    again.partial_fit(CHUNK, diffusion=double)
    with pytest.raises(ValueError, match="diffusion was changed after the fit"):
        again.score(X)


def test_other_parameters(tmp_path):
    landmarks = X[:20].tolist()
    model = fitted(
        basis="landmarks", landmarks=landmarks, random_state=np.random.RandomState(3), regularization=np.float32(0.1)
    )
    again = reloaded(model, tmp_path)
    np.testing.assert_array_equal(again.landmarks, landmarks)
    assert again.random_state is None
    assert again.regularization == np.float32(0.1)
    assert_same(model, again)


def test_no_next_eigenvalue_is_not_taken_for_damage(tmp_path):
    model = fitted(basis="landmarks", landmarks=X[:3])
    assert np.isnan(reloaded(model, tmp_path).modes_.next_eigenvalue)


def test_unfitted_and_unknown_estimators_are_refused(tmp_path):
    class Other(KernelDiffusionMap):
        pass

    with pytest.raises(ValueError, match="not fitted"):
        KernelDiffusionMap().save(tmp_path / "m")
    with pytest.raises(ValueError, match="Other cannot be saved"):
        Other(n_components=2).fit(X).save(tmp_path / "m")


def test_a_kernel_that_cannot_be_read_again_is_refused(tmp_path):
    class Mine(Gaussian):
        pass

    with pytest.raises(ValueError, match="Unknown kernel family 'Mine'"):
        fitted(kernel=Mine(1.0)).save(tmp_path / "m")


def test_the_name_is_kept_and_the_file_is_plain(tmp_path):
    model = fitted()
    model.save(tmp_path / "model.dat")
    model.save(str(tmp_path / "again"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["again", "model.dat"]
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model.dat").read_bytes()
    with np.load(tmp_path / "again", allow_pickle=False) as archive:
        header = json.loads(archive["header"].tobytes())
        assert {archive[name].dtype.kind for name in archive.files} <= set("fiu")
    assert header["version"] == 2
    assert header["class"] == "KernelDiffusionMap"
    assert header["libraries"]["numpy"] == np.__version__


@pytest.mark.parametrize("where", ["write_archive", "fsync", "replace"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(where, tmp_path, monkeypatch):
    path = tmp_path / "model.npz"
    fitted().save(path)
    before = path.read_bytes()

    def full_disk(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(io if where == "write_archive" else os, where, full_disk)
    with pytest.raises(OSError, match="No space left"):
        fitted(n_components=2).save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["model.npz"]
    assert path.read_bytes() == before


def test_the_tables_name_every_field():
    assert [field.name for field in fields(Moments) if field.name not in ("flow", "change")] == list(io.MOMENTS)
    # Files hold rates, of which the quotients follow with the lag and the time step, parameters of the estimator.
    renamed = {"quotients": "rates"}
    stored = [renamed.get(field.name, field.name) for field in fields(Modes) if field.name != "clock"]
    assert stored == [*io.MODES, *io.FOLLOWING]
    assert [field.name for field in fields(Evidence)] == list(io.EVIDENCE)
    assert [field.name for field in fields(Support)] == list(io.SUPPORT)
    assert KernelDiffusionMap.__name__ == io.ESTIMATOR


def test_where_a_file_cannot_be(tmp_path):
    model = KernelDiffusionMap(1, n_features=10, random_state=0).fit(np.random.default_rng(0).standard_normal((50, 2)))
    with pytest.raises(FileNotFoundError, match=r"nowhere does not exist"):
        model.save(tmp_path / "nowhere" / "model.npz")
    with pytest.raises(IsADirectoryError, match="is a directory; give the name of a file"):
        model.save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_checks_survive(tmp_path):
    """Values, words and outcomes."""
    data = np.column_stack([X, np.ones(len(X))])
    with expects("constant-columns"):
        model = KernelDiffusionMap(3, n_features=40, random_state=0).fit(data)
    again = reloaded(model, tmp_path)
    assert [check.to_dict() for check in again.checks] == [check.to_dict() for check in model.checks]
    assert "constant-columns" in [check.code for check in again.checks.failed]
