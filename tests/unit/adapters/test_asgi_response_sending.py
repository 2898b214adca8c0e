"""Large documents go out part by part, as fast as the client takes them, and no further once it has left."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import socket
from collections.abc import Awaitable, Callable, Generator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
import trio
from anyio import sleep_forever

from sitemap_middleware.adapters.asgi_response_sending import send_stream
from sitemap_middleware.cli.in_process_app_client import running_app
from sitemap_middleware.documents.responses import MAX_SINGLE_PART_BYTES
from sitemap_middleware.models import Site
from tests.servers.test_processes import HOST, Launch, gunicorn, uvicorn
from tests.support.waiting import until

from ...apps import large_site
from ...support import servers
from ...support.documents import locs
from ...support.wire import DRIVERS, RequestSpec

GZIP = {"accept-encoding": "gzip"}
Message = MutableMapping[str, Any]


# What is answered


# ASGI: the parts, and who takes them


class Body:
    """A body of so many parts, which tells how many were made and whether it was closed."""

    def __init__(self, count: int, failure: Exception | None = None) -> None:
        self.made = 0
        self.ended = False
        self.parts = self._parts(count, failure)

    def _parts(self, count: int, failure: Exception | None) -> Generator[bytes]:
        try:
            for _ in range(count):
                self.made += 1
                yield b"part"
            if failure is not None:
                raise failure
        finally:
            self.ended = True


async def stays() -> Message:
    await sleep_forever()
    raise AssertionError


Runner = Callable[[Callable[[], Awaitable[None]]], None]


def on_asyncio(main: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(main())  # type: ignore[arg-type]


def on_trio(main: Callable[[], Awaitable[None]]) -> None:
    trio.run(main)


loops = pytest.mark.parametrize("run", [pytest.param(on_asyncio, id="asyncio"), pytest.param(on_trio, id="trio")])


@loops
def test_each_part_is_made_once_the_one_before_was_taken(run: Runner) -> None:
    body, sent = Body(3), []

    async def send(message: Message) -> None:
        sent.append((message["body"], message.get("more_body", False), body.made))

    run(lambda: send_stream(body.parts, stays, send))
    assert sent == [(b"part", True, 1), (b"part", True, 2), (b"part", True, 3), (b"", False, 3)]
    assert body.ended


@loops
def test_disconnect_while_the_server_waits_ends_the_body(run: Runner) -> None:
    body = Body(1000)
    left = False

    async def receive() -> Message:
        nonlocal left
        if not left:
            left = True
            return {"type": "http.request", "body": b"", "more_body": False}
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        await sleep_forever()

    run(lambda: send_stream(body.parts, receive, send))
    assert (body.made, body.ended) == (1, True)


@loops
def test_a_body_that_fails_is_the_servers_to_cut_off(run: Runner) -> None:
    body, sent = Body(3, ZeroDivisionError("of its own")), []

    async def send(message: Message) -> None:
        sent.append(message["more_body"])

    with pytest.raises(ZeroDivisionError, match="of its own"):
        run(lambda: send_stream(body.parts, stays, send))
    assert sent == [True] * 3


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


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
def test_a_client_within_the_process_gets_a_large_document_whole(protocol: str) -> None:
    site = Site("http", "localhost", loopback=True)
    app = getattr(large_site, f"inner_{protocol}")
    with running_app(app, asynchronous=protocol == "asgi") as running:
        send_request = running.client(site)
        plain, zipped = send_request("/sitemap.xml", "identity"), send_request("/sitemap.xml", "gzip")
    assert gzip.decompress(zipped.body) == plain.body
    assert len(locs(plain.body)) == len(large_site.NAMES)


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
        size = int(answer.headers["Content-Length"])
        answer.read(100_000)
        answer.close()
        connection.close()
        until(lambda: taken(server)["ended"] == 1)
        assert taken(server)["bytes"] < size / 2
        assert server.get("/sitemap.xml", HOST).status == 200
    assert "Traceback" not in server.log.read_text()
