"""Numbers in pages of the documentation, so that tests can check claims without fixing their wording."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
NUMBER = re.compile(rf"(?<![\w.])(?<!\w-)\d*\.?\d[\d,]*(?:\.\d+)?|\b(?:{'|'.join(WORDS)})\b", re.IGNORECASE)


def read_page(name, heading=None):
    """The text of a page in docs/, or of one of its sections."""
    text = (ROOT / "docs" / name).read_text()
    return text if heading is None else text.split(f"# {heading}\n")[1].split("\n## ")[0]


def numbers(text):
    """Numbers of a text, in digits: 0.5 and .5 are the same, and so are 3 and three."""
    found = (match.lower().replace(",", "").removeprefix("0") or "0" for match in NUMBER.findall(text))
    return [str(WORDS.index(number)) if number in WORDS else number for number in found]


def states(text, key, *values):
    """Whether one paragraph (or point of a list) contains the key and, in this order, the numbers."""
    wanted = [number for value in values for number in numbers(str(value))]
    assert wanted, "no numbers to look for"
    for paragraph in re.split(r"\n\n|\n(?=- )", text):
        rest = iter(numbers(paragraph))
        if key in paragraph and all(number in rest for number in wanted):
            return True
    return False
