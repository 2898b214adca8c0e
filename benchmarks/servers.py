"""What is left of a real server's speed: uvicorn and granian over loopback, asked on connections that stay open.

What is compared is served by one process, at paths of its own, so that all of it
has the same server, the same loop and the same memory. What is counted is the CPU
time of the server's processes for each request; the client's is left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gzip
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from starlette.responses import Response

from sitemap_middleware import SitemapMiddleware

from .pairs import Rounds, in_turn
from .request import BROWSER, RESPONSE, PassThroughASGI
from .tables import Table

ROUNDS, TIMES = 25, 400
CONNECTIONS = 8
ENTRIES = 5000
HELLO, CONTROL, FLOOR, OURS = "/hello", "/hello-again", "/pass-through", "/ours"
DOCUMENT, STATIC = "/sitemap.xml", "/static"
OPTIONS = {"base_url": "https://example.com", "store": "memory://"}
NAMES = {
    HELLO: "a bare hello",
    CONTROL: "the same again, as a control",
    FLOOR: "in a pass-through middleware",
    OURS: "in SitemapMiddleware",
    STATIC: "a Response of the same bytes",
    DOCUMENT: "a gzipped sitemap",
    "304": "a 304 of the sitemap",
}


def run() -> Iterator[Table]:
    for server in ("uvicorn", "granian"):
        if find_spec(server) is None:
            continue
        with _serving(server) as (address, pid):
            etag = _headers_of(address, DOCUMENT, {"accept-encoding": "gzip"})["etag"]
            asked = {
                name: Asked(address, path, headers)
                for name, path, headers in (
                    (HELLO, HELLO, BROWSER),
                    (CONTROL, CONTROL, BROWSER),
                    (FLOOR, FLOOR, BROWSER),
                    (OURS, OURS, BROWSER),
                    (STATIC, STATIC, BROWSER),
                    (DOCUMENT, DOCUMENT, BROWSER),
                    ("304", DOCUMENT, {**BROWSER, "if-none-match": etag}),
                )
            }
            timed = in_turn(
                {name: functools.partial(one.times, TIMES) for name, one in asked.items()},
                ROUNDS,
                lambda: cpu_seconds(pid),
            )
            yield _table(server, timed, len(_static_body()))


def _table(server: str, timed: Rounds, size: int) -> Table:
    columns = ["", "µs a request", "speed, times bare", "from", "to"]
    table = Table(f"{server}: requests over loopback, CPU time of the server", columns)
    for name, beside in ((HELLO, HELLO), (CONTROL, HELLO), (FLOOR, HELLO), (OURS, HELLO), ("304", HELLO)):
        _row(table, timed, name, beside)
    _row(table, timed, STATIC, STATIC)
    _row(table, timed, DOCUMENT, STATIC)
    table.notes.append(f"The sitemap has {ENTRIES:,} entries, gzipped {size:,} bytes; bare, for it, is the Response.")
    return table


def _row(table: Table, timed: Rounds, name: str, beside: str) -> None:
    ratio = timed.ratio(beside, name)
    table.add(NAMES[name], timed.of(name).middle / TIMES * 1e6, ratio.middle, ratio.low, ratio.high)


# What is served


async def hello(_: Any, __: Any, send: Any) -> None:
    headers = [(b"content-type", b"text/html; charset=utf-8"), (b"content-length", b"5")]
    headers += [(name.encode(), value.encode()) for name, value in RESPONSE.items()]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"Hello"})


@functools.cache
def _sitemap() -> Any:
    return SitemapMiddleware(hello, include=[f"/articles/{number}" for number in range(ENTRIES)], **OPTIONS)


@functools.cache
def _static_body() -> bytes:
    """The sitemap's document, gzipped as the middleware does."""
    sent: list[bytes] = []

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))

    scope = {"type": "http", "method": "GET", "path": DOCUMENT, "headers": [(b"host", b"example.com")]}
    asyncio.run(_sitemap()(scope, None, send))
    return gzip.compress(b"".join(sent), 6)


@functools.cache
def _apps() -> Mapping[str, Any]:
    body = _static_body()
    named = {"content-encoding": "gzip", "cache-control": "public, max-age=300"}
    return {
        HELLO: hello,
        CONTROL: hello,
        FLOOR: PassThroughASGI(hello),
        OURS: SitemapMiddleware(hello, include=OURS, **OPTIONS),
        DOCUMENT: _sitemap(),
        STATIC: Response(body, headers=named, media_type="application/xml"),
    }


async def app(scope: Any, receive: Any, send: Any) -> None:
    """All that is compared, by path."""
    if scope["type"] == "http":
        await APPS[scope["path"]](scope, receive, send)


APPS: Mapping[str, Any] = _apps() if os.environ.get("BENCHMARK_SERVES") else {}


# The server, and who asks it


@contextlib.contextmanager
def _serving(server: str) -> Iterator[tuple[tuple[str, int], int]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = free.getsockname()
    port = str(address[1])
    target = f"{__name__}:app"
    command = [sys.executable, "-m", server, "--host", "127.0.0.1", "--port", port, "--log-level", "warning"]
    command += ["--no-access-log", "--lifespan", "off"] if server == "uvicorn" else ["--interface", "asginl"]
    process = subprocess.Popen([*command, target], env={**os.environ, "BENCHMARK_SERVES": "1"})
    try:
        _wait_for(address)
        yield address, process.pid
    finally:
        process.terminate()
        process.wait(20)


def _wait_for(address: tuple[str, int]) -> None:
    for _ in range(300):
        with contextlib.suppress(OSError), socket.create_connection(address, 1):
            return
        time.sleep(0.1)
    raise TimeoutError(f"no server came up at {address}")


class Asked:
    """One question, asked many times on several connections at once."""

    def __init__(self, address: tuple[str, int], path: str, headers: Mapping[str, str]) -> None:
        lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        self._question = "\r\n".join([*lines, "", ""]).encode()
        self._sockets = [socket.create_connection(address) for _ in range(CONNECTIONS)]
        for one in self._sockets:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            one.sendall(self._question)
            self._size = len(_answer(one))

    def times(self, times: int) -> None:
        for _ in range(times // CONNECTIONS):
            for one in self._sockets:
                one.sendall(self._question)
            for one in self._sockets:
                missing = self._size
                while missing:
                    got = len(one.recv(missing))
                    assert got, "the server hung up"
                    missing -= got


def _answer(connection: socket.socket) -> bytes:
    """A whole response; each later one to the same question is of its length."""
    got = b""
    while b"\r\n\r\n" not in got:
        got += connection.recv(65536)
    head = got.partition(b"\r\n\r\n")[0]
    size = len(head) + 4 + int(_fields(head).get("content-length", "0"))
    while len(got) < size:
        got += connection.recv(65536)
    assert head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 304")), head
    return got


def _fields(head: bytes) -> dict[str, str]:
    pairs = (line.partition(b":") for line in head.split(b"\r\n")[1:])
    return {name.decode().lower(): value.decode().strip() for name, _, value in pairs}


def _headers_of(address: tuple[str, int], path: str, headers: Mapping[str, str]) -> dict[str, str]:
    lines = [f"GET {path} HTTP/1.1", "host: example.com", *(f"{name}: {value}" for name, value in headers.items())]
    with socket.create_connection(address) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        return _fields(_answer(connection).partition(b"\r\n\r\n")[0])


def cpu_seconds(pid: int) -> float:
    """The CPU time of a process and of its children, as Linux counts it, in all their threads."""
    total = 0.0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0]) / 1e9
        total += sum(cpu_seconds(int(child)) for child in (task / "children").read_text().split())
    return total
