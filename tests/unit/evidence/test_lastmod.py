"""lastmod: each date and each reason for none, on sites that mislead: migrations, clocks, copied files."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.evidence.dates import EARLIEST_DATE_SECONDS, w3c_from_timestamp
from sitemap_middleware.evidence.lastmod import lastmod
from sitemap_middleware.evidence.merge import is_worth_writing, merge
from sitemap_middleware.evidence.observations import Observation
from sitemap_middleware.evidence.site_signals import SiteSignals, site_signals
from sitemap_middleware.evidence.value_history import VOLATILE
from sitemap_middleware.models import Page

NOW = 1_750_000_000
HOUR = 3600
DAY = 24 * HOUR
EVERYWHERE = SiteSignals()
STATED = "the date that the page states"
NO_DATE = "it has no date, and no change of its content was observed"


def seen(at: int, path: str = "/", **more: Any) -> Observation:
    return Observation(path, path, at, 200, "text/html", is_read=True, **more)


def merged(*observations: Observation) -> Page:
    page = None
    for observation in observations:
        page = merge(page, observation)
    assert page is not None
    return page


def page_of(path: str, *sights: tuple[int, int | None], content: int = 1) -> Page:
    """A page that was seen at these times, each with this Last-Modified."""
    return merged(*(seen(at, path, last_modified=modified, digest=content) for at, modified in sights))


def read_at(path: str, *sights: tuple[int, int]) -> Page:
    """A page that was read at these times, each with this content."""
    return merged(*(seen(at, path, digest=content) for at, content in sights))


def stating(text: str) -> Page:
    """A page that was seen a while ago, and still, to state this date."""
    return merged(*(seen(at, digest=1, stated_date=text) for at in (NOW - 30 * DAY, NOW - DAY)))


def dates(pages: list[Page], now: int) -> dict[str, str | None]:
    around = site_signals(pages)
    return {page.path: lastmod(None, page, None, around, now).text for page in pages}


DEPLOYED = NOW - 40 * DAY
ODD = 12_345
"""Seconds that no clock lags behind."""


@pytest.mark.parametrize(
    ("page", "file", "text", "source"),
    [
        (None, None, None, NO_DATE),
        (page_of("/", (NOW, None)), None, None, NO_DATE),
        (None, EARLIEST_DATE_SECONDS, w3c_from_timestamp(EARLIEST_DATE_SECONDS), "the file's modification time"),
        (None, EARLIEST_DATE_SECONDS - 1, None, "the file's modification time cannot be true"),
        (None, NOW, w3c_from_timestamp(NOW), "the file's modification time"),
        (None, NOW + 1, None, "the file's modification time cannot be true"),
        (None, DEPLOYED, None, "the file's modification time is that of a deployment or of an installed package"),
        (page_of("/", (NOW, NOW - ODD)), NOW - ODD, None, "Last-Modified is too new to tell it from a deployment's"),
        (
            page_of("/", *((NOW - days * DAY, NOW - 20 * DAY - ODD) for days in (3, 2))),
            None,
            w3c_from_timestamp(NOW - 20 * DAY - ODD),
            "Last-Modified",
        ),
        (
            page_of("/", (NOW, NOW)),
            None,
            None,
            "its Last-Modified is the time of the response, or has not stayed the same long enough",
        ),
        (
            page_of("/", (NOW - 2 * DAY, DEPLOYED)),
            None,
            None,
            "Last-Modified is that of a deployment or of an installed package",
        ),
        (stating("2025-05-10T10:00:00Z"), None, "2025-05-10T10:00:00Z", STATED),
        (stating("2025-05-10"), None, "2025-05-10", STATED),
        (stating(w3c_from_timestamp(EARLIEST_DATE_SECONDS)), None, w3c_from_timestamp(EARLIEST_DATE_SECONDS), STATED),
        (stating("2199-05-10"), None, None, f"{STATED} cannot be true"),
        (stating("1980-05-10"), None, None, f"{STATED} cannot be true"),
        (
            merged(seen(NOW, digest=1, stated_date=w3c_from_timestamp(NOW))),
            None,
            None,
            f"{STATED} is that of the response, or has not stayed the same long enough",
        ),
        (
            merged(*(seen(NOW + later, digest=1, stated_date=w3c_from_timestamp(NOW - ODD)) for later in (0, 99))),
            None,
            None,
            f"{STATED} is too new to tell it from a deployment's",
        ),
        (stating(w3c_from_timestamp(DEPLOYED)), None, None, "most pages state the same date"),
    ],
)
def test_each_date_and_each_reason_for_none_is_explained(
    page: Page | None, file: int | None, text: str | None, source: str
) -> None:
    around = SiteSignals(deployments=((DEPLOYED, DEPLOYED),), until=NOW - DAY)
    assert lastmod(None, page, file, around, NOW)[:2] == (text, source)


# Sites that mislead


@pytest.mark.parametrize("minutes", [0, 10])
@pytest.mark.parametrize("share", [0.6, 1])
def test_files_that_are_copied_again_date_nothing(share: float, minutes: int) -> None:
    """However long the copying takes, and whether a part of them keeps its old times."""
    first, second = NOW - 10 * DAY, NOW + 30 * DAY
    pages = []
    for which in range(40):
        late = second + which * minutes * 60 // 40
        copied = which < share * 40
        sights = [(at, late if copied and at > late else first + which % 7) for at in range(NOW, NOW + 60 * DAY, DAY)]
        pages.append(page_of(f"/{which}", *sights))
    assert not any(dates(pages, NOW + 60 * DAY).values())


CLOCKS = {
    "now": lambda at: at,
    "half a minute ago": lambda at: at - 30,
    "an hour ago": lambda at: at - HOUR,
    "a week ago": lambda at: at - 7 * DAY,
    "this minute": lambda at: at // 60 * 60,
    "a quarter of an hour, rounded": lambda at: at // 900 * 900,
    "the hour before": lambda at: at // HOUR * HOUR - HOUR,
    "midnight": lambda at: at // DAY * DAY,
    "midnight in New York": lambda at: (at - 5 * HOUR) // DAY * DAY + 5 * HOUR,
    "midnight in Kathmandu": lambda at: (at + 20_700) // DAY * DAY - 20_700,
    "yesterday": lambda at: at // DAY * DAY - DAY,
}
"""What servers make up for their answers, by the time of the answer."""

KINDS = ("Last-Modified", "stated moment", "stated day")
"""How an answer bears a date."""


def answer(kind: str, at: int, value: int, content: int) -> Observation:
    """An answer at this time that bears this date and has this content."""
    if kind == "Last-Modified":
        return seen(at, last_modified=value, digest=content)
    return seen(at, digest=content, stated_date=w3c_from_timestamp(value)[: 10 if kind == "stated day" else None])


def found_over_time(kind: str, every: int, value: Callable[[int], int], content: Callable[[int], int]) -> list[str]:
    """Each lastmod that a page has over ten days, in which it is seen at such intervals, and a few seconds later."""
    chance, texts, page = random.Random(f"{kind} {every}"), [], None
    for start in range(NOW, NOW + 10 * DAY, every):
        at = start + chance.randrange(every // 2)
        for later in (0, chance.choice([0, 3, 90])):
            after = merge(page, answer(kind, at + later, value(at + later), content(at + later)))
            page = after if page is None or is_worth_writing(page, after) else page
            text = lastmod(None, page, None, EVERYWHERE, at + later).text
            if text is not None and text not in texts:
                texts.append(text)
    return texts


@pytest.mark.slow
@pytest.mark.parametrize("every", [1200, 7 * HOUR, DAY])
@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("kind", KINDS)
def test_generated_last_modified_is_not_a_date(kind: str, clock: str, every: int) -> None:
    """A day long past is told from an honest one only once it moved twice."""
    texts = found_over_time(kind, every, CLOCKS[clock], lambda _: 1)
    assert len(texts) <= (2 if (kind, clock) == ("stated day", "a week ago") else 0)


@pytest.mark.parametrize("name", ["its Last-Modified", STATED])
def test_date_that_moves_twice_without_content_is_not_a_date(name: str) -> None:
    kind = "stated moment" if name == STATED else "Last-Modified"
    moves = [(NOW + day * DAY, NOW + day * DAY - 5 * HOUR - 7 * day) for day in range(0, 8, 2)]
    sights = [answer(kind, at + later, value, 1) for at, value in moves for later in (0, 36 * HOUR)]
    result = lastmod(None, merged(*sights), None, EVERYWHERE, NOW + 9 * DAY)
    assert result[:2] == (None, f"{name} changes while its content stays the same")
    once = lastmod(None, merged(*sights[:4]), None, EVERYWHERE, NOW + 9 * DAY)
    assert once.text == w3c_from_timestamp(moves[1][1])
    deployed = SiteSignals(deployments=((moves[1][1], moves[2][1]),))
    assert lastmod(None, merged(*sights), None, deployed, NOW + 9 * DAY).text == w3c_from_timestamp(moves[-1][1])


def test_dates_of_two_servers_that_take_turns_are_none() -> None:
    sights = [answer("Last-Modified", NOW + hour * HOUR, NOW - (3 + hour % 2) * DAY, 1) for hour in range(5)]
    result = lastmod(None, merged(*sights), None, EVERYWHERE, NOW + DAY)
    assert result[:2] == (None, "its Last-Modified changes while its content stays the same")


@given(
    st.lists(st.tuples(st.integers(-DAY, DAY), st.integers(-DAY, DAY), st.integers(0, 3)), min_size=1, max_size=12),
    st.integers(-DAY, DAY),
    st.none() | st.sampled_from(["2025-06-15", "2025-06-15T15:00:00Z", "2025-06-16T01:00:00Z", "2031-01-01"]),
)
def test_no_lastmod_is_later_than_now(sights: list[tuple[int, int, int]], after: int, stated: str | None) -> None:
    page = merged(
        *(
            seen(NOW + at, last_modified=NOW + modified, digest=content, stated_date=stated)
            for at, modified, content in sights
        )
    )
    now = NOW + after
    for around in (EVERYWHERE, site_signals([page])):
        text = lastmod(None, page, None, around, now).text
        assert text is None or text <= w3c_from_timestamp(now)


# Observed changes of content

OTHERS = [read_at(f"/{which}", (NOW, which), (NOW + HOUR, which)) for which in range(10, 13)]


@pytest.mark.parametrize(
    ("sights", "reason"),
    [
        (
            ((NOW, 1), (NOW + HOUR, 1), (NOW + 2 * HOUR, 2)),
            "its content changed, and the new one was read only once so far",
        ),
        (
            ((NOW, 1), (NOW + HOUR, 2), (NOW + HOUR + 9, 2)),
            "its content changed, and the one before was read only once",
        ),
        (((NOW, 1), (NOW + HOUR, 1), (NOW + 2 * HOUR, VOLATILE)), "its content differs from one request to the next"),
        (((NOW, 1), (NOW + HOUR, 2), (NOW + 2 * HOUR, 1), (NOW + 3 * HOUR, 2)), "its contents alternate"),
        (
            ((NOW, 1), (NOW + HOUR, 1), (NOW + 2 * HOUR, 2), (NOW + 3 * HOUR, 2)),
            (
                "its content changed at 2025-06-15T17:06:40Z; it is dated once other pages have been read since, to"
                " tell an edit from a template change"
            ),
        ),
    ],
)
def test_a_change_that_gives_no_date_is_explained(sights: tuple[tuple[int, int], ...], reason: str) -> None:
    page = read_at("/", *sights)
    assert lastmod(None, page, None, site_signals([page, *OTHERS]), NOW + DAY)[:2] == (None, reason)


@pytest.mark.parametrize(("apart", "text"), [(DAY, w3c_from_timestamp(NOW + HOUR + DAY)), (DAY + 1, "2025-06-16")])
def test_change_between_distant_visits_is_dated_by_its_day(apart: int, text: str) -> None:
    changed = NOW + HOUR + apart
    page = read_at("/", (NOW, 1), (NOW + HOUR, 1), (changed, 2), (changed + HOUR, 2))
    assert lastmod(None, page, None, EVERYWHERE, NOW + 9 * DAY)[:2] == (text, "an observed change of its content")
    assert lastmod(None, page, None, EVERYWHERE, changed - 1).source == (
        "the observed change of its content is in the future, by a clock that was wrong"
    )
    around = SiteSignals(until=changed - 1)
    assert lastmod(None, page, None, around, NOW + 9 * DAY).source == (
        "the observed change of its content is too new to tell it from a deployment's"
    )
