"""mlcolvar's Generator and the default estimator on the same biased frames of a rare event.

Both learn the two slow modes of the Müller–Brown potential (exact rates 1.2474e-4 and 0.35596) from 2,000 frames of a
simulation with a static bias and their weights, some 800 of them effective. mlcolvar's Generator trains neural networks
for the same variational problem, all frames in every step; its settings are taken from its tutorial on this potential
(networks, learning rate, η, α), with 15,000 epochs, the least that the tutorial recommends. kdmaps is given only the
diffusion constant. SubR² is the mean squared cosine of the learned modes with the two true ones under the
unbiased law, at 20,000 other frames; "mode 2" is the squared correlation of the second pair alone. Seconds are CPU time
of one thread.

The first of the three eigenvalues of mlcolvar belongs to the constant, as in mlcolvar itself; a negative rate means
that the training did not find the constant. mlcolvar publishes 2.19e-4 and 0.335 in its tutorial and 1.43e-4 and 0.363
in its paper (30,000 epochs), from more frames of the same potential.

The benchmark needs the dependency group `mlcolvar` in a separate environment (`make rivals`), and half an hour; rows
are kept.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments._fits import fit_default
from experiments._runner import Row, markdown, options_of, publish, run_tasks
from kdmaps import metrics
from kdmaps.problems import MullerBrown

#: The first three draws of the experiment `rare_events`.
FRAMES, FIRST_SEED, EPOCHS = 2000, 9000, 15_000
#: Frames at which modes are compared with the exact ones.
OTHER_FRAMES, OTHER_SEED = 20_000, 1
#: As in mlcolvar's tutorial "Learning the infinitesimal generator".
NETWORK: dict[str, Any] = {"r": 3, "layers": [2, 20, 20, 1], "eta": 0.05, "alpha": 0.1, "n_dim": 2}
OPTIMIZER = {"lr": 5e-4, "weight_decay": 1e-5}
TIKHONOV = 1e-4
BY_HAND = {
    "mlcolvar": "networks 2-20-20-1, η, α, learning rate, weight decay, epochs, Tikhonov; D",
    "kdmaps": "D",
}


def run(method: str, n: int, seed: int, epochs: int | None = None) -> list[Row]:
    """Return the row of one fit."""
    problem = MullerBrown()
    X, weights = problem.biased_sample(n, seed)
    other, other_weights = problem.biased_sample(OTHER_FRAMES, OTHER_SEED)
    start = time.process_time()
    if epochs is None:
        model, _ = fit_default(X, 2, seed, weights, diffusion=problem.diffusion, n_jobs=1)
        rates, transform = np.sort(model.rates_), model.transform
    else:
        rates, transform = _generator(X, weights, epochs, seed, problem.diffusion)
    seconds = time.process_time() - start
    modes, exact = transform(other), problem.reference(other, 2)
    second = metrics.subspace_r2(modes[:, 1:], exact[:, 1:], other_weights)
    return [
        {
            "method": method,
            "seed": seed,
            "epochs": epochs,
            "rates": rates.tolist(),
            "ratios": (rates / problem.rates(2)).tolist(),
            "r2": float(metrics.subspace_r2(modes, exact, other_weights)),
            "second": float(second),
            "seconds": round(seconds, 1),
        }
    ]


def _generator(X: np.ndarray, weights: np.ndarray, epochs: int, seed: int, diffusion: float) -> tuple[np.ndarray, Any]:
    """Train mlcolvar's Generator; return the rates, and the two modes as a function of points."""
    import lightning
    import torch
    from mlcolvar.cvs.generator import Generator
    from mlcolvar.data import DictDataset, DictModule

    def dataset(points: np.ndarray, weight: np.ndarray) -> DictDataset:
        parts = {"data": points, "weights": weight}
        return DictDataset({name: torch.tensor(part, dtype=torch.float32) for name, part in parts.items()})

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    frames, friction = dataset(X, weights), torch.tensor([diffusion])  # kT / (γ m), which is D
    options = {"nn": {"activation": "tanh"}, "optimizer": OPTIMIZER}
    model = Generator(**NETWORK, friction=friction, options=options)
    # As in the tutorial, without its progress bar.
    trainer = lightning.Trainer(
        accelerator="cpu", max_epochs=epochs, num_sanity_val_steps=0, limit_val_batches=0, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, logger=False,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about worker processes
        trainer.fit(model, DictModule(frames, lengths=[1]))
    _, values, _ = model.compute_eigenfunctions(frames, friction=friction, tikhonov_reg=TIKHONOV)

    def transform(points: np.ndarray) -> np.ndarray:
        functions, _, _ = model.compute_eigenfunctions(dataset(points, np.ones(len(points))), friction=friction)
        return functions.detach().numpy()[:, 1:].astype(float)  # the first is the constant

    return -values.detach().numpy()[1:].astype(float), transform


def table(rows: list[Row]) -> str:
    """Return a Markdown table with one line per draw, and the settings that were chosen by hand."""
    lines = [
        [
            row["method"],
            str(row["seed"]),
            *(f"{rate:.3e} ({ratio:.2f})" for rate, ratio in zip(row["rates"], row["ratios"], strict=True)),
            f"{row['r2']:.4f}",
            f"{row['second']:.4f}",
            f"{row['seconds']:.1f}",
        ]
        for row in rows
    ]
    header = ["method", "draw", "rate 1 (over exact)", "rate 2 (over exact)", "SubR²", "mode 2", "CPU seconds"]
    chosen = "\n".join(f"- {method}: {settings}" for method, settings in BY_HAND.items())
    return f"{markdown(header, lines)}\n\nChosen by hand:\n\n{chosen}"


def figure(rows: list[Row]) -> Figure:
    """Plot the errors of the rates against the time that they took."""
    fig = Figure(figsize=(7.5, 3.4), layout="constrained")
    axes = fig.subplots(1, 2, sharex=True)
    for mode, ax in enumerate(axes):
        for number, method in enumerate(BY_HAND):
            own = [row for row in rows if row["method"] == method]
            errors = [abs(row["ratios"][mode] - 1) for row in own]
            ax.plot([row["seconds"] for row in own], errors, "os"[number], color=f"C{number}", label=method)
        ax.set(xscale="log", yscale="log", xlabel="CPU seconds", title=f"rate {mode + 1}")
    axes[0].set_ylabel("|rate / exact rate - 1|")
    axes[0].legend(frameon=False)
    return fig


def main(arguments: list[str] | None = None) -> None:
    """Run both methods on all draws, one after the other."""
    parser = options_of("biased_frames", __doc__, n_seeds=3, quick="one draw, 200 epochs")
    options = parser.parse_args(arguments)
    n_seeds, epochs = (1, 200) if options.quick else (options.seeds, EPOCHS)
    common = [{"n": FRAMES, "seed": seed} for seed in range(FIRST_SEED, FIRST_SEED + n_seeds)]
    tasks = [{"method": "kdmaps", **task} for task in common]
    tasks += [{"method": "mlcolvar", **task, "epochs": epochs} for task in common]
    rows = run_tasks(run, tasks, options.out / "rows.jsonl", jobs=1)
    publish("biased_frames", rows, table, figure, options.out)


if __name__ == "__main__":
    main()
