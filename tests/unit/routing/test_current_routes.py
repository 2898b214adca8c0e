"""The routes of an app as they are now: apps may change while they run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import flask
import pytest
from fastapi import APIRouter, FastAPI
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.routing.current_routes import AppRoutes

from ...support.sample_sites import Clock


def routes_of(app: Any) -> AppRoutes:
    return SitemapMiddleware(app, store="memory://").service.app_routes


def page(*_: Any, **__: Any) -> HTMLResponse:
    return HTMLResponse("a page")


def flask_app(*paths: str) -> flask.Flask:
    app = flask.Flask("inner", static_folder=None)
    for path in paths:
        app.add_url_rule(path, path, page)
    return app


def test_an_app_that_takes_the_place_of_the_one_wrapped_is_read() -> None:
    class Wrapper:
        def __init__(self, app: Any) -> None:
            self.app = app

        def __call__(self, environ: Any, start_response: Any) -> Any:
            return self.app(environ, start_response)

    wrapper = Wrapper(flask_app("/a"))
    app_routes = routes_of(wrapper)
    assert [route.path for route in app_routes.reload().routes] == ["/a"]
    wrapper.app = flask_app("/b")
    assert [route.path for route in app_routes.reload().routes] == ["/b"]


@pytest.mark.skipif(not hasattr(FastAPI, "frontend"), reason="FastAPI has no frontends yet")
def test_a_frontend_that_is_added_later_is_found(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("home")
    app, router = FastAPI(), APIRouter()
    app.include_router(router, prefix="/one")
    app.include_router(router, prefix="/two")
    app_routes = routes_of(app)
    app_routes.reload()
    router.frontend("/", directory=tmp_path)
    assert {"/one/", "/two/"} <= {route.path for route in app_routes.reload().routes}


def test_the_routes_of_a_large_app_are_read_at_most_every_ten_seconds() -> None:
    clock = Clock()
    app = Starlette(routes=[Route(f"/{number}", page) for number in range(2001)])
    app_routes = SitemapMiddleware(app, store="memory://", clock=clock).service.app_routes
    app_routes.reload()
    app.router.routes.append(Route("/new", page))
    clock.pass_(9)
    assert len(app_routes.reload().routes) == 2001
    clock.pass_(2)
    assert len(app_routes.reload().routes) == 2002
