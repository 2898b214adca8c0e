"""Large documents go out part by part, as fast as the client takes them."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import socket
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import trio

from sitemap_middleware.adapters.asgi import send_response
from sitemap_middleware.documents.responses import MAX_SINGLE_PART_BYTES
from sitemap_middleware.http.messages import Response
from tests.servers.test_processes import HOST, Launch, gunicorn, uvicorn
from tests.support.waiting import until

from ...apps import large_site
from ...support import servers
from ...support.documents import locs
from ...support.wire import DRIVERS, RequestSpec

GZIP = {"accept-encoding": "gzip"}


class Body:
    """A body of so many parts, which tells how many were made and whether it was closed."""

    def __init__(self, count: int) -> None:
        self.made = 0
        self.ended = False
        self.response = Response(200, [], parts=self._parts(count))

    def _parts(self, count: int) -> Generator[bytes]:
        try:
            for _ in range(count):
                self.made += 1
                yield b"part"
        finally:
            self.ended = True


async def receive() -> Any: ...


LOOPS = pytest.mark.parametrize("run", [pytest.param(asyncio.run, id="asyncio"), pytest.param(trio.run, id="trio")])


def sent(run: Any, body: Body, send: Any) -> None:
    async def main() -> None:
        await send_response(body.response, {}, receive, send)

    _ = run(main()) if run is asyncio.run else run(main)


@LOOPS
def test_each_part_is_made_once_the_one_before_was_taken(run: Any) -> None:
    body, messages = Body(3), []

    async def send(message: Any) -> None:
        messages.append((message.get("body"), message.get("more_body", False), body.made))

    sent(run, body, send)
    assert messages == [
        (None, False, 0),
        (b"part", True, 1),
        (b"part", True, 2),
        (b"part", True, 3),
        (b"", False, 3),
    ]
    assert body.ended


@LOOPS
def test_a_client_that_has_left_ends_the_body(run: Any) -> None:
    body = Body(1000)

    async def send(message: Any) -> None:
        if body.made == 2:
            raise OSError("the client has left")

    sent(run, body, send)
    assert (body.made, body.ended) == (2, True)


# Through the middleware


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
def test_gzip_and_identity_are_one_document_whole_or_in_parts(protocol: str) -> None:
    app = getattr(large_site, f"inner_{protocol}")
    plain = DRIVERS[protocol](app, RequestSpec("/sitemap.xml"))
    zipped = DRIVERS[protocol](app, RequestSpec("/sitemap.xml", headers=list(GZIP.items())))
    assert len(locs(plain.body)) == len(large_site.NAMES)
    assert gzip.decompress(zipped.body) == plain.body
    for answer in (plain, zipped):
        assert answer.header("content-length") == str(len(answer.body))
        assert len(answer.body) > MAX_SINGLE_PART_BYTES
    assert plain.header("etag") != zipped.header("etag")
    head = DRIVERS[protocol](app, RequestSpec("/sitemap.xml", "HEAD"))
    assert (head.status, sorted(head.headers), head.body) == (200, sorted(plain.headers), b"")


# On real servers

WSGI, ASGI = "tests.apps.large_site:wsgi", "tests.apps.large_site:asgi"

launched = pytest.mark.parametrize(
    "launch",
    [
        pytest.param(gunicorn(WSGI, "--worker-class", "gthread", "--threads", "4"), id="gunicorn"),
        pytest.param(uvicorn(ASGI, "--http", "h11"), id="uvicorn h11"),
    ],
)


def begun(server: servers.Server) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    """A request for the document as it is, of whose answer only the head is read: the client's buffer is small."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.sock = socket.socket()
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    connection.sock.settimeout(30)
    connection.sock.connect(("127.0.0.1", server.port))
    connection.request("GET", "/sitemap.xml", headers=HOST)
    answer = connection.getresponse()
    assert answer.status == 200
    return connection, answer


def taken(server: servers.Server) -> dict[str, int]:
    counts: dict[str, int] = json.loads(server.get("/taken", HOST).body)
    return counts


def stalled(server: servers.Server) -> int:
    """The bytes that the server has taken once it takes no more."""
    seen = [0, 0]

    def still() -> bool:
        seen.append(taken(server)["bytes"])
        return len(set(seen[-3:])) == 1 and seen[-1] > 0

    until(still)
    return seen[-1]


@launched
@pytest.mark.slow
def test_slow_reader_gets_a_whole_document_and_delays_nobody(launch: Launch, tmp_path: Path) -> None:
    with launch(tmp_path, ready="/taken") as server:
        zipped = server.get("/sitemap.xml", HOST | GZIP)
        before = taken(server)["ended"]
        connection, answer = begun(server)
        size = int(answer.headers["Content-Length"])
        assert stalled(server) < size / 2
        body = answer.read()
        connection.close()
        assert len(body) == size
        assert gzip.decompress(zipped.body) == body
        assert len(locs(body)) == len(large_site.NAMES)
        until(lambda: taken(server)["ended"] == before + 1)
    assert "Traceback" not in server.log.read_text()


@launched
@pytest.mark.slow
def test_a_client_that_leaves_half_way_ends_the_work(launch: Launch, tmp_path: Path) -> None:
    with launch(tmp_path, ready="/taken") as server:
        connection, answer = begun(server)
        answer.read(100_000)
        answer.close()
        connection.close()
        until(lambda: taken(server)["ended"] == 1)
        assert server.get("/sitemap.xml", HOST).status == 200
    assert "Traceback" not in server.log.read_text()
