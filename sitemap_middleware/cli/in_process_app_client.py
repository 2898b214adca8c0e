"""Requests documents from an app within the process, as a server would: an ASGI app's lifespan runs meanwhile.

Starlette's TestClient is not used: it fails on apps without a lifespan, and needs httpx.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from urllib.parse import quote, unquote

from anyio import Event
from anyio.from_thread import start_blocking_portal
from werkzeug.test import Client

from ..adapters.in_process_asgi_client import ResponseCollector
from ..exceptions import SitemapError
from ..models import Site
from ..request_response import PROBE_USER_AGENT, WAIT_SECONDS_KEY, Response

Fetch = Callable[[str, str], Response]
"""Requests a decoded path below the root, with an Accept-Encoding of "gzip" or "identity"."""

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}

MAX_WAIT_SECONDS: Final = 600.0
"""Seconds for which the middleware may request pages of the app before it responds."""

Message = MutableMapping[str, Any]


@contextlib.contextmanager
def app_client(app: Any, site: Site, *, asynchronous: bool, wait_seconds: float = MAX_WAIT_SECONDS) -> Iterator[Fetch]:
    """Provide a function that requests pages of a site from an app. An ASGI app is started and shut down around it.

    Args:
        app: the app.
        site: the site.
        asynchronous: whether the app speaks ASGI.
        wait_seconds: seconds for which the middleware may request pages of the app before it responds.

    Raises:
        SitemapError: the app fails to start.
    """
    if not asynchronous:
        with _call_without_event_loop() as call:
            yield lambda path, encoding: call(lambda: _fetch_wsgi(app, site, path, encoding, wait_seconds))
        return
    with start_blocking_portal() as portal:
        lifespan = portal.call(_create_lifespan)
        portal.start_task_soon(lifespan.run, app)
        portal.call(lifespan.started.wait)
        if lifespan.failure is not None:
            raise SitemapError(f"the app did not start: {lifespan.failure}")
        try:
            state = {"state": lifespan.state, WAIT_SECONDS_KEY: wait_seconds}
            yield lambda path, encoding: portal.call(_fetch_asgi, app, site, path, encoding, state)
        finally:
            portal.call(lifespan.shut_down)


@contextlib.contextmanager
def _call_without_event_loop() -> Iterator[Callable[[Callable[[], Response]], Response]]:
    """Provide a function that calls another one where no event loop runs, as servers call WSGI apps.

    Django refuses SQL on the thread of a running loop, and an app may call `asyncio.run`. Without a running loop, it
    stays on the caller's thread, because databases of tests belong to their thread.
    """
    with ThreadPoolExecutor(1, "sitemap_middleware-app") as executor:

        def call(function: Callable[[], Response]) -> Response:
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                return function()
            return executor.submit(function).result()

        yield call


def _headers(encoding: str) -> dict[str, str]:
    return {"User-Agent": PROBE_USER_AGENT, "Accept": "*/*", "Accept-Encoding": encoding}


def _fetch_wsgi(app: Any, site: Site, path: str, encoding: str, wait_seconds: float) -> Response:
    response = Client(app).get(
        quote(path),
        base_url=f"{site.scheme}://{site.host}{site.root}/",
        headers=_headers(encoding),
        environ_overrides={WAIT_SECONDS_KEY: wait_seconds},
    )
    return Response(response.status_code, [(name.lower(), value) for name, value in response.headers], response.data)


async def _fetch_asgi(app: Any, site: Site, path: str, encoding: str, more: Mapping[str, Any]) -> Response:
    host, _, port = site.host.rpartition(":")
    if not (host and port.isdigit()):
        host, port = site.host, str(_DEFAULT_PORTS[site.scheme])
    root = unquote(site.root)
    headers = {"Host": site.host, **_headers(encoding)}
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": site.scheme,
        "path": root + path,
        "raw_path": quote(root + path).encode(),
        "root_path": root,
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 0),
        "server": (host, int(port)),
        **more,
        "state": more["state"].copy(),
    }
    collector = ResponseCollector()
    await app(scope, collector.receive, collector.send)
    return collector.response()


class _Lifespan:
    """Runs the lifespan of an ASGI app, if it has one (ASGI specification, "Lifespan Protocol")."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}
        self.failure: str | None = None
        """Why the app failed to start."""
        self.started = Event()
        """Set when the app has started, has failed to start, or has no lifespan."""
        self._shutdown = Event()
        self._finished = Event()
        self._startup_received = False

    async def run(self, app: Any) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self.state}
        with contextlib.suppress(Exception):  # an app without a lifespan raises here, and serves requests all the same
            await app(scope, self._receive, self._send)
        self.started.set()
        self._finished.set()

    async def shut_down(self) -> None:
        self._shutdown.set()
        await self._finished.wait()

    async def _receive(self) -> Message:
        if self._startup_received:
            await self._shutdown.wait()
            return {"type": "lifespan.shutdown"}
        self._startup_received = True
        return {"type": "lifespan.startup"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "lifespan.startup.failed":
            traceback = str(message.get("message", "")).strip()
            self.failure = traceback.splitlines()[-1] if traceback else "no reason given"
        self.started.set()


async def _create_lifespan() -> _Lifespan:
    """Create it on the event loop, because its events are bound to that loop."""
    return _Lifespan()
