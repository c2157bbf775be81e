"""Committors of the Müller–Brown frames of `experiments.committor` by mlcolvar, with the settings of its tutorial.

The tutorial for this potential (mlcolvar 1.3.1, docs/notebooks/tutorials/cvs_committor.ipynb) has layers 2-32-32-1,
α = 0.1, Adam with a learning rate of 1e-3 that decays by 1e-5 in each epoch, weight decay 1e-5, 64-bit numbers, all
frames in one batch, and recommends 5,000 epochs. As there, the frames in A and B are the sets of boundary values, and
all frames, with weights of mean 1, are the biased simulation. Errors are measured as for kdmaps: root mean
square over independent frames with an exact q between .02 and .98; the flux is the weighted mean of D|∇q|² outside of A
and B. Writes results/committor/mlcolvar.jsonl; finished fits are not repeated.

    python compare/mlcolvar_committor.py [EPOCHS [SEEDS]]
    python compare/mlcolvar_committor.py 5000 FOLDER…  # frames of runs of examples/committor_loop/from_basins.py

The second command also fits kdmaps, as the loop does. The sets and the potential are the same.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import lightning
import numpy as np
import torch
from mlcolvar.cvs.committor import Committor, initialize_committor_masses
from mlcolvar.data import DictDataset, DictModule

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import kdmaps  # noqa: E402
from experiments import committor  # noqa: E402
from experiments._runner import Row  # noqa: E402
from kdmaps.utils.files import append_line, read_lines  # noqa: E402

PROBLEM, SIZES, FIRST_SEED = "muller-brown-flat", (5000, 18_000), 9000
OUT = ROOT / "results" / "committor" / "mlcolvar.jsonl"


def trained(case: committor.Case, X: np.ndarray, weight: np.ndarray, seed: int, epochs: int) -> Committor:
    """Train a network."""
    torch.manual_seed(seed)
    parts = [X[case.source(X)], X[case.target(X)], X]
    labels = np.repeat([0.0, 1.0, 2.0], [len(part) for part in parts])
    weights = np.concatenate([np.ones(len(parts[0]) + len(parts[1])), weight / weight.mean()])
    data = {"data": np.concatenate(parts), "labels": labels, "weights": weights}
    options = {
        "optimizer": {"lr": 1e-3, "weight_decay": 1e-5},
        "lr_scheduler": {"scheduler": torch.optim.lr_scheduler.ExponentialLR, "gamma": 0.99999},
    }
    masses = initialize_committor_masses(atom_types=[0], masses=[1])
    model = Committor(layers=[2, 32, 32, 1], atomic_masses=masses, alpha=1e-1, delta_f=0, n_dim=2, options=options)
    trainer = lightning.Trainer(
        max_epochs=epochs, logger=False, enable_checkpointing=False, limit_val_batches=0, num_sanity_val_steps=0,
        accelerator="cpu", enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    dataset = DictDataset({name: torch.tensor(values) for name, values in data.items()})
    trainer.fit(model, DictModule(dataset, lengths=[1]))
    return model


def values_and_slopes(model: Committor, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return q and |∇q|²."""
    points = torch.tensor(X, requires_grad=True)
    q = model.eval()(points)
    slopes = torch.autograd.grad(q.sum(), points)[0]
    return q.detach().numpy()[:, 0], np.sum(slopes.numpy() ** 2, axis=1)


def row_of(case: committor.Case, predict: Callable[[np.ndarray], np.ndarray], flux: float, start: float) -> Row:
    """Return the seconds since the start, and the errors of a committor and of its flux."""
    seconds = time.process_time() - start
    other, _ = case.sample(committor.OTHER, committor.OTHER_SEED)
    exact = case.q(other)
    between = (exact > 0.02) & (exact < 0.98) & ~case.source(other) & ~case.target(other)
    error = np.sqrt(np.mean((predict(other) - exact)[between] ** 2))
    return {"error": float(error), "flux": float(flux / case.flux), "seconds": round(seconds, 1)}


def by_mlcolvar(case: committor.Case, X: np.ndarray, weight: np.ndarray, seed: int, epochs: int) -> Row:
    """Train a network."""
    start = time.process_time()
    model = trained(case, X, weight, seed, epochs)
    outside = ~case.source(X) & ~case.target(X)
    flux = case.diffusion * np.sum((weight * values_and_slopes(model, X)[1])[outside]) / weight.sum()
    return row_of(case, lambda other: values_and_slopes(model, other)[0], flux, start) | {"epochs": epochs}


def by_kdmaps(case: committor.Case, X: np.ndarray, weight: np.ndarray) -> Row:
    """Fit a committor with the settings of the loop."""
    start = time.process_time()
    settings = {"cv": 5, "n_features": 200, "max_search_samples": 8000, "random_state": 0}
    model = kdmaps.AdaptiveCommittor(diffusion=case.diffusion, **settings)
    model.fit(X, (case.source, case.target), sample_weight=weight)
    return row_of(case, model.predict, model.flux_, start) | {"method": "kdmaps"}


def frames_of(folders: list[str]) -> Iterator[Row]:
    """Yield the frames of runs of the loop, and the base of their rows."""
    for folder in map(Path, folders):
        stored = np.load(folder / "frames.npz")
        seed = json.loads((folder / "results.json").read_text())["seed"]
        base = {"problem": "loop", "n": round(len(stored["X"]), -3), "seed": seed}
        yield base | {"X": stored["X"], "weight": stored["weight"]}


def samples(n_seeds: int) -> Iterator[Row]:
    """Yield the samples of `experiments.committor`, and the base of their rows."""
    for n in SIZES:
        for seed in range(FIRST_SEED, FIRST_SEED + n_seeds):
            X, weight = committor.CASES[PROBLEM]().sample(n, seed)
            yield {"problem": PROBLEM, "n": n, "seed": seed, "X": X, "weight": weight}


def main() -> None:
    """Write one line per fit."""
    epochs, *rest = [*sys.argv[1:], *["5000", "5"][len(sys.argv) - 1 :]]
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")
    case = committor.CASES[PROBLEM]()
    done = {(row["problem"], row["n"], row["seed"], row.get("epochs")) for row in read_lines(OUT)}
    for base in samples(int(rest[0])) if rest[0].isdigit() else frames_of(rest):
        X, weight = base.pop("X"), base.pop("weight")
        fits = {int(epochs): lambda X=X, w=weight, seed=base["seed"]: by_mlcolvar(case, X, w, seed, int(epochs))}
        if base["problem"] == "loop":
            fits = {None: lambda X=X, w=weight: by_kdmaps(case, X, w), **fits}
        for key, fit in fits.items():
            if (base["problem"], base["n"], base["seed"], key) not in done:
                row = base | fit()
                print(row, flush=True)
                append_line(OUT, row)


if __name__ == "__main__":
    main()
