"""Findings about the paper, one experiment each, on a separate page."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import special_ortho_group

from experiments._references import paper_reference
from experiments._runner import Row
from experiments.paper._experiment import Call, Experiment, now
from experiments.paper._printed import LABELS
from experiments.paper._show import COLOURS, Table, by_problem, cell, values
from experiments.paper.comparisons import SIX
from kdmaps import metrics, problems
from kdmaps.data.distances import median_distance
from kdmaps.estimators.kernel_map import KernelDiffusionMap
from kdmaps.estimators.search import KernelSearchCV


def eigenvalues(problem: str, bandwidth: float, center: bool, seed: int) -> Row:
    """Return the eigenvalues μ of a Gaussian with the given bandwidth in median distances."""
    X = problems.load(problem).sample(500, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KernelDiffusionMap(4, bandwidth=bandwidth * median_distance(X), center=center, random_state=seed).fit(X)
    return {"bandwidth": bandwidth, "center": center, "seed": seed, "eigenvalues": model.eigenvalues_.tolist()}


@dataclass(frozen=True)
class ConstantMode(Experiment):
    """Eigenvalues over the bandwidth."""

    bandwidths: Sequence[float] = tuple(float(f"{s:.3g}") for s in np.geomspace(0.5, 50, 10))

    def run(self, seed: int, call: Call = now) -> list[Row]:
        """Return one row per bandwidth and centring."""
        (problem,) = self.problems
        return [
            call(eigenvalues, problem=problem, bandwidth=sigma, center=center, seed=seed)
            for sigma in self.bandwidths
            for center in (False, True)
        ]

    def _mean(self, rows: Sequence[Row], center: bool) -> np.ndarray:
        found = [
            np.mean([r["eigenvalues"] for r in rows if r["center"] == center and r["bandwidth"] == s], axis=0)
            for s in self.bandwidths
        ]
        return np.array(found)

    def table(self, rows: Sequence[Row]) -> Table:
        """Tabulate μ₁ to μ₄ at the ends of the grid."""
        lines = [
            [f"{self.bandwidths[end]:g}", "centred" if center else "as in the paper", *(f"{v:.2f}" for v in mu[end])]
            for end in (0, -1)
            for center in (False, True)
            for mu in [self._mean(rows, center)]
        ]
        return Table(("σ / median distance", "covariance", "μ₁", "μ₂", "μ₃", "μ₄"), lines)

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Plot μ₁ to μ₄ over the bandwidth."""
        figure = Figure(figsize=(8.5, 3.4), layout="constrained")
        axes = figure.subplots(1, 2, sharey=True)
        for ax, center, title in zip(axes, (False, True), ("as in the paper", "centred"), strict=True):
            for k, mu in enumerate(self._mean(rows, center).T):
                ax.plot(self.bandwidths, mu, ".-", label=f"μ{k + 1}")
            ax.axhline(100, color="0.6", ls="--", lw=0.8)
            ax.set(xscale="log", yscale="log", xlabel="σ / median distance", title=f"OU2D α=16, {title}")
        axes[0].set_ylabel("eigenvalue μ (dashed: 1/λ)")
        axes[0].legend(frameon=False, ncols=2)
        return figure


class ReferenceOrder(Experiment):
    """Score the same modes with two references."""

    def table(self, rows: Sequence[Row]) -> Table:
        """Tabulate SubR² of the same modes with both references, the exact modes first."""
        lines = []
        for case in dict.fromkeys(map(by_problem, rows)):
            lines.append([case, "exact slow modes", cell(values(rows, "exact_paper_r2", "kdmaps", case)), "1.000"])
            for method in self.methods:
                both = (cell(values(rows, key, method, case)) for key in ("paper_r2", "r2"))
                lines.append([case, method, *both])
        return Table(("problem", "modes", "paper's reference", "true slow modes"), lines)

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Plot SubR² with the true slow modes against SubR² with the paper's reference."""
        figure = Figure(figsize=(6.4, 3.8), layout="constrained")
        ax = figure.subplots()
        for method, colour in zip(self.methods, ("paper", "uniform", "kdmaps"), strict=True):
            for case, marker in zip(dict.fromkeys(map(by_problem, rows)), "osD", strict=False):
                x, y = (values(rows, key, method, case) for key in ("paper_r2", "r2"))
                ax.plot(x, y, marker, ms=6, alpha=0.75, color=COLOURS[colour], mec="none", label=f"{method}, {case}")
        exact = [
            (np.mean(values(rows, "exact_paper_r2", "kdmaps", c)), 1) for c in dict.fromkeys(map(by_problem, rows))
        ]
        ax.plot(*zip(*exact, strict=True), "k*", ms=10, label="exact slow modes")
        ax.set(xlabel="SubR², paper's reference", ylabel="SubR², true slow modes", title=self.title)
        ax.grid(lw=0.4)
        figure.legend(loc="outside right upper", fontsize="small", frameon=False)
        return figure


def wide_search(problem: str, scoring: str, end: float, seed: int) -> Row:
    """Return the scores of a Gaussian on a grid up to `end` median distances; uncentred for the paper's score."""
    X = problems.load(problem).sample(500, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = KernelSearchCV(
            4,
            families=["gaussian"],
            bandwidths=13,
            regularizations=[0.01],
            scoring=scoring,
            center=scoring != "eigsum",
            bandwidth_range=(0.5, end),
            max_extensions=0,
            random_state=seed,
            n_jobs=1,
        ).fit(X)
    ratios = search.cv_results_["param_bandwidth"] / median_distance(X)
    score = search.cv_results_["selection_score"]
    return {
        "problem": problem,
        "scoring": scoring,
        "seed": seed,
        "bandwidths": [float(f"{s:.4g}") for s in ratios],
        "scores": [float(f"{v:.6g}") for v in score],
    }


@dataclass(frozen=True)
class EdgeOfTheGrid(Experiment):
    """Two scores on a grid a hundred times as wide as the paper's."""

    end: float = 5000.0

    def run(self, seed: int, call: Call = now) -> list[Row]:
        """Return one row per problem and score."""
        return [
            call(wide_search, problem=problem, scoring=scoring, end=self.end, seed=seed)
            for problem in self.problems
            for scoring in ("eigsum", "timescale")
        ]

    def table(self, rows: Sequence[Row]) -> Table:
        """Tabulate the selected bandwidths in median distances."""
        lines = []
        for problem in dict.fromkeys(row["problem"] for row in rows):
            chosen = []
            for scoring in ("eigsum", "timescale"):
                mine = [row for row in rows if row["problem"] == problem and row["scoring"] == scoring]
                best = sorted(row["bandwidths"][int(np.argmax(row["scores"]))] for row in mine)
                chosen.append(f"{best[0]:.3g}–{best[-1]:.3g}" if best[0] != best[-1] else f"{best[0]:.3g}")
            lines.append([LABELS[problem], *chosen])
        header = ("problem", "eigenvalue sum, uncentred: σ/median", "held-out time scales, centred: σ/median")
        return Table(header, lines, [f"The grid ends at {self.end:g}."])

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Plot both scores over the bandwidth, scaled to their maximum, for the first seed."""
        figure = Figure(figsize=(8.5, 3.4), layout="constrained")
        axes = figure.subplots(1, 2)
        titles = {"eigsum": "eigenvalue sum, uncentred", "timescale": "held-out time scales, centred"}
        for ax, (scoring, title) in zip(axes, titles.items(), strict=True):
            for row in rows:
                if row["scoring"] == scoring and row["seed"] == rows[0]["seed"]:
                    scores = np.array(row["scores"]) / np.max(row["scores"])
                    (line,) = ax.plot(row["bandwidths"], scores, ".-", lw=1, label=LABELS[row["problem"]])
                    best = int(np.argmax(scores))
                    ax.plot(row["bandwidths"][best], 1, "*", ms=11, color=line.get_color())
            ax.axvline(50, color=COLOURS["printed"], ls="--", lw=0.8)
            ax.set(xscale="log", xlabel="σ / median distance (dashed: end of the paper's grid)", title=title)
        axes[0].set_ylabel("score / largest score")
        axes[1].set_ylim(0, 1.1)
        axes[0].legend(frameon=False, fontsize="small")
        return figure


def rotated_scores(problem: str, seed: int) -> Row:
    """Return SubR² of exact modes, rotated at random within their last cluster, with three references."""
    system = problems.load(problem)
    r = system.n_modes
    X = system.sample(5000, random_state=seed)
    complete = system.reference(X, r)
    k = complete.shape[1]
    rates = system.rates(k)
    last = np.flatnonzero(rates > rates[-1] * (1 - 1e-6))
    modes = complete.copy()
    if len(last) > 1:
        modes[:, last] = complete[:, last] @ special_ortho_group.rvs(len(last), random_state=seed)
    found = modes[:, :r]
    return {
        "problem": problem,
        "seed": seed,
        "rates": rates.tolist(),
        "cut": metrics.subspace_r2(found, complete[:, :r]),
        "complete": metrics.subspace_r2(found, complete),
        "paper": metrics.subspace_r2(found, paper_reference(system, X)),
    }


class CutOff(Experiment):
    """Scores of exact modes."""

    def run(self, seed: int, call: Call = now) -> list[Row]:
        """Return one row per problem."""
        return [call(rotated_scores, problem=problem, seed=seed) for problem in self.problems]

    def table(self, rows: Sequence[Row]) -> Table:
        """Tabulate the scores of exact modes."""
        lines = []
        for problem in dict.fromkeys(row["problem"] for row in rows):
            mine = [row for row in rows if row["problem"] == problem]
            rates = ", ".join(f"{rate:g}" for rate in mine[0]["rates"])
            cells = (cell(np.array([row[key] for row in mine])) for key in ("paper", "cut", "complete"))
            lines.append([LABELS[problem], rates, *cells])
        header = ("problem", "rates up to the last cluster", "paper's reference", "exactly r modes", "complete cluster")
        return Table(header, lines)

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Plot the scores of exact modes, seed by seed."""
        names = list(dict.fromkeys(row["problem"] for row in rows))
        figure = Figure(figsize=(7.2, 3.4), layout="constrained")
        ax = figure.subplots()
        shown = {
            "paper": ("paper's reference", COLOURS["paper"]),
            "cut": ("exactly r modes", COLOURS["uniform"]),
            "complete": ("complete cluster", COLOURS["kdmaps"]),
        }
        for shift, (key, (label, colour)) in zip((-0.2, 0, 0.2), shown.items(), strict=True):
            at = [names.index(row["problem"]) + shift for row in rows]
            ax.plot(at, [row[key] for row in rows], "o", color=colour, alpha=0.7, mec="none", label=label)
        ax.set(ylabel="SubR² of exact modes", title=self.title)
        ax.set_xticks(range(len(names)), [LABELS[name] for name in names])
        figure.legend(loc="outside right upper", fontsize="small", frameon=False, title="reference")
        return figure


EXPERIMENTS: dict[str, Experiment] = {
    "finding_constant": ConstantMode(
        "The constant is one of the modes",
        """The constant is one of the modes.

        The covariance is not centred, so the constant function is a mode. Its energy is 0, and only the penalty λ
        bounds its quotient, which grows to 1/λ = 100 as the kernel widens, while the quotients of all other modes add
        up to about 2. The eigenvalue sum therefore measures how small the penalty of a constant is. Centring removes
        this mode:

            KernelDiffusionMap(4, bandwidth=σ, center=False).fit(X).eigenvalues_
            KernelDiffusionMap(4, bandwidth=σ, center=True).fit(X).eigenvalues_
        """,
        problems=("ou2d-16",),
    ),
    "finding_order": ReferenceOrder(
        "The order of the reference",
        """The reference is ordered by degree, not by rate.

        For OU2D with α = (1, 16) the paper's four reference modes are x, y, x² - 1, y² - 1, with rates 1, 16, 2 and 32.
        The four slowest modes are the first four Hermite polynomials of x, with rates 1, 2, 3 and 4. With a very wide
        bandwidth the method becomes kernel principal component analysis, which orders functions by degree: it scores
        well with the paper's reference and badly with the slow modes. A kernel that finds the slow modes scores 0.5
        with the paper's reference.

            problem = kdmaps.problems.load("ou2d-16"); problem.rates(4)                       # 1, 2, 3, 4
            kdmaps.metrics.subspace_r2(problem.reference(X, 4), paper_reference(problem, X))  # 0.5: exact modes fail
        """,
        methods=("CV+RFF", "Uniform+RFF", "kdmaps"),
        problems=("ou2d-4", "ou2d-16", "ou3d"),
        few=("ou2d-16",),
    ),
    "finding_edge": EdgeOfTheGrid(
        "The edge of the grid",
        """The selected bandwidth is the edge of the grid.

        All printed bandwidths (61.6, 52.0, 64.2, 52.4, 49.9, 71.1) are 50 median distances, the end of the grid. On a
        grid that is a hundred times as wide, the score keeps increasing up to a plateau where the kernel is constant,
        and rounding determines the maximum. The held-out time scales of centred modes are largest inside the grid.

            search = KernelSearchCV(scoring="eigsum", center=False, bandwidth_range=(0.5, 5000), max_extensions=0)
            search.fit(X).best_params_
            KernelSearchCV(bandwidth_range=(0.5, 5000), max_extensions=0).fit(X).best_params_
        """,
        problems=SIX,
        few=SIX[:2],
    ),
    "finding_cutoff": CutOff(
        "Degenerate cut-offs",
        """A reference that ends inside a degenerate cluster caps every score.

        OU with α_j = 2^j has rates 1, 2, 2, 3, 3, …; OU2D with α = 4 has rates 1, 2, 3, 4, 4. Within a cluster the
        modes are defined up to a rotation. A method that finds the slow subspace exactly returns r functions of it, and
        a reference of exactly r modes gives it a random score below 1. A reference with the complete cluster gives 1.

            exact = problem.reference(X, 4)                           # complete: five modes
            kdmaps.metrics.subspace_r2(rotated[:, :4], exact[:, :4])  # below 1, although `rotated` spans the same space
        """,
        problems=("ou2d-4", "ou2d-16", "ou10d", "ou20d"),
    ),
}
