"""What is left of a real server's speed: uvicorn and granian over loopback, asked on connections that stay open.

What is compared is served by one process, at paths of its own, so that all of it
has the same server, the same loop and the same memory. What is counted is the CPU
time of the server's processes for each request; the client's is left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware

from .alternating_timing import Rounds, in_turn
from .least_observers import LeastDocument, LookUpASGI
from .request import BROWSER, RESPONSE, PassThroughASGI
from .tables import Table

ROUNDS, TIMES = 15, 800
SHORT = {"rounds": 2, "times": 40}
CONNECTIONS = 8
ENTRIES = 5000
HELLO, CONTROL, PASS_THROUGH, OURS = "/hello", "/hello-again", "/pass-through", "/ours"
LOOKED_UP = "/looked-up"
STARLETTE = "/starlette"
DOCUMENT, FILED, STATIC = "/sitemap.xml", "/filed.xml", "/static"
UNCHANGED, FILED_UNCHANGED = "304", "304 of a file's"
LEAST = "/least"
OTHER, OTHERS = "/feed.xml", "/ours/feed.xml"
OPTIONS: dict[str, Any] = {"base_url": "https://example.com", "store": "memory://", "verify": False}
NAMES = {
    HELLO: "a bare hello",
    CONTROL: "the same again, as a control",
    PASS_THROUGH: "in a pass-through middleware",
    LOOKED_UP: "in the least that looks the page up",
    OURS: "in SitemapMiddleware",
    STARLETTE: "a hello of a Starlette app",
    STATIC: "a static Response of the same bytes and headers",
    LEAST: "the least that finds a sitemap in memory",
    DOCUMENT: "a gzipped sitemap",
    FILED: "the same, its store an SQLite file",
    UNCHANGED: "a 304 of the sitemap",
    FILED_UNCHANGED: "the same, its store an SQLite file",
    OTHER: "a bare hello named like a document",
    OTHERS: "in SitemapMiddleware, and none of ours",
}
GZIP = {**BROWSER, "accept-encoding": "gzip, deflate, br, zstd"}
BESIDE = (
    (HELLO, HELLO),
    (CONTROL, HELLO),
    (PASS_THROUGH, HELLO),
    (LOOKED_UP, HELLO),
    (OURS, HELLO),
    (STATIC, STATIC),
    (LEAST, STATIC),
    (DOCUMENT, STATIC),
    (FILED, STATIC),
    (UNCHANGED, HELLO),
    (FILED_UNCHANGED, HELLO),
    (STARLETTE, STARLETTE),
    (UNCHANGED, STARLETTE),
    (FILED_UNCHANGED, STARLETTE),
    (OTHER, OTHER),
    (OTHERS, OTHER),
)
"""What is shown, and beside what."""


def run(rounds: int = ROUNDS, times: int = TIMES) -> Iterator[Table]:
    """Measure each server in so many rounds of so many requests."""
    for server in ("uvicorn", "granian"):
        if find_spec(server) is None:
            continue
        with tempfile.TemporaryDirectory() as folder, _serving(server, folder) as (address, pid):
            etags = {path: _headers_of(address, path, GZIP)["etag"] for path in (DOCUMENT, FILED)}
            plain = (
                HELLO,
                CONTROL,
                PASS_THROUGH,
                LOOKED_UP,
                OURS,
                STARLETTE,
                STATIC,
                LEAST,
                DOCUMENT,
                FILED,
                OTHER,
                OTHERS,
            )
            requests = {path: RepeatedRequest(address, path, GZIP) for path in plain}
            for name, path in ((UNCHANGED, DOCUMENT), (FILED_UNCHANGED, FILED)):
                requests[name] = RepeatedRequest(address, path, {**GZIP, "if-none-match": etags[path]})
            assert requests[STATIC].size == requests[DOCUMENT].size, "the Response is to be the sitemap's twin"
            timed = in_turn(
                {name: functools.partial(request.times, times) for name, request in requests.items()},
                rounds,
                lambda: cpu_seconds(pid),
                {name: functools.partial(request.times, 2 * CONNECTIONS) for name, request in requests.items()},
            )
            yield _table(server, timed, requests[DOCUMENT].size, times)


def _table(server: str, timed: Rounds, size: int, times: int) -> Table:
    columns = ["", "µs a request", "speed, times bare", "from", "to"]
    table = Table(f"{server}: requests over loopback, CPU time of the server", columns)
    for name, beside in BESIDE:
        ratio = timed.ratio(beside, name)
        beside_starlette = ", beside Starlette's" if beside == STARLETTE != name else ""
        table.add(
            NAMES[name] + beside_starlette, timed.of(name).middle / times * 1e6, ratio.middle, ratio.low, ratio.high
        )
    table.notes.append(f"The sitemap has {ENTRIES:,} entries; its response, gzipped, {size:,} bytes.")
    table.notes.append("Bare is what stands above it with 1.00, unless it is named.")
    return table


# What is served


async def hello(_: Any, __: Any, send: Any) -> None:
    headers = [(b"content-type", b"text/html; charset=utf-8"), (b"content-length", b"5")]
    headers += [(name.encode(), value.encode()) for name, value in RESPONSE.items()]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"Hello"})


async def starlette_hello(_: Request) -> HTMLResponse:
    return HTMLResponse("Hello", headers=RESPONSE)


def _sitemap(store: str, path: str) -> Any:
    return SitemapMiddleware(
        hello,
        include=[f"/articles/{number}" for number in range(ENTRIES)],
        base_url="https://example.com",
        store=store,
        path=path,
        verify=False,  # the pages are not the app's
    )


def _twin(sitemap: Any) -> Response:
    """A Response of the bytes and the headers with which a sitemap is answered."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"example.com"), (b"accept-encoding", b"gzip")]
    scope = {"type": "http", "method": "GET", "path": DOCUMENT, "headers": headers}
    asyncio.run(sitemap(scope, None, send))
    response = Response(b"".join(message["body"] for message in sent[1:]))
    response.raw_headers = sent[0]["headers"]
    return response


def _apps() -> Mapping[str, Any]:
    sitemap = _sitemap("memory://", DOCUMENT)
    twin = _twin(sitemap)
    return {
        HELLO: hello,
        CONTROL: hello,
        PASS_THROUGH: PassThroughASGI(hello),
        LOOKED_UP: LookUpASGI(hello),
        OURS: SitemapMiddleware(hello, include=OURS, **OPTIONS),
        OTHER: hello,
        OTHERS: SitemapMiddleware(hello, include=OURS, **OPTIONS),
        STARLETTE: Starlette(routes=[Route(STARLETTE, starlette_hello)]),
        DOCUMENT: sitemap,
        FILED: _sitemap(os.environ["BENCHMARK_STORE"], FILED),
        STATIC: twin,
        LEAST: LeastDocument(twin.status_code, twin.raw_headers, twin.body),
    }


async def app(scope: Any, receive: Any, send: Any) -> None:
    """All that is compared, by path."""
    if scope["type"] == "http":
        await APPS[scope["path"]](scope, receive, send)


APPS: Mapping[str, Any] = _apps() if os.environ.get("BENCHMARK_STORE") else {}


# The server and its client


@contextlib.contextmanager
def _serving(server: str, folder: str) -> Iterator[tuple[tuple[str, int], int]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = free.getsockname()
    port = str(address[1])
    target = f"{__name__}:app"
    command = [sys.executable, "-m", server, "--host", "127.0.0.1", "--port", port, "--log-level", "warning"]
    command += (
        ["--no-access-log", "--lifespan", "off", "--timeout-keep-alive", "600"]
        if server == "uvicorn"
        else ["--interface", "asginl"]
    )
    process = subprocess.Popen(
        [*command, target], env={**os.environ, "BENCHMARK_STORE": f"sqlite:///{folder}/store.sqlite3"}
    )
    try:
        _wait_for(address, process)
        yield address, process.pid
    finally:
        process.terminate()
        process.wait(20)


def _wait_for(address: tuple[str, int], process: subprocess.Popen[bytes]) -> None:
    """Wait until the server listens; give up when it exits, or after two minutes."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(address, 1):
            return
        time.sleep(0.1)
    raise TimeoutError(f"no server came up at {address}; its exit code is {process.returncode}")


class RepeatedRequest:
    """One request, sent many times on several connections at once."""

    def __init__(self, address: tuple[str, int], path: str, headers: Mapping[str, str]) -> None:
        lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        self._question = "\r\n".join([*lines, "", ""]).encode()
        self._sockets = [socket.create_connection(address) for _ in range(CONNECTIONS)]
        for connection in self._sockets:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall(self._question)
            self.size = len(_answer(connection))

    def times(self, times: int) -> None:
        for _ in range(times // CONNECTIONS):
            for connection in self._sockets:
                connection.sendall(self._question)
            for connection in self._sockets:
                missing = self.size
                while missing:
                    got = len(connection.recv(missing))
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
