"""The same settings and seed give the numbers of version 0.1.0 (compare/release_0_1_0.py), but for searches.

The score of a search changed in 0.2.0.
"""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
EXPECTED = json.loads((ROOT / "tests" / "references" / "release_0_1_0.json").read_text())
spec = importlib.util.spec_from_file_location("release_0_1_0", ROOT / "compare" / "release_0_1_0.py")
release = importlib.util.module_from_spec(spec)
spec.loader.exec_module(release)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in EXPECTED if not case.endswith("/search")])
def test_same_numbers(case):
    expected = EXPECTED[case]
    _, rates, modes = release.fit(*case.split("/"), random_state=expected["seed"])
    # Sums in another order, times the condition number of landmarks.
    tolerance = {"fourier": 1e-10}.get(case.split("/")[1], 1e-6)
    np.testing.assert_allclose(rates, expected["rates"], rtol=tolerance)
    np.testing.assert_allclose(modes, expected["modes"], atol=10 * tolerance)
