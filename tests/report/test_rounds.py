"""The page of rounds: every round with its numbers, figures and warnings."""

import re

import numpy as np
import pytest

from kdmaps.report import render_rounds
from kdmaps.simulation import Loop
from shared import wide_map


def simulate(bias, starts, seed):
    return np.random.default_rng(seed).standard_normal((300, 2)) * [1.0, 0.5]


def fit(X, weight):
    return wide_map(1).fit(X, sample_weight=weight)


@pytest.fixture(scope="module")
def loop(tmp_path_factory):
    return Loop(tmp_path_factory.mktemp("rounds"), simulate, fit, kT=2.0, n_starts=5, n_even=200).run(max_rounds=2)


def test_the_page_shows_every_round(loop):
    loop.rounds[1]["warnings"] = ["rates <may> be wrong"]
    page = render_rounds(loop, names=["angle", "<b>ond"])
    rows = re.findall(r"<tr>(.*?)</tr>", page)
    for number, one in enumerate(loop.rounds):
        cells = re.findall(r"<td>(.*?)</td>", rows[1 + number])
        assert cells[:4] == [
            str(number), f"{one['rates'][0]:.4g}", f"{one['free_energy'] / 2:.2f}", f"{one['height'] / 2:.1f}",
        ]  # fmt: skip
        assert f"Modes and free energy of round {number}" in page
    assert "rates &lt;may&gt; be wrong" in page
    assert page.count(">angle<") == 2
    assert "<b>ond" not in page
    assert not re.search(r'(?:src|href)="(?!data:|#)', page)  # needs no other file


def test_the_loop_writes_it_whole(loop, tmp_path):
    loop.write_page()
    assert (loop.directory / "rounds.html").read_text().endswith("</html>")
    loop.write_page(tmp_path / "other.html", coordinates=[1])
    assert (tmp_path / "other.html").exists()


def test_nothing_to_show(tmp_path):
    with pytest.raises(ValueError, match="no finished round"):
        render_rounds(Loop(tmp_path, simulate, fit, kT=1.0))
