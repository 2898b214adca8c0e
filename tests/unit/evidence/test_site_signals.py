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
    assert deployments([({date}, NOW) for date in dates]) == tuple(found)
    assert deployments([({date, 10**9 + 10**6 * place}, NOW) for place, date in enumerate(dates)]) == tuple(found)


def test_a_deployment_shows_in_the_pages_that_were_seen_since() -> None:
    before = [({5_000 + number * 9_000}, 400_000) for number in range(30)]
    assert deployments([*before, *[({500_000}, 500_100)] * 3]) == ((500_000, 500_000),)
    assert (
        deployments([*before, *[({500_000}, 500_100)] * 3, *[({number * 9_000}, 500_100) for number in range(13)]])
        == ()
    )


def test_a_page_that_failed_is_no_evidence() -> None:
    gone = dated("/gone", NOW, NOW + DAY, status=404)
    pages = [gone, *(dated(f"/{number}", NOW, NOW + DAY) for number in range(3))]
    assert site_signals(pages).deployments == ((NOW, NOW),)
    assert site_signals(pages[:3]).deployments == ()
