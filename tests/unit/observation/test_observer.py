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

from ...support.twins import Clock, Page, Twin
from ...support.wire import Ask, asgi, wsgi

BOTH = pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
HTML = [("Content-Type", "text/html")]
HOUR = 60 * 60


def rested(twin: Twin, *paths: str) -> None:
    """Pages that were seen, and whose bodies are not due."""
    for _ in range(2):
        twin.visit(*paths)


def merged_count(twin: Twin) -> int:
    twin.app.flush()
    return twin.app.stats()["merged"]


@BOTH
def test_same_answer_within_a_second_is_merged_once(protocol: str) -> None:
    twin = Twin(protocol, {"/": Page()})
    rested(twin, "/")
    before, seen = merged_count(twin), twin.app.stats()["seen"]
    twin.clock.pass_(0.25)
    twin.visit("/")
    assert (merged_count(twin), twin.app.stats()["seen"]) == (before, seen + 1)
    twin.clock.pass_(1)
    twin.visit("/")
    assert merged_count(twin) == before + 1


@BOTH
def test_same_answer_in_another_second_updates_last_seen(protocol: str) -> None:
    store = MemoryStore()
    twin = Twin(protocol, {"/": Page(404)}, store=store)
    rested(twin, "/")
    for _ in range(3):
        twin.clock.pass_(2 * HOUR)  # sights that lie closer are not all written down
        twin.visit("/")
        twin.visit("/")
        twin.app.flush()
        assert [known.last_seen for known in store.pages("loopback:http/")] == [int(twin.clock())]


@BOTH
def test_personal_request_does_not_update_last_seen(protocol: str) -> None:
    store = MemoryStore()
    twin = Twin(protocol, {"/": Page(404)}, store=store)
    rested(twin, "/")
    seen = int(twin.clock())
    twin.clock.pass_(2 * HOUR)
    twin.ask(Ask("/", headers=[("cookie", "a=b")]))
    twin.app.flush()
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
        wsgi(site, Ask("/"))
        site.flush()
    clock.pass_(2 * HOUR)
    wsgi(site, Ask("/"), validate=False)
    site.flush()
    assert [known.last_seen for known in store.pages("loopback:http/")] == [last if fails else last + 2 * HOUR]


@BOTH
def test_foreign_host_is_ignored_for_known_pages_once_the_own_was_seen(protocol: str) -> None:
    twin = Twin(protocol, {"/": Page(), "/about": Page()}, base_url="https://example.com")
    for path in ("/", "/about"):
        twin.ask(path, host="proxied")
        twin.ask(path, host="proxied")
    twin.ask("/about", host="example.com")
    twin.pages["/"] = Page(404)
    twin.ask("/", host="proxied")
    assert "https://example.com/" in twin.locs(host="example.com")


@BOTH
def test_foreign_host_does_not_retract_what_the_own_one_showed(protocol: str) -> None:
    store = MemoryStore()
    twin = Twin(protocol, {"/": Page()}, base_url="https://example.com", store=store)
    twin.ask("/", host="example.com")
    twin.clock.pass_(1)
    twin.ask("/", host="evil.example")
    twin.app.flush()
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
    twin = Twin(protocol, {"/": Page(), "/about": Page()})
    rested(twin, "/", "/about")
    twin.pages["/"] = changed
    twin.ask("/")
    assert twin.locs() == ["http://testserver/about"]


@BOTH
def test_answer_that_changes_back_within_a_second_is_the_latest(protocol: str) -> None:
    twin = Twin(protocol, {"/": Page(), "/about": Page()})
    rested(twin, "/", "/about")
    for page in (Page(404), Page(body=b"another length"), Page(404), Page()):
        twin.pages["/"] = page
        twin.ask("/")
    assert twin.locs() == ["http://testserver/", "http://testserver/about"]


@BOTH
@pytest.mark.parametrize(
    "ask",
    [
        Ask("/", headers=[("cookie", "a=b")]),
        Ask("/", headers=[("authorization", "Basic YQ==")]),
        Ask("/", headers=[("accept", "application/json")]),
        Ask("/", query="a=b"),
    ],
    ids=lambda ask: str(ask.headers or ask.query),
)
def test_personal_request_to_a_recent_page_is_ignored(protocol: str, ask: Ask) -> None:
    twin = Twin(protocol, {"/": Page()})
    rested(twin, "/")
    before = merged_count(twin)
    twin.pages["/"] = Page(404)
    twin.ask(ask)
    assert merged_count(twin) == before
    assert twin.locs() == ["http://testserver/"]


@BOTH
def test_a_page_is_one_page_under_all_names_of_its_site(protocol: str) -> None:
    twin = Twin(protocol, {"/": Page(), "/about": Page()}, base_url="https://example.com")
    for host in ("example.com", "www.example.com", "example.com", "www.example.com"):
        twin.ask("/", host=host)
    twin.pages["/"] = Page(404)
    twin.ask("/", host="www.example.com")
    twin.pages["/"] = Page()
    twin.ask("/", host="example.com")
    assert twin.locs(host="example.com") == ["https://example.com/", "https://example.com/about"]


@BOTH
def test_pages_whose_last_answers_are_remembered_are_bounded(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracker_module, "MAX_TRACKED_PAGES", 3)
    paths = [f"/{number}" for number in range(10)]
    twin = Twin(protocol, {path: Page() for path in paths})
    twin.visit(*paths)
    assert 0 < len(twin.app.service.tracker.tracked_pages) <= 3
    twin.pages["/0"] = Page(404)
    twin.visit("/0")
    assert "http://testserver/0" not in twin.locs()


def test_a_forked_child_remembers_nothing_of_its_parents_answers() -> None:
    twin = Twin("wsgi", {"/": Page()})
    rested(twin, "/")
    twin.app.service.tracker.reset_after_fork()
    before = merged_count(twin)
    twin.visit("/")
    assert merged_count(twin) == before + 1


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
        asgi(site, Ask("/"))
    site.flush()
    assert "404" in site.explain("/").reason


def test_layer_that_removes_the_cookie_does_not_make_a_request_anonymous() -> None:
    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        known = environ.pop("HTTP_COOKIE", None)
        start_response("404 Not Found" if known else "200 OK", HTML)
        return [b""]

    site = SitemapMiddleware(app, store="memory://", include="/", clock=Clock())
    for _ in range(2):
        wsgi(site, Ask("/"))
        wsgi(site, Ask("/", headers=[("cookie", "a=b")]))
    assert site.explain("/").listed


@BOTH
def test_newer_answer_replaces_another_of_the_same_second(
    protocol: str,
) -> None:
    twin = Twin(protocol, {"/": Page(), "/about": Page()})
    rested(twin, "/", "/about")
    twin.clock.pass_(60)
    twin.ask("/")
    watch = twin.app.service.tracker
    watch.record(CapturedResponse(Site("http", "testserver", loopback=True), "/", at=twin.clock(), status=404))
    watch.record(
        CapturedResponse(Site("http", "testserver", loopback=True), "/never-asked", at=twin.clock(), status=404)
    )
    twin.ask("/")
    assert twin.locs() == ["http://testserver/", "http://testserver/about"]


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
    twin = Twin(protocol, {"/": Page(200, [("content-type", "text/html"), *length], HTML_BODY)}, list_unseen=False)
    rested(twin, "/")
    assert len(twin.locs()) == 1
    twin.pages["/"] = Page(200, [*headers, *length], HTML_BODY)
    twin.clock.pass_(wait)
    twin.ask("/", headers=[("user-agent", "Ada")])
    twin.app.flush()
    assert len(twin.locs()) == 1, "it may concern one visitor only"
    twin.clock.pass_(61)
    twin.ask("/", headers=[("user-agent", "Ben")])
    twin.app.flush()
    assert twin.locs() == [], "another visitor confirms it"


@BOTH
@pytest.mark.parametrize("media_type", ["text/plain", "text/markdown; charset=utf-8", "application/json"])
def test_pages_of_other_listed_types_need_confirmation_as_well(protocol: str, media_type: str) -> None:
    good = Page(200, [("content-type", media_type)], b"A page.")
    twin = Twin(protocol, {"/": good}, list_unseen=False, media_types=media_type.partition(";")[0])
    rested(twin, "/")
    for answer in (Page(403), Page(302, [("location", "/de/")]), Page()):
        twin.pages["/"] = answer
        for agent, is_listed in (("Ada", True), ("Ben", False)):
            twin.clock.pass_(61)
            twin.ask("/", headers=[("user-agent", agent)])
            twin.app.flush()
            assert bool(twin.locs()) is is_listed
        twin.pages["/"] = good
        twin.clock.pass_(61)
        twin.visit("/")
        assert twin.locs(), "a good answer lists it again"
