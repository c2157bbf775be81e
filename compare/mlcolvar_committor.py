"""Committors of the Müller–Brown frames of `experiments.committor` by mlcolvar, with the settings of its tutorial.

The tutorial for this potential (mlcolvar 1.3.1, docs/notebooks/tutorials/cvs_committor.ipynb) has layers 2-32-32-1,
α = 0.1, Adam with a learning rate of 1e-3 that decays by 1e-5 in each epoch, weight decay 1e-5, 64-bit numbers, all
frames in one batch, and recommends 5,000 epochs. As there, the frames in A and B are the sets of boundary values, and
all frames, with weights of mean 1, are the biased simulation. Errors are measured as for kdmaps: root mean
square over independent frames with an exact q between .02 and .98; the flux is the weighted mean of D|∇q|² outside of A
and B. Writes results/committor/mlcolvar.jsonl; finished fits are not repeated.

    python compare/mlcolvar_committor.py [EPOCHS [SEEDS]]
"""

from __future__ import annotations

import logging
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import lightning
import numpy as np
import torch
from mlcolvar.cvs.committor import Committor, initialize_committor_masses
from mlcolvar.data import DictDataset, DictModule

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from experiments import committor  # noqa: E402
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


def run(n: int, seed: int, epochs: int) -> dict[str, Any]:
    """Return the row of one fit."""
    case = committor.CASES[PROBLEM]()
    X, weight = case.sample(n, seed)
    other, _ = case.sample(committor.OTHER, committor.OTHER_SEED)
    exact = case.q(other)
    between = (exact > 0.02) & (exact < 0.98) & ~case.source(other) & ~case.target(other)
    start = time.process_time()
    model = trained(case, X, weight, seed, epochs)
    seconds = time.process_time() - start
    outside = ~case.source(X) & ~case.target(X)
    flux = case.diffusion * np.sum((weight * values_and_slopes(model, X)[1])[outside]) / weight.sum()
    q = values_and_slopes(model, other)[0]
    return {
        "problem": PROBLEM,
        "n": n,
        "seed": seed,
        "epochs": epochs,
        "error": float(np.sqrt(np.mean((q - exact)[between] ** 2))),
        "flux": float(flux / case.flux),
        "seconds": round(seconds, 1),
    }


def main() -> None:
    """Write one line per fit."""
    epochs, seeds = (int(value) for value in (sys.argv[1:] + ["5000", "5"][len(sys.argv) - 1 :])[:2])
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")
    done = {(row["n"], row["seed"], row["epochs"]) for row in read_lines(OUT)}
    for n in SIZES:
        for seed in range(FIRST_SEED, FIRST_SEED + seeds):
            if (n, seed, epochs) not in done:
                row = run(n, seed, epochs)
                print(row, flush=True)
                append_line(OUT, row)


if __name__ == "__main__":
    main()
