"""The page in a browser: both widths, light and dark, mouse and keyboard, no messages in the console."""

import numpy as np
import pytest

import kdmaps
from kdmaps.checks import Check, rules
from kdmaps.report import write_report
from shared import GRID, ignoring, known

pytestmark = [pytest.mark.slow, known("no-gap", "within-lag")]

# Margins of the figure, as in page.js.
LEFT, RIGHT, TOP, BOTTOM, ROOM = 58, 12, 12, 46, 0.04
SCREENS = [(1280, False), (1280, True), (390, False), (390, True)]


@pytest.fixture(scope="module")
def X():
    return kdmaps.problems.load("triplewell2d").sample(400, random_state=0)


@pytest.fixture(scope="module")
def search(X):
    return kdmaps.KernelSearchCV(3, **GRID, n_features=60, random_state=0).fit(X)


@pytest.fixture(scope="module")
def trajectory(tmp_path_factory):
    """The page of a model with a lag."""
    path = tmp_path_factory.mktemp("trajectory") / "report.html"
    frames = kdmaps.problems.load("triplewell2d").simulate(8000, dt=0.05, random_state=0)[0]
    options = {"lag": "auto", "time_step": 0.05, "n_features": 60, "random_state": 0}
    with ignoring("no-gap"):  # a short trajectory, as a test needs it
        write_report(kdmaps.KernelSearchCV(3, **GRID, **options).fit(frames), frames, path, unit="ns")
    return path


@pytest.fixture(scope="module")
def report(X, search, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(
        search, X, path, uncertainty=kdmaps.uncertainty.bootstrap(search, X, n_resamples=20),
        title="A title of many words & <tags>, with_one_very_long_name_that_has_no_place_to_break_at_all.parquet",
        feature_names=["a coordinate with a rather long name", "y"],
        checks=[Check(rules.CONSTANT_COLUMNS, 1, where=("y",))],
    )  # fmt: skip
    return path


def position(values, low_side, high_side, i):
    """Position of a value between two sides of the frame."""
    room = ROOM * np.ptp(values)
    return low_side + (values[i] - values.min() + room) / (np.ptp(values) + 2 * room) * (high_side - low_side)


def box_of(page, selector):
    return page.run(
        f"(() => {{ const b = document.querySelector('{selector}').getBoundingClientRect();"
        "return [b.left, b.top, b.width, b.height]; })()"
    )


@pytest.mark.parametrize("kind", ["report", "trajectory"])
@pytest.mark.parametrize(("width", "dark"), SCREENS)
def test_no_messages_requests_or_overflow(page, request, kind, width, dark):
    report = request.getfixturevalue(kind)
    page.open(report, width, 900, dark)
    assert page.problems == []
    assert [url for url in page.requests if not url.startswith("data:")] == [report.as_uri()]
    assert page.run("document.documentElement.scrollWidth") <= width
    # Nothing sticks out of the page sideways, except inside what scrolls by itself.
    outside = page.run(
        "[...document.querySelectorAll('main *')].filter(e => !e.closest('svg, pre, .wide, [hidden]')"
        " && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(e => e.tagName)"
    )
    assert outside == []


@pytest.mark.parametrize("kind", ["report", "trajectory"])
@pytest.mark.parametrize(("width", "dark"), SCREENS)
def test_contrast_of_text(page, request, kind, width, dark):
    """Contrast of at least 4.5 (WCAG AA) for every element with text, the figures included."""
    page.open(request.getfixturevalue(kind), width, 900, dark)
    worst = page.run("""(() => {
      const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
      const light = (c) => c.slice(0, 3).map((v) => v / 255)
        .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
      const ground = (e) => {
        for (; e; e = e.parentElement) {
          const c = numbers(getComputedStyle(e).backgroundColor);
          if (c.length === 3 || c[3] === 1) return c;
        }
        return [255, 255, 255];
      };
      const found = [];
      for (const e of document.querySelectorAll('body *:not(script):not(style):not(option):not(noscript)')) {
        const words = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
        if (!words || e.closest('noscript, [hidden]')) continue;
        const style = getComputedStyle(e), inside = e.closest('svg');
        const [a, b] = [light(numbers(inside ? style.fill : style.color)), light(ground(inside || e))];
        found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.textContent.slice(0, 40)]);
      }
      return found.sort((p, q) => p[0] - q[0])[0];
    })()""")
    assert worst[0] >= 4.5, worst
    ground = page.run("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground[4:-1].split(","))) < 3 * 128) == dark


def choose(page, *columns):
    """Choose the axes and the colour of the first interactive figure."""
    for name, column in zip(("panel0-x", "panel0-y", "colour"), columns, strict=True):
        page.run(
            f"(() => {{ const s = document.getElementById('{name}'); s.value = {column};"
            "s.dispatchEvent(new Event('change')); })()"
        )


def label_of(page, panel=0):
    return page.run(f"document.getElementById('panel{panel}').getAttribute('aria-label')")


def test_initial_figures(page, report, trajectory):
    page.open(report)
    assert label_of(page).endswith("mode 1 across, mode 2 up, coloured by state.")
    assert "a coordinate with a rather long name across, y up" in label_of(page, 1)
    choose(page, 0, 1, -1)
    assert label_of(page).endswith("coloured by nothing.")
    page.open(trajectory)
    assert "time (ns) across, mode 1 up" in label_of(page, 2)
    assert page.problems == []


def test_pointing_at_a_sample(page, report, X, search):
    page.open(report)
    choose(page, 0, 1, 2)
    page.run("document.getElementById('samples').scrollIntoView()")
    left, top, width, height = box_of(page, "#panel0")
    modes = search.transform(X)
    sample = int(np.argmax(modes[:, 1]))  # alone at its end of the axis
    x = position(modes[:, 0], LEFT, width - RIGHT, sample)
    y = position(modes[:, 1], height - BOTTOM, TOP, sample)
    page.move(left + x, top + y)
    text = page.run("document.getElementById('tip').textContent")
    assert text.splitlines()[:2] == [f"sample {sample}", f"mode 1 = {float(f'{modes[sample, 0]:.4g}'):g}"]
    assert page.run("document.getElementById('tip').hidden") is False
    page.move(left + LEFT + 3, top + TOP + 3)  # an empty corner
    assert page.run("document.getElementById('tip').hidden") is True
    assert page.problems == []


def test_colours_show_the_sign(page, report, X, search):
    page.open(report)
    choose(page, 0, 1, 2)
    modes = search.transform(X)
    _, _, width, height = box_of(page, "#panel0")
    for sample, stronger in ((int(np.argmax(modes[:, 2])), 0), (int(np.argmin(modes[:, 2])), 2)):
        x = position(modes[:, 0], LEFT, width - RIGHT, sample)
        y = position(modes[:, 1], height - BOTTOM, TOP, sample)
        colour = page.run(
            f"[...document.getElementById('panel0').getContext('2d').getImageData({x:.0f}, {y:.0f}, 1, 1).data]"
        )
        assert colour[3] == 255
        assert colour[stronger] == max(colour[:3])  # red above zero, blue below


def test_choosing_axes_by_keyboard(page, report, X, search):
    page.open(report)
    choose(page, 0, 1, 2)
    page.run("document.getElementById('panel0-x').focus()")
    for _ in range(3):
        page.press("ArrowDown")
    assert label_of(page).startswith("400 samples: a coordinate with a rather long name across, mode 2 up")
    # The arrow to the left, with nothing chosen, starts from the right end of the new axis.
    page.run("document.getElementById('panel0').focus()")
    page.press("ArrowLeft")
    order = np.argsort(X[:, 0])
    reading = "document.getElementById('reading').textContent"
    assert page.run(reading).startswith(f"sample {order[-1]}, a coordinate with a rather long name = ")
    page.press("ArrowLeft")
    assert page.run(reading).startswith(f"sample {order[-2]},")
    page.press("ArrowUp")
    modes = search.transform(X)[:, 1]
    above = np.argsort(modes)[np.flatnonzero(np.argsort(modes) == order[-2])[0] + 1]
    assert page.run(reading).startswith(f"sample {above},")
    page.press("Escape")
    assert page.run(reading) == ""
    assert page.problems == []


def region(page, panel, x, y, x_range, y_range):
    """Corners in pixels of a region of values in a figure."""
    left, top, width, height = box_of(page, f"#panel{panel}")
    places = []
    for values, low, high, ends in ((x, LEFT, width - RIGHT, x_range), (y, height - BOTTOM, TOP, y_range)):
        both = np.r_[values.min(), values.max(), ends]
        places.append([position(both, low, high, i) for i in (2, 3)])
    (x0, x1), (y0, y1) = places
    return (left + x0, top + y0), (left + x1, top + y1)


def test_brush_selects_rows_everywhere_and_saves_them(page, report, X, search, tmp_path):
    """Drag a rectangle over the mode plane: the file contains the rows inside, and other figures show them."""
    page.open(report)
    page.run("document.getElementById('samples').scrollIntoView()")
    modes = search.transform(X)
    low, high = np.quantile(modes[:, 0], [0.02, 0.3])
    strip = (modes[:, 0] > low) & (modes[:, 0] < high)
    bottom, top = np.quantile(modes[strip, 1], [0.3, 0.7])
    page.drag(*region(page, 0, modes[:, 0], modes[:, 1], (low, high), (bottom, top)))
    inside = np.flatnonzero(strip & (modes[:, 1] > bottom) & (modes[:, 1] < top))
    page.send("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.run("document.getElementById('save-rows').click()")
    lines = page.downloaded(tmp_path).splitlines()
    assert lines[0] == "row,state,mode 1,mode 2,mode 3,a coordinate with a rather long name,y"
    rows = np.array([int(line.split(",")[0]) for line in lines[1:]])
    # A pixel is about 1/400 of the range, and values have four digits: rows at the border may be in or out.
    assert len(set(rows) ^ set(inside)) <= 0.1 * len(inside)
    np.testing.assert_allclose([float(line.split(",")[2]) for line in lines[1:]], modes[rows, 0], rtol=1e-3)
    text = page.run("document.getElementById('count').textContent")
    assert text == f"{len(rows)} of 400 samples selected."
    assert f"{len(rows)} selected" in label_of(page, 1)
    shown = page.run("[...document.querySelectorAll('#selected-rows tr')].map(r => Number(r.cells[0].textContent))")
    assert shown == rows[:200].tolist()
    # The program selects the same rows of all data.
    names = {"np": np, "model": search, "X": X}
    exec(page.run("document.getElementById('program').textContent"), names)
    assert len(set(names["rows"]) ^ set(rows)) <= 0.1 * len(rows)
    page.run("document.getElementById('panel0').focus()")
    page.press("Escape")
    assert page.run("document.getElementById('selected').hidden") is True
    assert page.problems == []


def test_brushed_samples_stand_out_in_the_other_figures(page, trajectory):
    page.open(trajectory)
    # Colours of the pixels of the figure of time, without and with a selection by state.
    pale = (
        "[...document.getElementById('panel2').getContext('2d').getImageData(70, 20, 400, 120).data]"
        ".filter((v, i) => i % 4 === 3 && v > 0 && v < 90).length"
    )
    before = page.run(pale)
    page.run(
        "(() => { const s = document.getElementById('pick'); s.value = 0; s.dispatchEvent(new Event('change')); })()"
    )
    assert page.run(pale) > 2 * before + 100
    rows = page.run("[...document.querySelectorAll('#selected-rows tr')].map(r => r.cells[1].textContent)")
    assert set(rows) == {"1"}


def test_zoom_by_keyboard_and_selection_by_keyboard(page, report, X, search):
    page.open(report)
    choose(page, 0, 1, -1)
    before = page.run("document.getElementById('panel0').toDataURL()")
    page.run("document.getElementById('panel0').focus()")
    page.press("+")
    assert page.run("document.getElementById('panel0').toDataURL()") != before
    page.press("0")
    assert page.run("document.getElementById('panel0').toDataURL()") == before
    page.press("ArrowRight")
    page.press("Enter")
    first = int(np.argmin(search.transform(X)[:, 0]))
    cell = "document.querySelector('#selected-rows td').textContent"
    assert page.run(cell) == str(first)
    page.press("Enter")
    assert page.run("document.getElementById('selected').hidden") is True


def test_figures_are_files(page, trajectory, tmp_path):
    page.open(trajectory)
    page.send("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.run("document.querySelector('figure .save').click()")
    text = page.downloaded(tmp_path)
    assert text.startswith("<svg")
    assert "var(--" not in text
    assert "currentColor" not in text


@pytest.mark.parametrize("kind", ["report", "trajectory"])
@pytest.mark.parametrize("dark", [False, True])
def test_print(page, request, kind, dark):
    """No page is nearly empty, and points are not stretched."""
    page.open(request.getfixturevalue(kind), dark=dark)
    pages = page.print()
    assert 2 <= len(pages) <= 8
    assert min(pages[:-1]) > 400  # bytes of drawing commands; an empty page has about 100
    page.send("Emulation.setEmulatedMedia", media="print")
    _, _, width, height = box_of(page, "#panel0")
    real = page.run("(c => c.width / c.height)(document.getElementById('panel0'))")
    assert width / height == pytest.approx(real, rel=0.02)
    page.send("Emulation.setEmulatedMedia", media="")


CONTROLS = "'a, select, canvas, summary, pre:not([hidden]), .wide, button, input:checked'"


@pytest.mark.parametrize("width", [1280, 390])
def test_tab_reaches_everything(page, report, width):
    page.open(report, width)
    hidden = "'[hidden], details:not([open]) > :not(summary)'"
    wanted = page.run(f"[...document.querySelectorAll({CONTROLS})].filter(e => !e.closest({hidden})).length")
    reached = []
    for _ in range(wanted + 5):
        page.press("Tab")
        name = page.run(
            "(() => { const e = document.activeElement; if (e === document.body) return null;"
            "e.dataset.seen = 1; const s = getComputedStyle(e);"
            "return [e.tagName, s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0]; })()"
        )
        reached.append(name)
    assert page.run("document.querySelectorAll('[data-seen]').length") == wanted
    assert all(visible for _, visible in filter(None, reached))
    page.run("document.querySelector('summary').focus()")
    page.press("Enter")
    assert page.run("document.querySelector('details').open") is True


def test_resizing_and_changing_the_scheme(page, report):
    page.open(report)
    before = page.run("document.getElementById('panel0').toDataURL()")
    page.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    page.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    dark = page.run("document.getElementById('panel0').toDataURL()")
    assert dark != before
    page.send("Emulation.setDeviceMetricsOverride", width=500, height=900, deviceScaleFactor=2, mobile=False)
    page.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    width = box_of(page, "#panel0")[2]
    assert page.run("document.getElementById('panel0').width") == round(2 * width)
