"""A ready sitemap beside a static response on uvicorn, and how late its loop runs while URLs are rendered."""

from __future__ import annotations

import asyncio
import os
import socket
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.client import HTTPResponse
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware, sitemap

from .tables import Table

SHORT = {"pages": 100, "rounds": 1}
BEAT_SECONDS = 0.001
REQUESTS = 1000


def run(pages: int = 200_000, rounds: int = 5) -> list[Table]:
    """`pages`: the URLs of the sitemap, all of `values`."""
    from tests.support.servers import uvicorn

    with (
        tempfile.TemporaryDirectory() as folder,
        uvicorn(f"{__name__}:app", Path(folder), "--factory", env={"PAGES": str(pages)}, ready="/late") as server,
    ):
        client = socket.create_connection(("127.0.0.1", server.port), 60)
        time.sleep(1)
        idle = _late(client)
        began = time.perf_counter()
        while (answer := _get(client, "/sitemap.xml"))[0] != 200:
            time.sleep(0.1)
        seconds = time.perf_counter() - began
        late = _late(client)
        body = f"/static?{len(answer[1])}"
        cpu = {"/sitemap.xml": list[float](), body: list[float]()}
        for _ in range(rounds):
            for path, taken in cpu.items():
                before = _cpu_seconds(server.process.pid)
                for _ in range(REQUESTS):
                    _get(client, path)
                taken.append((_cpu_seconds(server.process.pid) - before) / REQUESTS)
    ready, static = (statistics.median(taken) for taken in cpu.values())
    loop = Table(
        f"By how many ms the loop's turns are late; {pages:,} URLs took {seconds:.1f} s", ["", "p99", "the latest"]
    )
    for name, turns in (("idle", idle), ("while URLs are rendered", late)):
        loop.add(name, sorted(turns)[int(len(turns) * 0.99)] * 1e3, max(turns) * 1e3)
    rate = Table("Requests a second of the server's CPU time", ["", "a second", "of static"])
    rate.add("a static Response of the same size", 1 / static, 1.0)
    rate.add("the ready sitemap", 1 / ready, static / ready)
    return [loop, rate]


def _get(client: socket.socket, path: str) -> tuple[int, bytes]:
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept-Encoding: gzip\r\n\r\n".encode())
    response = HTTPResponse(client)
    response.begin()
    return response.status, response.read()


def _late(client: socket.socket) -> list[float]:
    """By how many seconds each turn of the server's loop was late since the last call."""
    return [float(text) for text in _get(client, "/late")[1].strip(b"[]").split(b",") if text]


def _cpu_seconds(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def app() -> Starlette:
    """The app that uvicorn runs."""
    late: list[float] = []

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async def beat() -> None:
            while True:
                began = time.perf_counter()
                await asyncio.sleep(BEAT_SECONDS)
                late.append(time.perf_counter() - began - BEAT_SECONDS)

        task = asyncio.create_task(beat())
        yield
        task.cancel()

    @sitemap(values=lambda: ({"number": number} for number in range(int(os.environ["PAGES"]))))
    async def post(_: Request) -> Response:
        return Response()

    async def static(request: Request) -> Response:
        return Response(b"x" * int(request.url.query))

    async def lates(_: Request) -> Response:
        found = late.copy()
        late.clear()
        return JSONResponse(found)

    routes = [Route("/posts/{number:int}", post), Route("/static", static), Route("/late", lates)]
    app = Starlette(routes=routes, lifespan=lifespan)
    app.add_middleware(SitemapMiddleware, base_url="https://example.com", store="memory://", max_age=10**6)
    return app
