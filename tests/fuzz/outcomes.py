"""Numbers of fuzz cases by outcome, which conftest.py can write to a table."""

import os
from collections import Counter

#: Factor of the number of cases; with more than 1, cases depend on `--hypothesis-seed`.
TIMES = int(os.environ.get("KDMAPS_FUZZ_TIMES", "1"))
#: Counts of (kind of case, outcome).
OUTCOMES = Counter()


def count(what, ending):
    OUTCOMES[what, ending] += 1
