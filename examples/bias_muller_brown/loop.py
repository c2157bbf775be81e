"""Adaptive biasing: simulate, weight, fit, bias along the slowest mode, and repeat until nothing changes."""

import json
import warnings
from collections.abc import Callable
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

import kdmaps
from kdmaps.simulation import ModeBias, effective_sample_size, umbrella_weights
from kdmaps.utils.files import replacing

#: Largest changes between rounds that count as settled: logarithms of rates, free energies and the height of the bias
#: in kT, 1 - R² of the modes, and the share of frames outside the samples of the previous model. While a well is being
#: filled, nothing else changes, but the height grows by 2 kT and more in each round.
SETTLED = {"rates": 0.2, "free_energy": 0.3, "height": 1.0, "modes": 0.05, "outside": 0.01}
#: Number of settled rounds in a row that ends the loop.
IN_A_ROW = 3


class Loop:
    """Simulate, weight, fit, bias along the slowest mode, and repeat until nothing changes.

    Each round simulates with a static bias that fills the wells found so far along the slowest mode (`ModeBias`), joins
    the frames of the last rounds by `umbrella_weights`, and fits. Rounds are files in a directory: after an
    interruption, the loop continues with the current round, and reuses its frames if they were complete.

    The next bias acts along a mode fitted, without weights, to frames spread evenly over the region visited so far (the
    guide). The slowest mode of the system itself is a step: it is constant in every well, so a bias along it cannot
    fill one, and it is undetermined between wells, where weights are tiny. A mode of evenly spread frames increases
    from one end of the region to the other.

    Parameters
    ----------
    directory : path
        Directory for the files of the rounds; created if needed.
    simulate : callable
        ``simulate(bias, starts, seed)`` returns frames (n_frames, ...) of a simulation with a `ModeBias`, from the
        frames `starts`. In the first round both are None.
    fit : callable
        ``fit(X, sample_weight)`` returns a fitted estimator.
    kT : float
        Temperature times Boltzmann's constant, in the units of the energies.
    guide : callable, optional
        Like `fit`, for the mode along which the next round is biased, which can be less accurate; by default `fit`.
    describe : callable, optional
        ``describe(frames)`` returns X, by default the frames themselves.
    n_starts : int, default=100
        Number of starting frames, drawn from the last rounds with the probabilities of the new bias.
    memory : int, default=3
        Number of rounds that are used. Older rounds did not reach the states found since, and would make them look
        empty.
    n_even : int, default=600
        Number of evenly spread frames that the guide is fitted to.
    bias_factor : float, default=8
        As in `ModeBias.filling`.
    seed : int, default=0
        Seed of the simulations and of the choice of starting frames.

    Attributes
    ----------
    rounds : list of dict
        Summary of each finished round: `rates`, `free_energy` (of the rarer side of the slowest mode), `height` of the
        bias, `outside` (share of frames outside the samples of the previous guide), `modes` (1 - R² with the modes of
        the previous round), `n_frames`, `n_effective`, `warnings`, `settled`.
    """

    def __init__(
        self,
        directory: str | Path,
        simulate: Callable[[ModeBias | None, np.ndarray | None, int], np.ndarray],
        fit: Callable[[np.ndarray, np.ndarray], Any],
        *,
        kT: float,
        guide: Callable[[np.ndarray, np.ndarray], Any] | None = None,
        describe: Callable[[np.ndarray], np.ndarray] | None = None,
        n_starts: int = 100,
        memory: int = 3,
        n_even: int = 600,
        bias_factor: float = 8.0,
        seed: int = 0,
    ):
        for name, value in (("n_starts", n_starts), ("memory", memory), ("n_even", n_even)):
            if not isinstance(value, Integral) or value < 1:
                raise ValueError(f"{name} must be a positive integer, got {value!r}.")
        if not kT > 0:
            raise ValueError(f"kT must be a positive number in the units of the energies, got {kT!r}.")
        self.directory, self.kT = Path(directory), kT
        self.simulate, self.fit, self.guide, self.describe = simulate, fit, guide or fit, describe or np.asarray
        self.n_starts, self.memory, self.n_even = n_starts, memory, n_even
        self.bias_factor, self.seed = bias_factor, seed
        self.directory.mkdir(parents=True, exist_ok=True)
        self.rounds: list[dict[str, Any]] = []
        # Frames and weights of the last round requested, which the next round starts from.
        self._weighted: tuple[int, tuple[np.ndarray, np.ndarray, np.ndarray]] | None = None
        while (path := self._path(len(self.rounds), "json")).exists():
            self.rounds.append(json.loads(path.read_text()))

    def run(self, max_rounds: int = 20, after: Callable[["Loop"], None] | None = None) -> "Loop":
        """Run rounds until nothing changes, or until there are `max_rounds`, including earlier ones; return self.

        `after` is called with the loop after every round.
        """
        while len(self.rounds) < max_rounds and not self.settled:
            self._round(len(self.rounds))
            if after is not None:
                after(self)
        return self

    @property
    def settled(self) -> bool:
        """True if nothing has changed in the last rounds."""
        last = self.rounds[-IN_A_ROW:]
        return len(last) == IN_A_ROW and all(one["settled"] for one in last)

    def frames(self, number: int) -> np.ndarray:
        """Return the frames of a round."""
        with np.load(self._path(number, "npz")) as stored:
            return stored["frames"]

    def model(self, number: int = -1) -> Any:
        """Return the model of a finished round, fitted to the unbiased system."""
        return kdmaps.load(self._path(range(len(self.rounds))[number], "model.npz"))

    def bias(self, number: int) -> ModeBias | None:
        """Return the bias of a round, or of the round after the last finished one; None for the first round."""
        if number == 0:
            return None
        with np.load(self._path(number - 1, "bias.npz")) as stored:
            return ModeBias(kdmaps.load(self._path(number - 1, "guide.npz")), 0, stored["places"], stored["energies"])

    def weighted(self, number: int = -1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the frames used in a round, X, and the weights that reweight them to the unbiased system."""
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
        """Run the missing parts of a round; its summary is written last."""
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
        """Draw frames of the last rounds with the probabilities of a new bias."""
        if bias is None:
            return None
        frames, X, weight = self.weighted(number - 1)
        with np.errstate(divide="ignore"):
            logarithms = np.log(weight) - bias.energy(X) / self.kT
        p = np.exp(logarithms - logarithms.max())
        return frames[np.random.default_rng(seed).choice(len(frames), self.n_starts, p=p / p.sum())]

    def _summary(
        self, number: int, model: Any, X: np.ndarray, weight: np.ndarray, bias: ModeBias | None
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
            found["modes"] = float(1 - kdmaps.metrics.subspace_r2(before.transform(X), modes, weight))
            found["settled"] = self._unchanged(self.rounds[number - 1], found)
        return found

    def _unchanged(self, before: dict[str, Any], now: dict[str, Any]) -> bool:
        changes = {
            "rates": np.abs(np.log(now["rates"]) - np.log(before["rates"])).max(),
            "free_energy": abs(now["free_energy"] - before["free_energy"]) / self.kT,
            "height": abs(now["height"] - before["height"]) / self.kT,
            "modes": now["modes"],
            "outside": now["outside"],
        }
        return all(bool(changes[name] <= limit) for name, limit in SETTLED.items())

    def _path(self, number: int, kind: str) -> Path:
        return self.directory / f"round_{number:03}.{kind}"


def spread(X: np.ndarray, n: int) -> np.ndarray:
    """Return the indices of n evenly spread rows: each is the farthest from all rows chosen before."""
    chosen = [0]
    distance = np.full(len(X), np.inf)
    while len(chosen) < min(n, len(X)):
        distance = np.minimum(distance, ((X - X[chosen[-1]]) ** 2).sum(axis=1))
        chosen.append(int(distance.argmax()))
    return np.array(chosen)
