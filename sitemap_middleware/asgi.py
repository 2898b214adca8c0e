"""ASGI 3: translates, and decides nothing. The one module that awaits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from anyio.to_thread import run_sync
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .core import Core
from .model import ASKED_HEADERS, READ_HEADERS

_READ: Final = {name.encode(): name for name in READ_HEADERS}
_ASKED: Final = {name.encode(): name for name in ASKED_HEADERS}


class ASGIRequest:
    """A scope, as the core reads requests."""

    __slots__ = ("_scope",)

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    @property
    def method(self) -> str:
        method: str = self._scope["method"]
        return method

    @property
    def scheme(self) -> str:
        scheme: str = self._scope.get("scheme", "http")
        return scheme

    @property
    def root(self) -> str:
        root: str = self._scope.get("root_path", "")
        return root

    @property
    def path(self) -> str:
        """Below the root: servers give the whole path (ASGI, "HTTP Connection Scope"), some proxies one already cut."""
        path: str = self._scope["path"]
        if root := self._scope.get("root_path"):
            root = root.rstrip("/")
            return path[len(root) :] if path.startswith(f"{root}/") else path
        return path

    @property
    def query(self) -> bool:
        return bool(self._scope.get("query_string"))

    @property
    def headers(self) -> Mapping[str, str]:
        return {_READ[name]: value.decode("latin-1") for name, value in self._scope["headers"] if name in _READ}

    @property
    def asked(self) -> Mapping[str, str]:
        return {_ASKED[name]: value.decode("latin-1") for name, value in self._scope["headers"] if name in _ASKED}


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
        request = ASGIRequest(scope)
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
