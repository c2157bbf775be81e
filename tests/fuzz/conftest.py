"""Table of fuzz results. Cases are the same every time, or, with KDMAPS_FUZZ_TIMES=n, n times as many random ones.

`KDMAPS_FUZZ_TIMES=20 KDMAPS_FUZZ_TABLE=results/fuzz/table.md python -m pytest tests/fuzz --hypothesis-seed=1 -m ""`
writes the table of results/fuzz.
"""

import os
from pathlib import Path

from outcomes import OUTCOMES

from experiments._runner import markdown


def pytest_sessionfinish(session):
    path = os.environ.get("KDMAPS_FUZZ_TABLE")
    if not path or not OUTCOMES:
        return
    endings = sorted({ending for _, ending in OUTCOMES})
    whats = sorted({what for what, _ in OUTCOMES})
    rows = [[what, *(str(OUTCOMES[what, ending]) for ending in endings)] for what in whats]
    total = sum(OUTCOMES.values())
    head = f"{total} cases, {session.testsfailed} failed test(s). Numbers of cases by outcome:"
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(f"{head}\n\n{markdown(['tried', *endings], rows)}\n", encoding="utf-8")
