"""A small shop in three frameworks, for the tests of the command line."""

from __future__ import annotations

from typing import Any

import flask
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware, sitemap

NOW = 1_750_000_000
"""2025-06-15, 15:06:40 UTC: the time at which the shop is visited."""

BASE = "https://shop.example"
OPTIONS: dict[str, Any] = {"base_url": BASE, "clock": lambda: NOW, "verify": False}
HTML = "<!doctype html><title>shop</title><main>A page of the shop.</main>"
DATED = {"Last-Modified": "Fri, 01 May 2020 06:30:00 GMT"}


def flask_shop() -> flask.Flask:
    app = flask.Flask(__name__)
    app.add_url_rule("/", "home", lambda: (HTML, DATED))
    app.add_url_rule("/closed", "closed", lambda: (HTML, 403))
    app.add_url_rule("/posts/<slug>", "post", sitemap(learn=True)(lambda slug: f"{HTML} {slug}"))
    app.add_url_rule("/users/<user>", "user", lambda user: f"{HTML} {user}")
    app.add_url_rule("/admin/<page>", "admin", sitemap(exclude=True)(lambda page: f"{HTML} {page}"))
    app.wsgi_app = SitemapMiddleware(app.wsgi_app, **OPTIONS)  # type: ignore[method-assign] # as Flask's docs do
    return app


def starlette_shop() -> Starlette:
    async def page(_: Request) -> HTMLResponse:
        return HTMLResponse(HTML)

    async def home(_: Request) -> HTMLResponse:
        return HTMLResponse(HTML, headers=DATED)

    async def closed(_: Request) -> HTMLResponse:
        return HTMLResponse(HTML, 403)

    async def user(_: Request) -> HTMLResponse:
        return HTMLResponse(HTML)

    routes = [
        Route("/", home),
        Route("/closed", closed),
        Route("/posts/{slug}", sitemap(learn=True)(page)),
        Route("/users/{user}", user),
        Route("/admin/{page}", user),
    ]
    app = Starlette(routes=routes)
    app.add_middleware(SitemapMiddleware, exclude="/admin/{page}", **OPTIONS)
    return app


def fastapi_shop() -> FastAPI:
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.get("/", response_class=HTMLResponse)(lambda: HTMLResponse(HTML, headers=DATED))
    app.get("/closed", response_class=HTMLResponse)(lambda: HTMLResponse(HTML, 403))

    @app.get("/posts/{slug}", response_class=HTMLResponse)
    @sitemap(learn=True)
    def post(slug: str) -> str:
        return HTML

    @app.get("/users/{user}", response_class=HTMLResponse)
    def user(user: str) -> str:
        return HTML

    @app.get("/admin/{page}", response_class=HTMLResponse)
    @sitemap(exclude=True)
    def admin(page: str) -> str:
        return HTML

    app.add_middleware(SitemapMiddleware, **OPTIONS)
    return app
