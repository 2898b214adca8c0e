"""The routes of an app as they are now: read again only after a change; and their table, looked up by path."""

from __future__ import annotations

import gc
import os
from collections import UserDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import fastapi.routing
import flask
import pytest
from fastapi import APIRouter, FastAPI
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Host, Mount, Route, Router
from starlette.staticfiles import StaticFiles
from werkzeug.middleware.dispatcher import DispatcherMiddleware

from sitemap_middleware import SitemapMiddleware, models, sitemap
from sitemap_middleware.models import Context, HiddenReason, RouteSettings, Site
from sitemap_middleware.patterns import Pattern
from sitemap_middleware.routing.current_routes import RECHECK_SECONDS, AppRoutes
from sitemap_middleware.routing.prefix_index import PrefixIndex, common_start
from sitemap_middleware.routing.route_table import RouteTable


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
    assert app_routes.is_unchanged()
    assert app_routes.reload() is known
    change(site)
    assert not app_routes.is_unchanged()
    changed = app_routes.reload()
    assert changed.routes == routes_of(getattr(site, framework)).reload().routes
    assert changed.routes != known.routes
    assert (app_routes.is_unchanged(), app_routes.reload(), app_routes.version) == (True, changed, 2)


def test_before_the_first_reading_nothing_is_known_to_be_unchanged() -> None:
    assert not routes_of(flask_app("/a")).is_unchanged()


def test_a_quick_check_holds_for_a_moment() -> None:
    app = flask_app("/a")
    app_routes = routes_of(app)
    table, now = app_routes.reload(), 1000.0
    until = app_routes.current_until(table, now)
    assert until == now + RECHECK_SECONDS
    app.add_url_rule("/b", "b", page)
    assert app_routes.current_until(table, now + RECHECK_SECONDS / 2) == until
    assert app_routes.current_until(table, now) == 0, "the clock stands still"
    assert app_routes.current_until(table, until) == 0
    assert app_routes.current_until(app_routes.reload(), until) == until + RECHECK_SECONDS
    assert app_routes.current_until(table, until) == 0, "it is of an earlier reading"


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
    assert not app_routes.is_unchanged()
    assert [route.path for route in app_routes.reload().routes] == ["/b"]


def test_an_app_in_an_attribute_that_wrapped_none_before_is_seen_by_a_reading() -> None:
    class Wrapper:
        def __init__(self, application: Any) -> None:
            self.application = application

        def __call__(self, environ: Any, start_response: Any) -> Any:
            return self.application(environ, start_response)

    wrapper: Any = Wrapper(flask_app("/a"))
    app_routes = routes_of(wrapper)
    assert [route.path for route in app_routes.reload().routes] == ["/a"]
    wrapper.app = flask_app("/b")
    assert app_routes.is_unchanged()
    assert [route.path for route in app_routes.reload().routes] == ["/b"]


def test_a_change_that_touches_no_page_makes_no_new_table() -> None:
    site = Apps()
    app_routes = routes_of(site.starlette)
    known = app_routes.reload()
    site.starlette.add_route("/form", page, methods=["POST"])
    assert not app_routes.is_unchanged()
    assert app_routes.reload() is known
    assert app_routes.is_unchanged()


def test_a_route_in_the_place_of_an_equal_one_is_seen_by_a_reading() -> None:
    site = Apps()
    app_routes = routes_of(site.starlette)
    assert app_routes.reload().routes[0].hidden is None
    site.starlette.router.routes[0] = Route("/a", page, include_in_schema=False)
    assert app_routes.reload().routes[0].hidden == HiddenReason("it is left out of the API's schema")


def test_files_are_looked_at_each_time(tmp_path: Path) -> None:
    file = tmp_path / "a.html"
    file.write_text("a")
    os.utime(file, (1000, 1000))
    app_routes = routes_of(
        Starlette(routes=[Route("/", page), Mount("/files", StaticFiles(directory=tmp_path, html=True))])
    )
    known = app_routes.reload()
    assert not app_routes.is_unchanged()
    assert app_routes.reload() is known
    os.utime(file, (2000, 2000))
    assert [route.last_modified for route in app_routes.reload().routes] == [None, 2000]


def test_static_folder_without_pages_leaves_the_map_unchanged(tmp_path: Path) -> None:
    app_routes = routes_of(Starlette(routes=[Route("/", page), Mount("/static", StaticFiles(directory=tmp_path))]))
    app_routes.reload()
    assert app_routes.is_unchanged()


@pytest.mark.skipif(not hasattr(FastAPI, "frontend"), reason="FastAPI has no frontends yet")
def test_a_frontend_that_is_added_later_is_found(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("home")
    site = Apps()
    app_routes = routes_of(site.fastapi)
    app_routes.reload()
    site.router.frontend("/", directory=tmp_path)
    assert not app_routes.is_unchanged()
    assert {"/one/", "/two/"} <= {route.path for route in app_routes.reload().routes}


def test_a_marked_router_that_is_gone_is_kept_by_nobody() -> None:
    app_routes = routes_of(starlette := Starlette(routes=[Route("/", page)]))
    router = sitemap(priority=0.5)(APIRouter())
    router.get("/a")(page)
    known = app_routes.reload()
    assert app_routes.is_unchanged()
    del router
    gc.collect()
    assert not app_routes.is_unchanged()
    assert app_routes.reload() is known
    assert app_routes.is_unchanged()
    assert starlette.routes


def test_a_werkzeug_map_of_another_make_is_read_by_its_public_face() -> None:
    app = flask_app("/a")
    app.url_map._rules_by_endpoint = UserDict(app.url_map._rules_by_endpoint)  # type: ignore[assignment] # on purpose
    app_routes = routes_of(app)
    app_routes.reload()
    assert app_routes.is_unchanged()
    app.add_url_rule("/b", "b", page)
    assert not app_routes.is_unchanged()
    assert [route.path for route in app_routes.reload().routes] == ["/a", "/b"]


def test_an_app_that_cannot_be_asked_is_not_known_to_be_unchanged(caplog: pytest.LogCaptureFixture) -> None:
    app = flask_app("/a")
    app_routes = routes_of(app)
    known = app_routes.reload()
    del app.url_map
    app.url_map = None  # type: ignore[assignment] # on purpose
    assert not app_routes.is_unchanged()
    app.url_map = flask_app("/a", "/b").url_map
    app.blueprints = 5  # type: ignore[assignment] # on purpose
    assert not app_routes.is_unchanged()
    assert app_routes.reload() is known
    assert "could not be read" in caplog.text
    assert not app_routes.is_unchanged()


# The table

PARTS = st.sampled_from(["a", "b", "ab", "<x>", "{x}", "a<x>", "<path:x>", "*"])
TEMPLATES = st.lists(PARTS, max_size=3).map(lambda parts: "/" + "/".join(parts))
PATHS = st.lists(st.sampled_from(["a", "b", "ab", "aab", "c", ""]), max_size=4).map(lambda parts: "/" + "/".join(parts))
HOSTS = st.sampled_from([None, "blog.example", "shop.example"])


APP = flask_app("/")


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


def answers(route: models.Route, host: str | None) -> bool:
    """Whether a route answers on a host, which is None for all hosts that no route names."""
    if host is None:
        return route.host is None
    return route.host == host or (route.host is None and host not in route.except_hosts)


def plainly_found(routes: list[models.Route], named: list[str], host: str | None, path: str) -> models.Route | None:
    """The route of a path, by asking each in turn."""
    every_route, routes = routes, [route for route in routes if answers(route, host)]
    for route in routes:
        if route.static and route.path == path:
            return route
    patterns = [Pattern(text) for text in named]
    if host is None and any(pattern.literal and pattern.text == path for pattern in patterns):
        return models.Route(path, "named by an option")
    for route in routes:
        if route.builder and route.builder.matches(path):
            return route
    templates = {route.path: route for route in reversed(every_route) if not route.static}
    for pattern in patterns:
        if not pattern.literal and pattern.matches(path):
            learned_route = models.Route(pattern.text, "learned from traffic", static=False)
            return templates.get(pattern.text, learned_route)._replace(host=None, except_hosts=())
    for route in routes:
        if route.settings.learn and not (route.static or route.builder) and Pattern(route.path).matches(path):
            return route
    return None


@given(st.lists(routes(), max_size=12), st.lists(TEMPLATES, max_size=4), st.lists(PATHS, max_size=8), HOSTS)
def test_a_path_is_found_as_by_asking_each_route_in_turn(
    routes: list[models.Route], named: list[str], paths: list[str], host: str | None
) -> None:
    options = SitemapMiddleware(APP, include=named, store="memory://").service.options
    table = RouteTable(routes, options)
    site = Site("https", "example.com", routed=host)
    order = [pattern.text for pattern in (*options.include, *options.learn)]
    for path in (*paths, *(route.path for route in routes)):
        route_found, expected = table.find_route(site, path), plainly_found(routes, order, host, path)
        assert route_found == expected
        assert route_found is None or route_found.builder is expected.builder
        assert table.has_explicit_route(path) is any(route.static and route.path == path for route in routes)
        taken = (route.path == path if route.static else Pattern(route.path).matches(path) for route in routes)
        assert table.may_answer(path) is (not routes or any(taken))
    assert table.hosts == {name for route in routes for name in (route.host, *route.except_hosts) if name}
    literal = {text for text in order if Pattern(text).literal} if host is None else set()
    own = {route.path for route in routes if route.static and answers(route, host)}
    assert sorted(route.path for route in table.static(site)) == sorted(own | literal)


@given(st.lists(st.text("ab/", max_size=4), max_size=12), st.text("ab/", max_size=6))
def test_prefix_matches_keep_their_insertion_order(prefixes: list[str], path: str) -> None:
    index: PrefixIndex[int] = PrefixIndex()
    for number, prefix in enumerate(prefixes):
        index.add(prefix, number)
    assert index.find(path) == [number for number, prefix in enumerate(prefixes) if path.startswith(prefix)]


@given(st.lists(st.text("ab/", max_size=4), max_size=12), st.text("ab/", max_size=3), st.text("ab/", max_size=3))
def test_all_prefixes_are_found_that_a_path_may_have(prefixes: list[str], start: str, end: str) -> None:
    index: PrefixIndex[int] = PrefixIndex()
    for number, prefix in enumerate(prefixes):
        index.add(prefix, number)
        found = index.find_any(start)
        assert {*index.find(start + end)} <= {*found}
        assert found == [
            n for n, text in enumerate(prefixes[: number + 1]) if text.startswith(start) or start.startswith(text)
        ]


@given(st.lists(st.text("ab/", max_size=5), min_size=1))
def test_paths_start_alike_up_to_the_first_difference(paths: list[str]) -> None:
    start = common_start(paths)
    assert all(path.startswith(start) for path in paths)
    assert any(path == start for path in paths) or len({path[len(start)] for path in paths}) > 1


LEARNED_PATHS = st.lists(st.sampled_from(["a", "b", "c", "ab", "x/y"]), min_size=1, max_size=4)


@given(
    st.lists(routes(), max_size=6),
    st.lists(TEMPLATES, max_size=3),
    st.sampled_from(["/", "/a/", "/c/"]),
    LEARNED_PATHS,
    HOSTS,
)
def test_a_route_of_many_paths_is_that_of_each(
    routes: list[models.Route], named: list[str], start: str, ends: list[str], host: str | None
) -> None:
    table = RouteTable(routes, SitemapMiddleware(APP, include=named, store="memory://").service.options)
    site, paths = Site("https", "example.com", routed=host), [start + end for end in ends]
    route = table.learned_route(site, paths, common_start(paths))
    assert route is None or all(table.find_route(site, path) is route for path in paths)
    assert route is None or (not route.static and route.builder is None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("routes", "options", "paths", "found"),
    [
        ([], {"learn": "/a/<x>"}, ["/a/1", "/a/2"], "/a/<x>"),
        ([], {"learn": "/a/<x>"}, ["/a/1", "/b/2"], None),
        ([], {"learn": "/a/<x>"}, ["/b/1", "/b/2"], None),
        ([], {"learn": ["/a/<x>", "/a/b/<x>"]}, ["/a/1", "/a/2"], "/a/<x>"),
        ([], {"learn": ["/a/b/<x>", "/a/<x>"]}, ["/a/1", "/a/2"], "/a/<x>"),
        ([], {"learn": ["/a/b/<x>", "/a/*"]}, ["/a/1", "/a/b/2"], None),
        ([models.Route("/a/1", "view")], {"learn": "/a/<x>"}, ["/a/1", "/a/2"], None),
        ([models.Route("/a/1", "view")], {"learn": "/a/<x>"}, ["/a/2", "/a/3"], "/a/<x>"),
        ([models.Route("/a/<x>", "view", static=False, builder=Taker("/a/<x>"))], {"learn": "/a/*"}, ["/a/1"], None),
        ([models.Route("/a/<token>", "view", static=False)], {"learn": "/a/*"}, ["/a/1"], None),
        ([models.Route("/a/<token>", "view", static=False)], {"include": "/a/*"}, ["/a/1"], "/a/*"),
        ([models.Route("/b/<token>", "view", static=False)], {"learn": "/a/*"}, ["/a/1"], "/a/*"),
    ],
)  # fmt: skip
def test_the_learned_route_of_many_paths(
    routes: list[models.Route], options: Any, paths: list[str], found: str | None
) -> None:
    table = RouteTable(routes, SitemapMiddleware(APP, store="memory://", **options).service.options)
    route = table.learned_route(Site("https", "example.com"), paths, common_start(paths))
    assert (route and route.path) == found


@given(TEMPLATES, PATHS)
def test_all_paths_of_a_pattern_begin_as_it_says(template: str, path: str) -> None:
    pattern = Pattern(template)
    assert template.startswith(pattern.prefix)
    assert path.startswith(pattern.prefix) or not pattern.matches(path)


def test_routes_that_differ_by_their_builder_alone_are_equal() -> None:
    route = models.Route("/<x>", "view", static=False)
    same = route._replace(builder=Taker("/<x>"))
    assert (route == same, route != same, hash(route) == hash(same), repr(route) == repr(same)) == (
        True,
        False,
        True,
        True,
    )
    assert route != route._replace(path="/<y>")
    assert route != tuple(route)
    assert repr(route).startswith("Route(path='/<x>', endpoint='view', static=False, host=None,")
