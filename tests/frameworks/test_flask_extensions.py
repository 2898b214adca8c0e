"""Flask extensions whose views are known to be data, documentation, or pages of their own registry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dash
import flask
import flask_restful
import flask_restx
import pytest
from dash import html

from sitemap_middleware import SitemapMiddleware, sitemap
from sitemap_middleware.routing.framework_detection import layers

from ..support.documents import entries
from ..support.sample_sites import listed
from ..support.wire import DRIVERS, RequestSpec, wsgi

BASE = "http://testserver"
OF_AN_API = "it is a resource of an API, and no visit has shown yet that it is a page"


class Items(flask_restx.Resource):
    def get(self) -> dict[str, int]:
        return {"items": 1}


class MoreItems(flask_restful.Resource):
    def get(self) -> dict[str, int]:
        return {"items": 1}


def site() -> flask.Flask:
    app = flask.Flask("site", static_folder=None)
    app.add_url_rule("/about", "about", lambda: "<h1>About</h1>")
    return app


def reasons(app: Any, *paths: str, **options: Any) -> tuple[list[str], dict[str, str]]:
    """The listed paths, and why each of some paths is listed or not."""
    wrapped = SitemapMiddleware(app, **{"base_url": BASE, "store": "memory://"} | options)
    return listed(wrapped), {path: wrapped.explain(path).reason for path in paths}


@pytest.mark.parametrize("verify", [True, False])
def test_resources_and_documentation_of_flask_restx_are_not_listed(verify: bool) -> None:
    app = site()
    api = flask_restx.Api(app)
    api.add_resource(Items, "/items")
    namespace = api.namespace("more")
    namespace.add_resource(Items, "/")
    flask_restful.Api(app).add_resource(MoreItems, "/restful")
    paths = ["/", "/items", "/more/", "/restful"]
    assert reasons(app, *paths, verify=verify) == (["/about"], dict.fromkeys(paths, OF_AN_API))


def test_an_api_in_a_blueprint_leaves_the_pages_beside_it() -> None:
    app = site()
    blueprint = flask.Blueprint("api", __name__, url_prefix="/api")
    flask_restx.Api(blueprint, doc="/doc").add_resource(Items, "/items")
    app.register_blueprint(blueprint)
    app.add_url_rule("/", "home", lambda: "<h1>Home</h1>")
    assert reasons(app, "/api/doc") == (["/", "/about"], {"/api/doc": OF_AN_API})


def test_a_documentation_that_the_developer_wrote_is_a_page_once_it_was_visited() -> None:
    app = site()
    api = flask_restx.Api(app)
    api.documentation(lambda: flask.Response("<h1>How to use our API</h1>"))
    wrapped = SitemapMiddleware(app, base_url=BASE, store="memory://")
    assert listed(wrapped) == ["/about"]
    assert wsgi(wrapped, RequestSpec("/")).status == 200
    wrapped.flush()
    assert listed(wrapped) == ["/", "/about"]


# Dash


@pytest.fixture
def registry() -> Iterator[Any]:
    """Dash keeps the pages of all its apps in one place."""
    dash.page_registry.clear()  # another test of this process may have registered pages
    yield dash.page_registry
    dash.page_registry.clear()


def dash_app(**options: Any) -> Any:
    app = dash.Dash(__name__, use_pages=True, pages_folder="", **options)
    app.layout = html.Div([dash.page_container])
    return app


def register(module: str, **page: Any) -> None:
    dash.register_page(module, **{"layout": html.Div(module)} | page)


def test_the_pages_of_dash_are_those_of_its_registry(registry: Any) -> None:
    app = dash_app()
    register("home", path="/")
    register("sales", path_template="/sales/<year>")
    register("staff", path_template="/staff/<name>", path="/staff")
    register("not_found_404")
    register("about_us")
    assert reasons(app.server)[0] == ["/", "/about-us", "/staff"]
    assert app.server in layers(app), "the object of Dash itself may be given too"


def test_pages_of_dash_below_a_prefix_stand_beside_those_of_flask(registry: Any) -> None:
    server = site()
    dash_app(server=server, url_base_pathname="/charts/")
    register("home", path="/")
    register("sales")
    assert reasons(server)[0] == ["/about", "/charts/", "/charts/sales"]


def test_a_layout_function_may_be_decorated(registry: Any) -> None:
    app = dash_app()

    @sitemap(priority=0.9)
    def home() -> Any:
        return html.Div("Home")

    register("home", path="/", layout=home)
    register("hidden", layout=sitemap(exclude=True)(lambda: html.Div("Hidden")))
    wrapped = SitemapMiddleware(app.server, base_url=BASE, store="memory://")
    found = entries(DRIVERS["wsgi"](wrapped, RequestSpec("/sitemap.xml")).body)
    assert found == {f"{BASE}/": {"priority": "0.9"}}
