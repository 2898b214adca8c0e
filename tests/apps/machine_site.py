"""A site on one of several machines; its test sets the clock and removes pages through files."""

from __future__ import annotations

import os
import time
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware

STATIC = ("/", "/about", "/terms")
CLOCK, GONE = (Path(os.environ.get(name, name)) for name in ("SITE_CLOCK", "SITE_GONE"))
"""What holds by how many seconds the clock is put on, and the path that is there no longer."""


def body(path: str) -> str:
    return f"<!doctype html><title>{path}</title><p>All that there is to say of {path}."


def clock() -> float:
    return time.time() + float(CLOCK.read_text())


async def page(request: Request) -> HTMLResponse:
    path = request.url.path
    return HTMLResponse(body(path), 404 if path == GONE.read_text() else 200)


app = SitemapMiddleware(
    Starlette(routes=[Route(path, page) for path in (*STATIC, "/posts/{slug}")]), learn="/posts/{slug}", clock=clock
)
