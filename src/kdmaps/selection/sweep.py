"""A sweep: many kernels and regularizations on the same folds, in parallel, with progress, resumable."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from kdmaps.bases import make_basis
from kdmaps.data import Sample
from kdmaps.data.remote import RemoteSource
from kdmaps.exceptions import UnreliableModesWarning
from kdmaps.forms.diffusion import DiffusionTensor
from kdmaps.kernels import Kernel, kernel_from_dict
from kdmaps.selection.folds import CrossFit, FoldMoments, cross_fit
from kdmaps.selection.rules import CandidateScore, jackknife_error
from kdmaps.utils.files import as_path
from kdmaps.utils.progress import track
from kdmaps.utils.threads import blas_threads, n_threads, single_thread
from kdmaps.utils.validation import checked_random_state

CHECKPOINT_FORMAT = 1


@dataclass
class Candidate:
    """One row of a sweep."""

    family: str
    kernel: Kernel
    bandwidth: float | None
    regularization: float
    value: float = -np.inf
    replicates: list[float] = field(default_factory=list)
    fold_values: list[float] = field(default_factory=list)
    agreement: float = np.nan
    condition_number: float = np.nan
    timescales: list[float] = field(default_factory=list)
    seconds: float = np.nan

    @property
    def standard_error(self) -> float:
        """Of the score, over the folds."""
        return jackknife_error(np.array(self.replicates)) if self.replicates else np.nan

    def gain(self, other: Candidate) -> float:
        """By how many standard errors of the difference this candidate is better than another one."""
        error = jackknife_error(np.array(self.replicates) - np.array(other.replicates))
        return (self.value - other.value) / max(error, np.finfo(float).tiny)

    @property
    def params(self) -> dict[str, Any]:
        """Arguments that make `KernelDiffusionMap` fit this candidate."""
        if self.bandwidth is None:
            return {"kernel": self.kernel, "regularization": self.regularization}
        return {"kernel": self.family, "bandwidth": self.bandwidth, "regularization": self.regularization}

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a checkpoint."""
        return {**vars(self), "kernel": self.kernel.to_dict()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Candidate:
        """Inverse of `to_dict`."""
        return cls(**{**data, "kernel": kernel_from_dict(data["kernel"])})


@dataclass(frozen=True)
class SweepData:
    """Everything about a sweep that is the same for all candidates.

    `preview` are the samples of X that decide the landmarks and the origin.
    """

    X: np.ndarray | RemoteSource
    preview: Sample
    weight: np.ndarray | None
    tensor: DiffusionTensor
    folds: FoldMoments
    n_components: int
    basis: str
    n_features: int
    sampling: str
    landmarks: Any
    center: bool
    dtype: Any
    engine: str | None
    seed: int

    def fingerprint(self) -> str:
        """A digest of the data and the settings, by which a checkpoint knows that it belongs to them."""
        digest = hashlib.sha256()
        settings = (self.n_components, self.basis, self.n_features, self.sampling, self.center, self.seed)
        X, rows = (self.X, slice(None)) if isinstance(self.X, np.ndarray) else (self.preview.X, self.preview.rows)
        digest.update(repr((self.X.shape, str(X.dtype), settings, str(np.dtype(self.dtype)))).encode())
        # A callable tensor is known by its values at some samples.
        few = slice(None) if self.tensor.per_sample else slice(100)
        tensor = self.tensor.rows(np.asarray(X[few], dtype=np.float64), np.arange(self.X.shape[0])[rows][few])
        arrays = (X, self.weight, self.landmarks, self.tensor.constant, *tensor, self.folds.assignment)
        for array in arrays:
            if isinstance(array, np.ndarray):
                digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def cross_fit(self, kernel: Kernel, regularizations: Iterable[float], n_components: int) -> list[CrossFit | None]:
        basis = make_basis(
            self.basis,
            kernel,
            self.preview.X,
            self.n_features,
            sampling=self.sampling,
            landmarks=self.landmarks,
            random_state=self.seed,
            sample_weight=self.preview.weight,
        ).astype(self.dtype)
        whole, folds = self.folds.compute(basis, self.X, self.weight, self.tensor, self.engine)
        return cross_fit(whole, folds, basis.ridge, n_components, regularizations, self.center)


@dataclass(frozen=True)
class Trial:
    """A kernel to be tried: its family's name and bandwidth, or a label and no bandwidth for a kernel as given."""

    family: str
    bandwidth: float | None
    kernel: Kernel


def _evaluate(
    index: int, data: SweepData, scoring: Callable[[CrossFit], CandidateScore], trial: Trial, lambdas: list[float]
) -> tuple[int, list[Candidate]]:
    """The candidates of one kernel, one for each λ."""
    start = time.perf_counter()
    with single_thread():
        fits = data.cross_fit(trial.kernel, lambdas, data.n_components)
    found = []
    for lam, fit in zip(lambdas, fits, strict=True):
        candidate = Candidate(trial.family, trial.kernel, trial.bandwidth, lam)
        if fit is not None:
            score = scoring(fit)
            candidate.value = score.value if np.isfinite(score.value) else -np.inf
            candidate.replicates = score.replicates.tolist()
            candidate.fold_values = score.fold_values.tolist()
            candidate.agreement = fit.agreement()
            candidate.condition_number = fit.condition_number
            candidate.timescales = (1 / fit.rates).tolist()
        found.append(candidate)
    for candidate in found:
        candidate.seconds = (time.perf_counter() - start) / len(found)
    return index, found


class Sweep:
    """Evaluates trials and keeps what it found.

    Parameters
    ----------
    data : SweepData
    scoring : callable
        From `CrossFit` to `CandidateScore`.
    scoring_name : str
        Told to the checkpoint.
    n_jobs : int or None
        Threads; None is one per core, or as many as keep all workers of Dask data busy.
    checkpoint : path or None
        A file (JSON lines) to which finished trials are written, and from which they are read if it exists.
    progress : bool
        Whether to show a progress bar.
    """

    def __init__(self, data: SweepData, scoring, scoring_name: str, n_jobs, checkpoint, progress: bool):
        self.data, self.scoring, self.progress = data, scoring, progress
        if n_jobs is None:
            n_jobs = data.X.at_once if isinstance(data.X, RemoteSource) else n_threads()
        self.n_jobs = n_jobs
        self.candidates: list[Candidate] = []
        self.interrupted = False
        self._checkpoint = None if checkpoint is None else as_path("checkpoint", checkpoint)
        self._done: dict[str, list[Candidate]] = {}
        if self._checkpoint is not None:
            if "<lambda>" in scoring_name:
                raise ValueError("checkpoint cannot tell one lambda from another; give scoring a named function.")
            header = {"format": CHECKPOINT_FORMAT, "kdmaps": version("kdmaps"), "seed": data.seed}
            self._open_checkpoint({**header, "data": data.fingerprint(), "scoring": scoring_name})

    @property
    def best(self) -> Candidate:
        """The candidate of the largest value."""
        return max(self.candidates, key=lambda candidate: candidate.value)

    def _label(self) -> str:
        if not self.candidates:
            return "search"
        best = self.best
        return f"best {best.value:.4g}: {best.family} σ={best.bandwidth or 0:.3g} λ={best.regularization:.1g}"

    def run(self, trials: Sequence[Trial], regularizations: Iterable[float]) -> list[Candidate]:
        """Evaluate every trial at every λ and return the new candidates.

        After an interrupt (Ctrl-C), what was finished is kept.
        """
        lambdas = [float(lam) for lam in regularizations]
        results: dict[int, list[Candidate]] = {
            i: self._done[self._key(trial, lambdas)]
            for i, trial in enumerate(trials)
            if self._key(trial, lambdas) in self._done
        }
        before = list(self.candidates)
        missing = [(i, trial) for i, trial in enumerate(trials) if i not in results]
        self._collect(before, results)
        try:
            with blas_threads(1) if self.n_jobs != 1 else nullcontext():
                finished = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator_unordered")(
                    delayed(_evaluate)(i, self.data, self.scoring, trial, lambdas) for i, trial in missing
                )
                for i, found in track(finished, len(missing), self._label, self.progress):
                    results[i] = found
                    self._record(self._key(trials[i], lambdas), found)
                    self._collect(before, results)
        except KeyboardInterrupt:
            self.interrupted = True
            if not self.candidates:
                raise
            warnings.warn(
                f"Interrupted: the search ends with the best of {len(self.candidates)} candidates.",
                UnreliableModesWarning,
                stacklevel=4,
            )
        return self.candidates[len(before) :]

    def _collect(self, before: list[Candidate], results: dict[int, list[Candidate]]) -> None:
        # In the order of the trials, whichever thread was first: ties are broken the same way in every run.
        self.candidates = before + [candidate for i in sorted(results) for candidate in results[i]]

    # --- checkpoint ---------------------------------------------------------------------------------------------------
    @staticmethod
    def _key(trial: Trial, lambdas: list[float]) -> str:
        return json.dumps([trial.family, trial.kernel.to_dict(), lambdas], sort_keys=True)

    def _open_checkpoint(self, header: dict[str, Any]) -> None:
        assert self._checkpoint is not None
        lines = checkpoint_lines(self._checkpoint)
        if not lines:
            self._checkpoint.write_text(json.dumps(header) + "\n")
            return
        if _parsed(lines[0]) != header:
            raise ValueError(
                f"checkpoint {self._checkpoint} belongs to other data, settings or scoring; remove it or give another "
                "path."
            )
        for entry in filter(None, map(_parsed, lines[1:])):
            self._done[entry["key"]] = [Candidate.from_dict(fields) for fields in entry["candidates"]]

    def _record(self, key: str, found: list[Candidate]) -> None:
        if self._checkpoint is not None:
            with self._checkpoint.open("a") as file:
                file.write("\n" + json.dumps({"key": key, "candidates": [c.to_dict() for c in found]}))
                file.flush()


def checkpoint_lines(path: Path) -> list[str]:
    """Lines of a checkpoint; none if it does not exist yet."""
    if not path.parent.is_dir() or path.is_dir():
        raise ValueError(f"checkpoint must be a file in an existing directory, got {str(path)!r}.")
    return path.read_text().splitlines() if path.exists() else []


def checkpoint_seed(path) -> int | None:
    """The seed of the search that a checkpoint belongs to, if there is one."""
    lines = [] if path is None else checkpoint_lines(as_path("checkpoint", path))
    header = _parsed(lines[0]) if lines else None
    return header.get("seed") if header else None


def search_seed(random_state, checkpoint) -> int:
    """The seed of a search: without a `random_state`, that of its checkpoint if there is one."""
    seed = checkpoint_seed(checkpoint) if random_state is None else None
    return checked_random_state(random_state).randint(2**31) if seed is None else seed


def _parsed(line: str) -> dict[str, Any] | None:
    """A line of a checkpoint; None if it was cut off by a kill, so that its trial is run again."""
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None
