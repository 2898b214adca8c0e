"""Merging: which response decides about a page, and what is worth writing."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.evidence.dates import w3c_from_timestamp
from sitemap_middleware.evidence.lastmod import lastmod
from sitemap_middleware.evidence.merge import is_worth_writing, merge
from sitemap_middleware.evidence.observations import INDEXABLE_TYPES, MAX_DELAY_SECONDS, Observation, at_merge
from sitemap_middleware.evidence.page_verdict import page_verdict
from sitemap_middleware.evidence.site_signals import site_signals
from sitemap_middleware.evidence.value_history import GENERATED_DATE_SECONDS, VOLATILE, is_credible
from sitemap_middleware.models import Page

NOW = 1_750_000_000
HOUR = 3600
DAY = 24 * HOUR
NOINDEX = "its robots meta tag says noindex"


def good(at: int = NOW, **more: Any) -> Observation:
    """A good answer; with its digest, if its HTML was read."""
    return Observation("/page", "/page", at, 200, "text/html", **{"is_read": "digest" in more} | more)


def answer(at: int, status: int = 302, **more: Any) -> Observation:
    return Observation("/page", "/page", at, status, more.pop("media_type", "text/html"), **more)


def page_of(*observations: Observation) -> Page:
    """What is stored of a page after these observations, one by one."""
    page: Page | None = None
    for observation in observations:
        merged = merge(page, observation)
        page = merged if page is None or is_worth_writing(page, merged) else page
    assert page is not None
    return page


def is_listed(*observations: Observation) -> bool:
    return page_verdict(page_of(*observations), INDEXABLE_TYPES, NOW).listed


# Which observation decides


observations = st.builds(
    answer,
    st.integers(NOW, NOW + 10 * DAY),
    st.sampled_from([200, 200, 302, 404]),
    media_type=st.sampled_from(["text/html", "text/html", "application/json", ""]),
    refusal=st.sampled_from(["", "", NOINDEX]),
    expires_at=st.none() | st.integers(NOW, NOW + 20 * DAY),
    last_modified=st.none() | st.sampled_from([NOW - 100 * DAY, NOW - DAY, NOW, NOW + 9 * DAY]),
    is_probe=st.just(value=True),  # what visitors are answered may have to be confirmed, in the order of time
    is_read=st.booleans(),
    digest=st.sampled_from([1, 2, 3, 4, VOLATILE, None]),
    unread_reason=st.sampled_from(["", "is large"]),
    stated_date=st.sampled_from([None, None, "2024-05-01", "2025-06-15", w3c_from_timestamp(NOW)]),
)
of_distinct_times = st.lists(observations, min_size=1, unique_by=lambda seen: seen.at)


@given(of_distinct_times, st.randoms(use_true_random=False))
def test_observations_shuffled_and_doubled_come_to_the_same_page(
    history: list[Observation], order: random.Random
) -> None:
    """But for refusals: one that arrives late stands until the page is read again."""
    history = [seen._replace(refusal="", expires_at=None, unread_reason="") for seen in history]
    shuffled = history + order.sample(history, len(history) // 2)
    order.shuffle(shuffled)
    pages = []
    for seen in (history, shuffled):
        page = None
        for observation in seen:
            page = merge(page, observation)
        pages.append(page)
    assert pages[0] == pages[1]


@given(of_distinct_times, st.randoms(use_true_random=False), st.integers(NOW, NOW + 30 * DAY))
def test_a_page_is_never_listed_against_its_last_evidence(
    history: list[Observation], order: random.Random, now: int
) -> None:
    last = max(history, key=lambda seen: seen.at)
    order.shuffle(history)
    page = page_of(*history)
    forbids = last.status != 200 or last.media_type != "text/html" or last.refusal
    if forbids or (last.expires_at is not None and last.expires_at <= now):
        assert not page_verdict(page, INDEXABLE_TYPES, now).listed


def test_what_html_said_stands_until_it_is_read_again() -> None:
    noindex = good(digest=1, refusal=NOINDEX, expires_at=NOW + DAY)
    page = page_of(noindex, good(NOW + HOUR))
    assert page_verdict(page, INDEXABLE_TYPES, NOW).reason == NOINDEX
    assert page.expires_at == NOW + DAY
    assert page_of(noindex, answer(NOW + HOUR, 404), good(NOW + DAY)).refusal == NOINDEX
    compressed = good(NOW + DAY, unread_reason="is compressed")
    assert page_of(compressed).unread_reason == "is compressed"
    assert not is_listed(noindex, good(NOW + HOUR), good(NOW + HOUR - 9, digest=1, refusal=NOINDEX))
    assert is_listed(noindex, good(NOW + HOUR), good(NOW + HOUR, digest=1))
    assert is_listed(good(refusal=NOINDEX), good(NOW + HOUR)), "its headers said so"


# What is worth writing, and worth a request


@pytest.mark.parametrize("age", [0, 59])
@pytest.mark.parametrize("interval", [1, 20, 59, 61, 600])
def test_dates_of_a_new_page_are_credible_after_a_minute(age: int, interval: int) -> None:
    """Every worker relies on the store, which is not written for each request."""
    times = range(NOW, NOW + 2 * GENERATED_DATE_SECONDS + 2 * interval, interval)
    stated = w3c_from_timestamp(NOW - age)
    page = page_of(*(good(at, last_modified=NOW - age, digest=1, stated_date=stated) for at in times))
    assert is_credible(page.last_modified_history, NOW - age)
    assert is_credible(page.stated_date_history, NOW - age)


# Clocks


def test_observation_dated_long_before_it_is_saved_decides_but_dates_nothing() -> None:
    seen = good(NOW - MAX_DELAY_SECONDS - 1, last_modified=NOW - DAY, digest=1, stated_date="2025-01-01")
    page = page_of(at_merge(seen._replace(refusal=NOINDEX), NOW))
    assert (page.last_modified_history, page.content_history, page.stated_date_history) == ((), (), ())
    assert page.refusal == NOINDEX


@pytest.mark.parametrize("behind", [7 * HOUR, 150 * DAY])
def test_edit_that_a_slow_clock_saw_is_dated_by_the_others(behind: int) -> None:
    """By its own time, it saw the new content before the others saw the old one: both would seem to alternate."""
    edited, seen = NOW + 10 * DAY, []
    for at in range(NOW, NOW + 20 * DAY, 5 * HOUR):
        slow = edited <= at < edited + 2 * DAY and at // HOUR % 2
        digest = 2 if at >= edited else 1
        seen.append(at_merge(good(at - (behind if slow else 0), digest=digest), at))
    page = page_of(*seen)
    date = lastmod(None, page, None, site_signals([page]), NOW + 20 * DAY).text
    assert date is not None
    assert "2025-06-25T" < date < "2025-06-26T"
