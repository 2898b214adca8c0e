"""What is told of the history of a page: events in order, and when it went."""

from __future__ import annotations

import pytest

from sitemap_middleware.evidence.page_verdict import dropped_between, page_events
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


def lines(known: Page, dropped: int | None = None) -> list[str]:
    return [f"{(event.at - START) / DAY:g} {event.text}" for event in page_events(known, dropped)]


def test_the_latest_event_is_first_and_the_first_sight_last() -> None:
    known = page(content_history=runs((7, 0, 3), (8, 4, 9)))
    assert lines(known) == [
        "9 latest evidence: it answered 200",
        "4 content 2 was first seen, and last at 2024-10-13T00:00:00Z",
        "0 content 1 was first seen, and last at 2024-10-07T00:00:00Z",
        "0 first seen",
    ]


def test_events_of_one_moment_are_in_the_order_of_their_causes() -> None:
    known = page(last_seen=START, content_history=runs((7, 0, 0)))
    assert lines(known, dropped=START) == [
        "0 no longer listed, at this time or before",
        "0 latest evidence: it answered 200",
        "0 content 1 was seen once",
        "0 first seen",
    ]


def test_each_content_has_a_number_and_varying_content_has_none() -> None:
    known = page(content_history=runs((7, 0, 1), (VOLATILE, 2, 2), (8, 3, 3)))
    assert lines(known)[1:3] == ["3 content 3 was seen once", "2 content that varies was seen once"]


def test_dates_are_named_with_what_they_are_of() -> None:
    known = page(last_modified_history=runs((START - DAY, 0, 2)), stated_date_history=runs((START - 2 * DAY, 1, 1)))
    assert lines(known)[1:3] == [
        "1 stated date 2024-10-02T00:00:00Z was seen once",
        "0 Last-Modified 2024-10-03T00:00:00Z was first seen, and last at 2024-10-06T00:00:00Z",
    ]


@pytest.mark.parametrize(("status", "name"), [(403, "an answer of 403"), (200, "an answer of another media type")])
def test_an_answer_that_waits_for_confirmation_is_named(status: int, name: str) -> None:
    known = page(unconfirmed_at=START + 5 * DAY, unconfirmed_status=status)
    assert f"5 {name}, not yet confirmed" in lines(known)


def test_times_are_written_as_asked() -> None:
    known = page(content_history=runs((7, 0, 1)))
    assert (
        page_events(known, None, lambda at: f"<{at}>")[1].text
        == f"content 1 was first seen, and last at <{START + DAY}>"
    )


@pytest.mark.parametrize(
    ("facts", "between"),
    [
        ({"status": 404, "content_history": runs((7, 0, 3))}, (3, 9)),
        ({"status": 404}, None),
        ({"content_history": runs((7, 0, 3))}, None),
        ({"expires_at": START + 8 * DAY}, (9, 8)),
    ],
    ids=["gone", "never good", "still good", "expired"],
)
def test_when_a_page_went(facts: dict[str, object], between: tuple[int, int] | None) -> None:
    found = dropped_between(page(**facts), {"text/html"}, START + 12 * DAY)
    assert found == (None if between is None else tuple(START + day * DAY for day in between))
