"""Settings that the text of the paper leaves open: the selected families, and cells under other settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Self

import numpy as np
from matplotlib.figure import Figure

from experiments._references import paper_reference
from experiments._runner import Row
from experiments.paper._experiment import Call, Experiment, now
from experiments.paper._learning import N_LANDMARKS
from experiments.paper._printed import LABELS, SELECTED
from experiments.paper._problems import load
from experiments.paper._protocol import measure
from experiments.paper._show import COLOURS, Table, cell
from experiments.paper._sweep import BANDWIDTHS, Operators
from experiments.paper.comparisons import SIX
from kdmaps import metrics
from kdmaps.bases import select_landmarks
from kdmaps.data.distances import median_distance
from kdmaps.kernels import FAMILIES, Gaussian

#: A problem, N and p.
Case = tuple[str, int, int]
#: With more samples, phases are not drawn before the frequencies: the selection costs most there.
LARGE = 500
CASES: tuple[Case, ...] = (
    *((name, 500, 300) for name in SIX),
    ("ou10d", 1000, 300),
    ("ou10d", 5000, 300),
    ("ou20d", 2000, 400),
)


def label_of(row: Row) -> str:
    """Return the label of a row's problem, with N if it is not 500."""
    suffix = f", N={row['n_samples']}" if row["n_samples"] != 500 else ""
    return LABELS[row["problem"]] + suffix


def best_of(row: Row) -> Row:
    """Return the selected candidate of a sweep."""
    return max(row["landscape"], key=lambda candidate: candidate["score"])


@dataclass(frozen=True)
class Families(Experiment):
    """Selected families for each order of the draws."""

    cases: Sequence[Case] = CASES

    def quick(self) -> Self:
        return replace(self, cases=(self.cases[0], self.cases[1], self.cases[3]))

    def run(self, seed: int, call: Call = now) -> list[Row]:
        """Return one row per case and order of the draws."""
        return [
            call(measure, method=method, problem=problem, seed=seed, n_samples=n, n_features=p)
            for problem, n, p in self.cases
            for method in (self.methods if n <= LARGE else self.methods[:2])
        ]

    def table(self, rows: Sequence[Row]) -> Table:
        """Tabulate printed and selected families and bandwidths."""
        lines = []
        for case in dict.fromkeys(map(label_of, rows)):
            family, sigma = SELECTED[case]
            mine = [row for row in rows if label_of(row) == case]
            medians = np.array([row["median_distance"] for row in mine if row["method"] == self.methods[0]])
            ratios = [best_of(row)["bandwidth"] for row in mine]
            printed_sigma = "–" if sigma is None else f"{sigma:g}"
            edge = f"{min(ratios):.0f}–{max(ratios):.0f}"
            lines.append(
                [
                    case,
                    family,
                    printed_sigma,
                    cell(BANDWIDTHS[-1] * medians),
                    edge,
                    *(_families(mine, method) for method in self.methods),
                ]
            )
        header = ("problem", "printed CV kernel", "printed CV σ", "50 medians", "selected σ / median",
                  "phases shared", "phases drawn after the frequencies", "phases drawn before")  # fmt: skip
        return Table(header, lines, self._notes(rows))

    def _notes(self, rows: Sequence[Row]) -> list[str]:
        after = [row for row in rows if row["method"] == self.methods[1]]
        same, pairs = agreeing_pairs(after)
        predicted = sum(max(row["phase_means"], key=row["phase_means"].__getitem__) == family(row) for row in after)
        printed_same, printed_pairs = agreeing_printed_pairs()
        shared = [relative_range(row) for row in rows if row["method"] == self.methods[0]]
        own = [relative_range(row) for row in after]
        notes = [
            f"Drawn after the frequencies: two problems of the same dimension and number of features have the same "
            f"selected family in {same} of {pairs} pairs with the same seed, though their data differ; in the printed "
            f"table, in {printed_same} of {printed_pairs} pairs.",
            f"The family with the largest mean of cos 2b is selected in {predicted} of {len(after)} runs.",
            f"At the widest bandwidth, scores of the light-tailed families (Gaussian, Matérn-5/2, rational quadratic) "
            f"differ by {100 * np.median(shared):.3f} % of the score with shared phases (median over the runs), and by "
            f"{100 * np.median(own):.1f} % (at most {100 * np.max(own):.1f} %) with phases of their own.",
        ]
        matern = sum(family(row).startswith("matern") for row in rows if row["method"] == self.methods[0])
        total = sum(row["method"] == self.methods[0] for row in rows)
        notes.append(f"With shared phases, a Matérn kernel is selected in {matern} of {total} runs.")
        return notes

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Plot λ·(score at the widest bandwidth) - 1 against the mean of cos 2b."""
        figure = Figure(figsize=(9, 3.8), layout="constrained")
        axes = figure.subplots(1, 2, sharey=True)
        titles = ("phases drawn after the frequencies", "phases shared by all families")
        for ax, method, title in zip(axes, (self.methods[1], self.methods[0]), titles, strict=True):
            for number, name in enumerate(FAMILIES):
                mine = [row for row in rows if row["method"] == method]
                x = [row["phase_means"][name] for row in mine]
                y = [row["regularization"] * widest(row)[name] - 1 for row in mine]
                ax.plot(x, y, ".", ms=5, alpha=0.7, color=f"C{number}", label=name)
            low, high = -0.12, 0.14
            ax.plot([low, high], [low, high], color=COLOURS["printed"], lw=1, zorder=0)
            ax.set(xlabel="mean of cos 2b over the phases", title=title, xlim=(low, high), ylim=(-0.2, 0.2))
        axes[0].set_ylabel("λ · (sum of eigenvalues) - 1")
        axes[0].legend(frameon=False, fontsize="small")
        return figure


#: Families whose frequencies have enough moments that a bandwidth of 50 medians is wide for all of them.
LIGHT_TAILS = ("gaussian", "matern52", "rq2", "rq5")


def family(row: Row) -> str:
    """Return the selected family."""
    return str(best_of(row)["family"])


def widest(row: Row) -> dict[str, float]:
    """Return the score of every family at the widest bandwidth."""
    edge = max(candidate["bandwidth"] for candidate in row["landscape"])
    return {c["family"]: c["score"] for c in row["landscape"] if c["bandwidth"] > 0.99 * edge}


def relative_range(row: Row) -> float:
    """Return the range of the scores of light-tailed families at the widest bandwidth, relative to the largest."""
    scores = [widest(row)[name] for name in LIGHT_TAILS]
    return (max(scores) - min(scores)) / max(scores)


def agreeing_pairs(rows: Sequence[Row]) -> tuple[int, int]:
    """Count pairs of runs of equal dimension, seed and number of features: those of equal families, and all."""
    same = total = 0
    for one, two in combinations(rows, 2):
        alike = all(one[key] == two[key] for key in ("seed", "n_features")) and dimension(one) == dimension(two)
        if alike:
            total += 1
            same += family(one) == family(two)
    return same, total


def dimension(row: Row) -> int:
    """Return the dimension of a row's problem."""
    return load(row["problem"]).dim


def agreeing_printed_pairs() -> tuple[int, int]:
    """Count the same pairs of the printed table."""
    dimensions = {"OU2D α=4": 2, "OU2D α=16": 2, "Circle": 2, "DW1D": 1, "Asymm. DW": 1, "OU3D": 3}
    dimensions |= {"OU d=10, N=1000": 10, "OU d=10, N=5000": 10, "OU d=20, N=2000": 20}
    alike = [(a, b) for a, b in combinations(SELECTED, 2) if dimensions[a] == dimensions[b]]
    return sum(SELECTED[a][0] == SELECTED[b][0] for a, b in alike), len(alike)


def _families(rows: Sequence[Row], method: str) -> str:
    """Return the family of the first seed, and how often each was selected by all seeds."""
    selected = [family(row) for row in rows if row["method"] == method]
    if not selected:
        return "–"
    counts = ", ".join(f"{name} ×{count}" for name, count in Counter(selected).most_common())
    return f"{selected[0]} (all seeds: {counts})" if len(selected) > 1 else selected[0]


# --- cells under other settings ---------------------------------------------------------------------------------------
def wide_landmarks(problem: str, factor: float, seed: int, jitter: float = 1e-6) -> Row:
    """Return SubR² of one Gaussian of `factor` medians at 60 landmarks, W with jitter (eq:W-stab): EigOnly as σ → ∞."""
    system = load(problem)
    X = system.sample(500, random_state=seed)
    regularization = 0.005 if problem == "circle" else 0.01
    landmarks = select_landmarks(X, N_LANDMARKS, "kmeans", np.random.RandomState(seed))
    kernel = Gaussian(factor * median_distance(X))
    values = kernel(X, landmarks)
    slopes = kernel.gradient(X, landmarks)
    energy = np.einsum("imj,inj->mn", slopes, slopes, optimize=True) / len(X)
    ridge = kernel(landmarks) + jitter * np.eye(N_LANDMARKS)
    operators = Operators(values.T @ values / len(X), energy + regularization * ridge)
    modes = values @ operators.eigenpairs(4)[1]
    r2 = metrics.subspace_r2(modes, paper_reference(system, X))
    return {"problem": problem, "factor": factor, "seed": seed, "method": "EigOnly, σ fixed", "paper_r2": r2}


class WideKernels(Experiment):
    """EigOnly in the limit of wide kernels."""

    factors = (10.0, 100.0, 1000.0, 10000.0)

    def run(self, seed: int, call: Call = now) -> list[Row]:
        """Return one row per problem and bandwidth."""
        return [
            call(wide_landmarks, problem=problem, factor=factor, seed=seed)
            for problem in self.problems
            for factor in self.factors
        ]

    def table(self, rows: Sequence[Row]) -> Table:
        """Tabulate SubR² by bandwidth."""
        lines = []
        printed = {"dw1d": "0.474", "ou2d-16": "0.949", "circle": "0.500"}
        for problem in dict.fromkeys(row["problem"] for row in rows):
            cells = [cell(np.array([row["paper_r2"] for row in _at(rows, problem, f)])) for f in self.factors]
            lines.append([LABELS[problem], printed[problem], *cells])
        return Table(("problem", "printed EigOnly", *(f"σ = {f:g} medians" for f in self.factors)), lines)

    def figure(self, rows: Sequence[Row]) -> Figure:
        """Plot SubR² over the bandwidth."""
        figure = Figure(figsize=(6.4, 3.4), layout="constrained")
        ax = figure.subplots()
        for problem in dict.fromkeys(row["problem"] for row in rows):
            means = [np.mean([row["paper_r2"] for row in _at(rows, problem, f)]) for f in self.factors]
            ax.plot(self.factors, means, "o-", label=LABELS[problem])
        ax.set(xscale="log", xlabel="σ / median distance", ylabel="SubR², paper's reference", title=self.title)
        ax.legend(frameon=False)
        return figure


def _at(rows: Sequence[Row], problem: str, factor: float) -> list[Row]:
    return [row for row in rows if row["problem"] == problem and row["factor"] == factor]


EXPERIMENTS: dict[str, Experiment] = {
    "finding_phases": Families(
        "Phases choose the family",
        """Random phases, not the data, choose the family of the kernel.

        A wide kernel has the eigenvalue μ₀ = (1 + mean cos 2b)/λ for the constant, where b are the random phases of the
        features √(2/p) cos(wᵀx + b): the sum of squares of the features at w = 0. With 300 phases, the mean of cos 2b
        has a standard deviation of 1/√600 = 4 %. Families differ by far less at the wide end of the grid, where the
        eigenvalue sum has its maximum. If each family has phases of its own, the score compares phases.

        This happens without intention: a generator that starts again for every candidate, and draws frequencies before
        phases, gives each family its own phases, because families take different numbers of draws. They depend on
        dimension, number of features and seed, not on the data. The printed columns "CV kernel" and "CV σ" have this
        pattern: Gaussian in both one-dimensional systems, Matérn-3/2 in three two-dimensional ones, Matérn-5/2 for both
        sample sizes in ten dimensions, and σ at the edge of the grid everywhere. With phases shared by all candidates,
        the selected families are others. The table compares printed and selected families for three orders of the
        draws, in single precision (see the double wells) and with the Matérn frequencies that belong to the kernel.

            features = Features.draw(family, sigma, 300, d, seed, Settings(phases="after"))
            np.mean(np.cos(2 * features.phases))    # decides between families
        """,
        methods=("CV+RFF, single precision", "CV+RFF, phases by family", "CV+RFF, phases first"),
        n_seeds=3,
    ),
    "wide": WideKernels(
        "The limit of EigOnly",
        """EigOnly in the limit of wide kernels (tab:ablation).

        The paper reports that EigOnly drives σ to infinity, without the number of steps. Here one Gaussian of a fixed
        bandwidth takes its place, with a jitter of 1e-6 on W: the printed cells are those of kernels of 100 to 10,000
        medians.
        """,
        problems=("dw1d", "ou2d-16", "circle"),
        n_seeds=3,
    ),
}
