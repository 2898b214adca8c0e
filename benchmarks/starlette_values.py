"""A Starlette app that enumerates 50,000 posts, and its sitemap, for the benchmark `generation`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from sitemap_middleware import Entry, SitemapMiddleware, sitemap

from . import site


def app(posts: Sequence[Any]) -> Starlette:
    """An app that enumerates its posts."""

    @sitemap(
        values=lambda: (Entry({"slug": item.slug}, lastmod=item.changed, priority=item.priority) for item in posts)
    )
    async def post(request: Request) -> PlainTextResponse:
        return PlainTextResponse(request.path_params["slug"])

    return Starlette(routes=[Route("/posts/{slug}", post)])


def document(app: Starlette) -> list[bytes]:
    middleware = SitemapMiddleware(app, base_url=site.BASE, store="memory://", verify=False)
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", site.HOST.encode()), (b"accept-encoding", b"gzip")]
    scope = {"type": "http", "method": "GET", "scheme": "https", "path": site.SITEMAP, "headers": headers}
    asyncio.run(middleware({**scope, "query_string": b""}, receive, send))
    middleware.close()
    assert sent[0]["status"] == 200, sent[0]
    return [message["body"] for message in sent[1:]]
