"""Signals of a site: deployments, installations, and what they leave of dates; rule by rule."""

from __future__ import annotations

import pytest

from sitemap_middleware.evidence.observation_merge import merge
from sitemap_middleware.evidence.observations import HtmlFacts, Observation
from sitemap_middleware.evidence.site_signals import (
    DEPLOYMENT_SECONDS,
    GENERATED_DATE_SECONDS,
    SiteSignals,
    changed_since,
    depends_on_site_signals,
    deployment_minute,
    deployments,
    is_generated,
)
from sitemap_middleware.evidence.template_changes import TemplateChanges
from sitemap_middleware.models import Page
from sitemap_middleware.value_history import OVERLAP_SECONDS, History, Run

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


def histories(*minutes: int) -> list[History]:
    return [(Run(minute * DEPLOYMENT_SECONDS, NOW, NOW),) for minute in minutes]


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
    assert deployments([often]) == frozenset()


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


def contents(count: int) -> TemplateChanges:
    return TemplateChanges({"/": [(Run(number, NOW, NOW + DAY),) for number in range(count)]})


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
