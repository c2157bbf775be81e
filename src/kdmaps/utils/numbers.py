"""Numbers as text."""


def rounded(value: float, digits: int = 4) -> str:
    """Return a number with some significant digits; thousands without an exponent: 1520, not 1.52e+03."""
    text = f"{value:.{digits}g}"
    return f"{float(text):.0f}" if "e+" in text and abs(value) < 1e6 else text
