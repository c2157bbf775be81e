"""Content of the page: results of the fit, escaped text of users, and the program that repeats the fit."""

import json
import os
import warnings
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GroupKFold

import kdmaps
from kdmaps.certificates import cv_consistency
from kdmaps.checks import Check, Outcome, rules
from kdmaps.kernels import Metric, Mixture
from kdmaps.report import render_report, write_report
from shared import GRID, adaptive, known

# Pages of small fits: three modes of 300 samples, of a Gaussian law for which any wide kernel will do.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("undrawn"),
    known("no-gap", "flat"),
]

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{7*7}}"

TENSORS = np.random.default_rng(0).uniform(0.5, 2, (300, 2, 1)) * np.eye(2)  # one for each sample
HALVES = np.arange(300).reshape(2, 150)


class Tree(HTMLParser):
    """Elements with their attributes, and the text within each kind of element."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.texts, self._open = [], {}, []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        for tag in set(self._open):
            self.texts.setdefault(tag, []).append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    def points(self):
        start = next(i for i, text in enumerate(self.texts["script"]) if text.startswith("{"))
        return json.loads(self.texts["script"][start])


def program(page):
    """The program of a page."""
    return next(text for text in Tree(page).texts["code"] if text.startswith("from "))


@pytest.fixture(scope="module")
def X():
    return kdmaps.problems.load("ou2d-4").sample(300, random_state=0)


@pytest.fixture(scope="module")
def search(X):
    return kdmaps.KernelSearchCV(3, **GRID, n_features=40, random_state=0).fit(X)


@pytest.fixture(scope="module")
def bars(X, search):
    return kdmaps.uncertainty.bootstrap(search, X, n_resamples=30)


@pytest.fixture(scope="module")
def drawn(X, search, bars):
    """Two pages of the same fit with all figures."""
    return [render_report(search, X, uncertainty=bars) for _ in range(2)]


def test_time_scales_intervals_and_choice(X, search, bars):
    page = render_report(search, X, uncertainty=bars)
    cells = Tree(page).texts["td"]
    for k in range(3):
        low, high = bars.timescale_intervals[k]
        row = [str(k + 1), f"{search.timescales_[k]:.4g}", f"{low:.4g} – {high:.4g}", f"{search.rates_[k]:.4g}"]
        assert cells[5 * k : 5 * k + 4] == row
    items = "".join(Tree(page).texts["li"])
    assert "12 candidates" in items
    assert (
        f"scores {search.best_selection_score_:.4g} ± {search.cv_results_['selection_error'][search.best_index_]:.2g}"
        in items
    )
    assert f"bootstrap of {bars.n_blocks} blocks of {bars.block_length} samples" in page
    labels = [attributes["aria-label"] for attributes in Tree(page).all("svg")]
    first = ["Mode", "Mode", "Mode", "Time", "Share", "Score", "Score"]
    assert [label.split()[0] for label in labels] == first
    assert "Trajectory" not in page


def test_unknown_diffusion_constant(X, search):
    assert "do not determine D" in render_report(search, X)
    scaled = kdmaps.KernelDiffusionMap(2, n_features=40, diffusion=3.0, random_state=0).fit(X)
    assert "do not determine D" not in render_report(scaled, X)
    circle = kdmaps.problems.load("circle").sample(300, random_state=0)
    tangent = kdmaps.KernelDiffusionMap(2, n_features=40, diffusion="tangent", random_state=0).fit(circle)
    assert "do not determine D" in render_report(tangent, circle)


def test_points_are_the_modes_at_the_samples(X, search):
    points = Tree(render_report(search, pd.DataFrame(X, columns=["left", "right"]))).points()
    assert points["names"] == ["mode 1", "mode 2", "mode 3", "left", "right"]
    assert points["rows"] == list(range(300))
    np.testing.assert_allclose(np.transpose(points["values"]), np.c_[search.transform(X), X], rtol=6e-4)  # four digits
    few = Tree(render_report(search, X, max_points=50)).points()
    assert len(set(few["rows"])) == 50
    assert few["total"] == 300
    np.testing.assert_allclose(few["values"][3], X[few["rows"], 0], rtol=6e-4)


def test_modes_over_given_coordinates(X, search):
    given = {"angle": np.arctan2(X[:, 1], X[:, 0]), "radius": np.hypot(X[:, 0], X[:, 1])}
    tree = Tree(render_report(search, X, draw=given))
    labels = [a["aria-label"] for a in tree.all("svg")]
    assert labels[:3] == [f"Mode {k} over angle and radius" for k in (1, 2, 3)]
    points = tree.points()
    assert points["names"] == ["mode 1", "mode 2", "mode 3", "angle", "radius", "x1", "x2"]
    assert points["panels"] == [[0, 1], [3, 4]]
    np.testing.assert_allclose(points["values"][4], given["radius"], rtol=6e-4)
    one = Tree(render_report(search, X, draw=given["radius"])).points()
    assert (one["names"][3], one["panels"]) == ("drawn 1", [[0, 1]])
    with pytest.raises(ValueError, match="draw: column a must have one number"):
        render_report(search, X, draw={"a": X[:5, 0]})


def test_states(X, search):
    cells = Tree(render_report(search, X)).texts["td"]
    n = kdmaps.dynamics.suggest_states(search)
    states = kdmaps.dynamics.coarse_states(search.transform(X), n)
    for population, row in zip(states.populations, states.representatives(X, 3), strict=True):
        start = cells.index(f"{population:.1%}")
        assert cells[start + 3] == ", ".join(str(typical) for typical in row if typical >= 0)
        assert cells[start + 4 : start + 6] == [f"{value:.4g}" for value in X[row[0]]]


def test_verdict(X, search, bars, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    page = render_report(search, X, uncertainty=bars, notes="Run 7 of `a.py`.\n\nSecond part.")
    text = "".join(Tree(page).texts["p"])
    low, high = bars.timescale_intervals[0]
    assert f"slowest relaxation {search.timescales_[0]:.4g} ({low:.3g} – {high:.3g});" in text
    assert "No separate states;" in text  # a single well
    checks = kdmaps.Analysis(search, X, uncertainty=bars).checks
    failed = [check for check in checks.counted if check.outcome is Outcome.FAILED]
    assert (f"{len(failed)} of {len(checks.counted)} checks failed" if failed else "all checks passed") in text
    assert "1970-01-02" in text
    assert "Run 7 of a.py." in text
    assert page.index("slowest relaxation") < page.index("Run 7 of") < page.index('id="samples"')


def test_order_of_sections(X, search):
    beware = Check(rules.CONSTANT_COLUMNS, 1, where=("y",))
    page = render_report(search, X, checks=[beware])
    places = [page.index(text) for text in (beware.message(), 'id="samples"', 'id="modes"', 'id="times"', 'id="states"',
                                            'id="inputs"', 'id="choice"', 'id="settings"', 'id="again"')]  # fmt: skip
    assert places == sorted(places)


def test_a_trivial_bound_is_left_out(X, search):
    certainty = search.certainty_
    own = cv_consistency(certainty["margin"], 12, 3, 6, certainty["fold_size"], certainty["concentration"])
    assert own.value == 1
    assert "missed the best candidate" not in render_report(search, X)


def test_checks_of_a_search(X, search):
    cells = Tree(render_report(search, X)).texts["td"]
    agreement = search.cv_results_["fold_agreement"][search.best_index_]
    start = cells.index("agreement of the folds on the modes, mean squared cosine")
    assert cells[start + 1 : start + 3] == [f"{agreement:.3f}", "at least 0.8"]
    assert not any("sampling error" in cell for cell in cells)


@pytest.mark.parametrize("few", [40, 300])
@known("no-gap", "unresolved")
def test_failed_checks_are_marked(few, X):
    model = kdmaps.KernelDiffusionMap(4, n_features=60, bandwidth=2.5, random_state=0).fit(X[:few])
    modes, tree = model.modes_, Tree(render_report(model, X[:few]))
    cells = tree.texts["td"]
    error, ratio = modes.sampling_error[-1], modes.next_quotient / model.rates_.max()
    gap = min(modes.gap, ratio) if ratio >= 1 else modes.gap  # a mode that λ has put last has no gap before it
    condition = cells.index(f"{modes.condition_number:.2g}")
    assert cells[condition + 2] == "passed"
    after_error = cells.index("at most 0.5") + 1
    assert cells[after_error - 2] == f"{error:.3g}"
    assert cells[after_error] == ("too large" if error > 0.5 else "passed")
    after_gap = (
        next(k for k, cell in enumerate(cells) if cell.startswith(f"at least {modes.smallest_gap:.4g} with")) + 1
    )
    assert cells[after_gap - 2] == f"{gap:.4g}"
    assert cells[after_gap] == ("too small" if gap < modes.smallest_gap else "passed")
    failed = kdmaps.Analysis(model, X[:few], n_resamples=0).checks.failed
    assert sum(attributes.get("class") == "broken" for attributes in tree.all("tr")) == len(failed)
    assert f"{gap:.4g}" in Tree(render_report(model, X[:few])).texts["dd"]  # one gap, in all places
    assert (error > 0.5) == (few == 40)  # both cases


def test_column_names_cause_no_warning(X):
    frame = pd.DataFrame(X, columns=["left", "right"])
    model = kdmaps.KernelDiffusionMap(2, n_features=40, random_state=0).fit(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Tree(render_report(model, X)).points()["names"][2:] == ["left", "right"]


def test_user_text_is_escaped(X, search):
    page = render_report(
        search, X, title=HOSTILE, feature_names=[HOSTILE, "y"], command=HOSTILE, notes=HOSTILE,
        checks=[Check(rules.CONSTANT_COLUMNS, 1, where=(HOSTILE,))],
    )  # fmt: skip
    tree = Tree(page)
    assert len(tree.all("script")) == 2
    assert tree.all("img") == []
    assert tree.texts["h1"] == [HOSTILE]
    assert tree.points()["names"][3] == HOSTILE
    assert any(HOSTILE in text for text in tree.texts["li"])
    assert "49" not in "".join(tree.texts["h1"])


def test_page_is_self_contained(drawn):
    tree = Tree(drawn[0])
    for tag, attributes in tree.elements:
        for name in ("src", "href", "xlink:href", "action", "data"):
            assert attributes.get(name, "#").startswith(("#", "data:")), (tag, attributes)
    policy = next(a["content"] for a in tree.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy


def test_identifiers_are_unique(drawn):
    names = [attributes["id"] for _, attributes in Tree(drawn[0]).elements if "id" in attributes]
    assert len(names) > 50
    assert len(names) == len(set(names))


def test_pages_are_reproducible(drawn):
    assert drawn[0] == drawn[1]


@known("unresolved")
def test_given_kernel(X):
    few = X[:40]  # too few to distinguish modes 4 and 5
    model = kdmaps.KernelDiffusionMap(4, n_features=60, bandwidth=2.5, random_state=0).fit(few)
    tree = Tree(render_report(model, few))
    assert {a["aria-label"] for a in tree.all("svg")} == {
        *(f"Mode {k} over x1 and x2" for k in (1, 2, 3, 4)),
        "Time scale of every mode, on a logarithmic axis, and the gap after the last one",
        "Share of every input in the gradients of every mode",
    }
    said = [check.say() for check in kdmaps.Analysis(model, few, n_resamples=0).checks.warnings]
    assert said
    assert all(any(text in item for item in tree.texts["li"]) for text in said)
    assert "The kernel was given." in tree.texts["li"]
    values = tree.texts["td"]
    assert {"2.5", "60"} <= set(values)  # settings other than the defaults


def test_learned_kernel(X):
    model = kdmaps.VariationalKernelMap(2, adam_steps=3, lbfgs_steps=2, n_features=20, random_state=0).fit(X)
    tree = Tree(render_report(model, X))
    assert "Loss over the steps of the optimiser" in [a["aria-label"] for a in tree.all("svg")]
    steps = len(model.history_["loss"]) - 1
    assert any(f"to {model.best_loss_:.4g} in {steps} steps" in text for text in tree.texts["li"])


def test_command_and_fingerprint(X, search):
    tree = Tree(render_report(search, X, command="kdmaps fit 'a b.npy'"))
    assert "kdmaps fit 'a b.npy'" in tree.texts["code"]
    other = X.copy()
    other[-1, -1] = np.nextafter(other[-1, -1], 9)
    hashes = [Tree(render_report(search, samples)).texts["code"][-1] for samples in (X, X.copy(), other)]
    assert hashes[0] == hashes[1] != hashes[2]


@pytest.mark.parametrize(
    "model",
    [
        kdmaps.KernelSearchCV(
            2, families=["gaussian"], bandwidths=2, cv=kdmaps.BlockedKFold(3), n_features=30, random_state=0,
            progress=True,
        ),
        kdmaps.KernelDiffusionMap(2, kernel=kdmaps.kernels.Matern(1.5, 2.0), n_features=30, random_state=0),
        kdmaps.KernelDiffusionMap(2, n_features=30, diffusion=TENSORS, random_state=0),
        kdmaps.KernelSearchCV(
            2, families=["rq2", Mixture([kdmaps.kernels.Gaussian(2.0), kdmaps.kernels.Matern(2.5, 3.0)])],
            bandwidths=2, n_features=30, random_state=0, cv=[(HALVES[0], HALVES[1]), (HALVES[1], HALVES[0])],
        ),
        kdmaps.KernelDiffusionMap(2, n_features=30, diffusion=np.ones_like, random_state=0),
        kdmaps.KernelDiffusionMap(
            2, kernel=Metric(kdmaps.kernels.Gaussian(2.0), np.diag([1.0, 0.7])), n_features=30, random_state=0
        ),
    ],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_program_repeats_the_fit(model, X):
    code = program(render_report(model.fit(X), X))
    assert "progress" not in code
    assert ("array of shape (300, 2, 2)" in code) == (model.get_params().get("diffusion") is TENSORS)
    names = {"X": X, **{name: model.get_params().get(name) for name in ("diffusion", "cv", "kernel")}}
    exec(code, names)
    np.testing.assert_array_equal(names["model"].timescales_, model.timescales_)


GROUPS = np.repeat(["a", "b", "c", "d", "e", "f"], 50)
WEIGHT = np.random.default_rng(0).uniform(0, 2, 300)


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        kdmaps.KernelDiffusionMap(2, n_features=30, rates="cross-fitted", cv=GroupKFold(3), random_state=0),
        kdmaps.KernelSearchCV(2, families=["rq2"], bandwidths=2, cv=GroupKFold(3), n_features=30, random_state=0),
        adaptive(
            2, families=["rq2"], cv=GroupKFold(3), refine=False, rates="cross-fitted", n_features=30, random_state=0
        ),
    ],
    ids=lambda model: type(model).__name__,
)
@known("variance-samples")
def test_program_with_weights_and_groups(model, given, X):
    """Also if the page did not receive them: the moments show weights, and the splitter needs groups."""
    model.fit(X, sample_weight=WEIGHT, groups=GROUPS)
    page = render_report(model, X, **({"sample_weight": WEIGHT, "groups": GROUPS} if given else {}))
    names = {"X": X, "sample_weight": WEIGHT, "groups": GROUPS}
    exec(program(page), names)
    np.testing.assert_array_equal(names["model"].rates_, model.rates_)
    plain = clone(model).set_params(cv=3).fit(X)
    assert not np.allclose(plain.rates_, model.rates_, rtol=1e-3)  # weights and groups matter
    cells = Tree(page).texts["td"]
    effective = WEIGHT.sum() ** 2 / (WEIGHT**2).sum()
    assert f"one for each sample; {effective:,.0f} effective samples" in cells
    assert f"300 ({effective:,.0f} effective)" in Tree(page).texts["dd"]
    assert ("Free energy along mode 1, in units of kT" in [a["aria-label"] for a in Tree(page).all("svg")]) == given
    assert ("6 groups of samples" if given else "the group of each sample") in cells


def test_program_without_weights(X, search):
    page = render_report(search, X)
    assert "model.fit(X)" in program(page)
    assert "groups" not in program(page)
    equal = kdmaps.KernelDiffusionMap(2, n_features=40, random_state=0).fit(X, sample_weight=np.full(300, 0.1))
    assert "model.fit(X)" in program(render_report(equal, X))  # equal weights change nothing
    assert "300" in Tree(page).texts["dd"]
    assert "Free energy" not in page


def test_bad_arguments(X, search, bars):
    with pytest.raises(ValueError, match="X has shape"):
        render_report(search, X[:, :1])
    with pytest.raises(ValueError, match="feature_names has 1 names for 2"):
        render_report(search, X, feature_names=["x"])
    with pytest.raises(ValueError, match=r"groups has shape \(299,\)"):
        render_report(search, X, groups=GROUPS[1:])
    with pytest.raises(ValueError, match="uncertainty has 3 modes"):
        render_report(kdmaps.KernelDiffusionMap(2, n_features=40).fit(X), X, uncertainty=bars)


def test_failed_write_keeps_the_old_page(X, search, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")

    def full(_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            write_report(search, X, path)
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("report.html", "old")]
    write_report(search, X, path)
    assert path.read_text() == render_report(search, X)
