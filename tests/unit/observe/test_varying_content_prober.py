"""verify=True: a page that says something new is asked for again, and so is known to stand, or to move."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import flask
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.adapters.event_loop_and_threads import _background_tasks
from sitemap_middleware.evidence.dates import w3c_from_timestamp
from sitemap_middleware.observe.prober import CHECKS, Prober
from sitemap_middleware.stores.sqlite import MemoryStore

from ...support.documents import entries
from ...support.sample_sites import Clock
from ...support.waiting import join_threads
from ...support.wire import RequestSpec, asgi, asgi_async, wsgi

LOCAL = "http://testserver"
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


def test_an_endless_answer_leaves_it_at_that() -> None:
    def endless() -> Any:
        while True:
            yield b"x" * 100_000

    app = flask.Flask("site", static_folder=None)
    answers = iter([lambda: "<main>One</main>", lambda: flask.Response(endless(), mimetype="text/html")])
    app.add_url_rule("/page", "page", lambda: next(answers)())  # noqa: PLW0108 (each has its own)
    site = SitemapMiddleware(app, store="memory://", verify=True, robots=False)
    site.service.prober.wait = lambda *_: None  # type: ignore[method-assign]
    wsgi(site, RequestSpec("/page"))
    site.flush()
    join_threads("sitemap-background")
    assert next(answers, None) is None


def test_a_pause_ends_when_the_middleware_is_closed() -> None:
    prober = Prober(MemoryStore(), Clock(), lambda _: None, lambda *_: True)
    prober.close()
    began = time.monotonic()
    prober.wait(30)
    assert time.monotonic() - began < 10


# One job, run by the test
