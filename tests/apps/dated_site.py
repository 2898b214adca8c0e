"""One small site for Flask and Starlette: dated pages, paths that need escaping, learned posts."""

from __future__ import annotations

from email.utils import formatdate

import flask
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware

DAY = 24 * 60 * 60
PAGES = {
    "/": 1_600_000_000,
    "/about": 1_600_000_000 + 2 * DAY,
    "/prices & terms": 1_600_000_000 + 3 * DAY,
    "/über-uns": 1_600_000_000 + 5 * DAY,
    "/posts/first": 1_600_000_000 + 8 * DAY,
    "/posts/it's-<new>": 1_600_000_000 + 13 * DAY,
}
"""Each page, and when it was last modified."""

STATIC = [path for path in PAGES if not path.startswith("/posts/")]
HTML = "<!doctype html><title>page</title><p>A page."


def date(path: str) -> dict[str, str]:
    return {"Last-Modified": formatdate(PAGES[path], usegmt=True)}


flask_app = flask.Flask(__name__, static_folder=None)
for path in [*STATIC, "/posts/<slug>"]:

    @flask_app.get(path, endpoint=path)
    def flask_page(slug: str = "") -> flask.Response:
        return flask.Response(HTML, headers=date(flask.request.path))


def starlette_page(request: Request) -> HTMLResponse:
    return HTMLResponse(HTML, headers=date(request.scope["path"]))


starlette_app = Starlette(routes=[Route(path, starlette_page) for path in [*STATIC, "/posts/{slug}"]])

flask_app.wsgi_app = SitemapMiddleware(flask_app.wsgi_app, learn="/posts/<slug>")  # type: ignore[method-assign] # as Flask's docs do
starlette_app.add_middleware(SitemapMiddleware, learn="/posts/{slug}")
