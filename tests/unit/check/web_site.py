"""A site of which every response is written down, served by a real server; and a check of it, without waiting."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from sitemap_middleware.check.run_check import check_sitemap
from sitemap_middleware.check.run_state import CheckSettings, Run
from sitemap_middleware.check.sources import ClientSource
from sitemap_middleware.check.web_client import WebClient

NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'

DEFAULTS = CheckSettings()


class Time:
    """A clock that is moved only by waiting."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


class Reply(NamedTuple):
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = {}  # noqa: RUF012 (never changed)
    length: int | None = None
    """The Content-Length, if it is not that of the body."""
    seconds: float = 0
    """For how long the connection stays open after the body, at most."""


class WebSite:
    """The replies by path, each used once, the last one for all further requests; and the requests."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.replies: dict[str, list[Reply]] = {}
        self.browser_replies: dict[str, Reply] = {}
        self.default = Reply(404)
        """The reply of all other paths."""
        self.delays: dict[str, float] = {}
        self.requests: list[str] = []
        self.credentials = set[str | None]()
        self.is_over = threading.Event()

    def add(self, path: str, *replies: Reply) -> None:
        self.replies[path] = [*replies]

    def close(self, path: str) -> None:
        self.add(path, Reply(0))

    def add_sitemap(self, path: str, *urls: str) -> None:
        self.add(path, xml(urlset(*(f"{self.origin}{url}" for url in urls))))

    def reply(self, path: str, agent: str) -> Reply:
        self.requests.append(path)
        if "Mozilla" in agent and path in self.browser_replies:
            return self.browser_replies[path]
        replies = self.replies.get(path, [self.default])
        return replies.pop(0) if len(replies) > 1 else replies[0]


def urlset(*urls: str) -> str:
    return f"<urlset {NAMESPACE}>{''.join(f'<url><loc>{url}</loc></url>' for url in urls)}</urlset>"


def index(*urls: str) -> str:
    rows = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls)
    return f"<sitemapindex {NAMESPACE}>{rows}</sitemapindex>"


def xml(text: str) -> Reply:
    return Reply(200, text.encode(), {"Content-Type": "application/xml"})


@contextmanager
def served() -> Iterator[WebSite]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.credentials.add(self.headers["Authorization"])
            site.is_over.wait(site.delays.get(self.path, 0))
            status, body, headers, length, seconds = site.reply(self.path, self.headers["User-Agent"])
            if not status:
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body) if length is None else length))
            self.end_headers()
            self.wfile.write(body)
            if seconds:
                self.wfile.flush()
                site.is_over.wait(seconds)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        site = WebSite(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield site
        finally:
            site.is_over.set()
            server.shutdown()
            thread.join()


def check_url(
    url: str, settings: CheckSettings = DEFAULTS, *, with_pages: bool = False, now: float = 0.0, **options: Any
) -> Run:
    """Check a URL. `options` are those of the client, which need not wait."""

    async def run() -> Run:
        time = Time()
        async with WebClient(url, **{"clock": time, "sleep": time.sleep, **options}) as client:
            source = ClientSource(url, client, request_time=0.0)
            pages = client if with_pages else None
            return await check_sitemap(source, settings, client=pages, clock=lambda: now)

    return asyncio.run(run())


def codes(result: Run) -> list[str]:
    return [finding.code for finding in result.findings]
