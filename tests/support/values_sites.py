"""Sites with one route whose pages `values` enumerates, on several frameworks."""

from __future__ import annotations

from typing import Any

import flask
import quart
from a2wsgi import WSGIMiddleware
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route, Router
from werkzeug.middleware.dispatcher import DispatcherMiddleware

from sitemap_middleware import sitemap

from .documents import entries
from .sample_sites import SiteOf
from .stores import all_pages
from .wire import Answer

LOCAL = "http://testserver"
NOW = 1_750_000_000
"""2025-06-15T15:06:40Z."""


def text(values: Any = None, **more: Any) -> Any:
    """A new view for Flask each time, for a mark stays on what it was put on."""

    def view(**_: Any) -> str:
        return "A post."

    return view if values is None else sitemap(values=values, **more)(view)


def a_view(values: Any = None) -> Any:
    async def view(request: Request) -> Response:
        return HTMLResponse("A post.")

    return view if values is None else sitemap(values=values)(view)


def on_flask(values: Any, rule: str = "/posts/<slug>") -> Any:
    app = flask.Flask("site", static_folder=None)
    app.add_url_rule(rule, "post", text(values))
    return app


def on_quart(values: Any, rule: str = "/posts/<slug>") -> Any:
    app = quart.Quart("site", static_folder=None)
    app.add_url_rule(rule, "post", text(values))
    return app


def on_starlette(values: Any, rule: str = "/posts/<slug>") -> Any:
    return Starlette(routes=[Route(rule.replace("<", "{").replace(">", "}"), a_view(values))])


def on_fastapi(values: Any, rule: str = "/posts/<slug>") -> Any:
    app = FastAPI(openapi_url=None)
    app.get(rule.replace("<", "{").replace(">", "}"), response_class=HTMLResponse)(sitemap(values=values)(lambda: "x"))
    return app


def on_flask_below_a_dispatcher(values: Any) -> Any:
    return DispatcherMiddleware(flask.Flask("outer", static_folder=None), {"/posts": on_flask(values, "/<slug>")})


def on_flask_in_starlette(values: Any) -> Any:
    return Starlette(routes=[Mount("/posts", WSGIMiddleware(on_flask(values, "/<slug>")))])


def on_starlette_mounted(values: Any) -> Any:
    return Starlette(routes=[Mount("/posts", Router([Route("/{slug}", a_view(values))]))])


def on_rules(*rules: tuple[str, Any, dict[str, Any]], **options: Any) -> flask.Flask:
    app = flask.Flask("site", static_folder=None, **options)
    for number, (rule, view, more) in enumerate(rules):
        app.add_url_rule(rule, more.pop("endpoint", f"view{number}"), view, **more)
    return app


class ValuesSite(SiteOf):
    def sitemap(self, **changes: Any) -> Answer:
        return self.request("/sitemap.xml", **changes)

    def entries(self, **changes: Any) -> dict[str, dict[str, str]]:
        answer = self.sitemap(**changes)
        assert answer.status in (200, 404), answer.text
        return entries(answer.body) if answer.status == 200 else {}

    def locs(self, **changes: Any) -> list[str]:
        return list(self.entries(**changes))

    def paths(self) -> list[str]:
        return [loc.removeprefix(LOCAL) for loc in self.locs()]

    def known(self, host: str = "testserver") -> list[str]:
        """The paths of pages with observations."""
        self.app.flush()
        site, _ = self.app.service.site_resolver.resolve("http", host, "")
        return [page.path for page in all_pages(self.app.service.store, site.store_key)]
