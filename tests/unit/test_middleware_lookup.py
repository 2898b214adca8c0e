"""`SitemapMiddleware.of`: finds the middleware of an app, wherever it is, and whatever is around it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import a2wsgi
import flask
import pytest
import quart
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Host, Mount, Route, Router
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.middleware.proxy_fix import ProxyFix

from sitemap_middleware import MiddlewareLookupError, SitemapError, SitemapMiddleware

from ..support.documents import locs
from ..support.sample_sites import plain_flask
from ..support.wire import DRIVERS, RequestSpec

BASE_URL = "https://example.com"


def flask_site() -> flask.Flask:
    app = plain_flask("/a")
    app.wsgi_app = SitemapMiddleware(app.wsgi_app, base_url=BASE_URL)
    return app


def behind_proxy() -> flask.Flask:
    app = flask_site()
    app.wsgi_app = ProxyFix(app.wsgi_app)
    return app


def quart_site() -> quart.Quart:
    app = quart.Quart("site")
    app.asgi_app = SitemapMiddleware(app.asgi_app, base_url=BASE_URL)  # type: ignore[method-assign] # as Quart's docs do
    return app


def starlette_app(**options: Any) -> Starlette:
    return Starlette(routes=[Route("/a", lambda _: HTMLResponse("a page"))], **options)


def starlette_site(**options: Any) -> Starlette:
    app = starlette_app()
    app.add_middleware(SitemapMiddleware, base_url=BASE_URL, **options)
    app.add_middleware(GZipMiddleware)
    return app


def fastapi_site() -> FastAPI:
    app = FastAPI()
    app.get("/a", response_class=HTMLResponse)(lambda: "a page")
    app.add_middleware(SitemapMiddleware, base_url=BASE_URL)
    return app


def in_the_list() -> Starlette:
    return starlette_app(middleware=[Middleware(SitemapMiddleware, base_url=BASE_URL)])


def in_a_mount() -> Starlette:
    mount = Mount("/m", routes=[Route("/a", lambda _: HTMLResponse(""))], middleware=[Middleware(SitemapMiddleware)])
    return Starlette(routes=[Route("/plain", lambda _: HTMLResponse("")), mount])


SITES: dict[str, Callable[[], Any]] = {
    "the middleware itself": lambda: SitemapMiddleware(plain_flask("/a")),
    "around a Flask app": flask_site,
    "in ProxyFix": behind_proxy,
    "mounted in a dispatcher": lambda: DispatcherMiddleware(plain_flask("/a"), {"/other": flask_site()}),
    "around a Quart app": quart_site,
    "add_middleware of Starlette": starlette_site,
    "add_middleware of FastAPI": fastapi_site,
    "the list of Starlette": in_the_list,
    "mounted for a host": lambda: Starlette(routes=[Host("sub.example.com", starlette_site())]),
    "mounted two levels deep": lambda: Starlette(
        routes=[Mount("/1", Router(routes=[Mount("/2", starlette_site()), Mount("/3", starlette_app())]))]
    ),
    "Flask in Starlette": lambda: Starlette(routes=[Mount("/blog", a2wsgi.WSGIMiddleware(flask_site()))]),
    "the middleware of a Mount": in_a_mount,
}


@pytest.mark.parametrize("site", SITES)
def test_the_middleware_of_an_app_is_found(site: str) -> None:
    app = SITES[site]()
    found = SitemapMiddleware.of(app)
    assert isinstance(found, SitemapMiddleware)
    assert SitemapMiddleware.of(app) is found


@pytest.mark.parametrize("site", [starlette_site, fastapi_site, in_the_list])
def test_the_middleware_that_is_found_is_the_one_that_serves(site: Callable[[], Any]) -> None:
    app = site()
    found = SitemapMiddleware.of(app)
    assert found.explain("/a").reason == "it was not requested yet by this process: request /sitemap.xml once"
    assert locs(DRIVERS["asgi"](app, RequestSpec("/sitemap.xml")).body) == [f"{BASE_URL}/a"]
    assert found.stats()["listed"] == 1
    assert found.explain("/a").listed
    assert SitemapMiddleware.of(app) is found
    assert app.state.sitemap is found


def test_an_app_is_not_given_the_middleware_of_a_mounted_one() -> None:
    sub = starlette_app()
    wrapped = SitemapMiddleware(sub)
    app = Starlette(routes=[Mount("/sub", wrapped)])
    DRIVERS["asgi"](app, RequestSpec("/sub/a"))
    assert not hasattr(app.state, "sitemap")
    assert sub.state.sitemap is wrapped
    plain = Starlette(routes=[Mount("/sub", SitemapMiddleware(Router(routes=sub.routes)))])
    DRIVERS["asgi"](plain, RequestSpec("/sub/a"))
    assert not hasattr(plain.state, "sitemap")


# None, or more than one


@pytest.mark.parametrize(
    "app",
    [
        plain_flask("/a"),
        starlette_app(),
        Starlette(routes=[Mount("/sub", starlette_app())]),
        DispatcherMiddleware(plain_flask("/a"), {"/x": plain_flask("/a")}),
        object(),
        None,
        starlette_app(middleware=[Middleware(functools.partial(CORSMiddleware))]),
    ],
)
def test_an_app_without_it_gets_an_error_with_the_fix(app: Any) -> None:
    with pytest.raises(MiddlewareLookupError, match=r"has no SitemapMiddleware; add it: app.add_middleware\(") as error:
        SitemapMiddleware.of(app)
    assert '"sitemap_middleware.django.SitemapMiddleware" to MIDDLEWARE in Django' in str(error.value)
    assert "Litestar(plugins=[SitemapPlugin()]) of sitemap_middleware.litestar in Litestar" in str(error.value)
    assert isinstance(error.value, SitemapError)
    assert isinstance(error.value, LookupError)


def test_an_app_with_two_gets_an_error_with_their_paths() -> None:
    for app in (
        SitemapMiddleware(flask_site(), path="/outer.xml"),
        SitemapMiddleware(starlette_site(), path="/outer.xml"),
    ):
        with pytest.raises(
            MiddlewareLookupError, match=r"has 2 SitemapMiddleware, with the paths /outer.xml, /sitemap"
        ):
            SitemapMiddleware.of(app)
    with pytest.raises(
        MiddlewareLookupError, match=r"with the paths /sitemap.xml, /sitemap.xml; give the app, mounted"
    ):
        SitemapMiddleware.of(Starlette(routes=[Mount("/1", starlette_site()), Mount("/2", flask_site())]))


def test_a_cycle_of_apps_ends() -> None:
    app = Starlette()
    app.mount("/again", app)
    with pytest.raises(MiddlewareLookupError, match="has no SitemapMiddleware"):
        SitemapMiddleware.of(app)
