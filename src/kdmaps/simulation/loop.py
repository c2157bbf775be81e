"""Simulate, weigh, fit, bias along the slowest mode, and again, until nothing changes."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from kdmaps.data.findings import effective_sample_size
from kdmaps.estimators.transformer import ModeTransformer
from kdmaps.metrics import subspace_r2
from kdmaps.simulation.bias import ModeBias
from kdmaps.simulation.weights import checked_kT, umbrella_weights
from kdmaps.utils.files import replacing
from kdmaps.utils.types import PathLike

#: What may change between rounds that are settled: logarithms of rates, free energies and the height of the bias in kT,
#: 1 - R² of the modes; and the share of frames that the model before had no samples near. The height grows by 2 kT and
#: more in each round while a well is being filled, when nothing else changes.
SETTLED = {"rates": 0.2, "free_energy": 0.3, "height": 1.0, "modes": 0.05, "outside": 0.01}
#: Settled rounds in a row after which the loop ends.
IN_A_ROW = 3


class Loop:
    """Simulate, weigh, fit, bias along the slowest mode, and again, until nothing changes.

    Each round simulates with a static bias that fills the wells seen so far along the slowest mode (`ModeBias`), joins
    the frames of the last rounds by `umbrella_weights`, and fits. Rounds are kept on disk: a loop that was killed goes
    on with the round that it was in, and with its frames if they were complete.

    The mode that guides the next bias is that of frames spread evenly over all that was visited, without weights. The
    slowest mode of the system itself is a step: constant in every well, it cannot fill one, and between wells, where
    weights are tiny, it is undetermined. A mode of even frames rises all the way from one end to the other.

    Parameters
    ----------
    directory : path
        For the files of the rounds; made if it does not exist.
    simulate : callable
        ``simulate(bias, starts, seed)`` returns frames (n_frames, ...) of a simulation with a `ModeBias`, from the
        frames `starts`. In the first round both are None.
    fit : callable
        ``fit(X, sample_weight)`` returns a fitted estimator.
    kT : float
        In the units of energies.
    guide : callable, optional
        Like `fit`, for the mode along which the next round is biased, which need not be as accurate; by default `fit`.
    describe : callable, optional
        ``describe(frames)`` returns X, by default the frames themselves.
    n_starts : int, default=100
        Number of frames to start from, drawn from those of the last rounds by the law of the new bias.
    memory : int, default=3
        Number of rounds that count. Older ones have not seen what was found since, and say that it is not there.
    n_even : int, default=600
        Number of frames, spread evenly, that the guide is fitted to.
    bias_factor : float, default=8
        See `ModeBias.filling`.
    seed : int, default=0

    Attributes
    ----------
    rounds : list of dict
        What was found in each finished round: `rates`, `free_energy` (of the rarer side of the slowest mode), `height`
        of the bias of the round, `outside` (share of frames that the guide before had no samples near), `modes`
        (1 - R² with the modes of the round before), `n_frames`, `n_effective`, `warnings`, `settled`.

    Examples
    --------
    Brownian motion in a double well, from one side of it:

    >>> import tempfile
    >>> import kdmaps
    >>> problem = kdmaps.problems.load("dw1d")
    >>> def simulate(bias, starts, seed):
    ...     return problem.sample(200, random_state=seed)  # stands for a simulation
    >>> def fit(X, weight):
    ...     return kdmaps.KernelDiffusionMap(1, n_features=40, random_state=0).fit(X, sample_weight=weight)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     loop = kdmaps.simulation.Loop(directory, simulate, fit, kT=1.0).run(max_rounds=1)
    >>> loop.rounds[0]["n_frames"]
    200
    """

    def __init__(
        self,
        directory: PathLike,
        simulate: Callable[[ModeBias | None, np.ndarray | None, int], np.ndarray],
        fit: Callable[[np.ndarray, np.ndarray], ModeTransformer],
        *,
        kT: float,
        guide: Callable[[np.ndarray, np.ndarray], ModeTransformer] | None = None,
        describe: Callable[[np.ndarray], np.ndarray] | None = None,
        n_starts: int = 100,
        memory: int = 3,
        n_even: int = 600,
        bias_factor: float = 8.0,
        seed: int = 0,
    ):
        self.directory, self.kT = Path(directory), checked_kT(kT)
        self.simulate, self.fit, self.guide, self.describe = simulate, fit, guide or fit, describe or np.asarray
        self.n_starts, self.memory, self.n_even, self.bias_factor, self.seed = (
            n_starts, memory, n_even, bias_factor, seed,
        )  # fmt: skip
        for name, value in (("n_starts", n_starts), ("memory", memory), ("n_even", n_even)):
            if not isinstance(value, Integral) or value < 1:
                raise ValueError(f"{name} must be a positive whole number, got {value!r}.")
        self.directory.mkdir(parents=True, exist_ok=True)
        self.rounds: list[dict[str, Any]] = []
        # Frames and weights of the round that was asked for last: the next round begins with them.
        self._weighted: tuple[int, tuple[np.ndarray, np.ndarray, np.ndarray]] | None = None
        while (path := self._path(len(self.rounds), "json")).exists():
            self.rounds.append(json.loads(path.read_text()))

    def run(self, max_rounds: int = 20, after: Callable[[Loop], None] | None = None) -> Loop:
        """Run rounds until nothing changes, or until there are `max_rounds`; return self.

        Parameters
        ----------
        max_rounds : int, default=20
            Those of earlier calls count.
        after : callable, optional
            Called with the loop after every round.
        """
        while len(self.rounds) < max_rounds and not self.settled:
            self._round(len(self.rounds))
            if after is not None:
                after(self)
        return self

    def write_page(self, path: PathLike | None = None, **options: Any) -> None:
        """Write an HTML page that shows every finished round: rates, free energy, modes, where frames lie, warnings.

        Parameters
        ----------
        path : path-like, optional
            By default ``rounds.html`` in the directory.
        **options
            As in `kdmaps.report.render_rounds`.
        """
        from kdmaps.report import write_rounds  # output is built on simulation

        write_rounds(self, self.directory / "rounds.html" if path is None else path, **options)

    @property
    def settled(self) -> bool:
        """Whether nothing has changed in the last rounds."""
        last = self.rounds[-IN_A_ROW:]
        return len(last) == IN_A_ROW and all(one["settled"] for one in last)

    def model(self, number: int = -1) -> ModeTransformer:
        """Return the model of a finished round, fitted to the unbiased system."""
        return _load(self._path(range(len(self.rounds))[number], "model.npz"))

    def bias(self, number: int) -> ModeBias | None:
        """Return the bias of a round; None for the first, and the bias of the next one for the last plus one."""
        if number == 0:
            return None
        with np.load(self._path(number - 1, "bias.npz")) as stored:
            return ModeBias(_load(self._path(number - 1, "guide.npz")), 0, stored["places"], stored["energies"])

    def weighted(self, number: int = -1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the frames that count in a round, X, and weights that reweight them to the unbiased system."""
        number = range(len(self.rounds) + 1)[number] if number >= 0 else range(len(self.rounds))[number]
        if self._weighted is not None and self._weighted[0] == number:
            return self._weighted[1]
        recent = range(max(0, number - self.memory + 1), number + 1)
        parts = [self.frames(k) for k in recent]
        frames = np.concatenate(parts)
        X = self.describe(frames)
        biases = [self.bias(k) for k in recent]
        energies = [np.zeros(len(X)) if bias is None else bias.energy(X) for bias in biases]
        window = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        self._weighted = number, (frames, X, umbrella_weights(np.column_stack(energies), window, self.kT))
        return self._weighted[1]

    def _round(self, number: int) -> None:
        """Run what is missing of a round; its summary is written last."""
        bias, path = self.bias(number), self._path(number, "npz")
        seed = int(np.random.SeedSequence([self.seed, number]).generate_state(1)[0])
        if not path.exists():
            frames = np.asarray(self.simulate(bias, self._starts(number, bias, seed), seed))
            if frames.ndim < 2 or not np.isfinite(frames).all():
                raise ValueError(f"simulate must return finite frames (n, ...), got an array of shape {frames.shape}.")
            with replacing(path) as (file,):
                np.savez(file, frames=frames)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            _, X, weight = self.weighted(number)
            even = X[spread(X, self.n_even)]
            model, guide = self.fit(X, weight), self.guide(even, np.ones(len(even)))
            following = ModeBias.filling(guide, 0, X, weight, self.kT, self.bias_factor)
            summary = self._summary(number, model, X, weight, bias)
        summary["warnings"] = sorted({str(one.message) for one in caught})
        model.save(self._path(number, "model.npz"))
        guide.save(self._path(number, "guide.npz"))
        with replacing(self._path(number, "bias.npz")) as (file,):
            np.savez(file, places=following.places, energies=following.energies)
        with replacing(self._path(number, "json")) as (file,):
            file.write(json.dumps(summary, indent=1).encode())
        self.rounds.append(summary)

    def _starts(self, number: int, bias: ModeBias | None, seed: int) -> np.ndarray | None:
        """Draw frames of the last rounds by the law of a new bias."""
        if bias is None:
            return None
        frames, X, weight = self.weighted(number - 1)
        with np.errstate(divide="ignore"):
            logarithms = np.log(weight) - bias.energy(X) / self.kT
        p = np.exp(logarithms - logarithms.max())
        return frames[np.random.default_rng(seed).choice(len(frames), self.n_starts, p=p / p.sum())]

    def _summary(
        self, number: int, model: ModeTransformer, X: np.ndarray, weight: np.ndarray, bias: ModeBias | None
    ) -> dict[str, Any]:
        modes = model.transform(X)
        side = weight[modes[:, 0] > 0].sum() / weight.sum()
        rare = min(side, 1 - side)
        found: dict[str, Any] = {
            "n_frames": len(X),
            "n_effective": effective_sample_size(weight),
            "rates": model.rates_.tolist(),
            "free_energy": float(self.kT * np.log((1 - rare) / rare)),
            "height": 0.0 if bias is None else bias.height,
            "outside": 1.0,
            "modes": 1.0,
            "settled": False,
        }
        if bias is not None:
            before = self.model(number - 1)
            found["outside"] = float(bias.model.extrapolates(self.describe(self.frames(number))).mean())
            found["modes"] = float(1 - subspace_r2(before.transform(X), modes, weight))
            found["settled"] = self._unchanged(self.rounds[number - 1], found)
        return found

    def _unchanged(self, before: dict[str, Any], now: dict[str, Any]) -> bool:
        rates = np.abs(np.log(now["rates"]) - np.log(before["rates"])).max()
        energy, height = (abs(now[name] - before[name]) / self.kT for name in ("free_energy", "height"))
        changes = {
            "rates": rates,
            "free_energy": energy,
            "height": height,
            "modes": now["modes"],
            "outside": now["outside"],
        }
        return all(bool(changes[name] <= limit) for name, limit in SETTLED.items())

    def frames(self, number: int) -> np.ndarray:
        """Return the frames of a round."""
        with np.load(self._path(number, "npz")) as stored:
            return stored["frames"]

    def _path(self, number: int, kind: str) -> Path:
        return self.directory / f"round_{number:03}.{kind}"


def _load(path: Path) -> ModeTransformer:
    from kdmaps.estimators.model_files import load  # output is built on simulation

    return load(path)


def spread(X: np.ndarray, n: int) -> np.ndarray:
    """Return the indices of n rows, spread evenly: each is the row farthest from all before it."""
    chosen = [0]
    distance = np.full(len(X), np.inf)
    while len(chosen) < min(n, len(X)):
        distance = np.minimum(distance, ((X - X[chosen[-1]]) ** 2).sum(axis=1))
        chosen.append(int(distance.argmax()))
    return np.array(chosen)
