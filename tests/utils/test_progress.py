"""Progress in a log file and on a terminal."""

import re
import sys
import time

import pytest
import rich.console

from kdmaps.utils import progress


@pytest.fixture
def often(monkeypatch):
    """A line every few milliseconds instead of every ten seconds."""
    monkeypatch.setattr(progress, "LINE_EVERY", 0.005)


@pytest.fixture
def until(capsys):
    """Return a function that waits until stderr shows a text, and returns all of it."""
    seen = ""

    def wait(text):
        nonlocal seen
        end = time.monotonic() + 30
        while text not in seen and time.monotonic() < end:
            time.sleep(0.001)
            seen += capsys.readouterr().err
        assert text in seen
        return seen

    return wait


@pytest.mark.parametrize("show", [False, True])
def test_track_yields_all_items(show, capsys):
    assert list(progress.track(iter("abc"), 3, lambda: "label", show)) == ["a", "b", "c"]
    assert capsys.readouterr() == ("", "")  # stdout is for results, and a quick run is silent in a log


def test_log_lines_show_the_stage(often, until):
    with progress.reporting(True):
        for item in progress.track(iter("ab"), 2, lambda: "search", True):
            until("search, 0/2" if item == "a" else "search, 1/2")
        with progress.stage("error bars", True):
            lines = until("error bars").splitlines()
    assert all(re.fullmatch(r"kdmaps: \d+ s, (search, \d/2|error bars)", line) for line in lines)
    assert progress._log is None


def test_nested_stages_share_one_log(often, monkeypatch):
    made = []
    monkeypatch.setattr(progress, "_Log", lambda make=progress._Log: made.append(make()) or made[-1])
    with progress.reporting(True), progress.stage("outer", True):
        assert list(progress.track("ab", 2, lambda: "inner", True)) == ["a", "b"]
    assert len(made) == 1
    assert not made[0]._thread.is_alive()


def test_bars_need_rich_and_a_terminal(monkeypatch):
    assert not progress._has_bars()
    monkeypatch.setattr(rich.console.Console, "is_terminal", True)
    assert progress._has_bars()
    monkeypatch.setitem(sys.modules, "rich", None)
    assert not progress._has_bars()
