"""Numbers as text."""

import pytest

from kdmaps.utils.numbers import rounded


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (1524.0, 3, "1520"),
        (-1524.0, 3, "-1520"),
        (1524.0, 4, "1524"),
        (108_760.0, 4, "108800"),
        (1.4e13, 2, "1.4e+13"),
        (0.000122, 2, "0.00012"),
        (1e-5, 2, "1e-05"),
        (2.0, 4, "2"),
        (float("inf"), 4, "inf"),
        (float("nan"), 4, "nan"),
    ],
)
def test_thousands_have_no_exponent(value, digits, text):
    assert rounded(value, digits) == text
