"""A site whose pages are the rows of a database, with a sync provider (Flask) or an async one (Starlette).

`/begin` resets the peak memory of the process and the delay of its event loop. `/used`
reports both.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from array import array
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import aiosqlite
import flask
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware, sitemap

DATABASE = os.environ["POSTS"]
BEAT = 0.002
"""Seconds after which the event loop is to come back."""

_late = array("d")


def used() -> dict[str, float]:
    """The most memory since it began to count, in kB; of the event loop's delays in milliseconds, those of note."""
    late = sorted(_late) or [0.0]
    figures = {"beats": len(late), "p50": late[len(late) // 2], "p999": late[len(late) * 999 // 1000], "most": late[-1]}
    status = Path("/proc/self/status").read_text().splitlines()
    return {**figures, "kB": float(next(line.split()[1] for line in status if line.startswith("VmHWM")))}


def begin() -> dict[str, float]:
    Path("/proc/self/clear_refs").write_text("5")
    del _late[:]
    return used()


def posts() -> Iterator[Any]:
    with contextlib.closing(sqlite3.connect(DATABASE)) as connection:
        for (slug,) in connection.execute("SELECT slug FROM post ORDER BY id"):
            yield {"slug": slug}


async def posts_async() -> AsyncIterator[Any]:
    async with (
        aiosqlite.connect(DATABASE) as connection,
        connection.execute("SELECT slug FROM post ORDER BY id") as cursor,
    ):
        async for (slug,) in cursor:
            yield {"slug": slug}


hidden = sitemap(exclude=True)
flask_app = flask.Flask(__name__, static_folder=None)
flask_app.add_url_rule("/begin", "begin", hidden(begin))
flask_app.add_url_rule("/used", "used", hidden(used))
flask_app.add_url_rule("/posts/<slug>", "post", sitemap(values=posts)(lambda slug: slug))
flask_app.wsgi_app = SitemapMiddleware(flask_app.wsgi_app)  # type: ignore[method-assign] # as Flask has it


async def _beat() -> None:
    while True:
        before = perf_counter()
        await asyncio.sleep(BEAT)
        _late.append((perf_counter() - before - BEAT) * 1000)


@contextlib.asynccontextmanager
async def _lifespan(_: Any) -> AsyncIterator[None]:
    beating = asyncio.create_task(_beat())
    yield
    beating.cancel()


@sitemap(values=posts_async)
async def post(request: Request) -> HTMLResponse:
    return HTMLResponse(request.path_params["slug"])


@hidden
async def begin_async(_: Request) -> JSONResponse:
    return JSONResponse(begin())


@hidden
async def used_async(_: Request) -> JSONResponse:
    return JSONResponse(used())


starlette_app = Starlette(
    routes=[Route("/begin", begin_async), Route("/used", used_async), Route("/posts/{slug}", post)], lifespan=_lifespan
)
starlette_app.add_middleware(SitemapMiddleware)
