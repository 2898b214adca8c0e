"""Pages without what a worker saw whose clock was ahead."""

from __future__ import annotations

import pytest

from sitemap_middleware.dates import CLOCK_SKEW_SECONDS
from sitemap_middleware.evidence.observation_merge import merge
from sitemap_middleware.evidence.observations import HtmlFacts, Observation
from sitemap_middleware.evidence.page_as_of import page_as_of
from sitemap_middleware.models import Page
from sitemap_middleware.value_history import Run

NOW = 1_750_000_020
DAY = 24 * 3600


def seen(path: str, *sights: tuple[int, int, int]) -> Page:
    """A page that was seen at these times, each with this Last-Modified and this content."""
    page = None
    for at, last_modified, content in sights:
        html = HtmlFacts(content, stated_date="2025-06-01")
        page = merge(page, Observation(path, "/<x>", at, 200, "text/html", last_modified=last_modified, html=html))
    assert page is not None
    return page


@pytest.mark.parametrize("ahead", [0, CLOCK_SKEW_SECONDS, CLOCK_SKEW_SECONDS + 1])
def test_a_page_has_no_dates_from_the_future(ahead: int) -> None:
    known = page_as_of(seen("/a", (NOW, NOW - DAY, 7), (NOW + ahead, NOW + 1, 7)), NOW)
    if ahead > CLOCK_SKEW_SECONDS:
        assert (known.last_modified, known.stated_date) == (NOW - DAY, None)
    else:
        assert (known.last_modified, known.stated_date) == (NOW + 1, "2025-06-01"), "clocks differ a little"
    assert all(run.last <= NOW for run in (*known.last_modified_history, *known.content_history))


def test_what_was_seen_later_is_left_out_and_the_page_stays() -> None:
    page = seen("/a", (NOW, NOW - DAY, 1), (NOW + 9 * DAY, NOW + 8 * DAY, 1))
    assert page_as_of(page, NOW + 9 * DAY) is page
    then = page_as_of(page, NOW + DAY)
    assert (then.last_modified, then.last_modified_history) == (NOW - DAY, (Run(NOW - DAY, NOW, NOW),))
    assert then.content_history == (Run(1, NOW, NOW + DAY),)
    assert page_as_of(page, NOW - DAY).last_modified is None
    read = page_as_of(page._replace(last_seen=NOW), NOW + DAY)
    assert (read.last_modified, read.stated_date) == (NOW + 8 * DAY, None)
