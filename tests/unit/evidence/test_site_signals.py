"""Signals of a site: deployments, installations, and what they leave of dates; rule by rule."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.dates import w3c_from_timestamp
from sitemap_middleware.evidence.compact_content_histories import CompactContentHistories
from sitemap_middleware.evidence.lastmod import lastmod, observed_lastmods
from sitemap_middleware.evidence.observation_merge import merge
from sitemap_middleware.evidence.observations import HtmlFacts, Observation
from sitemap_middleware.evidence.page_as_of import block_as_of
from sitemap_middleware.evidence.page_columns import PageBlock
from sitemap_middleware.evidence.site_signals import (
    DEPLOYMENT_SECONDS,
    GENERATED_DATE_SECONDS,
    SiteSignals,
    changed_since,
    depends_on_site_signals,
    deployment_minute,
    deployments,
    is_generated,
    site_signals,
)
from sitemap_middleware.evidence.template_changes import TemplateChanges
from sitemap_middleware.models import Page
from sitemap_middleware.stores.page_codec import packed_page, unpack_block
from sitemap_middleware.value_history import OVERLAP_SECONDS, VOLATILE, Run

from ...support.observed_pages import signals_of

NOW = 1_750_000_020
"""The beginning of a minute."""
DAY = 86_400
MINUTE = NOW // DEPLOYMENT_SECONDS


def dated(path: str, value: int, *at: int, **more: object) -> Page:
    """A page with this Last-Modified, seen at these times."""
    page = None
    for moment in at:
        page = merge(page, Observation(path, path, moment, 200, "text/html", last_modified=value)._replace(**more))
    assert page is not None
    return page


# Deployments


@pytest.mark.parametrize(
    ("moments", "minute"),
    [
        ([], (1, 0)),
        ([5, 5], (1, 0)),
        ([5, 5, 5], (5, 5)),
        ([0, 5, 60], (0, 60)),
        ([0, 5, 61], (1, 0)),
        ([0, 61, 70, 121, 121], (61, 121)),
        ([0, 1, 2, 200, 201, 202], (1, 0)),
        ([0, 1, 2, 3, 200, 201, 202], (0, 3)),
        ([0, 1, 2, 200, 201, 202, 203, 400, 401], (1, 0)),
    ],
)
def test_deployment_is_the_minute_of_most_dates(moments: list[int], minute: tuple[int, int]) -> None:
    assert deployment_minute(moments) == deployment_minute(reversed(moments)) == minute


def histories(*minutes: int) -> CompactContentHistories:
    found = CompactContentHistories()
    for minute in minutes:
        found.add((Run(minute * DEPLOYMENT_SECONDS, NOW, NOW),))
    return found


@pytest.mark.parametrize(
    ("minutes", "found"),
    [
        ([7, 7], set()),
        ([7, 7, 7], {7, 8}),
        ([7, 7, 8], {7, 8}),
        ([7, 8, 9, 9], {8, 9}),
        ([7] * 3 + list(range(20, 240, 20)), {7, 8}),
        ([7] * 3 + list(range(20, 280, 20)), set()),
    ],
)
def test_fifth_of_the_pages_with_a_date_of_two_minutes_is_a_deployment(minutes: list[int], found: set[int]) -> None:
    assert deployments(histories(*minutes)) == found


def test_page_counts_once_in_a_minute() -> None:
    often = tuple(Run(7 * DEPLOYMENT_SECONDS + second, NOW, NOW) for second in range(3))
    dates = CompactContentHistories()
    dates.add(often)
    assert deployments(dates) == frozenset()


def test_files_were_deployed_in_the_seconds_and_minutes_found() -> None:
    signals = SiteSignals(
        deployed=(NOW, NOW + 3), deployments=frozenset({MINUTE + 5}), installed=frozenset({MINUTE + 9})
    )
    moments = [NOW - 1, NOW, NOW + 3, NOW + 4, NOW + 299, NOW + 300, NOW + 359, NOW + 360, NOW + 540]
    assert [signals.deployed_at(moment) for moment in moments] == [0, 1, 1, 0, 0, 1, 1, 0, 1]


@pytest.mark.parametrize(("date", "is_found"), [(0, True), (60, True), (-60, True), (120, False), (-61, False)])
def test_date_of_a_minute_beside_an_installation_is_the_installations(date: int, *, is_found: bool) -> None:
    signals = signals_of([dated("/a", NOW + date, NOW + DAY)], installed=[NOW])
    assert signals.deployed_at(NOW + date) is is_found
    assert not signals_of([dated("/a", NOW + date, NOW + DAY)]).installed


# Own changes


@pytest.mark.parametrize(("same", "older", "own"), [(1, 2, False), (1, 3, True), (2, 3, False), (2, 4, True)])
def test_date_is_the_pages_own_if_enough_others_kept_older_ones(same: int, older: int, *, own: bool) -> None:
    moved = [dated(f"/m{number}", NOW, NOW + DAY) for number in range(same)]
    stayed = [dated(f"/s{number}", NOW - 9 * DAY, NOW - DAY, NOW + DAY) for number in range(older)]
    assert signals_of([*moved, *stayed]).is_own_change(NOW) is own


@pytest.mark.parametrize(("more", "counts"), [(0, True), (-1, False)])
def test_older_date_was_kept_if_it_was_seen_after_all_workers_have_restarted(more: int, *, counts: bool) -> None:
    moved = dated("/m", NOW, NOW + DAY)
    stayed = [dated(f"/s{number}", NOW - DAY, NOW - 100, NOW + OVERLAP_SECONDS + more) for number in range(3)]
    assert signals_of([moved, *stayed]).is_own_change(NOW) is counts


def test_page_that_was_edited_twice_kept_one_date_at_a_time() -> None:
    edited = [dated(f"/s{number}", NOW - 9 * DAY, NOW - 8 * DAY) for number in range(3)]
    edited = [
        merge(page, Observation(page.path, page.path, NOW + DAY, 200, "text/html", last_modified=NOW - 5 * DAY))
        for page in edited
    ]
    signals = signals_of(edited)
    assert len(signals.older_from) == len(signals.older_to)
    assert all(first <= last for first, last in zip(signals.older_from, signals.older_to, strict=True))


# Which pages count


def test_page_that_failed_is_skipped_and_the_ones_after_it_are_not() -> None:
    gone = dated("/gone", NOW, NOW + DAY, status=404)
    pages = [gone, *(dated(f"/{number}", NOW, NOW + DAY) for number in range(3))]
    assert signals_of(pages).deployed == (NOW, NOW)
    assert signals_of(pages[:3]).deployed == (1, 0)


def test_files_of_routes_count_as_pages() -> None:
    assert signals_of([dated("/a", NOW, NOW + DAY)], [NOW, NOW + 1]).deployed == (NOW, NOW + 1)


def test_evidence_from_the_future_is_ignored_if_the_time_is_given() -> None:
    pages = [dated(f"/{number}", NOW, NOW + DAY) for number in range(3)]
    assert signals_of(pages, now=NOW).deployed == (1, 0)
    assert signals_of(pages).deployed == (NOW, NOW)
    assert [signals_of(pages, now=now).is_complete for now in (NOW, NOW + DAY)] == [False, True]


@pytest.mark.parametrize(
    ("lags", "generated"),
    [
        ([], False),
        ([0], True),
        ([GENERATED_DATE_SECONDS - 1], True),
        ([GENERATED_DATE_SECONDS], False),
        ([3600, 3601], False),
        ([3600, 3601, 3602], True),
        ([3600, 3601, 3603], False),
        ([9, 3600, 3601, 3602], True),
    ],
)
def test_dates_of_a_steady_age_are_generated(lags: list[int], *, generated: bool) -> None:
    runs = tuple(
        Run(NOW + number * DAY - lag, NOW + number * DAY, NOW + number * DAY) for number, lag in enumerate(lags)
    )
    assert is_generated(runs) is generated


@pytest.mark.parametrize(("stays", "generated"), [(GENERATED_DATE_SECONDS - 1, True), (GENERATED_DATE_SECONDS, False)])
def test_date_that_stays_for_a_minute_is_not_generated(stays: int, *, generated: bool) -> None:
    assert is_generated((Run(NOW, NOW, NOW + stays),)) is generated


@pytest.mark.parametrize(
    "signals",
    [
        SiteSignals(),
        SiteSignals(installed=frozenset({MINUTE})),
        SiteSignals(deployments=frozenset({MINUTE, MINUTE + 2})),
        SiteSignals(deployed=(NOW - 1, NOW + DEPLOYMENT_SECONDS)),
        SiteSignals(deployed=(NOW - 1, NOW - 1), installed=frozenset({MINUTE + 1})),
    ],
    ids=["none", "an installation", "minutes", "a range", "a range and an installation"],
)
def test_times_of_deployments_are_found_among_many_as_each_alone(signals: SiteSignals) -> None:
    moments = [NOW + seconds for seconds in range(-2, 3 * DEPLOYMENT_SECONDS)]
    assert [*signals.deployed_among(moments)] == [signals.deployed_at(moment) for moment in moments]


# What the signals depend on


def test_page_depends_on_signals_if_it_has_dates_or_changed() -> None:
    plain = dated("/a", NOW, NOW, last_modified=None)
    once = merge(plain, Observation("/a", "/a", NOW + 1, 200, "text/html", html=HtmlFacts(1)))
    twice = merge(once, Observation("/a", "/a", NOW + 2, 200, "text/html", html=HtmlFacts(2)))
    stated = merge(
        plain, Observation("/a", "/a", NOW + 1, 200, "text/html", html=HtmlFacts(1, stated_date="2025-06-01"))
    )
    assert [depends_on_site_signals(page) for page in (plain, once, twice, stated, dated("/a", NOW, NOW))] == [
        *(False, False, True, True, True)
    ]
    assert [changed_since(page, NOW + 1) for page in (plain, once, twice, stated)] == [False, False, True, False]
    assert changed_since(stated, NOW)
    assert changed_since(dated("/a", NOW, NOW + 2), NOW + 1)
    assert not changed_since(dated("/a", NOW, NOW + 1), NOW + 1)


AGES = st.sampled_from([-1000, 0, 1, 50, 59, 60, 3000, 4000, DAY, 3 * DAY, 90 * DAY])
SIGHTS = st.lists(
    st.tuples(AGES, st.none() | AGES, st.none() | st.integers(1, 9) | st.just(VOLATILE)), min_size=1, max_size=3
)


def seen_alike(path: str, kind: Observation, sights: Sequence[tuple[int, int | None, int | None]], later: int) -> Page:
    """A page that was observed at these ages, each with a Last-Modified of some age and with some content."""
    page = None
    for age, modified, digest in sorted(sights, key=lambda sight: -sight[0]):
        facts = (
            None
            if digest is None
            else HtmlFacts(
                digest if digest == VOLATILE else digest * len(path), stated_date=None if modified else "2024-05-01"
            )
        )
        at = NOW - age + later
        last_modified = None if modified is None else at - modified - later * len(path)
        page = merge(page, kind._replace(path=path, at=at, last_modified=last_modified, html=facts))
    assert page is not None
    return page


KINDS = st.builds(
    lambda route, status, learned: Observation("", route, 0, status, "text/html", learned=learned),
    st.sampled_from(["/a/<x>", "/a/<int:x>"]),
    st.sampled_from([200, 200, 404]),
    st.booleans(),
)
ALIKE = st.lists(
    st.builds(
        lambda kind, sights, paths: [seen_alike(path, kind, sights, later) for path, later in paths],
        KINDS,
        SIGHTS,
        st.lists(
            st.tuples(st.text("aA0%", min_size=1, max_size=4).map(lambda text: "/a/" + quote(text)), st.integers(0, 2)),
            max_size=9,
        ),
    ),
    max_size=4,
).map(lambda kinds: [page for kind in kinds for page in kind])
"""Pages of which many were observed alike."""


def check_columns(block: PageBlock, pages: list[Page], now: int | None, until: int | None) -> None:
    """Columns give the signals and dates that each of their pages gives alone."""
    signals = site_signals([block], [NOW], until, now=now, installed=[NOW - DAY])
    expected = signals_of(pages, [NOW], until, now=now, installed=[NOW - DAY])
    assert signals.as_tuple() == expected.as_tuple()
    assert signals.soft_not_founds.as_tuple() == expected.soft_not_founds.as_tuple()
    dates = [
        (one.seen_dates, one.older_from, one.older_to, one.deployed, one.open_after) for one in (signals, expected)
    ]
    assert dates[0] == dates[1]
    for columns in block_as_of(block, now or NOW).columns:
        assert observed_lastmods(columns, signals, now or NOW) == [
            lastmod(None, page, None, expected, now or NOW).text for page in columns.pages()
        ]
        alike = columns.pages()
        assert {depends_on_site_signals(page) for page in alike} == {depends_on_site_signals(columns.common)}
        for since in (NOW - DAY, NOW):
            assert columns.any_changed_since(since) is any(changed_since(page, since) for page in alike)


def in_block(pages: list[Page]) -> PageBlock:
    return unpack_block((page.path, page.route, packed_page(page).data) for page in pages)


@pytest.mark.once
@given(ALIKE, st.none() | st.sampled_from([NOW - DAY, NOW, NOW + DAY]), st.none() | st.just(NOW - DAY))
def test_pages_in_columns_give_the_signals_that_each_gives_alone(
    pages: list[Page], now: int | None, until: int | None
) -> None:
    check_columns(in_block(pages), pages, now, until)


@pytest.mark.parametrize(("status", "learned"), [(200, False), (200, True), (404, False)])
@pytest.mark.parametrize(
    "sights",
    [
        [(DAY, None, 1)],
        [(DAY, 0, 1)],
        [(DAY, DAY, 1)],
        [(2 * DAY, DAY, 1), (DAY, 2 * DAY, 1)],
        [(3 * DAY, DAY, 1), (0, DAY, 2)],
        [(90 * DAY, 3000, 1), (3 * DAY, 4000, 2), (0, 50, 3)],
    ],
    ids=["stated", "stated, and of now", "of one visit", "steady", "changed once", "changed twice"],
)
def test_dates_in_columns_give_the_signals_that_each_gives_alone(
    sights: list[tuple[int, int | None, int]], status: int, learned: bool
) -> None:
    kind = Observation("", "/a/<x>", 0, status, "text/html", learned=learned)
    pages = [seen_alike(f"/a/{'x' * number}", kind, sights, number % 3) for number in range(1, 7)]
    block = in_block(pages)
    assert [columns.count for columns in block.columns] == [len(pages)]
    for now, until in ((None, None), (NOW, NOW - DAY), (NOW - DAY, None)):
        check_columns(block, pages, now, until)


TIMES = st.tuples(
    st.sampled_from([0, 1, 59, 60, 61, 100, 7_201, 32 * DAY - 1, 32 * DAY, 40 * DAY]),
    st.sampled_from([0, 59, 60, DAY]),
)
"""How old a date is when first seen, and for how long it is seen."""


@pytest.mark.once
@given(
    st.lists(TIMES, min_size=4, max_size=9),
    st.sampled_from([0, 1, 7, 300]),
    st.none() | st.sampled_from([NOW - 50 * DAY, NOW]),
    st.sampled_from([(1, 0), (NOW - 60 * DAY, NOW - 32 * DAY)]),
)
def test_pages_whose_date_never_changed_are_dated_as_each_is_alone(
    dates: list[tuple[int, int]], odd: int, until: int | None, deployed: tuple[int, int]
) -> None:
    pages = []
    for number, (age, stood) in enumerate(dates):
        last = NOW + odd
        first = last - stood
        page = merge(None, Observation(f"/a/{number}", "/a/<x>", last, 200, "text/html", last_modified=first - age))
        pages.append(page._replace(last_modified_history=(Run(first - age, first, last),)))
    (columns,) = unpack_block((page.path, page.route, packed_page(page).data) for page in pages).columns
    signals = SiteSignals(until=until, deployed=deployed)
    assert observed_lastmods(columns, signals, NOW + 301) == [
        lastmod(None, page, None, signals, NOW + 301).text for page in pages
    ]


@pytest.mark.once
@given(
    st.lists(st.tuples(TIMES, st.sampled_from([1, 239, 240, 900, DAY, 200 * DAY]), TIMES), min_size=4, max_size=9),
    st.sampled_from([0, 1, 7]),
    st.none() | st.sampled_from([NOW - 50 * DAY, NOW]),
    st.sampled_from([(1, 0), (NOW - 60 * DAY, NOW - 32 * DAY)]),
    st.frozensets(st.sampled_from([MINUTE, MINUTE - 1, MINUTE - DAY // 60])),
)
def test_pages_whose_date_changed_once_are_dated_as_each_is_alone(
    dates: list[tuple[tuple[int, int], int, tuple[int, int]]],
    odd: int,
    until: int | None,
    deployed: tuple[int, int],
    minutes: frozenset[int],
) -> None:
    pages = []
    for number, ((old_age, old_stood), gap, (age, stood)) in enumerate(dates):
        last = NOW + odd
        first = last - stood
        old_last = first - gap
        old = Run(old_last - old_stood - old_age, old_last - old_stood, old_last)
        page = merge(None, Observation(f"/a/{number}", "/a/<x>", last, 200, "text/html", last_modified=first - age))
        pages.append(page._replace(last_modified_history=(old, Run(first - age, first, last))))
    (columns,) = unpack_block((page.path, page.route, packed_page(page).data) for page in pages).columns
    signals = SiteSignals(until=until, deployed=deployed, deployments=minutes)
    assert observed_lastmods(columns, signals, NOW + 7) == [
        lastmod(None, page, None, signals, NOW + 7).text for page in pages
    ]


@pytest.mark.parametrize("returned", [-1, 0, 1, 1000])
def test_pages_of_two_servers_with_a_date_each_are_dated_as_each_is_alone(returned: int) -> None:
    """The earlier date was seen again so many seconds after the later one was first seen."""
    pages = []
    for number in range(4):
        first = NOW - DAY + number
        runs = Run(NOW - 90 * DAY, NOW - 2 * DAY, first + returned), Run(NOW - 80 * DAY, first, NOW)
        kind = Observation(f"/a/{number}", "/a/<x>", NOW, 200, "text/html", last_modified=runs[1].value)
        page = merge(None, kind._replace(html=HtmlFacts(number)))
        contents = (Run(number, NOW - 2 * DAY, NOW),)
        pages.append(page._replace(last_modified_history=runs, content_history=contents))
    (columns,) = unpack_block((page.path, page.route, packed_page(page).data) for page in pages).columns
    dates = observed_lastmods(columns, SiteSignals(), NOW)
    assert dates == [lastmod(None, page, None, SiteSignals(), NOW).text for page in pages]
    assert all(date is None for date in dates) is (returned > 0)


@pytest.mark.parametrize("more", [-1, 0, 1])
@pytest.mark.parametrize("step", [300, 900])
@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize("shortest", [0, 120])
def test_pages_with_rounded_dates_are_dated_as_each_is_alone(
    more: int, step: int, changed: bool, shortest: int
) -> None:
    """A date on the quarter of an hour counts from the age of two days on, unless a page was seen for as long."""
    value = NOW - NOW % 900 - 20 * DAY + step
    last = value + 2 * DAY + more
    pages = []
    for number, stood in enumerate([120, 120, 120, shortest]):
        runs = Run(value - 5 * DAY, last - DAY - 60, last - DAY), Run(value, last - stood, last)
        page = merge(None, Observation(f"/a/{number}", "/a/<x>", last, 200, "text/html", last_modified=value))
        pages.append(page._replace(last_modified_history=runs if changed else runs[1:]))
    (columns,) = unpack_block((page.path, page.route, packed_page(page).data) for page in pages).columns
    dates = observed_lastmods(columns, SiteSignals(), NOW)
    assert dates == [lastmod(None, page, None, SiteSignals(), NOW).text for page in pages]
    assert dates == [None if step == 900 and more < 0 else w3c_from_timestamp(value)] * 4


@pytest.mark.parametrize("digests", [[1, 2, 3, 4], [VOLATILE] * 4, [1, VOLATILE, 1, 1], [7] * 5, [7] * 5 + [VOLATILE]])
@pytest.mark.parametrize("until", [None, NOW])
def test_pages_that_stood_with_any_content_are_as_each_is_alone(digests: list[int], until: int | None) -> None:
    pages = []
    for number, digest in enumerate(digests):
        kind = Observation(f"/a/{number}", "/a/<x>", NOW, 200, "text/html", last_modified=NOW - 9 * DAY + 7 * number)
        seen = kind._replace(html=HtmlFacts(digest), learned=True)
        pages.append(merge(merge(None, seen._replace(at=NOW - DAY)), seen))
    block = unpack_block((page.path, page.route, packed_page(page).data) for page in pages)
    (columns,) = block.columns
    signals, expected = site_signals([block], (), until), signals_of(pages, (), until)
    assert signals.as_tuple() == expected.as_tuple()
    assert signals.soft_not_founds == expected.soft_not_founds
    dates = observed_lastmods(columns, SiteSignals(until=until), NOW)
    assert dates == [w3c_from_timestamp(NOW - 9 * DAY + 7 * number) for number in range(len(digests))]


def contents(count: int) -> TemplateChanges:
    pages = CompactContentHistories()
    for number in range(count):
        pages.add((Run(number, NOW, NOW + DAY),))
    return TemplateChanges({"/": pages})


def test_signals_are_known_up_to_the_sample_and_to_the_pages_that_were_read() -> None:
    open_since = contents(9).ambiguous_since
    assert open_since is not None
    few = SiteSignals(templates=contents(9))
    assert [few.needs_more_pages(open_since + more) for more in (-1, 0, 1)] == [False, True, True]
    assert not SiteSignals().needs_more_pages(NOW)
    assert [SiteSignals(until=NOW).is_distinguishable(NOW + more) for more in (-1, 0, 1)] == [True, True, False]
    assert SiteSignals().is_distinguishable(NOW)
    assert SiteSignals().open_after is None
    assert few.open_after == open_since
    assert SiteSignals(until=open_since - 1, templates=contents(9)).open_after == open_since - 1
    assert SiteSignals(until=open_since + 1, templates=contents(9)).open_after == open_since
    assert SiteSignals(until=NOW).open_after == NOW


def test_equal_tuples_are_equal_signals() -> None:
    dates = ((1,), (2,), (3,))
    for around in ({"deployments": frozenset({4})}, {"installed": frozenset({4})}, {"deployed": (4, 4)}):
        signals = SiteSignals(older_from=(1,), older_to=(2,), seen_dates=(3,), **around)
        assert signals.as_tuple() == (
            signals.deployed,
            sorted(signals.deployments),
            sorted(signals.installed),
            dates,
            (),
        )
    assert SiteSignals(older_from=(1,)).as_tuple() == SiteSignals().as_tuple() == ((1, 0), [], [], (), ()), (
        "older dates matter beside a deployment only"
    )
    assert SiteSignals(templates=contents(9)).as_tuple() == ((1, 0), [], [], (), contents(9).as_tuple())
    assert SiteSignals(templates=contents(9)).as_tuple() != SiteSignals().as_tuple()


def test_page_has_its_own_contents_without_signals() -> None:
    page = dated("/a", NOW, NOW, html=HtmlFacts(7))
    assert SiteSignals().own_content_history(page) == page.content_history
