"""The time that observing adds to a page's request: in-process, no server, no socket.

Each app runs bare, in a pass-through middleware that does nothing
(what any middleware costs at least), in the least that notices a changed response
(what observing costs at least), and in ours. Ours runs several times: its page is
requested 40 times in each second, and each response is compared; it is requested as
often as it can be, so that ours soon pauses until the second ends; or once in each
second. A raw app, which does next to nothing itself, shows the added time best; Flask
and Starlette show what it comes to.
"""

from __future__ import annotations

import asyncio
import collections
import itertools
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import flask
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware

from . import alternating_timing
from .least_observers import LeastASGI, LeastRecordingASGI, LeastRecordingWSGI, LeastWSGI, LookUpASGI, LookUpWSGI
from .tables import Cell, Table

ROUNDS, BATCH = 301, 0.002
SHORT = {"rounds": 3}
BUSY = "SitemapMiddleware, a page requested more than 50 times in its second"
FIRST = "SitemapMiddleware, first of its second"
UNSAMPLED = "SitemapMiddleware, which reads no body"
LEAST = "the least that compares responses"
LEAST_BUSY = "the least that looks the page up"
LEAST_FIRST = "the least that records responses, first of its second"
COMPARED_PER_SECOND = 40
"""Requests in a second of `OURS`: too few for a pause."""
BARE, PASS_THROUGH, OURS, CORS, BASE = (
    "bare",
    "pass-through",
    "SitemapMiddleware",
    "CORSMiddleware",
    "BaseHTTPMiddleware",
)
OPTIONS: dict[str, Any] = {"base_url": "https://example.com", "store": "memory://", "verify": False}
"""Without `verify`, because its requests are mostly the app's own work."""
BODY = b"<!doctype html><title>Hello</title><p>Hello."
LARGE = (
    b"<!doctype html><title>Hello</title><main>" + b"<p>Hello, and a sentence for the crawler.</p>" * 1100 + b"</main>"
)

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


LARGE_PAGE = Case("a page of 50 kB, asked for every two seconds")


def run(rounds: int = ROUNDS) -> Iterator[Table]:
    """Measure each case in so many rounds."""
    yield _over_wsgi("Flask", _flask(), PAGE, rounds)
    yield _over_asgi("Starlette", _starlette(), PAGE, rounds)
    for case in CASES:
        yield _over_wsgi("raw WSGI app", _raw_wsgi(), case, rounds)
        yield _over_asgi("raw ASGI app", _raw_asgi(), case, rounds)
    yield _over_wsgi("raw WSGI app", _sampled(_raw_wsgi(LARGE)[BARE], _visit_wsgi), LARGE_PAGE, rounds)
    yield _over_asgi("raw ASGI app", _sampled(_raw_asgi(LARGE)[BARE], _visit_asgi), LARGE_PAGE, rounds)


def _table(
    title: str, case: Case, apps: dict[str, Any], sender: Callable[[Any], Callable[[int], object]], rounds: int
) -> Table:
    timed = alternating_timing.rounds({name: sender(app) for name, app in apps.items()}, rounds, BATCH)
    assert (_seen(apps.get(BUSY, apps[OURS])) > 0) is case.is_evidence, "it was not observing that was measured"
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


class PassThroughBase(BaseHTTPMiddleware):
    async def dispatch(self, request: Any, call_next: Any) -> Any:
        return await call_next(request)


def _later(seconds: float) -> Iterator[float]:
    """The times of a clock that advances by so much whenever it is read, which is once for a request.

    To read it takes about as long as `time.time`.
    """
    return itertools.count(1_750_000_000.0, seconds)


def _known_for_long(make: Callable[[Callable[[], float]], Any], visit: Callable[[Any], None], seconds: float) -> Any:
    """An app with ours, by whose clock each request comes so many seconds after the last one.

    The home page has been known for so long that its body is read every quarter of an hour.

    Args:
        make: makes the app with a clock.
        visit: requests the home page.
        seconds: by which the clock advances whenever it is read.
    """
    times = _later(seconds)
    app = make(times.__next__)
    for _ in range(12):
        visit(app)
        _middleware(app).flush()
        collections.deque(itertools.islice(times, round(1000 / seconds)), maxlen=0)  # read the clock for 1,000 seconds
    return app


def _raw(app: Any, visit: Callable[[Any], None], seconds: float) -> Any:
    """Ours around a raw app."""
    return _known_for_long(lambda clock: SitemapMiddleware(app, include="/", clock=clock, **OPTIONS), visit, seconds)


def _sampled(app: Any, visit: Callable[[Any], None]) -> dict[str, Any]:
    """Bare, and ours with bodies read as they are in use and not at all."""
    apps = {BARE: app, OURS: _raw(app, visit, 2), UNSAMPLED: _raw(app, visit, 2)}
    schedule = apps[UNSAMPLED].service.tracker.sampler.find(("https://example.com", "/"))
    assert schedule is not None, "the page has not been sampled"
    schedule.due_at = math.inf
    return apps


def _visit_wsgi(app: Any) -> None:
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "HTTP_HOST": "example.com", "wsgi.url_scheme": "https"}
    list(app(environ, lambda *_: None))


def _visit_asgi(app: Any) -> None:
    async def send(_: Any) -> None: ...

    scope = {"type": "http", "method": "GET", "path": "/", "scheme": "https", "headers": [(b"host", b"example.com")]}
    asyncio.run(app(scope, None, send))


def _raw_wsgi(body: bytes = BODY) -> dict[str, Any]:
    headers = [("content-type", "text/html; charset=utf-8"), ("content-length", str(len(body))), *RESPONSE.items()]

    def app(_: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", headers.copy())
        return [body]

    return {
        BARE: app,
        PASS_THROUGH: PassThroughWSGI(app),
        LEAST: LeastWSGI(app, _later(1 / COMPARED_PER_SECOND).__next__),
        LEAST_BUSY: LookUpWSGI(app),
        OURS: _raw(app, _visit_wsgi, 1 / COMPARED_PER_SECOND),
        BUSY: SitemapMiddleware(app, include="/", **OPTIONS),
        LEAST_FIRST: LeastRecordingWSGI(app, _later(1).__next__),
        FIRST: _raw(app, _visit_wsgi, 1),
    }


def _flask() -> dict[str, Any]:
    """All around one app: equal Flask apps differ by more than what is measured, as they lie elsewhere in memory."""
    app = _flask_app().wsgi_app
    return {
        BARE: app,
        PASS_THROUGH: PassThroughWSGI(app),
        LEAST: LeastWSGI(app, _later(1 / COMPARED_PER_SECOND).__next__),
        LEAST_BUSY: LookUpWSGI(app),
        OURS: _known_for_long(
            lambda clock: SitemapMiddleware(app, clock=clock, **OPTIONS), _visit_wsgi, 1 / COMPARED_PER_SECOND
        ),
        BUSY: SitemapMiddleware(app, **OPTIONS),
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


def _raw_asgi(body: bytes = BODY) -> dict[str, Any]:
    sent = _blob({"content-type": "text/html; charset=utf-8", "content-length": str(len(body)), **RESPONSE})

    async def app(_: Any, __: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _pairs(sent)})
        await send({"type": "http.response.body", "body": body})

    return {
        BARE: app,
        PASS_THROUGH: PassThroughASGI(app),
        LEAST: LeastASGI(app, _later(1 / COMPARED_PER_SECOND).__next__),
        LEAST_BUSY: LookUpASGI(app),
        OURS: _raw(app, _visit_asgi, 1 / COMPARED_PER_SECOND),
        BUSY: SitemapMiddleware(app, include="/", **OPTIONS),
        LEAST_FIRST: LeastRecordingASGI(app, _later(1).__next__),
        FIRST: _raw(app, _visit_asgi, 1),
        CORS: CORSMiddleware(app, allow_origins=["*"]),
        BASE: PassThroughBase(app),
    }


def _starlette() -> dict[str, Any]:
    async def hello(_: Request) -> HTMLResponse:
        return HTMLResponse(BODY, headers=RESPONSE)

    routes = [Route("/", hello), Route("/users/{name}", hello)]
    return {
        BARE: Starlette(routes=routes),
        PASS_THROUGH: Starlette(routes=routes, middleware=[Middleware(PassThroughASGI)]),
        LEAST: Starlette(routes=routes, middleware=[Middleware(LeastASGI, _later(1 / COMPARED_PER_SECOND).__next__)]),
        OURS: _known_for_long(
            lambda clock: Starlette(routes=routes, middleware=[Middleware(SitemapMiddleware, clock=clock, **OPTIONS)]),
            _visit_asgi,
            1 / COMPARED_PER_SECOND,
        ),
        BUSY: Starlette(routes=routes, middleware=[Middleware(SitemapMiddleware, **OPTIONS)]),
        CORS: Starlette(routes=routes, middleware=[Middleware(CORSMiddleware, allow_origins=["*"])]),
        BASE: Starlette(routes=routes, middleware=[Middleware(PassThroughBase)]),
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

    All run on one event loop; nothing but BaseHTTPMiddleware ever returns to it
    in the midst of a request.
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
