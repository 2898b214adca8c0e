"""Cached documents are served from memory only until something may have changed them."""

from __future__ import annotations

import asyncio
import gc
import itertools
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from anyio.to_thread import current_default_thread_limiter
from starlette.routing import Route

from sitemap_middleware import ready_documents, sitemap
from sitemap_middleware.captured_response import CapturedResponse
from sitemap_middleware.exceptions import StoreError
from sitemap_middleware.models import BaseURL, Site
from sitemap_middleware.observation.background_saving import ResponseBuffer
from sitemap_middleware.rendering import responses, site_documents
from sitemap_middleware.rendering.chunked_document import compress_chunk, urlset
from sitemap_middleware.rendering.responses import CachedDocument, Freshness
from sitemap_middleware.rendering.section import SectionDocument
from sitemap_middleware.rendering.site_documents import SiteDocuments
from sitemap_middleware.routing import current_routes as url_map
from sitemap_middleware.stores.sqlite.memory import MemoryStore

from ...support.collection_sizes import collection_sizes
from ...support.sample_sites import Page, SampleSite
from ...support.wire import DRIVERS, Answer, Headers, RequestSpec, asgi_async

BOTH = pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
SITEMAP = "/sitemap.xml"
GZIP = ("accept-encoding", "gzip, deflate, br")


class Counting(MemoryStore):
    """A store that counts what is asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def connect(self) -> sqlite3.Connection:
        self.calls += 1
        return super().connect()


def home(protocol: str, *paths: str, **options: Any) -> SampleSite:
    """A site whose Host alone says which site it is, unless the options say otherwise."""
    if "allowed_hosts" not in options:
        options.setdefault("base_url", "http://testserver")
    return SampleSite(protocol, {path: Page() for path in paths or ("/",)}, **options)


def add(site: SampleSite, path: str) -> None:
    """Add a route to the app as it runs."""
    if site.protocol == "wsgi":
        site.bare.add_url_rule(path, path, lambda: "A page.")
    else:

        async def endpoint(_: Any) -> None: ...

        site.bare.router.routes.append(Route(path, endpoint))


def ready(site: SampleSite) -> Counting:
    """The site's sitemap is ready; its store, with the count at nought."""
    store = site.app.service.store
    for _ in range(3):
        assert site.request(SITEMAP, headers=[GZIP]).status == 200
    store.calls = 0
    return store


# What is ready


@BOTH
def test_a_document_that_is_ready_is_answered_without_the_store(protocol: str) -> None:
    site = home(protocol, store=Counting())
    first = site.request(SITEMAP, headers=[GZIP])
    store = ready(site)
    assert site.request(SITEMAP, headers=[GZIP]) == first
    assert site.request(SITEMAP).status == 200
    assert (
        site.request(SITEMAP, headers=[("if-none-match", first.header("etag") or "")]).status == 200
    )  # another coding's
    assert store.calls == 0


@BOTH
def test_head_and_304_are_cached_after_the_first_request(protocol: str) -> None:
    site = home(protocol, store=Counting())
    known = [GZIP, ("if-none-match", site.request(SITEMAP, headers=[GZIP]).header("etag") or "")]
    site.request(SITEMAP, method="HEAD")
    store = ready(site)
    assert site.request(SITEMAP, headers=known).status == 304
    assert site.request(SITEMAP, method="HEAD", headers=known).status == 304
    head = site.request(SITEMAP, method="HEAD", headers=[GZIP])
    assert (head.status, head.body) == (200, b"")
    assert store.calls == 0


def test_response_is_served_on_the_event_loop_without_a_free_thread() -> None:
    site = home("asgi")

    async def send_request() -> tuple[Answer, Answer]:
        for _ in range(3):
            first = await asgi_async(site.app, RequestSpec(SITEMAP))
        limiter = current_default_thread_limiter()
        for number in range(int(limiter.available_tokens)):
            await limiter.acquire_on_behalf_of(number)
        return first, await asyncio.wait_for(asgi_async(site.app, RequestSpec(SITEMAP)), 20)

    first, second = asyncio.run(send_request())
    assert second == first


ASKED: tuple[Headers, ...] = (
    [],
    [GZIP],
    [("accept-encoding", "gzip;q=0")],
    [("accept-encoding", "br" + ", x" * 200 + ", gzip")],
    [("if-none-match", "*")],
    [("if-none-match", '"a", "b"')],
    [("if-none-match", "")],
    [("if-modified-since", "Mon, 01 Jan 2040 00:00:00 GMT")],
    [("if-modified-since", "Mon, 01 Jan 2001 00:00:00 GMT")],
    [("if-modified-since", "never")],
)


@BOTH
@pytest.mark.parametrize("letters", [1, 200, 1000], ids=["short", "long", "sent in parts"])
def test_an_answer_from_memory_is_the_answer_that_is_made(protocol: str, letters: int) -> None:
    site = home(protocol, include=[f"/{number}{'a' * letters}" for number in range(400)])
    site.request(SITEMAP)
    site.request(SITEMAP, method="HEAD")
    for method in ("GET", "HEAD"):
        for headers in ASKED:
            generated = site.request(RequestSpec(SITEMAP, method=method, headers=headers, query="fresh=1"))
            for _ in range(2):
                assert site.request(SITEMAP, method=method, headers=headers) == generated


@BOTH
def test_added_response_headers_affect_one_response_only(protocol: str) -> None:
    site = home(protocol)

    def added_wsgi(environ: Any, start_response: Any) -> Any:
        def start(status: str, headers: Headers, *rest: Any) -> Any:
            headers.append(("X-Once", "yes"))
            return start_response(status, headers, *rest)

        return site.app(environ, start)

    async def added_asgi(scope: Any, receive: Any, send: Any) -> None:
        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"].append((b"x-once", b"yes"))
            await send(message)

        await site.app(scope, receive, sent)

    outer = added_wsgi if protocol == "wsgi" else added_asgi
    for _ in range(4):
        assert DRIVERS[protocol](outer, RequestSpec(SITEMAP)).header("x-once") == "yes"
    assert site.request(SITEMAP).header("x-once") is None


@pytest.mark.parametrize("path", ["/sitemap-2.xml", "/feed.xml", "/humans.txt", "/sitemap-routes-9.xml"])
@BOTH
def test_foreign_paths_stay_with_the_app(protocol: str, path: str) -> None:
    site = home(protocol, "/")
    ready(site)
    assert site.request(path).status == 404


@BOTH
@pytest.mark.parametrize("path", ["/feed.xml", "/humans.txt", "/sitemapped.xml"])
def test_foreign_page_is_looked_up_like_any_other_page(protocol: str, path: str) -> None:
    site = home(protocol, path)
    for _ in range(2):
        assert site.request(path).body == site.pages[path].body
    assert [page.path for page, _ in site.app.service.tracker.tracked_pages.values()] == [path]


@pytest.mark.parametrize("path", [SITEMAP, "/robots.txt", "/sitemap-posts-1.xml"])
@BOTH
def test_path_that_may_become_a_documents_is_looked_at_each_time(protocol: str, path: str) -> None:
    site = home(protocol, path)
    for _ in range(2):
        assert site.request(path).body == site.pages[path].body
    assert not site.app.service.tracker.tracked_pages


@BOTH
def test_queries_that_clients_invent_are_not_all_remembered(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready_documents, "MAX_READY_KEYS", 2)
    site = home(protocol, store=Counting())
    store, first = ready(site), site.request(SITEMAP)
    assert [site.request(SITEMAP, query=f"q={number}") for number in range(9)] == [first] * 9
    assert 0 < collection_sizes(site.app.service.sitemap_handler)["owner.ready._by_key"] <= 2
    assert store.calls == 0


@BOTH
def test_documents_that_were_dropped_for_lack_of_room_are_not_kept(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site_documents, "MAX_CACHE_BYTES", 0)
    site = home(protocol, sections={"posts": lambda: ["/posts/a"], "news": lambda: ["/news/a"]})
    index = site.locs()
    for loc in index:
        for _ in range(3):
            assert site.request(urlsplit(loc).path).status == 200
    table = site.app.service.app_routes.table
    gc.collect()
    assert sum(found.table is table for found in gc.get_objects() if type(found) is CachedDocument) == 1


# What makes it not ready


@BOTH
def test_what_was_seen_shows_at_once(protocol: str) -> None:
    site = home(protocol, "/", "/gone", store=Counting())
    ready(site)
    site.pages["/gone"] = Page(410)
    site.request("/gone")
    assert site.locs() == ["http://testserver/"]


@BOTH
def test_merged_observations_show_at_once(protocol: str) -> None:
    site = home(protocol, "/", "/gone", store=Counting())
    ready(site)
    site.pages["/gone"] = Page(410)
    site.visit("/gone")
    assert site.locs() == ["http://testserver/"]


@BOTH
def test_a_route_that_is_added_shows_at_once(protocol: str) -> None:
    site = home(protocol, store=Counting())
    ready(site)
    add(site, "/new")
    assert "http://testserver/new" in site.locs()


@BOTH
def test_cache_holds_if_the_map_was_read_for_another_site(protocol: str) -> None:
    site = home(protocol, store=Counting())
    ready(site)
    add(site, "/new")
    assert site.app.explain("/new").listed
    assert "http://testserver/new" in site.locs()


@BOTH
def test_map_that_was_read_for_another_host_counts_for_all(protocol: str) -> None:
    site = home(protocol, store=Counting(), allowed_hosts=["testserver", "other.example"])
    ready(site)
    add(site, "/new")
    assert site.request(SITEMAP, host="other.example").status == 200
    assert "http://testserver/new" in site.locs()


@BOTH
def test_map_is_checked_again_after_some_time(protocol: str) -> None:
    site = home(protocol, store=Counting())
    ready(site)
    site.clock.pass_(0.1)
    site.request(SITEMAP)
    add(site, "/new")
    site.clock.pass_(2 * url_map.RECHECK_SECONDS)
    assert "http://testserver/new" in site.locs()


@BOTH
def test_large_map_is_checked_once_a_second(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(url_map, "LARGE_APP_ROUTES", 0)
    site = home(protocol, store=Counting())
    ready(site)
    site.clock.pass_(0.1)
    site.request(SITEMAP)
    add(site, "/new")
    site.clock.pass_(0.1)
    assert "http://testserver/new" not in site.locs()
    site.clock.pass_(1)
    assert "http://testserver/new" in site.locs()


@BOTH
def test_the_store_is_read_again_after_a_second(protocol: str) -> None:
    site = home(protocol, store=Counting())
    store = ready(site)
    site.clock.pass_(responses.FRESH_SECONDS)
    site.request(SITEMAP)
    assert store.calls > 0


@BOTH
def test_one_request_refreshes_early_while_others_are_served(protocol: str) -> None:
    site = home(protocol, store=Counting())
    store = ready(site)
    begun = site.clock.now
    site.clock.pass_(responses.FRESH_SECONDS / 2)
    site.request(SITEMAP)
    assert store.calls > 0
    store.calls = 0
    site.clock.pass_(responses.FRESH_SECONDS / 2 - 0.01)
    site.request(SITEMAP)
    assert begun < site.clock.now < begun + responses.FRESH_SECONDS
    site.request(SITEMAP)
    assert store.calls == 0  # the other request has just validated it


def test_others_are_served_while_one_request_refreshes_early() -> None:
    document = CachedDocument(urlset([]), None, 0)
    table = home("wsgi").app.service.app_routes.table
    assert document.fresh_until(1000.0, 7) == 0
    document.mark_fresh(Freshness(7, 1000.0, 1001.0), table)
    assert document.fresh_until(1000.0, 7) == 1000.0 + responses.REVALIDATE_SECONDS
    assert [document.fresh_until(1000.6, 7) for _ in range(3)] == [0, 1001.0, 1001.0]
    assert document.fresh_until(1001.0, 7) == 0
    document.mark_fresh(Freshness(7, 1000.6, 1000.7), table)
    assert document.fresh_until(1000.6, 7) == 1000.7
    assert document.fresh_until(1000.6, 8) == 0
    document.expire()
    assert document.fresh_until(1000.6, 7) == 0


@BOTH
def test_a_clock_that_is_set_back_makes_nothing_ready(protocol: str) -> None:
    site = home(protocol, store=Counting())
    store = ready(site)
    site.clock.pass_(-100)
    site.request(SITEMAP)
    assert store.calls > 0


@BOTH
@pytest.mark.parametrize("max_age", [0, 300])
def test_nothing_is_ready_once_max_age_has_passed(protocol: str, max_age: int) -> None:
    dates = iter(range(1, 10))

    def page_date() -> Any:
        import datetime as dt

        return dt.date(2024, 1, next(dates))

    site = home(protocol, marks={"/": sitemap(lastmod=page_date)}, max_age=max_age)
    first = site.entries()
    assert (site.entries() == first) is (max_age > 0)
    site.clock.pass_(max_age)
    assert site.entries() != first


@BOTH
def test_nothing_is_cached_once_robots_txt_is_due(protocol: str) -> None:
    site = home(protocol, "/", "/shut", "/robots.txt", max_age=10)
    site.pages["/robots.txt"] = Page(headers=[("content-type", "text/plain")], body=b"User-agent: *\nDisallow:\n")
    assert len(site.locs()) == 2
    site.pages["/robots.txt"].body = b"User-agent: *\nDisallow: /shut\n"
    site.clock.pass_(10)
    assert site.locs() == ["http://testserver/"]


@BOTH
def test_nothing_is_ready_when_a_round_of_verify_is_due(protocol: str) -> None:
    site = home(protocol, store=Counting(), verify=True)
    store = ready(site)
    assert site.request(SITEMAP).status == 200
    assert store.calls == 0
    site.clock.pass_(60)
    assert site.request(SITEMAP).status == 200
    assert store.calls > 0


@BOTH
def test_what_another_worker_saves_shows_within_a_second(protocol: str, tmp_path: Path) -> None:
    first, second = (home(protocol, "/", "/gone", store=f"sqlite:///{tmp_path}/shared.sqlite3") for _ in range(2))
    for _ in range(3):
        assert len(first.locs()) == 2
    second.pages["/gone"] = Page(410)
    second.visit("/gone")
    assert second.locs() == ["http://testserver/"]
    first.clock.pass_(responses.FRESH_SECONDS)
    assert first.locs() == ["http://testserver/"]
    for site in (first, second):
        site.app.close()


@BOTH
def test_flush_lets_what_another_worker_saved_show_at_once(protocol: str) -> None:
    store = MemoryStore()
    first, second = (home(protocol, "/", "/gone", store=store) for _ in range(2))
    assert len(first.locs()) == 2
    second.pages["/gone"] = Page(410)
    second.visit("/gone")
    first.app.flush()
    assert first.locs() == ["http://testserver/"]


@BOTH
def test_failing_store_keeps_the_last_good_document(protocol: str) -> None:
    class Failing(MemoryStore):
        works = True

        def version(self, site: str) -> int:
            if not self.works:
                raise StoreError("it is down")
            return super().version(site)

    store = Failing()
    site = home(protocol, store=store)
    first = site.request(SITEMAP)
    store.works = False
    for _ in range(3):
        site.clock.pass_(responses.FRESH_SECONDS)
        assert site.request(SITEMAP) == first


@BOTH
def test_a_fault_of_the_look_leaves_the_answer_to_be_made(protocol: str) -> None:
    faults = []

    def clock() -> float:
        if faults:
            raise faults.pop()
        return 1_750_000_000.0

    site = home(protocol, clock=clock)
    first = site.request(SITEMAP)
    faults.append(RuntimeError("no time"))
    assert site.request(SITEMAP) == first
    assert not faults


def test_document_that_another_one_replaces_is_fresh_no_more() -> None:
    service = home("wsgi").app.service
    documents, table = (
        SiteDocuments(MemoryStore(), service.options, BaseURL("http://testserver")),
        service.app_routes.table,
    )
    replaced = []
    for line in (b"<url>1</url>", b"<url>2</url>"):
        documents.replace_sections([SectionDocument("routes-1", [compress_chunk(line, 1, None)])])
        replaced.append(documents.assemble(SITEMAP, table, Freshness(0, 1000.0, 2000.0)))
    assert [document is not None and document.fresh_until(1000.1, 0) for document in replaced] == [0, 1000.5]


@BOTH
def test_a_fault_of_counting_a_visit_leaves_the_document_as_it_is(protocol: str) -> None:
    readings = itertools.count()

    def clock() -> float:
        # The background thread reads the clock, too, at any time.
        if threading.current_thread() is threading.main_thread() and next(readings) == last_reading:
            raise RuntimeError("no time")
        return 1_750_000_000.0

    last_reading, site = -1, home(protocol, clock=clock)
    asked = RequestSpec(SITEMAP, headers=[("user-agent", "Googlebot/2.1")])
    first = site.request(asked)
    last_reading = next(readings) + 2  # one to find the document in memory, one to count the visit
    assert site.request(asked) == first
    assert next(readings) == last_reading + 1


# Whose document it is


@BOTH
def test_threads_get_the_documents_of_their_own_sites(protocol: str) -> None:
    site = home(protocol, allowed_hosts=["a.example", "b.example"], store=Counting())

    def send_request(number: int) -> bool:
        host = "ab"[number % 2] + ".example"
        root = "/below" if number % 3 == 0 else ""
        return site.locs(host=host, root=root) == [f"http://{host}{root}/"]

    with ThreadPoolExecutor(8) as crowd:
        assert all(crowd.map(send_request, range(120)))


# What tells that nothing waits, and nothing was written


def test_buffer_is_not_idle_while_responses_wait_or_are_merged() -> None:
    idle: list[bool] = []
    buffer = ResponseBuffer(lambda _: idle.append(buffer.is_idle), lambda _: True)
    response = CapturedResponse(Site("http", "example.com"), "/", at=0.0, status=200, body=b"Hello")
    assert buffer.is_idle
    buffer.record_sample(response)
    assert not buffer.is_idle
    buffer.flush()
    buffer.record(response)
    assert not buffer.is_idle
    buffer.flush()
    assert idle == [False, False]
    assert buffer.is_idle
    buffer.close()
