"""Draw the picture of the README: modes of alanine dipeptide over its Ramachandran plane, and their time scales.

python examples/alanine_dipeptide/picture.py
"""

import matplotlib
import numpy as np
from alanine import HERE, coordinates, load
from trajectory import fit

import kdmaps

OUT = HERE.parents[1] / "docs" / "images" / "molecule.png"
#: Time scales in ps of the Markov model of seven times as many frames, with 95 % intervals (README.md).
REFERENCE = ((227, (162, 337)), (8.7, (8.4, 8.8)))


def main() -> None:
    """Fit the heavy atoms of the trajectory, and draw two modes and their time scales."""
    data = load()
    X = coordinates(data)["heavy atoms"]
    model, _ = fit(X)
    modes = model.transform(X)[:, :2]
    intervals = kdmaps.uncertainty.bootstrap(model, X, random_state=0).timescale_intervals[:2]
    draw(np.degrees(data["phi"]), np.degrees(data["psi"]), modes, model.timescales_[:2], intervals)


def draw(phi, psi, modes, timescales, intervals) -> None:
    """Write the picture."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.2), width_ratios=(5, 5, 4), layout="constrained")
    modes = modes * np.sign(modes[np.abs(modes).argmax(axis=0), range(2)])  # rare frames are positive
    titles = [f"mode {k + 1}: {time:.3g} ps" for k, time in enumerate(timescales)]
    kdmaps.plotting.plot_modes(modes, np.column_stack([phi, psi]), axes=axes[:2], titles=titles, point_size=1.5)
    for ax in axes[:2]:
        ax.set(xlabel="φ (degrees)", ylabel="ψ (degrees)", xlim=(-180, 180), ylim=(-180, 180))
        ax.set(xticks=range(-180, 181, 90), yticks=range(-180, 181, 90))
    for shift, label, values in (
        (-0.1, "kdmaps", list(zip(timescales, intervals, strict=True))),
        (0.1, "Markov model", REFERENCE),
    ):
        times = np.array([time for time, _ in values])
        low, high = np.array([interval for _, interval in values]).T
        axes[2].errorbar(
            np.arange(1, 3) + shift, times, [times - low, high - times], fmt="o", markersize=4, capsize=3, label=label
        )
    axes[2].set(title="time scales", xlabel="mode", ylabel="time scale (ps)", yscale="log")
    axes[2].set(xticks=(1, 2), xlim=(0.5, 2.5), ylim=(4, 2000))
    axes[2].legend(fontsize="small", loc="upper right")
    figure.savefig(OUT, dpi=110)


if __name__ == "__main__":
    main()
