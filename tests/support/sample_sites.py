"""Sample sites: one description of a site, as a Flask app and as a Starlette app with equal responses."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import flask
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware

from .documents import entries, locs
from .wire import DRIVERS, Answer, Headers, RequestSpec


def listed(called: Any, host: str = "testserver", **changes: Any) -> list[str]:
    """The paths in the sitemap of an app that has the middleware; none without a sitemap."""
    protocol = "asgi" if inspect.iscoroutinefunction(type(called).__call__) else "wsgi"
    answer = DRIVERS[protocol](called, RequestSpec("/sitemap.xml", host=host, **changes))
    return [loc.removeprefix(f"http://{host}") for loc in locs(answer.body)] if answer.status == 200 else []


@dataclass
class Page:
    """What a route answers; a test may change it between requests."""

    status: int = 200
    headers: Headers = field(default_factory=lambda: [("content-type", "text/html; charset=utf-8")])
    body: bytes = b"<!doctype html><title>page</title><p>A page."

    def with_headers(self, *extra: tuple[str, str]) -> Page:
        return Page(self.status, [*self.headers, *extra], self.body)


class Clock:
    """A clock that stands still until it is told otherwise."""

    def __init__(self, now: float = 1_750_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += seconds


class SiteOf:
    """An app, wrapped, with the driver of its protocol and its clock."""

    def __init__(self, app: Any, **options: Any) -> None:
        self.clock = options.setdefault("clock", Clock())
        self.bare = app
        self.app = SitemapMiddleware(app, **{"store": "memory://", "verify": False, **options})
        self.protocol = "asgi" if inspect.iscoroutinefunction(type(self.app).__call__) else "wsgi"
        base_url = options.get("base_url")
        self._host = urlsplit(base_url).netloc if isinstance(base_url, str) else "testserver"
        """The site's own, under which its pages are requested unless a test names another."""

    def request(self, spec: RequestSpec | str, **changes: Any) -> Answer:
        request = spec if isinstance(spec, RequestSpec) else RequestSpec(spec, **{"host": self._host, **changes})
        return DRIVERS[self.protocol](self.app, request)

    def visit(self, *paths: str) -> None:
        """Request pages as a crawler does, and merge the observations at once."""
        for path in paths:
            self.request(path)
        self.app.flush()

    def listed(self) -> list[str]:
        return listed(self.app)

    def locs(self, **changes: Any) -> list[str]:
        answer = self.request("/sitemap.xml", **changes)
        return locs(answer.body) if answer.status == 200 else []

    def entries(self, **changes: Any) -> dict[str, dict[str, str]]:
        answer = self.request("/sitemap.xml", **changes)
        return entries(answer.body) if answer.status == 200 else {}


class SampleSite(SiteOf):
    """A site of one protocol, whose pages answer what a test has them answer."""

    def __init__(
        self, protocol: str, pages: dict[str, Page], *, marks: dict[str, Any] | None = None, **options: Any
    ) -> None:
        self.pages = pages
        super().__init__((flask_app if protocol == "wsgi" else starlette_app)(pages, marks or {}), **options)


def plain_flask(*paths: str, **config: Any) -> flask.Flask:
    """An app that says "a page" at each path."""
    app = flask.Flask("site", static_folder=None)
    app.config.update(config)
    for path in paths:
        app.add_url_rule(path, path.replace(".", "-"), lambda **_: "a page")
    return app


def flask_app(pages: dict[str, Page], marks: dict[str, Any]) -> flask.Flask:
    app = flask.Flask("sample", static_folder=None)
    for number, path in enumerate(pages):

        def view(path: str = path, **_: Any) -> flask.Response:
            page = pages[path]
            return flask.Response(page.body, page.status, page.headers)

        app.add_url_rule(path.replace("{", "<").replace("}", ">"), f"view{number}", marks.get(path, _plain)(view))
    return app


def starlette_app(pages: dict[str, Page], marks: dict[str, Any]) -> Starlette:
    routes = []
    for path in list(pages):

        def view(request: Request, path: str = path) -> Response:
            page = pages[path]
            response = Response(page.body, page.status)
            length = [pair for pair in response.raw_headers if pair[0] == b"content-length"]
            response.raw_headers = [(n.lower().encode(), v.encode("latin-1")) for n, v in page.headers] + length
            return response

        async def endpoint(request: Request, view: Any = view) -> Response:
            return view(request)

        routes.append(Route(path, marks.get(path, _plain)(endpoint)))
    return Starlette(routes=routes)


def _plain(view: Any) -> Any:
    return view
