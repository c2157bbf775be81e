"""The browser that the tests of the page share."""

import os

import pytest
from chromium import Page, browser


@pytest.fixture(scope="session")
def page(tmp_path_factory):
    executable = browser()
    if executable is None:
        reason = "no Chromium found: `make browser` installs it, or set KDMAPS_BROWSER to one"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    tab = Page(executable, tmp_path_factory.mktemp("chromium"))
    yield tab
    tab.close()
