"""`kdmaps demo`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import kdmaps
from kdmaps.cli._app import app, print_table, say
from kdmaps.cli._options import ForceOption, check_outputs

if TYPE_CHECKING:
    import numpy as np

    from kdmaps.estimators.transformer import ModeTransformer
    from kdmaps.problems import Problem

#: Number of modes in the picture.
MAX_PICTURES = 3


@app.command()
def demo(
    problem: Annotated[str, typer.Option(help="Name of a built-in problem.")] = "triplewell2d",
    samples: Annotated[int, typer.Option(min=50, help="Number of samples.")] = 5000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the samples and of the fit.")] = 0,
    out: Annotated[Path, typer.Option(file_okay=False, help="Directory of the picture.")] = Path("demo"),
    force: ForceOption = False,
) -> None:
    """Fit a built-in problem and compare time scales and modes with the exact ones."""
    try:
        system = kdmaps.problems.load(problem)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--problem") from None
    from kdmaps.summary import summarise

    check_outputs(force, out / "modes.png")
    X = system.sample(samples, random_state=seed)
    model = kdmaps.AdaptiveDiffusionMap(
        system.n_modes, diffusion=system.diffusion, random_state=seed, progress=True
    ).fit(X)
    modes, exact = model.transform(X), 1 / system.rates(system.n_modes)
    say(f"{problem}, {samples} samples")
    print_table(
        ("mode", "time scale", "exact", "relative error"),
        (
            (str(k), f"{found:.4f}", f"{true:.4f}", f"{found / true - 1:+.1%}")
            for k, (found, true) in enumerate(zip(model.timescales_, exact, strict=True), start=1)
        ),
    )
    say(f"Chosen from {len(model.cv_results_['selection_score'])} candidates: {summarise(model).chosen}")
    agreement = kdmaps.metrics.subspace_r2(modes, system.reference(X, system.n_modes))
    say(f"Agreement of the modes with the exact ones: SubR² = {agreement:.4f}")
    out.mkdir(parents=True, exist_ok=True)
    _draw_demo(model, system, X, modes, exact, out / "modes.png")
    say(f"Modes drawn in {out / 'modes.png'}")


def _draw_demo(
    model: ModeTransformer, system: Problem, X: np.ndarray, modes: np.ndarray, exact: np.ndarray, path: Path
) -> None:
    """Draw learned modes above exact ones, or both in one frame over a single coordinate; time scales on the right."""
    import numpy as np
    from matplotlib.figure import Figure  # pyplot needs a display

    from kdmaps.utils.files import replacing

    r = min(modes.shape[1], MAX_PICTURES)
    reference = _matched(system, X, modes)[:, :r]
    rows = 1 if system.dim == 1 else 2
    figure = Figure(figsize=(2.6 * (r + 1), 2.5 * rows), dpi=150, layout="constrained")
    grid = figure.add_gridspec(rows, r + 1)
    axes = np.array([[figure.add_subplot(grid[i, k]) for k in range(r)] for i in range(rows)])
    learned, true = ([f"{kind} mode {k + 1}" for k in range(r)] for kind in ("learned", "exact"))
    over = reference if rows == 1 else None
    kdmaps.plotting.plot_modes(modes[:, :r], X, reference=over, axes=axes[0], titles=learned, point_size=4)
    if rows == 2:
        kdmaps.plotting.plot_modes(reference, X, axes=axes[1], titles=true, point_size=4)
    for ax in axes.flat:
        ax.label_outer()
    kdmaps.plotting.plot_timescales(model, exact, ax=figure.add_subplot(grid[:, r])).set_title("time scales")
    with replacing(path) as (file,):
        figure.savefig(file, format="png")


def _matched(system: Problem, X: np.ndarray, modes: np.ndarray) -> np.ndarray:
    """Return exact modes with the signs, and the rotations within degenerate clusters, of the learned ones."""
    import numpy as np

    r = modes.shape[1]
    reference = system.reference(X, r)
    rates = system.rates(reference.shape[1])
    clusters = np.split(np.arange(len(rates)), np.flatnonzero(np.diff(rates) > 1e-6 * rates[:-1]) + 1)
    return np.hstack([kdmaps.metrics.align_modes(reference[:, c], modes[:, c[c < r]]) for c in clusters])
