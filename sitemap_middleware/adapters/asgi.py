"""The middleware as an ASGI 3 application. It translates between ASGI and the service, and decides nothing itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from contextvars import Context
from functools import partial
from typing import Any, Final

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..http.messages import (
    NOINDEX_HEADER,
    TEST_CLIENT_WAIT_SECONDS,
    WAIT_SECONDS_KEY,
    Request,
    Response,
)
from ..http.request_filter import ignore_reason_of_scope
from ..observe.tracker import Exchange
from ..report.request_handler import ReportHandler
from ..routing.framework_detection import remember_middleware
from ..service import SitemapService
from .asgi_client import ASGIRequest, collect_on_loop, decoded_headers, loop_caller, thread_limiter

MAX_HANGING_REQUESTS: Final = 4
"""AnyIO threads on which our requests to the app may hang. The app has forty of them."""

_FILE_MESSAGES: Final = ("http.response.pathsend", "http.response.zerocopysend")
"""Messages by which the server sends a part of the body from a file. A tuple, because a type may be unhashable."""

_TEST_CLIENT_ADDRESSES: Final = frozenset({("testclient", 50000), ("127.0.0.1", 123)})
"""The made-up addresses of Starlette's TestClient and httpx's ASGITransport. Real clients do not use port 123."""


class ASGIMiddleware:
    """The middleware as an ASGI application."""

    app: ASGIApp
    service: SitemapService
    report: ReportHandler
    lifespan_state: dict[str, Any] | None = None
    """The lifespan state of the app, copied when the app had started; None if no lifespan was seen."""
    _original_attributes: Mapping[str, object]
    _unwind: Callable[[], None]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app, exchange = self.app, None
        try:
            self._bind_app(scope)
            app = self.app
            if scope["type"] == "lifespan":
                send = partial(self._lifespan_send, scope, send)
            elif scope["type"] == "http" and self.service.options.enabled and isinstance(scope["headers"], Collection):
                if self.service.sends_noindex(scope.get("root_path", "")):
                    send = partial(_send_with_noindex, send)
                exchange = ASGIExchange(self, scope, send)  # headers that can be read only once are left to the app
                app = await self._app_for(exchange)
        except Exception as error:
            app, exchange = self.app, None
            self.service.log_fault("a request could not be looked at", error)
        if exchange is None or exchange.page is None:
            await app(scope, receive, send)
            return
        try:
            await app(scope, receive, exchange.send)
        except Exception as error:
            exchange.on_error(error)
            raise

    def _bind_app(self, scope: Scope) -> None:
        if self._original_attributes:
            self._unwind()
        if not self.service.app_routes.bound and "app" in scope:
            self.service.app_routes.bind(scope["app"])
            if self.service.app_routes.app is scope["app"]:
                remember_middleware(scope["app"], self)

    async def _app_for(self, exchange: ASGIExchange) -> ASGIApp:
        """The application that answers a request. Its page is set if the response is to be observed."""
        service = self.service
        exchange.page = service.tracker.pages.get(exchange.key)
        if exchange.page is not None or exchange.is_useless():
            return self.app
        request = exchange.request()
        response = await self.own_response(request, exchange.scope)
        if response is not None:
            return partial(send_response, response)
        if service.sitemap_handler.amends(request):
            return partial(self._amended, request)
        exchange.page = service.observe(request, exchange.key)
        return self.app

    async def own_response(self, request: Request, scope: Scope) -> Response | None:
        """The response to a request for a document, robots.txt or the report; None if the app is to answer."""
        if self.service.options.is_report(request.path):
            return await self.report.answer_async(request, scope, partial(run_sync, limiter=thread_limiter()))
        answer = self.service.sitemap_handler.answer(request)
        # an empty context: the document is for everyone, and its visitor's user or language must not decide it
        return await run_sync(Context().run, answer, limiter=thread_limiter()) if callable(answer) else answer

    async def _lifespan_send(self, scope: Scope, send: Send, message: Message) -> None:
        """Copy the state once the app has started, and save observations before the server learns that it has ended."""
        try:
            if message["type"] == "lifespan.startup.complete" and "state" in scope:
                self.lifespan_state = dict(scope["state"])
            elif message["type"] in ("lifespan.shutdown.complete", "lifespan.shutdown.failed"):
                await run_sync(self.service.close, limiter=CapacityLimiter(1))  # at once: others may wait for it
        except Exception as error:
            self.service.log_fault("a message of the lifespan could not be handled", error)
        await send(message)

    async def _amended(self, request: Request, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the app's response to the visitor's own request for robots.txt: as it is, with a line more, or replaced.

        It is held until it is complete. With the first argument bound, this is an ASGI application.
        """
        held: list[Message] = []

        async def held_send(message: Message) -> None:
            if "headers" in message:  # they may be an iterator
                message = {**message, "headers": [*message["headers"]]}
            held.append(message)
            if message["type"] == "http.response.start" or message.get("more_body"):
                return
            messages = held.copy()
            held.clear()
            response = None
            if message["type"] == "http.response.body":
                response = await run_sync(Context().run, self._amendment, request, messages, limiter=thread_limiter())
            if response is not None:
                await send_response(response, scope, receive, send)
                return
            for part in messages:
                await send(part)

        # Without extensions, the app does not leave it to the server to send a file, which would not get the line.
        await self.app(dict(scope, extensions={}), receive, held_send)
        for part in held:  # the app did not end its response
            await send(part)

    def _amendment(self, request: Request, messages: list[Message]) -> Response | None:
        """What to send in place of the messages of a response; None if they are sent. It may block."""
        start, *parts = messages
        with suppress(LookupError, TypeError, ValueError, AttributeError):  # what is malformed, the server refuses
            headers, body = decoded_headers(start.get("headers", ())), b"".join(part.get("body", b"") for part in parts)
            answer = Response(start["status"], headers, body)
            return self.service.sitemap_handler.amended(request, answer)
        return None


async def _send_with_noindex(send: Send, message: Message) -> None:
    if message["type"] == "http.response.start":
        header = NOINDEX_HEADER[0].lower().encode(), NOINDEX_HEADER[1].encode()
        headers = [*message.get("headers", ())]
        message = {**message, "headers": headers if header in headers else [*headers, header]}
    await send(message)


async def send_response(response: Response, _: Scope, __: Receive, send: Send) -> None:
    """Send a response of the middleware itself. With the first argument bound, this is an ASGI application."""
    headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in response.headers]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    with suppress(OSError):  # the client has disconnected (ASGI, "Disconnected Client")
        await send({"type": "http.response.body", "body": response.body})


class ASGIExchange(Exchange):
    """A request and its response over ASGI.

    The key and the headers are taken before the app runs, because routers and apps change the scope they are given.
    """

    __slots__ = ("adapter", "headers", "scope", "server_send")

    def __init__(self, adapter: ASGIMiddleware, scope: Scope, send: Send) -> None:
        self.adapter: ASGIMiddleware = adapter
        self.scope: Scope = scope
        self.headers: tuple[Any, ...] = tuple(scope["headers"])
        self.server_send: Send = send
        key = (
            scope["path"],
            next((value for name, value in self.headers if name == b"host"), b""),
            scope.get("scheme", "http"),
            scope.get("root_path", ""),
            scope["method"],
            scope.get("query_string", b""),
        )
        super().__init__(adapter.service.tracker, key)

    def request(self) -> Request:
        _, host, scheme, root, method, query = self.key
        scope = self.scope
        wait_seconds: float | None = scope.get(WAIT_SECONDS_KEY)
        client = scope.get("client")
        if wait_seconds is None and client and tuple(client) in _TEST_CLIENT_ADDRESSES:
            wait_seconds = TEST_CLIENT_WAIT_SECONDS
        call_soon = loop_caller()
        params = (scope.get("path_params") or {}).values()
        return ASGIRequest(
            method,
            scheme,
            host.decode("latin-1"),
            self._root,
            self._path,
            (query or b"").decode("latin-1"),
            decoded_headers(self.headers),
            MAX_HANGING_REQUESTS,
            ignore_reason_of_scope(scope),
            has_dynamic_root=bool(root) and any(str(value).strip("/") in root for value in params),
            wait_seconds=wait_seconds,
            async_collector=partial(collect_on_loop, call_soon),
            running=self.adapter,
            scope=scope,
            call_soon=call_soon,
        )

    @property
    def _root(self) -> str:
        root: str = self.key[3] or self.adapter.service.app_routes.root_path
        return root

    @property
    def _path(self) -> str:
        """The path below the root. Servers give the full path (ASGI, "HTTP Connection Scope"); some proxies cut it."""
        path: str = self.key[0]
        root = self._root.rstrip("/")
        return path[len(root) :] if root and path.startswith(f"{root}/") else path

    def is_useless(self) -> bool:
        has_cookie = any(name == b"cookie" and value for name, value in self.headers)
        return self.adapter.service.ignores(self._path, has_cookie=has_cookie)

    async def send(self, message: Message) -> None:
        """The `send` that the app is given: observe the message, then pass it to the server."""
        try:
            self._observe(message)
        except Exception as error:
            self.tracker.log_fault("a response could not be observed", error)
        await self.server_send(message)

    def _observe(self, message: Message) -> None:
        kind = message.get("type")
        if kind == "http.response.start":
            self.on_start(message.get("status"), message.get("headers", ()))
        elif self._captured is None:  # most bodies are not read
            return
        elif kind == "http.response.body":
            self.on_chunk(message.get("body", b""))
            if not message.get("more_body", False):
                self.on_end()
        elif kind in _FILE_MESSAGES:
            self.on_skipped_body()
