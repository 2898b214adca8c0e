"""Signals of a site: deployments and installations, and which pages show them."""

from __future__ import annotations

import pytest

from sitemap_middleware.evidence.merge import merge
from sitemap_middleware.evidence.observations import Observation
from sitemap_middleware.evidence.site_signals import deployments, site_signals
from sitemap_middleware.models import Page

NOW = 1_750_000_020
DAY = 86_400


def dated(path: str, value: int, *at: int, **more: object) -> Page:
    """A page with this Last-Modified, seen at these times."""
    page = None
    for moment in at:
        page = merge(page, Observation(path, path, moment, 200, "text/html", last_modified=value)._replace(**more))
    assert page is not None
    return page


@pytest.mark.parametrize(
    ("dates", "found"),
    [
        ([], []),
        ([5, 5, 5], [(5, 5)]),
        ([0, 60, 120], [(0, 120)]),
        ([0, 1, 2, 9_000, 9_001, 9_002], [(0, 2), (9_000, 9_002)]),
        ([0, 1, 2, *range(9_000, 9_000 * 12, 9_000)], [(0, 2)]),
        ([0, 1, 2, *range(9_000, 9_000 * 15, 9_000)], []),
        ([0, 200, 400, *range(9_000, 9_000 * 5, 9_000)], []),
    ],
)
def test_dates_of_many_pages_that_follow_each_other_are_a_deployment(
    dates: list[int], found: list[tuple[int, int]]
) -> None:
    assert deployments([{date} for date in dates]) == tuple(found)
    assert deployments([{date, 10**9 + 10**6 * place} for place, date in enumerate(dates)]) == tuple(found)


def test_a_page_counts_once_in_a_deployment() -> None:
    assert deployments([{1, 2, 3}, {10**6}, {10**7}]) == ()


@pytest.mark.parametrize(("date", "is_found"), [(0, True), (60, True), (-60, True), (61, False), (-61, False)])
def test_a_date_within_a_minute_of_an_installation_is_the_installations(date: int, *, is_found: bool) -> None:
    signals = site_signals([dated("/a", NOW + date, NOW + DAY)], installed=[NOW])
    assert signals.deployed_at(NOW + date) is is_found


def test_a_page_that_failed_is_no_evidence() -> None:
    gone = dated("/gone", NOW, NOW + DAY, status=404)
    pages = [gone, *(dated(f"/{number}", NOW, NOW + DAY) for number in range(3))]
    assert site_signals(pages).deployments == ((NOW, NOW),)
    assert site_signals(pages[:3]).deployments == ()


def test_files_of_routes_count_as_pages() -> None:
    assert site_signals([dated("/a", NOW, NOW + DAY)], [NOW, NOW + 1]).deployments == ((NOW, NOW + 1),)


def test_times_of_responses_are_no_deployment() -> None:
    assert site_signals([dated(f"/{number}", NOW, NOW) for number in range(9)]).deployments == ()
