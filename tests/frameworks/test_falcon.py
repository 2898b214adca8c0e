"""What only Falcon has: resources, suffixes, converters with arguments, sinks, an option for slashes."""

from __future__ import annotations

from datetime import date
from typing import Any

import falcon
import falcon.asgi
import falcon.routing
import pytest

from sitemap_middleware import sitemap
from sitemap_middleware.models import Route
from sitemap_middleware.routing.route_discovery import discover_routes


class Page:
    def on_get(self, request: falcon.Request, response: falcon.Response, **params: Any) -> None:
        response.content_type = falcon.MEDIA_HTML
        response.text = f"<h1>{request.path}</h1>"


def routes_of(app: Any) -> dict[str, Route]:
    return {route.path: route for route in discover_routes(app)}


def app_with(*paths: str) -> falcon.App[Any, Any]:
    app = falcon.App()
    for path in paths:
        app.add_route(path, Page())
    return app


def test_a_resource_without_get_has_no_route() -> None:
    class Form:
        def on_post(self, request: Any, response: Any) -> None:
            """Never called."""

    class AsyncForm:
        async def on_post(self, request: Any, response: Any) -> None:
            """Never called."""

    for app, form in ((falcon.App(), Form()), (falcon.asgi.App(), AsyncForm())):
        app.add_route("/form", form)
        assert routes_of(app) == {}


def test_sinks_and_folders_of_files_have_no_routes(tmp_path: Any) -> None:
    app = app_with("/page")
    app.add_sink(Page().on_get, "/sink")
    app.add_static_route("/files", str(tmp_path))
    assert [*routes_of(app)] == ["/page"]


def test_settings_of_a_class_are_those_of_its_routes_and_yield_to_those_of_the_method() -> None:
    @sitemap(priority=0.2, changefreq="yearly")
    class Shop(Page):
        @sitemap(priority=0.9)
        def on_get_offers(self, request: Any, response: Any) -> None:
            self.on_get(request, response)

    app, shop = falcon.App(), Shop()
    app.add_route("/shop", shop)
    app.add_route("/offers", shop, suffix="offers")
    found = routes_of(app)
    assert (found["/shop"].settings.priority, found["/shop"].settings.changefreq) == (0.2, "yearly")
    assert (found["/offers"].settings.priority, found["/offers"].settings.changefreq) == (0.9, "yearly")
    assert found["/offers"].endpoint.endswith("Shop.on_get_offers")


class Provided(Page):
    @sitemap(values=[])
    def on_get(self, request: Any, response: Any, **params: Any) -> None:
        """Never called."""


@pytest.mark.parametrize(
    ("uri_template", "template", "params", "path"),
    [
        ("/a/{b}", "/a/{b}", {"b": "käse"}, "/a/käse"),
        ("/a/{b:int(min=2, max=9)}/c", "/a/{b:int}/c", {"b": 7}, "/a/7/c"),
        ('/a/{b:dt("%Y-%m-%d")}', "/a/{b:dt}", {"b": date(2026, 5, 1)}, "/a/2026-05-01"),
        ("/a/{b}", "/a/{b}", {"b": date(2026, 5, 1)}, "/a/2026-05-01"),
        ("/a/{b}.{c}", "/a/{b}.{c}", {"b": "one", "c": "html"}, "/a/one.html"),
        ("/a/{b:path}", "/a/{b:path}", {"b": "c/d"}, "/a/c/d"),
    ],
)
def test_values_make_a_path_that_leads_back(uri_template: str, template: str, params: Any, path: str) -> None:
    app = falcon.App()
    app.add_route(uri_template, Provided())
    builder: Any = routes_of(app)[template].builder
    assert builder.build(params) == path
    assert builder.matches(path)
    assert builder.context() is None
