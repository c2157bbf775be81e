"""Checkpoints: an interrupted search resumes, and a checkpoint of another search is refused."""

import json
import os
import signal
import threading
import time
import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.model_selection import KFold

import kdmaps
from kdmaps import KernelSearchCV
from kdmaps.utils.files import sealed
from shared import SMALL_SEARCH, checks, expects, known


@pytest.fixture(scope="module")
def X():
    return kdmaps.problems.load("dw1d").sample(300, random_state=0)


@pytest.mark.slow
def test_resume_gives_the_same_answer(X, tmp_path):
    path = tmp_path / "sweep.jsonl"
    whole = KernelSearchCV(**SMALL_SEARCH).fit(X)
    KernelSearchCV(**SMALL_SEARCH, checkpoint=path).fit(X)
    lines = path.read_text().splitlines()
    # As a kill would leave it: half of the trials, the last line cut off.
    path.write_text("\n".join(lines[: len(lines) // 2]) + "\n" + lines[-1][:40])
    resumed = KernelSearchCV(**SMALL_SEARCH, checkpoint=path).fit(X)
    assert resumed.best_params_ == whole.best_params_
    np.testing.assert_array_equal(resumed.cv_results_["selection_score"], whole.cv_results_["selection_score"])
    np.testing.assert_array_equal(resumed.transform(X), whole.transform(X))


def test_finished_trials_are_read_not_run(X, tmp_path):
    path = tmp_path / "sweep.jsonl"
    KernelSearchCV(**SMALL_SEARCH, checkpoint=path).fit(X)
    lines = path.read_text().splitlines()
    marked = []
    for line in lines:
        entry = json.loads(line) if line else {}
        for candidate in entry.get("candidates", []):
            candidate["score"][0] -= 1000
        entry.pop("checksum", None)
        marked.append(json.dumps(sealed(entry)) if line else "")
    path.write_text("\n".join(marked))
    assert KernelSearchCV(**SMALL_SEARCH, checkpoint=path).fit(X).best_selection_score_ < -900


@pytest.mark.slow
def test_checkpoint_of_other_data_is_refused(X, tmp_path):
    path = tmp_path / "sweep.jsonl"
    KernelSearchCV(**SMALL_SEARCH, checkpoint=path).fit(X)
    with pytest.raises(ValueError, match="belongs to other data"):
        KernelSearchCV(**SMALL_SEARCH, checkpoint=path).fit(X + 1e-9)
    with pytest.raises(ValueError, match="belongs to other data"):
        KernelSearchCV(**SMALL_SEARCH, scoring="rayleigh", checkpoint=path).fit(X)
    for seed in (1, 2):  # the same sizes of folds, but other samples in them
        folds = tmp_path / "folds.jsonl"
        search = KernelSearchCV(**SMALL_SEARCH, cv=KFold(3, shuffle=True, random_state=seed), checkpoint=folds)
        if seed == 1:
            search.fit(X)
        else:
            with pytest.raises(ValueError, match="belongs to other data"):
                search.fit(X)
    with pytest.raises(ValueError, match="existing directory"):
        KernelSearchCV(**SMALL_SEARCH, checkpoint=tmp_path / "no" / "where.jsonl").fit(X)


#: A power that a score of this module looks up.
POWER = 2.0


def powered(fold, power=2.0):
    return -(float(fold.regularization) ** power)


class Powered:
    def __init__(self, power):
        self.power = power

    def __call__(self, fold):
        return powered(fold, self.power)


def closure(power):
    def scoring(fold):
        return -(float(fold.regularization) ** power)

    return scoring


def by_module(fold):
    return -(float(fold.regularization) ** POWER)


def with_default(power):
    return lambda fold, power=power: -(float(fold.regularization) ** power)


@known("flat")
@pytest.mark.parametrize("make", [closure, with_default, Powered, lambda power: partial(powered, power=power)])
def test_checkpoint_identifies_a_score_by_its_content(make, X, tmp_path):
    """A function of the same name with another constant gives other scores than the file."""
    settings = {**SMALL_SEARCH, "bandwidths": [1.0], "families": ["gaussian"], "checkpoint": tmp_path / "sweep.jsonl"}
    first = KernelSearchCV(**settings, scoring=make(2.0)).fit(X)
    again = KernelSearchCV(**settings, scoring=make(2.0)).fit(X)
    np.testing.assert_array_equal(again.cv_results_["selection_score"], first.cv_results_["selection_score"])
    with pytest.raises(ValueError, match="other data, settings or scoring"):
        KernelSearchCV(**settings, scoring=make(0.5)).fit(X)


@known("flat")
def test_checkpoint_identifies_module_variables_of_a_score(X, tmp_path, monkeypatch):
    settings = {**SMALL_SEARCH, "bandwidths": [1.0], "families": ["gaussian"], "checkpoint": tmp_path / "sweep.jsonl"}
    KernelSearchCV(**settings, scoring=by_module).fit(X)
    monkeypatch.setitem(globals(), "POWER", 0.5)
    with pytest.raises(ValueError, match="other data, settings or scoring"):
        KernelSearchCV(**settings, scoring=by_module).fit(X)


def test_checkpoint_rejects_a_score_without_a_digest(X, tmp_path):
    lock = threading.Lock()

    def scoring(fold):
        with lock:
            return 0.0

    with pytest.raises(ValueError, match="checkpoint cannot identify"):
        KernelSearchCV(**SMALL_SEARCH, scoring=scoring, checkpoint=tmp_path / "new.jsonl").fit(X)


def test_checkpoint_identifies_the_tensor_at_every_sample(X, tmp_path):
    """Also if it differs only at the last sample."""
    settings = {**SMALL_SEARCH, "bandwidths": [1.0], "families": ["gaussian"], "checkpoint": tmp_path / "sweep.jsonl"}
    last = X[-1, 0]
    KernelSearchCV(**settings, diffusion=lambda x: np.ones(len(x))).fit(X)
    with pytest.raises(ValueError, match="belongs to other data"):
        KernelSearchCV(**settings, diffusion=lambda x: 1.0 + (x[:, 0] == last)).fit(X)


def test_checkpoint_identifies_the_landmarks_of_the_second_basis(X, tmp_path):
    settings = {"n_components": 2, "n_features": 60, "random_state": 0, "checkpoint": tmp_path / "sweep.jsonl"}
    settings |= {"families": ["gaussian"], "basis": "auto"}
    KernelSearchCV(**settings, landmarks="kmeans").fit(X)
    with pytest.raises(ValueError, match="belongs to other data"):
        KernelSearchCV(**settings, landmarks="uniform").fit(X)


@known("within-lag", "no-gap", "held-out-factor", "kernel-factor", "no-memory")
def test_checkpoint_identifies_the_pairs_of_frames(X, tmp_path):
    settings = {**SMALL_SEARCH, "bandwidths": [1.0], "families": ["gaussian"], "checkpoint": tmp_path / "sweep.jsonl"}
    KernelSearchCV(**settings, lag=2).fit(X)
    for other in ({"lag": 3}, {"lag": None}):
        with pytest.raises(ValueError, match="belongs to other data"):
            KernelSearchCV(**settings, **other).fit(X)


def test_checkpoint_of_an_older_format_is_rejected(X, tmp_path):
    path = tmp_path / "sweep.jsonl"
    path.write_text('{"format": 4, "kdmaps": "0.2.0.dev0", "seed": 0}\n')
    with pytest.raises(ValueError, match="has format 4"):
        KernelSearchCV(**SMALL_SEARCH, checkpoint=path).fit(X)


def test_changed_lines_are_evaluated_again(X, tmp_path):
    settings = {**SMALL_SEARCH, "checkpoint": tmp_path / "sweep.jsonl"}
    whole = KernelSearchCV(**settings).fit(X)
    path, (header, *lines) = settings["checkpoint"], settings["checkpoint"].read_text().split("\n")
    number = next(number for number, line in enumerate(lines) if line)
    value = json.loads(lines[number])["candidates"][0]["score"][0]
    changed = lines[number].replace(repr(value), repr(value + 1000.0), 1)
    assert changed != lines[number]
    path.write_text("\n".join([header, *lines[:number], changed, *lines[number + 1 :]]))
    with expects("changed-checkpoint") as record:
        resumed = KernelSearchCV(**settings).fit(X)
    assert checks(record)[0].value == 1
    np.testing.assert_array_equal(resumed.cv_results_["selection_score"], whole.cv_results_["selection_score"])


def test_a_changed_header_is_refused(X, tmp_path):
    path = tmp_path / "sweep.jsonl"
    settings = {**SMALL_SEARCH, "bandwidths": [1.0], "families": ["gaussian"], "random_state": None}
    KernelSearchCV(**settings, checkpoint=path).fit(X)
    seed = json.loads(path.read_text().split("\n")[0])["seed"]
    path.write_text(path.read_text().replace(f'"seed": {seed}', f'"seed": {seed + 1}', 1))
    with pytest.raises(ValueError, match="or was changed"):
        KernelSearchCV(**settings, checkpoint=path).fit(X)


def test_checkpoint_identifies_the_tensor(X, tmp_path):
    path = tmp_path / "sweep.jsonl"
    KernelSearchCV(**SMALL_SEARCH, diffusion=lambda x: 1 + x[:, 0] ** 2, checkpoint=path).fit(X)
    with pytest.raises(ValueError, match="belongs to other data"):
        KernelSearchCV(**SMALL_SEARCH, diffusion=lambda x: 2 + x[:, 0] ** 2, checkpoint=path).fit(X)


@known("flat")
def test_checkpoint_identifies_the_weights(X, tmp_path):
    """The bandwidths are given, so only the digest of the checkpoint distinguishes the searches."""
    path, settings = tmp_path / "sweep.jsonl", {**SMALL_SEARCH, "bandwidths": [1.0, 2.0], "max_extensions": 0}
    weight = np.linspace(0.5, 1.5, len(X))
    KernelSearchCV(**settings, checkpoint=path).fit(X, sample_weight=weight)
    size = path.stat().st_size
    KernelSearchCV(**settings, checkpoint=path).fit(X, sample_weight=weight.copy())
    assert path.stat().st_size == size  # resumed: nothing was run again
    for other in (None, weight[::-1]):
        with pytest.raises(ValueError, match="belongs to other data"):
            KernelSearchCV(**settings, checkpoint=path).fit(X, sample_weight=other)


@pytest.mark.slow
def test_resume_without_a_seed_takes_the_seed_of_the_checkpoint(X, tmp_path):
    path = tmp_path / "sweep.jsonl"
    path.touch()
    settings = {**SMALL_SEARCH, "random_state": None, "checkpoint": path}
    first = KernelSearchCV(**settings).fit(X)
    np.testing.assert_array_equal(KernelSearchCV(**settings).fit(X).transform(X), first.transform(X))


@pytest.fixture
def interruptible():
    """Background processes ignore the signal by default."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("n_jobs", [1, 2])
@known("flat")  # the score does not look at the kernel
@pytest.mark.slow
def test_interrupt_is_raised_and_finished_candidates_are_kept(X, tmp_path, n_jobs, monkeypatch):
    path, calls = tmp_path / "sweep.jsonl", []

    def counted(fold):  # the same function in both searches: the checkpoint identifies it by its content
        calls.append(fold)
        # A kernel has 7 regularizations on 2×3 folds: the third one is under way.
        if len(calls) == 100 and "INTERRUPTED" in os.environ:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        return -float(fold.regularization)

    monkeypatch.setenv("INTERRUPTED", "yes")
    search = KernelSearchCV(**SMALL_SEARCH, scoring=counted, n_jobs=n_jobs, checkpoint=path)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X)
    assert not hasattr(search, "best_params_")  # nothing half-fitted is left behind
    calls.clear()
    monkeypatch.delenv("INTERRUPTED")
    resumed = KernelSearchCV(**SMALL_SEARCH, scoring=counted, n_jobs=1, checkpoint=path, max_extensions=0).fit(X)
    whole = KernelSearchCV(**SMALL_SEARCH, scoring=counted, n_jobs=1, max_extensions=0)
    done = len(calls)
    assert 0 < done < 8 * 7 * 6  # kernels × regularizations × folds: some were read, not evaluated again
    assert whole.fit(X).best_params_ == resumed.best_params_


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupt_ends_a_sum_at_its_next_chunk(n_jobs):
    calls = []

    def diffusion(chunk):
        calls.append(len(chunk))
        if len(calls) == 40:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            time.sleep(0.2)  # for the main thread to notice
        return np.ones(len(chunk))

    X = np.random.default_rng(0).standard_normal((200_000, 2))
    search = KernelSearchCV(**{**SMALL_SEARCH, "n_features": 200}, diffusion=diffusion, n_jobs=n_jobs)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X)
    # A kernel alone has 200,000/2,621 = 77 chunks. Only the current chunk, and 0.2 s of the other thread, remain.
    assert len(calls) < 60


@pytest.mark.parametrize("content", [b"[1, 2]\n", b"\x80\x81\n", b'{"key": "a"}\n'])
def test_rejects_a_file_that_is_not_a_checkpoint(X, tmp_path, content):
    path = tmp_path / "sweep.jsonl"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="belongs to other data"):
        KernelSearchCV(**SMALL_SEARCH, checkpoint=path).fit(X)
    assert path.read_bytes() == content


def test_modes_of_a_few_rows_come_last_in_a_grid():
    X = np.random.default_rng(0).standard_normal((200, 2))
    X[:2] = [[6, 6], [6, 6.1]]  # two outliers, which modes of the weaker regularization separate from the others
    grid = {
        "bandwidths": [0.5, 1, 2, 4, 8],
        "families": ("gaussian",),
        "regularizations": [1e-4, 1e-2],
        "max_extensions": 0,
    }
    settings = {**grid, "cv": 2, "n_features": 60, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        equal = kdmaps.KernelSearchCV(2, scoring=lambda fold: 0.0, **settings).fit(X)
        paper = kdmaps.KernelSearchCV(2, scoring="rayleigh", **settings).fit(X)
    few = np.array([c.few_rows for c in equal.search_result_.candidates])
    assert few[0]
    assert not few[-1]
    assert equal.best_index_ == np.flatnonzero(~few)[0]
    assert equal.cv_results_["rank_selection_score"][few].min() > np.count_nonzero(~few) - 1
    assert not any(c.few_rows for c in paper.search_result_.candidates)  # the protocol of the paper is unchanged


@pytest.mark.parametrize("scoring", ["rayleigh", "eigsum", "gap"])
def test_scores_of_the_paper_are_guarded_from_coarse_to_fine(scoring):
    X = np.random.default_rng(0).standard_normal((200, 2))
    X[:4] = 6 + 0.1 * X[:4]  # enough for the folds to agree on their mode
    settings = {"families": ("gaussian",), "cv": 2, "n_features": 60, "isolated": "keep", "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = kdmaps.KernelSearchCV(1, scoring=scoring, **settings).fit(X).search_result_
    few = [c for c in found.candidates if c.few_rows]
    assert max(c.value for c in few) > found.best.value  # they would win by the score alone
    assert not found.best.few_rows


@pytest.mark.parametrize("distance", [10, 50])
def test_one_distant_row_is_not_a_mode(distance):
    """A wide kernel at a distant row has a slow mode with the energy of many rows, but the variance of one."""
    system = kdmaps.problems.load("triplewell2d")
    X = system.sample(500, random_state=0)
    far = X.mean(axis=0) + np.array([distance * X.std(), 0])
    search = kdmaps.KernelSearchCV(families=("gaussian", "matern32"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kdmaps.AdaptiveDiffusionMap(2, n_features=100, search=search, random_state=0).fit(np.vstack([X, far]))
    # Without the row, SubR² is .99; with its mode in place of the second one, about .5.
    assert kdmaps.metrics.subspace_r2(model.transform(X), system.reference(X, 2)) > 0.98
