"""Merging: which response decides about a page, what waits for confirmation, and what is worth writing."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.evidence.dates import CLOCK_SKEW_SECONDS, w3c_from_timestamp
from sitemap_middleware.evidence.delisting_confirmation import CONFIRMATION_SECONDS
from sitemap_middleware.evidence.generated_dates import GENERATED_DATE_SECONDS, is_credible
from sitemap_middleware.evidence.lastmod import lastmod
from sitemap_middleware.evidence.merge import REFRESH_SECONDS, is_worth_writing, merge, merge_batch
from sitemap_middleware.evidence.observations import MAX_DELAY_SECONDS, HtmlFacts, Observation, at_merge
from sitemap_middleware.evidence.page_verdict import is_listable, page_verdict
from sitemap_middleware.evidence.site_signals import SiteSignals
from sitemap_middleware.evidence.value_history import VOLATILE, last_change
from sitemap_middleware.models import Page

from ...support.observed_pages import signals_of

NOW = 1_750_000_000
HOUR = 3600
DAY = 24 * HOUR
DOUBTFUL = [301, 302, 303, 307, 308, 401, 402, 403, 405, 451, 204]


def good(at: int = NOW, **more: Any) -> Observation:
    return Observation("/page", "/page", at, 200, "text/html", **more)


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
    return page_verdict(page_of(*observations), now=NOW).listed


# Which observation decides


def test_latest_evidence_decides_in_any_order() -> None:
    page, gone = good(), answer(NOW + 10, 404)
    assert page_of(page, gone).status == page_of(gone, page).status == 404
    assert page_of(gone, page).first_seen == NOW


@pytest.mark.parametrize("status", [400, 406, 412, 414, 416, 421, 422, 431])
def test_client_error_counts_only_if_nothing_better_was_seen(status: int) -> None:
    assert not is_listed(answer(NOW, status))
    assert is_listed(good(NOW - 10), answer(NOW, status))
    assert is_listed(answer(NOW, status), good(NOW - 10))


observations = st.builds(
    answer,
    st.integers(NOW, NOW + 10 * DAY),
    st.sampled_from([200, 200, 302, 404]),
    media_type=st.sampled_from(["text/html", "text/html", "application/json", ""]),
    refusal=st.sampled_from(["", "", "its X-Robots-Tag says noindex"]),
    expires_at=st.none() | st.integers(NOW, NOW + 20 * DAY),
    last_modified=st.none() | st.sampled_from([NOW - 100 * DAY, NOW - DAY, NOW, NOW + 9 * DAY]),
    is_probe=st.just(value=True),  # what visitors are answered may have to be confirmed, in the order of time
    html=st.none()
    | st.builds(
        HtmlFacts,
        st.sampled_from([1, 2, 3, 4, VOLATILE, None]),
        st.booleans(),
        instant_refresh=st.sampled_from([None, "/elsewhere"]),
        expires_at=st.none() | st.integers(NOW, NOW + 20 * DAY),
        unread_reason=st.sampled_from(["", "is large"]),
        stated_date=st.sampled_from([None, None, "2024-05-01", "2025-06-15", w3c_from_timestamp(NOW)]),
        has_head=st.just(value=True),
    ),
)
of_distinct_times = st.lists(observations, min_size=1, unique_by=lambda seen: seen.at)


@given(of_distinct_times, st.randoms(use_true_random=False))
def test_observations_shuffled_and_doubled_come_to_the_same_page(
    history: list[Observation], order: random.Random
) -> None:
    shuffled = history + order.sample(history, len(history) // 2)
    order.shuffle(shuffled)
    pages = []
    for seen in (history, shuffled):
        page = None
        for observation in seen:
            page = merge(page, observation)
        pages.append(page)
    assert pages[0] == pages[1]


@given(of_distinct_times, st.integers(NOW, NOW + 30 * DAY))
def test_a_page_is_never_listed_against_its_last_evidence(history: list[Observation], now: int) -> None:
    page = page_of(*history)
    last = max(history, key=lambda seen: seen.at)
    forbids = last.status != 200 or last.media_type != "text/html" or last.refusal
    if forbids or (last.expires_at is not None and last.expires_at <= now):
        assert not page_verdict(page, now=now).listed


@given(st.lists(observations), observations)
def test_the_headers_of_a_response_add_nothing_to_its_sample(history: list[Observation], sample: Observation) -> None:
    page = None
    for observation in history:
        page = merge(page, observation)
    assert merge(merge(page, sample._replace(html=None)), sample) == merge(page, sample)


def test_html_that_was_not_read_keeps_what_it_said_before() -> None:
    page = page_of(good(html=HtmlFacts(1, noindex=True)), good(NOW + DAY))
    assert page_verdict(page).reason == "its robots meta tag says noindex"
    unread = HtmlFacts(None, unread_reason="is compressed", has_head=False)
    assert page_of(good(html=HtmlFacts(1, noindex=True)), good(NOW + DAY, html=unread)).html_refusal
    assert page_of(good(html=unread)).unread_reason == "is compressed"


def test_late_visit_shows_that_two_contents_overlapped() -> None:
    """Of two workers, one still has the old template, and sends it a second after the other sent the new one."""
    sights = [good(NOW + minute * 60, html=HtmlFacts(content)) for minute, content in ((0, 1), (1, 1), (2, 2), (30, 2))]
    assert last_change(page_of(*sights).content_history) == (NOW + 60, NOW + 120)
    assert last_change(page_of(*sights, good(NOW + 29 * 60, html=HtmlFacts(1))).content_history) is None


# Answers that may concern one visitor only


@pytest.mark.parametrize("status", DOUBTFUL)
@pytest.mark.parametrize(("later", "confirms"), [(59, False), (60, True), (86_400, True)])
def test_the_same_kind_of_answer_confirms_after_a_minute(status: int, later: int, *, confirms: bool) -> None:
    page = page_of(good(), answer(NOW + 10, status))
    verdict = page_verdict(page)
    assert verdict.listed
    assert f"an answer of {status} at 2025-06-15T15:06:50Z waits for confirmation" in verdict.reason
    page = page_of(good(), answer(NOW + 10, status), answer(NOW + 10 + later, status))
    assert page_verdict(page).listed is not confirms
    assert is_listable(page) is not confirms
    assert page_verdict(merge(page, good(NOW + 20 + later))).listed, "a good answer lists it again at once"


MINUTE = CONFIRMATION_SECONDS


@pytest.mark.parametrize(
    ("seen", "listed"),
    [
        ([good(), answer(NOW + 10, 200, media_type="application/json")], True),
        ([good(), answer(NOW + 10), good(NOW + 20), answer(NOW + 10 + MINUTE)], True),
        ([good(), *(answer(NOW + MINUTE * at, status) for at, status in enumerate((302, 403, 405, 204), 1))], True),
        ([good(), *(answer(NOW + MINUTE * at, status) for at, status in enumerate((302, 403, 302), 1))], False),
        ([good(), *(answer(NOW + second, 302) for second in range(10, 99))], False),
        ([good(), answer(NOW + 10, 404)], False),
        ([good(), answer(NOW + 10, 410)], False),
        ([good(), answer(NOW + 10, 403, is_probe=True)], False),
        ([good(learned=True), answer(NOW + 10, 403, learned=True, denies_access=True)], False),
        ([good(), answer(NOW + 10, 403, denies_access=True)], True),
        ([good(), answer(NOW + 10, 404, is_unusual=True)], True),
        ([answer(NOW)], False),
        ([answer(NOW), good(NOW + 10)], True),
        ([answer(NOW, 404), answer(NOW + 10)], False),
        ([good(NOW + 60), answer(NOW), answer(NOW + 70)], True),
    ],
)
def test_one_visitors_answer_delists_no_good_page(seen: list[Observation], *, listed: bool) -> None:
    assert is_listed(*seen) is listed


def test_page_of_an_included_type_stays_listed_whoever_visits() -> None:
    """Such a type needs no confirmation, although search engines do not index it."""
    plain = good()._replace(media_type="text/plain", listed_types=frozenset({"text/plain"}))
    page = page_of(plain, plain._replace(at=NOW + HOUR))
    assert page_verdict(page, {"text/plain"}, NOW + HOUR).listed


def test_contradicted_good_pages_are_to_be_probed_once() -> None:
    known: dict[str, Page] = {}

    def conflicts(observation: Observation) -> list[str]:
        merged = merge_batch(known, [observation])
        known.update(merged.pages)
        return merged.conflicting_paths

    assert conflicts(answer(NOW - 10)) == []
    assert conflicts(good()) == []
    assert conflicts(answer(NOW + 10)) == ["/page"]
    assert conflicts(answer(NOW + 11)) == []
    assert conflicts(answer(NOW + 10 + MINUTE)) == ["/page"]
    assert conflicts(good(NOW + 200)) == []
    assert conflicts(answer(NOW + 210, is_probe=True)) == []
    assert conflicts(answer(NOW + 220)) == []


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize(
    "said",
    [
        {"status": 404},
        {"status": 410},
        {"refusal": "its X-Robots-Tag says noindex"},
        {"html": HtmlFacts(1, noindex=True)},
        {"html": HtmlFacts(1, canonical="https://example.com/other")},
        {"status": 403, "denies_access": True},
    ],
)
def test_good_page_that_was_contradicted_needs_a_probe(said: dict[str, Any], *, learned: bool) -> None:
    """Some apps answer so to one odd request."""
    before = page_of(good(learned=learned))
    contrary = good(NOW + 10, learned=learned)._replace(**said)
    merged = merge_batch({"/page": before}, [contrary])
    assert merged.conflicting_paths == ["/page"]
    assert merge_batch(merged.pages, [contrary._replace(at=NOW + 20)]).conflicting_paths == []
    assert merge_batch({}, [contrary]).conflicting_paths == []


# What is worth writing


def test_unchanged_page_is_written_once_per_interval() -> None:
    page = page_of(good())
    assert page_of(good(), good(NOW + REFRESH_SECONDS - 1)) == page
    later = page_of(good(), good(NOW + REFRESH_SECONDS))
    assert later.last_seen == NOW + REFRESH_SECONDS
    assert page_of(good(), good(NOW + REFRESH_SECONDS), good(NOW + 5)) == later


@pytest.mark.parametrize(
    "change",
    [
        {"status": 404},
        {"media_type": "application/pdf"},
        {"refusal": "its Cache-Control says private"},
        {"expires_at": NOW + DAY},
        {"last_modified": NOW - DAY},
        {"route": "/{page}"},
        {"learned": True},
    ],
)
def test_new_statements_are_written_at_once(change: dict[str, object]) -> None:
    before = good(), good(NOW + 1)
    after = page_of(*before, good(NOW + 60)._replace(**change))
    assert {name: getattr(after, name) for name in change} == change
    assert page_of(*before, good(NOW + 60)._replace(**change), good(NOW + 120)).last_seen == NOW + 120


def test_content_read_again_is_written_although_its_response_was_just_merged() -> None:
    at = NOW + REFRESH_SECONDS
    page = page_of(good(html=HtmlFacts(7)), good(at), good(at, html=HtmlFacts(7)))
    assert page.content_history[0].last == at


@pytest.mark.parametrize("age", [0, 1, 30, 59])
@pytest.mark.parametrize("interval", [1, 5, 20, 59, 61, 600])
def test_dates_of_a_new_page_are_credible_after_a_minute(age: int, interval: int) -> None:
    """Every worker relies on the store, which is not written for each request."""
    times = range(NOW, NOW + 2 * GENERATED_DATE_SECONDS + 2 * interval, interval)
    html = HtmlFacts(1, stated_date=w3c_from_timestamp(NOW - age))
    page = page_of(*(good(at, last_modified=NOW - age, html=html) for at in times))
    assert is_credible(page.last_modified_history, NOW - age)
    assert is_credible(page.stated_date_history, NOW - age)


# Clocks


@pytest.mark.parametrize("ahead", [CLOCK_SKEW_SECONDS + 1, HOUR, DAY, 400 * DAY])
@pytest.mark.parametrize(
    "false",
    [
        {"status": 404},
        {"refusal": "its X-Robots-Tag says noindex"},
        {"media_type": "application/json", "is_probe": True},
        {"html": HtmlFacts(2, noindex=True)},
    ],
)
def test_evidence_from_the_future_loses_to_the_next_visit(ahead: int, false: dict[str, object]) -> None:
    frozen = page_of(good(NOW - DAY, html=HtmlFacts(1)), good(NOW + ahead)._replace(**false))
    assert not page_verdict(frozen).listed
    healed = merge_batch({"/page": frozen}, [good(html=HtmlFacts(1))], NOW).pages["/page"]
    assert page_verdict(healed).listed
    assert (healed.last_seen, healed.read_at) == (NOW, NOW)
    assert max(run.last for run in healed.content_history) <= NOW
    kept = page_of(good(NOW + ahead, html=HtmlFacts(1)))
    gone = merge_batch({"/page": kept}, [answer(NOW, 404)], NOW).pages["/page"]
    assert (gone.status, gone.first_seen, gone.last_seen, gone.content_history) == (404, NOW, NOW, ())


@pytest.mark.parametrize("delay", [-60, 0, 3 * HOUR, MAX_DELAY_SECONDS])
def test_observation_saved_within_hours_keeps_its_dates_and_is_never_later_than_now(delay: int) -> None:
    seen = good(NOW - delay, last_modified=NOW - DAY, html=HtmlFacts(1))
    assert at_merge(seen, NOW) == seen._replace(at=min(seen.at, NOW))


@pytest.mark.parametrize("html", [HtmlFacts(1, noindex=True, stated_date="2025-01-01"), None])
def test_observation_dated_long_before_it_is_saved_decides_but_dates_nothing(html: HtmlFacts | None) -> None:
    seen = good(NOW - MAX_DELAY_SECONDS - 1, last_modified=NOW - DAY, refusal="its X-Robots-Tag says noindex")
    page = page_of(at_merge(seen._replace(html=html), NOW))
    assert (page.last_modified_history, page.content_history, page.stated_date_history) == ((), (), ())
    assert (page.refusal, bool(page.html_refusal)) == (seen.refusal, html is not None)


@pytest.mark.parametrize("behind", [7 * HOUR, DAY, 150 * DAY])
def test_edit_that_a_slow_clock_saw_is_dated_by_the_others(behind: int) -> None:
    """By its own time, it saw the new content before the others saw the old one: both would seem to alternate."""
    edited, seen = NOW + 10 * DAY, []
    for at in range(NOW, NOW + 20 * DAY, 5 * HOUR):
        slow = edited <= at < edited + 2 * DAY and at // HOUR % 2
        html = HtmlFacts(2 if at >= edited else 1)
        seen.append(at_merge(good(at - (behind if slow else 0), html=html), at))
    page = page_of(*seen)
    date = lastmod(None, page, None, signals_of([page]), NOW + 20 * DAY).text
    assert date is not None
    assert "2025-06-25T" < date < "2025-06-26T"


def test_page_that_varies_between_probes_is_not_dated() -> None:
    steady = [good(NOW + hour * HOUR, html=HtmlFacts(hour // 3)) for hour in range(6)]
    assert lastmod(None, page_of(*steady), None, SiteSignals(), NOW + DAY).text is not None
    moved = page_of(*steady, good(NOW + 6 * HOUR, html=HtmlFacts(VOLATILE)))
    assert lastmod(None, moved, None, SiteSignals(), NOW + DAY).text is None
