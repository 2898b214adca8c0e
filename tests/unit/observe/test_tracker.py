"""What repeats itself within a second is passed over, and nothing is lost by that."""

from __future__ import annotations

from typing import Any

import pytest

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.stores.sqlite import MemoryStore

from ...support.sample_sites import Clock, Page, SampleSite
from ...support.stores import all_pages
from ...support.wire import RequestSpec, wsgi

BOTH = pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
HTML = [("Content-Type", "text/html")]
HOUR = 60 * 60


def rested(sample: SampleSite, *paths: str) -> None:
    """Pages that were seen, and whose bodies are not due."""
    for _ in range(2):
        sample.visit(*paths)


def merged_count(sample: SampleSite) -> int:
    sample.app.flush()
    return sample.app.stats()["merged"]


@BOTH
def test_same_answer_within_a_second_is_merged_once(protocol: str) -> None:
    sample = SampleSite(protocol, {"/": Page()})
    rested(sample, "/")
    before, seen = merged_count(sample), sample.app.stats()["seen"]
    sample.request("/")
    sample.clock.pass_(0.25)
    sample.request("/")
    assert (merged_count(sample), sample.app.stats()["seen"]) == (before + 1, seen + 2)
    sample.clock.pass_(1)
    sample.visit("/")
    assert merged_count(sample) == before + 2


@BOTH
def test_same_answer_in_another_second_updates_last_seen(protocol: str) -> None:
    store = MemoryStore()
    sample = SampleSite(protocol, {"/": Page(404)}, store=store)
    rested(sample, "/")
    for _ in range(3):
        sample.clock.pass_(2 * HOUR)  # sights that lie closer are not all written down
        sample.visit("/")
        sample.visit("/")
        sample.app.flush()
        assert [known.last_seen for known in all_pages(store, "loopback:http/")] == [int(sample.clock())]


@BOTH
def test_personal_request_does_not_update_last_seen(protocol: str) -> None:
    store = MemoryStore()
    sample = SampleSite(protocol, {"/": Page(404)}, store=store)
    rested(sample, "/")
    seen = int(sample.clock())
    sample.clock.pass_(2 * HOUR)
    sample.request(RequestSpec("/", headers=[("cookie", "a=b")]))
    sample.app.flush()
    assert [known.last_seen for known in all_pages(store, "loopback:http/")] == [seen]


@BOTH
def test_a_page_is_one_page_under_all_names_of_its_site(protocol: str) -> None:
    sample = SampleSite(protocol, {"/": Page(), "/about": Page()}, base_url="https://example.com")
    for host in ("example.com", "www.example.com", "example.com", "www.example.com"):
        sample.request("/", host=host)
    sample.pages["/"] = Page(404)
    sample.request("/", host="www.example.com")
    sample.pages["/"] = Page()
    sample.request("/", host="example.com")
    assert sample.locs(host="example.com") == ["https://example.com/", "https://example.com/about"]


def test_layer_that_removes_the_cookie_does_not_make_a_request_anonymous() -> None:
    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        known = environ.pop("HTTP_COOKIE", None)
        start_response("404 Not Found" if known else "200 OK", HTML)
        return [b""]

    site = SitemapMiddleware(app, store="memory://", include="/", clock=Clock())
    for _ in range(2):
        wsgi(site, RequestSpec("/"))
        wsgi(site, RequestSpec("/", headers=[("cookie", "a=b")]))
    assert site.explain("/").listed


HTML_BODY = b'<!doctype html><title>Tea</title><p>"Tea"'
OTHER_TYPES = {
    "json": [("content-type", "application/json")],
    "a feed": [("content-type", "application/rss+xml; charset=utf-8")],
    "a download": [("content-type", "application/octet-stream")],
}


@BOTH
@pytest.mark.parametrize("headers", OTHER_TYPES.values(), ids=OTHER_TYPES.keys())
@pytest.mark.parametrize("wait", [1, HOUR], ids=["at once", "an hour later"])
def test_page_that_becomes_another_type_of_equal_length_is_seen(
    protocol: str, headers: list[tuple[str, str]], wait: int
) -> None:
    length = [("content-length", str(len(HTML_BODY)))] if protocol == "wsgi" else []
    sample = SampleSite(
        protocol, {"/": Page(200, [("content-type", "text/html"), *length], HTML_BODY)}, list_unseen=False
    )
    rested(sample, "/")
    assert len(sample.locs()) == 1
    sample.pages["/"] = Page(200, [*headers, *length], HTML_BODY)
    sample.clock.pass_(wait)
    sample.request("/", headers=[("user-agent", "Ada")])
    sample.app.flush()
    assert len(sample.locs()) == 1, "it may concern one visitor only"
    sample.clock.pass_(61)
    sample.request("/", headers=[("user-agent", "Ben")])
    sample.app.flush()
    assert sample.locs() == [], "another visitor confirms it"
