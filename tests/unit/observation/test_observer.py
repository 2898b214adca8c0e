"""What repeats itself within a second is passed over, and nothing is lost by that."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.captured_response import CapturedResponse
from sitemap_middleware.models import Site
from sitemap_middleware.observation import recent_pages as tracker_module
from sitemap_middleware.stores.sqlite.memory import MemoryStore

from ...support.sample_sites import Clock, Page, SampleSite
from ...support.wire import RequestSpec, asgi, wsgi

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
    sample.clock.pass_(0.25)
    sample.visit("/")
    assert (merged_count(sample), sample.app.stats()["seen"]) == (before, seen + 1)
    sample.clock.pass_(1)
    sample.visit("/")
    assert merged_count(sample) == before + 1


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
        assert [known.last_seen for known in store.pages("loopback:http/")] == [int(sample.clock())]


@BOTH
def test_personal_request_does_not_update_last_seen(protocol: str) -> None:
    store = MemoryStore()
    sample = SampleSite(protocol, {"/": Page(404)}, store=store)
    rested(sample, "/")
    seen = int(sample.clock())
    sample.clock.pass_(2 * HOUR)
    sample.request(RequestSpec("/", headers=[("cookie", "a=b")]))
    sample.app.flush()
    assert [known.last_seen for known in store.pages("loopback:http/")] == [seen]


@pytest.mark.parametrize("fails", [False, True])
def test_repeated_answer_that_fails_half_way_is_retracted(*, fails: bool) -> None:
    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("404 Not Found", HTML)
        if fails and clock() > last:
            start_response("500 Oops", HTML, (RuntimeError, RuntimeError("half-way"), None))
        return []

    clock, store = Clock(), MemoryStore()
    site, last = SitemapMiddleware(app, store=store, include="/", clock=clock), clock() + 4 * HOUR
    for _ in range(2):
        clock.pass_(2 * HOUR)
        wsgi(site, RequestSpec("/"))
        site.flush()
    clock.pass_(2 * HOUR)
    wsgi(site, RequestSpec("/"), validate=False)
    site.flush()
    assert [known.last_seen for known in store.pages("loopback:http/")] == [last if fails else last + 2 * HOUR]


@BOTH
def test_foreign_host_is_ignored_for_known_pages_once_the_own_was_seen(protocol: str) -> None:
    sample = SampleSite(protocol, {"/": Page(), "/about": Page()}, base_url="https://example.com")
    for path in ("/", "/about"):
        sample.request(path, host="proxied")
        sample.request(path, host="proxied")
    sample.request("/about", host="example.com")
    sample.pages["/"] = Page(404)
    sample.request("/", host="proxied")
    assert "https://example.com/" in sample.locs(host="example.com")


@BOTH
def test_foreign_host_does_not_retract_what_the_own_one_showed(protocol: str) -> None:
    store = MemoryStore()
    sample = SampleSite(protocol, {"/": Page()}, base_url="https://example.com", store=store)
    sample.request("/", host="example.com")
    sample.clock.pass_(1)
    sample.request("/", host="evil.example")
    sample.app.flush()
    assert [known.path for known in store.pages("https://example.com")] == ["/"]


def test_page_of_a_minimal_scope_is_found_again() -> None:
    async def app(_: Any, __: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 404, "headers": [(b"x-one", b"1")]})
        await send({"type": "http.response.body"})

    site: Any = SitemapMiddleware(app, store="memory://", include="/", clock=Clock())
    for _ in range(4):
        asyncio.run(site(http(), receive, _keeping([])))
    site.flush()
    assert (site.stats()["seen"], site.stats()["merged"]) == (4, 1)


@BOTH
@pytest.mark.parametrize(
    "changed",
    [Page(404), Page().with_headers(("x-robots-tag", "noindex")), Page().with_headers(("cache-control", "private"))],
    ids=["status", "robots", "private"],
)
def test_another_answer_within_the_second_counts_at_once(protocol: str, changed: Page) -> None:
    sample = SampleSite(protocol, {"/": Page(), "/about": Page()})
    rested(sample, "/", "/about")
    sample.pages["/"] = changed
    sample.request("/")
    assert sample.locs() == ["http://testserver/about"]


@BOTH
def test_answer_that_changes_back_within_a_second_is_the_latest(protocol: str) -> None:
    sample = SampleSite(protocol, {"/": Page(), "/about": Page()})
    rested(sample, "/", "/about")
    for page in (Page(404), Page(body=b"another length"), Page(404), Page()):
        sample.pages["/"] = page
        sample.request("/")
    assert sample.locs() == ["http://testserver/", "http://testserver/about"]


@BOTH
@pytest.mark.parametrize(
    "spec",
    [
        RequestSpec("/", headers=[("cookie", "a=b")]),
        RequestSpec("/", headers=[("authorization", "Basic YQ==")]),
        RequestSpec("/", headers=[("accept", "application/json")]),
        RequestSpec("/", query="a=b"),
    ],
    ids=lambda spec: str(spec.headers or spec.query),
)
def test_personal_request_to_a_recent_page_is_ignored(protocol: str, spec: RequestSpec) -> None:
    sample = SampleSite(protocol, {"/": Page()})
    rested(sample, "/")
    before = merged_count(sample)
    sample.pages["/"] = Page(404)
    sample.request(spec)
    assert merged_count(sample) == before
    assert sample.locs() == ["http://testserver/"]


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


@BOTH
def test_pages_whose_last_answers_are_remembered_are_bounded(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracker_module, "MAX_TRACKED_PAGES", 3)
    paths = [f"/{number}" for number in range(10)]
    sample = SampleSite(protocol, {path: Page() for path in paths})
    sample.visit(*paths)
    assert 0 < len(sample.app.service.tracker.tracked_pages) <= 3
    sample.pages["/0"] = Page(404)
    sample.visit("/0")
    assert "http://testserver/0" not in sample.locs()


def test_a_forked_child_remembers_nothing_of_its_parents_answers() -> None:
    sample = SampleSite("wsgi", {"/": Page()})
    rested(sample, "/")
    sample.app.service.tracker.reset_after_fork()
    before = merged_count(sample)
    sample.visit("/")
    assert merged_count(sample) == before + 1


class Incomparable:
    """A header's value that no other can be held against."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("cannot be compared")

    __hash__ = None  # type: ignore[assignment] # as of any class that compares by value


@BOTH
def test_an_answer_that_cannot_be_compared_harms_nothing(protocol: str, caplog: pytest.LogCaptureFixture) -> None:
    sent: list[Any] = []

    def over_wsgi(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("404 Not Found", [("x-odd", Incomparable())])
        return []

    async def over_asgi(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 404, "headers": [(b"x-odd", Incomparable())]})

    app = over_wsgi if protocol == "wsgi" else over_asgi
    site: Any = SitemapMiddleware(app, store="memory://", include="/", clock=Clock())
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "wsgi.url_scheme": "http", "HTTP_HOST": "localhost"}
    for _ in range(3):
        if protocol == "wsgi":
            site(environ, lambda *arguments: sent.append(arguments))
        else:
            asyncio.run(site(http(), receive, _keeping(sent)))
    assert len(sent) == 3
    assert [record.message.partition(";")[0] for record in caplog.records] == ["a response could not be compared"]


def http(**more: Any) -> dict[str, Any]:
    return {
        "type": "http",
        "method": "GET",
        "path": "/",
        "headers": [(b"x-first", b"1"), (b"host", b"localhost")],
        **more,
    }


async def receive() -> dict[str, Any]:
    return {"type": "http.request"}


def _keeping(sent: list[Any]) -> Any:
    async def send(message: Any) -> None:
        sent.append(message)

    return send


@pytest.mark.parametrize("path", [None, b"/", 7])
def test_a_scope_whose_path_is_none_is_for_the_app_to_refuse(path: Any) -> None:
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send(scope["path"])

    asyncio.run(SitemapMiddleware(app, store="memory://")(http(path=path), receive, _keeping(sent)))
    assert sent == [path]


@pytest.mark.parametrize("headers", [None, [1], [([], b"")], [(b"host",)], [(b"host", None)]], ids=repr)
def test_invalid_request_headers_are_left_to_the_app(headers: Any) -> None:
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send(scope["headers"])

    asyncio.run(SitemapMiddleware(app, store="memory://")(http(headers=headers), receive, _keeping(sent)))
    assert sent == [headers]


def test_send_is_still_known_to_be_awaited() -> None:
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # asgiref warns of what is not marked as a coroutine function
            bridged = async_to_sync(send)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await asyncio.to_thread(bridged, {"type": "http.response.body"})

    asyncio.run(SitemapMiddleware(app, store="memory://")(http(), receive, _keeping(sent)))
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]


def test_router_that_mutates_its_scope_does_not_change_the_path() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        scope.update(path="/elsewhere", root_path="/mounted", method="POST", scheme="https", query_string=b"a=b")
        status = 200 if len(visits) < 2 else 404
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"text/html")]})
        await send({"type": "http.response.body", "body": b"A page."})

    visits: list[int] = []
    site = SitemapMiddleware(app, store="memory://", include=("/", "/about"), clock=Clock())
    for number in range(3):
        visits.append(number)
        asgi(site, RequestSpec("/"))
    site.flush()
    assert "404" in site.explain("/").reason


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


@BOTH
def test_newer_answer_replaces_another_of_the_same_second(
    protocol: str,
) -> None:
    sample = SampleSite(protocol, {"/": Page(), "/about": Page()})
    rested(sample, "/", "/about")
    sample.clock.pass_(60)
    sample.request("/")
    watch = sample.app.service.tracker
    watch.record(CapturedResponse(Site("http", "testserver", loopback=True), "/", at=sample.clock(), status=404))
    watch.record(
        CapturedResponse(Site("http", "testserver", loopback=True), "/never-asked", at=sample.clock(), status=404)
    )
    sample.request("/")
    assert sample.locs() == ["http://testserver/", "http://testserver/about"]


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


@BOTH
@pytest.mark.parametrize("media_type", ["text/plain", "text/markdown; charset=utf-8", "application/json"])
def test_pages_of_other_listed_types_need_confirmation_as_well(protocol: str, media_type: str) -> None:
    good = Page(200, [("content-type", media_type)], b"A page.")
    sample = SampleSite(protocol, {"/": good}, list_unseen=False, media_types=media_type.partition(";")[0])
    rested(sample, "/")
    for answer in (Page(403), Page(302, [("location", "/de/")]), Page()):
        sample.pages["/"] = answer
        for agent, is_listed in (("Ada", True), ("Ben", False)):
            sample.clock.pass_(61)
            sample.request("/", headers=[("user-agent", agent)])
            sample.app.flush()
            assert bool(sample.locs()) is is_listed
        sample.pages["/"] = good
        sample.clock.pass_(61)
        sample.visit("/")
        assert sample.locs(), "a good answer lists it again"


NOINDEX = Page(body=b"<!doctype html><title>page</title><meta name=robots content=noindex><p>A page.")


@BOTH
@pytest.mark.parametrize(
    "other",
    [Page(404), Page(200, [("content-type", "text/html"), ("x-robots-tag", "noindex")]), NOINDEX, Page(410)],
    ids=["404", "noindex", "meta noindex", "410"],
)
@pytest.mark.parametrize("is_good_later", [True, False])
@pytest.mark.parametrize("flushes", [True, False])
def test_later_answer_of_one_second_wins(protocol: str, other: Page, *, is_good_later: bool, flushes: bool) -> None:
    sample = SampleSite(protocol, {"/": Page()}, list_unseen=False)
    for page in (other, Page()) if is_good_later else (Page(), other):
        sample.clock.pass_(0.25)
        sample.pages["/"] = page
        sample.request("/")
        if flushes:
            sample.app.flush()
    assert bool(sample.locs()) is is_good_later


def pending(sample: SampleSite) -> int:
    count: int = sample.app.stats()["pending"]
    return count


@BOTH
def test_paths_that_are_too_long_for_a_loc_take_no_memory(protocol: str) -> None:
    sample = SampleSite(protocol, {"/": Page()})
    for number in range(20):
        sample.request(f"/{number}{'a' * 6200}")
    tracker = sample.app.service.tracker
    assert (pending(sample), tracker.tracked_pages, tracker._pages) == (0, {}, {})
    sample.request("/")
    assert pending(sample)


@BOTH
def test_large_headers_that_claim_another_url_take_no_memory(protocol: str) -> None:
    sample = SampleSite(protocol, {"/": Page()})
    sample.request(RequestSpec("/", headers=[("x-original-url", "/a" * 1500), ("x-rewrite-url", "/b" * 1500)]))
    assert pending(sample) == 0
    sample.request(RequestSpec("/", headers=[("x-original-url", "/a" * 1000)]))
    assert pending(sample)
