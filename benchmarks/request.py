"""The time that observing adds to a page's request: in-process, no server, no socket.

Each app runs bare, in a pass-through middleware that does nothing (what any middleware costs at least), in ours, and
over ASGI in Starlette's CORSMiddleware. By the clock of ours a page is requested 40 times in each second. A raw app,
which does next to nothing itself, shows the added time best; Flask and Starlette show what it comes to.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import flask
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware

from . import alternating_timing
from .tables import Cell, Table

ROUNDS, BATCH = 301, 0.002
SHORT = {"rounds": 3}
PER_SECOND = 40
"""Requests of a page in a second, by the clock of ours."""
VISITS = 12
"""Those before the first measured request."""
BARE, PASS_THROUGH, OURS, CORS = "bare", "pass-through", "SitemapMiddleware", "CORSMiddleware"
OPTIONS: dict[str, Any] = {"base_url": "https://example.com", "store": "memory://", "verify": False}
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
CRAWLER = {
    "host": "example.com",
    "connection": "keep-alive",
    "accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "from": "googlebot(at)googlebot.com",
    "user-agent": "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "accept-encoding": "gzip, deflate, br",
}


@dataclass(frozen=True)
class Case:
    """What is requested, and whether ours counts the request as evidence."""

    title: str
    path: str = "/"
    headers: Mapping[str, str] = field(default_factory=lambda: BROWSER)
    is_evidence: bool = True


PAGE = Case("a page, asked for by a browser")
CASES = (
    PAGE,
    Case("a page, asked for by a crawler", headers=CRAWLER),
    Case("a page unknown to the routes", "/users/ada"),
    Case(
        "a request with a cookie",
        headers={**BROWSER, "cookie": "session=0123456789abcdef; theme=dark"},
        is_evidence=False,
    ),
)


def run(rounds: int = ROUNDS) -> Iterator[Table]:
    """Measure each case in so many rounds."""
    yield _over_wsgi("Flask", _flask(), PAGE, rounds)
    yield _over_asgi("Starlette", _starlette(), PAGE, rounds)
    for case in CASES:
        yield _over_wsgi("raw WSGI app", _raw_wsgi(), case, rounds)
        yield _over_asgi("raw ASGI app", _raw_asgi(), case, rounds)


def _table(
    title: str, case: Case, apps: dict[str, Any], sender: Callable[[Any], Callable[[int], object]], rounds: int
) -> Table:
    timed = alternating_timing.rounds({name: sender(app) for name, app in apps.items()}, rounds, BATCH)
    assert (_seen(apps[OURS]) > VISITS) is case.is_evidence, "it was not observing that was measured"
    table = Table(f"{title}: {case.title}", ["", "µs", "added", "from", "to", "times bare", "of CORS's added"])
    cors = timed.added(CORS, BARE).middle if CORS in apps else None
    for name in apps:
        cells: list[Cell] = [timed.of(name).middle * 1e6]
        if name != BARE:
            added = timed.added(name, BARE)
            cells += [added.middle * 1e6, added.low * 1e6, added.high * 1e6, timed.ratio(name, BARE).middle]
            cells += [added.middle / cors] if cors else []
        table.add(name, *cells)
    return table


def _seen(app: Any) -> int:
    """How many responses ours has observed."""
    return _middleware(app).stats()["seen"]


def _middleware(app: Any) -> SitemapMiddleware:
    """Ours, wherever in the app it is."""
    while not isinstance(app, SitemapMiddleware):
        app = getattr(app, "wsgi_app", None) or getattr(app, "middleware_stack", None) or app.app
    return app


class PassThroughWSGI:
    def __init__(self, app: Any) -> None:
        self.app = app

    def __call__(self, environ: Any, start_response: Any) -> Any:
        return self.app(environ, start_response)


class PassThroughASGI:
    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app(scope, receive, send)


def _known_for_long(make: Callable[[Callable[[], float]], Any], visit: Callable[[Any], None]) -> Any:
    """An app with ours, whose home page was visited now and then for hours.

    Args:
        make: makes the app with a clock, which advances whenever it is read.
        visit: requests the home page.
    """
    now = itertools.count(1_750_000_000.0, 1 / PER_SECOND)
    app = make(now.__next__)
    for _ in range(VISITS):
        visit(app)
        _middleware(app).flush()
        for _ in range(1000 * PER_SECOND):
            next(now)
    return app


def _around(app: Any, visit: Callable[[Any], None]) -> Any:
    """Ours around a raw app."""
    return _known_for_long(lambda clock: SitemapMiddleware(app, include="/", clock=clock, **OPTIONS), visit)


def _visit_wsgi(app: Any) -> None:
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "HTTP_HOST": "example.com", "wsgi.url_scheme": "https"}
    list(app(environ, lambda *_: None))


def _visit_asgi(app: Any) -> None:
    async def send(_: Any) -> None: ...

    scope = {"type": "http", "method": "GET", "path": "/", "scheme": "https", "headers": [(b"host", b"example.com")]}
    asyncio.run(app(scope, None, send))


def _raw_wsgi() -> dict[str, Any]:
    headers = [("content-type", "text/html; charset=utf-8"), ("content-length", str(len(BODY))), *RESPONSE.items()]

    def app(_: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", headers.copy())
        return [BODY]

    return {
        BARE: app,
        PASS_THROUGH: PassThroughWSGI(app),
        OURS: _around(app, _visit_wsgi),
    }


def _flask() -> dict[str, Any]:
    """All around one app: equal Flask apps differ by more than what is measured, as they lie elsewhere in memory."""
    app = _flask_app().wsgi_app
    return {
        BARE: app,
        PASS_THROUGH: PassThroughWSGI(app),
        OURS: _known_for_long(lambda clock: SitemapMiddleware(app, clock=clock, **OPTIONS), _visit_wsgi),
    }


def _flask_app() -> flask.Flask:
    app = flask.Flask(__name__, static_folder=None)

    @app.get("/")
    def hello() -> flask.Response:
        return flask.Response(BODY, headers=RESPONSE, content_type="text/html; charset=utf-8")

    @app.get("/users/<name>")
    def user(name: str) -> flask.Response:
        return flask.Response(name, headers=RESPONSE, content_type="text/html; charset=utf-8")

    return app


def _raw_asgi() -> dict[str, Any]:
    sent = _blob({"content-type": "text/html; charset=utf-8", "content-length": str(len(BODY)), **RESPONSE})

    async def app(_: Any, __: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _pairs(sent)})
        await send({"type": "http.response.body", "body": BODY})

    return {
        BARE: app,
        PASS_THROUGH: PassThroughASGI(app),
        OURS: _around(app, _visit_asgi),
        CORS: CORSMiddleware(app, allow_origins=["*"]),
    }


def _starlette() -> dict[str, Any]:
    async def hello(_: Request) -> HTMLResponse:
        return HTMLResponse(BODY, headers=RESPONSE)

    routes = [Route("/", hello), Route("/users/{name}", hello)]
    return {
        BARE: Starlette(routes=routes),
        PASS_THROUGH: Starlette(routes=routes, middleware=[Middleware(PassThroughASGI)]),
        OURS: _known_for_long(
            lambda clock: Starlette(routes=routes, middleware=[Middleware(SitemapMiddleware, clock=clock, **OPTIONS)]),
            _visit_asgi,
        ),
        CORS: Starlette(routes=routes, middleware=[Middleware(CORSMiddleware, allow_origins=["*"])]),
    }


def _over_wsgi(title: str, apps: dict[str, Any], case: Case, rounds: int) -> Table:
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
    named = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in case.headers.items()}
    sent = _blob(named).decode("latin-1")
    path = case.path.encode()

    def start_response(status: str, headers: Any, exc_info: Any = None) -> None: ...

    def sender(app: Any) -> Callable[[int], object]:
        def send(times: int) -> None:
            for _ in range(times):
                environ = template.copy()
                environ.update(_pairs(sent))
                environ["PATH_INFO"] = path.decode("latin-1")
                result = app(environ, start_response)
                b"".join(result)
                if hasattr(result, "close"):
                    result.close()

        return send

    return _table(title, case, apps, sender, rounds)


def _over_asgi(title: str, apps: dict[str, Any], case: Case, rounds: int) -> Table:
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
    sent = _blob(case.headers)
    path = case.path.encode()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None: ...

    async def requests(app: Callable[..., Awaitable[None]], times: int) -> None:
        for _ in range(times):
            scope = template.copy()
            scope["path"], scope["raw_path"] = path.decode(), path
            scope["headers"] = _pairs(sent)
            await app(scope, receive, send)

    loop = asyncio.new_event_loop()

    def sender(app: Any) -> Callable[[int], object]:
        return lambda times: loop.run_until_complete(requests(app, times))

    table = _table(title, case, apps, sender, rounds)
    loop.close()
    return table


def _blob(headers: Mapping[str, str]) -> bytes:
    return b"\n".join(part.encode() for pair in headers.items() for part in pair)


def _pairs(blob: Any) -> list[tuple[Any, Any]]:
    """Header fields that were just read from a socket: new objects, whose hashes nobody has asked for yet."""
    parts = iter(blob.splitlines())
    return list(zip(parts, parts, strict=True))
