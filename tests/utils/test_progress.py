"""Progress with and without rich."""

import sys

import pytest

from kdmaps.utils import progress


@pytest.fixture
def without_rich(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich", None)


@pytest.mark.parametrize("show", [False, True])
def test_items_pass_through_a_bar(show, capsys):
    assert list(progress.track(iter("abc"), 3, lambda: "label", show)) == ["a", "b", "c"]
    assert capsys.readouterr().out == ""  # stdout is for results


def test_lines_where_there_is_no_bar(without_rich, monkeypatch, capsys):
    """Items that take two seconds each: a line once five seconds have passed since the last one."""
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    now, seen = 0.0, []
    for item in progress.track(iter("abcdefg"), 7, lambda: f"best {seen[-1]}", True):
        seen.append(item)
        now += 2.0
    assert seen == list("abcdefg")
    # After c, at 6 s, and after f, at 12 s.
    assert capsys.readouterr().err == "kdmaps: 3/7, best c\nkdmaps: 6/7, best f\n"


def test_a_quick_run_is_silent(without_rich, capsys):
    assert list(progress.track(iter("abc"), 3, lambda: "label", True)) == ["a", "b", "c"]
    assert capsys.readouterr().err == ""
