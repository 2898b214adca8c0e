"""What changed in a sitemap since a moment: only what the evidence tells."""

from __future__ import annotations

from datetime import date, datetime
from email.utils import formatdate
from typing import Any

import pytest

from sitemap_middleware import Entry, sitemap
from sitemap_middleware.evidence.dates import w3c_from_timestamp
from sitemap_middleware.listing.evaluated_urls import PageChange
from sitemap_middleware.models import Site

from ...support.sample_sites import Page, SampleSite

BASE = "https://shop.example"
NOW = 1_750_000_000
DAY = 86_400


def site(pages: dict[str, Page], **options: Any) -> SampleSite:
    return SampleSite("wsgi", pages, base_url=BASE, robots=False, **options)


def changes(sample: SampleSite, since: int) -> list[PageChange]:
    service: Any = sample.app.service
    snapshot = service.snapshot(Site("https", "shop.example"), service.store)
    return list(service.changes([snapshot], since))


def kinds(sample: SampleSite, since: int) -> dict[str, str]:
    return {change.url.removeprefix(BASE): change.kind for change in changes(sample, since)}


def test_a_page_is_new_since_it_was_first_seen() -> None:
    sample = site({"/old": Page(), "/new": Page(), "/never": Page()})
    sample.visit("/old")
    sample.clock.pass_(DAY)
    sample.visit("/old", "/new")
    assert changes(sample, NOW + 1) == [
        PageChange("new", f"{BASE}/new", w3c_from_timestamp(NOW + DAY), "it answered 200 with text/html")
    ]
    assert kinds(sample, NOW) == {"/old": "new", "/new": "new"}
    assert kinds(sample, NOW + DAY + 1) == {}


def expired(page: Page, at: int) -> Page:
    return page.with_headers(("X-Robots-Tag", f"unavailable_after: {formatdate(at, usegmt=True)}"))


@pytest.mark.parametrize("status", [404, 410])
def test_a_page_was_dropped_between_its_last_good_answer_and_the_present_one(status: int) -> None:
    sample = site({"/": Page(), "/page": Page()})
    sample.visit("/", "/page")
    sample.clock.pass_(5 * DAY)
    sample.pages["/page"] = Page(status)
    sample.visit("/", "/page")
    assert changes(sample, NOW + 1) == [
        PageChange(
            "dropped",
            f"{BASE}/page",
            w3c_from_timestamp(NOW + 5 * DAY),
            f"it answered {status}",
            w3c_from_timestamp(NOW),
        )
    ]
    assert kinds(sample, NOW + 6 * DAY) == {}


def test_a_page_was_dropped_when_its_unavailable_after_passed() -> None:
    sample = site({"/offer": expired(Page(), NOW + DAY), "/closed": expired(Page(403), NOW + DAY)})
    sample.visit("/offer", "/closed")
    sample.clock.pass_(3 * DAY)
    (change,) = changes(sample, NOW + 1)
    assert (change.url, change.kind, change.at) == (f"{BASE}/offer", "dropped", w3c_from_timestamp(NOW + DAY))
    assert changes(sample, NOW + 2 * DAY) == []


@pytest.mark.parametrize("then", [None, Page(410)], ids=["as before", "gone"])
@pytest.mark.parametrize("page", [Page(403), Page(body=b"<meta name=robots content=noindex><p>A page.")])
def test_what_was_never_known_to_be_listed_was_not_dropped(page: Page, then: Page | None) -> None:
    sample = site({"/page": page})
    sample.visit("/page")
    sample.clock.pass_(DAY)
    sample.pages["/page"] = then or page
    sample.visit("/page")
    assert changes(sample, NOW - 1) == []


@pytest.mark.parametrize(
    ("modified", "since", "is_reported"),
    [
        (date(2025, 6, 10), NOW - 6 * DAY, True),
        (date(2025, 6, 10), 1_749_513_600 + DAY - 1, True),  # the day's last second
        (date(2025, 6, 10), 1_749_513_600 + DAY, False),
        (datetime(2025, 6, 10, 12), 1_749_556_800, True),  # noqa: DTZ001 (a naive datetime is in UTC)
        (datetime(2025, 6, 10, 12), 1_749_556_801, False),  # noqa: DTZ001 (likewise)
        (None, 0, False),
    ],
)
def test_a_page_changed_if_its_lastmod_is_not_earlier(modified: date | None, since: int, is_reported: bool) -> None:
    marks = {"/posts/{slug}": sitemap(values=[Entry({"slug": "rye"}, lastmod=modified)])}
    sample = site({"/posts/{slug}": Page()}, marks=marks)
    expected = [("changed", f"{BASE}/posts/rye", "the developer's date")] if is_reported else []
    assert [(change.kind, change.url, change.reason) for change in changes(sample, since)] == expected


LINKS = {
    "/about": "{root}/about?from=home#team",
    "/jobs": BASE + "{root}/jobs/",
    "/zoë": "{root}/zo%c3%ab",
    "/contact": "contact",
    "/elsewhere": "https://other.example{root}/elsewhere",
    "/itself": "#top",
}
"""Pages, and how the home page links to them."""


@pytest.mark.parametrize("root", ["", "/shop"])
def test_it_is_known_which_pages_without_parameters_no_page_links_to(root: str) -> None:
    pages = {path: Page() for path in (*LINKS, "/posts/{slug}")}
    links = "".join(f"<a href='{link.format(root=root)}'>x</a>" for link in LINKS.values())
    pages["/"] = Page(body=f"<!doctype html><base href='{root}/'>{links}".encode())
    pages["/itself"] = Page(body=f"<!doctype html><a href='{root}/itself'>x</a>".encode())
    sample = site(pages, marks={"/posts/{slug}": sitemap(learn=True)})
    for path in ("/", *LINKS, "/posts/rye"):
        sample.request(path, root=root)
    sample.app.flush()
    service: Any = sample.app.service
    snapshots = [service.snapshot(Site("https", "shop.example", root), service.store)]
    assert [row.path for row in service.url_report(snapshots) if row.linked is False] == ["/elsewhere", "/itself"]
    assert [row.route.path for row in service.route_report(snapshots) if row.unlinked] == ["/elsewhere", "/itself"]
    unlinked = [path for path in (*pages, "/posts/rye") if service.explain(path, snapshots[0]).unlinked]
    assert unlinked == ["/elsewhere", "/itself"]


def test_a_site_without_links_says_nothing_of_them() -> None:
    sample = site({"/": Page(), "/about": Page()})
    sample.visit("/", "/about")
    assert not sample.app.explain("/about").unlinked
