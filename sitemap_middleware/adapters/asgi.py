"""ASGI 3: translates, and decides nothing. With the modules that it alone uses, the one that awaits."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping
from concurrent.futures import Future
from typing import Any, Final
from urllib.parse import quote

from anyio.from_thread import run_sync as run_on_loop
from anyio.to_thread import run_sync
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..http import CONDITIONAL_HEADERS, TEST_CLIENT_WAIT_SECONDS, WAIT_SECONDS_KEY, AsyncCollector, RequestKey, Response
from ..listing.providers import BatchQueue, as_values_error
from ..models import Context
from ..observation.observer import Observer
from ..rendering.responses import encode_headers
from ..request_filter import IgnoreReason, ignore_reason_of_headers, ignore_reason_of_scope, visitor_fingerprint
from ..service import SitemapService
from ..sitemap_handler import DOCUMENT_SUFFIXES
from .asgi_client import request_app
from .async_bridge import AsyncBridge, loop_caller, run_in_background, run_in_thread, start_task, thread_limiter
from .base_request import BaseRequest, is_proxy_header
from .internal_headers import (
    Connection,
    call_without_context,
    forwarded_hosts,
    internal_client_address,
    internal_headers,
)
from .streaming import send_stream

_CONDITIONAL_HEADERS: Final = {name.encode(): name for name in CONDITIONAL_HEADERS}

_NON_BODY_MESSAGES: Final = (
    "http.response.debug",
    "http.response.early_hint",
    "http.response.push",
    "http.response.trailers",
)
"""Messages that are no part of a body; a tuple, as a type may be anything. Any other may be: a file that the server
sends, or what is yet to come."""

_CONNECTION_KEYS: Final = ("asgi", "http_version", "scheme", "server", "app")
"""What of a scope is the connection's or the app's rather than the one request's."""

_TEST_CLIENT_ADDRESSES: Final = frozenset({("testclient", 50000), ("127.0.0.1", 123)})
"""The addresses that Starlette's TestClient and httpx's ASGITransport make up. No client has the latter's port."""

_MAX_HANGING_REQUESTS: Final = 2
"""Threads of AnyIO's, which has forty for the app, on which the app may hang for requests of ours."""


class ASGIRequest(BaseRequest):
    """A request, as the core reads requests, and the response to it as it passes.

    What tells the page is taken at once, for routers change the scope they are
    given; the rest is looked at where it is asked for.
    """

    __slots__ = (
        "_call_soon",
        "adapter",
        "headers",
        "observer",
        "scope",
        "server_send",
        "tracked_page",
    )

    adapter: ASGIMiddleware
    server_send: Send
    """The server's own `send`."""
    scope: Scope
    headers: tuple[tuple[bytes, bytes], ...]
    """The request's, as they came: the app may take some out of the list itself."""
    tracked_page: Any
    """Known; None where there is an observer from the beginning."""
    observer: Observer | None
    _call_soon: Callable[..., object]
    """Has the event loop call a function, from any thread; only of a lasting one."""

    @property
    def root(self) -> str:
        return self.key[3] or self.adapter.service.urlmap.root_path

    @property
    def path(self) -> str:
        path: str = self.key[0]
        root = self.root
        return _path_below_root(root, path) if root else path

    @property
    def host(self) -> str:
        host: str = self.key[1].decode("latin-1")
        return host

    @property
    def is_forwarded(self) -> bool:
        return any(is_proxy_header(name.decode("latin-1")) for name, _ in self.headers)

    @property
    def has_dynamic_root(self) -> bool:
        root, parameters = self.key[3] or "", self.scope.get("path_params") or {}
        return any(str(value).strip("/") in root for value in parameters.values())

    def ignore_reason(self) -> IgnoreReason | None:
        return ignore_reason_of_headers(self.headers, self._refusal_of_hosts) or ignore_reason_of_scope(self.scope)

    def _refusal_of_hosts(self) -> IgnoreReason | None:
        return self.adapter.service.ignore_reason_of_hosts(self, forwarded_hosts(self._text()))

    def _text(self) -> list[tuple[str, str]]:
        return [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in self.headers]

    def visitor(self, status: int) -> int:
        agent = language = b""
        for name, value in self.headers:
            if name == b"user-agent":
                agent = value
            elif name == b"accept-language":
                language = value
        return visitor_fingerprint(status, agent.decode("latin-1"), language.decode("latin-1"))

    def observe(self) -> Observer | None:
        return self.adapter.service.observe(self, self.key)

    def send(self, message: Message) -> Awaitable[None]:
        """The app's `send`: the server's own, but for a look at the message."""
        try:
            kind = message["type"]
            if kind == "http.response.start":
                try:
                    status, headers = message["status"], message["headers"]
                except KeyError:  # headers are optional (ASGI, "Response Start"); a status is the server's to miss
                    status, headers = message.get("status"), message.get("headers", ())
                observer = self.observer
                if observer is None:
                    if self.tracked_page is not None:
                        self.observer = self.tracked_page.on_response_start(status, headers, self)
                else:
                    if observer.status:
                        self.observer = observer = observer.restart()
                    observer.on_start(status, headers, visit=self)
            elif (observer := self.observer) is not None:
                if kind == "http.response.body":
                    if observer._chunks is not None:
                        observer.on_chunk(message.get("body", b""))
                    if not message.get("more_body", False):
                        if observer._chunks is not None:
                            observer.on_end()
                        self.observer = None  # an error that comes now takes nothing back
                elif kind not in _NON_BODY_MESSAGES:
                    observer.on_skipped_body()
        except Exception as error:
            if isinstance(message, dict) and "type" in message:  # else it is none, and for the server to refuse
                self.adapter.service.tracker.failed("a response could not be observed", error)
        return self.server_send(message)

    def take_back(self) -> None:
        """The app has failed: if it has not sent the whole response, what that said so far counts for nothing."""
        if self.observer is not None:
            self.observer.retract()

    @property
    def conditional_headers(self) -> Mapping[str, str]:
        return {
            _CONDITIONAL_HEADERS[name]: value.decode("latin-1")
            for name, value in self.headers
            if name in _CONDITIONAL_HEADERS
        }

    def start_fetch(
        self,
        path: str,
        *,
        scheme: str | None = None,
        host: str | None = None,
        keep_host: bool = False,
        cut: bool = False,
    ) -> Future[Response | None]:
        """Called on a worker thread, such as the one of `handle`; the app runs on its own event loop."""
        answer: Future[Response | None] = Future()
        scope = self._internal_scope(path, scheme, host or self.host, keep_host=keep_host)
        self._call_in_loop(call_without_context, start_task, request_app, self.adapter.app, scope, answer, cut)
        return answer

    @property
    def wait_seconds(self) -> float | None:
        patience: float | None = self.scope.get(WAIT_SECONDS_KEY)
        client = self.scope.get("client") if patience is None else None
        return TEST_CLIENT_WAIT_SECONDS if client and tuple(client) in _TEST_CLIENT_ADDRESSES else patience

    @property
    def runs_probes_inline(self) -> bool:
        return False

    @property
    def max_hanging_requests(self) -> int:
        return _MAX_HANGING_REQUESTS

    @property
    def async_collector(self) -> AsyncCollector | None:
        return self._collect

    def _collect(
        self, source: Any, context: Context | None, handover: BatchQueue, seconds: float
    ) -> Generator[list[Any]]:
        """As `ask`, on the worker thread; the source is taken from on the app's own event loop, by one task."""
        try:
            flow = run_on_loop(AsyncBridge, source, context, handover)
        except Exception as error:
            raise as_values_error(error) from None
        try:
            while (batch := flow.get(seconds)) is not None:
                yield batch
        finally:
            flow.cancel()

    def _internal_scope(self, path: str, scheme: str | None, host: str, *, keep_host: bool) -> Scope:
        """The scope of a request of our own: nothing in it is the visitor's."""
        whole, live = f"{self.root}{path}", self._text()
        inside: Scope = {name: self.scope[name] for name in _CONNECTION_KEYS if name in self.scope}
        if self.adapter.state is not None:
            inside["state"] = self.adapter.state.copy()  # servers give each request its own
        elif "state" in self.scope:
            inside["state"] = {}
        address, port = self.scope.get("client") or (None, 0)
        inside["client"] = (internal_client_address(live, address), port)
        inside.update(type="http", method="GET", path=whole, raw_path=quote(whole).encode(), query_string=b"")
        inside.update(root_path=self.root, extensions={})
        if scheme:
            inside["scheme"] = scheme
        connection = Connection(self.scheme, (self.root, self.adapter.service.urlmap.root_path))
        sent = internal_headers(
            live, connection, host=self.host if keep_host else host, public_host=host, scheme=scheme
        )
        inside["headers"] = [(name.encode(), value.encode("latin-1")) for name, value in sent]
        return inside

    def detached(self) -> ASGIRequest:
        """The request alone: its response, and who waits for it, can be let go."""
        lasting = ASGIRequest.__new__(ASGIRequest)
        lasting.adapter, lasting.scope, lasting.headers = self.adapter, self.scope, self.headers
        lasting.key, lasting._call_soon = self.key, loop_caller()
        return lasting

    def run_in_background(self, job: Callable[[], None]) -> None:
        self._call_in_loop(run_in_background, job)

    def _call_in_loop(self, function: Callable[..., object], *arguments: object) -> None:
        """Have the event loop call a function; called on a worker thread, or, of a lasting request, on any."""
        if hasattr(self, "_call_soon"):
            self._call_soon(function, *arguments)
        else:
            run_on_loop(function, *arguments)


# It returns what the server's own returns, to be awaited; asgiref asks beforehand whether a callable does.
if sys.version_info >= (3, 12):  # pragma: no cover (one of the two, by the interpreter)
    inspect.markcoroutinefunction(ASGIRequest.send)
else:  # pragma: no cover (likewise)
    ASGIRequest.send._is_coroutine = asyncio.coroutines._is_coroutine  # type: ignore[attr-defined] # nothing public does it


class ASGIMiddleware:
    """The middleware as an ASGI application."""

    app: ASGIApp
    service: SitemapService
    state: dict[str, Any] | None = None
    """What the app keeps for its lifespan, as it was when the app had started; None if no lifespan was seen."""
    _original_attributes: Mapping[str, object]
    _unwind: Callable[[], None]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        core = self.service
        exchange = response = None
        onward = send
        try:
            if scope["type"] == "http" and (type(given := scope["headers"]) is list or isinstance(given, Collection)):
                asked = ASGIRequest()
                asked.adapter = self
                asked.scope = scope
                asked.server_send = send
                asked.headers = headers = tuple(given)
                host = b""
                for name, value in headers:
                    if name == b"host":
                        host = value
                        break
                try:
                    question: RequestKey = (
                        scope["path"],
                        host,
                        scope["scheme"],
                        scope["root_path"],
                        scope["method"],
                        scope["query_string"],
                    )
                except KeyError:
                    question = _request_key(scope, host)
                asked.key = question
                asked.tracked_page = page = core.tracker.tracked_pages.get(question)
                asked.observer = None
                if page is not None:
                    exchange = asked
                else:
                    named = question[0].endswith(DOCUMENT_SUFFIXES)
                    response = core.cached_response(asked) if named else None
                    if response is None:
                        self._bind_app(scope)
                        if named and core.handles(asked):
                            response = await run_sync(core.handle, asked, limiter=thread_limiter())
                    if response is None:
                        asked.observer = core.observe(asked, () if named else question)
                        if asked.observer is not None:
                            exchange = asked
            else:
                self._bind_app(scope)
                if scope["type"] == "lifespan":
                    onward = self._lifespan_send(scope, send)
        except Exception as error:
            core.tracker.failed("a request could not be looked at", error)
        if response is not None:
            await _send_response(response, receive, send)
        elif exchange is None:
            await self.app(scope, receive, onward)
        else:
            try:
                await self.app(scope, receive, exchange.send)
            except Exception:
                exchange.take_back()
                raise

    def _bind_app(self, scope: Scope) -> None:
        if self._original_attributes:
            self._unwind()
        if not self.service.urlmap.bound and "app" in scope:
            self.service.urlmap.bind(scope["app"])

    def _lifespan_send(self, scope: Scope, send: Send) -> Send:
        """The server's `send` of a lifespan.

        Once the app has started, its state is copied. Before the server hears that the app has shut down, all is
        folded.
        """

        async def ended(message: Message) -> None:
            try:
                if message["type"] == "lifespan.startup.complete" and "state" in scope:
                    self.state = dict(scope["state"])
                elif message["type"] in ("lifespan.shutdown.complete", "lifespan.shutdown.failed"):
                    await run_in_thread(self.service.close)
            except Exception as error:
                self.service.tracker.failed("a message of the lifespan could not be handled", error)
            await send(message)

        return ended


async def _send_response(response: Response, receive: Receive, send: Send) -> None:
    """Send a response of ours."""
    headers = [*(response.encoded or encode_headers(response.headers))]  # theirs, who may add to them
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    if response.parts is None:
        await send({"type": "http.response.body", "body": response.body})
    else:
        await send_stream(response.parts, receive, send)


def _request_key(scope: Scope, host: bytes) -> RequestKey:
    """What tells the page, of a scope that leaves out what may be left out."""
    scheme, root, query = scope.get("scheme", "http"), scope.get("root_path"), scope.get("query_string")
    return scope["path"], host, scheme, root, scope["method"], query


def _path_below_root(root: str, path: str) -> str:
    """The path below the root: servers give the whole (ASGI, "HTTP Connection Scope"), some proxies one already cut."""
    root = root.rstrip("/")
    return path[len(root) :] if path.startswith(f"{root}/") else path
