"""A client within the process: asks an app what a server would ask it, its lifespan included."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, Final
from urllib.parse import quote, unquote

from anyio import Event
from anyio.from_thread import start_blocking_portal
from werkzeug.test import Client

from ..adapters.asgi_client import ResponseCollector
from ..exceptions import SitemapError
from ..http import INTERNAL_USER_AGENT, WAIT_SECONDS_KEY, Response
from ..models import Site

Fetch = Callable[[str, str], Response]
"""Asks for a decoded path below the root, in an encoding: "gzip" or "identity"."""

_PORTS: Final = {"http": 80, "https": 443}

MAX_WAIT_SECONDS: Final = 600.0
"""Seconds for which the middleware may request pages of the app before it answers."""

Message = MutableMapping[str, Any]


@contextlib.contextmanager
def app_client(app: Any, site: Site, *, asynchronous: bool) -> Iterator[Fetch]:
    """A way to ask an app for pages of a site, as long as the block lasts; an ASGI app lives in it.

    Raises `SitemapError` where its lifespan says that it cannot start.
    """
    if not asynchronous:
        yield lambda path, encoding: _fetch_wsgi(app, site, path, encoding)
        return
    with start_blocking_portal() as portal:
        life = portal.call(_started)
        portal.start_task_soon(life.run, app)
        portal.call(life.started.wait)
        if life.failure is not None:
            raise SitemapError(f"the app did not start: {life.failure}")
        try:
            yield lambda path, encoding: portal.call(_fetch_asgi, app, site, life.state, path, encoding)
        finally:
            portal.call(life.end)


def _headers(encoding: str) -> dict[str, str]:
    return {"User-Agent": INTERNAL_USER_AGENT, "Accept": "*/*", "Accept-Encoding": encoding}


def _fetch_wsgi(app: Any, site: Site, path: str, encoding: str) -> Response:
    base_url = f"{site.scheme}://{site.host}{site.root}/"
    answer = Client(app).get(
        quote(path),
        base_url=base_url,
        headers=_headers(encoding),
        environ_overrides={WAIT_SECONDS_KEY: MAX_WAIT_SECONDS},
    )
    return Response(answer.status_code, [(name.lower(), value) for name, value in answer.headers], answer.data)


async def _fetch_asgi(app: Any, site: Site, state: dict[str, Any], path: str, encoding: str) -> Response:
    host, _, port = site.host.rpartition(":")
    if not (host and port.isdigit()):
        host, port = site.host, str(_PORTS[site.scheme])
    root = unquote(site.root)
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
        "headers": [(name.lower().encode(), value.encode()) for name, value in _headers(encoding).items()],
        "client": ("127.0.0.1", 0),
        "server": (host, int(port)),
        "state": state.copy(),
        WAIT_SECONDS_KEY: MAX_WAIT_SECONDS,
    }
    scope["headers"] = [(b"host", site.host.encode()), *scope["headers"]]
    inside = ResponseCollector()
    await app(scope, inside.receive, inside.send)
    return inside.response()


class _Lifespan:
    """The lifespan of an ASGI app, where it has one (ASGI, "Lifespan Protocol")."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}
        self.failure: str | None = None
        self.started = Event()
        self._shutdown = Event()
        self._finished = Event()
        self._startup_complete = False

    async def run(self, app: Any) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self.state}
        with contextlib.suppress(Exception):  # an app that knows of no lifespan fails so, and is served all the same
            await app(scope, self._receive, self._send)
        self.started.set()
        self._finished.set()

    async def end(self) -> None:
        self._shutdown.set()
        await self._finished.wait()

    async def _receive(self) -> Message:
        if self._startup_complete:
            await self._shutdown.wait()
            return {"type": "lifespan.shutdown"}
        self._startup_complete = True
        return {"type": "lifespan.startup"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "lifespan.startup.failed":
            said = str(message.get("message", "")).strip()
            self.failure = said.splitlines()[-1] if said else "it gave no reason"  # of a traceback, the error itself
        self.started.set()


async def _started() -> _Lifespan:
    return _Lifespan()
