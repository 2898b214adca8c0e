"""A process that requests made-up URLs of the app it runs, as scanners do, and reports its memory and its sitemap."""

from __future__ import annotations

import asyncio
import gc
import io
import sys
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

import flask
from starlette.applications import Starlette
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware

from .documents import locs
from .sample_sites import Clock
from .wire import RequestSpec, asgi_async, wsgi

Report = Callable[[object], None]

BASE = "https://example.com"
STATIC = ("/", "/about")
PAGES = (*STATIC, *(f"/posts/{number}" for number in range(10)))
"""Pages that exist."""
TEMPLATES = (*STATIC, "/posts/{slug}", "/tags/{name}")
"""The last route answers 200 to any path below it."""
FLUSH_EVERY = 4000
"""URLs between two flushes: as many as the buffer holds, so that none is dropped."""
REPORTS = 10
SECONDS = 0.2
"""Between two requests: a million take more than two days, and expired pages are removed each hour."""


def made_up(count: int) -> Iterator[str]:
    """Yield paths that were never requested before, now and then one that exists."""
    random, good = Random(count), cycle(PAGES)
    for number in range(count):
        name = f"{random.getrandbits(40):x}-{number}"
        yield f"/tags/{name}" if number % 2 else f"/posts/{name}" if number % 10 else f"/{name}/wp-login.php"
        if number % 100 == 0:
            yield next(good)


def answer(path: str) -> tuple[int, bytes]:
    """Return the status and a page with unique text."""
    exists = path in PAGES or path.startswith("/tags/")
    return (200 if exists else 404), b"<!doctype html><title>A page</title><p>Of %s.</p>" % path.encode()


def flask_routes() -> flask.Flask:
    app = flask.Flask("flood", static_folder=None)
    for path in TEMPLATES:
        app.add_url_rule(path.replace("{", "<").replace("}", ">"), path, lambda **_: "")
    return app


def starlette_routes() -> Starlette:
    return Starlette(routes=[Route(path, lambda _: None) for path in TEMPLATES])


def wsgi_app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    status, body = answer(environ["PATH_INFO"])
    start_response(f"{status} Status", [("Content-Type", "text/html"), ("Content-Length", str(len(body)))])
    return [body]


async def asgi_app(scope: Any, receive: Any, send: Any) -> None:
    status, body = answer(scope["path"])
    headers = [(b"content-type", b"text/html"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


ENVIRON = {
    "REQUEST_METHOD": "GET",
    "SCRIPT_NAME": "",
    "QUERY_STRING": "",
    "SERVER_NAME": "localhost",
    "SERVER_PORT": "80",
    "SERVER_PROTOCOL": "HTTP/1.1",
    "HTTP_HOST": "example.com",
    "wsgi.version": (1, 0),
    "wsgi.url_scheme": "https",
    "wsgi.input": io.BytesIO(),
    "wsgi.errors": sys.stderr,
    "wsgi.multithread": True,
    "wsgi.multiprocess": True,
    "wsgi.run_once": False,
}
SCOPE = {
    "type": "http",
    "asgi": {"version": "3.0", "spec_version": "2.3"},
    "http_version": "1.1",
    "method": "GET",
    "scheme": "https",
    "root_path": "",
    "query_string": b"",
    "headers": [(b"host", b"example.com")],
    "client": ("127.0.0.1", 50000),
    "server": ("localhost", 80),
}


class Visitor:
    """Requests pages of a site by its protocol, without a server."""

    def __init__(self, protocol: str, url: str, pages_per_route: int) -> None:
        self.clock = Clock()
        self._wsgi = protocol == "wsgi"
        self.site: Any = SitemapMiddleware(
            wsgi_app if self._wsgi else asgi_app,
            routes=flask_routes() if self._wsgi else starlette_routes(),
            store=url,
            base_url=BASE,
            learn=["/posts/<slug>", "/tags/<name>"] if self._wsgi else ["/posts/{slug}", "/tags/{name}"],
            max_pages_per_route=pages_per_route,
            clock=self.clock,
            verify=False,
        )

    async def request(self, path: str) -> None:
        self.clock.now += SECONDS
        if self._wsgi:
            for _ in self.site({**ENVIRON, "PATH_INFO": path}, _start_response):
                pass
        else:
            await self.site({**SCOPE, "path": path, "raw_path": path.encode()}, _receive, _send)

    async def listed(self, name: str = "/sitemap.xml") -> int:
        """Return how many pages the sitemap lists."""
        spec = RequestSpec(name, host="example.com", scheme="https")
        answer = wsgi(self.site, spec) if self._wsgi else await asgi_async(self.site, spec)
        assert answer.status == 200, answer
        listed = locs(answer.body)
        if name == "/sitemap.xml" and b"<sitemapindex" in answer.body:
            return sum([await self.listed(loc.removeprefix(BASE)) for loc in listed])
        return len(listed)


def _start_response(*_: Any) -> Any:
    """Accept the start of a response."""


async def _receive() -> Any:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _send(_: Any) -> None:
    """Accept a message."""


def request_made_up_urls(report: Report, url: str, protocol: str, count: int, pages_per_route: int) -> None:
    """Request so many URLs; report now and then their number, the kB in memory and the pages listed."""
    asyncio.run(_request_all(report, Visitor(protocol, url, pages_per_route), count))


async def _request_all(report: Report, visitor: Visitor, count: int) -> None:
    report_every = -(-count // REPORTS)
    for number, path in enumerate(made_up(count), 1):
        await visitor.request(path)
        if number % FLUSH_EVERY == 0:
            visitor.site.flush()
        if number % report_every == 0:
            listed = await visitor.listed()
            gc.collect()
            report((number, resident_kilobytes(), listed))
    visitor.site.flush()
    report(("stats", visitor.site.stats()))
    visitor.site.close()


def resident_kilobytes() -> int:
    """Return the resident memory of this process in kB."""
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.partition("VmRSS:")[2].split()[0])
