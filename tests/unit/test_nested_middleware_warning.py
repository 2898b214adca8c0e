"""Two middlewares around one another: one warning says that the inner one's sitemap is never seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flask
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse
from starlette.routing import Mount, Route, Router
from werkzeug.middleware.dispatcher import DispatcherMiddleware

from sitemap_middleware import SitemapMiddleware

from ..support.wire import DRIVERS, RequestSpec


def ours(app: Any, **options: Any) -> Any:
    return SitemapMiddleware(app, **{"store": "memory://", "verify": False, "robots": False} | options)


def flask_app() -> flask.Flask:
    app = flask.Flask("nested", static_folder=None)
    app.add_url_rule("/", "home", lambda: "<p>Home")
    return app


def starlette_app(**options: Any) -> Starlette:
    return Starlette(routes=[Route("/", lambda _: HTMLResponse("<p>Home")), *options.pop("routes", ())], **options)


def inside(app: Any, **options: Any) -> Any:
    """The app, with a middleware of ours in it."""
    if isinstance(app, Starlette):
        app.add_middleware(SitemapMiddleware, store="memory://", verify=False, robots=False, **options)
    else:
        app.wsgi_app = ours(app.wsgi_app, **options)
    return app


def added(app: Starlette) -> Starlette:
    """The app, with the middleware in its list twice."""
    return inside(inside(app))  # type: ignore[no-any-return] # `inside` takes apps of any kind


class Holder:
    """An object that wraps one of its methods in the middleware."""

    def __init__(self) -> None:
        self.app = ours(self.answer, include="/")

    def answer(self, _: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [("Content-Type", "text/html")])
        return [b"<p>Home"]


NESTED: dict[str, tuple[str, Callable[[], Any]]] = {
    "Flask, twice in its place": ("wsgi", lambda: inside(inside(flask_app()))),
    "Flask, in its place and around": ("wsgi", lambda: ours(inside(flask_app()))),
    "Starlette, added twice": ("asgi", lambda: added(starlette_app())),
    "Starlette, added and around": ("asgi", lambda: ours(inside(starlette_app()))),
    "Starlette, given and around": (
        "asgi",
        lambda: ours(starlette_app(middleware=[Middleware(SitemapMiddleware, store="memory://")])),
    ),
    "mounted at the root": ("asgi", lambda: ours(starlette_app(routes=[Mount("/", inside(starlette_app()))]))),
    "mounted where the outer one has its path": (
        "asgi",
        lambda: ours(starlette_app(routes=[Mount("/a", inside(starlette_app()))]), path="/a/sitemap.xml"),
    ),
    "dispatched to": ("wsgi", lambda: ours(DispatcherMiddleware(inside(flask_app()), {"/a": flask_app()}))),
}
APART: dict[str, tuple[str, Callable[[], Any]]] = {
    "two paths": ("wsgi", lambda: ours(inside(flask_app(), path="/inner.xml"))),
    "two paths in Starlette": ("asgi", lambda: ours(inside(starlette_app(), path="/inner.xml"))),
    "mounted below a path": ("asgi", lambda: ours(starlette_app(routes=[Mount("/a", inside(starlette_app()))]))),
    "dispatched to below a path": (
        "wsgi",
        lambda: ours(DispatcherMiddleware(flask_app(), {"/a": inside(flask_app())})),
    ),
    "another middleware": ("asgi", lambda: ours(starlette_app(middleware=[Middleware(lambda app: app)]))),
    "around a method of the object that keeps it": ("wsgi", lambda: Holder().app),
    "alone": ("asgi", lambda: ours(starlette_app())),
}


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "two SitemapMiddleware" in record.getMessage()]


@pytest.mark.parametrize("name", NESTED)
def test_one_warning_names_both_and_the_fix(name: str, caplog: pytest.LogCaptureFixture) -> None:
    protocol, make = NESTED[name]
    app = make()
    for _ in range(2):
        for path in ("/", "/sitemap.xml"):
            DRIVERS[protocol](app, RequestSpec(path))
    (warning,) = warnings(caplog)
    assert "sitemap.xml, one inside the other" in warning
    assert "remove one of them, or give one another path=" in warning


@pytest.mark.parametrize("name", APART)
def test_what_hides_no_sitemap_is_not_warned_of(name: str, caplog: pytest.LogCaptureFixture) -> None:
    protocol, make = APART[name]
    app = make()
    for path in ("/", "/sitemap.xml"):
        DRIVERS[protocol](app, RequestSpec(path))
    assert warnings(caplog) == []


def test_apps_that_are_mounted_in_a_circle_end() -> None:
    router = Router()
    router.routes.append(Mount("/again", router))
    assert DRIVERS["asgi"](ours(router, include="/"), RequestSpec("/sitemap.xml")).status == 200
