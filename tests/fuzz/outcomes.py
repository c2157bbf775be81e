"""How many cases were tried, and how they ended; conftest.py writes them to a table if it is told to."""

import os
from collections import Counter

#: How many times as many cases as usual; other ones, of the seed of `--hypothesis-seed`.
TIMES = int(os.environ.get("KDMAPS_FUZZ_TIMES", "1"))
#: Counts of (what was tried, how it ended).
OUTCOMES = Counter()


def count(what, ending):
    OUTCOMES[what, ending] += 1
