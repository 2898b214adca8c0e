"""verify=True: what was never seen is requested from the app, and what says something new is requested again."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import flask
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, StreamingResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.evidence.dates import w3c_from_timestamp
from sitemap_middleware.models import StoreKey
from sitemap_middleware.observe import prober
from sitemap_middleware.observe.prober import CHECKS, RETRY_SECONDS, ROUND_INTERVAL_SECONDS
from sitemap_middleware.stores.sqlite import MemoryStore

from ...support.documents import locs
from ...support.sample_sites import Clock, Page, SampleSite, SiteOf
from ...support.waiting import join_threads
from ...support.wire import BOTH, DRIVERS, RequestSpec, asgi_async, wsgi

LOCAL = "http://testserver"


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver's event loop ends with the request: no round may outlast it, however slow the machine."""
    monkeypatch.setattr(prober, "FIRST_WAIT_SECONDS", 60.0)


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
@pytest.mark.parametrize(
    "path",
    ["/logout", "/cache/clear", "/Unsubscribe", "/cron/nightly", "/newsletter/confirm", "/_internal", "/api/items"],
)
def test_route_named_like_an_action_or_an_api_is_never_probed(protocol: str, path: str) -> None:
    sample, pages_requested = site(protocol, {"/": Page(), path: Page()})
    assert sample.locs() == [f"{LOCAL}/"]
    assert pages_requested.log == ["/"]
    assert sample.app.explain(path).reason.endswith(
        ", and no visit has shown yet that it is a page; the option include lists it at once"
    )
    sample.visit(path)
    assert f"{LOCAL}{path}" in sample.locs()


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
def test_failed_probe_is_repeated_later(protocol: str) -> None:
    sample, pages_requested = site(protocol, {"/": Page(), "/slow": Page(503)}, max_age=0)
    assert sample.locs() == [f"{LOCAL}/"]
    pages_requested["/slow"] = Page()
    sample.clock.pass_(RETRY_SECONDS - 1)
    assert sample.locs() == [f"{LOCAL}/"]
    sample.clock.pass_(ROUND_INTERVAL_SECONDS)
    assert sample.locs() == [f"{LOCAL}/", f"{LOCAL}/slow"]
    assert pages_requested.log == ["/", "/slow", "/slow"]


def end_leases(folder: Path) -> None:
    """They end by the machine's clock."""
    with sqlite3.connect(folder / "pages.sqlite3") as database:
        (table,) = database.execute("SELECT name FROM sqlite_master WHERE name LIKE 'lease%'").fetchone()
        database.execute(f"DELETE FROM {table}")


def on_one_thread(app: Any, path: str) -> list[str]:
    """What a server with one thread gets; the locs of a sitemap."""
    answer = wsgi(lambda environ, start: app({**environ, "wsgi.multithread": False}, start), RequestSpec(path))
    return locs(answer.body) if path == "/sitemap.xml" else []


def test_what_one_visitor_was_shown_is_not_listed_before_a_worker_asked(tmp_path: Path) -> None:
    options: dict[str, Any] = {"store": f"sqlite:///{tmp_path / 'pages.sqlite3'}", "clock": Clock(), "max_age": 0}
    one, two = (
        site("wsgi", {"/": Page(), "/menu": Page(), "/posts/{slug}": Page(403)}, learn="/posts/<slug>", **options)[0]
        for _ in range(2)
    )
    assert on_one_thread(one.app, "/sitemap.xml") == on_one_thread(two.app, "/sitemap.xml")
    one.pages |= {"/posts/{slug}": Page(), "/menu": Page(403)}  # to a visitor with a header that nobody knows
    for path in ("/posts/secret", "/menu"):
        on_one_thread(one.app, path)
    one.app.flush()
    two.pages |= {"/menu": Page(403)}
    options["clock"].pass_(ROUND_INTERVAL_SECONDS)
    end_leases(tmp_path)
    for _ in range(2):  # the second has what the first one asked
        listed = on_one_thread(two.app, "/sitemap.xml")
        options["clock"].pass_(1)
    assert listed == [f"{LOCAL}/"]


@pytest.mark.parametrize("name", ["asked", "failed"])
@pytest.mark.parametrize(
    "record", [b"\xff", b"[" * 200_000, b"null", b'{"/about":["x",1e999,1750000000]}', b'["/p/\\ud800", 5, "about"]']
)
def test_a_damaged_record_of_pages_is_absent(name: str, record: bytes) -> None:
    store = MemoryStore()
    sample, asked = site("wsgi", {"/": Page(), "/about": Page()}, store=store)
    store.save(StoreKey("loopback:http/"), {name: record})
    assert on_one_thread(sample.app, "/sitemap.xml") == [f"{LOCAL}/", f"{LOCAL}/about"]
    assert sorted(asked.log) == ["/", "/about"]


@BOTH
def test_what_strangers_have_asked_waits_for_static_pages(protocol: str) -> None:
    sample, asked = site(protocol, {"/": Page(), "/about": Page(), "/posts/{slug}": Page()}, learn="/posts/*")
    sample.app.service.prober.ask(sample.app.service.site_resolver.default_site(), ["/posts/1", "/posts/2"])
    sample.request("/sitemap.xml")
    join_threads("sitemap-background")
    assert asked.log.index("/about") < asked.log.index("/posts/{slug}")


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
    repeated = []
    for _ in range(4):  # processes that begin later
        clock.pass_(RETRY_SECONDS)
        end_leases(tmp_path)
        later, asked = site(protocol, {"/": Page(404), "/about": Page(500)}, store=store, clock=clock)
        later.request("/sitemap.xml")
        repeated += asked.log
    assert repeated == ["/about"], "after two failures a page waits for a visitor, or the next day"


def endless() -> Iterator[bytes]:
    while True:
        yield b"x" * 10_000


def fails(*_: Request) -> str:
    raise RuntimeError("not to be had")


@BOTH
def test_endless_answers_and_failures_delay_nobody(protocol: str) -> None:
    app: Any = flask.Flask("site", static_folder=None)
    if protocol == "wsgi":
        app.testing = True  # so that the error comes through
        app.add_url_rule("/endless", "endless", lambda: flask.Response(endless(), mimetype="text/html"))
        app.add_url_rule("/fails", "fails", fails)
    else:
        stream = Route("/endless", lambda _: StreamingResponse(endless(), media_type="text/html"))
        app = Starlette(routes=[stream, Route("/fails", fails)])
    wrapped = SitemapMiddleware(app, store="memory://", verify=True, robots=False)
    answer = DRIVERS[protocol](wrapped, RequestSpec("/sitemap.xml"))
    assert locs(answer.body) == [f"{LOCAL}/endless"], "the beginning is enough"
    end = "ended early: the app raised RuntimeError" if protocol == "wsgi" else "got 500"
    assert wrapped.explain("/fails").reason.endswith(f"the last request of the middleware {end}")


# A server with one thread


def test_on_one_thread_a_round_ends_on_time_and_the_next_one_continues() -> None:
    clock, app = Clock(), flask.Flask("slow", static_folder=None)

    def slow() -> str:
        clock.pass_(0.9)
        return "page"

    for name in "abcdefg":
        app.add_url_rule(f"/{name}", name, slow)
    site = SitemapMiddleware(app, store="memory://", robots=False, clock=clock)

    def one_thread(environ: Any, start_response: Any) -> Any:
        return site({**environ, "wsgi.multithread": False}, start_response)

    assert locs(wsgi(one_thread, RequestSpec("/sitemap.xml")).body) == [f"{LOCAL}/{name}" for name in "abc"]
    clock.pass_(ROUND_INTERVAL_SECONDS)
    assert locs(wsgi(one_thread, RequestSpec("/sitemap.xml")).body) == [f"{LOCAL}/{name}" for name in "abcdef"]


@pytest.mark.parametrize("status", [429, 503])
def test_a_rate_limit_ends_the_round_and_takes_no_page_out(status: int) -> None:
    app, asked = flask.Flask("limited", static_folder=None), list[str]()

    def page() -> tuple[str, int, dict[str, str]]:
        asked.append(flask.request.path)
        return ("page", 200, {}) if len(asked) <= 3 or clock() > limited_until else ("", status, {"Retry-After": "90"})

    for number in range(20):
        app.add_url_rule(f"/{number:02}", f"page {number}", page)
    clock = Clock()
    limited_until = clock() + 80
    site = SitemapMiddleware(app, store="memory://", clock=clock, robots=False, max_age=0)
    wsgi(site, RequestSpec("/sitemap.xml"))
    join_threads("sitemap-background")
    assert len(asked) < 10
    for _ in range(3):
        clock.pass_(3700)
        wsgi(site, RequestSpec("/sitemap.xml"))
        join_threads("sitemap-background")
    assert len(locs(wsgi(site, RequestSpec("/sitemap.xml")).body)) == 20


@pytest.mark.parametrize(("allowed", "window", "listed"), [(3, 60, 20), (8, 3600, 20), (0, 60, 0)])
def test_a_row_of_403_is_a_limiters_if_the_app_answers_others(allowed: int, window: int, listed: int) -> None:
    app, asked, clock = flask.Flask("limited", static_folder=None), list[str](), Clock()
    answered: dict[float, int] = {}

    def page() -> tuple[str, int]:
        asked.append(flask.request.path)
        now = clock() // window
        answered[now] = answered.get(now, 0) + 1
        return ("page", 200) if answered[now] <= allowed else ("", 403)

    for number in range(20):
        app.add_url_rule(f"/{number:02}", f"page {number}", page)
    site = SitemapMiddleware(app, store="memory://", clock=clock, robots=False, max_age=0)
    site.service.prober.wait = lambda seconds, *_: clock.pass_(seconds)  # type: ignore[method-assign]
    for _ in range(100):
        clock.pass_(ROUND_INTERVAL_SECONDS * 2)
        wsgi(site, RequestSpec("/sitemap.xml"))
        join_threads("sitemap-background")
    assert wsgi(site, RequestSpec("/sitemap.xml")).text.count("<loc>") == listed
    assert len(asked) <= 60


# Pages whose content is new


class Site(SiteOf):
    """A site of one learned route, whose pages say what the test has them say."""

    def __init__(self, protocol: str, **options: Any) -> None:
        self.says: Any = lambda _: "The first content"
        self.refuses = 500
        self.asked: list[str] = []
        app = self._flask() if protocol == "wsgi" else self._starlette()
        super().__init__(app, **{"verify": True, "learn": "/{slug}", "robots": False, "max_age": 0} | options)
        self.app.service.prober.wait = lambda seconds, *_: self.clock.pass_(seconds)  # type: ignore[method-assign]

    def _answer(self, slug: str) -> tuple[str, int]:
        self.asked.append(slug)
        text = self.says(slug)
        return (f"<main>{text}</main>", 200) if text else ("", self.refuses)

    def _flask(self) -> flask.Flask:
        app = flask.Flask("site", static_folder=None)
        app.add_url_rule("/<slug>", "page", self._answer)
        return app

    def _starlette(self) -> Starlette:
        def page(request: Request) -> HTMLResponse:
            return HTMLResponse(*self._answer(request.path_params["slug"]))

        return Starlette(routes=[Route("/{slug}", page)])

    def visit(self, *paths: str) -> None:
        """Visit pages, merge the observations, and wait for the probes that follow."""
        if self.protocol == "wsgi":
            for path in paths:
                wsgi(self.app, RequestSpec(path))
            for _ in range(3):
                self.app.flush()
                join_threads("sitemap-background")
        else:
            asyncio.run(self._visit(*paths))
        self.app.flush()

    async def _visit(self, *paths: str) -> None:
        for path in paths:
            await asgi_async(self.app, RequestSpec(path))
        for _ in range(3):
            self.app.flush()
            await asyncio.to_thread(join_threads, "sitemap-background")

    def lastmod(self, path: str) -> str | None:
        return self.entries()[f"{LOCAL}{path}"].get("lastmod")


@BOTH
def test_lasting_change_is_dated_after_one_visit(protocol: str) -> None:
    site = Site(protocol)
    paths = [f"/page-{number}" for number in range(6)]
    site.says = lambda slug: f"The first content of {slug}"
    site.visit(*paths)
    assert site.asked.count("page-0") == 1 + CHECKS, "the visit, and two checks"
    site.clock.pass_(3600)
    site.visit(*paths)  # these were seen before the change, and on both of its sides
    site.clock.pass_(3600)
    site.says = lambda slug: f"The {'second' if slug == 'page-0' else 'first'} content of {slug}"
    site.asked.clear()
    edited = w3c_from_timestamp(int(site.clock()))
    site.visit(*paths)
    assert site.asked.count("page-0") == 1 + CHECKS
    assert site.asked.count("page-1") == 1
    site.clock.pass_(3600)
    site.visit(*paths[1:])
    assert site.lastmod("/page-0") == edited  # when it was first seen
    assert site.lastmod("/page-1") is None


@BOTH
def test_page_that_changes_every_second_is_left_alone_for_a_while(
    protocol: str,
) -> None:
    site = Site(protocol)
    site.says = lambda _: f"Visitor {len(site.asked)}"
    site.visit("/page")
    assert site.asked == ["page"] * 3
    for _ in range(5):
        site.clock.pass_(600)
        site.visit("/page")
    assert len(site.asked) == 8
    assert site.lastmod("/page") is None
    site.clock.pass_(3600)
    site.visit("/page")
    assert len(site.asked) == 11
