"""An engine of IndexNow, and a site that it can reach: real servers on loopback ports, and a clock that a test moves."""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from .bakery import DAY, Bakery
from .sample_sites import Clock


@contextmanager
def running(server: Any) -> Iterator[str]:
    """Run a server; yields its URL."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Engine:
    """Fetches each key once and remembers the outcome; then answers by its script, and 200 at its end."""

    def __init__(self, clock: Any) -> None:
        self.clock = clock
        self.script: list[tuple[int, str, dict[str, str]]] = []
        self.bad: set[str] = set()
        """URLs for which a request is answered 422."""
        self.received: dict[str, list[float]] = defaultdict(list)
        """When each URL was received with 200."""
        self.tried: dict[str, list[float]] = defaultdict(list)
        """When each URL came, whatever was answered."""
        self.requests: list[int] = []
        self._keys: dict[str, bool] = {}
        self._lock = threading.Lock()
        engine = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                status, text, headers = engine.take(json.loads(body))
                if status == 0:  # the connection is closed without an answer
                    return
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def take(self, message: dict[str, Any]) -> tuple[int, str, dict[str, str]]:
        with self._lock:
            urls = message["urlList"]
            self.requests.append(len(urls))
            for url in urls:
                self.tried[url].append(self.clock())
            key = message["key"]
            if key not in self._keys:
                self._keys[key] = _fetched(message["keyLocation"]) == key.encode()
            if not self._keys[key]:
                return 403, '{"code": "UserForbiddedToAccessSite"}', {}
            if self.script:
                return self.script.pop(0)
            if self.bad.intersection(urls):
                return 422, "", {}
            for url in urls:
                self.received[url].append(self.clock())
            return 200, "", {}

    def paths(self) -> Counter[str]:
        return Counter({"/" + url.split("/", 3)[3]: len(times) for url, times in self.received.items()})

    def check(self) -> None:
        """No URL came twice within ten minutes, and none before its key was public."""
        for url, times in self.tried.items():
            gaps = [later - earlier for earlier, later in pairwise(times)]
            assert all(gap >= 600 for gap in gaps), (url, gaps)
        assert all(self._keys.values())


def _fetched(url: str) -> bytes:
    try:
        with urlopen(url, timeout=10) as response:
            return bytes(response.read())
    except HTTPError:
        return b""


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None: ...


def site_server(app: Any = None) -> WSGIServer:
    """A server for an app, which may be set later by `set_app`."""
    server = WSGIServer(("127.0.0.1", 0), _Quiet)
    server.set_app(app)
    return server


class Told(Bakery):
    """A site that tells an engine, after its first sitemap and some days in which nothing changed."""

    engine: Engine
    server: WSGIServer

    def step(self, seconds: float = 300, times: int = 1) -> None:
        for _ in range(times):
            self.clock.pass_(seconds)
            self.app.flush()

    def worker(self, **options: Any) -> Told:
        endpoint = self.app.settings["indexnow_endpoint"].value
        shared = {
            "base_url": self.base,
            "indexnow": True,
            "indexnow_endpoint": endpoint,
            "feed": None,
            "clock": self.clock,
        }
        return Told(**{**shared, **options})

    @property
    def state(self) -> int:
        return int(self.app.stats()["indexnow_state"])


def nothing(_: Any, start_response: Any) -> list[bytes]:
    start_response("404 Not Found", [])
    return [b""]


@contextmanager
def told(**options: Any) -> Iterator[Told]:
    clock = options.setdefault("clock", Clock())
    with ExitStack() as stack:
        server, engine = site_server(), Engine(clock)
        base = stack.enter_context(running(server))
        endpoint = stack.enter_context(running(engine.server))
        bakery = Told(**{"base_url": base, "indexnow": True, "indexnow_endpoint": endpoint, "feed": None, **options})
        bakery.engine, bakery.server = engine, server
        server.set_app(bakery.app)
        bakery.items = {"rye": None, "oat": None}
        bakery.visit("/", "/items/rye", "/notes/old")
        bakery.step(4 * DAY, times=5)
        assert not engine.requests
        yield bakery
