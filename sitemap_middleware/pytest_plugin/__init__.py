"""The pytest plugin: the fixture `sitemap_of`, by which tests of an app read its sitemap.

pytest imports this module in every run, so it imports nothing else before the fixture is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

    from .sitemap_in_test import SitemapInTest, SitemapOf

_LATEST: Final = pytest.StashKey["SitemapInTest"]()
"""The sitemap that a test has read last, until its last report: it keeps the app alive."""


@pytest.fixture
def sitemap_of(request: pytest.FixtureRequest) -> SitemapOf:
    """A function that reads the sitemap of an app. If the test fails, its report shows the last one.

    ``assert "/about" in sitemap_of(app)``
    """
    from .sitemap_in_test import read_sitemap

    def read(app: Any, *, base_url: str | None = None) -> SitemapInTest:
        request.node.stash[_LATEST] = latest = read_sitemap(app, base_url=base_url)
        return latest

    return read


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """Add to the report of a failed test which pages its sitemap lists, and why others are not listed."""
    outcome = yield
    report: pytest.TestReport = outcome.get_result()
    latest = item.stash.get(_LATEST, None)
    if latest is None:
        return
    if report.failed:
        report.sections.append(("sitemap", repr(latest)))
    if report.when == "teardown":
        del item.stash[_LATEST]
