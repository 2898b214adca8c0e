"""The served site as a FastAPI app with async values. Each response names the process that sent it."""

from __future__ import annotations

from collections.abc import AsyncIterator

from anyio import sleep
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse

from sitemap_middleware import Entry, SitemapMiddleware, sitemap

from .served_site import SHOPS, STATIC, body, entry, hangs, headers
from .windows import signing_asgi


async def shops() -> AsyncIterator[Entry]:
    for name in SHOPS:
        yield entry(name)
        await sleep(60 * 60 if hangs() else 0)


async def page(request: Request) -> HTMLResponse:
    path = request.scope["path"]
    return HTMLResponse(body(path), headers=headers(path))


@sitemap(values=shops)
async def shop(request: Request, name: str) -> HTMLResponse:
    return await page(request)


def create_app() -> FastAPI:
    bare = FastAPI()
    for path in (*STATIC, "/posts/{slug}"):
        bare.get(path, response_class=HTMLResponse)(page)
    bare.get("/shops/{name}", response_class=HTMLResponse)(shop)
    return bare


app = create_app()
app.add_middleware(SitemapMiddleware, learn="/posts/{slug}")
app.add_middleware(signing_asgi)
