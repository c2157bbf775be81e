"""The experiment on spheres, with its smallest settings."""

import json

import numpy as np
import pytest

from experiments import sphere


def test_relative_error():
    # 1/rates = 1, 1/2 in any order; off by 1/4 of a total of 3/2.
    assert sphere.relative_error(np.array([4.0, 1.0]), np.array([1.0, 2.0])) == pytest.approx((1 / 4) / (3 / 2))


def test_exact_modes_have_sampling_errors_only():
    # The mean square of 1000 samples is off by √(c/1000), c of order 1 for polynomials of low degree.
    (row,) = sphere.run_exact(1000, 3, 0)
    assert 0.01 < row["errors"]["exact"] < 0.1
    errors = [sphere.run_exact(n, 3, seed)[0]["errors"]["exact"] for n in (400, 10_000) for seed in range(4)]
    assert np.mean(errors[:4]) / np.mean(errors[4:]) == pytest.approx(np.sqrt(10_000 / 400), rel=0.4)


def test_the_table_lists_missed_aims():
    def row(energy, error):
        return {"n": 10_000, "dim": 3, "seed": 0, "energy": energy, "errors": {"ritz": 0.5, "cross-fitted": error}}

    # 0.014 is below the published 0.026 and above half of it.
    rows = [row(energy, error) for energy in ("ambient", "tangent") for error in (0.013, 0.015)]
    text = sphere.table(rows, [{"n": 10_000, "dim": 3, "seed": 0, "errors": {"exact": 0.01}}])
    assert "| 10000 | 3 | ambient | 0.0140 ± 0.0010 | 0.5000 ± 0.0000 | 0.0100 | 0.026 | 0.026 | yes | 2 |" in text
    assert "missed in 1 of 2 cells: n=10000, d=3, tangent energy (0.0140, not 0.013)." in text


@pytest.mark.slow
def test_rows_table_and_resumption(tmp_path, monkeypatch):
    monkeypatch.setattr(sphere, "FAMILIES", ("gaussian",))
    arguments = ["--quick", "--sizes", "1000", "--dimensions", "3", "--out", str(tmp_path)]
    sphere.main(arguments)
    entries = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines() if line]
    rows = {row["energy"]: row for entry in entries for row in entry["rows"]}
    assert rows["tangent"]["tangents"][0] == 2
    for row in rows.values():
        times = np.array(row["timescales"]["cross-fitted"])
        exact = np.repeat([1 / 2, 1 / 6, 1 / 12, 1 / 20], [3, 5, 7, 9])  # ℓ(ℓ+1), 2ℓ+1 times
        assert row["errors"]["cross-fitted"] == pytest.approx(np.abs(times - exact).sum() / exact.sum())
        assert row["errors"]["cross-fitted"] < 0.1
    table = (tmp_path / "table.md").read_text()
    assert f"{rows['tangent']['errors']['ritz']:.4f}" in table
    assert (tmp_path / "sphere.png").stat().st_size > 10_000

    def never(**_):
        raise AssertionError("a finished row was computed again")

    monkeypatch.setattr(sphere, "run", never)
    monkeypatch.setattr(sphere, "run_exact", never)
    sphere.main(arguments)
    assert (tmp_path / "table.md").read_text() == table
    sphere.main([*arguments, "--dimensions", "3", "5", "--finished"])
    assert (tmp_path / "table.md").read_text() == table
