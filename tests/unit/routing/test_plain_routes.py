"""Static routes without settings are kept as names, and are otherwise like any others."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Host, Mount, Route, Router

from sitemap_middleware import SitemapMiddleware, models, sitemap
from sitemap_middleware.routing.plain_routes import PlainRoutes, each_route
from sitemap_middleware.routing.route_change_detector import Snapshot
from sitemap_middleware.routing.route_discovery import discover_routes
from sitemap_middleware.routing.route_table import RouteTable


async def page(_: Any) -> HTMLResponse:
    return HTMLResponse("a page")


@sitemap(priority=0.3)
async def weighted(_: Any) -> HTMLResponse:
    return HTMLResponse("a page")


ROUTES = {
    "plain": lambda path: Route(path, page),
    "another": lambda path: Route(path, page, name="another"),
    "with settings": lambda path: Route(path, weighted),
    "with a parameter": lambda path: Route(f"{path}/{{name}}", page),
    "for POST": lambda path: Route(path, page, methods=["POST"]),
    "mounted": lambda path: Mount(path, routes=[Route("/in", page), Route("/", page)]),
    "of a host": lambda path: Host("shop.example", Starlette(routes=[Route(path, page)])),
}
SPECS = st.lists(st.tuples(st.sampled_from(["/a", "/b", "/c", "/a/in"]), st.sampled_from([*ROUTES])), max_size=8)


def found(specs: list[tuple[str, str]]) -> tuple[models.Route | PlainRoutes, ...]:
    return tuple(discover_routes(Starlette(routes=[ROUTES[kind](path) for path, kind in specs]), Snapshot()))


@given(SPECS, st.sampled_from([None, "shop.example"]))
def test_plain_routes_are_found_like_any_others(specs: list[tuple[str, str]], host: str | None) -> None:
    options = SitemapMiddleware(page, include="/c", store="memory://").service.options
    routes = found(specs)
    table, expected = RouteTable(routes, options), RouteTable(each_route(routes), options)
    site = models.Site("https", "example.com", routed=host)
    for path in ("/a", "/a/", "/a/in", "/a/x", "/b", "/c", "/d"):
        assert table.find_route(site, path) == expected.find_route(site, path)
        assert table.is_static(site, path) is expected.is_static(site, path)
        assert table.has_explicit_route(path) is expected.has_explicit_route(path)
        assert table.may_answer(path) is expected.may_answer(path)
    assert table.static(site) == expected.static(site)
    assert table.routes == expected.routes
    assert table.digest == expected.digest
    assert table.count == expected.count == len(table.routes)


def test_a_route_is_made_once() -> None:
    table = RouteTable(
        found([("/a", "plain"), ("/b", "plain")]), SitemapMiddleware(page, store="memory://").service.options
    )
    site = models.Site("https", "example.com")
    route = table.find_route(site, "/a")
    assert route is not None
    assert table.find_route(site, "/a") is route
    assert table.static(site)[0] is route


def test_only_routes_without_settings_and_with_a_path_of_their_own_are_kept_as_views() -> None:
    specs = [("/a", "plain"), ("/b", "plain"), ("/a", "another"), ("/b", "with settings"), ("/c", "plain")]
    first, second, with_settings, last = found(specs)
    assert (first, second, last) == ({"/a": page, "/b": page}, models.Route("/a", "page"), {"/c": page})
    assert isinstance(with_settings, models.Route)
    assert with_settings.settings.priority == 0.3


def test_routes_of_some_hosts_are_read_one_by_one() -> None:
    routes = found([("/a", "plain"), ("/a", "of a host"), ("/b", "plain")])
    assert [type(route) for route in routes] == [PlainRoutes, models.Route, models.Route]


def test_routers_with_settings_in_other_apps_change_nothing() -> None:
    other = sitemap(priority=0.3)(Router(routes=[Route("/other", weighted)]))
    assert found([("/a", "plain")]) == ({"/a": page},)
    assert other.routes
