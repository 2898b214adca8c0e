"""verify=True: a page that says something new is asked for again, and so is known to stand, or to move."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import flask
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware, models
from sitemap_middleware.adapters.event_loop_and_threads import _background_tasks
from sitemap_middleware.adapters.wsgi_request import WSGIRequest, request_of
from sitemap_middleware.dates import w3c_from_timestamp
from sitemap_middleware.observation.probe_client import MIN_PAUSE_SECONDS, ProbeClient
from sitemap_middleware.observation.varying_content_prober import (
    CHECKS_AT_FIRST_SIGHT,
    CHECKS_WHEN_CHANGED,
    MAX_PENDING_PAGES,
    MAX_SITES,
    PAUSE_SECONDS,
    VaryingContentProber,
)

from ...support.documents import entries
from ...support.sample_sites import Clock
from ...support.waiting import join_threads
from ...support.wire import RequestSpec, asgi, asgi_async, wsgi

LOCAL = "http://testserver"
DAY = 24 * 60 * 60
BOTH = pytest.mark.parametrize("protocol", ["wsgi", "asgi"])


class Site:
    """A site of one learned route, whose pages say what the test has them say."""

    def __init__(self, protocol: str, **options: Any) -> None:
        self.protocol = protocol
        self.clock = Clock()
        self.says: Any = lambda _: "The first content"
        self.refuses = 500
        self.asked: list[str] = []
        self.app = SitemapMiddleware(
            self._flask() if protocol == "wsgi" else self._starlette(),
            store="memory://",
            clock=self.clock,
            robots=False,
            max_age=0,
            **{"verify": True, "learn": "/<slug>" if protocol == "wsgi" else "/{slug}"} | options,
        )
        if self.prober is not None:
            self.prober.wait = self.clock.pass_

    @property
    def prober(self) -> Any:
        return self.app.service.varying_content_prober

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
            self.app.flush()
            join_threads("sitemap-background")
        else:
            asyncio.run(self._visit(*paths))
        self.app.flush()

    async def _visit(self, *paths: str) -> None:
        for path in paths:
            await asgi_async(self.app, RequestSpec(path))
        self.app.flush()
        await asyncio.sleep(0)
        await asyncio.gather(*_background_tasks)

    def lastmod(self, path: str) -> str | None:
        answer = (wsgi if self.protocol == "wsgi" else asgi)(self.app, RequestSpec("/sitemap.xml"))
        return entries(answer.body)[f"{LOCAL}{path}"].get("lastmod")


@BOTH
def test_lasting_change_is_dated_after_one_visit(protocol: str) -> None:
    site = Site(protocol)
    paths = [f"/page-{number}" for number in range(6)]
    site.says = lambda slug: f"The first content of {slug}"
    site.visit(*paths)
    assert site.asked.count("page-0") == 1 + CHECKS_AT_FIRST_SIGHT
    site.clock.pass_(3600)
    site.visit(*paths)  # these were seen before the change, and on both of its sides
    site.clock.pass_(3600)
    site.says = lambda slug: f"The {'second' if slug == 'page-0' else 'first'} content of {slug}"
    site.asked.clear()
    edited = w3c_from_timestamp(int(site.clock()))
    site.visit(*paths)
    assert site.asked.count("page-0") == 1 + CHECKS_WHEN_CHANGED
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


@BOTH
def test_without_verify_nothing_is_probed(protocol: str) -> None:
    site = Site(protocol, verify=False)
    wsgi(site.app, RequestSpec("/page")) if protocol == "wsgi" else asgi(site.app, RequestSpec("/page"))
    site.app.flush()
    assert site.asked == ["page"]


@BOTH
@pytest.mark.parametrize("options", [{"exclude": "/secret*"}, {}], ids=["excluded", "named like an action"])
def test_forbidden_pages_are_not_probed(protocol: str, options: dict[str, Any]) -> None:
    site = Site(protocol, **options)
    path = "secret" if options else "log-out"
    site.visit(f"/{path}")
    assert site.asked == [path]


@BOTH
def test_an_app_that_fails_meanwhile_leaves_it_at_that(protocol: str) -> None:
    site = Site(protocol)
    site.says = lambda _: "The first content" if len(site.asked) == 1 else None
    site.visit("/page")
    assert site.asked == ["page"] * 2
    assert site.lastmod("/page") is None


def test_page_that_raises_is_followed_by_a_pause_and_not_requested_again() -> None:
    site, pauses = Site("wsgi"), []
    site.app.app.testing = True
    site.says = lambda _: "The first content" if len(site.asked) == 1 else 1 / 0
    site.prober.wait = pauses.append
    site.visit("/page")
    assert site.asked == ["page"] * 2
    assert pauses == [PAUSE_SECONDS, MIN_PAUSE_SECONDS]


def test_an_endless_answer_leaves_it_at_that() -> None:
    def endless() -> Any:
        while True:
            yield b"x" * 100_000

    app = flask.Flask("site", static_folder=None)
    answers = iter([lambda: "<main>One</main>", lambda: flask.Response(endless(), mimetype="text/html")])
    app.add_url_rule("/page", "page", lambda: next(answers)())  # noqa: PLW0108 (each has its own)
    site = SitemapMiddleware(app, store="memory://", verify=True, robots=False)
    site.service.varying_content_prober.wait = lambda _: None  # type: ignore[union-attr]
    wsgi(site, RequestSpec("/page"))
    site.flush()
    join_threads("sitemap-background")
    assert next(answers, None) is None


def test_closed_event_loop_is_not_used() -> None:
    site = Site("asgi")
    asgi(site.app, RequestSpec("/page"))  # its loop ends with it
    site.app.flush()
    assert site.asked == ["page"]
    assert not site.prober.is_working


def test_internal_error_ends_one_job_and_the_next_runs() -> None:
    site = Site("wsgi")

    def fails(_: float) -> None:
        raise MemoryError

    site.prober.wait = fails
    site.visit("/page")
    assert site.asked == ["page"]
    site.prober.wait = site.clock.pass_
    site.visit("/other")
    assert site.asked.count("other") == 1 + CHECKS_AT_FIRST_SIGHT


def test_pending_checks_and_known_sites_are_limited() -> None:
    site = Site("wsgi")
    site.says = lambda slug: slug
    visited = threading.Event()  # only then are any asked for: the background thread may save some before
    site.prober.wait = lambda _: visited.wait(30)
    for number in range(MAX_PENDING_PAGES + 10):
        wsgi(site.app, RequestSpec(f"/{number}"))
    site.app.flush()
    visited.set()
    join_threads("sitemap-background", 30)
    assert len(site.asked) == MAX_PENDING_PAGES + 10 + MAX_PENDING_PAGES * CHECKS_AT_FIRST_SIGHT
    site.asked.clear()
    for number in range(MAX_SITES + 3):
        wsgi(site.app, RequestSpec("/page", host=f"{number}.localhost:{8000 + number}"))
    site.app.flush()
    join_threads("sitemap-background", 30)
    assert len(site.asked) == MAX_SITES + 3 + (MAX_SITES - 1) * CHECKS_AT_FIRST_SIGHT  # it knows one site already


def test_pauses_are_long_enough_to_distinguish_two_answers() -> None:
    assert PAUSE_SECONDS > 1


def test_closed_middleware_probes_nothing_until_there_is_news() -> None:
    site = Site("wsgi")
    inside, leave = threading.Event(), threading.Event()

    def pause(_: float) -> None:
        inside.set()
        leave.wait(10)

    site.prober.wait = pause
    wsgi(site.app, RequestSpec("/page"))
    site.app.flush()
    assert inside.wait(10)
    site.app.close()
    leave.set()
    join_threads("sitemap-background", 10)
    assert site.asked == ["page"]
    site.prober.wait = site.clock.pass_
    site.visit("/other")
    assert site.asked == ["page"] + ["other"] * (1 + CHECKS_AT_FIRST_SIGHT)


def test_closing_saves_news_and_probes_nothing() -> None:
    site = Site("wsgi")
    wsgi(site.app, RequestSpec("/page"))
    site.app.close()
    join_threads("sitemap-background", 10)
    assert site.asked == ["page"]
    assert site.app.stats()["merged"] > 0


def test_a_pause_ends_when_the_middleware_is_closed() -> None:
    prober = VaryingContentProber(Clock(), ProbeClient(), lambda _: None, lambda *_: True)
    prober.close()
    began = time.monotonic()
    prober.wait(30)
    assert time.monotonic() - began < 10


# One job, run by the test

SHOP = models.Site("https", "example.com")


class Job(WSGIRequest):
    """A request whose background job a test runs, or that can run none."""

    __slots__ = ("fails", "jobs")

    fails: bool
    jobs: list[Any]

    def run_in_background(self, job: Any) -> None:
        if self.fails:
            raise RuntimeError("the event loop is closed")
        self.jobs.append(job)


class Shop:
    """A prober of an app whose pages answer what `answers` says, one text after the other."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Any]] = {}
        self.requested: list[str] = []
        self.observed: list[tuple[str, int, bool]] = []
        self.forbidden: set[str] = set()

        def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
            path = environ["PATH_INFO"]
            self.requested.append(path)
            answer = self.answers.get(path, ["The content"])
            text = answer.pop(0) if len(answer) > 1 else answer[0]
            if isinstance(text, Exception):
                raise text
            start_response(f"{text} No" if isinstance(text, int) else "200 OK", [("Content-Type", "text/html")])
            return [f"<!doctype html><main>{text}</main>".encode()]

        self.clock = Clock()
        self.app: Any = SitemapMiddleware(app, store="memory://", include="/*", robots=False)
        self.prober = VaryingContentProber(
            self.clock, ProbeClient(), self.observe, lambda _, path: path not in self.forbidden
        )
        self.prober.wait = self.clock.pass_  # type: ignore[method-assign]

    def observe(self, response: Any) -> None:
        self.observed.append((response.path, response.status, response.is_volatile))

    def request(self, *, fails: bool = False, **environ: Any) -> Job:
        usual = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "wsgi.url_scheme": "https", "HTTP_HOST": "example.com"}
        request, job = request_of({**usual, **environ}, self.app), Job()
        for name in ("adapter", "key", "environ", "fields"):
            setattr(job, name, getattr(request, name))
        job.fails, job.jobs = fails, []
        return job

    def run(self, *paths: str, times: int = 1) -> list[str]:
        """The requests of a job for these pages."""
        request = self.request()
        self.prober.remember_request(SHOP, request)
        self.prober.enqueue(SHOP, paths, times)
        for job in request.jobs:
            job()
        requested, self.requested = self.requested, []
        return requested


def test_each_page_is_requested_in_each_round_until_its_checks_are_done() -> None:
    shop = Shop()
    assert shop.run("/a", "/b", times=3) == ["/a", "/b"] * 3
    assert shop.observed == [("/a", 200, False), ("/b", 200, False)] * 3
    assert not shop.prober.is_working


def test_page_that_waits_is_not_queued_again() -> None:
    shop = Shop()
    request = shop.request()
    shop.prober.remember_request(SHOP, request)
    for _ in range(2):
        shop.prober.enqueue(SHOP, ["/a", "/a"], 1)
    assert shop.prober.is_working
    assert len(request.jobs) == 1
    request.jobs[0]()
    assert shop.requested == ["/a"]
    shop.requested.clear()
    assert shop.run("/a") == ["/a"], "it was requested, and may be queued again"


@pytest.mark.parametrize(
    ("answers", "observed"),
    [
        (["x", "y"], [(200, False), (200, True)]),
        (["x", "x", "y"], [(200, False), (200, False), (200, True)]),
        (["x", 404], [(200, False), (404, False)]),
        ([404], [(404, False)]),
        ([ValueError("the app's own")], []),
        (["x", ValueError("the app's own")], [(200, False)]),
    ],
    ids=["changes", "changes later", "goes away", "absent", "fails", "fails later"],
)
def test_checks_end_with_an_answer_that_is_another_or_none(answers: list[Any], observed: list[Any]) -> None:
    shop = Shop()
    shop.answers["/a"] = answers
    requested = shop.run("/a", "/b", times=4)
    assert requested.count("/b") == 4, "other pages are checked nevertheless"
    assert [found[1:] for found in shop.observed if found[0] == "/a"] == observed


def test_requests_are_separated_by_pauses() -> None:
    shop = Shop()
    begun = shop.clock()
    shop.run("/a", "/b", times=2)
    assert shop.clock() - begun == pytest.approx(2 * PAUSE_SECONDS + 4 * MIN_PAUSE_SECONDS)


def test_pages_that_may_not_be_requested_are_not() -> None:
    shop = Shop()
    shop.forbidden = {"/a"}
    assert shop.run("/a", "/b") == ["/b"]
    assert shop.run("/a") == []


def test_request_whose_event_loop_has_ended_is_forgotten() -> None:
    shop = Shop()
    shop.prober.remember_request(SHOP, shop.request(fails=True))
    shop.prober.enqueue(SHOP, ["/a"], 1)
    assert not shop.prober.is_working
    later = shop.request()
    shop.prober.enqueue(SHOP, ["/a"], 1)
    assert shop.requested == []
    shop.prober.remember_request(SHOP, later)
    shop.prober.enqueue(SHOP, ["/b"], 1)
    later.jobs[0]()
    assert shop.requested == ["/b"], "nothing waits from before"


def test_request_of_a_server_with_one_thread_is_not_remembered() -> None:
    shop = Shop()
    request = shop.request(**{"wsgi.multithread": False})
    shop.prober.remember_request(SHOP, request)
    shop.prober.enqueue(SHOP, ["/a"], 1)
    assert request.jobs == []


def test_closed_prober_forgets_what_waits() -> None:
    shop = Shop()
    request = shop.request()
    shop.prober.remember_request(SHOP, request)
    shop.prober.enqueue(SHOP, ["/a"], 1)
    shop.prober.close()
    request.jobs[0]()
    assert (shop.requested, shop.prober.is_working) == ([], False)
    shop.prober.enqueue(SHOP, ["/a"], 1)
    assert len(request.jobs) == 1, "the request is forgotten, too"
    assert shop.run("/a") == ["/a"], "the next request is remembered"
