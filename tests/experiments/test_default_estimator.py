"""Experiments on the default estimator: rows contain the measurements, and bad rows miss their goals."""

import numpy as np
import pytest

import kdmaps
from experiments import _fits, coverage, nuisance, rare_events, release, steady
from experiments._fits import fit_default
from experiments._runner import finished
from kdmaps.checks import Check, rules, warn
from pages import read_page, states
from shared import known

#: A search of two candidates.
GRID = {"families": ["gaussian"], "bandwidths": [3.0], "regularizations": [1e-3, 1e-2], "max_extensions": 0}
SMALL = {"search": kdmaps.KernelSearchCV(**GRID), "n_features": 60, "refine": False}
ROW = {"kernel": "Gaussian(1)", "basis": "FourierBasis", "regularization": 1e-3, "warnings": [], "seconds": 1.0}


class Exact:
    """An estimator with the exact modes and with rates that are too large by 10 and 20 %."""

    def __init__(self, system, n_modes):
        self.system, self.n_modes = system, n_modes
        self.rates_ = np.array([1.1, 1.2]) * system.rates(n_modes)

    def transform(self, X):
        return self.system.eigenfunctions(X, self.n_modes)


def cells(text, line=0):
    """The cells of a line of a table, by their headings."""
    header, _, *rows = [row.strip("| ").split(" | ") for row in text.splitlines() if row.startswith("|")]
    return dict(zip(header, [cell.strip() for cell in rows[line]], strict=True))


@pytest.mark.slow
def test_row_describes_the_fit(monkeypatch):
    X = kdmaps.problems.load("ou2d-4").sample(200, random_state=0)
    model, row = fit_default(X, 2, 0, **SMALL)
    assert row["rates"] == sorted(model.rates_)
    assert row["regularization"] == model.best_params_["regularization"]
    assert (row["basis"], row["kernel"]) == (type(model.basis_).__name__, repr(model.kernel_))
    assert row["seconds"] > 0

    doubt = Check(rules.NO_MEMORY, 0.5, words={"lag_frames": 1})

    def doubtful(self, X, sample_weight=None, groups=None):
        warn(doubt)
        warn(Check(rules.CONSTANT_COLUMNS, 1, where=(0,)))
        return vars(self).update(vars(model)) or self

    monkeypatch.setattr(_fits.AdaptiveDiffusionMap, "fit", doubtful)
    assert fit_default(X, 2, 0)[1]["warnings"] == [str(doubt.as_warning())]


# --- nuisance coordinates ---------------------------------------------------------------------------------------------
def nuisance_row(seed, state, r2, ratios=(1.0, 1.0), rotated=False, k=48, std=0.25):
    task = {"k": k, "std": std, "rotated": rotated, "n": 1000, "seed": seed, "random_state": state}
    return {**task, "r2": r2, "ratios": list(ratios), **ROW}


@pytest.mark.slow
def test_nuisance_rows_compare_with_the_truth(monkeypatch):
    drawn = {}

    def fit(X, n_components, random_state, **settings):
        drawn[X.shape] = X
        system = kdmaps.problems.nuisance(kdmaps.problems.load("triplewell2d"), 3, 0.25, rotation)
        model = Exact(system, n_components)
        return model, {**ROW, "rates": model.rates_.tolist()}

    monkeypatch.setattr(nuisance, "fit_default", fit)
    for rotation in (None, nuisance.ROTATION):
        (row,) = nuisance.run(3, 0.25, rotation is not None, 100, 0, 0)
        assert row["r2"] == pytest.approx(1, abs=1e-8)  # rounding; 0.2 if the reference were not rotated too
        assert row["ratios"] == pytest.approx([1.1, 1.2])
        drawn[rotation] = drawn[100, 5]
    plain, turned = drawn[None], drawn[nuisance.ROTATION]
    np.testing.assert_allclose(turned @ turned.T, plain @ plain.T, atol=1e-10)  # the same points, rotated
    assert not np.allclose(turned, plain)


def test_nuisance_table_has_goals():
    good = [nuisance_row(seed, state, 0.98 + 0.001 * state, (1.2, 0.9)) for seed in (0, 1) for state in (0, 1)]
    first = cells(nuisance.table(good))
    assert [first[name] for name in ("mean SubR²", "worst", "largest rate error")] == [
        "0.9805 ✓",
        "0.9800 ✓",
        "20.0% ✓",
    ]
    assert (first["spread of SubR²"], first["spread of rates"], first["fits"]) == ("0.0010", "0.0%", "4")
    bad = cells(nuisance.table([*good[:3], nuisance_row(1, 1, 0.9, (1.2, 0.6))]))
    assert [bad[name] for name in ("mean SubR²", "worst", "largest rate error")] == ["0.9602 ✗", "0.9000 ✗", "40.0% ✗"]
    # Of the second sample: .98 and .9, rates .9 and .6.
    assert (bad["spread of SubR²"], bad["spread of rates"]) == ("0.0800", "30.0%")
    turned = cells(nuisance.table([*good, nuisance_row(1, 1, 0.95, rotated=True)]), 1)
    assert (turned["inputs"], turned["rotated"]) == ("rotated", "0.0310")  # from .981
    assert cells(nuisance.table([nuisance_row(0, 0, 0.5, k=498, std=0.1)]))["worst"] == "0.5000"  # only reported


# --- rare events ------------------------------------------------------------------------------------------------------
def rare_row(ratios, frames="biased", messages=()):
    row = {"frames": frames, "n": 2000, "seed": 1, "effective": 812.3, "ratios": list(ratios), "r2": 0.9}
    return {**row, **ROW, "warnings": list(messages)}


@pytest.mark.slow
def test_rare_events_use_weights_and_the_diffusion_constant(monkeypatch):
    given = []

    def fit(X, n_components, random_state, sample_weight=None, **settings):
        given.append((X, sample_weight, settings["diffusion"]))
        model = Exact(kdmaps.problems.load("muller-brown"), n_components)
        return model, {**ROW, "rates": model.rates_.tolist()}

    monkeypatch.setattr(rare_events, "fit_default", fit)
    rows = [rare_events.run(frames, 300, 4)[0] for frames in ("biased", "independent")]
    problem = kdmaps.problems.load("muller-brown")
    X, weights = problem.biased_sample(300, random_state=4)
    np.testing.assert_array_equal(given[0][0], X)
    np.testing.assert_array_equal(given[0][1], weights)
    np.testing.assert_array_equal(given[1][0], problem.sample(300, random_state=4))
    assert given[1][1] is None
    assert [diffusion for *_, diffusion in given] == [0.1, 0.1]
    assert rows[0]["effective"] == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert rows[1]["effective"] == 300
    for row in rows:
        assert row["ratios"] == pytest.approx([1.1, 1.2])
        assert row["r2"] == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (rare_row([1.3, 0.9]), ["1.300 ✓", "0.900 ✓", "no"]),
        (rare_row([1.4, 1.2]), ["1.400 ✗", "1.200 ✗", "no"]),
        (rare_row([1.4, 1.0], messages=["mode 1 is doubtful"]), ["1.400 ✓", "1.000 ✓", "yes"]),
        (rare_row([9.0, 0.1], frames="independent"), ["9.000", "0.100", "no"]),
    ],
)
def test_rare_events_table_has_goals(row, expected):
    text = rare_events.table([row])
    found = cells(text)
    assert [found[name] for name in ("rate 1 / exact", "rate 2 / exact", "flagged")] == expected
    assert all(f"- biased, seed 1: {message}" in text for message in row["warnings"])


# --- other random states ----------------------------------------------------------------------------------------------
def steady_row(state, rates, mutual, stated=0.95):
    row = {"case": "triplewell2d+48", "n": 1000, "seed": 0, "random_state": state, "errors": [0.1, 0.2]}
    return {**row, "rates": rates, "mutual": mutual, "stated": stated, "r2": 0.9 + 0.01 * state, **ROW}


def test_steady_table_compares_with_the_stated_error():
    good = [steady_row(0, [1.0, 2.0], []), steady_row(1, [1.1, 2.2], [0.96])]
    found = cells(steady.table(good))
    # Deviations of .05 and .1 from the means.
    assert (found["deviation"], found["mutual SubR²"]) == ("0.50, 0.50 ✓", "0.9600 ✓")
    assert (found["mean rates"], found["truth"], found["states"]) == ("1.05, 2.1", "0.9000", "2")
    bad = cells(steady.table([good[0], steady_row(1, [1.0, 2.5], [0.9])]))
    assert (bad["deviation"], bad["mutual SubR²"]) == ("0.00, 1.25 ✗", "0.9000 ✗")


@pytest.mark.slow
def test_steady_rows_compare_random_states_with_each_other():
    rows = steady.run("triplewell2d+48", 200, 0, 2, **SMALL)
    problem = kdmaps.problems.load("triplewell2d+48")
    X = problem.sample(200, random_state=0)
    models = [fit_default(X, 2, state, **SMALL)[0] for state in (0, 1)]
    assert [row["rates"] for row in rows] == [sorted(model.rates_) for model in models]
    between = kdmaps.metrics.subspace_r2(*(model.transform(X) for model in models))
    assert rows[0]["mutual"] == []
    assert rows[1]["mutual"] == pytest.approx([between])
    stated = kdmaps.uncertainty.bootstrap(models[1], X)
    assert rows[1]["errors"] == pytest.approx(stated.rate_errors[np.argsort(models[1].rates_)])
    assert rows[1]["r2"] == pytest.approx(kdmaps.metrics.subspace_r2(models[1].transform(X), problem.reference(X, 2)))


@pytest.mark.parametrize("case", steady.MOLECULE)
def test_steady_reads_the_molecule_as_its_example_does(case, monkeypatch, request):
    root = request.config.rootpath
    monkeypatch.syspath_prepend(str(root / "examples" / "alanine_dipeptide"))
    import alanine

    X, reference = steady.samples(case, 0, 0, str(root / steady.FRAMES))
    expected = alanine.coordinates(alanine.load())[case.removeprefix("alanine ")]
    # Sorted, since the order of the columns is of no importance.
    np.testing.assert_allclose(np.sort(X[:50], axis=1), np.sort(expected[:50], axis=1))
    assert (X.shape, reference.shape) == (expected.shape, (20_000, 2))


# --- version 0.1.0 ----------------------------------------------------------------------------------------------------
def release_row(seed, r2, problem="ou10d", n=500, rate=1.0):
    task = {"problem": problem, "n": n, "seed": seed}
    return {**task, "r2": r2, "r2_known": r2 - 0.05, "rates": [rate, 2.0], "exact": [1.0, 2.0], **ROW}


def test_release_table_compares_the_same_seeds():
    old = [release_row(1, 0.97, rate=0.9), release_row(0, 0.99, rate=0.9), release_row(5, 0.1)]
    found = cells(release.table([release_row(0, 0.98, rate=1.2), release_row(1, 0.975, rate=1.2)], old))
    assert (found["0.1.0: mean (worst)"], found["now: mean (worst)"]) == ("0.9800 (0.9700)", "0.9775 (0.9750)")
    assert found["exact functions"] == "0.9275 (0.9250)"
    assert (found["difference of means"], found["of the worst"], found["goal"]) == (
        "-0.0025 ± 0.0053 ✓",
        "+0.0050 ✓",
        "≥ 0.95 ✓",
    )
    assert (found["rate error of 0.1.0"], found["rate error now"]) == ("10.0%", "20.0%")
    text = release.table([release_row(0, 0.93), release_row(1, 0.96), release_row(9, 0.5)], old)
    bad = cells(text)
    assert (bad["difference of means"], bad["of the worst"], bad["goal"]) == (
        "-0.0350 ± 0.0177 ✗",
        "-0.0400 ✗",
        "≥ 0.95 ✗",
    )
    assert "1 fits without a counterpart" in text


@known("energy-samples")  # of 200 samples
def test_release_row_matches_the_estimator():
    (row,) = release.run("dw1d", 200, 3, **SMALL)
    problem = kdmaps.problems.load("dw1d")
    X = problem.sample(200, random_state=3)
    model = kdmaps.AdaptiveDiffusionMap(problem.n_modes, random_state=3, **SMALL)
    modes = model.fit_transform(X)
    assert row["r2"] == pytest.approx(kdmaps.metrics.subspace_r2(modes, problem.reference(X, problem.n_modes)))
    assert row["exact"] == problem.rates(problem.n_modes).tolist()
    # In the span of eight exact functions; 200 samples do not make the first four of them the slowest.
    assert 0.5 < row["r2_known"] < 1 - 1e-6


def test_the_page_states_how_exact_functions_compare(request):
    root = request.config.rootpath
    rows = [row for found in finished(root / "results" / "release" / "rows.jsonl").values() for row in found]
    cases = [[row for row in rows if (row["problem"], row["n"]) == case] for case in release.CASES]
    lower = [np.mean([row["r2_known"] - row["r2"] for row in mine]) < 0 for mine in cases]
    assert (sum(lower), len(lower)) == (8, 12)
    assert states(read_page("benchmarks.md"), "exact functions", 8, 12)


def test_the_page_states_means_and_worst_seeds(request):
    root = request.config.rootpath
    text = read_page("benchmarks.md")
    new = {tuple(map(row.get, ("problem", "n", "seed"))): row["r2"]
           for found in finished(root / "results" / "release" / "rows.jsonl").values() for row in found}  # fmt: skip
    old = {
        tuple(map(row.get, ("problem", "n", "seed"))): row["r2"] for row in release.read_lines(root / release.OLD_ROWS)
    }
    lost = [sum(version[key] < 0.85 for key in new) for version in (new, old)]
    means = [f"{np.mean([version[key] for key in new]):.3f}" for version in (new, old)]
    assert states(text, "ou2d-4", "30", "5", len(new), lost[0], ".85", lost[1], *means)
    change = {case: [new[key] - old[key] for key in new if key[:2] == case] for case in release.CASES}
    lower = np.array(change["ou2d-4", 500])
    error = np.std(lower) / np.sqrt(len(lower))
    assert states(text, "ou2d-4", f"{-lower.mean():.3f}", f"{-lower.mean() / error:.1f}")
    assert min(np.mean(mine) for case, mine in change.items() if case[0] != "ou2d-4") > -release.MARGIN_MEAN
    worst = [min(new[k] for k in new if k[:2] == c) - min(old[k] for k in new if k[:2] == c) for c in release.CASES]
    assert states(text, "worst seeds", f"{-min(worst):.3f}")


def test_every_fit_of_the_old_version_is_compared(request):
    rows = release.read_lines(request.config.rootpath / release.OLD_ROWS)
    assert {(row["problem"], row["n"]) for row in rows} == set(release.CASES)
    for problem, n in release.CASES:
        seeds = sorted(row["seed"] for row in rows if (row["problem"], row["n"]) == (problem, n))
        assert seeds == list(range(7000, 7060 if (problem, n) in release.UNSTEADY else 7010))


# --- coverage ---------------------------------------------------------------------------------------------------------
def test_coverage_counts_fits_that_are_not_flagged():
    """Ten fits: six silent, five of which cover the first rate and one is wrong; four flagged, one of them right."""
    plain = {"case": "a", "n": 500, "ends": [[0.5, 2.0], [0.5, None]], "reasons": [[], []], "seconds": 1.0}
    silent = [{**plain, "seed": s, "ok": [True, True], "inside": [s > 0, True], "ratios": [1.0, 1.1]} for s in range(6)]
    silent[0]["ratios"] = [0.4, 1.0]
    flagged = [
        {**plain, "seed": s, "ok": [True, False], "inside": [True, False], "ratios": [1.0, 3.0]} for s in range(4)
    ]
    flagged[0]["ratios"] = [1.0, 1.2]
    line = coverage.table(silent + flagged).splitlines()[4]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[:6] == ["a", "500", "10", "4", "0.83 ✗", "1.00 ✓"]
    assert cells[6:11] == ["0.75", "4", "1 ✗", "1 of 6", "4.00"]


def test_sampling_error_of_exact_modes():
    """Ornstein–Uhlenbeck: e/rate - φ² is 1 - x² and x² - (x² - 1)²/2, with the variances 2 and 8."""
    (row,) = coverage.exact_modes("Ornstein–Uhlenbeck", -1)
    np.testing.assert_allclose(row["errors"], np.sqrt([2 / 500, 8 / 500]), rtol=0.1)  # tails of x⁸ in 20,000 samples
    x = coverage.CASES["Ornstein–Uhlenbeck"](3).X[:, 0]
    (row,) = coverage.exact_modes("Ornstein–Uhlenbeck", 3)
    np.testing.assert_allclose(row["ratios"], [1 / x.var(), 4 * np.mean(x**2) / np.var(x**2) / 2], rtol=1e-5)


@pytest.mark.parametrize("case", ["one trajectory", "interleaved walkers", "biased, with weights"])
def test_draws_of_the_coverage_have_the_moments_of_their_problem(case):
    """The second moment under the stationary law, by quadrature; within five standard errors of so many samples."""
    draw = coverage.CASES[case](0)
    x = np.linspace(-3, 3, 2001)
    law = np.exp(-draw.problem.potential(x))
    exact = (x**2 * law).sum() / law.sum()
    weight = np.ones(len(draw.X)) if draw.weight is None else draw.weight
    assert abs(np.average(draw.X[:, 0] ** 2, weights=weight) / exact - 1) < 0.1
    if draw.groups is not None:  # frames of one walker follow one another closely
        one = draw.X[draw.groups == 3, 0]
        assert np.abs(np.diff(one)).mean() < 0.5 * np.abs(np.diff(draw.X[:, 0])).mean()


# --- all of them ------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("module", [nuisance, rare_events, steady, release, coverage])
def test_rows_table_figure_and_resumption(module, tmp_path, monkeypatch, request, capsys):
    monkeypatch.chdir(request.config.rootpath)
    name = module.__name__.rsplit(".", 1)[1]
    original, calls = module.fit_default, []

    def small(*arguments, **settings):
        calls.append(arguments)
        return original(*arguments, **{**settings, **SMALL})

    monkeypatch.setattr(module, "fit_default", small)
    arguments = ["--quick", "--out", str(tmp_path), "--jobs", "1"]
    arguments += ["--problems", "ou2d-4"] if module is release else []
    module.main(arguments)
    table, count = (tmp_path / "table.md").read_text(), len(calls)
    assert count in (1, 2)
    assert table in capsys.readouterr().out
    assert (tmp_path / f"{name}.png").stat().st_size > 5_000
    module.main(arguments)
    assert (tmp_path / "table.md").read_text() == table
    assert len(calls) == count  # finished rows are not computed again
