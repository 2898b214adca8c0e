"""Apps of one framework in apps of another, apps behind wrappers, and apps of no known framework."""

from __future__ import annotations

import asyncio
import functools
import importlib
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import a2wsgi
import bottle
import flask
import pytest
from asgiref.wsgi import WsgiToAsgi
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from starlette.applications import Starlette
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Mount, Route, Router
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.middleware.proxy_fix import ProxyFix

from sitemap_middleware import OptionError, SitemapMiddleware
from sitemap_middleware.routing.framework_detection import is_debug

from ...support import django_project as _settings  # noqa: F401 (configures Django)
from ...support.documents import locs
from ...support.sample_sites import Clock, SiteOf, plain_flask
from ...support.wire import DRIVERS, RequestSpec


def fastapi_app(*paths: str) -> FastAPI:
    app = FastAPI()
    for path in paths:
        app.get(path, response_class=HTMLResponse)(lambda: HTMLResponse("a page of fastapi"))
    return app


def starlette_app(*paths: str) -> Starlette:
    async def page(_: Any) -> HTMLResponse:
        return HTMLResponse("a page of starlette")

    return Starlette(routes=[Route(path, page) for path in paths])


def starlettes_own(app: Any) -> Any:
    """Starlette's WSGIMiddleware, deprecated and still in use."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("starlette.middleware.wsgi").WSGIMiddleware(app)


@pytest.fixture
def to_wsgi() -> Iterator[Any]:
    """Makes a WSGI app of an ASGI app, on a loop that ends with the test."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield functools.partial(a2wsgi.ASGIMiddleware, loop=loop)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


# WSGI in ASGI

BRIDGES = pytest.mark.parametrize(
    "bridge",
    [
        pytest.param(starlettes_own, id="starlette"),
        pytest.param(a2wsgi.WSGIMiddleware, id="a2wsgi"),
        pytest.param(WsgiToAsgi, id="asgiref"),
    ],
)


@BRIDGES
@pytest.mark.parametrize(
    ("mount", "expected"), [("/f", ["/f/", "/f/a", "/zoo"]), ("/", ["/", "/a", "/zoo"]), ("", ["/", "/a", "/zoo"])]
)
def test_flask_in_fastapi(bridge: Any, mount: str, expected: list[str]) -> None:
    app = fastapi_app("/zoo")
    app.mount(mount, bridge(plain_flask("/", "/a", "/b/<c>")))
    site = SiteOf(app)
    assert site.listed() == expected


def test_what_a_mount_hides_is_not_listed() -> None:
    inner, outer = plain_flask("/a"), fastapi_app("/before")
    outer.mount("/f", a2wsgi.WSGIMiddleware(inner))
    outer.get("/f/a", response_class=HTMLResponse)(lambda: HTMLResponse("never reached"))
    outer.get("/f/b", response_class=HTMLResponse)(lambda: HTMLResponse("never reached"))
    site = SiteOf(outer)
    assert site.request("/f/b").status == 404
    assert site.listed() == ["/before", "/f/a"]


# ASGI in WSGI, and several WSGI apps


def test_fastapi_in_flask(to_wsgi: Any) -> None:
    app = plain_flask("/", "/a")
    app.wsgi_app = DispatcherMiddleware(app.wsgi_app, {"/zoo": to_wsgi(fastapi_app("/", "/b", "/c/{d}"))})
    inside = SiteOf(app.wsgi_app)
    assert inside.listed() == ["/", "/a", "/zoo/", "/zoo/b"]
    assert inside.request("/zoo/b").text == "a page of fastapi"
    assert SiteOf(app).listed() == inside.listed()


def test_several_apps_by_path() -> None:
    app = DispatcherMiddleware(
        plain_flask("/", "/blog", "/blog/never", "/blogs"),
        {"/blog": plain_flask("/", "/a", "/en/never"), "/blog/en": plain_flask("/", "/b"), "/unknown": bare_wsgi},
    )
    assert SiteOf(app).listed() == ["/", "/blog/", "/blog/a", "/blog/en/", "/blog/en/b", "/blogs"]


def test_behind_werkzeugs_proxy_fix_the_prefix_stands_once() -> None:
    app = ProxyFix(
        SitemapMiddleware(plain_flask("/", "/a"), allowed_hosts=["localhost"], store="memory://", verify=False),
        x_proto=1,
        x_host=1,
        x_prefix=1,
    )
    headers = [("x-forwarded-proto", "https"), ("x-forwarded-host", "localhost"), ("x-forwarded-prefix", "/p")]
    answer = DRIVERS["wsgi"](app, RequestSpec("/sitemap.xml", headers=headers, host="internal"))
    assert locs(answer.body) == ["https://localhost/p/", "https://localhost/p/a"]


# Apps of no known framework


def bare_wsgi(environ: Any, start_response: Any) -> list[bytes]:
    exists = environ["PATH_INFO"] in ("/", "/about", "/posts/a", "/posts/b", "/keys/c")
    start_response("200 OK" if exists else "404 NOT FOUND", [("Content-Type", "text/html")])
    return [b"a page"]


async def bare_asgi(scope: Any, receive: Any, send: Any) -> None:
    exists = scope["path"] in ("/", "/about", "/posts/a", "/posts/b", "/keys/c")
    headers = [(b"content-type", b"text/html")]
    await send({"type": "http.response.start", "status": 200 if exists else 404, "headers": headers})
    await send({"type": "http.response.body", "body": b"a page"})


class Service:
    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        await bare_asgi(scope, receive, send)


def logged(app: Any) -> Any:
    @functools.wraps(app)
    def wrapper(*args: Any) -> Any:
        return app(*args)

    return wrapper


def with_setting(setting: str, environ: Any, start_response: Any) -> Any:
    return bare_wsgi(environ, start_response)


async def with_option(scope: Any, receive: Any, send: Any, *, option: str = "", more: int = 0) -> None:
    await bare_asgi(scope, receive, send)


@pytest.mark.parametrize(
    ("protocol", "app"),
    [
        pytest.param("wsgi", bare_wsgi, id="a WSGI function"),
        pytest.param("wsgi", functools.partial(with_setting, "x"), id="a WSGI partial"),
        pytest.param("wsgi", logged(bare_wsgi), id="a decorated WSGI function"),
        pytest.param("asgi", bare_asgi, id="an ASGI function"),
        pytest.param("asgi", Service().handle, id="an async bound method"),
        pytest.param("asgi", functools.partial(with_option, option="x"), id="an ASGI partial"),
    ],
)
def test_an_app_of_no_known_framework_is_what_its_traffic_proves(protocol: str, app: Any) -> None:
    site = SiteOf(app, include=("/about", "/missing"), learn="/posts/<slug>")
    assert site.listed() == ["/about", "/missing"]
    site.visit("/", "/about", "/missing", "/posts/a", "/posts/b", "/posts/none", "/keys/c")
    assert site.listed() == ["/about", "/posts/a", "/posts/b"]


def test_unknown_framework_without_patterns_has_no_sitemap_and_says_why() -> None:
    site = SiteOf(bare_wsgi)
    site.visit("/", "/about")
    assert site.request("/sitemap.xml").status == 404
    assert "no static route of this path, and no pattern" in site.app.explain("/about").reason


@pytest.mark.parametrize(
    "app", [None, "app", 5, object(), print, dict, lambda: None, lambda _: None, lambda a, b, c, d: (a, b, c, d)]
)
def test_what_speaks_neither_protocol_is_refused_with_the_cure(app: Any) -> None:
    with pytest.raises(OptionError, match=r"app=.*give a ") as caught:
        SitemapMiddleware(app, store="memory://", verify=False)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, TypeError)


# Apps that cannot be found


def hidden(app: Any) -> Any:
    def wsgi(environ: Any, start_response: Any) -> Any:
        return app(environ, start_response)

    async def asgi(scope: Any, receive: Any, send: Any) -> None:
        await app(scope, receive, send)

    return wsgi if isinstance(app, flask.Flask) else asgi


@pytest.mark.parametrize(("protocol", "make"), [("wsgi", plain_flask), ("asgi", fastapi_app), ("asgi", starlette_app)])
def test_an_app_that_cannot_be_found_is_named_by_routes(protocol: str, make: Any) -> None:
    app = make("/", "/a")
    assert SiteOf(hidden(app)).listed() == []
    site = SiteOf(hidden(app), routes=app)
    site.visit("/a")
    assert site.listed() == ["/", "/a"]


@pytest.mark.parametrize(
    "routes",
    [plain_flask("/a").wsgi_app, GZipMiddleware(starlette_app("/a")), Router([Mount("", starlette_app("/a"))])],
)
def test_routes_may_be_anything_that_leads_to_an_app(routes: Any) -> None:
    assert SiteOf(bare_asgi, routes=routes).listed() == ["/a"]


# Apps that change


def test_the_routes_of_a_large_app_are_read_at_most_every_ten_seconds() -> None:
    clock = Clock()
    app = starlette_app(*(f"/{number}" for number in range(2001)))
    app_routes = SitemapMiddleware(app, store="memory://", clock=clock).service.app_routes
    app_routes.reload()
    app.router.routes += starlette_app("/new").routes
    clock.pass_(9)
    assert len(app_routes.reload().routes) == 2001
    clock.pass_(2)
    assert len(app_routes.reload().routes) == 2002


# The debug flag


@pytest.mark.parametrize("debug", [True, False])
def test_the_debug_flag_of_each_framework(monkeypatch: pytest.MonkeyPatch, *, debug: bool) -> None:
    app = plain_flask()
    app.debug = debug
    monkeypatch.setattr(settings, "DEBUG", debug)
    monkeypatch.setattr(bottle, "DEBUG", debug)
    for flagged in (app, Starlette(debug=debug), WSGIHandler(), bottle.Bottle()):
        assert is_debug(flagged) is debug
    assert not is_debug(object())
