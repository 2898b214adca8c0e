"""What repeats itself within a second is passed over, and nothing is lost by that."""

from __future__ import annotations

import asyncio
import tracemalloc
import warnings
from collections.abc import Collection, Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.adapters.wsgi_request import request_of
from sitemap_middleware.captured_response import CapturedResponse
from sitemap_middleware.evidence.html_facts import KEPT_BODY_BYTES, MAX_HTML_BYTES
from sitemap_middleware.models import Site
from sitemap_middleware.observation import tracked_page_cache
from sitemap_middleware.observation.observer import Observer, status_code
from sitemap_middleware.request_filter.reasons import COOKIE
from sitemap_middleware.stores.sqlite.memory import MemoryStore

from ...support.collection_sizes import collection_sizes
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
    monkeypatch.setattr(tracked_page_cache, "MAX_TRACKED_PAGES", 3)
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
def test_newer_answer_replaces_another_of_the_same_second(protocol: str) -> None:
    sample = SampleSite(protocol, {"/": Page(), "/about": Page()})
    rested(sample, "/", "/about")
    sample.clock.pass_(60)
    sample.request("/")
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
    assert pending(sample) == 0
    assert sum(size for place, size in collection_sizes(sample.app.service.tracker).items() if "page" in place) == 0
    sample.request("/")
    assert pending(sample)


@BOTH
def test_large_headers_that_claim_another_url_take_no_memory(protocol: str) -> None:
    sample = SampleSite(protocol, {"/": Page()})
    sample.request(RequestSpec("/", headers=[("x-original-url", "/a" * 1500), ("x-rewrite-url", "/b" * 1500)]))
    assert pending(sample) == 0
    sample.request(RequestSpec("/", headers=[("x-original-url", "/a" * 1000)]))
    assert pending(sample)


# One page, response by response

SITE = Site("https", "example.com")
ENVIRON = {
    "PATH_INFO": "/",
    "HTTP_HOST": "example.com",
    "wsgi.url_scheme": "https",
    "SCRIPT_NAME": "",
    "REQUEST_METHOD": "GET",
    "QUERY_STRING": "",
}
OK = "200 OK"


class OnePage:
    """A page of a WSGI app, whose responses are observed without the app. `saved` has what is captured."""

    def __init__(self, **environ: str) -> None:
        def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
            raise AssertionError("no request is sent to it")

        self.clock = Clock()
        self.site: Any = SitemapMiddleware(app, store="memory://", include="/", clock=self.clock)
        self.tracker = self.site.service.tracker
        self.tracker.buffer.interval = 3600.0
        self.page = self.tracker.track(None, SITE, "/", 0, is_foreign_host=False)
        self.environ = {**ENVIRON, **environ}

    def start(self, status: Any = OK, headers: Any = HTML, previous: Observer | None = None, **changed: str) -> Any:
        request = request_of({**self.environ, **changed}, self.site)
        return self.page.on_response_start(status, headers, request, previous)

    def answer(self, *chunks: Any, **changes: Any) -> None:
        observer = self.start(**changes)
        if observer is not None:
            for chunk in chunks:
                observer.on_chunk(chunk)
            observer.on_end()

    def saved(self) -> list[CapturedResponse]:
        """What was captured since the last call."""
        batch: list[CapturedResponse] = self.tracker.buffer.take_batch()
        return batch

    def statuses(self) -> list[int]:
        return [response.status for response in self.saved()]

    def was_sampled(self, **changes: Any) -> bool:
        """Whether the body of one more response is read."""
        self.answer(b"<p>Tea", **changes)
        return any(response.body is not None for response in self.saved())


@pytest.fixture
def one_page(caplog: pytest.LogCaptureFixture) -> Iterator[OnePage]:
    one_page = OnePage()
    yield one_page
    one_page.site.close()
    assert not caplog.records, "no fault was logged"


def test_response_is_saved_at_once_and_its_body_at_its_end(one_page: OnePage) -> None:
    observer = one_page.start(HTTP_X_ORIGINAL_URL="/other")
    (start,) = one_page.saved()
    observer.on_chunk(b"<p>Tea")
    observer.on_end()
    (sample,) = one_page.saved()
    for response, body in ((start, None), (sample, b"<p>Tea")):
        expected = CapturedResponse(
            SITE, "/", at=one_page.clock(), status=200, headers=HTML, body=body, host="example.com"
        )
        expected.routing_headers = (("HTTP_X_ORIGINAL_URL", "/other"),)
        expected.visitor = request_of(ENVIRON, one_page.site).visitor(200)
        names = set(CapturedResponse.__slots__) - {"buffer_key"} - ({"is_truncated"} if body is None else set())
        assert {name: getattr(response, name) for name in names} == {name: getattr(expected, name) for name in names}


@pytest.mark.parametrize(
    ("chunks", "body"),
    [
        ([], b""),
        ([b"<p>", b"", b"Tea"], b"<p>Tea"),
        ([bytearray(b"<p>"), memoryview(b"Tea")], b"<p>Tea"),
        ([memoryview(b"<p>Tea!!").cast("I")], b"<p>Tea!!"),
        ([b"<p>", "Tea"], None),
        ([b"<p>", None, b"Tea"], None),
    ],
    ids=["nothing", "bytes", "buffers", "a buffer of numbers", "text", "nothing within"],
)
def test_sample_is_the_whole_body_if_all_of_it_is_bytes(
    one_page: OnePage, chunks: list[Any], body: bytes | None
) -> None:
    one_page.answer(*chunks)
    assert [response.body for response in one_page.saved()] == ([None] if body is None else [None, body])


def test_buffer_that_the_app_uses_again_is_copied(one_page: OnePage) -> None:
    chunk = bytearray(b"<p>Tea")
    observer = one_page.start()
    observer.on_chunk(chunk)
    chunk[:] = b"      "
    observer.on_end()
    assert [response.body for response in one_page.saved()] == [None, b"<p>Tea"]


@pytest.mark.parametrize("kind", [bytes, bytearray])
@pytest.mark.parametrize(
    "sizes",
    [
        [MAX_HTML_BYTES],
        [MAX_HTML_BYTES - 1, 1],
        [MAX_HTML_BYTES + 1],
        [MAX_HTML_BYTES, 1],
        [MAX_HTML_BYTES, 5, 5],
        [KEPT_BODY_BYTES - 5, MAX_HTML_BYTES],
    ],
    ids=str,
)
def test_of_a_body_that_is_too_large_the_beginning_is_kept(
    one_page: OnePage, kind: type[Any], sizes: list[int]
) -> None:
    chunks = [bytes([65 + number]) * size for number, size in enumerate(sizes)]
    one_page.answer(*map(kind, chunks))
    whole = b"".join(chunks)
    is_truncated = len(whole) > MAX_HTML_BYTES
    sample = one_page.saved()[-1]
    assert sample.body == (whole[:KEPT_BODY_BYTES] if is_truncated else whole)
    assert sample.is_truncated is is_truncated


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_memory_for_a_huge_chunk_does_not_grow_with_it(one_page: OnePage, kind: type[Any]) -> None:
    chunk = kind(16 * MAX_HTML_BYTES)
    observer = one_page.start()
    observer.on_chunk(b"<p>")
    tracemalloc.start()
    try:
        observer.on_chunk(chunk)
        assert tracemalloc.get_traced_memory()[1] < 4 * MAX_HTML_BYTES
    finally:
        tracemalloc.stop()


class Pairs(Collection[Any]):
    """Header pairs that can be read again."""

    def __init__(self, *pairs: Any) -> None:
        self._pairs = pairs

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)

    def __contains__(self, pair: object) -> bool:
        return pair in self._pairs


class Pair(tuple[str, str]):
    """A pair of a framework's own."""

    __slots__ = ()


PAIR = ("content-type", "text/html")


@pytest.mark.parametrize(
    ("headers", "is_observed"),
    [
        ([PAIR], True),
        ((PAIR,), True),
        ([list(PAIR), PAIR], True),
        ([], True),
        (Pairs(PAIR), True),
        ([Pair(PAIR)], True),
        ([PAIR, Pairs(*PAIR)], False),
        ([PAIR, Pair(PAIR)], True),
        (iter([PAIR]), False),
        ([iter(PAIR)], False),
        (Pairs(PAIR, iter(PAIR)), False),
        (dict([PAIR]), False),
        ("headers", False),
        (b"headers", False),
        (["ab"], False),
        (None, False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_headers_that_can_be_read_only_once_are_left_to_the_server(
    one_page: OnePage, headers: Any, *, is_observed: bool
) -> None:
    assert (one_page.start(headers=headers) is not None) is is_observed
    assert bool(one_page.saved()) is is_observed
    if hasattr(headers, "__next__"):
        assert next(headers) == PAIR, "it was not read here"


@pytest.mark.parametrize(
    ("status", "code"),
    [("404 Not Found", 404), ("404", 404), (404, 404), ("x", 0), (None, 0), (b"404", 0), ("40", 40), (4.04, 0)],
)
def test_status_is_a_number_or_begins_with_one(one_page: OnePage, status: Any, code: int) -> None:
    assert status_code(status) == code
    one_page.start(status)
    assert one_page.statuses() == ([404] if code == 404 else [])


@pytest.mark.parametrize("now", [-1.0, 0.0, 253_402_300_800.0, float("inf"), float("nan")])
def test_response_at_a_time_that_cannot_be_written_is_not_recorded(
    now: float, caplog: pytest.LogCaptureFixture
) -> None:
    one_page = OnePage()
    one_page.clock.now = now
    one_page.start()
    assert one_page.statuses() == []
    (record,) = caplog.records
    assert record.getMessage() == "clock= must return POSIX seconds; further faults like this are not logged"
    assert record.exc_info is not None
    assert repr(record.exc_info[1]) == f"ValueError({now})"


@pytest.mark.parametrize("now", [0.5, 253_402_300_799.0])
def test_response_at_a_time_that_can_be_written_is_recorded(one_page: OnePage, now: float) -> None:
    one_page.clock.now = now
    one_page.start()
    assert one_page.statuses() == [200]


def test_clock_that_leaves_the_calendar_does_not_move_a_recorded_response(caplog: pytest.LogCaptureFixture) -> None:
    one_page = OnePage()
    one_page.start("404 Not Found")
    (first,) = one_page.saved()
    before = first.at
    one_page.clock.now = 253_402_300_800.0
    one_page.start("404 Not Found")
    assert (one_page.saved(), first.at) == ([], before)
    assert len(caplog.records) == 1


@pytest.mark.parametrize("changed", ["status", "headers", "host", "routing headers"])
def test_another_response_within_the_second_is_captured(one_page: OnePage, changed: str) -> None:
    one_page.start("404 Not Found")
    one_page.start("404 Not Found")
    assert one_page.tracker.repeated == 1
    assert len(one_page.saved()) == 1
    if changed == "status":
        one_page.start("410 Gone")
    elif changed == "headers":
        one_page.start("404 Not Found", [*HTML, ("x-robots-tag", "noindex")])
    elif changed == "host":
        one_page.start("404 Not Found", HTTP_HOST="www.example.com")
    else:
        one_page.clock.pass_(1)
        one_page.start("404 Not Found", HTTP_X_ORIGINAL_URL="/other")
    (response,) = one_page.saved()
    assert (response.status, response.host) == (
        410 if changed == "status" else 404,
        "www.example.com" if changed == "host" else "example.com",
    )
    assert bool(response.routing_headers) is (changed == "routing headers")
    assert one_page.tracker.repeated == 1


def test_repeated_response_is_recorded_once_in_each_second(one_page: OnePage) -> None:
    one_page.clock.now = 1000.25
    times = []
    for _ in range(8):
        one_page.start("404 Not Found")
        times += [response.at for response in one_page.saved()]
        one_page.clock.pass_(0.25)
    assert times == [1000.25, 1001.0, 1002.0]
    assert one_page.tracker.repeated == 5


def test_clock_that_is_set_back_has_the_response_captured_again(one_page: OnePage) -> None:
    one_page.start("404 Not Found")
    one_page.saved()
    one_page.clock.pass_(-0.25)
    one_page.start("404 Not Found")
    assert [response.at for response in one_page.saved()] == [one_page.clock()]


def test_latest_visitor_of_a_repeated_response_counts(one_page: OnePage) -> None:
    visitors = []
    for agent in ("Ada", "Ben"):
        one_page.start("403 Forbidden", HTTP_USER_AGENT=agent)
        visitors += [response.visitor for response in one_page.saved()]
        one_page.clock.pass_(1)
    assert len(set(visitors)) == 2


def test_ignored_requests_are_counted_each(one_page: OnePage) -> None:
    one_page.answer()
    one_page.saved()
    ignored = one_page.tracker.ignored
    for count in (1, 2, 3):
        one_page.clock.pass_(1)
        one_page.answer(HTTP_COOKIE="a=b")
        assert ignored.counts[COOKIE.reason] == count
        assert sum(ignored.counts.values()) == count
    assert ignored.summary("/", known=True) is not None, "explain names the reason"
    one_page.answer(HTTP_AUTHORIZATION="Basic YQ==")
    assert sum(ignored.counts.values()) == 4
    assert one_page.saved() == []


def test_body_is_sampled_at_first_and_when_it_is_due(one_page: OnePage) -> None:
    assert one_page.was_sampled()
    for seconds, is_sampled in ((1, False), (1, False), (2.5, False), (0.5, True), (4, False), (1, True)):
        one_page.clock.pass_(seconds)
        assert one_page.was_sampled() is is_sampled, seconds


@pytest.mark.parametrize("changed", [("content-length", "7"), ("content-type", "application/xhtml+xml")])
def test_body_of_another_length_or_type_is_sampled_at_once(one_page: OnePage, changed: tuple[str, str]) -> None:
    headers = [("content-length", "6"), ("content-type", "text/html")]
    assert one_page.was_sampled(headers=headers)
    assert not one_page.was_sampled(headers=headers)
    assert one_page.was_sampled(headers=[*(pair for pair in headers if pair[0] != changed[0]), changed])


@pytest.mark.parametrize("other", ["404 Not Found", "403 Forbidden"])
def test_body_is_sampled_after_another_status(one_page: OnePage, other: str) -> None:
    assert one_page.was_sampled()
    assert not one_page.was_sampled(status=other)
    assert one_page.was_sampled()
    assert not one_page.was_sampled()


def test_body_in_an_unknown_coding_is_sampled_because_it_may_be_plain(one_page: OnePage) -> None:
    assert one_page.was_sampled(headers=[*HTML, ("content-encoding", "none")])


def test_body_that_is_no_html_is_not_sampled(one_page: OnePage) -> None:
    headers = [("content-type", "application/json")]
    assert not one_page.was_sampled(headers=headers)
    one_page.clock.pass_(1)
    assert not one_page.was_sampled(headers=headers)


def test_body_of_a_path_without_a_route_is_not_sampled(one_page: OnePage) -> None:
    one_page.page = one_page.tracker.track(None, SITE, "/elsewhere", 0, is_foreign_host=False)
    assert not one_page.was_sampled()


def test_retracted_response_leaves_nothing_and_the_next_one_is_read(one_page: OnePage) -> None:
    for status in (OK, "404 Not Found"):
        observer = one_page.start(status)
        observer.on_chunk(b"<p>T")
        observer.retract()
        observer.on_end()
        assert one_page.saved() == [], status
        assert one_page.was_sampled(), "in the same second"
    one_page.start("404 Not Found").retract()
    one_page.start("404 Not Found")
    assert one_page.statuses() == [404], "an equal one is recorded, too"


def test_response_that_is_started_again_replaces_the_first_one(one_page: OnePage) -> None:
    first = one_page.start("404 Not Found")
    one_page.start(OK, previous=first)
    assert one_page.statuses() == [200]


def test_skipped_body_is_not_sampled(one_page: OnePage) -> None:
    observer = one_page.start()
    one_page.saved()
    observer.on_chunk(b"<p>T")
    observer.on_skipped_body()
    observer.on_chunk(b"ea")
    observer.on_end()
    assert one_page.saved() == []
    assert not one_page.was_sampled(), "the next sample is due later"


def test_sent_file_is_read_later(one_page: OnePage) -> None:
    observer = one_page.start()
    one_page.saved()
    observer.on_file("/a/file")
    observer.on_end()
    (sample,) = one_page.saved()
    assert (sample.file_path, sample.body, sample.status) == ("/a/file", None, 200)
    assert not one_page.was_sampled(), "the next sample is due later"


@pytest.mark.parametrize(("path", "chunks"), [(None, []), (b"/a/file", []), ("/a/file", [b"<p>"])])
def test_file_with_an_unusable_path_or_after_a_chunk_is_not_read(
    one_page: OnePage, path: Any, chunks: list[bytes]
) -> None:
    observer = one_page.start()
    one_page.saved()
    for chunk in chunks:
        observer.on_chunk(chunk)
    observer.on_file(path)
    observer.on_end()
    assert one_page.saved() == []


def test_file_of_a_page_that_is_not_due_is_not_read(one_page: OnePage) -> None:
    assert one_page.was_sampled()
    one_page.clock.pass_(1)
    one_page.start().on_file("/a/file")
    assert [response.file_path for response in one_page.saved()] == [None]
