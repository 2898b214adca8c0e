"""The time that observing adds to a page's request: in-process, no server, no socket.

A raw app, which does next to nothing itself, runs bare, in ours, and over ASGI in Starlette's CORSMiddleware. By the
clock of ours the page is requested 40 times in each second.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from starlette.middleware.cors import CORSMiddleware

from sitemap_middleware import SitemapMiddleware

from . import alternating_timing
from .tables import Cell, Table

ROUNDS, BATCH = 301, 0.002
SHORT = {"rounds": 3}
PER_SECOND = 40
"""Requests of a page in a second, by the clock of ours."""
VISITS = 12
"""Those before the first measured request."""
BARE, OURS, CORS = "bare", "SitemapMiddleware", "CORSMiddleware"
OPTIONS: dict[str, Any] = {"base_url": "https://example.com", "store": "memory://", "verify": False, "include": "/"}
"""Without `verify`, because its requests are mostly the app's own work."""
BODY = b"<!doctype html><title>Hello</title><p>Hello."

BROWSER = {
    "host": "example.com",
    "connection": "keep-alive",
    "upgrade-insecure-requests": "1",
    "user-agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0 Safari/537.36",
    "accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
    "origin": "https://example.org",  # without it CORSMiddleware has nothing to do
    "sec-fetch-site": "cross-site",
    "sec-fetch-mode": "navigate",
    "sec-fetch-dest": "document",
    "referer": "https://example.org/",
    "accept-encoding": "gzip, deflate, br, zstd",
    "accept-language": "en-GB,en;q=0.9",
}
RESPONSE = {
    "cache-control": "public, max-age=600",
    "last-modified": "Tue, 14 Nov 2023 22:13:20 GMT",
    "etag": '"5f3c1a"',
    "x-frame-options": "DENY",
}
CASES = {
    "a page, asked for by a browser": BROWSER,
    "a request with a cookie, which is no evidence": BROWSER | {"cookie": "session=0123456789abcdef; theme=dark"},
}


def run(rounds: int = ROUNDS) -> Iterator[Table]:
    """Measure each case in so many rounds."""
    for title, headers in CASES.items():
        yield _over_wsgi(title, headers, rounds)
        yield _over_asgi(title, headers, rounds)


def _table(title: str, apps: dict[str, Any], sender: Callable[[Any], Callable[[int], object]], rounds: int) -> Table:
    timed = alternating_timing.rounds({name: sender(app) for name, app in apps.items()}, rounds, BATCH)
    is_observed = apps[OURS].stats()["seen"] > VISITS
    assert is_observed is ("no evidence" not in title), "it was not observing that was measured"
    table = Table(title, ["", "µs", "added", "from", "to", "of CORS's added"])
    cors = timed.added(CORS, BARE).middle if CORS in apps else None
    for name in apps:
        cells: list[Cell] = [timed.of(name).middle * 1e6]
        if name != BARE:
            added = timed.added(name, BARE)
            cells += [added.middle * 1e6, added.low * 1e6, added.high * 1e6]
            cells += [added.middle / cors] if cors else []
        table.add(name, *cells)
    return table


def _known_for_long(app: Any, visit: Callable[[Any], None]) -> SitemapMiddleware:
    """Ours around an app whose home page was visited now and then for hours. Its clock advances whenever it is read."""
    now = itertools.count(1_750_000_000.0, 1 / PER_SECOND)
    middleware = SitemapMiddleware(app, clock=now.__next__, **OPTIONS)
    for _ in range(VISITS):
        visit(middleware)
        middleware.flush()
        for _ in range(1000 * PER_SECOND):
            next(now)
    return middleware


def _visit_wsgi(app: Any) -> None:
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "HTTP_HOST": "example.com", "wsgi.url_scheme": "https"}
    list(app(environ, lambda *_: None))


def _visit_asgi(app: Any) -> None:
    async def send(_: Any) -> None: ...

    scope = {"type": "http", "method": "GET", "path": "/", "scheme": "https", "headers": [(b"host", b"example.com")]}
    asyncio.run(app(scope, None, send))


def _wsgi_apps() -> dict[str, Any]:
    headers = [("content-type", "text/html; charset=utf-8"), ("content-length", str(len(BODY))), *RESPONSE.items()]

    def app(_: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", headers.copy())
        return [BODY]

    return {BARE: app, OURS: _known_for_long(app, _visit_wsgi)}


def _asgi_apps() -> dict[str, Any]:
    sent = _blob({"content-type": "text/html; charset=utf-8", "content-length": str(len(BODY)), **RESPONSE})

    async def app(_: Any, __: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _pairs(sent)})
        await send({"type": "http.response.body", "body": BODY})

    return {BARE: app, OURS: _known_for_long(app, _visit_asgi), CORS: CORSMiddleware(app, allow_origins=["*"])}


def _over_wsgi(title: str, headers: Mapping[str, str], rounds: int) -> Table:
    """Requests with an environ each, as gunicorn makes it."""
    template = {
        "REQUEST_METHOD": "GET",
        "SCRIPT_NAME": "",
        "QUERY_STRING": "",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "8000",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "https",
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    named = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
    sent = _blob(named).decode("latin-1")

    def start_response(status: str, headers: Any, exc_info: Any = None) -> None: ...

    def sender(app: Any) -> Callable[[int], object]:
        def send(times: int) -> None:
            for _ in range(times):
                environ = template.copy()
                environ.update(_pairs(sent))
                environ["PATH_INFO"] = "/"
                b"".join(app(environ, start_response))

        return send

    return _table(f"WSGI: {title}", _wsgi_apps(), sender, rounds)


def _over_asgi(title: str, headers: Mapping[str, str], rounds: int) -> Table:
    """Requests with a scope each, as uvicorn makes it.

    All run on one event loop; nothing returns to it in the midst of a request.
    """
    template = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "https",
        "root_path": "",
        "query_string": b"",
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8000),
    }
    sent = _blob(headers)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None: ...

    async def requests(app: Callable[..., Awaitable[None]], times: int) -> None:
        for _ in range(times):
            scope = template.copy()
            scope["path"], scope["raw_path"] = "/", b"/"
            scope["headers"] = _pairs(sent)
            await app(scope, receive, send)

    loop = asyncio.new_event_loop()

    def sender(app: Any) -> Callable[[int], object]:
        return lambda times: loop.run_until_complete(requests(app, times))

    table = _table(f"ASGI: {title}", _asgi_apps(), sender, rounds)
    loop.close()
    return table


def _blob(headers: Mapping[str, str]) -> bytes:
    return b"\n".join(part.encode() for pair in headers.items() for part in pair)


def _pairs(blob: Any) -> list[tuple[Any, Any]]:
    """Header fields that were just read from a socket: new objects, whose hashes nobody has asked for yet."""
    parts = iter(blob.splitlines())
    return list(zip(parts, parts, strict=True))
