"""What it costs to read the routes of an app with 10,000 routes, beside what the app itself takes to build it.

The app's own build is all that it does until it can answer: each route added
by the framework's own means, and what it makes at its first request: Werkzeug
sorts its rules, FastAPI works out the routes of included routers. That is done
before discovery begins, and is no part of it.

Two loops show what any discovery of Starlette's routes costs in Python: one that
reads the path, the methods and the view of each, and keeps the views by path; and
one that also makes a record of each with as many fields as the middleware needs.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import flask
from fastapi import APIRouter, FastAPI
from starlette.applications import Starlette
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware
from sitemap_middleware.models import Route as DiscoveredRoute
from sitemap_middleware.models import Site

from .alternating_timing import Rounds
from .tables import Table

ROUTES, ROUNDS, LOOKS = 10_000, 5, 100
SHORT = {"routes": 200, "rounds": 2}
OPTIONS = {"base_url": "https://example.com", "store": "memory://"}
PARTS = {
    "discovery": "the first reading",
    "routes": "a record of each, made when a sitemap is first rendered",
    "re-reading": "a reading if nothing changed",
    "unchanged": "a check whether anything changed",
    "loop": "a bare loop that keeps views by path",
    "records": "the same loop, with a record of each",
}


def run(routes: int = ROUTES, rounds: int = ROUNDS, only: str | None = None) -> Iterator[Table]:
    """Measure apps of so many routes, so many times each; or only the app of this name."""
    for name, build in APPS:
        if only in (None, name):
            yield _table(f"{name}, {routes:,} routes", build, routes, rounds)


def _table(title: str, build: Callable[[int], Any], routes: int, rounds: int) -> Table:
    seconds: dict[str, list[float]] = {}
    for _ in range(rounds):
        for part, seconds_taken in _round(build, routes).items():
            seconds.setdefault(part, []).append(seconds_taken)
    timed = Rounds(seconds)
    table = Table(title, ["", "µs", "% of the build", "from", "to"])
    table.add("the app's own build of its map", timed.of("build").middle * 1e6)
    for part, named in PARTS.items():
        if part not in seconds:
            continue
        ratio = timed.ratio(part, "build")
        shares = (f"{share * 100:.4f}" for share in (ratio.middle, ratio.low, ratio.high))
        table.add(named, timed.of(part).middle * 1e6, *shares)
    return table


def _round(build: Callable[[int], Any], routes: int) -> dict[str, float]:
    """Build a new app; return the seconds of each part."""
    gc.collect()
    began = time.process_time()
    app = build(routes)
    built = time.process_time()
    app_routes = SitemapMiddleware(app, **OPTIONS).service.app_routes
    seconds = {"build": built - began, "discovery": _seconds_for(app_routes.reload, 1)}
    assert app_routes.table.count >= routes, "it was not the app's map that was read"
    seconds["routes"] = _seconds_for(partial(app_routes.table.static, Site("https", "example.com")), 1)
    seconds |= {
        "re-reading": _seconds_for(app_routes.reload, LOOKS),
        "unchanged": _seconds_for(app_routes.is_unchanged, LOOKS),
    }
    assert app_routes.version == 1, "it was not an unchanged map that was looked at"
    assert app_routes.is_unchanged(), "nothing changed, and it was not seen"
    if type(app) is Starlette:
        app = build(routes)  # new, as it was for the first reading: its routes are in no processor's cache
        seconds["loop"] = _seconds_for(partial(_views_by_path, app), 1)
        app = build(routes)
        seconds["records"] = _seconds_for(partial(_records_by_path, app), 1)
    return seconds


def _views_by_path(app: Starlette) -> dict[str, Any]:
    views = {}
    for route in app.routes:
        if type(route) is Route and "GET" in (route.methods or ()):
            views[route.path] = route.endpoint
    return views


def _records_by_path(app: Starlette) -> dict[str, DiscoveredRoute]:
    records = {}
    for route in app.routes:
        if type(route) is Route and "GET" in (route.methods or ()):
            path = route.path
            fields = path, route.endpoint.__qualname__, True, None, None, None, None, None, None, None, None
            records[path] = tuple.__new__(DiscoveredRoute, fields)
    return records


def _seconds_for(run: Callable[[], object], times: int) -> float:
    began = time.process_time()
    for _ in range(times):
        run()
    return (time.process_time() - began) / times


def _paths(routes: int) -> Iterator[tuple[int, str]]:
    return ((number, f"/section{number % 100}/page{number}") for number in range(routes))


def _flask(routes: int) -> flask.Flask:
    app = flask.Flask(__name__, static_folder=None)
    for number, path in _paths(routes):

        @app.route(path, endpoint=f"page{number}")
        def page() -> str:
            return "a page"

    app.url_map.bind("example.com").match("/section0/page0")
    return app


def _starlette(routes: int) -> Starlette:
    app = Starlette()
    for _, path in _paths(routes):

        async def page(_: Any) -> None: ...

        app.add_route(path, page)
    _request_unknown_path(app)
    return app


def _interleaved(routes: int) -> Starlette:
    """Every tenth route has parameters, some with converters; every thousandth is in a mount."""
    app = Starlette()
    ends = "{name}", "{number:int}", "{rest:path}", "{key:uuid}"
    for number, path in _paths(routes):

        async def page(_: Any) -> None: ...

        if number % 1000 == 505:
            app.mount(f"/mounted{number}", Starlette(routes=[Route("/", page)]))
        elif number % 10:
            app.add_route(path, page)
        else:
            app.add_route(f"/section{number % 100}/item{number}/{ends[number // 10 % 4]}", page)
    _request_unknown_path(app)
    return app


def _fastapi(routes: int) -> FastAPI:
    """A hundred sections, each with its own router."""
    app = FastAPI(openapi_url=None)
    for section in range(100):
        router = APIRouter(prefix=f"/section{section}")
        for number in range(section, routes, 100):

            def page() -> str:
                return "a page"

            router.add_api_route(f"/page{number}", page)
        app.include_router(router)
    _request_unknown_path(app)
    return app


def _request_unknown_path(app: Any) -> None:
    """Request a path that no route matches, so that the app goes through its whole map."""

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None: ...

    scope = {"type": "http", "method": "GET", "path": "/no/page", "query_string": b"", "headers": []}
    asyncio.run(app(scope, receive, send))


APPS = (
    ("Flask", _flask),
    ("Starlette", _starlette),
    ("Starlette, every tenth with parameters", _interleaved),
    ("FastAPI", _fastapi),
)
