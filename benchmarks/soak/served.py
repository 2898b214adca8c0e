"""The script's site as a Starlette app and as a Flask app, wrapped; responses are signed by their process."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import flask
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware, sitemap
from tests.apps.windows import signing_asgi, signing_wsgi

from .script import ACCOUNT, BASE, BROKEN, FEED, LOGIN, STATIC, STYLE, Answer, Script

SCRIPT = Script.from_environ()
PARTS = 20
OPTIONS: dict[str, Any] = {"base_url": BASE, "verify": os.environ.get("SOAK_VERIFY") == "1"}
EXACT = (*STATIC, ACCOUNT, LOGIN, STYLE, FEED, BROKEN, "/robots.txt")

logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")


def items() -> Iterator[dict[str, str]]:
    return ({"item": f"item-{number}"} for number in range(SCRIPT.items))


def scripted_answer(path: str, *, query: bool, cookie: bool) -> Answer:
    return SCRIPT.answer(path, time.time(), query=query, cookie=cookie, token=secrets.token_hex(8))


# Starlette


async def view(request: Request) -> Response:
    answer = scripted_answer(request.url.path, query=bool(request.url.query), cookie="cookie" in request.headers)
    response = Response(answer.body, answer.status)
    response.raw_headers += [(name.lower().encode(), value.encode()) for name, value in answer.headers]
    if request.url.path == "/stream":
        return StreamingResponse(_parts(answer.body), answer.status, dict(answer.headers))
    return response


@sitemap(learn=True)
async def post(request: Request) -> Response:
    return await view(request)


@sitemap(values=items)
async def item(request: Request) -> Response:
    return await view(request)


async def _parts(body: str) -> AsyncIterator[str]:
    step = len(body) // PARTS + 1
    for start in range(0, len(body), step):
        yield body[start : start + step]
        await asyncio.sleep(0)


def starlette_app() -> Any:
    routes = [*(Route(path, view) for path in EXACT), Route("/old/{slug}", view)]
    app = Starlette(routes=[*routes, Route("/posts/{slug}", post), Route("/items/{item}", item)])
    app.add_middleware(SitemapMiddleware, **OPTIONS)
    return signing_asgi(app)


# Flask


def page(**_: str) -> flask.Response:
    request = flask.request
    answer = scripted_answer(request.path, query=bool(request.query_string), cookie="Cookie" in request.headers)
    if request.path == "/stream":
        step = len(answer.body) // PARTS + 1
        parts = (answer.body[start : start + step] for start in range(0, len(answer.body), step))
        return flask.Response(parts, answer.status, list(answer.headers))
    return flask.Response(answer.body, answer.status, list(answer.headers))


def flask_app() -> Any:
    app = flask.Flask("soak", static_folder=None)
    for path in (*EXACT, "/old/<slug>"):
        app.add_url_rule(path, path, page)
    app.add_url_rule("/posts/<slug>", "post", sitemap(learn=True)(lambda **_: page()))
    app.add_url_rule("/items/<item>", "item", sitemap(values=items)(lambda **_: page()))
    app.wsgi_app = SitemapMiddleware(app.wsgi_app, **OPTIONS)  # type: ignore[method-assign] # as Flask's docs do
    return signing_wsgi(app)
