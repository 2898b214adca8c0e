"""ASGI 3: translates, and decides nothing. The one module that awaits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from anyio import move_on_after, sleep_forever
from anyio.from_thread import run
from anyio.from_thread import run_sync as run_on_loop
from anyio.to_thread import run_sync
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .core import Core
from .model import ASKED_HEADERS, BYTES_TO_ANSWER, READ_HEADERS, SECONDS_TO_ANSWER, USER_AGENT, Response

_READ: Final = frozenset(name.encode() for name in READ_HEADERS)
_ASKED: Final = {name.encode(): name for name in ASKED_HEADERS}


_CONNECTION: Final = ("asgi", "http_version", "scheme", "root_path", "client", "server", "state", "app")
"""What of a scope is the connection's or the app's rather than the one request's."""


class ASGIRequest:
    """A scope, as the core reads requests."""

    __slots__ = ("_app", "_scope", "path", "root")

    def __init__(self, scope: Scope, app: ASGIApp, declared_root: str) -> None:
        self._scope = scope
        self._app = app
        self.root: str = scope.get("root_path") or declared_root
        self.path: str = scope.get("path", "")
        """Below the root: servers give the whole path (ASGI, "HTTP Connection Scope"), some proxies one already cut."""
        if self.root and self.path.startswith(f"{self.root.rstrip('/')}/"):
            self.path = self.path[len(self.root.rstrip("/")) :]

    @property
    def method(self) -> str:
        method: str = self._scope["method"]
        return method

    @property
    def scheme(self) -> str:
        scheme: str = self._scope.get("scheme", "http")
        return scheme

    @property
    def query(self) -> bool:
        return bool(self._scope.get("query_string"))

    def asker(self) -> tuple[bool, str, str]:
        personal, host, accept = False, b"", b""
        for name, value in self._scope["headers"]:
            if name in _READ:
                if name == b"host":
                    host = value
                elif name == b"accept":
                    accept = value
                else:
                    personal = True
        return personal, host.decode("latin-1"), accept.decode("latin-1")

    @property
    def asked(self) -> Mapping[str, str]:
        return {_ASKED[name]: value.decode("latin-1") for name, value in self._scope["headers"] if name in _ASKED}

    def ask(self, path: str) -> Response | None:
        """Called on the worker thread that `ASGI` runs `respond` on; the app runs on its own event loop."""
        return run(self._ask, path)

    async def _ask(self, path: str) -> Response | None:
        whole = f"{self.root}{path}"
        host = [(name, value) for name, value in self._scope["headers"] if name == b"host"]
        asked: Scope = {name: self._scope[name] for name in _CONNECTION if name in self._scope}
        asked.update(type="http", method="GET", path=whole, raw_path=whole.encode(), query_string=b"", extensions={})
        asked["headers"] = [*host, (b"user-agent", USER_AGENT.encode()), (b"accept", b"*/*")]
        status, fields, body, received = 0, [], b"", False

        async def receive() -> Message:
            nonlocal received
            if received:
                await sleep_forever()  # as with a client that stays
            received = True
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            nonlocal status, fields, body
            if message["type"] == "http.response.start":
                status = int(message["status"])
                fields = [
                    (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in message["headers"]
                ]
            elif message["type"] == "http.response.body":
                body += message.get("body", b"")
                if len(body) > BYTES_TO_ANSWER:
                    bounds.cancel()

        with move_on_after(SECONDS_TO_ANSWER) as bounds:
            await self._app(asked, receive, send)
            return Response(status, fields, body)
        return None

    def behind(self, job: Callable[[], None]) -> None:
        """Called on the thread of `respond`, as `ask` is."""
        run_on_loop(_begin, job)


_begun: Final[set[asyncio.Task[None]]] = set()
"""Tasks that run behind requests: an event loop by itself would let go of them."""


def _begin(job: Callable[[], None]) -> None:
    try:
        task = asyncio.get_running_loop().create_task(run_sync(job))
    except RuntimeError:
        from trio.lowlevel import spawn_system_task  # the loop that runs is Trio's, so it is there

        spawn_system_task(run_sync, job)
    else:
        _begun.add(task)
        task.add_done_callback(_begun.discard)


class ASGI:
    """The middleware as an ASGI application."""

    app: ASGIApp
    core: Core

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self.core.urlmap.bound and "app" in scope:
            self.core.urlmap.bind(scope["app"])
        if scope["type"] == "lifespan":
            await self._live(scope, receive, send)
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = ASGIRequest(scope, self.app, self.core.urlmap.root_path)
        if self.core.owns(request) and (response := await run_sync(self.core.respond, request)) is not None:
            headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in response.headers]
            await send({"type": "http.response.start", "status": response.status, "headers": headers})
            await send({"type": "http.response.body", "body": response.body})
            return
        observer = self.core.observe(request)
        if observer is None:
            await self.app(scope, receive, send)
            return

        wanted = False

        async def observed(message: Message) -> None:
            nonlocal wanted
            kind = message.get("type")
            if kind == "http.response.start":
                wanted = observer.start(message.get("status"), message.get("headers"))
            elif wanted and kind == "http.response.body":
                observer.chunk(message.get("body", b""))
                if not message.get("more_body", False):
                    observer.end()
            await send(message)

        await self.app(scope, receive, observed)

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the lifespan on, and fold what waits when the app has shut down."""

        async def ended(message: Message) -> None:
            if message["type"] in ("lifespan.shutdown.complete", "lifespan.shutdown.failed"):
                await run_sync(self.core.close)
            await send(message)

        await self.app(scope, receive, ended)
