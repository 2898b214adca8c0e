"""What is told of the history of a page: events in order, and when it went."""

from __future__ import annotations

from sitemap_middleware.evidence.page_verdict import page_events
from sitemap_middleware.evidence.value_history import VOLATILE, History, Run
from sitemap_middleware.models import Page

DAY = 24 * 60 * 60
START = 20_000 * DAY
"""2024-10-04."""


def page(**facts: object) -> Page:
    known = Page("/menu", "/menu", START, START + 9 * DAY, 200, "text/html")
    return known._replace(**facts)


def runs(*values: tuple[int, int, int]) -> History:
    return tuple(Run(value, START + first * DAY, START + last * DAY) for value, first, last in values)


def test_events_are_told_with_their_times_the_latest_first() -> None:
    known = page(
        content_history=runs((7, 0, 1), (VOLATILE, 2, 2), (8, 3, 3)),
        last_modified_history=runs((START - DAY, 4, 5)),
        stated_date_history=runs((START - 2 * DAY, 6, 6)),
        unconfirmed_at=START + 8 * DAY,
        unconfirmed_status=403,
    )
    events = page_events(known, START + 9 * DAY, lambda at: f"<{(at - START) / DAY:g}>")
    assert [f"{(event.at - START) / DAY:g} {event.text}" for event in events] == [
        "9 no longer listed, at this time or before",
        "9 latest evidence: it answered 200",
        "8 an answer of 403, not yet confirmed",
        "6 stated date <-2> was seen once",
        "4 Last-Modified <-1> was first seen, and last at <5>",
        "3 content 3 was seen once",
        "2 content that varies was seen once",
        "0 content 1 was first seen, and last at <1>",
        "0 first seen",
    ]
