"""Work of a fit, counted: passes over the samples, rows that the evidence evaluates, chunks and factorisations.

Seconds depend on the machine; these numbers do not, and they grow when a cost creeps in.
"""

from collections import Counter

import numpy as np
import pytest

import kdmaps
from kdmaps.bases import FourierBasis, LandmarkBasis
from kdmaps.data import ArraySource, as_source
from kdmaps.diagnostics import evidence
from kdmaps.forms.energy import EnergyForm
from kdmaps.spectrum import iteration, pencil
from shared import known

N = 30_000
X = np.random.default_rng(0).standard_normal((N, 3))


#: About half above the counts of this version; rows in units of the samples that are searched.
LIMITS = {"sums": 700, "factorisations": 2_200, "rows summed": 300, "rows of evidence": 2}


@pytest.fixture
def counts(monkeypatch):
    """Return counts of calls and rows; functions are counted by the name under which they are looked up."""
    found = Counter()

    def counted(owner, name, label, size=lambda *args: 1):
        original = getattr(owner, name)

        def wrapper(*args, **kwargs):
            found[label] += size(*args)
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, wrapper)

    counted(ArraySource, "read", "rows read", lambda source, part: len(source.array[part]))
    counted(EnergyForm, "moments", "sums")
    for basis in (FourierBasis, LandmarkBasis):
        counted(basis, "step", "chunks")
        counted(basis, "step", "rows summed", lambda basis, state, X, *rest: len(X))
        counted(basis, "energies", "rows of evidence", lambda basis, X, *rest: len(X))
        counted(basis, "gradient", "rows of gradients", lambda basis, X, *rest: len(X))
    counted(pencil.lapack, "dpotrf", "factorisations")
    counted(iteration, "factorise", "factorisations")
    return found


@known("no-gap")
def test_one_fit_is_one_pass(counts):
    model = kdmaps.KernelDiffusionMap(2, n_features=64, random_state=0).fit(X)
    assert counts["rows summed"] == N
    assert counts["sums"] == counts["factorisations"] == 1
    assert counts["chunks"] == -(-N // model.basis_.chunk_rows)
    # Once for the data check, which looks at all rows in memory, once for the preview, once for the sums.
    assert counts["rows read"] <= 2 * N + 10_000
    assert counts["rows of evidence"] == evidence.MOST_AFTER_FIT
    assert counts["rows of gradients"] == 0


@known("no-gap")
def test_a_file_is_read_once_and_previewed(counts, tmp_path):
    np.save(tmp_path / "X.npy", X)
    kdmaps.KernelDiffusionMap(2, n_features=64, random_state=0).fit(as_source(tmp_path / "X.npy"))
    assert counts["rows summed"] == N
    assert N < counts["rows read"] <= N + 3 * 10_000  # the data check and the preview have 10,000 rows each


@known("no-gap", "folds-disagree")
def test_a_default_fit_sums_a_bounded_number_of_rows(counts):
    """The search sums over 5,000 samples at most, however many there are; all samples are summed once."""
    kdmaps.AdaptiveDiffusionMap(2, random_state=0).fit(X)
    small = dict(counts)
    counts.clear()
    kdmaps.AdaptiveDiffusionMap(2, random_state=0).fit(np.vstack([X, X + 1e-6]))
    assert counts["sums"] <= 1.5 * small["sums"]  # other samples, other rounds
    assert counts["rows summed"] - N <= 1.5 * small["rows summed"]
    assert small["sums"] < LIMITS["sums"]
    assert small["factorisations"] < LIMITS["factorisations"]
    assert small["rows summed"] < LIMITS["rows summed"] * 5_000


def test_work_of_a_small_default_fit(counts):
    n = 500
    kdmaps.AdaptiveDiffusionMap(2, random_state=0).fit(X[:n])
    for name in ("sums", "factorisations"):
        assert counts[name] < LIMITS[name], name
    assert counts["rows summed"] < LIMITS["rows summed"] * n
    assert counts["rows of evidence"] < LIMITS["rows of evidence"] * n
