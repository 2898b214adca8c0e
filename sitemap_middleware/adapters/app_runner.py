"""Runs an app within the process, as a server would, with the lifespan of an ASGI app, and requests pages from it.

Starlette's TestClient is not used: it fails on apps without a lifespan, and needs httpx.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from anyio import Event
from anyio.from_thread import start_blocking_portal
from starlette.types import Message
from werkzeug.test import Client, EnvironBuilder
from werkzeug.wrappers import Request

from ..exceptions import SitemapError
from ..http.messages import PROBE_USER_AGENT, WAIT_SECONDS_KEY, AsyncCollector, Response
from ..models import Site
from ..util import is_on_event_loop
from .asgi_client import ResponseCollector, collect_on_loop

MAX_WAIT_SECONDS: Final = 600.0
"""Seconds for which the middleware may request pages of the app before it responds."""

Fetch = Callable[..., Response]
"""Requests a decoded path below the root, with an Accept-Encoding of "gzip" or "identity", and perhaps a query, written
as in a URL, and more headers.
"""


@dataclass(frozen=True, slots=True)
class RunningApp:
    """An app that `running_app` has started."""

    _send: Callable[[Request], Response] | None = None
    """None if nobody has started it."""
    async_collector: AsyncCollector | None = None
    """Reads async `values` on the event loop of the app; None if it speaks WSGI."""
    failure: str | None = None
    """Why the app failed to start; None if it started, or has no lifespan."""

    def client(self, site: Site, wait_seconds: float = MAX_WAIT_SECONDS) -> Fetch:
        """Return a function that requests pages of a site from the app. Raises `SitemapError` if it did not start.

        The middleware may request pages of the app for so many seconds before it responds.
        """
        send = self._send
        if send is None or self.failure is not None:
            raise SitemapError(f"the app did not start: {self.failure}")

        def fetch(path: str, encoding: str, query: str = "", *more: tuple[str, str]) -> Response:
            builder = EnvironBuilder(
                quote(path),
                base_url=f"{site.base_url}/",
                query_string=query,
                headers=[("User-Agent", PROBE_USER_AGENT), ("Accept", "*/*"), ("Accept-Encoding", encoding), *more],
                environ_overrides={WAIT_SECONDS_KEY: wait_seconds},
            )
            return send(builder.get_request())

        return fetch


@contextlib.contextmanager
def running_app(app: Any, *, asynchronous: bool) -> Iterator[RunningApp]:
    """Provide an app that runs as under a server: an ASGI app (`asynchronous`) is started, and shut down at the end."""
    if not asynchronous:
        with ThreadPoolExecutor(1, "sitemap_middleware-app") as executor:
            yield RunningApp(partial(_send_to_wsgi, executor, app))
        return
    with start_blocking_portal() as portal:
        lifespan = portal.call(_Lifespan)  # on the event loop, to which its events are bound
        portal.start_task_soon(lifespan.run, app)
        portal.call(lifespan.started.wait)
        try:
            yield RunningApp(
                partial(portal.call, _send_to_asgi, app, lifespan.state),
                partial(collect_on_loop, portal.call),
                lifespan.failure,
            )
        finally:
            portal.call(lifespan.shut_down)


def _send_to_wsgi(executor: Executor, app: Any, request: Request) -> Response:
    """Call a WSGI app where no event loop runs, as servers do: Django refuses SQL on the thread of a running loop.

    Without a running loop, it stays on the caller's thread, because databases of tests belong to their thread.
    """
    return executor.submit(_response, app, request).result() if is_on_event_loop() else _response(app, request)


def _response(app: Any, request: Request) -> Response:
    response = Client(app).open(request)
    return Response(response.status_code, [(name.lower(), value) for name, value in response.headers], response.data)


async def _send_to_asgi(app: Any, state: Mapping[str, Any], request: Request) -> Response:
    path = request.root_path + request.path
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": request.scheme,
        "path": path,
        "raw_path": quote(path).encode(),
        "root_path": request.root_path,
        "query_string": request.query_string,
        "headers": [(name.lower().encode(), value.encode()) for name, value in request.headers],
        "client": ("127.0.0.1", 0),
        "server": request.server,
        "state": {**state},
        WAIT_SECONDS_KEY: request.environ[WAIT_SECONDS_KEY],
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
