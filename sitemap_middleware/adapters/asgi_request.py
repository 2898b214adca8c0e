"""A request to an ASGI app, as the service sees it, and the response to it as it passes."""

from __future__ import annotations

import contextvars
from collections.abc import Awaitable, Callable, Generator, Iterable
from concurrent.futures import Future
from functools import partial
from typing import Any, Final, Protocol

from anyio.from_thread import run_sync as run_on_loop
from starlette.types import ASGIApp, Message, Scope, Send

from ..listing.provider_item_queue import BatchQueue
from ..models import Context, RoutingHeaders
from ..private_stdlib import mark_coroutine_function
from ..proxy_header_names import is_proxy_header
from ..request_filter.asgi import HOST_NAMES, ignore_reason_of_headers, ignore_reason_of_scope
from ..request_filter.reasons import IgnoreReason
from ..request_response import (
    KEY_HOST,
    KEY_METHOD,
    KEY_PATH,
    KEY_ROOT,
    TEST_CLIENT_WAIT_SECONDS,
    WAIT_SECONDS_KEY,
    AsyncCollector,
    Conditions,
    ProbeRequest,
    RequestKey,
    Response,
)
from ..service import SitemapService
from .base_request import BaseRequest
from .event_loop_and_threads import collect_on_loop, loop_caller, run_in_background, start_task
from .in_process_asgi_client import LASTING_HEADERS, lasting_scope, probe_scope, request_app
from .probe_headers_without_visitor import forwarded_hosts

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
    """What a request needs of the middleware."""

    app: ASGIApp
    service: SitemapService
    state: dict[str, Any] | None


class ASGIRequest(BaseRequest):
    """A request, and the response to it as it passes.

    The key is made before the app runs, because routers change the scope they are
    given. Everything else is computed when it is read.
    """

    __slots__ = ("_call_soon", "adapter", "fields", "scope", "server_send")

    adapter: ASGIAdapter
    scope: Scope
    fields: tuple[tuple[bytes, bytes], ...]
    """The request's headers, as they came: the app may remove some from the list in the scope."""
    server_send: Send
    _call_soon: Callable[..., object]
    """Schedules a call on the event loop, from any thread. Only detached requests have it."""

    @property
    def root(self) -> str:
        return self.key[KEY_ROOT] or self.adapter.service.app_routes.root_path

    @property
    def path(self) -> str:
        path: str = self.key[KEY_PATH]
        root = self.root
        return _path_below_root(root, path) if root else path

    @property
    def host(self) -> str:
        host: str = self.key[KEY_HOST].decode("latin-1")
        return host

    @property
    def is_forwarded(self) -> bool:
        return any(is_proxy_header(name.decode("latin-1")) for name, _ in self.fields)

    @property
    def has_dynamic_root(self) -> bool:
        root, parameters = self.key[KEY_ROOT] or "", self.scope.get("path_params") or {}
        return any(str(value).strip("/") in root for value in parameters.values())

    def ignore_reason(self) -> IgnoreReason | None:
        self.routing_headers = ()
        reason = ignore_reason_of_headers(self.fields, self)
        if reason is not None:
            return reason
        scope = self.scope  # few scopes have these two
        return ignore_reason_of_scope(scope) if "user" in scope or "extensions" in scope else None

    def ignore_reason_of_routing(self, headers: tuple[tuple[bytes, bytes], ...]) -> IgnoreReason | None:
        self.routing_headers: RoutingHeaders = headers
        for name, _ in headers:
            if name in HOST_NAMES:
                return self.adapter.service.ignore_reason_of_hosts(self, forwarded_hosts(self.decoded_headers()))
        return None

    def decoded_headers(self) -> list[tuple[str, str]]:
        """The request's headers, by lower-case name."""
        return [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in self.fields]

    def send(self, message: Message) -> Awaitable[None]:
        """The `send` that the app is given: observe the message, then pass it to the server.

        Not a coroutine function of its own: it returns the server's awaitable, which is faster.
        """
        try:
            message_type = message["type"]
            if message_type == "http.response.start":
                try:
                    status = message["status"]
                    headers = message["headers"]
                except KeyError:  # headers are optional (ASGI, "Response Start"); the server refuses a missing status
                    status, headers = message.get("status"), ()
                self.observer = self.tracked_page.on_response_start(status, headers, self, self.observer)
            elif (observer := self.observer) is not None:
                if message_type == "http.response.body":
                    is_last = "more_body" not in message or not message["more_body"]
                    if observer.chunks is not None:
                        observer.on_chunk(message.get("body", b""))
                        if is_last:
                            observer.on_end()
                    if is_last:
                        self.observer = None  # the response is complete: a later error does not retract it
                elif message_type == "http.response.pathsend":
                    observer.on_file(message.get("path"))
                elif message_type not in _NON_BODY_MESSAGES:
                    observer.on_skipped_body()
        except Exception as error:
            if isinstance(message, dict) and "type" in message:  # the server refuses anything else
                self.adapter.service.log_fault("a response could not be observed", error)
        server_send = self.server_send  # Python calls a local variable faster than an attribute that is no method
        return server_send(message)

    @property
    def conditions(self) -> Conditions:
        coding = tags = moment = None
        for name, value in self.fields:  # names are compared one by one: this is faster than a dict
            if name == b"accept-encoding":
                coding = value.decode("latin-1")
            elif name == b"if-none-match":
                tags = value.decode("latin-1")
            elif name == b"if-modified-since":
                moment = value.decode("latin-1")
        return self.key[KEY_METHOD], coding, tags, moment

    def start_probe(self, probe: ProbeRequest) -> Future[Response | None]:
        """Call the app on its own event loop. Called on a worker thread, such as the one of `handle`."""
        future: Future[Response | None] = Future()
        adapter = self.adapter
        app_root = adapter.service.app_routes.root_path
        scope = probe_scope(probe, self, self.scope, self.decoded_headers(), app_root, state=adapter.state)
        request = partial(request_app, adapter.app, scope, future, allow_truncated=probe.allow_truncated)
        self._call_in_loop(
            contextvars.Context().run, start_task, request
        )  # without the live request's user and other variables
        return future

    @property
    def wait_seconds(self) -> float | None:
        seconds: float | None = self.scope.get(WAIT_SECONDS_KEY)
        client = self.scope.get("client") if seconds is None else None
        return TEST_CLIENT_WAIT_SECONDS if client and tuple(client) in _TEST_CLIENT_ADDRESSES else seconds

    @property
    def runs_probes_inline(self) -> bool:
        return False

    @property
    def max_hanging_requests(self) -> int:
        return _MAX_HANGING_REQUESTS

    @property
    def async_collector(self) -> AsyncCollector | None:
        return self._collect

    def _collect(self, source: Any, context: Context | None, queue: BatchQueue, seconds: float) -> Generator[list[Any]]:
        return collect_on_loop(run_on_loop, source, context, queue, seconds)

    def detached(self) -> ASGIRequest:
        request = ASGIRequest()
        fields = tuple(
            (name, value) for name, value in self.fields if name.decode("latin-1").lower() in LASTING_HEADERS
        )
        request.adapter, request.scope, request.fields = self.adapter, lasting_scope(self.scope), fields
        request.key, request._call_soon = self.key, loop_caller()
        return request

    def run_in_background(self, job: Callable[[], None]) -> None:
        self._call_in_loop(run_in_background, job)

    def _call_in_loop(self, function: Callable[..., object], *arguments: object) -> None:
        """Have the event loop call a function. A detached request does so on any thread, others on a worker thread."""
        if hasattr(self, "_call_soon"):
            self._call_soon(function, *arguments)
        else:
            run_on_loop(function, *arguments)


mark_coroutine_function(ASGIRequest.send)  # asgiref checks this before it calls it


def request_of_scope(scope: Scope, key: RequestKey, adapter: ASGIAdapter) -> ASGIRequest:
    """Make the request of a scope that the app has not seen yet."""
    request = ASGIRequest()
    request.adapter = adapter
    request.scope = scope
    request.key = key
    request.fields = tuple(scope["headers"])
    request.observer = None
    return request


def host_of(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The first Host header; empty if there is none."""
    for name, value in headers:
        if name == b"host":
            return value
    return b""


def key_with_defaults(scope: Scope) -> RequestKey:
    """The key of a request whose scope may leave out optional items."""
    scheme, root, query = scope.get("scheme", "http"), scope.get("root_path"), scope.get("query_string")
    return scope["path"], host_of(scope["headers"]), scheme, root, scope["method"], query


def _path_below_root(root: str, path: str) -> str:
    """The path below the root. Servers give the full path (ASGI, "HTTP Connection Scope"); some proxies cut it."""
    root = root.rstrip("/")
    return path[len(root) :] if path.startswith(f"{root}/") else path
