"""Memberships of deeptime's PCCA+ for a small reversible chain, for tests/dynamics/test_states.py to compare with."""

import json
from pathlib import Path

import deeptime
import numpy as np
from deeptime.markov import pcca

REFERENCE = Path(__file__).resolve().parents[1] / "tests" / "references" / "deeptime_pcca.json"


def chain(n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Metropolis walk on a line in a potential with three unequal wells: transition matrix and stationary law."""
    x = np.linspace(-1, 1, n)
    energy = 4 * np.cos(3 * np.pi * x) + x
    pi = np.exp(-energy) / np.exp(-energy).sum()
    P = np.zeros((n, n))
    for i in range(n):
        for j in (i - 1, i + 1):
            if 0 <= j < n:
                P[i, j] = 0.5 * min(1.0, pi[j] / pi[i])
        P[i, i] = 1 - P[i].sum()
    return P, pi


def main():
    """Write the reference file."""
    P, pi = chain()
    root = np.sqrt(pi)
    _, vectors = np.linalg.eigh(root[:, None] * P / root)
    modes = (vectors[:, ::-1] / root[:, None])[:, 1:3]
    memberships = pcca(P, 3, pi).memberships
    reference = {
        "versions": {"deeptime": deeptime.__version__},
        "stationary": pi.tolist(),
        "modes": modes.tolist(),
        "memberships": memberships.tolist(),
    }
    REFERENCE.write_text(json.dumps(reference, separators=(",", ":")) + "\n")
    print(f"{len(pi)} memberships written to {REFERENCE.name}")


if __name__ == "__main__":
    main()
