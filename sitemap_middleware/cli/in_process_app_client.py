"""Runs an app within the process, as a server would, with the lifespan of an ASGI app, and requests pages from it.

Starlette's TestClient is not used: it fails on apps without a lifespan, and needs httpx.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import quote, unquote

from anyio import Event
from anyio.from_thread import start_blocking_portal
from werkzeug.test import Client

from ..adapters.asgi_client import ResponseCollector
from ..adapters.event_loop_and_threads import collect_on_loop
from ..exceptions import SitemapError
from ..http.messages import PROBE_USER_AGENT, WAIT_SECONDS_KEY, AsyncCollector, Response
from ..models import Site

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}

MAX_WAIT_SECONDS: Final = 600.0
"""Seconds for which the middleware may request pages of the app before it responds."""

Message = MutableMapping[str, Any]


class Fetch(Protocol):
    """Requests a decoded path below the root, with an Accept-Encoding of "gzip" or "identity"."""

    def __call__(self, path: str, encoding: str, query: str = "") -> Response:
        """Send the request. The query is written as in a URL."""
        ...


class _PageRequest(NamedTuple):
    """A request for a page of an app."""

    site: Site
    path: str
    encoding: str
    query: str
    wait_seconds: float

    @property
    def headers(self) -> dict[str, str]:
        return {"User-Agent": PROBE_USER_AGENT, "Accept": "*/*", "Accept-Encoding": self.encoding}


@dataclass(frozen=True, slots=True)
class RunningApp:
    """An app that `running_app` has started."""

    _send: Callable[[_PageRequest], Response]
    async_collector: AsyncCollector | None = None
    """Reads async `values` on the event loop of the app; None if it speaks WSGI."""
    failure: str | None = None
    """Why the app failed to start; None if it started, or has no lifespan."""

    def client(self, site: Site, wait_seconds: float = MAX_WAIT_SECONDS) -> Fetch:
        """Return a function that requests pages of a site from the app.

        Args:
            site: the site.
            wait_seconds: seconds for which the middleware may request pages of the app before it responds.

        Raises:
            SitemapError: the app failed to start.
        """
        if self.failure is not None:
            raise SitemapError(f"the app did not start: {self.failure}")
        return lambda path, encoding, query="": self._send(_PageRequest(site, path, encoding, query, wait_seconds))


@contextlib.contextmanager
def running_app(app: Any, *, asynchronous: bool) -> Iterator[RunningApp]:
    """Provide an app that runs as under a server: an ASGI app is started, and shut down at the end.

    Args:
        app: the app.
        asynchronous: whether the app speaks ASGI.
    """
    if not asynchronous:
        with ThreadPoolExecutor(1, "sitemap_middleware-app") as executor:
            yield RunningApp(functools.partial(_send_wsgi, executor, app))
        return
    with start_blocking_portal() as portal:
        lifespan = portal.call(_Lifespan)  # on the event loop, to which its events are bound
        portal.start_task_soon(lifespan.run, app)
        portal.call(lifespan.started.wait)
        try:
            yield RunningApp(
                lambda request: portal.call(_call_asgi, app, request, lifespan.state),
                functools.partial(collect_on_loop, portal.call),
                lifespan.failure,
            )
        finally:
            portal.call(lifespan.shut_down)


def _send_wsgi(executor: Executor, app: Any, request: _PageRequest) -> Response:
    """Call a WSGI app where no event loop runs, as servers do: Django refuses SQL on the thread of a running loop.

    Without a running loop, it stays on the caller's thread, because databases of tests belong to their thread.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _call_wsgi(app, request)
    return executor.submit(_call_wsgi, app, request).result()


def _call_wsgi(app: Any, request: _PageRequest) -> Response:
    site = request.site
    response = Client(app).get(
        quote(request.path),
        base_url=f"{site.scheme}://{site.host}{site.root}/",
        query_string=request.query,
        headers=request.headers,
        environ_overrides={WAIT_SECONDS_KEY: request.wait_seconds},
    )
    return Response(response.status_code, [(name.lower(), value) for name, value in response.headers], response.data)


async def _call_asgi(app: Any, request: _PageRequest, state: Mapping[str, Any]) -> Response:
    site, root = request.site, unquote(request.site.root)
    host, _, port = site.host.rpartition(":")
    if not (host and port.isdigit()):
        host, port = site.host, str(_DEFAULT_PORTS[site.scheme])
    headers = {"Host": site.host, **request.headers}
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": site.scheme,
        "path": root + request.path,
        "raw_path": quote(root + request.path).encode(),
        "root_path": root,
        "query_string": request.query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 0),
        "server": (host, int(port)),
        "state": {**state},
        WAIT_SECONDS_KEY: request.wait_seconds,
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
        try:
            await app(scope, self._receive, self._send)
        except SystemExit as error:  # it would end the event loop, and with it the command
            if not self.started.is_set():
                self.failure = f"SystemExit: {error.code}"
        except Exception:  # noqa: S110 (an app without a lifespan raises here, and serves requests all the same)
            pass
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
