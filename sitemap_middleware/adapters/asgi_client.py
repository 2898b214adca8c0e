"""Requests a path from the ASGI app within the process, as a server would."""

from __future__ import annotations

import contextvars
import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from anyio import CancelScope, Event, current_time
from starlette.types import ASGIApp, Message, Scope

from ..http.messages import (
    MAX_PROBE_BYTES,
    PAGE_TIMEOUT_SECONDS,
    Request,
    Response,
    as_exception,
    is_endless,
    truncated_response,
)
from .event_loop_and_threads import start_task

if TYPE_CHECKING:
    from .asgi import ASGIMiddleware

_CONNECTION_KEYS: Final = ("asgi", "http_version", "scheme", "server", "app")
"""The keys of a scope that are about the connection or the app rather than the one request."""


@dataclass(slots=True, eq=False, kw_only=True)
class ASGIRequest(Request):
    """A request over ASGI, whose own requests run on the app's event loop."""

    adapter: ASGIMiddleware
    scope: Scope
    """That of this request. Only what is about its connection is used."""
    call_soon: Callable[..., object]
    """Has the event loop of the app call a function. It may be called on any thread."""

    def request_app(self, path: str, scheme: str | None, headers: Sequence[tuple[str, str]]) -> Future[Response | None]:
        future: Future[Response | None] = Future()
        call = partial(request_app, self.adapter.app, self._scope(path, scheme, headers), future)
        # in an empty context: without the live request's user and other variables
        self.call_soon(contextvars.Context().run, start_task, call)
        return future

    def plain(self) -> dict[str, Any]:
        scope = {name: self.scope[name] for name in (*_CONNECTION_KEYS, "client", "state") if name in self.scope}
        if "state" in scope:
            scope["state"] = {}
        return {"scope": scope}

    def _scope(self, path: str, scheme: str | None, headers: Sequence[tuple[str, str]]) -> Scope:
        """The scope of a request of the middleware itself. It holds nothing of the visitor's."""
        full_path = f"{self.root}{path}"
        scope: Scope = {name: self.scope[name] for name in _CONNECTION_KEYS if name in self.scope}
        if self.adapter.state is not None:
            scope["state"] = dict(self.adapter.state)  # servers give each request its own copy
        elif "state" in self.scope:
            scope["state"] = {}
        address, port = self.scope.get("client") or (None, 0)
        own: Scope = {
            "type": "http",
            "method": "GET",
            "scheme": scheme or scope.get("scheme", "http"),
            "path": full_path,
            "raw_path": quote(full_path).encode(),
            "query_string": b"",
            "root_path": self.root,
            "extensions": {},
            "client": (self.own_address(address), port),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
        }
        scope.update(own)
        return scope


async def request_app(app: ASGIApp, scope: Scope, future: Future[Response | None]) -> None:
    """Call the app, with a deadline, and set the result of the future when the response is complete.

    What the app does after its response, in background tasks, has no deadline, and nobody waits for it.
    """
    deadline = CancelScope(deadline=current_time() + PAGE_TIMEOUT_SECONDS)

    def on_complete() -> None:
        deadline.deadline = math.inf
        future.set_result(collector.response())

    collector = ResponseCollector(MAX_PROBE_BYTES, on_endless=deadline.cancel, on_complete=on_complete)
    failure: Exception = RuntimeError("the app did not answer")
    try:
        with deadline:
            await app(scope, collector.receive, collector.send)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # Trio ends if a system task raises; a cancelled task of asyncio ends here anyway
        failure = as_exception(error)
    finally:
        if not future.done():
            if deadline.cancel_called:
                future.set_result(truncated_response(collector.response(), too_long=collector.is_too_long))
            else:
                future.set_exception(failure)


def decoded_headers(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    """Headers as text, with names in lower case."""
    return [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in headers]


@dataclass(eq=False)
class ResponseCollector:
    """The `receive` and `send` of a request without a body, whose client disconnects when the response is complete.

    Some apps wait for the disconnect before they return (ASGI, "Disconnect - receive event").
    """

    max_bytes: int | None = None
    on_endless: Callable[[], object] = bool
    """Called if the body is longer than `max_bytes`, or has no end, to stop the app."""
    on_complete: Callable[[], object] = bool
    status: int = 0
    _headers: list[tuple[str, str]] = field(default_factory=list)
    _body: bytearray = field(default_factory=bytearray)
    _requested: bool = False
    _completed: Event = field(default_factory=Event)

    async def receive(self) -> Message:
        if not self._requested:
            self._requested = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._completed.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Take a message. Most malformed ones raise an exception, as in servers, so that the app fails at once."""
        if message["type"] == "http.response.start":
            self.status = int(message["status"])
            self._headers = decoded_headers(message.get("headers", ()))
            if self.max_bytes is not None and is_endless(dict(self._headers).get("content-type", "").lower()):
                self.on_endless()
        elif message["type"] == "http.response.body":
            self._body += message.get("body", b"")
            if self.is_too_long:
                self.on_endless()
            elif not message.get("more_body", False) and not self._completed.is_set():
                self._completed.set()
                self.on_complete()

    @property
    def is_too_long(self) -> bool:
        """Whether the body is longer than `max_bytes`."""
        return self.max_bytes is not None and len(self._body) > self.max_bytes

    def response(self) -> Response:
        """The response so far."""
        return Response(self.status, self._headers, bytes(self._body))
