"""Reads ASGI scopes, and observes the response to a request as it passes."""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Iterable
from functools import partial
from typing import Any, Final, Protocol

from anyio.from_thread import run_sync as run_on_loop
from starlette.types import ASGIApp, Message, Scope, Send

from ..http.messages import TEST_CLIENT_WAIT_SECONDS, WAIT_SECONDS_KEY, Request
from ..http.request_filter import ignore_reason_of_scope
from ..observe.passing_response import PassingResponse
from ..observe.tracker import RequestKey, TrackedPage
from ..service import SitemapService
from ..util import mark_coroutine_function
from .asgi_client import ASGIClient
from .event_loop_and_threads import collect_on_loop

_NON_BODY_MESSAGES: Final = (
    "http.response.debug",
    "http.response.early_hint",
    "http.response.push",
    "http.response.trailers",
)
"""Messages without a part of the body. Any other may carry one. A tuple, because a type may be unhashable."""

_TEST_CLIENT_ADDRESSES: Final = frozenset({("testclient", 50000), ("127.0.0.1", 123)})
"""The made-up addresses of Starlette's TestClient and httpx's ASGITransport. Real clients do not use port 123."""

_MAX_HANGING_REQUESTS: Final = 4
"""AnyIO threads on which our requests to the app may hang. The app has forty of them."""


class ASGIAdapter(Protocol):
    """What an exchange needs of the middleware."""

    app: ASGIApp
    service: SitemapService
    state: dict[str, Any] | None


class ASGIExchange:
    """A request for a page, and the response to it as it passes.

    The key and the headers are taken before the app runs, because routers and apps change the scope they are given.
    """

    __slots__ = ("adapter", "headers", "key", "page", "passing", "scope", "server_send")

    def __init__(self, adapter: ASGIAdapter, scope: Scope, key: RequestKey, send: Send) -> None:
        self.adapter: ASGIAdapter = adapter
        self.scope: Scope = scope
        self.key: RequestKey = key
        self.headers: tuple[Any, ...] = tuple(scope["headers"])
        self.server_send: Send = send
        self.page: TrackedPage | None = None
        """The page that the request is for, if the response is observed."""
        self.passing: PassingResponse | None = None
        """The response, from its start to its end, if it is recorded."""

    def request(self) -> Request:
        """The request as the service sees it. Read it after the app as well: the app may have signed the visitor in."""
        path, host, scheme, root, method, query = self.key
        scope, app_root = self.scope, self.adapter.service.app_routes.root_path
        wait_seconds: float | None = scope.get(WAIT_SECONDS_KEY)
        client = scope.get("client")
        if wait_seconds is None and client and tuple(client) in _TEST_CLIENT_ADDRESSES:
            wait_seconds = TEST_CLIENT_WAIT_SECONDS
        return Request(
            method,
            scheme,
            host.decode("latin-1"),
            root or app_root,
            _path_below_root(root or app_root, path),
            (query or b"").decode("latin-1"),
            [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in self.headers],
            ASGIClient(self.adapter, scope),
            _MAX_HANGING_REQUESTS,
            ignore_reason_of_scope(scope),
            has_dynamic_root=bool(root) and _contains_parameter(root, scope),
            wait_seconds=wait_seconds,
            async_collector=partial(collect_on_loop, run_on_loop),
        )

    def is_useless(self) -> bool:
        """Whether the request is no evidence, nor for a document, at first sight."""
        service = self.adapter.service
        has_cookie = any(name == b"cookie" and value for name, value in self.headers)
        return service.ignores(
            _path_below_root(self.key[3] or service.app_routes.root_path, self.key[0]), has_cookie=has_cookie
        )

    def send(self, message: Message) -> Awaitable[None]:
        """The `send` that the app is given: observe the message, then pass it to the server.

        Not a coroutine function of its own: it returns the server's awaitable, which is faster.
        """
        try:
            message_type = message["type"]
            if message_type == "http.response.start":
                if self.passing is not None:
                    self.passing.retract()
                if self.page is not None and "status" in message:  # the server refuses a missing status
                    self.passing = self.page.started(message["status"], message.get("headers", ()), self)
            elif self.passing is not None:
                self._observe(message_type, message, self.passing)
        except Exception as error:
            if isinstance(message, dict) and "type" in message:  # the server refuses anything else
                self.adapter.service.log_fault("a response could not be observed", error)
        return self.server_send(message)

    def _observe(self, message_type: object, message: Message, passing: PassingResponse) -> None:
        if message_type == "http.response.body":
            passing.on_chunk(message.get("body", b""))
            if not message.get("more_body", False):
                passing.on_end()
                self.passing = None  # the response is complete: a later error does not retract it
        elif message_type not in _NON_BODY_MESSAGES:
            passing.on_skipped_body()

    def retract(self) -> None:
        """Discard what was recorded of a response that fails before its end."""
        if self.passing is not None:
            self.passing.retract()


mark_coroutine_function(ASGIExchange.send)  # asgiref checks this before it calls it


def key_of(scope: Scope) -> RequestKey | None:
    """What distinguishes a request from those for other pages. None if its headers can be read only once."""
    headers = scope["headers"]
    if type(headers) is not list and not isinstance(headers, Collection):
        return None
    scheme, root, query = scope.get("scheme", "http"), scope.get("root_path", ""), scope.get("query_string", b"")
    return scope["path"], _host_of(headers), scheme, root, scope["method"], query


def _host_of(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The first Host header; empty if there is none."""
    for name, value in headers:
        if name == b"host":
            return value
    return b""


def _path_below_root(root: str, path: str) -> str:
    """The path below the root. Servers give the full path (ASGI, "HTTP Connection Scope"); some proxies cut it."""
    root = root.rstrip("/")
    return path[len(root) :] if root and path.startswith(f"{root}/") else path


def _contains_parameter(root: str, scope: Scope) -> bool:
    return any(str(value).strip("/") in root for value in (scope.get("path_params") or {}).values())
