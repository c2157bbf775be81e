"""Deterministic frames on the command line: fit, report, model file, forecast."""

import numpy as np
from oscillators import STEP, tones

import kdmaps
from commands import run


def test_fit_and_forecast(tmp_path):
    X = tones(300)
    np.save(tmp_path / "frames.npy", X)
    frames, out = str(tmp_path / "frames.npy"), str(tmp_path / "out")
    settings = ["--lag", "1", "--time-step", str(STEP), "--no-reversible", "--features", "40"]
    text = run("fit", frames, *settings, "--out", out).stdout
    assert "3.14" in text  # the period of cos 2t
    assert "share" in text
    assert "Warning" not in text
    model = kdmaps.load(f"{out}/model.npz")
    np.testing.assert_allclose(model.predict(X[:5], 10), X[10:15], atol=1e-9)
    assert "share" in (tmp_path / "out" / "report.html").read_text()
