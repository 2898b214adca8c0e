"""Observations: what a response still shows if it reaches the store late, or by a clock that is wrong."""

from __future__ import annotations

import pytest

from sitemap_middleware.evidence.lastmod import lastmod
from sitemap_middleware.evidence.merge import merge_if_changed
from sitemap_middleware.evidence.observations import MAX_DELAY_SECONDS, HtmlFacts, Observation, at_merge
from sitemap_middleware.evidence.page_verdict import page_verdict
from sitemap_middleware.models import Page

from ...support.observed_pages import signals_of

HOUR = 3600
DAY = 24 * HOUR
NOW = 1_750_000_000


def seen(at: int, digest: int | None = 1) -> Observation:
    """A page as one answer shows it."""
    html = None if digest is None else HtmlFacts(digest, noindex=True, stated_date="2025-01-01")
    return Observation("/page", "/page", at, 200, "text/html", last_modified=at - DAY, html=html)


@pytest.mark.parametrize("delay", [-60, 0, 3 * HOUR, MAX_DELAY_SECONDS])
def test_observation_saved_within_hours_keeps_its_dates(delay: int) -> None:
    observation = seen(NOW - delay)
    assert at_merge(observation, NOW) == observation._replace(merged_at=NOW)


@pytest.mark.parametrize("delay", [MAX_DELAY_SECONDS + 1, 150 * DAY])
def test_observation_dated_long_before_it_is_saved_decides_but_dates_nothing(delay: int) -> None:
    observation = at_merge(seen(NOW - delay), NOW)
    assert (observation.merged_at, observation.last_modified) == (NOW, None)
    assert observation.html == HtmlFacts(None, noindex=True)
    page = merge_if_changed(None, observation)
    assert (page.last_modified_history, page.content_history, page.stated_date_history) == ((), (), ())
    assert not page_verdict(page).listed


def test_late_observation_without_html_dates_nothing() -> None:
    assert at_merge(seen(NOW - DAY, None), NOW) == seen(NOW - DAY, None)._replace(merged_at=NOW, last_modified=None)


@pytest.mark.parametrize("behind", [7 * HOUR, DAY, 150 * DAY])
def test_edit_that_a_slow_clock_saw_is_dated_by_the_others(behind: int) -> None:
    """By its own time, it saw the new content before the others saw the old one: both would seem to alternate."""
    page: Page | None = None
    edited = NOW + 10 * DAY
    for at in range(NOW, NOW + 20 * DAY, 5 * HOUR):
        slow = edited <= at < edited + 2 * DAY and at // HOUR % 2
        observation = Observation("/page", "/page", at - (behind if slow else 0), 200, "text/html")
        html = HtmlFacts(2 if at >= edited else 1)
        page = merge_if_changed(page, at_merge(observation._replace(html=html), at))
    assert page is not None
    now = NOW + 20 * DAY
    date = lastmod(None, page, None, signals_of([page], now=now), now).text
    assert date is not None
    assert "2025-06-25T" < date < "2025-06-26T"
