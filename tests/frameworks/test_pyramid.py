"""What only Pyramid has: predicates, views by configuration, static views, traversal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyramid.config import Configurator
from pyramid.response import Response

from sitemap_middleware import SitemapMiddleware, sitemap
from sitemap_middleware.routing.pyramid_routes import _template

from ..support.sample_sites import listed


def page(_: Any) -> Response:
    return Response("<h1>A page")


def wrapped(configure: Callable[[Configurator], object], **options: Any) -> Any:
    introspection = options.pop("introspection", True)
    with Configurator(introspection=introspection) as config:
        configure(config)
        app = config.make_wsgi_app()
    return SitemapMiddleware(app, base_url="http://testserver", store="memory://", **options)


def add(config: Configurator, pattern: str, view: Any = page, **options: Any) -> None:
    of_route = {name: options.pop(name) for name in ("custom_predicates", "header") if name in options}
    config.add_route(pattern, pattern, **of_route)
    config.add_view(view, route_name=pattern, **options)


@pytest.mark.parametrize(
    ("pattern", "template", "names"),
    [
        ("/about", "/about", ()),
        ("about", "/about", ()),
        ("/{name}", "/{name}", ("name",)),
        (r"/{year:\d{4}}/{slug:[a-z]+}.html", "/{year}/{slug}.html", ("year", "slug")),
        ("/{rest:.*}", "/{rest:path}", ("rest",)),
        ("/files/*subpath", "/files/{subpath:path}", ("subpath",)),
        ("/:old/style", "/{old}/style", ("old",)),
    ],
)
def test_patterns_are_written_as_in_options(pattern: str, template: str, names: tuple[str, ...]) -> None:
    assert _template(pattern) == (template, names)


def test_a_route_is_a_page_if_a_view_of_it_takes_get() -> None:
    def configure(config: Configurator) -> None:
        add(config, "/both", request_method=("GET", "POST"))
        config.add_view(page, route_name="/both", request_method="PUT")
        add(config, "/write", request_method="POST")
        config.add_route("written", "/written", request_method="POST")
        config.add_view(page, route_name="written")
        config.add_route("empty", "/empty")

    site = wrapped(configure, verify=False)
    assert listed(site) == ["/both", "/empty"]
    assert listed(wrapped(configure)) == ["/both"]


def test_a_route_behind_another_is_not_listed_unless_the_first_depends_on_the_request() -> None:
    def configure(config: Configurator) -> None:
        add(config, "/only/{name}", header="X-Special")
        add(config, "/only/one")
        add(config, "/all/{name}")
        add(config, "/all/one")

    assert listed(wrapped(configure)) == ["/only/one"]


def test_values_and_the_route_of_an_unlisted_path() -> None:
    def configure(config: Configurator) -> None:
        add(config, "/posts/latest")
        add(config, "/posts/{slug}", sitemap(values=["one", "latest", "\u00e4 %", "a/b"])(lambda _: Response("A page")))
        add(config, "/people/{name}")

    site = wrapped(configure)
    assert listed(site) == ["/posts/latest", "/posts/one", "/posts/%C3%A4%20%25"]
    assert "/people/{name}" in str(site.explain("/people/ada"))
    assert not site.explain("/nowhere").listed


def test_static_views_are_no_pages() -> None:
    def configure(config: Configurator) -> None:
        add(config, "/")
        config.add_static_view("static", "pyramid:scripts")

    hidden = {route.path: route.hidden for route in wrapped(configure).service.app_routes.table.routes}
    assert hidden == {"/": None, "/static/{subpath:path}": ("it serves static files", True)}


def test_an_app_without_introspection_has_its_routes_and_no_marks() -> None:
    view = sitemap(exclude=True)(lambda _: Response("A page"))
    assert listed(wrapped(lambda config: add(config, "/about", view), introspection=False)) == ["/about"]


def test_a_site_by_traversal_has_no_routes() -> None:
    def configure(config: Configurator) -> None:
        config.add_view(page, context=object)

    site = wrapped(configure, include="/")
    assert listed(site) == ["/"]
    assert not site.explain("/nowhere").listed
