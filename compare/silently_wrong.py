"""Run 23 cases in which 0.1.0 was wrong without a warning, with that version and with this one.

Each case returns a result and whether it is correct; warnings and errors are recorded. The results of 0.1.0 come from
commit 05c35dd of this repository. They are computed if they are missing, which takes half an hour in a clone with jax
and optax; the results of this version are computed every time, in some minutes. Arguments are the numbers of cases to
run. Results are stored in tests/references/silently_wrong.json, the table in results/silent.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from release_0_1_0 import extract
from silent import CASES, run_case

ROOT = Path(__file__).resolve().parents[1]
OUT, TABLE = ROOT / "tests" / "references" / "silently_wrong.json", ROOT / "results" / "silent" / "table.md"


def kept() -> dict[str, dict[str, dict[str, str]]]:
    """Return the stored results, by version and number."""
    return json.loads(OUT.read_text()) if OUT.exists() else {}


def run(version: str) -> None:
    """Run the cases with the kdmaps that is imported, and store the results."""
    wanted = [argument for argument in sys.argv if argument.isdigit()]
    for number, row in sorted(CASES.items()):
        if not wanted or str(number) in wanted:
            new = run_case(row)
            print(version, number, *new.values(), sep=" | ", flush=True)
            found = kept()
            found.setdefault(version, {})[str(number)] = new
            OUT.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


def table() -> str:
    """Return a Markdown table of both versions."""
    found = kept()
    rows = [["#", "case", "0.1.0", "now", "outcome"], ["---"] * 5]
    for number, row in sorted(CASES.items()):
        old, new = (found[version][str(number)] for version in ("0.1.0", "now"))
        now = f"{new['result']} {new['message']}".strip()
        rows.append([str(number), row.what, old["result"], now, new["outcome"]])
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows) + "\n"


def main() -> None:
    """Run 0.1.0 if its results are missing, then this version, and write the table."""
    if len(kept().get("0.1.0", {})) < len(CASES):
        with tempfile.TemporaryDirectory() as folder:
            extract(folder)
            environment = {**os.environ, "PYTHONPATH": f"{folder}/src"}
            subprocess.run([sys.executable, *sys.argv, "--inside"], env=environment, check=True)
    run("now")
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text(table())


if __name__ == "__main__":
    run("0.1.0") if "--inside" in sys.argv else main()
