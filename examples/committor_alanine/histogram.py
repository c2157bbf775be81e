"""The picture of `run.py`: q over the Ramachandran plane, and the histogram of shots."""

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import binom

from kdmaps.simulation import descriptors


def draw(path, molecule, frames, q, rows, results):
    """Draw frames coloured by q with the start of shots, and the fractions of shots that reach B."""
    figure = Figure(figsize=(9.5, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    cosines = descriptors(molecule.torsions(), frames)
    phi, psi = np.degrees(np.arctan2(cosines[:, 1::2], cosines[:, ::2])).T
    points = left.scatter(phi[::2], psi[::2], c=q[::2], s=1, cmap="coolwarm", vmin=0, vmax=1, rasterized=True)
    left.plot(phi[rows], psi[rows], "k+", ms=5, label="start of shots")
    for low, high in results["sets (degrees of phi)"]:
        left.axvspan(low, high, color="0.5", alpha=0.15, lw=0)
    left.set(xlabel="φ (degrees; A and B shaded)", ylabel="ψ (degrees)", xlim=(-180, 180), ylim=(-180, 180))
    left.legend(loc="lower left", fontsize="small")
    figure.colorbar(points, ax=left, label="committor q")
    count, fractions = results["shots"], np.array(results["fractions"])
    edges = np.linspace(-0.05, 1.05, 12)  # counts of 1/2 are in the middle of a bin
    right.hist(fractions, edges, color="C0", alpha=0.6, label=f"{len(fractions)} configurations, {count} shots each")
    law = np.histogram(np.arange(count + 1) / count, edges, weights=binom.pmf(np.arange(count + 1), count, 0.5))[0]
    right.step(edges, len(fractions) * np.append(law, law[-1]), where="post", color="k", label="if q = 1/2 for all")
    right.set(xlabel="fraction of shots that reach B before A", ylabel="configurations", xlim=(-0.05, 1.05))
    right.legend(fontsize="small", loc="upper left")
    right.set_ylim(top=1.25 * right.get_ylim()[1])
    figure.savefig(path, dpi=110)
