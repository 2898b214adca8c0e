"""ASGI 3: translates, and decides nothing. The one module that awaits."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Final

from anyio.to_thread import run_sync
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .core import Core
from .model import READ_HEADERS, TOLD_HEADERS

_READ: Final = {name.encode(): name for name in READ_HEADERS}
_TOLD: Final = {spelling.encode(): name for name in TOLD_HEADERS for spelling in (name, name.title())}


class ASGIRequest:
    """A scope, as the core reads requests."""

    __slots__ = ("_scope",)

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    @property
    def method(self) -> str:
        return str(self._scope["method"])

    @property
    def scheme(self) -> str:
        return str(self._scope.get("scheme", "http"))

    @property
    def root(self) -> str:
        return str(self._scope.get("root_path", ""))

    @property
    def path(self) -> str:
        """Below the root: servers give the whole path (ASGI, "HTTP Connection Scope"), some proxies one already cut."""
        path, root = str(self._scope["path"]), self.root.rstrip("/")
        return path[len(root) :] if root and path.startswith(f"{root}/") else path

    @property
    def query(self) -> bool:
        return bool(self._scope.get("query_string"))

    @property
    def headers(self) -> Mapping[str, str]:
        return {_READ[name]: value.decode("latin-1") for name, value in self._scope["headers"] if name in _READ}


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

        def observed(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                told = [(_TOLD[n], v.decode("latin-1")) for n, v in message.get("headers", ()) if n in _TOLD]
                observer.start(message["status"], told)
            return send(message)

        await self.app(scope, receive, observed)

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the lifespan on, and fold what waits when the app has shut down."""

        async def ended(message: Message) -> None:
            if message["type"] in ("lifespan.shutdown.complete", "lifespan.shutdown.failed"):
                await run_sync(self.core.close)
            await send(message)

        await self.app(scope, receive, ended)
