"""A site with one document of 20 MB, in both protocols; a wrapper counts the bytes that the server takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

import flask
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware, sitemap

NAMES = [sha256(str(number).encode()).hexdigest() + "&'" * 80 for number in range(9_000)]
"""Which gzip makes no less than half a megabyte of, and XML no less than 20."""

taken = {"bytes": 0, "ended": 0}
"""Of the bodies of sitemaps: the bytes that the server took of the last one, and how many came to an end of any kind."""


def item(name: str) -> str:
    return name


values = sitemap(values=[{"name": name} for name in NAMES])

flask_app = flask.Flask(__name__)
flask_app.add_url_rule("/items/<name>", "item", values(item))
flask_app.add_url_rule("/taken", "taken", sitemap(exclude=True)(lambda: taken))


@values
async def starlette_item(request: Request) -> PlainTextResponse:
    return PlainTextResponse(request.path_params["name"])


@sitemap(exclude=True)
async def starlette_taken(request: Request) -> JSONResponse:
    return JSONResponse(taken)


starlette_app = Starlette(routes=[Route("/items/{name}", starlette_item), Route("/taken", starlette_taken)])

inner_wsgi = SitemapMiddleware(flask_app.wsgi_app, store="memory://")
inner_asgi = SitemapMiddleware(starlette_app, store="memory://")


class Counted:
    def __init__(self, body: Iterable[bytes]) -> None:
        self.body = body
        self.parts = iter(body)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        part = next(self.parts)
        taken["bytes"] += len(part)
        return part

    def close(self) -> None:
        self.body.close()  # type: ignore[attr-defined]
        taken["ended"] += self.body.gi_frame is None  # type: ignore[attr-defined]


def wsgi(environ: Any, start_response: Any) -> Any:
    body = inner_wsgi(environ, start_response)
    if environ["PATH_INFO"] != "/sitemap.xml" or isinstance(body, list):
        return body
    taken["bytes"] = 0
    return Counted(body)


async def asgi(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] != "http" or scope["path"] != "/sitemap.xml":
        await inner_asgi(scope, receive, send)
        return
    taken["bytes"] = 0

    async def counted(message: Any) -> None:
        await send(message)
        taken["bytes"] += len(message.get("body", b""))

    await inner_asgi(scope, receive, counted)
    taken["ended"] += 1
