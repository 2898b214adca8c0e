"""The rules of evidence, as pure functions: which responses count, and what follows from a page's responses."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta, timezone
from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.dates import (
    CLOCK_SKEW_SECONDS,
    EARLIEST_DATE_SECONDS,
    parse_last_modified,
    timestamp_of_w3c,
    w3c,
    w3c_from_timestamp,
)
from sitemap_middleware.evidence import generated_dates
from sitemap_middleware.evidence.delisting_confirmation import (
    CONFIRMATION_SECONDS,
    answer_kind,
    confirmed_contradiction,
)
from sitemap_middleware.evidence.generated_dates import GENERATED_DATE_SECONDS
from sitemap_middleware.evidence.lastmod import lastmod
from sitemap_middleware.evidence.merge import REFRESH_SECONDS, merge, merge_if_changed
from sitemap_middleware.evidence.observations import INDEXABLE_TYPES, HtmlFacts, Observation
from sitemap_middleware.evidence.page_verdict import is_listable, page_verdict
from sitemap_middleware.evidence.response_headers import canonical_links
from sitemap_middleware.evidence.response_parser import ResponseParser
from sitemap_middleware.evidence.robots_directives import parse_robots
from sitemap_middleware.evidence.site_signals import SiteSignals, changed_since
from sitemap_middleware.http.captured_response import CapturedResponse
from sitemap_middleware.models import Page, Site, UnconfirmedAnswer
from sitemap_middleware.value_history import VOLATILE, last_change, significant

from ...support.observed_pages import signals_of

NOW = 1_750_000_000
HOUR = 3600
DAY = 24 * HOUR
SITE = Site("https", "example.com")
LOC = "https://example.com/page"


def response(*headers: tuple[str, str], status: int = 200) -> CapturedResponse:
    return CapturedResponse(SITE, "/page", at=NOW, status=status, headers=[("content-type", "text/html"), *headers])


def reading(*headers: tuple[str, str], status: int = 200) -> Observation | None:
    return ResponseParser().parse(response(*headers, status=status), "/page", "/page", LOC)


def seen(at: int = NOW, last_modified: int | None = None, **more: object) -> Observation:
    return Observation("/page", "/page", at, 200, "text/html", last_modified=last_modified, **more)  # type: ignore[arg-type]


def page_of(*observations: Observation) -> Page:
    page = None
    for observation in observations:
        page = merge_if_changed(page, observation)
    assert page is not None
    return page


def credible(page: Page) -> bool:
    """Whether the Last-Modified of a page is credible."""
    return page.last_modified is not None and generated_dates.is_credible(
        page.last_modified_history, page.last_modified
    )


# read


@pytest.mark.parametrize("status", [200, 204, 301, 302, 303, 307, 308, 401, 403, 404, 405, 410, 451])
def test_status_of_the_page_itself_is_evidence(status: int) -> None:
    observation = reading(status=status)
    assert observation is not None
    assert observation.status == status


@pytest.mark.parametrize("status", [100, 304, 408, 425, 429, 500, 502, 503, 504])
def test_transient_status_is_not_evidence(status: int) -> None:
    assert reading(status=status) is None


@pytest.mark.parametrize("status", [400, 406, 412, 414, 416, 421, 422, 431])
def test_client_error_counts_only_if_nothing_better_was_seen(status: int) -> None:
    odd = reading(status=status)
    assert odd is not None
    assert not page_verdict(page_of(odd)).listed
    good = seen(NOW - 10)._replace(path="/page")
    for order in ([good, odd], [odd, good]):
        assert page_verdict(page_of(*order)).listed


@pytest.mark.parametrize(
    ("location", "is_evidence"),
    [
        ("http://example.com/page", False),
        ("https://www.example.com/page", False),
        ("/page", False),
        ("https://example.com/p%61ge", False),
        ("/page/", True),
        ("/login", True),
        ("/page?next=1", True),
        ("", True),
        ("http://[broken", True),
    ],
)
def test_redirect_to_the_same_path_elsewhere_is_not_evidence(location: str, *, is_evidence: bool) -> None:
    assert (reading(("location", location), status=301) is not None) is is_evidence


@pytest.mark.parametrize(
    ("value", "forbids"),
    [
        ("noindex", True),
        ("NoIndex, nofollow", True),
        ("none", True),
        ("nofollow", False),
        ("index, follow", False),
        ("googlebot: noindex", True),
        ("bingbot: none", True),
        ("otherbot: noindex", False),
        ("otherbot: noindex, nofollow", False),
        ("otherbot: noindex, googlebot: noindex", True),
        ("unavailable_after: 25 Jun 2010 15:00:00 PST, noindex", True),
        ("unavailable_after: 25 Jun 2010 15:00:00 PST", False),
        ("max-snippet: -1, noindex", True),
        ("noindexing", False),
        ("", False),
    ],
)
def test_robots_directives_count_for_search_engines_only(value: str, *, forbids: bool) -> None:
    assert parse_robots([value], agents=True).noindex is forbids


def test_a_second_x_robots_tag_counts_as_much_as_the_first() -> None:
    observation = reading(("x-robots-tag", "nofollow"), ("x-robots-tag", "noindex"))
    assert observation is not None
    assert observation.noindex


@pytest.mark.parametrize(
    ("value", "targets"),
    [
        ('<https://example.com/a>; rel="canonical"', ["https://example.com/a"]),
        ("<https://example.com/a>; rel=canonical", ["https://example.com/a"]),
        ('<https://example.com/a>; REL="Canonical nofollow"', ["https://example.com/a"]),
        ('<https://example.com/a?b,c>; title="x, y; z"; rel="canonical"', ["https://example.com/a?b,c"]),
        ('</a.css>; rel=preload, </b>; rel="canonical"', ["/b"]),
        ("</a.css>; rel=preload", []),
        ("canonical", []),
        ("", []),
    ],
)
def test_canonical_links_of_a_link_header(value: str, targets: list[str]) -> None:
    assert [target for target, _ in canonical_links(value)] == targets


@pytest.mark.parametrize(
    ("parameters", "anchor"),
    [
        ("rel=canonical", None),
        ('rel=canonical; anchor="/a b"', "/a b"),
        ("rel=canonical; ANCHOR = /a", "/a"),
        ("anchor=/a; rel=canonical", "/a"),
        ('rel=canonical; anchor=""', ""),
    ],
)
def test_a_canonical_link_is_of_its_anchor(parameters: str, anchor: str | None) -> None:
    assert [of for _, of in canonical_links(f"</b>; {parameters}")] == [anchor]


@pytest.mark.parametrize(
    "field",
    [(), ("x-robots-tag",), ("x-robots-tag", "noindex", "more"), ("x-robots-tag", 7), (None, "noindex")],
    ids=repr,
)
def test_malformed_headers_are_ignored_and_others_are_read(field: Any) -> None:
    """An app may put anything among its headers: what servers make of it is their matter."""
    observation = reading(field, ("cache-control", "private"))
    assert observation is not None
    assert (observation.noindex, observation.private) == (False, True)


@pytest.mark.parametrize(
    ("target", "elsewhere"),
    [
        ("https://example.com/page", False),
        ("/page", False),
        ("https://EXAMPLE.com:443/p%61ge", False),
        ("https://example.com/other", True),
        ("https://www.example.com/page", False),
        ("http://example.com/page", False),
        ("https://example.com/page?x=1", True),
        ("https://exämple.com/page", True),
        ("https://[broken/page", False),
    ],
)
def test_canonical_url_of_another_page_is_stored(target: str, *, elsewhere: bool) -> None:
    observation = reading(("link", f'<{target}>; rel="canonical"'))
    assert observation is not None
    assert observation.canonical == (target if elsewhere else None)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["Tue, 14 Nov 2023 22:13:20 GMT"], 1_700_000_000),
        (["Tuesday, 14-Nov-23 22:13:20 GMT"], 1_700_000_000),
        (["Tue Nov 14 22:13:20 2023"], 1_700_000_000),
        ([" Tue, 14 Nov 2023 22:13:20 GMT "], 1_700_000_000),
        (["Tue, 14 Nov 2023 22:13:20 GMT"] * 2, 1_700_000_000),
        (["Tue, 14 Nov 2023 22:13:20 GMT", "Wed, 15 Nov 2023 22:13:20 GMT"], None),
        ([], None),
        ([""], None),
        (["yesterday"], None),
        (["Thu, 01 Jan 1970 00:00:00 GMT"], None),
        (["Sat, 01 Jan 0000 00:00:00 GMT"], None),
        (["Fri, 31 Dec 9999 23:59:59 GMT"], None),
        (["Fri, 99 Foo 2023 99:99:99 GMT"], None),
        (["\x00\xff\xfe"], None),
        ([formatdate(EARLIEST_DATE_SECONDS, usegmt=True)], EARLIEST_DATE_SECONDS),
        ([formatdate(EARLIEST_DATE_SECONDS - 1, usegmt=True)], None),
        ([formatdate(NOW + CLOCK_SKEW_SECONDS, usegmt=True)], NOW + CLOCK_SKEW_SECONDS),
        ([formatdate(NOW + CLOCK_SKEW_SECONDS + 1, usegmt=True)], None),
        ([f"{formatdate(NOW, usegmt=True):<100}"], NOW),
        ([f"{formatdate(NOW, usegmt=True):<101}"], None),
    ],
)
def test_a_last_modified_is_plausible_or_nothing(values: list[str], expected: int | None) -> None:
    assert parse_last_modified(values, NOW) == expected


@given(st.lists(st.text(), max_size=3))
def test_no_last_modified_raises(values: list[str]) -> None:
    moment = parse_last_modified(values, NOW)
    assert moment is None or EARLIEST_DATE_SECONDS <= moment <= NOW + CLOCK_SKEW_SECONDS


# Merging


def test_first_content_is_not_a_change() -> None:
    page = merge_if_changed(None, seen())
    assert (page.first_seen, page.last_seen, page.last_modified) == (NOW, NOW, None)


def test_latest_evidence_decides_in_any_order() -> None:
    good, bad = seen(NOW), seen(NOW + 10)._replace(status=404)
    assert page_of(good, bad).status == page_of(bad, good).status == 404
    assert page_of(bad, good).first_seen == NOW


@pytest.mark.parametrize(
    "forbidding",
    [
        {"status": 404},
        {"noindex": True},
        {"private": True},
        {"obstacle": "asks to be downloaded"},
        {"canonical": "https://example.com/other"},
        {"expires_at": NOW},
        {"media_type": "text/plain", "is_probe": True},
    ],
)
def test_stricter_answer_of_one_second_decides(forbidding: dict[str, object]) -> None:
    good, bad = seen(NOW), seen(NOW)._replace(**forbidding)
    assert page_of(good, bad) == page_of(bad, good)
    assert not page_verdict(page_of(good, bad), now=NOW).listed


def test_old_observation_without_news_leaves_the_page_alone() -> None:
    page = page_of(seen(NOW), seen(NOW + REFRESH_SECONDS))
    assert merge_if_changed(page, seen(NOW + 5)) is page


def test_unchanged_page_is_the_same_object_within_the_refresh_interval() -> None:
    page = page_of(seen(NOW))
    assert merge_if_changed(page, seen(NOW + REFRESH_SECONDS - 1)) is page
    assert merge_if_changed(page, seen(NOW + REFRESH_SECONDS)).last_seen == NOW + REFRESH_SECONDS


@pytest.mark.parametrize(
    "change",
    [
        {"status": 404},
        {"media_type": "application/pdf"},
        {"noindex": True},
        {"private": True},
        {"obstacle": "asks to be downloaded"},
        {"expires_at": NOW + DAY},
        {"canonical": "https://example.com/other"},
        {"last_modified": NOW - DAY},
        {"route": "/{page}"},
        {"learned": True},
    ],
)
def test_new_statements_are_written_at_once(change: dict[str, object]) -> None:
    before = page_of(seen(NOW), seen(NOW + 1))
    after = merge_if_changed(before, seen(NOW + 60)._replace(**change))
    assert after is not before
    assert {name: getattr(after, name) for name in change} == change
    assert merge_if_changed(after, seen(NOW + 120)).last_seen == NOW + 120, (
        "and what it says as before is written down again"
    )


def test_content_read_again_is_written_although_its_response_was_just_merged() -> None:
    first = page_of(seen(NOW, html=HtmlFacts(7)))
    bare = merge_if_changed(first, seen(NOW + REFRESH_SECONDS))
    assert (
        merge_if_changed(bare, seen(NOW + REFRESH_SECONDS, html=HtmlFacts(7))).content_history[0].last
        == NOW + REFRESH_SECONDS
    )


observations = st.builds(
    Observation,
    path=st.just("/page"),
    route=st.just("/page"),
    at=st.integers(NOW, NOW + 10 * DAY),
    status=st.sampled_from([200, 302, 404]),
    media_type=st.sampled_from(["text/html", "application/json", ""]),
    noindex=st.booleans(),
    private=st.booleans(),
    obstacle=st.sampled_from(["", "asks to be downloaded"]),
    expires_at=st.none() | st.integers(NOW, NOW + 20 * DAY),
    canonical=st.none() | st.just("https://example.com/other"),
    last_modified=st.none() | st.sampled_from([NOW - 100 * DAY, NOW - DAY, NOW, NOW + 9 * DAY]),
    html=st.none(),
    learned=st.just(False),
    may_be_provided=st.just(False),
    merged_at=st.just(0),
    fraction=st.sampled_from([0, 100, 255]),
    listed_types=st.just(INDEXABLE_TYPES),
)
read = st.builds(
    Observation._replace,
    observations,
    html=st.none()
    | st.builds(
        HtmlFacts,
        st.sampled_from([1, 2, 3, 4, VOLATILE, None]),
        st.booleans(),
        instant_refresh=st.sampled_from([None, "/elsewhere"]),
        expires_at=st.none() | st.integers(NOW, NOW + 20 * DAY),
        without_path=st.integers(0, 2),
        unread_reason=st.sampled_from(["", "is large"]),
        stated_date=st.sampled_from(
            [None, None, "2024-05-01", "2025-06-15", w3c_from_timestamp(NOW), w3c_from_timestamp(NOW + 60)]
        ),
    )
    | st.builds(
        HtmlFacts, st.none(), unread_reason=st.sampled_from(["is compressed", "is cut"]), has_head=st.just(False)
    ),
)


@given(st.lists(read, min_size=1), st.randoms(use_true_random=False))
def test_observations_shuffled_and_doubled_come_to_the_same_page(
    history: list[Observation], order: random.Random
) -> None:
    shuffled = history + order.sample(history, len(history) // 2)
    order.shuffle(shuffled)
    pages = []
    for observations in (history, shuffled):
        page = None
        for observation in observations:
            page = merge(page, observation)
        pages.append(page)
    assert pages[0] == pages[1]


@given(st.lists(read), read)
def test_the_headers_of_a_response_add_nothing_to_its_sample(history: list[Observation], sample: Observation) -> None:
    page = None
    for observation in history:
        page = merge(page, observation)
    assert merge(merge(page, sample._replace(html=None)), sample) == merge(page, sample)


def test_late_visit_shows_that_two_contents_overlapped() -> None:
    """Of two workers, one still has the old template, and sends it a second after the other sent the new one."""
    sights = [seen(NOW + minute * 60, html=HtmlFacts(content)) for minute, content in ((0, 1), (1, 1), (2, 2), (30, 2))]
    assert last_change(page_of(*sights).content_history) == (NOW + 60, NOW + 120)
    assert last_change(page_of(*sights, seen(NOW + 29 * 60, html=HtmlFacts(1))).content_history) is None


alike = st.builds(
    seen,
    at=st.integers(NOW, NOW + 2 * REFRESH_SECONDS),
    last_modified=st.sampled_from([None, NOW - DAY, NOW - 1, NOW // DAY * DAY, NOW // HOUR * HOUR]),
    html=st.none()
    | st.builds(
        HtmlFacts,
        st.sampled_from([1, 1, 1, 2, VOLATILE]),
        stated_date=st.sampled_from([None, "2025-06-15", w3c_from_timestamp(NOW - 1)]),
    ),
)


@given(
    st.lists(st.builds(lambda visit, hour: visit._replace(at=NOW + hour * REFRESH_SECONDS), alike, st.integers(0, 12)))
)
def test_visits_an_interval_apart_are_written_alike_in_any_order(
    history: list[Observation],
) -> None:
    stored = ordered = None
    for observation in history:
        stored = merge_if_changed(stored, observation)
    for observation in sorted(history, key=lambda visit: visit.at):
        ordered = merge(ordered, observation)
    assert stored == ordered


@given(st.lists(read | alike))
def test_page_is_written_for_news_and_once_per_refresh_interval(
    history: list[Observation],
) -> None:
    """What comes late, and shows that a value was there besides those seen since, is news, too."""

    def news(page: Page) -> tuple[object, ...]:
        stable = page._replace(
            last_seen=0,
            read_at=0,
            last_seen_fraction=0,
            read_fraction=0,
            last_modified_history=(),
            content_history=(),
            stated_date_history=(),
            unconfirmed_answers=(),
            is_unconfirmed=False,
        )
        return (
            stable,
            significant(page.last_modified_history),
            significant(page.content_history),
            significant(page.stated_date_history),
            credible(page),
            believed(page),
            waits(page),
        )

    def believed(page: Page) -> bool:
        return page.stated_date is not None and generated_dates.is_credible(
            page.stated_date_history, timestamp_of_w3c(page.stated_date)
        )

    def waits(page: Page) -> object:
        if page.status != 200 or page.is_unconfirmed or page.media_type != "text/html":
            return None
        if confirmed_contradiction(page):
            return "confirmed"
        return {(answer_kind(answer.status), answer.at // CONFIRMATION_SECONDS) for answer in page.unconfirmed_answers}

    page = None
    for observation in history:
        new, before = merge(page, observation), page
        page = merge_if_changed(page, observation)
        if before is None:
            assert page == new
            continue
        due = new.last_seen - before.last_seen >= REFRESH_SECONDS or new.read_at - before.read_at >= REFRESH_SECONDS
        late = (new.last_seen == before.last_seen and new.last_modified_history != before.last_modified_history) or (
            new.read_at == before.read_at
            and (new.content_history != before.content_history or new.stated_date_history != before.stated_date_history)
        )
        if due or late or news(new) != news(before):
            assert page == new
        else:
            assert page is before


@given(st.lists(read, min_size=1), st.data())
def test_three_workers_merge_to_the_same_page_in_any_order(history: list[Observation], data: st.DataObject) -> None:
    workers: list[list[Observation]] = [[], [], []]
    for observation in history:
        workers[data.draw(st.integers(0, 2))].append(observation)
    page = None
    while any(workers):
        worker = data.draw(st.sampled_from([worker for worker in workers if worker]))
        for _ in range(data.draw(st.integers(1, 2))):
            page = merge(page, worker[0])
        del worker[0]
    ordered = None
    for observation in sorted(history, key=lambda visit: visit.at):
        ordered = merge(ordered, observation)
    assert page == ordered


@pytest.mark.parametrize("age", [0, 1, 30, 59])
@pytest.mark.parametrize("interval", [1, 5, 20, 59, 61, 600])
def test_last_modified_of_a_new_page_is_credible_after_a_minute(age: int, interval: int) -> None:
    """Every worker relies on the store, which is not written for each request."""
    created = NOW - age
    page = None
    for at in range(NOW, NOW + 2 * GENERATED_DATE_SECONDS + 2 * interval, interval):
        page = merge_if_changed(page, seen(at, last_modified=created, html=HtmlFacts(1)))
        if at >= NOW + GENERATED_DATE_SECONDS:
            assert credible(page)


@pytest.mark.parametrize("interval", [1, 20, 61])
def test_stated_date_of_a_new_page_is_credible_after_a_minute(interval: int) -> None:
    page = None
    for at in range(NOW, NOW + 2 * GENERATED_DATE_SECONDS + 2 * interval, interval):
        page = merge_if_changed(page, seen(at, html=HtmlFacts(1, stated_date=w3c_from_timestamp(NOW - 1))))
        if at >= NOW + GENERATED_DATE_SECONDS:
            assert generated_dates.is_credible(page.stated_date_history, NOW - 1)


AHEAD_BY = [CLOCK_SKEW_SECONDS + 1, 3600, DAY, 400 * DAY]
"""Seconds."""


@pytest.mark.parametrize("ahead", AHEAD_BY)
@pytest.mark.parametrize(
    "false",
    [
        {"status": 404},
        {"noindex": True},
        {"private": True},
        {"canonical": "https://example.com/other"},
        {"media_type": "application/json", "is_probe": True},
        {"html": HtmlFacts(2, noindex=True)},
        {"html": HtmlFacts(2, canonical="https://example.com/other")},
    ],
)
def test_evidence_from_the_future_loses_to_the_next_visit(ahead: int, false: dict[str, object]) -> None:
    before = merge_if_changed(None, seen(NOW - DAY, html=HtmlFacts(1)))
    frozen = merge_if_changed(before, seen(NOW + ahead)._replace(**false))
    assert not page_verdict(frozen).listed
    visit = seen(NOW, html=HtmlFacts(1))._replace(merged_at=NOW)
    healed = merge_if_changed(frozen, visit)
    assert page_verdict(healed).listed
    assert (healed.last_seen, healed.read_at) == (NOW, NOW)
    assert max(run.last for run in healed.content_history) <= NOW


@pytest.mark.parametrize("ahead", AHEAD_BY)
def test_page_kept_by_a_future_visit_is_dropped_by_the_next_404(ahead: int) -> None:
    before = merge_if_changed(
        None, seen(NOW + ahead, last_modified=NOW + ahead - GENERATED_DATE_SECONDS, html=HtmlFacts(1))
    )
    gone = merge_if_changed(before, seen(NOW)._replace(status=404, merged_at=NOW))
    assert not page_verdict(gone).listed
    assert (gone.first_seen, gone.last_seen, gone.last_modified_history, gone.content_history) == (NOW, NOW, (), ())


@pytest.mark.parametrize("ahead", AHEAD_BY)
def test_late_report_of_an_earlier_visit_changes_nothing(ahead: int) -> None:
    """The clock that was ahead saw a redirect, which waits for confirmation: what decides is of the true time."""
    page = page_of(seen(NOW)._replace(noindex=True), seen(NOW + ahead)._replace(status=302))
    late = merge_if_changed(page, seen(NOW - 60)._replace(merged_at=NOW + 5))
    assert (late.last_seen, late.noindex) == (NOW, True)


@given(st.lists(read | alike), st.integers(0, 20 * DAY))
def test_evidence_from_the_future_is_removed_at_the_next_visit(history: list[Observation], later: int) -> None:
    page = None
    for observation in history:
        page = merge_if_changed(page, observation)
    now = NOW + later
    seen_now = merge_if_changed(page, seen(now, html=HtmlFacts(9))._replace(merged_at=now))
    assert (
        max(seen_now.last_seen, seen_now.read_at, *(run.last for run in seen_now.content_history))
        <= now + CLOCK_SKEW_SECONDS
    )
    if page is None or max(page.last_seen, page.read_at, *(answer.at for answer in page.unconfirmed_answers)) <= now:
        assert seen_now == merge_if_changed(page, seen(now, html=HtmlFacts(9)))


contents = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 60 * DAY)), min_size=1, max_size=20)


@given(st.lists(contents, min_size=1, max_size=8))
def test_change_is_dated_neither_in_the_future_nor_before_its_first_sign(
    site: list[list[tuple[int, int]]],
) -> None:
    pages = []
    for number, sights in enumerate(site):
        page = None
        for content, at in sights:
            page = merge(page, seen(NOW + at, html=HtmlFacts(content + 100 * number))._replace(path=f"/{number}"))
        assert page is not None
        pages.append(page)
    now = max(page.read_at for page in pages)
    around = signals_of(pages)
    for page in pages:
        text = lastmod(None, page, None, around, now).text
        if text is not None:
            second = sorted(run.first for run in page.content_history)[1]
            assert w3c_from_timestamp(second)[: len(text)] <= text <= w3c_from_timestamp(now)


def alike(count: int, route: str = "/<slug>", **more: Any) -> list[Page]:
    """So many pages of one route that say, and bear, the same."""
    template = page_of(seen(NOW, NOW - DAY, html=HtmlFacts(7), learned=True))
    return [template._replace(path=f"/{number}", route=route, **more) for number in range(count)]


def test_removed_pages_say_nothing_of_others() -> None:
    assert signals_of(alike(5)).deployments == ((NOW - DAY, NOW - DAY),)
    gone = signals_of(alike(5, status=404))
    assert gone.as_tuple() == signals_of([]).as_tuple()


def test_page_that_varies_between_probes_is_not_dated() -> None:
    steady = page_of(*(seen(NOW + hour * 3600, html=HtmlFacts(hour // 3)) for hour in range(6)))
    assert lastmod(None, steady, None, SiteSignals(), NOW + DAY).text is not None
    moved = merge_if_changed(steady, seen(NOW + 6 * 3600, html=HtmlFacts(VOLATILE)))
    assert lastmod(None, moved, None, SiteSignals(), NOW + DAY).text is None


@given(st.lists(observations, min_size=1), st.integers(NOW, NOW + 30 * DAY))
def test_a_page_is_never_listed_against_its_last_evidence(history: list[Observation], now: int) -> None:
    history = [seen._replace(is_probe=True) for seen in history]  # a visitor's answer may have to be confirmed first
    last = max(history, key=lambda seen: seen.at)
    history = [seen for seen in history if seen.at != last.at or seen is last]
    page = None
    for observation in history:
        page = merge(page, observation)
    assert page is not None
    forbidden = (
        last.status != 200
        or last.media_type != "text/html"
        or last.noindex
        or last.private
        or last.obstacle
        or (last.expires_at is not None and last.expires_at <= now)
        or last.canonical
    )
    assert page_verdict(page, now=now).listed is not bool(forbidden)


# verdict

WAITS = "waits for confirmation, because it may concern one visitor only"


@pytest.mark.parametrize(
    ("changes", "listed", "reason"),
    [
        ({}, True, "it answered 200 with text/html"),
        ({"media_type": "application/xhtml+xml"}, True, "it answered 200 with application/xhtml+xml"),
        ({"media_type": "application/pdf"}, True, "it answered 200 with application/pdf"),
        ({"media_type": "text/plain"}, False, "it is text/plain, not a page"),
        ({"media_type": ""}, False, "it is of no stated type, not a page"),
        ({"status": 404}, False, "it answered 404"),
        ({"noindex": True}, False, "its X-Robots-Tag says noindex"),
        ({"private": True}, False, "its Cache-Control says private"),
        ({"canonical": "https://x.y/z"}, False, "its canonical URL is another: https://x.y/z"),
        ({"obstacle": "asks to be downloaded"}, False, "it asks to be downloaded"),
        ({"html_obstacle": "leads elsewhere at once"}, False, "it leads elsewhere at once"),
        ({"expires_at": NOW}, False, "its unavailable_after has passed"),
        ({"html_expires_at": NOW}, False, "its unavailable_after has passed"),
        ({"expires_at": NOW + 1, "html_expires_at": NOW + 1}, True, "it answered 200 with text/html"),
        (
            {"unread_reason": "is compressed with br"},
            True,
            "it answered 200 with text/html; it was not read completely: it is compressed with br",
        ),
        (
            {"unconfirmed_answers": (UnconfirmedAnswer(NOW, 302),)},
            True,
            f"it answered 200 with text/html; an answer of 302 at {w3c_from_timestamp(NOW)} {WAITS}",
        ),
        (
            {
                "unconfirmed_answers": (
                    UnconfirmedAnswer(NOW - CONFIRMATION_SECONDS, 200),
                    UnconfirmedAnswer(NOW, 200),
                )
            },
            False,
            f"an answer of another media type at {w3c_from_timestamp(NOW)} confirms an earlier one of that kind",
        ),
    ],
)
def test_verdicts_and_their_reasons(changes: dict[str, object], *, listed: bool, reason: str) -> None:
    page = page_of(seen())._replace(**changes)  # type: ignore[arg-type]
    verdict = page_verdict(page, now=NOW)
    assert (verdict.listed, verdict.reason) == (listed, reason)
    assert is_listable(page) is (listed or page.media_type not in INDEXABLE_TYPES), (
        "a page that may be listed is worth keeping"
    )


def test_page_of_an_included_type_stays_listed_whoever_visits() -> None:
    """Such a type needs no confirmation, although search engines do not index it."""
    plain = seen(NOW)._replace(media_type="text/plain")
    page = page_of(plain, plain._replace(at=NOW + HOUR))
    for candidate in (page, page_of(plain._replace(is_probe=True))):
        verdict = page_verdict(candidate, {"text/plain"}, NOW + HOUR)
        assert (verdict.listed, verdict.reason) == (True, "it answered 200 with text/plain")
        assert is_listable(candidate)


# Last-Modified: a date, or a clock?


def test_date_as_old_as_the_response_is_trusted_once_it_stands_still() -> None:
    fresh = page_of(seen(NOW, NOW - 1))
    assert not credible(fresh)
    assert not credible(merge_if_changed(fresh, seen(NOW + GENERATED_DATE_SECONDS - 1, NOW - 1)))
    assert credible(merge_if_changed(fresh, seen(NOW + GENERATED_DATE_SECONDS, NOW - 1)))


def test_page_with_a_steady_date_is_trusted_when_it_changes() -> None:
    assert credible(page_of(seen(NOW, NOW - 1), seen(NOW + DAY, NOW - 1), seen(NOW + 2 * DAY, NOW + 2 * DAY - 1)))


def test_a_page_edited_before_each_visit_is_believed() -> None:
    page = page_of(
        *(seen(NOW + step * DAY, NOW + step * DAY - hours * 3600) for step, hours in enumerate((3, 9, 5, 20)))
    )
    assert credible(page)


def test_a_page_that_stops_saying_when_it_changed_has_no_date() -> None:
    page = page_of(seen(NOW, NOW - DAY), seen(NOW + 10))
    assert not credible(page)
    assert lastmod(None, page, None, SiteSignals(), NOW).text is None


# deployment


# lastmod


def dated(
    *, declared: date | None = None, last_modified: int | None = None, file: int | None = None
) -> tuple[str | None, str]:
    page = None if last_modified is None else page_of(seen(NOW, last_modified))
    result = lastmod(declared, page, file, SiteSignals(deployments=((NOW - 1000, NOW - 900),)), NOW)
    return result.text, result.source


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        (date(2024, 5, 1), "2024-05-01"),
        (datetime(2024, 5, 1, 12, 30), "2024-05-01T12:30:00Z"),  # noqa: DTZ001 (a naive one is what is tested)
        (datetime(2024, 5, 1, 12, 30, 0, 999_999, tzinfo=UTC), "2024-05-01T12:30:00Z"),
        (datetime(2024, 5, 1, 1, 30, tzinfo=timezone(timedelta(hours=2))), "2024-04-30T23:30:00Z"),
        (date(999, 5, 1), "0999-05-01"),
        (datetime(999, 5, 1, tzinfo=UTC), "0999-05-01T00:00:00Z"),
    ],
)
def test_dates_are_written_in_utc(declared: date, text: str) -> None:
    assert w3c(declared) == text


def test_the_developers_date_comes_first() -> None:
    assert dated(declared=date(2024, 5, 1), last_modified=NOW - DAY) == ("2024-05-01", "the developer's date")


def test_a_date_that_has_not_come_yet_is_not_written() -> None:
    assert dated(declared=date(2999, 1, 1))[0] is None
    assert "2999-01-01" in dated(declared=date(2999, 1, 1))[1]


def test_then_comes_a_credible_last_modified() -> None:
    assert dated(last_modified=1_700_000_000, file=NOW - DAY) == ("2023-11-14T22:13:20Z", "Last-Modified")


def test_then_the_time_of_the_file() -> None:
    assert dated(file=1_700_000_000) == ("2023-11-14T22:13:20Z", "the file's modification time")


def test_freshly_written_file_is_trusted() -> None:
    assert dated(last_modified=NOW - 1, file=NOW - 1)[1] == "Last-Modified"


@pytest.mark.parametrize("file", [EARLIEST_DATE_SECONDS - 1, NOW + CLOCK_SKEW_SECONDS + 1])
def test_a_time_of_a_file_that_cannot_be_true_is_not_written(file: int) -> None:
    assert dated(file=file)[0] is None


@pytest.mark.parametrize("moment", [NOW - 1000, NOW - 950, NOW - 900])
def test_deployment_time_is_not_a_date(moment: int) -> None:
    assert dated(last_modified=moment)[0] is None
    assert dated(file=moment)[0] is None


def test_page_without_evidence_has_no_verdict() -> None:
    assert dated() == (None, "it has no date, and no change of its content was observed")


@pytest.mark.parametrize(
    ("page", "kind"),
    [
        (page_of(seen(NOW - 99, NOW - DAY - 7), seen(NOW, NOW - DAY - 7)), "Last-Modified"),
        (
            page_of(*(seen(at, html=HtmlFacts(1, stated_date="2025-06-14T15:06:33Z")) for at in (NOW - 99, NOW))),
            "the date that the page states",
        ),
        (
            page_of(*(seen(NOW - DAY + hour * 3600, html=HtmlFacts(hour // 12)) for hour in range(24))),
            "the observed change",
        ),
    ],
)
def test_change_newer_than_the_rest_of_the_site_is_not_dated_yet(page: Page, kind: str) -> None:
    known = lastmod(None, page, None, SiteSignals(until=NOW), NOW + DAY)
    assert known.text is not None
    unknown = lastmod(None, page, None, SiteSignals(until=NOW - 2 * DAY), NOW + DAY)
    assert unknown.text is None
    assert unknown.source.startswith(kind)
    assert unknown.source.endswith("is too new to tell it from a deployment's")


def test_stated_date_since_a_moment_triggers_another_evaluation() -> None:
    page = page_of(seen(NOW, html=HtmlFacts(1, stated_date="2024-05-01")))
    assert changed_since(page, NOW - 1)
    assert not changed_since(page, NOW)
