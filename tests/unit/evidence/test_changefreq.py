"""changefreq="auto": the word for the median gap of five or more changes."""

from __future__ import annotations

import pytest

from sitemap_middleware.evidence.lastmod import changefreq
from sitemap_middleware.evidence.site_signals import SiteSignals
from sitemap_middleware.evidence.value_history import VOLATILE, Run
from sitemap_middleware.models import Page

HOUR = 3600
DAY = 24 * HOUR


def changed(*gaps: int) -> Page:
    """A page whose content changed after each of these times."""
    at, runs = 0, [Run(0, 0, 1)]
    for number, gap in enumerate(gaps, 1):
        at += gap
        runs.append(Run(number, at, at + 1))
    return Page("/a", "/a", 0, at, 200, content_history=tuple(runs))


@pytest.mark.parametrize(
    ("gap", "word"),
    [
        (HOUR, "hourly"),
        (DAY, "daily"),
        (7 * DAY, "weekly"),
        (30 * DAY, "monthly"),
        (365 * DAY, "yearly"),
        (9 * 365 * DAY, None),
    ],
)
def test_the_word_is_that_of_the_median_gap(gap: int, word: str | None) -> None:
    assert changefreq(changed(gap, gap, gap, 99 * gap, 1), SiteSignals()).word == word


def test_few_changes_and_content_that_varies_have_no_word() -> None:
    assert changefreq(changed(*[DAY] * 4), SiteSignals()).word is None
    page = changed(*[DAY] * 6)
    volatile = page._replace(content_history=(*page.content_history, Run(VOLATILE, 0, 9 * DAY)))
    assert changefreq(volatile, SiteSignals()).word is None
    assert changefreq(None, SiteSignals()).source == "fewer than 5 changes of its own were observed"
