"""verify=True: routes that were never seen are asked for, in process, and listed by what they answer."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import flask
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route
from werkzeug.test import Client

from sitemap_middleware import SitemapMiddleware, sitemap
from sitemap_middleware.adapters import in_process_wsgi_client
from sitemap_middleware.adapters.probe_headers_without_visitor import PROBE_ACCEPT
from sitemap_middleware.adapters.wsgi_request import WSGIRequest, request_of
from sitemap_middleware.exceptions import StoreError
from sitemap_middleware.models import Site
from sitemap_middleware.observation import unvisited_page_prober
from sitemap_middleware.observation.hanging_pages_in_store import HangingPages
from sitemap_middleware.observation.unvisited_page_prober import (
    RETRY_SECONDS,
    ROUND_INTERVAL_SECONDS,
    ROUND_TIMEOUT_SECONDS,
)
from sitemap_middleware.request_response import TEST_CLIENT_WAIT_SECONDS, WAIT_SECONDS_KEY
from sitemap_middleware.stores.sqlite.memory import MemoryStore

from ...support.documents import locs
from ...support.sample_sites import Clock, Page, SampleSite
from ...support.servers import free_port, serving
from ...support.wire import RequestSpec, asgi, wsgi

BOTH = pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
LOCAL = "http://testserver"


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver's event loop ends with the request: no round may outlast it, however slow the machine."""
    monkeypatch.setattr(unvisited_page_prober, "FIRST_WAIT_SECONDS", 60.0)


class Asked(dict[str, Page]):
    """Pages that record each request."""

    def __init__(self, pages: dict[str, Page]) -> None:
        super().__init__(pages)
        self.log: list[str] = []

    def __getitem__(self, path: str) -> Page:
        self.log.append(path)
        return super().__getitem__(path)


def site(protocol: str, pages: dict[str, Page], **options: Any) -> tuple[SampleSite, Asked]:
    pages_requested = Asked(pages)
    return SampleSite(protocol, pages_requested, verify=True, robots=False, **options), pages_requested


@BOTH
def test_only_pages_that_answer_with_html_enter_the_first_sitemap(protocol: str) -> None:
    sample, pages_requested = site(
        protocol,
        {
            "/": Page(),
            "/about": Page(),
            "/account": Page(302, [("location", "/login")]),
            "/admin": Page(401),
            "/data": Page(headers=[("content-type", "application/json")]),
            "/broken": Page(500),
            "/draft": Page(body=b"<!doctype html><meta name=robots content=noindex><p>Draft"),
            "/missing": Page(404),
            "/posts/{slug}": Page(),
        },
    )
    assert sample.locs() == [f"{LOCAL}/", f"{LOCAL}/about"]
    assert sorted(pages_requested.log) == sorted(set(pages_requested) - {"/posts/{slug}"})
    assert sample.app.explain("/admin").reason == "it answered 401"
    assert sample.app.explain("/draft").reason == "its robots meta tag says noindex"
    assert sample.app.explain("/broken").reason == (
        "it has not answered with a page yet: the last request of the middleware got 500"
    )


@BOTH
def test_probe_responses_are_distinguished_from_visits(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    merged: dict[str, bool] = {}
    sample, _ = site(protocol, {"/": Page(), "/about": Page()})
    store = sample.app.service.store
    merge = store.merge

    def recording_merge(key: str, seen: Any, limits: Any) -> Any:
        merged.update({observation.path: observation.is_probe for observation in seen})
        return merge(key, seen, limits)

    monkeypatch.setattr(store, "merge", recording_merge)
    sample.visit("/about")
    sample.locs()
    assert merged == {"/about": False, "/": True}


@BOTH
def test_any_path_below_any_root_is_probed_as_it_is(protocol: str) -> None:
    sample, pages_requested = site(protocol, {"/café & co": Page()})
    assert sample.locs(root="/größe") == [f"{LOCAL}/gr%C3%B6%C3%9Fe/caf%C3%A9%20&%20co"]
    assert pages_requested.log == ["/café & co"]


@BOTH
def test_without_verify_the_app_is_not_probed(protocol: str) -> None:
    pages_requested = Asked({"/": Page(), "/about": Page(404)})
    sample = SampleSite(protocol, pages_requested, robots=False, verify=False)
    assert sample.locs() == [f"{LOCAL}/", f"{LOCAL}/about"]
    assert pages_requested.log == []


@BOTH
def test_visited_page_is_not_probed(protocol: str) -> None:
    sample, pages_requested = site(protocol, {"/": Page(), "/about": Page()})
    sample.visit("/about")
    assert sample.locs() == [f"{LOCAL}/", f"{LOCAL}/about"]
    assert pages_requested.log == ["/about", "/"]


@BOTH
@pytest.mark.parametrize(
    "path",
    ["/logout", "/sign-out", "/users/log_off", "/cache/clear", "/Unsubscribe", "/cron/nightly", "/newsletter/confirm"],
)
def test_route_named_like_an_action_is_never_probed(protocol: str, path: str) -> None:
    sample, pages_requested = site(protocol, {"/": Page(), path: Page()})
    assert sample.locs() == [f"{LOCAL}/"]
    assert pages_requested.log == ["/"]
    assert "is the name of an action" in sample.app.explain(path).reason
    sample.visit(path)
    assert f"{LOCAL}{path}" in sample.locs()


@BOTH
@pytest.mark.parametrize("path", ["/blogout", "/standings", "/important", "/updates", "/tasks-and-goals"])
def test_a_route_that_only_contains_such_letters_is(protocol: str, path: str) -> None:
    sample, _ = site(protocol, {path: Page()})
    assert sample.locs() == [f"{LOCAL}{path}"]


@BOTH
def test_excluded_or_hidden_page_is_not_probed(protocol: str) -> None:
    pages = {"/": Page(), "/marked": Page(), "/excluded": Page(), "/feed.rss": Page()}
    marks = {"/marked": sitemap(exclude=True)}
    sample, pages_requested = site(protocol, pages, marks=marks, exclude="/excluded")
    assert sample.locs() == [f"{LOCAL}/"]
    assert pages_requested.log == ["/"]


NOINDEX = Page().with_headers(("x-robots-tag", "noindex"))


@BOTH
@pytest.mark.parametrize(
    ("answer", "stays"),
    [
        (Page(), True),
        (Page(503), True),
        (Page(429), True),
        (Page(404), False),
        (Page(410), False),
        (Page(403), False),
        (NOINDEX, False),
        (Page(headers=[("content-type", "application/json")]), False),
    ],
    ids=repr,
)
@pytest.mark.parametrize("include", ["/posts/one", "/about", "/abo*"])
def test_included_path_is_listed_at_once_and_probed(protocol: str, include: str, answer: Page, *, stays: bool) -> None:
    named = "/posts/one" if include == "/posts/one" else "/about"
    pages = {"/": Page(), "/posts/{slug}": answer, "/about": answer}
    sample, pages_requested = site(protocol, pages, include=include, exclude="/about" if named != "/about" else ())
    sample.request("/sitemap.xml")
    assert len(pages_requested.log) == 2
    assert sample.locs() == [f"{LOCAL}/", *[f"{LOCAL}{named}"] * stays]


@BOTH
def test_path_that_is_disallowed_or_an_action_is_not_probed(protocol: str) -> None:
    rules = Page(headers=[("content-type", "text/plain")], body=b"User-agent: *\nDisallow: /private\n")
    pages_requested = Asked({"/": Page(), "/private": Page(), "/logout": Page(), "/robots.txt": rules})
    sample = SampleSite(protocol, pages_requested, verify=True, include=("/private", "/logout"))
    assert sample.locs() == [f"{LOCAL}/", f"{LOCAL}/logout"]
    assert not {"/private", "/logout"} & set(pages_requested.log)


@BOTH
def test_without_verify_an_included_path_is_not_probed(protocol: str) -> None:
    pages_requested = Asked({"/about": Page(404)})
    sample = SampleSite(protocol, pages_requested, include="/about", robots=False, verify=False)
    assert sample.locs() == [f"{LOCAL}/about"]
    assert pages_requested.log == []


@BOTH
def test_disallowed_path_is_not_probed(protocol: str) -> None:
    rules = Page(headers=[("content-type", "text/plain")], body=b"User-agent: *\nDisallow: /private\n")
    pages_requested = Asked({"/": Page(), "/private": Page(), "/robots.txt": rules})
    sample = SampleSite(protocol, pages_requested, verify=True)
    assert sample.locs() == [f"{LOCAL}/"]
    assert "/private" not in pages_requested.log


@BOTH
def test_what_went_away_after_it_was_verified_is_gone_at_once(protocol: str) -> None:
    sample, pages_requested = site(protocol, {"/": Page(), "/about": Page()})
    assert len(sample.locs()) == 2
    pages_requested["/about"] = Page(410)
    sample.clock.pass_(1)
    sample.request("/about")
    assert sample.locs() == [f"{LOCAL}/"]


@BOTH
def test_failed_probe_is_repeated_later(protocol: str) -> None:
    sample, pages_requested = site(protocol, {"/": Page(), "/slow": Page(503)}, max_age=0)
    assert sample.locs() == [f"{LOCAL}/"]
    pages_requested["/slow"] = Page()
    sample.clock.pass_(RETRY_SECONDS - 1)
    assert sample.locs() == [f"{LOCAL}/"]
    sample.clock.pass_(ROUND_INTERVAL_SECONDS)
    assert sample.locs() == [f"{LOCAL}/", f"{LOCAL}/slow"]
    assert pages_requested.log == ["/", "/slow", "/slow"]


@BOTH
def test_round_ends_on_time_and_the_next_one_continues(protocol: str) -> None:
    clock = Clock()

    class Slow(Asked):
        def __getitem__(self, path: str) -> Page:
            clock.pass_(ROUND_TIMEOUT_SECONDS * 0.4)
            return super().__getitem__(path)

    pages = Slow({f"/{name}": Page() for name in "abcdefg"})
    sample = SampleSite(protocol, pages, verify=True, robots=False, clock=clock)
    sample.app.service.unvisited_prober.wait = lambda _: None
    assert sample.locs() == [f"{LOCAL}/{name}" for name in "abc"]
    clock.pass_(ROUND_INTERVAL_SECONDS)
    assert sample.locs() == [f"{LOCAL}/{name}" for name in "abcdef"]


@BOTH
def test_remembered_probes_are_limited(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unvisited_page_prober, "MAX_REMEMBERED_PAGES", 2)
    sample, pages_requested = site(protocol, {f"/{name}": Page(500) for name in "abcd"})
    sample.request("/sitemap.xml")
    assert len(pages_requested.log) == 4
    service = sample.app.service
    site_of_all, _ = service.site_resolver.resolve("http", "testserver", "")
    failures = [service.unvisited_prober.failure_of(site_of_all, f"/{name}") for name in "abcd"]
    assert failures == [None, None, "got 500", "got 500"]


@BOTH
def test_one_process_probes_for_all_that_share_a_store(protocol: str, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'pages.sqlite3'}"
    clock = Clock()
    first, pages_requested = site(protocol, {"/": Page(404), "/about": Page(500)}, store=store, clock=clock)
    second, too = site(protocol, {"/": Page(404), "/about": Page(500)}, store=store, clock=clock)
    first.request("/sitemap.xml")
    second.request("/sitemap.xml")
    assert pages_requested.log == ["/", "/about"]
    assert too.log == []


def test_pages_that_the_store_has_lost_are_requested_again_in_the_next_round(tmp_path: Path) -> None:
    sample, _ = site("wsgi", {"/": Page(), "/about": Page()}, store=f"sqlite:///{tmp_path}/pages.sqlite3")
    everything = sample.locs()
    assert len(everything) == 2
    for file in tmp_path.iterdir():
        file.unlink()
    sample.app.flush()
    for _ in range(2):  # the first round finds out, and the next request shows what it found
        sample.clock.pass_(ROUND_INTERVAL_SECONDS + 1)
        sample.request(RequestSpec("/sitemap.xml"))
        sample.app.flush()
    assert sample.locs() == everything


def test_a_round_ends_when_the_middleware_is_closed() -> None:
    sample, pages_requested = site("wsgi", {"/": Page(), "/about": Page()})

    class Closing(Asked):
        def __getitem__(self, path: str) -> Page:
            sample.app.service.unvisited_prober.close()
            return super().__getitem__(path)

    closing = Closing(pages_requested)
    sample = SampleSite("wsgi", closing, verify=True, robots=False)
    assert sample.locs() == [f"{LOCAL}/"]
    assert closing.log == ["/"]


def test_round_that_cannot_start_is_no_error_and_the_next_one_runs() -> None:
    sample, pages_requested = site("wsgi", {"/": Page()})
    environ = {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": "/sitemap.xml",
        "wsgi.url_scheme": "http",
        "HTTP_HOST": "testserver",
    }

    class Late(WSGIRequest):
        __slots__ = ()

        def run_in_background(self, _: Any) -> None:
            raise RuntimeError("the event loop is closed")

    request = request_of(environ, sample.app)
    request.__class__ = Late
    response = sample.app.service.sitemap_handler.handle(request)
    assert response is not None
    assert response.status == 404
    sample.clock.pass_(ROUND_INTERVAL_SECONDS)
    assert sample.locs() == [f"{LOCAL}/"]
    assert pages_requested.log == ["/"]


def endless(_: Any = None) -> Iterator[bytes]:
    while True:
        yield b"x" * 10_000


def test_endless_answers_and_failures_delay_nobody_in_wsgi() -> None:
    app = flask.Flask("site", static_folder=None)

    def fails() -> str:
        raise RuntimeError("not to be had")

    app.testing = True  # so that the error comes through
    app.add_url_rule("/endless", "endless", lambda: flask.Response(endless(), mimetype="text/html"))
    app.add_url_rule("/fails", "fails", fails)
    app.add_url_rule("/page", "page", lambda: "A page")
    wrapped = SitemapMiddleware(app, store="memory://", verify=True, robots=False)
    assert locs(wsgi(wrapped, RequestSpec("/sitemap.xml")).body) == [f"{LOCAL}/page"]
    assert wrapped.explain("/fails").reason.endswith(
        "the last request of the middleware ended early: the app raised RuntimeError"
    )


def test_a_slow_answer_without_end_is_cut_off_after_its_time_wsgi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_process_wsgi_client, "PROBE_TIMEOUT_SECONDS", 0.0)
    app = flask.Flask("site", static_folder=None)
    taken: list[int] = []

    def drops() -> Iterator[bytes]:
        for number in range(1_000):
            taken.append(number)
            yield b"<main>x"

    app.add_url_rule("/drops", "drops", lambda: flask.Response(drops(), mimetype="text/html"))
    wrapped = SitemapMiddleware(app, store="memory://", verify=True, robots=False)
    assert wsgi(wrapped, RequestSpec("/sitemap.xml")).status == 404
    assert len(taken) < 1_000


def test_probe_starts_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    start = threading.Thread.start
    own = {threading.current_thread()}

    def recording_start(thread: threading.Thread) -> None:
        if threading.current_thread() in own:  # not of an earlier test, whose round may still run
            own.add(thread)
            started.append(thread.name)
        start(thread)

    app = flask.Flask("site", static_folder=None)
    app.add_url_rule("/page", "page", lambda: "A page")
    wrapped = SitemapMiddleware(app, store="memory://", verify=True, robots=False)
    monkeypatch.setattr(threading.Thread, "start", recording_start)
    assert locs(wsgi(wrapped, RequestSpec("/sitemap.xml")).body) == [f"{LOCAL}/page"]
    assert started.count("sitemap-request") == 1
    assert set(started) <= {"sitemap-request", "sitemap-background", "sitemap"}


def test_endless_answers_and_failures_delay_nobody_in_asgi() -> None:
    def stream(_: Request) -> Response:
        return StreamingResponse(endless(), media_type="text/html")

    def fails(_: Request) -> Response:
        raise RuntimeError("not to be had")

    def page(_: Request) -> Response:
        return HTMLResponse("A page")

    app = Starlette(routes=[Route("/endless", stream), Route("/fails", fails), Route("/page", page)])
    wrapped = SitemapMiddleware(app, store="memory://", verify=True, robots=False)
    assert locs(asgi(wrapped, RequestSpec("/sitemap.xml")).body) == [f"{LOCAL}/page"]


def test_app_is_probed_like_a_crawler_would() -> None:
    app = flask.Flask("site", static_folder=None)
    seen: list[dict[str, str]] = []

    @app.get("/")
    def home() -> str:
        seen.append({**flask.request.headers, "query": flask.request.query_string.decode()})
        return "A page"

    wrapped = SitemapMiddleware(app, store="memory://", verify=True, robots=False)
    wsgi(
        wrapped,
        RequestSpec("/sitemap.xml", headers=[("cookie", "session=1"), ("authorization", "Basic x")], query="a=b"),
    )
    assert seen == [{"Host": "testserver", "User-Agent": "sitemap-middleware", "Accept": PROBE_ACCEPT, "query": ""}]


def test_second_request_does_not_wait_for_a_running_round() -> None:
    app = flask.Flask("site", static_folder=None)
    inside, go_on = threading.Event(), threading.Event()

    @app.get("/")
    def home() -> str:
        inside.set()
        go_on.wait(10)
        return "A page"

    clock = Clock()
    wrapped = SitemapMiddleware(app, store="memory://", verify=True, robots=False, clock=clock)
    first = threading.Thread(target=wsgi, args=(wrapped, RequestSpec("/sitemap.xml")))
    first.start()
    assert inside.wait(10)
    clock.pass_(RETRY_SECONDS + ROUND_INTERVAL_SECONDS)
    assert wsgi(wrapped, RequestSpec("/sitemap.xml")).status == 404
    go_on.set()
    first.join()
    assert locs(wsgi(wrapped, RequestSpec("/sitemap.xml")).body) == [f"{LOCAL}/"]


def test_a_round_that_hangs_does_not_hold_up_refresh() -> None:
    app = flask.Flask("site", static_folder=None)
    inside, go_on, about = threading.Event(), threading.Event(), ["About us"]

    @app.get("/about")
    def show() -> tuple[str, int]:
        return (about[0], 200) if about else ("", 404)

    @app.get("/slow")
    def slow() -> str:
        inside.set()
        go_on.wait(10)
        return "A page"

    wrapped = SitemapMiddleware(app, store="memory://", verify=True, robots=False, clock=Clock())
    wsgi(wrapped, RequestSpec("/about"))
    wrapped.flush()
    first = threading.Thread(target=wsgi, args=(wrapped, RequestSpec("/sitemap.xml")))
    first.start()
    assert inside.wait(10)
    about.clear()
    wrapped.refresh("/about")
    assert wsgi(wrapped, RequestSpec("/sitemap.xml")).status == 404, "nothing is listed any more"
    go_on.set()
    first.join()


APPS = """
import flask
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.routing import Route
from sitemap_middleware import SitemapMiddleware

flask_app = flask.Flask("site", static_folder=None)
flask_app.add_url_rule("/", "home", lambda: "Home")
flask_app.add_url_rule("/account", "account", lambda: flask.redirect("/login"))
flask_app.wsgi_app = SitemapMiddleware(flask_app.wsgi_app, verify=True)

async def home(request):
    return HTMLResponse("Home")

async def account(request):
    return RedirectResponse("/login")

starlette_app = Starlette(routes=[Route("/", home), Route("/account", account)])
starlette_app.add_middleware(SitemapMiddleware, verify=True)
"""


@pytest.mark.parametrize(
    "command",
    [
        ["gunicorn", "site_app:flask_app", "--workers", "2", "--bind", "127.0.0.1:{port}"],
        ["uvicorn", "site_app:starlette_app", "--workers", "2", "--port", "{port}"],
        ["hypercorn", "site_app:starlette_app", "--bind", "127.0.0.1:{port}"],
        ["hypercorn", "site_app:starlette_app", "--worker-class", "trio", "--bind", "127.0.0.1:{port}"],
    ],
    ids=["gunicorn", "uvicorn", "hypercorn", "hypercorn on Trio"],
)
def test_real_servers_verify(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "site_app.py").write_text(APPS)
    port = free_port()
    with serving([part.format(port=port) for part in command], tmp_path, port, ready="/robots.txt") as server:
        assert server.get("/account").status in (302, 307)
        assert locs(server.get("/sitemap.xml").body) == [f"http://127.0.0.1:{port}/"]


@pytest.mark.parametrize("concurrent", [True, False])
def test_probes_that_show_nothing_leave_other_pages_listed(concurrent: bool) -> None:
    """This holds on a server with one thread, too, where the request for the sitemap makes the probes."""

    def app(environ: Any, start_response: Any) -> list[bytes]:
        path = environ["PATH_INFO"]
        if path == "/late":
            raise TimeoutError
        status = {"/": "200 OK", "/broken": "500 Internal Server Error", "/moved": "400 Bad Request"}.get(path)
        start_response(status or "404 Not Found", [("Content-Type", "text/html")])
        return [b"<p>A page."]

    site = SitemapMiddleware(
        app,
        base_url="https://example.com",
        store="memory://",
        include=["/", "/broken", "/late", "/moved"],
        list_unseen=False,
    )
    client = Client(site)
    for _ in range(2):
        answer = client.get("/sitemap.xml", multithread=concurrent)
    assert b"<loc>https://example.com/</loc>" in answer.data
    assert [site.explain(path).page is not None for path in ("/", "/broken", "/late")] == [True, False, False]


# Rounds on a server with one thread: each ends within its request

SITE = Site("https", "example.com")


class LeaseStore(MemoryStore):
    """Records leases, and fails or refuses them if it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.leases: list[tuple[str, int, int]] = []
        self.refuses = self.fails = False

    def lease(self, site: Any, name: str, owner: str, now: int, seconds: int) -> bool:
        if self.fails:
            raise StoreError("the store is down")
        self.leases.append((name, now, seconds))
        return not self.refuses and super().lease(site, name, owner, now, seconds)


class Inline:
    """A site on such a server. Its pages take as many seconds as `seconds` says, and answer with `statuses`."""

    def __init__(self, *paths: str, wait_seconds: float = 2.0, **statuses: int) -> None:
        self.log: list[str] = []
        self.seconds: dict[str, float] = {}
        self.statuses = {f"/{name}": status for name, status in statuses.items()}
        self.wait_seconds = wait_seconds
        self.clock, self.store = Clock(), LeaseStore()
        app = flask.Flask("shop", static_folder=None)
        for path in (*paths, *self.statuses):
            app.add_url_rule(path, path, partial(self.view, path))
        self.app: Any = SitemapMiddleware(
            app, store=self.store, clock=self.clock, base_url="https://example.com", robots=False
        )
        self.service = self.app.service
        self.prober = self.service.unvisited_prober
        self.prober.wait = lambda _: None

    def view(self, path: str) -> tuple[str, int]:
        self.log.append(path)
        self.clock.pass_(self.seconds.get(path, 0))
        if self.statuses.get(path) == -1:
            raise SystemExit
        return "A page", self.statuses.get(path, 200)

    def request(self, **environ: Any) -> WSGIRequest:
        usual = {
            "REQUEST_METHOD": "GET",
            "PATH_INFO": "/sitemap.xml",
            "wsgi.url_scheme": "https",
            "HTTP_HOST": "example.com",
            WAIT_SECONDS_KEY: self.wait_seconds,
        }
        return request_of({**usual, **environ}, self.app)

    def round(self, **environ: Any) -> list[str]:
        """The pages that are requested within one request for the sitemap."""
        before = len(self.log)
        self.prober.probe(self.request(**environ), SITE, self.context)
        return self.log[before:]

    def context(self) -> Any:
        return self.service.evaluation_context(self.service.snapshot(SITE, self.store))

    def hanging(self) -> set[str]:
        return set(HangingPages(self.store, RETRY_SECONDS).load(SITE.store_key, self.clock()))


def test_page_that_fails_is_requested_again_after_twice_as_long_until_it_is_a_day() -> None:
    inline = Inline(fails=500)
    assert inline.round() == ["/fails"]
    for hours in (1, 2, 4, 8, 16, 24, 24):
        inline.clock.pass_(hours * RETRY_SECONDS - 1)
        assert inline.round() == [], hours
        inline.clock.pass_(ROUND_INTERVAL_SECONDS)
        assert inline.round() == ["/fails"], hours


def test_rounds_begin_once_a_minute() -> None:
    inline = Inline("/")
    assert inline.prober.next_round_at(SITE) == -math.inf
    inline.round()
    assert inline.prober.next_round_at(SITE) == inline.clock() + ROUND_INTERVAL_SECONDS
    asked: list[bool] = []
    for seconds, begins in ((0, False), (ROUND_INTERVAL_SECONDS - 1, False), (1, True), (-1, True)):
        inline.clock.pass_(seconds)
        inline.prober.probe(inline.request(), SITE, lambda: asked.append(True) or inline.context())
        assert asked == [True] * begins, seconds
        asked.clear()


def test_each_request_of_a_test_client_or_a_command_may_begin_a_round() -> None:
    inline = Inline("/", fails=500, wait_seconds=TEST_CLIENT_WAIT_SECONDS)
    assert inline.round() == ["/", "/fails"]
    assert inline.prober.next_round_at(SITE) == inline.clock()
    inline.service.flush()
    inline.store.leases.clear()
    assert inline.round() == [], "no page is due"
    assert inline.store.leases == []


def test_what_is_no_evidence_is_remembered() -> None:
    inline = Inline("/", fails=503, gone=404, ends=-1)
    paths = ["/", "/fails", "/gone", "/ends", "/never"]
    assert [inline.prober.failure_of(SITE, path) for path in paths] == [None] * 5
    inline.round()
    assert [inline.prober.failure_of(SITE, path) for path in paths] == [
        "",
        "got 503",
        "",
        "ended early: the app raised SystemExit",
        None,
    ]
    assert inline.prober.failure_of(Site("https", "other.example"), "/") is None


def test_what_is_known_of_one_site_is_forgotten() -> None:
    inline = Inline("/", fails=500)
    inline.round()
    inline.prober.forget(Site("https", "other.example"))
    assert inline.prober.failure_of(SITE, "/fails") == "got 500"
    assert inline.prober.next_round_at(SITE) > 0
    inline.prober.forget(SITE)
    assert inline.prober.failure_of(SITE, "/fails") is None
    assert inline.prober.next_round_at(SITE) == -math.inf
    inline.clock.pass_(ROUND_INTERVAL_SECONDS)
    assert inline.round() == ["/", "/fails"]


@pytest.mark.parametrize(
    ("seconds", "requested"),
    [(0.5, "abcd"), (1, "ab"), (1.5, "ab"), (2, "a"), (-0.5, "a")],
    ids=["fast", "a second", "slow", "as slow as may be", "clock set back"],
)
def test_round_ends_with_the_time_of_its_request(seconds: float, requested: str) -> None:
    inline = Inline("/a", "/b", "/c", "/d")
    inline.seconds = dict.fromkeys(("/a", "/b", "/c", "/d"), seconds)
    assert inline.round() == [f"/{name}" for name in requested]


@pytest.mark.parametrize(
    ("seconds", "status", "hangs"),
    [(0, 200, False), (0, 500, False), (4.9, 200, False), (5, 200, True), (9, 404, True), (0, -1, True)],
    ids=["fast", "failing", "slow", "hanging", "long", "ending the server"],
)
def test_page_that_hangs_or_ends_the_server_is_recorded_in_the_store(
    seconds: float, status: int, *, hangs: bool
) -> None:
    inline = Inline("/a", b=status, wait_seconds=60)
    inline.seconds["/b"] = seconds
    assert inline.round() == ["/a", "/b"]
    assert inline.hanging() == ({"/b"} if hangs else set())
    inline.prober.forget(SITE)
    inline.clock.pass_(ROUND_INTERVAL_SECONDS)
    assert inline.round() == (["/a"] if hangs else ["/a", "/b"]), "also after the server was started again"


def test_page_is_recorded_before_it_is_requested() -> None:
    inline = Inline("/a", "/b")
    found: list[set[str]] = []
    view = inline.view
    inline.app.service.app_routes.app.view_functions["/b"] = lambda: found.append(inline.hanging()) or view("/b")
    inline.round()
    assert found == [{"/b"}]
    assert inline.hanging() == set()


def test_nothing_is_requested_while_too_many_requests_hang() -> None:
    inline = Inline("/a")
    hanging: list[Future[Any]] = [Future() for _ in range(inline.request().max_hanging_requests)]
    for future in hanging:
        inline.prober._client.give_up(future)
    assert inline.round() == []
    assert (inline.hanging(), inline.prober.failure_of(SITE, "/a")) == (set(), None)
    hanging[0].set_result(None)
    inline.clock.pass_(ROUND_INTERVAL_SECONDS)
    assert inline.round() == ["/a"], "it was not taken for requested"


def test_lease_is_renewed_in_a_long_round() -> None:
    inline = Inline(*(paths := [f"/{name}" for name in "abcde"]), wait_seconds=600)
    inline.seconds = dict.fromkeys(paths, 10)
    begun = int(inline.clock())
    assert len(inline.round()) == 5
    assert inline.store.leases == [
        ("verify", begun, ROUND_INTERVAL_SECONDS),
        ("verify", begun + 30, ROUND_INTERVAL_SECONDS),
    ]


@pytest.mark.parametrize("failure", ["refuses", "fails"])
def test_round_ends_without_its_lease(failure: str) -> None:
    inline = Inline("/a", "/b", wait_seconds=600)
    inline.seconds["/a"] = 30
    view = inline.view

    def lose() -> Any:
        setattr(inline.store, failure, True)
        return view("/a")

    inline.app.service.app_routes.app.view_functions["/a"] = lose
    assert inline.round() == ["/a"]


@pytest.mark.parametrize("failure", ["refuses", "fails"])
def test_round_without_a_lease_does_not_begin(failure: str) -> None:
    inline = Inline("/a")
    setattr(inline.store, failure, True)
    assert inline.round() == []
    setattr(inline.store, failure, False)
    inline.clock.pass_(ROUND_INTERVAL_SECONDS)
    assert inline.round() == ["/a"]


def test_store_that_fails_before_the_round_is_no_error() -> None:
    inline = Inline("/a")

    def fail() -> Any:
        raise StoreError("the store is down")

    inline.prober.probe(inline.request(), SITE, fail)
    assert (inline.log, inline.store.leases) == ([], [])


def test_request_with_credentials_runs_no_round_on_its_thread() -> None:
    inline = Inline("/a")
    assert inline.round(HTTP_AUTHORIZATION="Basic YQ==") == []
    assert inline.round() == ["/a"], "the next request runs it"


def test_pages_are_requested_again_under_a_lease_that_ends_with_them() -> None:
    inline = Inline("/a", "/b", wait_seconds=600)
    inline.seconds["/a"] = 30
    begun, results = int(inline.clock()), []

    def again(paths: Any, **environ: Any) -> None:
        inline.prober.probe_again(
            inline.request(**environ), SITE, paths, lambda count, due: results.append((count, due))
        )

    again(lambda: ["/a", "/b"], HTTP_AUTHORIZATION="Basic YQ==")
    assert results == []
    again(lambda: ["/a", "/b"])
    assert (results, inline.log) == ([(2, ["/a", "/b"])], ["/a", "/b"])
    assert inline.store.leases == [("refresh", begun, 60), ("refresh", begun + 30, 60), ("refresh", begun + 30, 0)]
    assert inline.store.lease(SITE.store_key, "refresh", "another process", begun + 30, 60)


def test_store_that_cannot_say_what_to_request_again_is_no_error() -> None:
    inline = Inline("/a")

    def fail() -> list[str]:
        raise StoreError("the store is down")

    inline.prober.probe_again(inline.request(), SITE, fail, lambda *_: pytest.fail("nothing was requested"))
    assert inline.log == []
