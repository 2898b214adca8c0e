"""Bounds, and the corners that other tests do not come to: what is full, what fails, what was there before."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import suppress
from typing import Any

import flask
import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Host as HostRoute
from starlette.routing import Mount, Route

from sitemap_middleware import SitemapMiddleware, StoreError, hosts
from sitemap_middleware.adapters import in_process_asgi_client
from sitemap_middleware.captured_response import MAX_HTML_BYTES, CapturedResponse
from sitemap_middleware.dates import w3c_from_timestamp
from sitemap_middleware.evidence import response_parser
from sitemap_middleware.evidence.observations import HtmlFacts, Observation
from sitemap_middleware.evidence.response_parser import ResponseParser
from sitemap_middleware.hosts import MAX_FOREIGN_HOSTS, MAX_ROOTS
from sitemap_middleware.hosts import MAX_HOSTS as NAMES
from sitemap_middleware.models import Site
from sitemap_middleware.observation.background_saving import MAX_PENDING_BODY_BYTES, ResponseBuffer
from sitemap_middleware.observation.sampling_schedule import BodySampler
from sitemap_middleware.rendering.publisher import MAX_SITES
from sitemap_middleware.stores.sqlite import store as sqlite_module
from sitemap_middleware.stores.sqlite.memory import MemoryStore
from sitemap_middleware.stores.sqlite.store import SQLiteStore

from ..support.collection_sizes import collection_sizes
from ..support.sample_sites import Clock, Page, SampleSite
from ..support.wire import RequestSpec, asgi, wsgi

BOTH = pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
SITE = Site("https", "example.com")
HTML = [("content-type", "text/html")]


def response_of(path: str = "/", status: int = 200, body: bytes | None = None) -> CapturedResponse:
    return CapturedResponse(SITE, path, at=1000, status=status, headers=HTML, body=body)


# The buffer


def test_invalid_request_displaces_no_pending_response() -> None:
    merged: list[CapturedResponse] = []
    buffer = ResponseBuffer(merged.extend, lambda _: True, interval=3600)
    buffer.record(response_of())
    buffer.record(response_of(status=400))
    buffer.flush()
    assert [observation.status for observation in merged] == [200]
    buffer.close()


def test_bodies_that_wait_are_bounded_in_bytes() -> None:
    merged: list[CapturedResponse] = []
    buffer = ResponseBuffer(merged.extend, lambda _: True, interval=3600)
    for number in range(40):
        buffer.record_sample(response_of(f"/{number}", body=b"x" * (MAX_PENDING_BODY_BYTES // 32)))
    assert buffer.dropped == 8
    buffer.flush()
    assert len(merged) == 32


def test_bodies_that_wait_are_bounded_in_number() -> None:
    buffer = ResponseBuffer(lambda _: None, lambda _: True, capacity=10, interval=3600)
    for number in range(12):
        buffer.record_sample(response_of(f"/{number}", body=b""))
    assert (buffer.pending, buffer.dropped) == (10, 2)


def test_body_whose_merge_failed_stays_pending() -> None:
    batches: list[list[CapturedResponse]] = []

    def merge(batch: list[CapturedResponse]) -> None:
        batches.append(batch)
        if len(batches) == 1:
            raise StoreError("down")

    buffer = ResponseBuffer(merge, lambda _: True, interval=3600)
    buffer.record_sample(response_of(body=b"x"))
    with pytest.raises(StoreError):
        buffer.flush()
    buffer.flush()
    assert [response.body for response in batches[1]] == [b"x"]


def test_starting_twice_starts_one_thread() -> None:
    buffer = ResponseBuffer(lambda _: None, lambda _: True, interval=3600)
    before = set(threading.enumerate())
    buffer.ensure_thread()
    buffer.ensure_thread()
    assert len(set(threading.enumerate()) - before) == 1
    buffer.close()


def test_observations_wait_for_the_next_sitemap_if_no_thread_can_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: Any) -> None:
        raise RuntimeError("can't start new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    merged: list[CapturedResponse] = []
    buffer = ResponseBuffer(merged.extend, lambda _: True)
    buffer.record(response_of())
    buffer.close()
    buffer.flush()
    assert len(merged) == 1


def test_the_middleware_may_be_constructed_in_any_thread() -> None:
    middlewares: list[Any] = []
    thread = threading.Thread(
        target=lambda: middlewares.append(SitemapMiddleware(flask.Flask("x").wsgi_app, store="memory://"))
    )
    thread.start()
    thread.join()
    assert middlewares


# Bodies


def test_only_the_beginning_of_an_oversized_body_is_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sample = SampleSite("wsgi", {"/": Page()})
    many = memoryview(b"x" * 64).cast("I")
    for chunks in (
        [b"x" * MAX_HTML_BYTES, b"x", b"x"],
        [b"x" * 2 * MAX_HTML_BYTES],
        [many, b"x"],
        [None, b"x"],
        ["text"],
    ):
        request: Any = _Request()
        page = sample.app.service.observe(request)
        assert page is not None
        observer = page.on_response_start(200, HTML, request)
        assert observer is not None
        assert observer.chunks is not None
        for chunk in chunks:
            observer.on_chunk(chunk)
        observer.on_end()
        observer.on_end()
        sample.clock.pass_(100)
    sample.app.flush()
    assert sample.locs() == ["http://testserver/"]
    assert not caplog.records, "a body that is not bytes is the app's fault, and for the server to refuse"


class _Request:
    """A request for the home page, as the service reads it."""

    key = ("/", "testserver", "http", "", "GET", "")
    is_forwarded = False
    fields, field_count, header_count, user_agent = (), 0, 0, ""
    method, scheme, host, root, path = "GET", "http", "testserver", "", "/"
    conditions = ("GET", None, None, None)

    routing_headers = ()

    def ignore_reason(self) -> None:
        """Counts."""

    def visitor(self, _: int) -> int:
        return 1


def test_readings_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_parser, "MAX_CACHED_HTML", 4)
    reader = ResponseParser()
    for number in range(10):
        assert reader.parse(response_of(body=b"<p>%d" % number), "/", "/", "https://example.com/")
    assert sum(collection_sizes(reader).values()) == 4


# Sites, robots, routes


@BOTH
def test_sites_in_memory_are_limited(protocol: str) -> None:
    sample = SampleSite(protocol, {"/": Page()}, allowed_hosts=".example.com")
    for number in range(MAX_SITES + 5):
        assert sample.locs(host=f"s{number}.example.com") == [f"http://s{number}.example.com/"]
    assert sample.app.stats()["listed"] == MAX_SITES


@BOTH
def test_made_up_hosts_are_evicted_and_get_the_sites_sitemap(protocol: str) -> None:
    sample = SampleSite(protocol, {"/": Page()}, base_url="https://example.com/")
    for number in range(2 * MAX_FOREIGN_HOSTS):
        assert sample.request("/", host=f"s{number}.example").status == 200
        sample.request("/", host=f"{number}..no.host")  # some frameworks answer it, some refuse
    assert sample.locs(host="s0.example") == ["https://example.com/"]
    assert max(collection_sizes(sample.app.service.site_resolver).values()) <= MAX_FOREIGN_HOSTS
    assert sample.app.explain("/").listed, "of the site that was asked for under other names alone"


@BOTH
def test_a_robots_txt_that_fails_is_the_apps_to_answer(protocol: str) -> None:
    page = Page(200, [("content-type", "text/plain")], b"User-agent: *\n")
    sample = SampleSite(protocol, {"/": Page(), "/robots.txt": page})
    page.headers = [("content-type", "text/plain"), ("content-length", "many")]
    page.status = "broken"  # type: ignore[assignment] # no framework takes this
    with pytest.raises((TypeError, ValueError, AssertionError)):
        sample.request("/robots.txt")


def test_hanging_robots_txt_does_not_delay_the_sitemap_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(in_process_asgi_client, "PROBE_TIMEOUT_SECONDS", 0.05)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        import asyncio

        assert (await receive())["type"] == "http.request"
        if scope["path"] == "/robots.txt":
            await send({"type": "http.response.debug", "info": {}})
            await asyncio.sleep(3600)

    site = SitemapMiddleware(app, store="memory://", base_url="https://example.com", include="/")
    assert b"<loc>https://example.com/</loc>" in asgi(site, RequestSpec("/sitemap.xml")).body


def test_a_url_map_that_cannot_be_read_leaves_the_routes_of_before(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app = flask.Flask("x", static_folder=None)
    app.add_url_rule("/", view_func=lambda: "home", endpoint="home")
    site = SitemapMiddleware(app.wsgi_app, store="memory://", verify=False)
    assert wsgi(site, RequestSpec("/sitemap.xml")).status == 200

    def fail() -> None:
        raise RuntimeError("half-built")

    app.add_url_rule("/more", view_func=lambda: "more", endpoint="more")
    monkeypatch.setattr(app.url_map, "iter_rules", fail)
    assert wsgi(site, RequestSpec("/sitemap.xml")).status == 200
    assert "could not be read" in caplog.text
    fresh = SitemapMiddleware(app.wsgi_app, store="memory://")
    assert wsgi(fresh, RequestSpec("/sitemap.xml")).status == 404


def test_missing_routes_are_explained_with_the_fix() -> None:
    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", [("Content-Type", "text/html")])
        return []

    assert "routes=app" in wsgi(SitemapMiddleware(app, store="memory://"), RequestSpec("/sitemap.xml")).text


# Explaining


@BOTH
def test_paths_that_no_loc_can_name_are_explained(protocol: str) -> None:
    sample = SampleSite(protocol, {"/": Page(), "/a/../b": Page()})
    assert sample.locs() == ["http://testserver/"]
    for path, reason in (
        ("/a\x00", "no loc can be written"),
        ("/a/../b", "no loc"),
        ("https://example.com/about", "it is no path: give one from the first slash on"),
        ("/" + "x" * 3000, "2,048 characters"),
    ):
        explanation = sample.app.explain(path)
        assert not explanation.listed
        assert reason in str(explanation)
        assert "loc:" not in str(explanation)


def test_what_is_explained_is_of_base_urls_site() -> None:
    sample = SampleSite("wsgi", {"/": Page()}, base_url="https://example.com", allowed_hosts="example.org")
    sample.request("/", host="example.org")
    assert sample.app.explain("/").loc == "https://example.com/"
    sample.request("/", host="example.com")
    assert sample.app.explain("/").loc == "https://example.com/"


def test_explain_before_any_request_uses_the_declared_root_path() -> None:
    app = Starlette(routes=[Route("/about", lambda _: None)])
    app.root_path = "/shop"  # type: ignore[attr-defined] # as FastAPI's
    site = SitemapMiddleware(app, store="memory://", base_url="https://example.com")
    assert site.explain("/about").loc == "https://example.com/shop/about"


def test_a_page_whose_route_is_gone_is_not_listed() -> None:
    store = MemoryStore()
    store.merge("https://example.com", [Observation("/old", "/old", 1000, 200, "text/html")])
    sample = SampleSite("wsgi", {"/": Page()}, base_url="https://example.com", store=store)
    assert sample.locs() == ["https://example.com/"]
    assert "no static route" in sample.app.explain("/old").reason


def test_stated_time_shared_by_most_pages_is_a_deployment_time() -> None:
    clock, store = Clock(), MemoryStore()
    built = w3c_from_timestamp(int(clock()) - 10_000)
    for number in range(3):
        reading = HtmlFacts(number, stated_date=built)
        store.merge(
            "https://example.com", [Observation(f"/{number}", "/", int(clock()), 200, "text/html", html=reading)]
        )
    sample = SampleSite(
        "wsgi", {f"/{n}": Page() for n in range(3)}, base_url="https://example.com", store=store, clock=clock
    )
    assert list(sample.entries().values()) == [{}, {}, {}]
    assert "most pages state the same date" in str(sample.app.explain("/0").lastmod_source)


# SQLite


def test_a_file_that_another_process_holds_locked_is_a_store_error(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_module, "BUSY_TIMEOUT_SECONDS", 0.01)
    file = tmp_path / "pages.sqlite3"
    holder = sqlite3.connect(file, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    store = SQLiteStore(file)
    with pytest.raises(StoreError, match="locked"):
        store.pages("https://example.com")
    holder.close()
    assert store.pages("https://example.com") == []


def test_a_learned_path_not_yet_seen_is_explained_as_such() -> None:
    sample = SampleSite("wsgi", {"/p/{x}": Page()}, learn="/p/{x}")
    assert "no visit has shown that it is a page" in sample.app.explain("/p/1").reason


def test_a_path_named_by_learn_is_listed_like_any_other() -> None:
    sample = SampleSite("wsgi", {"/": Page()}, learn="/")
    assert sample.locs() == ["http://testserver/"]


def test_document_request_without_a_method_is_left_to_the_app() -> None:
    class Lacking(_Request):
        path = "/sitemap.xml"

        @property
        def method(self) -> str:
            raise KeyError("method")

    assert not SampleSite("wsgi", {"/": Page()}).app.service.sitemap_handler.handles(Lacking())


def test_a_page_of_no_stated_length_rests_until_it_is_due() -> None:
    sampler, page = BodySampler(), response_of()
    sampler.schedule(page)
    assert not sampler.is_due(page)


@pytest.mark.parametrize("field", [(), ([], "1"), None], ids=["an empty pair", "a name that is a list", "no pair"])
def test_malformed_header_gives_no_length(field: Any) -> None:
    sampler, page = BodySampler(), response_of()
    page.headers = [field, ("content-length", "9")]
    sampler.schedule(page)
    assert not sampler.is_due(page)
    assert sampler.is_due(CapturedResponse(SITE, "/", at=1000, status=200, headers=[("content-length", "9")]))


# Made-up requests


MANY = 3000


def rows(store: Any) -> int:
    """All rows of a store's tables."""
    with store.open_connection() as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return sum(connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0] for table in tables)


def stores(tmp_path: Any) -> dict[str, Any]:
    return {"memory": MemoryStore(), "SQLite": SQLiteStore(tmp_path / "pages.sqlite3")}


INVENTED: dict[str, Any] = {
    "hosts": lambda n: {"host": f"s{n}.evil.example"},
    "hosts that are none": lambda n: {"host": f"s{n}..example"},
    "hosts below a wildcard": lambda n: {"host": f"s{n}.example.net"},
    "ports": lambda n: {"host": f"example.com:{n + 1}"},
    "ports of a development machine": lambda n: {"host": f"localhost:{n + 1}"},
    "capitals of the host": lambda n: {
        "host": "".join(c.upper() if n >> i & 1 else c for i, c in enumerate("example.com"))
    },
    "root paths": lambda n: {"root": f"/tenant{n}"},
    "root paths for strange hosts": lambda n: {"root": f"/tenant{n}", "host": f"s{n}.evil.example"},
    "methods": lambda n: {"method": f"METHOD{n}"},
    "paths": lambda n: {"path": f"/p/{n}"},
    "paths of no route": lambda n: {"path": f"/no/{n}"},
    "queries": lambda n: {"query": f"q={n}"},
    "user agents": lambda n: {"headers": [("user-agent", f"agent {n}")]},
    "names of headers": lambda n: {"headers": [(f"x-thing-{n}", "1")]},
    "languages": lambda n: {"headers": [("accept", f"text/html;level={n}")]},
}


@pytest.mark.uncovered
@pytest.mark.parametrize("store_kind", ["memory", "SQLite"])
@pytest.mark.parametrize("base_url", ["https://example.com", None])
@pytest.mark.parametrize("invented", INVENTED)
def test_made_up_urls_fill_neither_memory_nor_store(
    invented: str, base_url: str | None, store_kind: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "MAX_UNNAMED_SITES", 100)
    store = stores(tmp_path)[store_kind]
    sample = SampleSite(
        "wsgi",
        {"/": Page(), "/p/{x}": Page(404)},
        base_url=base_url,
        allowed_hosts=["*.example.net", *(["example.com"] if base_url else [])],
        store=store,
        verify=False,
        learn="/p/{x}",
    )

    def send_request(number: int) -> None:
        changes = {"path": "/", "host": "example.com"} | INVENTED[invented](number)
        for path in (changes.pop("path"), "/sitemap.xml", "/robots.txt")[: 3 if number % 10 == 0 else 1]:
            with suppress(Exception):
                wsgi(sample.app, RequestSpec(path, **changes), validate=False)
        sample.clock.pass_(1)
        if number % 100 == 0:
            sample.app.flush()

    sample.app.service.tracker.buffer.interval = 3600  # merged only by this test
    for number in range(MANY):
        send_request(number)
    sample.app.flush()
    before = collection_sizes(sample.app.service)
    grown = {place: size for place, size in before.items() if size > 2 * NAMES}
    assert grown == {}, "more than any of these may hold"
    assert rows(store) <= 10 * (MAX_ROOTS if "root" in invented else 110)


def test_made_up_tenants_below_a_mount_create_no_sites(tmp_path: Any) -> None:
    store = SQLiteStore(tmp_path / "pages.sqlite3")

    async def page(request: Any) -> HTMLResponse:
        return HTMLResponse("A page.")

    inner = Starlette(routes=[Route("/", page), Route("/about", page)])
    site = SitemapMiddleware(inner, store=store, base_url="https://example.com", verify=False)
    app = Starlette(routes=[Mount("/fixed", app=site), Mount("/{tenant}", app=site)])
    for number in range(300):
        asgi(app, RequestSpec(f"/tenant{number}/about"))
        assert asgi(app, RequestSpec(f"/tenant{number}/sitemap.xml")).status == 404
    site.flush()
    assert rows(store) < 20
    assert asgi(app, RequestSpec("/fixed/about")).status == 200
    assert b"https://example.com/fixed/about" in asgi(app, RequestSpec("/fixed/sitemap.xml")).body


def test_parametrised_host_route_keeps_the_servers_root_path() -> None:
    async def page(request: Any) -> HTMLResponse:
        return HTMLResponse("A page.")

    inner = Starlette(routes=[Route("/", page)])
    site = SitemapMiddleware(inner, store="memory://", base_url="https://example.com", verify=False)
    app = Starlette(routes=[HostRoute("{sub}.example.com", app=site)])
    assert b"/shop/</loc>" in asgi(app, RequestSpec("/sitemap.xml", host="www.example.com", root="/shop")).body


def test_only_so_many_root_paths_become_sites_beside_the_declared_one() -> None:
    inner = Starlette(routes=[Route("/", lambda _: None)])
    inner.root_path = "/declared"  # type: ignore[attr-defined] # as FastAPI's
    site = SitemapMiddleware(inner, store="memory://", base_url="https://example.com", verify=False, robots=False)
    for number in range(MAX_ROOTS + 10):
        asgi(site, RequestSpec("/sitemap.xml", root=f"/r{number}"))
    answer = asgi(site, RequestSpec("/sitemap.xml", root="/another"))
    assert answer.status == 404
    assert "root path" in answer.text
    assert asgi(site, RequestSpec("/sitemap.xml", root="/r1")).status == 200
    assert asgi(site, RequestSpec("/sitemap.xml", root="/declared")).status == 200
    assert asgi(site, RequestSpec("/sitemap.xml", root="/" + "x" * 300)).status == 404


def test_sites_in_one_store_are_limited_across_processes(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "MAX_UNNAMED_SITES", 20)
    store = MemoryStore()
    for process in range(5):
        sample = SampleSite(
            "wsgi", {"/": Page()}, allowed_hosts=["*.example.com", "example.com"], store=store, verify=False
        )
        for number in range(10):
            host = f"s{process}-{number}.example.com"
            sample.request("/", host=host)
            sample.app.flush()
            assert (sample.locs(host=host) != []) is (process < 2)
        assert sample.locs(host="s0-0.example.com") == ["http://s0-0.example.com/"]
        assert sample.locs(host="example.com") == ["http://example.com/"]
    assert store.version("http://s4-4.example.com") == 0
    assert len([message for message in caplog.messages if "too many sites" in message]) == 3
