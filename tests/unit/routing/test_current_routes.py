"""The routes of an app as they are now: read again only after a change; and their table, looked up by path."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import fastapi.routing
import flask
import pytest
from fastapi import APIRouter, FastAPI
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Host, Mount, Route, Router
from werkzeug.middleware.dispatcher import DispatcherMiddleware

from sitemap_middleware import SitemapMiddleware, models, sitemap
from sitemap_middleware.models import Context, RouteSettings
from sitemap_middleware.patterns import Pattern
from sitemap_middleware.routing.current_routes import AppRoutes

from ...support.sample_sites import Clock


@pytest.fixture(autouse=True)
def _no_marked_router_of_another_test() -> None:
    """Gone in the midst of a test it would be a change."""
    gc.collect()


def routes_of(app: Any) -> AppRoutes:
    return SitemapMiddleware(app, store="memory://").service.app_routes


def page(*_: Any, **__: Any) -> HTMLResponse:
    return HTMLResponse("a page")


def other(*_: Any, **__: Any) -> HTMLResponse:
    return HTMLResponse("another page")


class Apps:
    """An app of each framework, and what may be changed of it."""

    def __init__(self) -> None:
        self.flask = flask.Flask("site", static_folder=None)
        self.flask.add_url_rule("/a", "a", page)
        self.flask.add_url_rule("/b", "b", page)
        self.dispatcher = DispatcherMiddleware(self.flask, {"/inner": flask_app("/a")})
        self.inner = Router([Route("/a", page)])
        self.mount = Mount("/mount", self.inner)
        self.starlette = Starlette(
            routes=[Route("/a", page), Route("/b", page), self.mount, Host("blog.example", Router([Route("/c", page)]))]
        )
        self.deep, self.router = APIRouter(), APIRouter()
        self.deep.get("/deep")(lambda: "a separate view, because marks of routers are looked up by view")
        self.router.get("/a")(lambda: "another one")
        self.router.include_router(self.deep, prefix="/in")
        self.fastapi = FastAPI()
        self.fastapi.include_router(self.router, prefix="/one")
        self.fastapi.include_router(self.router, prefix="/two")


def flask_app(*paths: str) -> flask.Flask:
    app = flask.Flask("inner", static_folder=None)
    for path in paths:
        app.add_url_rule(path, path, page)
    return app


def replaced(site: Apps) -> None:
    site.starlette.router.routes[1] = Route("/c", page)


def swapped(site: Apps) -> None:
    site.flask.view_functions["a"] = sitemap(priority=0.3)(other)


def marked(target: Callable[[Apps], Any]) -> Callable[[Apps], None]:
    """Mark a function that has no mark; each call needs a separate function, because marks stay."""

    def mark(site: Apps) -> None:
        sitemap(priority=0.25)(target(site))

    return mark


CHANGES: Mapping[str, tuple[str, Callable[[Apps], Any]]] = {
    "a rule more": ("flask", lambda site: site.flask.add_url_rule("/c", "c", page)),
    "a rule more of a view": ("flask", lambda site: site.flask.add_url_rule("/c", "a", page)),
    "a rule less": ("flask", lambda site: site.flask.url_map._rules_by_endpoint.pop("a")),
    "another view": ("flask", swapped),
    "a mark on an app": ("flask", marked(lambda site: site.flask)),
    "a mounted app more": ("dispatcher", lambda site: site.dispatcher.mounts.update({"/new": flask_app("/a")})),
    "another mounted app": ("dispatcher", lambda site: site.dispatcher.mounts.update({"/inner": flask_app("/z")})),
    "a rule of a mounted app": ("dispatcher", lambda site: site.dispatcher.mounts["/inner"].add_url_rule("/c", "c")),
    "a route more": ("starlette", lambda site: site.starlette.add_route("/c", page)),
    "a route less": ("starlette", lambda site: site.starlette.router.routes.pop(0)),
    "another route": ("starlette", replaced),
    "another list of routes": ("starlette", lambda site: setattr(site.starlette.router, "routes", [Route("/z", page)])),
    "a route of a mount": ("starlette", lambda site: site.inner.routes.append(Route("/c", page))),
    "a mount more": ("starlette", lambda site: site.starlette.mount("/new", Router([Route("/a", page)]))),
    "another app in a mount": ("starlette", lambda site: setattr(site.mount, "app", Router([Route("/z", page)]))),
    "a mark on a route": ("starlette", marked(lambda site: site.starlette.routes[0])),
    "a mark on a mount": ("starlette", marked(lambda site: site.mount)),
    "a route of FastAPI more": ("fastapi", lambda site: site.fastapi.get("/c")(page)),
    "a router more": ("fastapi", lambda site: site.fastapi.include_router(site.deep, prefix="/new")),
    "a mark on a router": ("fastapi", marked(lambda site: site.router)),
}
if hasattr(fastapi.routing, "iter_route_contexts"):  # before 0.137, FastAPI copies what it includes, once and for all
    CHANGES |= {
        "a route of an included router": ("fastapi", lambda site: site.router.get("/c")(page)),
        "a route of a router included in that": ("fastapi", lambda site: site.deep.get("/c")(page)),
        "a router in a router": ("fastapi", lambda site: site.router.include_router(site.deep, prefix="/new")),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGES)
def test_whatever_changes_of_the_map_is_seen_at_once(name: str) -> None:
    site, (framework, change) = Apps(), CHANGES[name]
    app_routes = routes_of(getattr(site, framework))
    known = app_routes.reload()
    assert app_routes.reload() is known
    change(site)
    changed = app_routes.reload()
    assert changed.routes == routes_of(getattr(site, framework)).reload().routes
    assert changed.routes != known.routes
    assert (app_routes.reload(), app_routes.version) == (changed, 2)


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
    site = Apps()
    app_routes = routes_of(site.fastapi)
    app_routes.reload()
    site.router.frontend("/", directory=tmp_path)
    assert {"/one/", "/two/"} <= {route.path for route in app_routes.reload().routes}


# The table

PARTS = st.sampled_from(["a", "b", "ab", "<x>", "{x}", "a<x>", "<path:x>", "*"])
TEMPLATES = st.lists(PARTS, max_size=3).map(lambda parts: "/" + "/".join(parts))
HOSTS = st.sampled_from([None, "blog.example", "shop.example"])


class Taker:
    """A router's builder, which takes the paths of a pattern."""

    names = ("slug",)

    def __init__(self, template: str) -> None:
        self.matches = Pattern(template).matches

    def build(self, params: Mapping[str, Any]) -> str:
        raise AssertionError(params)

    def context(self) -> Context | None:
        return None


@st.composite
def routes(draw: Any) -> models.Route:
    path, host = draw(TEMPLATES.filter(lambda template: "*" not in template)), draw(HOSTS)
    other = draw(HOSTS) if host is None else None
    elsewhere = () if other is None else (other,)
    if Pattern(path).literal:
        return models.Route(path, "view", host=host, except_hosts=elsewhere)
    taker = draw(st.sampled_from([None, Taker(path)]))
    mark = RouteSettings(learn=draw(st.sampled_from([None, True])))
    return models.Route(path, "view", static=False, host=host, settings=mark, except_hosts=elsewhere, builder=taker)


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
