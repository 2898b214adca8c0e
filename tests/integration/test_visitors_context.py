"""What a sitemap says never depends on who asks for it: the app's code for it runs in an empty context."""

from __future__ import annotations

from contextvars import ContextVar, copy_context
from datetime import date
from typing import Any

import pytest
from flask import Flask
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware, sitemap

from ..support.documents import locs
from ..support.sample_sites import Clock
from ..support.wire import DRIVERS, RequestSpec

visitor: ContextVar[str] = ContextVar("visitor", default="public")
PAGE = "<!doctype html><title>A page</title><h1>A page</h1><p>Text."


def rows() -> list[dict[str, str]]:
    return [{"slug": visitor.get()}]


def lazy_rows() -> Any:
    yield {"slug": visitor.get()}


async def awaited_rows() -> list[dict[str, str]]:
    return rows()


async def async_rows() -> Any:
    yield {"slug": visitor.get()}


def section() -> list[str]:
    return [f"/of/{visitor.get()}"]


async def async_section() -> Any:
    yield f"/of/{visitor.get()}"


def modified() -> date:
    return date(2020, 1, 1) if visitor.get() == "public" else date(2021, 1, 1)


def flask_app(values: Any) -> Any:
    app = Flask(__name__)

    @app.get("/posts/<slug>")
    @sitemap(values=values)
    def post(slug: str) -> str:
        return PAGE

    @app.get("/")
    @sitemap(lastmod=modified)
    def home() -> str:
        return PAGE

    return app


def starlette_app(values: Any) -> Any:
    @sitemap(values=values)
    async def post(request: Any) -> HTMLResponse:
        return HTMLResponse(PAGE)

    @sitemap(lastmod=modified)
    async def home(request: Any) -> HTMLResponse:
        return HTMLResponse(PAGE)

    return Starlette(routes=[Route("/posts/{slug}", post), Route("/", home)])


def signed_in(protocol: str, app: Any) -> Any:
    """What the app's server does before the middleware sees a request: it says whose request it is."""

    def wsgi(environ: Any, start_response: Any) -> Any:
        context = copy_context()  # the test's own stays as it is
        context.run(visitor.set, "draft-of-alice")
        return context.run(app, environ, start_response)

    async def asgi(scope: Any, receive: Any, send: Any) -> None:
        visitor.set("draft-of-alice")
        await app(scope, receive, send)

    return wsgi if protocol == "wsgi" else asgi


@pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
@pytest.mark.parametrize("values", [rows, lazy_rows, awaited_rows, async_rows])
def test_values_and_dates_are_not_those_of_the_visitor_who_asks(protocol: str, values: Any) -> None:
    inner = flask_app(values) if protocol == "wsgi" else starlette_app(values)
    clock = Clock()
    app = SitemapMiddleware(inner, store="memory://", clock=clock, base_url="https://example.com")
    for _ in range(3):  # the first is rendered by its request, later ones by a background job
        answer = DRIVERS[protocol](signed_in(protocol, app), RequestSpec("/sitemap.xml"))
        assert answer.status == 200
        assert locs(answer.body) == ["https://example.com/", "https://example.com/posts/public"]
        assert b"2020-01-01" in answer.body
        assert b"2021-01-01" not in answer.body
        app.flush()
        clock.pass_(7200)


@pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
@pytest.mark.parametrize("values", [section, async_section])
def test_sections_are_not_those_of_the_visitor_who_asks(protocol: str, values: Any) -> None:
    inner = flask_app(rows) if protocol == "wsgi" else starlette_app(rows)
    app = SitemapMiddleware(
        inner, store="memory://", clock=Clock(), base_url="https://example.com", sections={"all": values}
    )
    DRIVERS[protocol](signed_in(protocol, app), RequestSpec("/sitemap.xml"))
    answer = DRIVERS[protocol](signed_in(protocol, app), RequestSpec("/sitemap-all.xml"))
    assert locs(answer.body) == ["https://example.com/of/public"]
